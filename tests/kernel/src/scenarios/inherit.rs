//! Priority inheritance between the class and others, with futexes.

use std::sync::atomic::{AtomicBool, Ordering};

use macrotick_uapi::{Device, SCHED_TT};

use super::{unit_ns, Scenario};
use crate::board::{Board, Log};
use crate::check::{Check, Explain};
use crate::process::{self, member, Child};
use crate::sys::{self, PiLock, SchedAttr};
use crate::table::Table;
use crate::{ensure, ensure_eq};

pub const ALL: &[Scenario] = &[
    Scenario::new("inherit_from_the_class", from_the_class),
    Scenario::new("inherit_over_deadline", over_deadline).punctual(),
    Scenario::new("inherit_over_deadline_awake", over_deadline_awake).punctual(),
    Scenario::new("inherit_outside_other", outside_other).fair(),
    Scenario::new("inherit_outside_fifo", outside_fifo),
    Scenario::new("inherit_outside_fifo_99", outside_fifo_99),
    Scenario::new("inherit_outside_deadline", outside_deadline).punctual(),
    Scenario::new("inherit_many_windows", many_windows),
    Scenario::new("inherit_between_members", between_members),
    Scenario::new("inherit_offered_outside", offered_outside),
    Scenario::new("inherit_handed_on", handed_on),
    Scenario::new("inherit_offered_at_start", offered_at_start),
    Scenario::new("inherit_spinner", spinner).on(2),
    Scenario::new("inherit_chain", chain),
    Scenario::new("inherit_holder_dies", holder_dies),
    Scenario::new("inherit_table_removed", table_removed),
    Scenario::new("inherit_storm", storm).punctual(),
    Scenario::new("full_inherit_storm", full_storm).punctual().within(120_000),
];

const SECOND: u64 = 1_000_000_000;

/// The words of the board.
const LOCK: usize = 0;
pub(super) const HELD: usize = 1;
const ASKED: usize = 2;
pub(super) const GOT: usize = 3;
pub(super) const FREED: usize = 4;
const BACK: usize = 5;
const SECOND_GOT: usize = 6;

/// Forks a hog on CPU 0.
fn pinned_hog(attr: SchedAttr) -> Check<Child> {
    let hog = process::hog(attr);
    sys::set_affinity(hog.pid, &[0]).explain("pin a hog")?;
    Ok(hog)
}

/// Checks that a waiter in the class gets the lock of a SCHED_OTHER thread within its window, beside busy threads.
fn from_the_class() -> Check {
    gets_the_lock(|| Ok(vec![pinned_hog(SchedAttr::other())?, pinned_hog(SchedAttr::fifo(10))?]))
}

/// Checks the same beside a deadline task, which precedes SCHED_FIFO and leaves less than the owner needs.
fn over_deadline() -> Check {
    let u = unit_ns();
    gets_the_lock(|| Ok(vec![process::hog(SchedAttr::deadline(17 * u, 20 * u))]))
}

/// Checks an owner that sleeps half of the time while it holds the lock. When it wakes up, the deadline task runs, and
/// has a budget for 30 more units. The task gets its policy from here, at a known instant: beside the owner it could
/// not run to set it.
fn over_deadline_awake() -> Check {
    let u = unit_ns();
    let work = || {
        sys::sleep(2 * u);
        sys::spin(2 * u);
    };
    gets_the_lock_from(SchedAttr::fifo(20), work, || {
        let hog = process::fork(|| sys::hog());
        sys::set_sched(hog.pid, SchedAttr::deadline(40 * u, 100 * u)).explain("the deadline task's admission")?;
        Ok(vec![hog])
    })
}

fn gets_the_lock(hogs: impl FnOnce() -> Check<Vec<Child>>) -> Check {
    gets_the_lock_from(SchedAttr::other(), || sys::spin(4 * unit_ns()), hogs)
}

