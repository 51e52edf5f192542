//! Pools: control groups that share the windows of an entity.

pub(super) mod locks;

use std::sync::atomic::{AtomicBool, Ordering};

use macrotick_uapi::{self as abi, Device, Stats};

use super::jobs::ensure_regular;
use super::{unit_ns, Scenario};
use crate::board::{Board, Log};
use crate::check::{Check, Explain};
use crate::group::Group;
use crate::process::{self, periodic, Child};
use crate::sys::{self, PiLock, SchedAttr};
use crate::table::Table;
use crate::{ensure, ensure_eq};

pub const ALL: &[Scenario] = &[
    Scenario::new("pool_in_its_windows", in_its_windows).punctual(),
    Scenario::new("pool_fifo", fifo).punctual(),
    Scenario::new("pool_takes_turns", takes_turns).punctual(),
    Scenario::new("pool_by_priority", by_priority).punctual(),
    Scenario::new("pool_slack", slack).punctual(),
    Scenario::new("pool_without_slack", without_slack).punctual(),
    Scenario::new("pool_nice_values_in_slack", nice_values_in_slack).punctual().fair(),
    Scenario::new("pool_lends_its_own_priority", lends_its_own_priority).punctual(),
    Scenario::new("pool_hands_on_its_locks", locks::handed_on).punctual(),
    Scenario::new("pool_hands_on_what_it_is_lent", locks::hands_on_what_it_is_lent).punctual(),
    Scenario::new("pool_changes_while_it_waits", locks::changes_while_it_waits).punctual(),
    Scenario::new("pool_moves", moves).punctual(),
    Scenario::new("pool_born_in_a_group", born_in_a_group).punctual(),
    Scenario::new("pool_subgroups", subgroups).punctual(),
    Scenario::new("pool_own_policy", own_policy),
    Scenario::new("pool_of_a_later_table", of_a_later_table),
    Scenario::new("pool_exec_and_kill", exec_and_kill).punctual(),
    Scenario::new("pool_many_threads", many_threads).within(90_000),
    Scenario::new("pool_crowd", crowd).punctual().within(90_000),
    Scenario::new("pool_dies_outside", dies_outside).punctual().fair(),
    Scenario::new("pool_refusals", refusals),
];

const SOON: u64 = 500_000_000;
/// The words of the board for each watcher. They count the looks inside and outside the windows, and the CPU time. The
/// last word is the time from the beginning of the cycle to the last look outside.
const WORDS: usize = 4;

/// Entity `p` with [4, 8) of 20 units, which serves a group, beside a witness in [10, 14) that must not be affected.
pub(super) struct Stage {
    pub(super) device: Device,
    group: Group,
    board: Board,
    witness: Log,
    pub(super) u: u64,
}

/// The counters of a watcher.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    inside: u64,
    outside: u64,
    pub(super) cpu_ns: u64,
    outside_at_ns: u64,
}

impl Stage {
    pub(super) fn new(flags: u32, slice_ns: u64) -> Check<Stage> {
        let (u, device, witness) = (unit_ns(), Device::open()?, Log::new(1024));
        table(flags, slice_ns).install(&device)?;
        periodic("witness", witness, u)?;
        let group = Group::new("pool")?;
        group.serve("p")?;
        Ok(Stage { device, group, board: Board::new(1 + 16 * WORDS), witness, u })
    }

    fn stats(&self) -> Check<Stats> {
        self.device.stats(0).explain("stats")
    }

    pub(super) fn await_threads(&self, count: u32) -> Check {
        let there = || self.device.stats(0).is_ok_and(|stats| stats.nr_threads == count);
        ensure!(sys::eventually(60 * SOON, there), "{} threads in the pool, not {count}", self.stats()?.nr_threads);
        Ok(())
    }

    /// Forks a process that enters the group by itself and then watches the clock endlessly.
    pub(super) fn watcher(&self, index: usize, attr: SchedAttr) -> Check<Child> {
        let child = process::fork(|| match self.group.take(0) {
            Ok(()) => self.watch(index),
            Err(_) => 1,
        });
        sys::set_sched(child.pid, attr).explain("policy")?;
        await_inside(child)?;
        Ok(child)
    }

