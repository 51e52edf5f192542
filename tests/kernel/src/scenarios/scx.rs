//! Schedulers of sched_ext are loaded, exchanged, ejected and unloaded beside groups and tables. A load assigns every
//! thread its class again, and the threads of our classes must keep theirs.

use macrotick_uapi::{self as abi, Device, SCHED_DS, SCHED_TT};

use super::budgets::spans::next_refill;
use super::budgets::{ds, first_group, group, hog_from_cpu_1, run_in, stat, PERIOD};
use super::pools::{ensure_only_inside, Stage};
use super::{is_slow, unit_ns, Scenario};
use crate::board::{Board, Log};
use crate::check::{Check, Explain};
use crate::group::Group;
use crate::process::{self, member, Child};
use crate::random::{self, Random};
use crate::scx::{self, Changer, Kind, Scheduler};
use crate::sys::{self, PiLock, SchedAttr};
use crate::table::Table;
use crate::{ensure, ensure_eq};

pub const ALL: &[Scenario] = &[
    Scenario::new("scx_loads_and_unloads", loads_and_unloads),
    Scenario::new("scx_group_has_its_budget", group_has_its_budget).punctual().within(60_000),
    Scenario::new("scx_group_of_fifo_has_its_budget", group_of_fifo_has_its_budget).punctual().within(60_000),
    Scenario::new("scx_group_has_its_budget_through_changes", group_through_changes).punctual(),
    Scenario::new("scx_equals_keep_their_order", equals_keep_their_order).punctual(),
    Scenario::new("scx_windows_keep_their_instants", || windows(0, 1)).punctual(),
    Scenario::new("scx_windows_with_a_lead", || windows(unit_ns() / 4, 1)).punctual(),
    Scenario::new("scx_pool_has_its_windows", pool).punctual(),
    Scenario::new("scx_pool_with_slack", pool_with_slack).punctual(),
    Scenario::new("scx_table_starts_and_stops", table_starts_and_stops),
    Scenario::new("scx_children_run", children_run),
    Scenario::new("scx_cpu_goes_off_line", cpu_goes_off_line).on(2),
    Scenario::new("scx_policies_change_during_loads", policies_change_during_loads).within(60_000),
    Scenario::new("scx_storm", || storm(if is_slow() { 30 } else { 60 })).within(60_000),
    Scenario::new("full_scx_windows_beside_a_crowd", || windows(0, 150)).punctual().within(120_000),
    Scenario::new("full_scx_storm", || storm(2000)).within(1_200_000),
];

const SECOND: u64 = 1_000_000_000;

fn loads_and_unloads() -> Check {
    let before = scx::loads();
    // A thread keeps a CPU that no other thread wants, whatever a scheduler does.
    let bound = || sys::set_affinity(0, &[0]).map_or_else(|errno| errno, |()| sys::hog());
    let (child, _other) = (process::fork(bound), process::fork(bound));
    for kind in [Kind::Plain, Kind::Partial, Kind::Turns] {
        let scheduler = Scheduler::load(kind)?;
        ensure_eq!(scx::state(), "enabled", "the state with {kind:?}");
        ensure_eq!(Scheduler::try_load(Kind::Plain)?.err(), Some(libc::EBUSY), "another one beside {kind:?}");
        let had = sys::cpu_time_of(child.pid).explain("clock")?;
        let runs = || sys::cpu_time_of(child.pid).is_ok_and(|now| now > had + unit_ns());
        ensure!(sys::eventually(SECOND, runs), "nobody runs with {kind:?}");
        drop(scheduler);
        ensure_eq!(scx::state(), "disabled", "the state after {kind:?}");
    }
    ensure_eq!(scx::loads() - before, 3, "loads");
    for kind in [Kind::Refuses(child.pid), Kind::Contradicts] {
        let _scheduler = Scheduler::load(kind)?;
        ensure_gone(&format!("{kind:?}"))?;
    }
    let _scheduler = Scheduler::load(Kind::Plain)?;
    scx::disable()?;
    let _scheduler = Scheduler::load(Kind::Stalls)?;
    let had = sys::cpu_time_of(child.pid).explain("clock")?;
    sys::sleep(SECOND / 10);
    // The thread may have continued a turn that the former scheduler gave it.
    ensure!(sys::cpu_time_of(child.pid).explain("clock")? < had + SECOND / 20, "nobody is lost");
    ensure_gone("what the watchdog threw out")?;
    child.kill(SECOND)
}