fn gets_the_lock_from(policy: SchedAttr, work: impl FnOnce(), hogs: impl FnOnce() -> Check<Vec<Child>>) -> Check {
    let (u, device, board) = (unit_ns(), Device::open()?, Board::new(8));
    let lock = PiLock(board.futex(LOCK));
    // The cycle is long, and leaves room for the deadline tasks' bandwidth.
    Table::single(1000 * u, 0, 20 * u, 20 * u).install(&device)?;
    member("t", |device| {
        if device.wait().is_err() {
            return 1;
        }
        board.set(ASKED, sys::now_ns());
        let locked = lock.lock();
        board.set(GOT, sys::now_ns());
        i32::from(locked.is_err() || lock.unlock().is_err())
    })?;
    let holder = process::fork(|| {
        let _ = sys::set_affinity(0, &[0]);
        let _ = sys::set_sched(0, SchedAttr::fifo(20));
        if lock.lock().is_err() || sys::set_sched(0, policy).is_err() {
            return 1;
        }
        board.set(HELD, 1);
        // In the middle of its work the FIFO hog preempts it, until a waiter lends a priority.
        while !lock.is_contended() {
            sys::relax();
        }
        work();
        let freed = lock.unlock();
        i32::from(freed.is_err())
    });
    ensure!(sys::eventually(10 * SECOND, || board.get(HELD) == 1), "the holder did not get the lock");
    sys::sleep(20 * u);
    let before = sys::now_ns();
    let hogs = hogs()?;
    // The epoch is soon after the beginning of the third period of a deadline task with 100 units.
    let epoch = device.start(before + 205 * u).explain("start")?;
    ensure_eq!(epoch, before + 205 * u, "the epoch");
    sys::sleep_until(epoch + 100 * u);
    ensure!(board.get(GOT) > 0, "the waiter did not get the lock: {}", holder.describe());
    let took = board.get(GOT) - board.get(ASKED);
    ensure!(took >= 3 * u && took < 10 * u, "the waiter waited {took} ns for 4 units of {u}");
    for hog in hogs {
        hog.kill(SECOND)?;
    }
    let own = if policy.priority == 0 { 20 } else { -1 - i64::from(policy.priority) };
    ensure_eq!(sys::shown_priority(holder.pid).unwrap_or(own), own, "the holder's priority afterwards");
    Ok(())
}

/// Forks a thread of the class that takes the lock in its window, and holds it far longer than the window.
pub(super) fn holder(board: Board, work_ns: u64) -> Check<Child> {
    let lock = PiLock(board.futex(LOCK));
    member("t", move |device| {
        if device.wait().is_err() || lock.lock().is_err() {
            return 1;
        }
        board.set(HELD, sys::now_ns());
        sys::spin(work_ns);
        board.set(FREED, sys::now_ns());
        if lock.unlock().is_err() {
            return 2;
        }
        // The thread is frozen again until the next window.
        while device.wait().is_ok() {
            board.set(BACK, sys::now_ns());
        }
        3
    })
}

/// Forks a thread that takes the lock at an instant.
pub(super) fn waiter(board: Board, attr: SchedAttr, at_ns: u64) -> Child {
    let lock = PiLock(board.futex(LOCK));
    process::fork(move || {
        let _ = sys::set_affinity(0, &[0]);
        if sys::set_sched(0, attr).is_err() {
            return 1;
        }
        sys::sleep_until(at_ns);
        board.set(ASKED, sys::now_ns());
        if lock.lock().is_err() {
            return 2;
        }
        board.set(GOT, sys::now_ns());
        i32::from(lock.unlock().is_err())
    })
}

fn outside(attr: SchedAttr) -> Check {
    let u = unit_ns();
    outside_of(&Table::single(5000 * u, 0, 0, 4 * u), attr)
}