    pub(super) fn watch(&self, index: usize) -> ! {
        let word = 1 + index * WORDS;
        loop {
            let (now, epoch) = (sys::now_ns(), self.board.get(0));
            if epoch != 0 && now >= epoch {
                let phase = (now - epoch) % (20 * self.u);
                let inside = phase >= 4 * self.u && phase < 8 * self.u + self.u / 5;
                self.board.add(word + usize::from(!inside), 1);
                if !inside {
                    self.board.set(word + 3, phase);
                }
            }
            self.board.set(word + 2, sys::cpu_time_ns());
        }
    }

    pub(super) fn start(&self) -> Check<u64> {
        let epoch = self.device.start(sys::now_ns() + 20 * self.u).explain("start")?;
        sys::sleep_until(epoch);
        self.board.set(0, epoch);
        Ok(epoch)
    }

    fn seen(&self, index: usize) -> Seen {
        let word = |i| self.board.get(1 + index * WORDS + i);
        Seen { inside: word(0), outside: word(1), cpu_ns: word(2), outside_at_ns: word(3) }
    }

    /// Returns the watchers' counters for this many cycles from now.
    pub(super) fn seen_in<const N: usize>(&self, cycles: u64) -> [Seen; N] {
        let before: [Seen; N] = std::array::from_fn(|i| self.seen(i));
        sys::sleep(cycles * 20 * self.u);
        std::array::from_fn(|i| {
            let (now, then) = (self.seen(i), before[i]);
            Seen {
                inside: now.inside - then.inside,
                outside: now.outside - then.outside,
                cpu_ns: now.cpu_ns - then.cpu_ns,
                outside_at_ns: now.outside_at_ns,
            }
        })
    }

    pub(super) fn ensure_undisturbed(&self, epoch: u64) -> Check {
        let cycles = (sys::now_ns() - epoch) / (20 * self.u) + 1;
        sys::sleep_until(epoch + (cycles + 1) * 20 * self.u - self.u);
        ensure_eq!(self.witness.count() as u64, cycles + 1, "jobs of the witness");
        ensure_regular(&self.witness.jobs(), 0, epoch, 20 * self.u, 10 * self.u)
    }
}

/// Forks a process in a pool's group. Returns after it has entered the pool.
fn inside(group: &Group, body: impl FnOnce() -> i32) -> Check<Child> {
    let child = process::fork_into(group.path(), body)?;
    await_inside(child)?;
    Ok(child)
}

/// Waits until a process is in the pool. Before that, no other thread may keep it from running.
fn await_inside(child: Child) -> Check {
    let inside = || sys::sched(child.pid).is_ok_and(|attr| attr.policy == abi::SCHED_TT);
    ensure!(sys::eventually(10 * SOON, inside), "a process did not enter the pool: {}", child.describe());
    Ok(())
}

/// Forks a hog above the others. The policy is set from here: a busy thread would keep the child from setting it.
fn hog_above_all() -> Check<Child> {
    let hog = process::fork(|| sys::hog());
    sys::set_sched(hog.pid, SchedAttr::fifo(50)).explain("policy")?;
    Ok(hog)
}

fn table(flags: u32, slice_ns: u64) -> Table {
    let u = unit_ns();
    Table::new(20 * u).window("p", 0, 4 * u, 4 * u, 0).pool(flags, slice_ns).window("witness", 0, 10 * u, 4 * u, 3)
}

pub(super) fn ensure_only_inside(seen: Seen, who: &str) -> Check {
    ensure!(seen.inside > 0 && seen.outside == 0, "{who} looks inside and outside: {seen:?}");
    Ok(())
}