/// Checks that the kernel ejects a scheduler that fails.
fn ensure_gone(what: &str) -> Check {
    ensure!(sys::eventually(10 * SECOND, || !scx::is_loaded()), "{what} is {}", scx::state());
    Ok(())
}

/// Goes through all possible ends of schedulers, in turn. It calls `look` with each scheduler, and after it. There must
/// be a ready thread of SCHED_OTHER.
fn go_through(refused: Child, mut look: impl FnMut(&str) -> Check) -> Check {
    for kind in [Kind::Plain, Kind::Turns, Kind::Partial] {
        let scheduler = Scheduler::load(kind)?;
        look(&format!("with {kind:?}"))?;
        drop(scheduler);
        look(&format!("after {kind:?}"))?;
    }
    for kind in [Kind::Refuses(refused.pid), Kind::Contradicts] {
        let scheduler = Scheduler::load(kind)?;
        ensure_gone(&format!("{kind:?}"))?;
        look(&format!("after {kind:?}"))?;
        drop(scheduler);
    }
    let thrown_out = Scheduler::load(Kind::Plain)?;
    scx::disable()?;
    look("after SysRq-S")?;
    drop(thrown_out);
    let _stalls = Scheduler::load(Kind::Stalls)?;
    look("with a scheduler that stalls")?;
    ensure_gone("what the watchdog threw out")?;
    look("after the watchdog")
}

/// Returns a process's share of some periods. Checks that its group is charged the same time.
fn share_of(child: Child, group: &Group, periods: u64) -> Check<f64> {
    let look = || Ok::<_, String>((sys::cpu_time_of(child.pid).explain("clock")?, stat(group, "usage_usec")?));
    sys::sleep_until(next_refill());
    let (began, (had, charged)) = (sys::now_ns(), look()?);
    sys::sleep_until(began + periods * PERIOD * unit_ns());
    let (has, now_charged) = look()?;
    let (had, charged) = (has - had, (now_charged - charged) * 1000);
    ensure!(had.abs_diff(charged) <= had / 50 + 2000, "{had} ns were used and {charged} ns charged");
    Ok(had as f64 / (sys::now_ns() - began) as f64)
}

fn ensure_a_fifth(child: Child, group: &Group, periods: u64, when: &str) -> Check {
    let share = share_of(child, group, periods).map_err(|reason| format!("{when}: {reason}"))?;
    ensure!((0.19..0.21).contains(&share), "{when}: a share of {share} instead of 0.2");
    Ok(())
}

fn group_has_its_budget() -> Check {
    let group = first_group("a", 5, 1)?;
    let child = run_in(&group, 10, || sys::hog())?;
    process::fork(|| sys::hog());
    ensure_a_fifth(child, &group, 20, "before")?;
    go_through(child, |when| ensure_a_fifth(child, &group, 20, when))?;
    child.kill(SECOND)
}

fn group_of_fifo_has_its_budget() -> Check {
    let group = first_group("a", 5, 1)?;
    group.set("cpu.ds.fifo", "1")?;
    let child = process::fork(|| match group.take(0).map_or(Err(1), |()| sys::set_sched(0, SchedAttr::fifo(50))) {
        Ok(()) => sys::hog(),
        Err(errno) => errno,
    });
    process::fork(|| sys::hog());
    let is_served = || stat(&group, "usage_usec").is_ok_and(|usage| usage > 0);
    ensure!(sys::eventually(10 * SECOND, is_served), "it is not served: {}", child.describe());
    ensure_a_fifth(child, &group, 20, "before")?;
    go_through(child, |when| ensure_a_fifth(child, &group, 20, when))?;
    child.kill(SECOND)
}

/// Checks a group while schedulers change at all points of the period: in the budget, at its end, after it, and at the
/// refill.
fn group_through_changes() -> Check {
    let group = first_group("a", 5, 1)?;
    let child = run_in(&group, 10, || sys::hog())?;
    process::fork(|| sys::hog());
    let (before, changer) = (scx::loads(), Changer::start(random::variation())?);
    let loads = || scx::loads() - before;
    for round in 0..10 {
        ensure_a_fifth(child, &group, 200, "while schedulers come and go")?;
        if round > 0 && loads() >= 20 {
            break;
        }
    }
    changer.end()?;
    ensure!(loads() >= 20, "{} loads", loads());
    ensure_a_fifth(child, &group, 20, "afterwards")?;
    child.kill(SECOND)
}

