//! An unprivileged user with many threads, locks or groups delays more important threads no more than with few. The
//! user does not get more time than was admitted.

use macrotick_uapi::{self as abi, Device};

use super::budgets::{ds, group, run_in, set_period, stat, PERIOD, SECOND};
use super::{is_slow, unit_ns, Scenario};
use crate::board::Board;
use crate::check::{Check, Explain};
use crate::ensure;
use crate::group::Group;
use crate::process::{self, member, Child};
use crate::sys::{self, PiLock, SchedAttr};
use crate::table::Table;

pub const ALL: &[Scenario] = &[
    Scenario::new("bounded_pairs_of_owner_and_waiter", pairs).punctual().within(60_000),
    Scenario::new("bounded_chains_of_owners", chains).punctual().within(60_000).fair(),
    Scenario::new("bounded_walks_of_a_chain", walks_of_a_chain).punctual().within(60_000),
    Scenario::new("bounded_budgets_taken_away", budgets_taken_away).punctual().within(60_000),
    Scenario::new("bounded_pool_with_slack", pool_with_slack).punctual().within(60_000),
    Scenario::new("bounded_refills", refills).punctual().within(60_000),
    Scenario::new("bounded_lending_of_windows", lending_of_windows).punctual(),
    Scenario::new("bounded_fifo_without_budget", fifo_without_budget).punctual(),
];

/// The number of threads, pairs and groups. Each is a process, which takes long on a slow kernel.
const MANY: usize = 100;
const MANY_OF_SLOW: usize = 12;
/// The most extra lateness beside many attackers: 2 us at 1 ns per instruction, but an instruction takes 4 ns here.
const MORE_NS: u64 = 8_000;
/// Releases of the victims per measurement beside an attack, and before it. The first measurement is longer, to include
/// rare delays that have other causes. Of several measurements beside the attack, at least one has no such delay.
const ROUNDS: u64 = 300;
const ROUNDS_BEFORE: u64 = 1500;
const MEASUREMENTS: usize = 4;

fn many() -> usize {
    if is_slow() {
        MANY_OF_SLOW
    } else {
        MANY
    }
}

/// Two victims: a job of a table, and a thread of the most important group.
struct Victims {
    device: Device,
    high: Group,
    low: Group,
    board: Board,
    u: u64,
}

/// Words of the victims' board.
const JOB: usize = 0;
const SLEEP: usize = 1;

/// The greatest lateness of both victims, in ns.
#[derive(Clone, Copy, Debug)]
struct Late {
    job: u64,
    sleep: u64,
}

impl Victims {
    /// Starts the victims, with a pool `p` with slack that has 4 % of the time, and a less important group with 20 %.
    fn new() -> Check<Victims> {
        let (u, device) = (unit_ns(), Device::open()?);
        set_period(PERIOD * u)?;
        let victims =
            Victims { device, high: group("high", 8, 90)?, low: group("low", 5, 5)?, board: Board::new(2), u };
        let table = Table::new(25 * u).window("t", 0, 0, u, abi::ACTIVATE).window("p", 0, 3 * u, u, 0);
        table.pool(abi::SLACK | abi::RR, 0).install(&victims.device)?;
        let (board, start) = (victims.board, sys::now_ns() + 20 * PERIOD * u);
        member("t", move |device| {
            while let Ok(job) = device.wait() {
                board.set(JOB, board.get(JOB).max(sys::now_ns() - job.nominal_ns));
            }
            1
        })?;
        run_in(&victims.high, 50, move || {
            // The releases pass over all phases of the cycle and the server period.
            for release in (0u64..).map(|round| start + round * (2 * u + u * 7 / 10)) {
                sys::sleep_until(release);
                board.set(SLEEP, board.get(SLEEP).max(sys::now_ns() - release));
            }
            1
        })?;
        victims.device.start(sys::now_ns() + 10 * u).explain("start")?;
        sys::sleep_until(start);
        Ok(victims)
    }

    fn before(&self) -> Late {
        self.measure(ROUNDS_BEFORE)
    }

    fn measure(&self, rounds: u64) -> Late {
        sys::sleep(2 * PERIOD * self.u);
        [JOB, SLEEP].iter().for_each(|&word| self.board.set(word, 0));
        sys::sleep(rounds * 3 * self.u);
        Late { job: self.board.get(JOB), sleep: self.board.get(SLEEP) }
    }

    /// Checks that the victims are at most a little later beside the attack than before.
    fn ensure_undisturbed(&self, before: Late, what: &str) -> Check {
        let all: Vec<Late> = (0..MEASUREMENTS).map(|_| self.measure(ROUNDS)).collect();
        let least = |of: fn(&Late) -> u64| all.iter().map(of).min().unwrap_or(u64::MAX);
        let bounded =
            least(|late| late.job) <= before.job + MORE_NS && least(|late| late.sleep) <= before.sleep + MORE_NS;
        ensure!(is_slow() || bounded, "beside {what} {all:?}, before {before:?}");
        let runs = all.iter().all(|late| late.job > 0 && late.sleep > 0);
        ensure!(runs, "a victim does not run: {all:?}");
        Ok(())
    }
}