/// Checks a process that enters by itself, as a shell does, and forks the others.
fn in_its_windows() -> Check {
    let stage = Stage::new(abi::RR, 0)?;
    process::fork(|| {
        if stage.group.take(0).is_err() {
            return 1;
        }
        for index in 1..4 {
            process::fork(|| stage.watch(index));
        }
        stage.watch(0)
    });
    stage.await_threads(4)?;
    let epoch = stage.start()?;
    let seen = stage.seen_in::<4>(50);
    for one in seen {
        ensure_only_inside(one, "a thread of the pool")?;
    }
    let served = stage.stats()?.runtime_ns;
    ensure!(served > 50 * 3 * stage.u, "the pool had {served} ns");
    stage.ensure_undisturbed(epoch)
}

/// Checks that the first thread keeps the windows.
fn fifo() -> Check {
    let stage = Stage::new(0, 0)?;
    stage.watcher(0, SchedAttr::other())?;
    let epoch = stage.start()?;
    sys::sleep(20 * stage.u);
    stage.watcher(1, SchedAttr::other())?;
    let [first, second] = stage.seen_in(20);
    ensure_only_inside(first, "the first")?;
    ensure_eq!(second.inside + second.outside, 0, "looks of the second");
    stage.ensure_undisturbed(epoch)
}

/// Checks that threads take turns by nice values: 0 and 5 mean the weights 1024 and 335.
fn takes_turns() -> Check {
    let stage = Stage::new(abi::RR, unit_ns())?;
    stage.watcher(0, SchedAttr::other())?;
    stage.watcher(1, SchedAttr { nice: 5, ..SchedAttr::other() })?;
    stage.watcher(2, SchedAttr::other())?;
    let epoch = stage.start()?;
    sys::sleep(20 * stage.u);
    let [first, nice, last] = stage.seen_in(300);
    for one in [first, nice, last] {
        ensure_only_inside(one, "a thread of the pool")?;
    }
    for one in [first, last] {
        let permille = one.cpu_ns * 335 * 1000 / (nice.cpu_ns * 1024);
        ensure!((900..1100).contains(&permille), "{one:?}, nice 5 {nice:?}");
    }
    stage.ensure_undisturbed(epoch)
}

/// Checks that the threads' own policies give their priorities, and a thread that blocks leaves the CPU to the next
/// one.
fn by_priority() -> Check {
    let stage = Stage::new(abi::PRIORITY, 0)?;
    stage.watcher(0, SchedAttr::other())?;
    stage.watcher(1, SchedAttr::fifo(10))?;
    let best = stage.watcher(2, SchedAttr::fifo(20))?;
    let epoch = stage.start()?;
    let before = stage.seen_in::<3>(10);
    ensure_only_inside(before[2], "FIFO 20")?;
    ensure_eq!(before[0].inside + before[1].inside, 0, "looks of others");
    // The priorities also apply when they change in the pool.
    sys::set_sched(best.pid, SchedAttr::fifo(5)).explain("another priority")?;
    sys::sleep(20 * stage.u);
    let after = stage.seen_in::<3>(10);
    ensure_only_inside(after[1], "FIFO 10")?;
    ensure_eq!(after[0].inside + after[2].inside, 0, "looks of others after the change");
    stage.ensure_undisturbed(epoch)
}

/// Checks that a pool with slack gets all time that the witness leaves, and only its windows beside a hog.
fn slack() -> Check {
    let stage = Stage::new(abi::RR | abi::SLACK, 0)?;
    for index in 0..3 {
        // Beside hogs, the kernel keeps a share for SCHED_OTHER. Each watcher has a higher priority than those that are
        // already busy.
        stage.watcher(index, SchedAttr::fifo(10 + index as u32))?;
    }
    let epoch = stage.start()?;
    sys::sleep(20 * stage.u);
    let total = |seen: [Seen; 3]| seen.iter().map(|one| one.cpu_ns).sum::<u64>();
    let alone = total(stage.seen_in(50));
    ensure!(alone > 50 * 16 * stage.u, "alone the pool had {alone} ns");
    let hog = hog_above_all()?;
    // A watcher that was looking when the hog came records that look in its next turn.
    sys::sleep(20 * 20 * stage.u);
    let seen = stage.seen_in(50);
    let beside = total(seen);
    ensure!((50 * 3 * stage.u..50 * 42 * stage.u / 10).contains(&beside), "beside a hog the pool had {beside} ns");
    for one in seen {
        ensure_only_inside(one, "beside a hog a thread of the pool")?;
    }
    hog.kill(SOON)?;
    stage.ensure_undisturbed(epoch)
}