/// Checks that equal threads keep their order: the running one is not put behind the others.
fn equals_keep_their_order() -> Check {
    let group = first_group("a", 5, 1)?;
    let first = run_in(&group, 10, || sys::hog())?;
    sys::sleep(2 * PERIOD * unit_ns());
    let second = run_in(&group, 10, || sys::hog())?;
    sys::sleep(2 * PERIOD * unit_ns());
    let before = sys::cpu_time_of(second.pid).explain("clock")?;
    for kind in [Kind::Plain, Kind::Turns, Kind::Partial] {
        let scheduler = Scheduler::load(kind)?;
        ensure_a_fifth_of(first, "with", kind)?;
        drop(scheduler);
        ensure_a_fifth_of(first, "after", kind)?;
    }
    let later = sys::cpu_time_of(second.pid).explain("clock")?;
    // The second waits for longer than 100 ms while the first scheduler is loaded, and is relieved once: 20 to 26 us.
    ensure!(later < before + unit_ns() / 2, "the second had {} ns", later - before);
    first.kill(SECOND)?;
    second.kill(SECOND)
}

fn ensure_a_fifth_of(child: Child, when: &str, kind: Kind) -> Check {
    sys::sleep_until(next_refill());
    let (began, had) = (sys::now_ns(), sys::cpu_time_of(child.pid).explain("clock")?);
    sys::sleep_until(began + 10 * PERIOD * unit_ns());
    let share = (sys::cpu_time_of(child.pid).explain("clock")? - had) as f64 / (sys::now_ns() - began) as f64;
    ensure!((0.18..0.22).contains(&share), "{when} {kind:?}: a share of {share} instead of 0.2");
    Ok(())
}

/// Returns how late jobs may be while schedulers come and go. A load or an unload walks over all threads, one at a
/// time, with a run queue's lock. But Linux queues all ready threads of SCHED_OTHER again with interrupts disabled
/// (`scx_ops_bypass()`), about 4 us for each. If this takes longer than a window, the job misses it.
fn most_late_ns(lead_ns: u64, ready: u64) -> u64 {
    match (is_slow(), lead_ns) {
        // With KASAN and lockdep, a walk over a few dozen threads takes milliseconds.
        (true, _) => 3 * unit_ns(),
        (false, 0) => 40_000 + ready * 4000,
        (false, _) => 20_000,
    }
}

/// Checks that jobs start at their instants while schedulers come and go. Beside them are a group that exhausts its
/// budget and many ready threads of SCHED_OTHER. Ordinary kernel threads help to load and unload a scheduler. Among
/// hundreds of other threads a load takes a second, although those have a nice value of 19.
fn windows(lead_ns: u64, ready: u64) -> Check {
    let (u, device, cycles, most_cycles) = (unit_ns(), Device::open()?, 400, 5000);
    Table::single(20 * u, 0, 2 * u, 8 * u).lead(lead_ns).install(&device)?;
    let log = Log::new(most_cycles as usize + 1000);
    process::periodic("t", log, u)?;
    let group = first_group("a", 5, 1)?;
    run_in(&group, 10, || sys::hog())?;
    for _ in 0..ready {
        let nice = SchedAttr { nice: 19, ..SchedAttr::other() };
        process::fork(move || sys::set_sched(0, nice).map_or_else(|errno| errno, |()| sys::hog()));
    }
    let epoch = device.start(sys::now_ns() + 20 * u).explain("start")?;
    sys::sleep_until(epoch + 20 * u - u);
    let (before, changer) = (scx::loads(), Changer::start(random::variation())?);
    let cycles = (cycles..most_cycles)
        .find(|cycles| {
            sys::sleep_until(epoch + cycles * 20 * u - u);
            scx::loads() - before >= 20
        })
        .unwrap_or(most_cycles);
    changer.end()?;
    let loads = scx::loads() - before;
    ensure!(loads >= 20, "{loads} loads in {cycles} cycles");
    let jobs = log.jobs();
    ensure!(jobs.len() as u64 >= cycles, "{} jobs in {cycles} cycles", jobs.len());
    for (number, job) in jobs.iter().enumerate() {
        let nominal_ns = epoch + number as u64 * 20 * u + 2 * u;
        ensure_eq!((job.number, job.nominal_ns), (number as u64, nominal_ns), "a job and its instant");
    }
    let worst = jobs.iter().map(|job| job.start_ns - job.nominal_ns).max().unwrap_or(u64::MAX);
    println!("# the latest of {} jobs beside {loads} loads, {ready} ready, lead {lead_ns} ns: {worst} ns", jobs.len());
    ensure!(worst <= most_late_ns(lead_ns, ready), "a job is {worst} ns late");
    ensure_eq!(device.stats(0).explain("stats")?.misses, 0, "misses");
    Ok(())
}