/// Checks that the holder runs on behalf of the waiter, long before its next window, which comes a quarter of a second
/// later or more.
pub(super) fn outside_of(table: &Table, attr: SchedAttr) -> Check {
    let (u, device, board) = (unit_ns(), Device::open()?, Board::new(8));
    let cycle = table.cycle_ns;
    table.install(&device)?;
    let child = holder(board, 30 * u)?;
    let epoch = device.start(sys::now_ns() + 100 * u).explain("start")?;
    let hog = pinned_hog(SchedAttr::other())?;
    waiter(board, attr, epoch + 50 * u);
    sys::sleep_until(epoch + 45 * u);
    ensure!(board.get(HELD) > 0 && board.get(FREED) == 0, "the holder does not hold the lock outside its window");
    ensure!(sys::eventually(cycle / 2, || board.get(GOT) > 0), "no lock for the waiter; holder: {}", child.describe());
    let took = board.get(GOT) - board.get(ASKED);
    ensure!(took >= 20 * u && took < 300 * u, "the waiter waited {took} ns for about 26 units of {u}");
    hog.kill(SECOND)?;
    sys::sleep(10 * u);
    ensure_eq!(sys::shown_priority(child.pid)?, -100, "the holder's priority afterwards");
    ensure_eq!(sys::sched(child.pid).explain("getattr")?.policy, SCHED_TT, "the holder's policy afterwards");
    sys::sleep_until(epoch + cycle - 10 * u);
    ensure_eq!(board.get(BACK), 0, "jobs before the next window");
    sys::sleep_until(epoch + cycle + 10 * u);
    ensure!(board.get(BACK) >= epoch + cycle, "no job in the next window");
    ensure_eq!(device.stats(0).explain("stats")?.misses, 1, "misses");
    Ok(())
}

fn outside_other() -> Check {
    outside(SchedAttr::other())
}

fn outside_fifo() -> Check {
    outside(SchedAttr::fifo(50))
}

fn outside_fifo_99() -> Check {
    outside(SchedAttr::fifo(99))
}

fn outside_deadline() -> Check {
    // A deadline thread may not be pinned to one of several CPUs, but the holder may.
    let u = unit_ns();
    outside(SchedAttr::deadline(50 * u, 200 * u))
}

fn many_windows() -> Check {
    many_windows_on(&[0])
}

/// Checks windows that come and go while the lock is held. The holder runs in its windows, and between them on the
/// waiter's behalf. The windows are on these CPUs in turn.
pub(super) fn many_windows_on(cpus: &[u32]) -> Check {
    let (u, device, board) = (unit_ns(), Device::open()?, Board::new(8));
    let table = Table::new(2000 * u).window("t", 0, 0, 4 * u, 1);
    let table = if cpus.len() > 1 { table.migrate() } else { table };
    let cpu = |i: u64| cpus[i as usize % cpus.len()];
    (1..8).fold(table, |table, i| table.window("t", cpu(i), 10 * i * u, 4 * u, 0)).sorted().install(&device)?;
    let child = holder(board, 50 * u)?;
    let epoch = device.start(sys::now_ns() + 100 * u).explain("start")?;
    waiter(board, SchedAttr::fifo(50), epoch + 15 * u);
    let second = waiter(board, SchedAttr::other(), epoch + 26 * u);
    sys::sleep_until(epoch + 100 * u);
    second.succeed(SECOND)?;
    // The holder runs 4 + 4 units by itself, and all the time from 15 on. It is done at about 15 + 42.
    let freed = (board.get(FREED) - epoch) / u;
    ensure!((55..62).contains(&freed), "the lock was given back after {freed} units");
    ensure_eq!(sys::shown_priority(child.pid)?, -100, "the holder's priority afterwards");
    Ok(())
}

fn between_members() -> Check {
    let u = unit_ns();
    between_members_of(&Table::single(1000 * u, 0, 0, 4 * u).window("w", 0, 20 * u, 30 * u, 3))
}