/// Checks that the threads' nice values in the pool also apply outside of it: 0 and 5 mean the weights 1024 and 335.
/// Turns of the fair class are longer than the other scenarios' cycles.
fn nice_values_in_slack() -> Check {
    let (u, device, board) = (unit_ns(), Device::open()?, Board::new(2));
    let cycle = 100_000_000;
    Table::new(cycle).window("p", 0, 4 * u, 4 * u, 0).pool(abi::RR | abi::SLACK, 0).install(&device)?;
    let group = Group::new("pool")?;
    group.serve("p")?;
    let hog = |word| {
        inside(&group, || loop {
            board.set(word, sys::cpu_time_ns());
        })
    };
    hog(0)?;
    let nice = hog(1)?;
    device.start(sys::now_ns()).explain("start")?;
    sys::set_sched(nice.pid, SchedAttr { nice: 5, ..SchedAttr::other() }).explain("nice value")?;
    sys::sleep(cycle);
    let before = [board.get(0), board.get(1)];
    sys::sleep(15 * cycle);
    let [other, nice] = [0, 1].map(|word| board.get(word) - before[word]);
    let permille = other * 335 * 1000 / (nice * 1024);
    ensure!((850..1150).contains(&permille), "{other} ns, and {nice} ns with a nice value of 5");
    Ok(())
}

fn without_slack() -> Check {
    let stage = Stage::new(abi::RR, 0)?;
    stage.watcher(0, SchedAttr::other())?;
    let epoch = stage.start()?;
    sys::sleep(20 * stage.u);
    let [alone] = stage.seen_in(50);
    ensure_only_inside(alone, "with nobody else about the pool")?;
    ensure!(alone.cpu_ns < 50 * 42 * stage.u / 10, "the pool had {} ns", alone.cpu_ns);
    stage.ensure_undisturbed(epoch)
}

/// Checks that a waiter in the pool lends its own priority: a wait for a lock within the pool gives no real-time
/// priority.
fn lends_its_own_priority() -> Check {
    let stage = Stage::new(abi::RR, 0)?;
    let lock = Board::new(1);
    process::fork(|| match PiLock(lock.futex(0)).lock().map_err(|_| ()).and(stage.group.take(0).map_err(drop)) {
        Ok(()) => stage.watch(0),
        Err(()) => 1,
    });
    stage.await_threads(1)?;
    let waiter = process::fork(|| match stage.group.take(0) {
        Ok(()) => PiLock(lock.futex(0)).lock().map_or_else(|errno| errno, |()| 0),
        Err(_) => 1,
    });
    await_inside(waiter)?;
    let hog = hog_above_all()?;
    let epoch = stage.start()?;
    sys::sleep(20 * 20 * stage.u);
    ensure!(lock.get(0) >> 31 & 1 == 1, "nobody waits for the lock: {:#x}", lock.get(0));
    let [seen] = stage.seen_in(20);
    ensure_only_inside(seen, "the owner of a lock")?;
    hog.kill(SOON)?;
    stage.ensure_undisturbed(epoch)
}

/// Checks moves into the group and out of it while the table runs.
fn moves() -> Check {
    let stage = Stage::new(abi::RR, 0)?;
    let child = process::fork(|| stage.watch(0));
    let epoch = stage.start()?;
    for _ in 0..10 {
        stage.group.take(child.pid)?;
        stage.await_threads(1)?;
        sys::sleep(20 * stage.u);
        let [inside] = stage.seen_in(3);
        ensure_only_inside(inside, "after a move into the group")?;
        Group::root().take(child.pid)?;
        stage.await_threads(0)?;
        let [outside] = stage.seen_in(3);
        ensure!(outside.outside > 0, "after a move out of the group: {outside:?}");
        ensure_eq!(sys::sched(child.pid).explain("policy")?.policy, libc::SCHED_OTHER as u32, "policy outside");
    }
    // The group loses its entity, and gets it again.
    stage.group.take(child.pid)?;
    stage.await_threads(1)?;
    stage.group.serve("")?;
    stage.await_threads(0)?;
    stage.group.serve("p")?;
    stage.await_threads(1)?;
    stage.ensure_undisturbed(epoch)
}