/// Returns a lock with priority inheritance. The word after it says whether the lock is taken.
fn lock_at(board: Board, i: usize) -> PiLock {
    PiLock(board.futex(2 * i))
}

/// Takes a lock unless the caller has it, and sets its word on the board.
fn take(board: Board, i: usize) -> bool {
    let taken = board.get(2 * i + 1) == 1 || lock_at(board, i).lock().is_ok();
    board.set(2 * i + 1, u64::from(taken));
    taken
}

fn ensure_taken(board: Board, i: usize) -> Check {
    ensure!(sys::eventually(10 * SECOND, || board.get(2 * i + 1) == 1), "lock {i} is not taken");
    Ok(())
}

fn ensure_awaited(board: Board, i: usize) -> Check {
    ensure!(sys::eventually(10 * SECOND, || lock_at(board, i).is_contended()), "nobody waits for lock {i}");
    Ok(())
}

/// Forks a thread that waits for a lock, and then moves it into the group. The move comes last because owners may have
/// used all of the group's budget.
fn await_in(group: &Group, board: Board, i: usize) -> Check {
    let waiter = process::fork(|| i32::from(lock_at(board, i).lock().is_err()));
    ensure_awaited(board, i)?;
    group.take(waiter.pid)?;
    sys::set_sched(waiter.pid, ds(20)).explain("SCHED_DS")
}

/// Checks many pairs of an owner under SCHED_OTHER and a waiter in a less important group. Half of the owners spin,
/// half sleep.
fn pairs() -> Check {
    let (victims, n, board) = (Victims::new()?, many(), Board::new(2 * MANY + 1));
    let begin = 2 * MANY;
    let hog = run_in(&victims.low, 10, || sys::hog())?;
    let before = victims.before();
    hog.kill(SECOND)?;
    for i in 0..n {
        process::fork(|| {
            while take(board, i) && (board.get(begin) == 0 || i % 2 == 1) {
                sys::sleep(50 * unit_ns());
            }
            sys::hog()
        });
        ensure_taken(board, i)?;
        await_in(&victims.low, board, i)?;
    }
    board.set(begin, 1);
    victims.ensure_undisturbed(before, "pairs of owner and waiter")
}

/// Checks chains of eight locks: each owner waits for the next owner's lock, and a thread of a group waits for the
/// first lock. The last owner runs on the group's budget, and no longer.
fn chains() -> Check {
    const LENGTH: usize = 8;
    let (victims, board) = (Victims::new()?, Board::new(2 * MANY));
    let n = many() / LENGTH;
    for chain in 0..n {
        for i in (chain * LENGTH..(chain + 1) * LENGTH).rev() {
            process::fork(|| {
                let last = i % LENGTH == LENGTH - 1;
                let _ = take(board, i) && (last || lock_at(board, i + 1).lock().is_ok());
                sys::hog()
            });
            ensure_taken(board, i)?;
            if i % LENGTH != LENGTH - 1 {
                ensure_awaited(board, i + 1)?;
            }
        }
    }
    let before = victims.before();
    for chain in 0..n {
        await_in(&victims.low, board, chain * LENGTH)?;
    }
    let hog = process::hog(SchedAttr::fifo(20));
    sys::sleep(2 * PERIOD * victims.u);
    let (used, began) = (stat(&victims.low, "usage_usec")?, sys::now_ns());
    victims.ensure_undisturbed(before, "chains of owners")?;
    let share = (stat(&victims.low, "usage_usec")? - used) as f64 * 1000.0 / (sys::now_ns() - began) as f64;
    ensure!((0.18..0.22).contains(&share), "the last owners have a share of {share} of their waiters' 0.2");
    hog.kill(SECOND)
}

/// Changes the priority of the last waiter of a chain of locks, again and again. Each link of the chain passes it on.
fn walks_of_a_chain() -> Check {
    let (victims, n, board) = (Victims::new()?, many(), Board::new(2 * MANY));
    let sleep = || loop {
        sys::sleep(SECOND);
    };
    let changes = |whom: Child| {
        process::fork(move || loop {
            for priority in [1, 50] {
                let _ = sys::set_sched(whom.pid, SchedAttr::fifo(priority));
            }
        })
    };
    let alone = changes(process::fork(sleep));
    let before = victims.before();
    alone.kill(SECOND)?;
    let mut end = None;
    for i in (0..n).rev() {
        end = Some(process::fork(|| {
            let _ = take(board, i) && (i == n - 1 || lock_at(board, i + 1).lock().is_ok());
            sleep()
        }));
        ensure_taken(board, i)?;
        if i < n - 1 {
            ensure_awaited(board, i + 1)?;
        }
    }
    end.map(changes);
    victims.ensure_undisturbed(before, "walks of a chain of locks")
}