/// Checks two members of different entities: the holder runs in the waiter's window.
pub(super) fn between_members_of(table: &Table) -> Check {
    let (u, device, board) = (unit_ns(), Device::open()?, Board::new(8));
    let lock = PiLock(board.futex(LOCK));
    table.install(&device)?;
    let child = holder(board, 14 * u)?;
    let asking = member("w", |device| {
        if device.wait().is_err() {
            return 1;
        }
        board.set(ASKED, sys::now_ns());
        let locked = lock.lock();
        board.set(GOT, sys::now_ns());
        if locked.is_err() || lock.unlock().is_err() {
            return 2;
        }
        while device.wait().is_ok() {}
        3
    })?;
    sys::sleep(20 * u); // until both wait
    let hog = pinned_hog(SchedAttr::fifo(60))?;
    let epoch = device.start(sys::now_ns() + 100 * u).explain("start")?;
    sys::sleep_until(epoch + 60 * u);
    hog.kill(SECOND)?;
    ensure!(board.get(GOT) > 0, "no lock for the member within its window");
    let got = (board.get(GOT) - epoch) / u;
    ensure!((29..36).contains(&got), "the member got the lock after {got} units");
    ensure_eq!(device.stats(1).explain("stats")?.misses, 0, "misses of the waiter");
    ensure_eq!(sys::shown_priority(child.pid)?, -100, "the holder's priority afterwards");
    ensure_eq!(sys::shown_priority(asking.pid)?, -100, "the waiter's priority afterwards");
    Ok(())
}

/// Checks a member that is handed a lock while another thread waits for it. The member's window ends, but it must hand
/// the lock on long before the next one.
fn handed_on() -> Check {
    const CYCLE: u64 = 5000;
    let (u, device, board) = (unit_ns(), Device::open()?, Board::new(8));
    let lock = PiLock(board.futex(LOCK));
    Table::single(CYCLE * u, 0, 0, 8 * u).install(&device)?;
    let first = process::fork(|| {
        let _ = lock.lock();
        board.set(HELD, 1);
        while board.get(FREED) == 0 {
            sys::sleep(u);
        }
        sys::sleep_until(board.get(FREED));
        i32::from(lock.unlock().is_err())
    });
    ensure!(sys::eventually(SECOND, || board.get(HELD) == 1), "the lock is not held");
    member("t", |device| {
        if device.wait().is_err() || lock.lock().is_err() {
            return 1;
        }
        sys::spin(12 * u);
        let _ = lock.unlock();
        while device.wait().is_ok() {}
        2
    })?;
    sys::sleep(20 * u);
    let epoch = device.start(sys::now_ns() + 100 * u).explain("start")?;
    let second = waiter(board, SchedAttr::fifo(30), epoch + 100 * u);
    let freed = epoch + CYCLE * u + u;
    board.set(FREED, freed);
    sys::sleep_until(freed - 10 * u);
    ensure!(lock.is_contended() && board.get(ASKED) != 0, "nobody waits");
    second.succeed(2 * SECOND)?;
    let took = board.get(GOT).wrapping_sub(freed);
    ensure!((11 * u..25 * u).contains(&took), "the second waiter has the lock after {took} ns");
    first.succeed(SECOND)
}

fn offered_outside() -> Check {
    let u = unit_ns();
    offered_outside_of(&Table::single(5000 * u, 0, 0, 4 * u))
}

/// Checks a member that waits for a lock at the end of its window. When the owner releases the lock, it is offered to
/// the member first, which has the highest priority of all waiters. The member must take it and hand it on long before
/// its next window.
pub(super) fn offered_outside_of(table: &Table) -> Check {
    let (u, device, board) = (unit_ns(), Device::open()?, Board::new(8));
    let lock = PiLock(board.futex(LOCK));
    table.install(&device)?;
    let first = process::fork(|| {
        let _ = sys::set_affinity(0, &[0]);
        let _ = lock.lock();
        board.set(HELD, 1);
        while !lock.is_contended() {
            sys::sleep(u);
        }
        sys::sleep(20 * u);
        i32::from(lock.unlock().is_err())
    });
    ensure!(sys::eventually(SECOND, || board.get(HELD) == 1), "the lock is not held");
    member("t", |device| {
        if device.wait().is_err() || lock.lock().is_err() {
            return 1;
        }
        board.set(BACK, sys::now_ns());
        let _ = lock.unlock();
        while device.wait().is_ok() {}
        2
    })?;
    sys::sleep(20 * u);
    let epoch = device.start(sys::now_ns() + 100 * u).explain("start")?;
    let second = waiter(board, SchedAttr::other(), epoch + 10 * u);
    ensure!(
        sys::eventually(table.cycle_ns / 2, || board.get(GOT) > 0),
        "no lock for the second waiter until the next window"
    );
    let took = board.get(GOT) - board.get(ASKED);
    ensure!(took < 100 * u, "the second waiter waited {took} ns for about 10 units of {u}");
    first.succeed(SECOND)?;
    second.succeed(SECOND)
}