/// Checks `clone3` with `CLONE_INTO_CGROUP`: neither parent nor child moves.
fn born_in_a_group() -> Check {
    let stage = Stage::new(abi::RR, 0)?;
    let epoch = stage.start()?;
    process::fork_into(stage.group.path(), || stage.watch(0))?;
    stage.await_threads(1)?;
    sys::sleep(20 * stage.u);
    let [inside] = stage.seen_in(5);
    ensure_only_inside(inside, "a child born in the group")?;
    stage.ensure_undisturbed(epoch)
}

/// Checks that the nearest group with an entity counts.
fn subgroups() -> Check {
    let stage = Stage::new(abi::RR, 0)?;
    stage.group.set("cgroup.subtree_control", "+cpu")?;
    let inner = stage.group.child("inner")?;
    let child = process::fork(|| stage.watch(0));
    inner.take(child.pid)?;
    stage.await_threads(1)?;
    let epoch = stage.start()?;
    let [inside] = stage.seen_in(5);
    ensure_only_inside(inside, "a thread of a group below")?;
    inner.serve("nobody")?;
    stage.await_threads(0)?;
    let [outside] = stage.seen_in(3);
    ensure!(outside.outside > 0, "with another entity: {outside:?}");
    inner.serve("")?;
    stage.await_threads(1)?;
    stage.ensure_undisturbed(epoch)
}

/// Checks that changes of a pool thread's own policy and affinity take effect when it is outside.
fn own_policy() -> Check {
    let stage = Stage::new(abi::RR, 0)?;
    let cpus = sys::affinity(0).explain("affinity")?;
    let child = process::fork(|| {
        if sys::set_sched(0, SchedAttr::fifo(7)).is_err() || stage.group.take(0).is_err() {
            return 1;
        }
        stage.board.set(1, 1);
        while stage.board.get(2) == 0 {
            sys::sleep(1_000_000);
        }
        let changed = sys::set_sched(0, SchedAttr::fifo(9)).and_then(|()| sys::set_affinity(0, &cpus));
        // This call keeps the policy. The kernel must not store its placeholder for no change (-1) as the policy
        // outside.
        let param = libc::sched_param { sched_priority: 0 };
        // SAFETY: reads one structure.
        unsafe { libc::sched_setparam(0, &param) };
        // Unlike a member, it has no jobs.
        let wait = stage.device.wait().err();
        let refused = sys::set_sched(0, SchedAttr::deadline(1_000_000, 100_000_000));
        if changed.is_err() || wait != Some(libc::EINVAL) || refused != Err(libc::EBUSY) {
            return 2;
        }
        stage.board.set(1, 2);
        loop {
            sys::sleep(1_000_000);
        }
    });
    stage.await_threads(1)?;
    ensure!(sys::eventually(SOON, || stage.board.get(1) == 1), "no child");
    ensure_eq!(sys::sched(child.pid).explain("policy")?.policy, abi::SCHED_TT, "policy inside");
    stage.start()?;
    stage.board.set(2, 1);
    let done = sys::eventually(SOON, || stage.board.get(1) == 2 || child.poll().is_some());
    ensure!(done && stage.board.get(1) == 2, "in the pool: {:?} {}", child.poll(), child.describe());
    ensure_eq!(sys::affinity(child.pid).explain("affinity")?, [0], "affinity inside");
    stage.group.serve("")?;
    stage.await_threads(0)?;
    let attr = sys::sched(child.pid).explain("policy")?;
    ensure_eq!((attr.policy, attr.priority), (libc::SCHED_FIFO as u32, 9), "policy and priority outside");
    // The affinity changes when the thread no longer counts as a member.
    ensure!(sys::eventually(SOON, || sys::affinity(child.pid).as_ref() == Ok(&cpus)), "affinity outside, {cpus:?}");
    Ok(())
}