/// Checks that a group can lose its budget and get it again while many of its threads are ready, instead of one.
fn budgets_taken_away() -> Check {
    let victims = Victims::new()?;
    let add = |i: usize| run_in(&victims.low, 1 + i as u32 % 90, || sys::hog());
    let (u, low, board) = (victims.u, &victims.low, Board::new(1));
    add(0)?;
    let taker = process::fork(|| {
        // Without SCHED_FIFO, the group's threads, which run under SCHED_OTHER meanwhile, would take the time that this
        // process needs.
        let _ = sys::set_sched(0, SchedAttr::fifo(1));
        loop {
            for budget in [0, 5 * u / 1000] {
                sys::sleep(3 * u);
                // Threads that join the group need a budget.
                if board.get(0) == 0 && low.set("cpu.ds.budget", &budget.to_string()).is_err() {
                    return 1;
                }
            }
        }
    });
    let before = victims.before();
    board.set(0, 1);
    sys::sleep(20 * u);
    low.set("cpu.ds.budget", &(5 * u / 1000).to_string())?;
    for i in 1..many() {
        add(i)?;
    }
    board.set(0, 0);
    victims.ensure_undisturbed(before, "a budget that is taken away")?;
    ensure!(taker.poll().is_none(), "the budget cannot be taken away");
    taker.kill(SECOND)
}

/// Checks many threads of a pool that also run outside its windows.
fn pool_with_slack() -> Check {
    let victims = Victims::new()?;
    let pooled = Group::new("pooled")?;
    pooled.serve("p")?;
    let one = process::fork_into(pooled.path(), || sys::hog())?;
    let before = victims.before();
    for _ in 0..many() {
        process::fork_into(pooled.path(), || sys::hog())?;
    }
    victims.ensure_undisturbed(before, "a pool with slack")?;
    one.kill(10 * SECOND)
}

/// Checks many groups that exhaust their budgets in each period.
fn refills() -> Check {
    let victims = Victims::new()?;
    let add = |i: usize| -> Check<Child> {
        let name = format!("g{i}");
        let one = Group::new(&name)?;
        one.set("cpu.ds.priority", &(1 + i % 80).to_string())?;
        one.set("cpu.ds.budget", "10")?;
        run_in(&one, 10, || sys::hog())
    };
    add(0)?;
    let before = victims.before();
    for i in 1..many() / 2 {
        add(i)?;
    }
    victims.ensure_undisturbed(before, "refills of many groups")
}

/// Checks that two threads of an entity together get only their windows, while one owns a lock that the other waits
/// for.
fn lending_of_windows() -> Check {
    let (u, device, board) = (unit_ns(), Device::open()?, Board::new(8));
    const CYCLE: u64 = 200;
    Table::single(CYCLE * u, 0, 0, 2 * u).install(&device)?;
    let owner = member("t", |device| {
        if device.wait().is_err() || !take(board, 0) {
            return 1;
        }
        while !lock_at(board, 0).is_contended() {
            if device.wait().is_err() {
                return 2;
            }
        }
        sys::hog()
    })?;
    member("t", |device| {
        while board.get(1) == 0 {
            if device.wait().is_err() {
                return 1;
            }
        }
        i32::from(lock_at(board, 0).lock().is_err())
    })?;
    let hog = process::hog(SchedAttr::other());
    device.start(sys::now_ns() + 10 * u).explain("start")?;
    ensure_awaited(board, 0)?;
    sys::sleep(CYCLE * u);
    let (before, began) = (process::cpu_ns(owner.pid)?, sys::now_ns());
    sys::sleep(10 * CYCLE * u);
    let share = (process::cpu_ns(owner.pid)? - before) as f64 / (sys::now_ns() - began) as f64;
    ensure!((0.0..0.02).contains(&share), "the owner has a share of {share}, with windows of 0.01");
    hog.kill(SECOND)
}

/// Checks a SCHED_FIFO thread in a child group of a group with `cpu.ds.fifo`. Without a budget, it runs like
/// SCHED_OTHER instead of SCHED_FIFO.
fn fifo_without_budget() -> Check {
    let u = unit_ns();
    set_period(PERIOD * u)?;
    let top = group("a", 5, 1)?;
    top.set("cpu.ds.fifo", "1")?;
    top.set("cgroup.subtree_control", "+cpu")?;
    let below = top.child("below")?;
    let thread = process::fork(|| {
        sys::prefault();
        sys::hog()
    });
    below.take(thread.pid)?;
    sys::set_sched(thread.pid, SchedAttr::fifo(50)).explain("SCHED_FIFO")?;
    let hog = process::hog(SchedAttr::other());
    for (budget, least, most) in [(5, 0.15, 0.25), (0, 0.3, 0.7), (5, 0.15, 0.25), (0, 0.3, 0.7)] {
        top.set("cpu.ds.budget", &(budget * u / 1000).to_string())?;
        sys::sleep(PERIOD * u);
        let (before, began) = (process::cpu_ns(thread.pid)?, sys::now_ns());
        sys::sleep(40 * PERIOD * u);
        let share = (process::cpu_ns(thread.pid)? - before) as f64 / (sys::now_ns() - began) as f64;
        ensure!((least..most).contains(&share), "a share of {share} with a budget of {budget} units");
    }
    ensure!(sys::set_sched(thread.pid, ds(50)).is_err(), "SCHED_DS without a budget");
    hog.kill(SECOND)?;
    thread.kill(SECOND)
}