/// Checks a member that was just offered a lock when it enters the class, before the table starts. It is served until
/// it has the lock, and must not delay the thread that starts the table.
fn offered_at_start() -> Check {
    let (u, device, board) = (unit_ns(), Device::open()?, Board::new(8));
    let lock = PiLock(board.futex(LOCK));
    Table::single(1000 * u, 0, 900 * u, 30 * u).install(&device)?;
    sys::set_affinity(0, &[0]).explain("pin the scenario")?;
    sys::set_sched(0, SchedAttr::fifo(50)).explain("FIFO")?;
    lock.lock().explain("lock")?;
    member("t", |_| {
        sys::prefault();
        if sys::set_sched(0, SchedAttr::policy(SCHED_TT)).is_err() || lock.lock().is_err() {
            return 1;
        }
        board.set(GOT, sys::now_ns());
        sys::hog()
    })?;
    ensure!(sys::eventually(SECOND, || lock.is_contended()), "the member does not wait for the lock");
    sys::sleep(10 * u);
    let before = sys::now_ns();
    lock.unlock().explain("unlock")?;
    device.start(before).explain("start")?;
    let took = sys::now_ns() - before;
    ensure!(took < 10 * u, "starting the table took {took} ns");
    ensure_eq!(board.get(GOT), 0, "when the member went on outside its window");
    // The member goes on in its first window, which begins 900 units after the next cycle's beginning.
    ensure!(sys::eventually(2500 * u, || board.get(GOT) > before + 800 * u), "the member does not have the lock");
    device.remove().explain("remove")
}

/// Checks a member that spins for a lock with an owner on another CPU when its window ends. The member must not
/// continue to spin. When the lock is free, it must take it and hand it on to the next waiter, long before its next
/// window.
fn spinner() -> Check {
    let (u, device, board) = (unit_ns(), Device::open()?, Board::new(8));
    let lock = PiLock(board.futex(LOCK));
    let cycle = 10_000 * u;
    Table::single(cycle, 0, 0, 4 * u).install(&device)?;
    process::fork(|| {
        let _ = sys::set_affinity(0, &[1]);
        let _ = lock.lock();
        board.set(HELD, 1);
        while board.get(FREED) == 0 {
            sys::relax();
        }
        i32::from(lock.unlock().is_err())
    });
    ensure!(sys::eventually(SECOND, || board.get(HELD) == 1), "the lock is not held");
    member("t", |device| {
        if device.wait().is_err() {
            return 1;
        }
        board.set(ASKED, sys::now_ns());
        let _ = lock.lock();
        board.set(GOT, sys::now_ns());
        let _ = lock.unlock();
        while device.wait().is_ok() {}
        2
    })?;
    let below = process::fork(|| loop {
        board.add(BACK, 1);
    });
    sys::set_affinity(below.pid, &[0]).explain("pin")?;
    let epoch = device.start(sys::now_ns() + 100 * u).explain("start")?;
    sys::sleep_until(epoch + 100 * u);
    ensure!(board.get(ASKED) > 0 && board.get(GOT) == 0, "the member does not wait for the lock");
    let before = board.get(BACK);
    sys::sleep_until(epoch + 1100 * u);
    let rounds = board.get(BACK) - before;
    ensure!(rounds > 100, "{rounds} rounds of a process below the class in 1000 units");
    ensure_eq!(board.get(GOT), 0, "when the member got a lock that was not free");
    let second = process::fork(|| {
        let _ = sys::set_affinity(0, &[0]);
        let locked = lock.lock();
        board.set(SECOND_GOT, sys::now_ns());
        i32::from(locked.is_err() || lock.unlock().is_err())
    });
    sys::sleep(100 * u);
    let freed = sys::now_ns();
    board.set(FREED, 1);
    let has_got = || board.get(SECOND_GOT) > 0;
    ensure!(
        sys::eventually(cycle / 2, has_got),
        "no lock behind the member until its next window: {}",
        second.describe()
    );
    ensure!(board.get(GOT) > 0, "the member did not have the lock");
    let took = board.get(SECOND_GOT) - freed;
    // A CPU of the lab waits up to 100 ms for its turn.
    ensure!(took < 2000 * u, "the member got the lock {took} ns after it was free");
    Ok(())
}