/// Checks a group and a thread that exist before and after the table.
fn of_a_later_table() -> Check {
    let (device, group) = (Device::open()?, Group::new("pool")?);
    group.serve("p")?;
    let child = process::fork(|| loop {
        sys::sleep(1_000_000);
    });
    group.take(child.pid)?;
    for _ in 0..3 {
        table(abi::RR, 0).install(&device)?;
        let joined = || device.stats(0).is_ok_and(|stats| stats.nr_threads == 1);
        ensure!(sys::eventually(SOON, joined), "the thread did not join a table that came later");
        device.start(0).explain("start")?;
        sys::sleep(40 * unit_ns());
        device.remove().explain("remove")?;
        ensure_eq!(sys::sched(child.pid).explain("policy")?.policy, libc::SCHED_OTHER as u32, "policy without a table");
    }
    child.kill(SOON)
}

/// Checks a shell that executes another program and forks.
fn exec_and_kill() -> Check {
    let stage = Stage::new(abi::RR, 0)?;
    let shell = process::fork(|| {
        if stage.group.take(0).is_err() {
            return 1;
        }
        let script = c"while true; do /bin/busybox true; done";
        // SAFETY: constants.
        unsafe { libc::execl(c"/bin/busybox".as_ptr(), c"sh".as_ptr(), c"-c".as_ptr(), script.as_ptr(), 0) };
        2
    });
    ensure!(sys::eventually(SOON, || stage.stats().is_ok_and(|stats| stats.nr_threads > 0)), "no shell");
    let epoch = stage.start()?;
    sys::sleep(60 * 20 * stage.u);
    let stats = stage.stats()?;
    ensure!(stats.runtime_ns > 60 * 2 * stage.u, "the shell and its children had {} ns", stats.runtime_ns);
    shell.kill(SOON)?;
    stage.group.set("cgroup.kill", "1")?;
    stage.await_threads(0)?;
    stage.ensure_undisturbed(epoch)
}

/// Checks a pool with more threads than an entity with jobs may have.
fn many_threads() -> Check {
    let stage = Stage::new(abi::RR, abi::MIN_SLICE_NS)?;
    let count = abi::MAX_THREADS + 50;
    process::fork(|| {
        if stage.group.take(0).is_err() {
            return 1;
        }
        for _ in 1..count {
            process::fork(|| loop {
                sys::sleep(1_000_000_000);
            });
        }
        loop {
            sys::sleep(1_000_000_000);
        }
    });
    stage.await_threads(count)?;
    stage.start()?;
    sys::sleep(50 * 20 * stage.u);
    stage.group.set("cgroup.kill", "1")?;
    stage.await_threads(0)
}

/// Returns the greatest lateness of a witness in 50 cycles. Its window begins at the end of a pool's window, in which
/// this many threads of one process run a function. The witness must have all its jobs, on time.
fn latest_beside(count: u32, flags: u32, body: fn() -> i32) -> Check<u64> {
    let (u, device, witness) = (unit_ns(), Device::open()?, Log::new(64));
    Table::new(20 * u)
        .window("p", 0, 4 * u, 4 * u, 0)
        .pool(flags, 0)
        .window("witness", 0, 8 * u, 4 * u, 3)
        .install(&device)?;
    periodic("witness", witness, u)?;
    let group = Group::new(&format!("pool{count}"))?;
    group.serve("p")?;
    process::fork(|| if group.take(0).is_ok() { run_in_threads(count, body) } else { 1 });
    let threads = || device.stats(0).map_or(0, |stats| stats.nr_threads);
    ensure!(sys::eventually(60 * SOON, || threads() == count), "{} threads in the pool, not {count}", threads());
    let epoch = device.start(sys::now_ns() + 20 * u).explain("start")?;
    sys::sleep_until(epoch + 50 * 20 * u - u);
    let late = device.stats(1).explain("stats")?.late_max_ns;
    ensure_eq!(witness.count(), 50, "jobs of the witness");
    ensure_regular(&witness.jobs(), 0, epoch, 20 * u, 8 * u)?;
    group.set("cgroup.kill", "1")?;
    ensure!(sys::eventually(60 * SOON, || threads() == 0), "{} threads of the pool remain", threads());
    device.remove().explain("remove")?;
    Ok(late)
}