fn pool() -> Check {
    let stage = Stage::new(abi::RR, 0)?;
    let child = stage.watcher(0, SchedAttr::other())?;
    process::fork(|| sys::hog());
    let epoch = stage.start()?;
    sys::sleep(20 * stage.u);
    go_through(child, |when| {
        let [seen] = stage.seen_in(20);
        ensure_only_inside(seen, &format!("{when} a thread of the pool"))?;
        ensure!(seen.cpu_ns > 20 * 3 * stage.u, "{when} the pool has {} ns", seen.cpu_ns);
        Ok(())
    })?;
    let changer = Changer::start(random::variation())?;
    let [seen] = stage.seen_in(200);
    ensure_only_inside(seen, "while schedulers come and go a thread of the pool")?;
    ensure!(seen.cpu_ns > 200 * 3 * stage.u, "while schedulers come and go the pool has {} ns", seen.cpu_ns);
    changer.end()?;
    stage.ensure_undisturbed(epoch)
}

/// Checks that outside its windows a pool thread runs as without the pool: under the loaded scheduler.
fn pool_with_slack() -> Check {
    let stage = Stage::new(abi::RR | abi::SLACK, 0)?;
    stage.watcher(0, SchedAttr::other())?;
    let epoch = stage.start()?;
    for kind in [Kind::Plain, Kind::Turns, Kind::Partial] {
        let scheduler = Scheduler::load(kind)?;
        for when in ["with", "after"] {
            sys::sleep(20 * stage.u);
            let [seen] = stage.seen_in(20);
            // The witness has one of twenty units.
            ensure!(seen.cpu_ns > 20 * 16 * stage.u, "{when} {kind:?} the pool has {} ns", seen.cpu_ns);
            if when == "with" {
                scx::disable()?;
            }
        }
        drop(scheduler);
    }
    stage.ensure_undisturbed(epoch)
}

/// Checks that the scheduler serves the table's threads while the table is stopped.
fn table_starts_and_stops() -> Check {
    let (u, device, board) = (unit_ns(), Device::open()?, Board::new(1));
    Table::single(20 * u, 0, 2 * u, 8 * u).install(&device)?;
    let child = member("t", |_| match sys::set_sched(0, SchedAttr::policy(SCHED_TT)) {
        Ok(()) => loop {
            board.add(0, 1);
        },
        Err(errno) => errno,
    })?;
    process::fork(|| sys::hog());
    let runs = |when: &str| {
        let before = board.get(0);
        ensure!(sys::eventually(5 * SECOND, || board.get(0) > before), "{when} it does not run: {}", child.describe());
        Ok(())
    };
    let mut random = Random::new(random::variation());
    for round in 0..12 {
        let kind = *random.pick(&[Kind::Plain, Kind::Turns, Kind::Partial]);
        let scheduler = (round % 3 != 0).then(|| Scheduler::load(kind)).transpose()?;
        device.start(0).explain("start")?;
        runs("in its windows")?;
        drop(scheduler);
        let scheduler = (round % 2 != 0).then(|| Scheduler::load(kind)).transpose()?;
        device.stop().explain("stop")?;
        runs("without windows")?;
        drop(scheduler);
        runs("without windows and scheduler")?;
    }
    child.kill(SECOND)
}