/// Checks a chain: the owner of the member's lock waits for another lock.
fn chain() -> Check {
    let (u, device, board) = (unit_ns(), Device::open()?, Board::new(16));
    let (near, far) = (PiLock(board.futex(LOCK)), PiLock(board.futex(8)));
    Table::single(1000 * u, 0, 100 * u, 30 * u).install(&device)?;
    process::fork(|| {
        let _ = sys::set_affinity(0, &[0]);
        let _ = far.lock();
        board.set(9, 1);
        while !far.is_contended() || !near.is_contended() {
            sys::relax();
        }
        sys::spin(4 * u);
        i32::from(far.unlock().is_err())
    });
    ensure!(sys::eventually(SECOND, || board.get(9) == 1), "the far lock is not held");
    process::fork(|| {
        let _ = sys::set_affinity(0, &[0]);
        let _ = near.lock();
        board.set(HELD, 1);
        i32::from(far.lock().is_err() || far.unlock().is_err() || near.unlock().is_err())
    });
    ensure!(sys::eventually(SECOND, || board.get(HELD) == 1), "the near lock is not held");
    member("t", |device| {
        if device.wait().is_err() {
            return 1;
        }
        board.set(ASKED, sys::now_ns());
        let locked = near.lock();
        board.set(GOT, sys::now_ns());
        i32::from(locked.is_err() || near.unlock().is_err())
    })?;
    sys::sleep(20 * u);
    let hog = pinned_hog(SchedAttr::fifo(10))?;
    let epoch = device.start(sys::now_ns() + 100 * u).explain("start")?;
    sys::sleep_until(epoch + 200 * u);
    hog.kill(SECOND)?;
    ensure!(board.get(GOT) > 0, "no lock at the end of the chain");
    let took = board.get(GOT) - board.get(ASKED);
    ensure!(took < 12 * u, "the member waited {took} ns for 4 units of {u}");
    Ok(())
}

/// Checks a holder that is killed outside its window while another thread waits. The kernel does not hand on a PI futex
/// of a dead thread unless it is robust: the waiter gets an error.
fn holder_dies() -> Check {
    let (u, device, board) = (unit_ns(), Device::open()?, Board::new(8));
    Table::single(5000 * u, 0, 0, 4 * u).install(&device)?;
    let child = holder(board, 4000 * u)?;
    let epoch = device.start(sys::now_ns() + 100 * u).explain("start")?;
    let waiting = waiter(board, SchedAttr::fifo(50), epoch + 20 * u);
    sys::sleep_until(epoch + 60 * u);
    child.kill(SECOND)?;
    waiting.wait(SECOND)?;
    ensure_eq!(device.stats(0).explain("stats")?.nr_threads, 0, "threads");
    Ok(())
}

/// Checks that the table can be removed while a member is boosted, and while one is blocked.
fn table_removed() -> Check {
    let (u, device, board) = (unit_ns(), Device::open()?, Board::new(8));
    Table::single(5000 * u, 0, 0, 4 * u).install(&device)?;
    let child = holder(board, 60 * u)?;
    let epoch = device.start(sys::now_ns() + 100 * u).explain("start")?;
    let waiting = waiter(board, SchedAttr::fifo(50), epoch + 20 * u);
    sys::sleep_until(epoch + 40 * u);
    device.remove().explain("remove")?;
    waiting.succeed(SECOND)?;
    ensure!(child.wait(SECOND).is_ok(), "the holder did not end");
    Ok(())
}