/// Runs a function in this many threads. They start together: busy threads would keep the last ones from being created.
fn run_in_threads(count: u32, body: fn() -> i32) -> i32 {
    static ALL_THERE: AtomicBool = AtomicBool::new(false);
    let thread = move || {
        while !ALL_THERE.load(Ordering::Relaxed) {
            sys::sleep(200_000_000);
        }
        body()
    };
    if (1..count).any(|_| std::thread::Builder::new().stack_size(1 << 14).spawn(thread).is_err()) {
        return 1;
    }
    ALL_THERE.store(true, Ordering::Relaxed);
    body()
}

/// Checks that the number of ready threads of a pool does not affect the next window. The end of their window takes as
/// long for 300 threads as for one. Threads that leave for their slack wait until the class has nothing to do.
fn crowd() -> Check {
    let few = latest_beside(1, abi::RR | abi::SLACK, || sys::hog())?;
    let many = latest_beside(300, abi::RR | abi::SLACK, || sys::hog())?;
    // The tolerance is for other phases of the tick and of the pool's turns.
    ensure!(many <= few + unit_ns() / 5, "the witness was up to {many} ns late beside 300 threads, {few} beside one");
    Ok(())
}

/// Checks that a killed thread of a pool ends under its own policy, outside of the class. Beside a hog of SCHED_FIFO it
/// does not end, except in the fair class's 50 ms of each second.
fn dies_outside() -> Check {
    let stage = Stage::new(abi::RR, 0)?;
    let hog = hog_above_all()?;
    let epoch = stage.start()?;
    let mut ends = Vec::new();
    for _ in 0..10 {
        hog.signal(libc::SIGSTOP);
        let child = stage.watcher(0, SchedAttr::other())?;
        hog.signal(libc::SIGCONT);
        sys::sleep(10 * 20 * stage.u);
        child.signal(libc::SIGKILL);
        sys::sleep(10 * 20 * stage.u);
        ends.push(child.poll());
        if ends.ends_with(&[None]) {
            hog.kill(SOON)?;
            ensure_eq!(child.wait(SOON)?, process::Ended::Signaled(libc::SIGKILL), "its end without the hog");
            stage.await_threads(0)?;
            return stage.ensure_undisturbed(epoch);
        }
        // The server of the fair class gives the thread some time once a second.
        sys::sleep(350_000_000);
    }
    Err(format!("a killed thread of SCHED_OTHER ends beside a hog of SCHED_FIFO: {ends:?}"))
}

fn refusals() -> Check {
    let group = Group::new("pool")?;
    let fails = |text: &str, errno: i32| {
        let said =
            std::fs::write(format!("{}/cpu.tt.entity", group.path()), text).err().and_then(|one| one.raw_os_error());
        ensure_eq!(said, Some(errno), "writing {text:?}");
        Ok(())
    };
    fails(&"x".repeat(abi::NAME_LEN), libc::ENAMETOOLONG)?;
    group.serve(&"x".repeat(abi::NAME_LEN - 1))?;
    let text = std::fs::read_to_string(format!("{}/cpu.tt.entity", group.path())).map_err(|error| error.to_string())?;
    ensure_eq!(text, format!("{}\n", "x".repeat(abi::NAME_LEN - 1)), "what was written");
    ensure!(!std::path::Path::new("/sys/fs/cgroup/cpu.tt.entity").exists(), "a file in the root");
    let child = process::fork(|| {
        // SAFETY: takes numbers.
        unsafe { libc::setuid(65534) };
        i32::from(group.serve("y").is_ok())
    });
    child.succeed(SOON)
}