/// Checks that children of threads of our classes start outside, where the scheduler serves them.
fn children_run() -> Check {
    let (u, device) = (unit_ns(), Device::open()?);
    Table::single(20 * u, 0, 2 * u, 8 * u).install(&device)?;
    device.start(0).explain("start")?;
    let group = first_group("a", 5, 1)?;
    let bare = Group::new("bare")?;
    for kind in [None, Some(Kind::Plain), Some(Kind::Turns), Some(Kind::Partial)] {
        let scheduler = kind.map(Scheduler::load).transpose()?;
        let has_child_that_ends = || i32::from(process::fork(|| 0).succeed(2 * SECOND).is_err());
        let reset = member("t", |_| {
            let attr = SchedAttr { flags: sys::RESET_ON_FORK, ..SchedAttr::policy(SCHED_TT) };
            sys::set_sched(0, attr).map_or(99, |()| has_child_that_ends())
        })?;
        reset.succeed(5 * SECOND).map_err(|reason| format!("{kind:?}, of a reset on fork: {reason}"))?;
        let inside = member("t", |_| {
            let attr = SchedAttr::policy(SCHED_TT);
            sys::set_sched(0, attr).map_or(99, |()| has_child_that_ends())
        })?;
        inside.succeed(5 * SECOND).map_err(|reason| format!("{kind:?}, in windows: {reason}"))?;
        let served = run_in(&group, 10, has_child_that_ends)?;
        served.succeed(5 * SECOND).map_err(|reason| format!("{kind:?}, in a group: {reason}"))?;
        // The process keeps its policy without a budget, and so does its child.
        let began = Board::new(1);
        let unserved = run_in(&group, 10, || {
            while began.get(0) == 0 {
                sys::sleep(u);
            }
            let is_ds = sys::sched(0).is_ok_and(|attr| attr.policy == SCHED_DS);
            i32::from(!is_ds) + has_child_that_ends()
        })?;
        bare.take(unserved.pid)?;
        began.set(0, 1);
        unserved.succeed(5 * SECOND).map_err(|reason| format!("{kind:?}, without a budget: {reason}"))?;
        drop(scheduler);
    }
    Ok(())
}

/// Checks that hotplug ejects a scheduler without hotplug callbacks.
fn cpu_goes_off_line() -> Check {
    let group = first_group("a", 3, 1)?;
    let children: Vec<Child> = (0..3).map(|i| hog_from_cpu_1(&group, 10 + i)).collect::<Check<_>>()?;
    process::fork(|| sys::hog());
    for kind in [Kind::Plain, Kind::Turns, Kind::Partial] {
        let scheduler = Scheduler::load(kind)?;
        sys::sleep(2 * PERIOD * unit_ns());
        sys::set_online(1, false).explain("off line")?;
        ensure_gone(&format!("{kind:?}"))?;
        sys::sleep(2 * PERIOD * unit_ns());
        drop(scheduler);
        let scheduler = Scheduler::load(kind)?;
        sys::set_online(1, true).explain("on line")?;
        ensure_gone(&format!("{kind:?}"))?;
        drop(scheduler);
    }
    // The most important thread ends first: the others have no budget left to end with before.
    children.iter().rev().try_for_each(|child| child.kill(10 * SECOND))
}

/// Checks that threads may change between Linux's own policies while a scheduler is loaded and removed, without a group
/// or a table. They preempt the thread that does this, at any of its steps. The kernel must not warn, and each of them
/// must go on. Their CPUs are otherwise idle, so nothing else would wake a CPU that has forgotten its thread.
fn policies_change_during_loads() -> Check {
    let cpus = sys::nr_cpus();
    let board = Board::new(cpus as usize);
    let change = |own: u32| {
        if let Err(errno) = sys::set_affinity(0, &[own]) {
            return errno;
        }
        let mut random = Random::new(random::variation() + u64::from(own));
        loop {
            for attr in [SchedAttr::fifo(60), SchedAttr::other()] {
                if let Err(errno) = sys::set_sched(0, attr) {
                    return errno;
                }
            }
            board.add(own as usize, 1);
            if random.below(8) == 0 {
                sys::sleep(unit_ns());
            }
        }
    };
    let children: Vec<Child> = (0..cpus).map(|own| process::fork(|| change(own))).collect();
    sys::set_affinity(0, &[0]).explain("affinity")?;
    for _ in 0..if is_slow() { 30 } else { 100 } {
        let scheduler = Scheduler::load(Kind::Plain)?;
        for when in ["with", "after"] {
            for own in 0..cpus as usize {
                let before = board.get(own);
                ensure!(sys::eventually(SECOND, || board.get(own) > before), "{when} a scheduler, CPU {own} stands");
            }
            if when == "with" {
                scx::disable()?;
            }
        }
        drop(scheduler);
    }
    children.iter().try_for_each(|child| child.kill(10 * SECOND))
}