static INSIDE: AtomicBool = AtomicBool::new(false);

extern "C" fn on_alarm(_: i32) {
    INSIDE.store(true, Ordering::Relaxed);
}

/// Sends the process a SIGALRM periodically.
fn alarm_every(microseconds: i64) {
    let interval = libc::timeval { tv_sec: 0, tv_usec: microseconds };
    let timer = libc::itimerval { it_interval: interval, it_value: interval };
    // SAFETY: the handler sets a flag; one structure is read.
    unsafe {
        libc::signal(libc::SIGALRM, on_alarm as *const () as usize);
        libc::syscall(libc::SYS_setitimer, libc::ITIMER_REAL, &timer, 0);
    }
}

/// Locks, works and unlocks endlessly, and counts violations of the mutual exclusion. Members wait for their next job
/// after three rounds: with their priority they would otherwise hand the lock to each other endlessly.
fn contender(lock: PiLock, board: Board, own: usize, work_ns: u64, device: Option<&Device>) -> i32 {
    for round in 1u64.. {
        if lock.lock().is_err() {
            return 1;
        }
        if board.word(1).fetch_add(1, Ordering::SeqCst) != 0 {
            board.add(2, 1);
        }
        sys::spin(work_ns);
        board.word(1).fetch_sub(1, Ordering::SeqCst);
        board.add(own, 1);
        if lock.unlock().is_err() {
            return 2;
        }
        if let (Some(device), 0) = (device, round % 3) {
            // A signal ends the wait, and the rounds continue.
            let _ = device.wait();
        }
    }
    0
}

fn storm_for(cycles: u64) -> Check {
    let (u, device, board) = (unit_ns(), Device::open()?, Board::new(32));
    let lock = PiLock(board.futex(0));
    let cycle = 20 * u;
    let table = Table::new(cycle).window("a", 0, 0, 2 * u, 1).window("b", 0, 2 * u, 2 * u, 1);
    table.window("a", 0, 7 * u, u, 0).window("witness", 0, 10 * u, 3 * u, 3).install(&device)?;
    let witness = Log::new(4);
    process::periodic("witness", witness, u)?;
    for (own, entity) in [(8, "a"), (9, "b"), (10, "a")] {
        member(entity, move |device| {
            alarm_every((u / 700) as i64);
            match sys::set_sched(0, SchedAttr::policy(SCHED_TT)) {
                Ok(()) => contender(lock, board, own, u / 5, Some(device)),
                Err(errno) => errno,
            }
        })?;
    }
    for (own, attr) in [(11, SchedAttr::other()), (12, SchedAttr::other()), (13, SchedAttr::fifo(30))] {
        process::fork(move || {
            alarm_every((u / 900) as i64);
            if sys::set_sched(0, attr).is_err() {
                return 1;
            }
            if own == 13 {
                // This thread is above all others outside the class. It must sleep, or no thread below it would run.
                loop {
                    sys::sleep(9 * u);
                    if lock.lock().is_err() || lock.unlock().is_err() {
                        return 2;
                    }
                    board.add(own, 1);
                }
            }
            contender(lock, board, own, u / 7, None)
        });
    }
    let epoch = device.start(sys::now_ns() + 10 * u).explain("start")?;
    let mut before = [0; 6];
    for slice in 1..=4 {
        sys::sleep_until(epoch + slice * cycles / 4 * cycle - 2 * u);
        let now: Vec<u64> = (8..14).map(|own| board.get(own)).collect();
        let stuck = now.iter().zip(&before).position(|(now, before)| now == before);
        ensure_eq!(stuck, None, "contender without progress in slice {slice}: {now:?} after {before:?}");
        before.copy_from_slice(&now);
    }
    ensure_eq!(board.get(2), 0, "two inside at once");
    let jobs = witness.count() as u64;
    ensure!(jobs + 1 >= cycles, "{jobs} jobs of the witness in {cycles} cycles");
    device.remove().explain("remove")
}

fn storm() -> Check {
    storm_for(60)
}

fn full_storm() -> Check {
    storm_for(1000)
}