/// Lives as a thread of groups in a storm: it moves, changes its policy, sleeps, lends, forks and ends.
fn live(groups: &[Group], lock: PiLock, board: Board, own: usize) -> i32 {
    let mut random = Random::new(random::variation() + own as u64);
    loop {
        match random.below(8) {
            0 => _ = random.pick(groups).take(0),
            1 => _ = sys::set_sched(0, ds(1 + random.below(20) as u32)),
            2 => _ = sys::set_sched(0, SchedAttr::fifo(1 + random.below(20) as u32)),
            3 => _ = sys::set_sched(0, SchedAttr::other()),
            4 => sys::sleep(random.below(5 * unit_ns())),
            5 => {
                if lock.lock().is_ok() {
                    sys::spin(random.below(unit_ns()));
                    let _ = lock.unlock();
                }
            }
            6 => {
                let long = random.below(2 * unit_ns());
                let spins = || {
                    sys::spin(long);
                    0
                };
                if let Ok(child) = process::try_fork(spins) {
                    if random.below(2) == 0 {
                        sys::sleep(long / 2);
                        child.signal(libc::SIGKILL);
                    }
                    // SAFETY: ignores the status.
                    unsafe { libc::waitpid(child.pid, std::ptr::null_mut(), 0) };
                }
            }
            _ => sys::spin(random.below(unit_ns())),
        }
        board.add(own, 1);
    }
}

/// Checks that schedulers come and go beside two groups, a pool and a job, while their threads do all kinds of calls.
/// One of the groups takes SCHED_FIFO. All threads make progress, and nothing is left of the groups and threads in the
/// end.
fn storm(loads: u64) -> Check {
    const WORKERS: usize = 8;
    let (u, device, board) = (unit_ns(), Device::open()?, Board::new(WORKERS + 2));
    Table::new(20 * u)
        .window("p", 0, 2 * u, 2 * u, 0)
        .pool(abi::RR | abi::SLACK, 0)
        .window("t", 0, 8 * u, 2 * u, 3)
        .install(&device)?;
    let log = Log::new(4);
    process::periodic("t", log, u / 10)?;
    let (one, two, pool) = (first_group("one", 4, 1)?, group("two", 3, 2)?, Group::new("pool")?);
    two.set("cpu.ds.fifo", "1")?;
    pool.serve("p")?;
    device.start(0).explain("start")?;
    let groups = [one.clone(), two.clone(), pool, Group::new("bare")?];
    let locks = [PiLock(board.futex(WORKERS)), PiLock(board.futex(WORKERS + 1))];
    let start_one = |own: usize| process::fork(|| live(&groups, locks[own % 2], board, own));
    let mut workers: Vec<Child> = (0..WORKERS).map(start_one).collect();
    let (before, changer) = (scx::loads(), Changer::start(random::variation())?);
    let mut random = Random::new(random::variation());
    // On the debug kernel, the threads of the storm leave a load half a second.
    let limit = sys::now_ns() + (30 + loads) * SECOND;
    while scx::loads() < before + loads {
        sys::sleep(random.below(20 * u));
        let own = random.below(WORKERS as u64) as usize;
        if random.below(4) == 0 {
            workers[own].signal(libc::SIGKILL);
            workers[own].wait(60 * SECOND)?;
            // The kernel releases the lock of a dead owner only if a thread waits for it.
            for lock in locks {
                lock.forget(workers[own].pid);
            }
            workers[own] = start_one(own);
        }
        ensure!(sys::now_ns() < limit, "{} of {loads} loads", scx::loads() - before);
    }
    changer.end()?;
    let jobs = log.count();
    ensure!(sys::eventually(10 * SECOND, || log.count() > jobs), "the job is served no more");
    for worker in workers {
        worker.kill(60 * SECOND)?;
    }
    for group in [&one, &two] {
        ensure!(stat(group, "usage_usec")? > 0, "a group was never served");
        ensure!(sys::eventually(SECOND, || group.remove().is_ok()), "a group is not empty");
    }
    Ok(())
}
