//! Events in each phase of such a thread's cycle: it ends, is unbound, or executes a program; the table is stopped or
//! removed.

use macrotick_uapi::{Device, SCHED_TT};

use super::{alternating, Grid, SECOND};
use crate::board::{Board, Log};
use crate::check::{Check, Explain};
use crate::process::{member, periodic, Child};
use crate::scenarios::death::exec;
use crate::scenarios::storm::{memory, pipes};
use crate::scenarios::unit_ns;
use crate::sys;
use crate::table::Table;
use crate::{ensure, ensure_eq};

/// The limit for all reactions. They must not wait for the next cycle, which is ten seconds later.
const SOON: u64 = SECOND / 4;

/// Returns a table: [0, 4) on CPU 0, directly followed by [4, 8) on CPU 1, and [12, 16) on CPU 0, of ten seconds.
fn table() -> Table {
    let u = unit_ns();
    let table = Table::new(10 * SECOND).window("t", 0, 0, 4 * u, 1).migrate();
    table.window("t", 0, 12 * u, 4 * u, 0).window("t", 1, 4 * u, 4 * u, 0)
}

/// The phases in tenths of a unit since the epoch: before it, in windows, around boundaries, and after all windows.
const PHASES: [i64; 12] = [-50, 10, 38, 40, 41, 60, 79, 81, 100, 119, 130, 180];

/// The possible states of a thread. Word 0 of the board grows while it is busy.
#[derive(Clone, Copy)]
enum State {
    Busy,
    Waiting,
    Calling,
    Asleep,
}

const STATES: [State; 4] = [State::Busy, State::Waiting, State::Calling, State::Asleep];

impl State {
    fn live(self, device: &Device, board: Board) -> i32 {
        if let Err(errno) = device.wait() {
            return errno;
        }
        for round in 0.. {
            match self {
                State::Busy => {}
                State::Waiting => {
                    if let Err(errno) = device.wait() {
                        return errno;
                    }
                }
                State::Calling => {
                    if !pipes(round) || !memory(round) {
                        return 77;
                    }
                }
                State::Asleep => sys::sleep(3 * unit_ns()),
            }
            board.add(0, 1);
            sys::relax();
        }
        0
    }
}

/// Applies an action to a thread in every state and every phase.
fn in_each_phase(what: impl Fn(&Device, Child, Board) -> Check) -> Check {
    let (u, device) = (unit_ns(), Device::open()?);
    table().install(&device)?;
    for state in STATES {
        for phase in PHASES {
            let board = Board::new(1);
            let child = member("t", |device| state.live(device, board))?;
            let epoch = device.start(sys::now_ns() + 20 * u).explain("start")?;
            sys::sleep_until((epoch as i64 + phase * u as i64 / 10) as u64);
            what(&device, child, board).map_err(|reason| format!("at {phase} tenths of a unit: {reason}"))?;
            let gone = || device.stats(0).is_ok_and(|stats| stats.nr_threads == 0);
            ensure!(sys::eventually(SOON, gone), "a thread remains at {phase} tenths of a unit");
            device.stop().explain("stop")?;
        }
    }
    // Afterwards a simple table works as usual.
    device.remove().explain("remove")?;
    works_as_ever(&device)
}

fn works_as_ever(device: &Device) -> Check {
    let (u, log) = (unit_ns(), Log::new(64));
    alternating(u).install(device)?;
    periodic("t", log, u)?;
    let epoch = device.start(sys::now_ns() + 10 * u).explain("start")?;
    sys::sleep_until(epoch + 5 * 20 * u - u);
    ensure_eq!(log.count(), 10, "jobs afterwards");
    Grid::alternating(epoch, u).ensure_all(&log.jobs(), 0)
}

pub fn killed() -> Check {
    in_each_phase(|_, child, _| child.kill(SOON))
}

/// Checks that a thread may run on all CPUs, as it did not ask for others, and is under SCHED_OTHER.
fn ensure_free(child: Child, when: &str) -> Check {
    let all: Vec<u32> = (0..sys::nr_cpus()).collect();
    // A thread that has ended has no CPUs.
    let cpus = sys::affinity(child.pid).unwrap_or_else(|_| all.clone());
    ensure_eq!(cpus, all, "CPUs {when}");
    let policy = sys::sched(child.pid).map_or(0, |attr| attr.policy);
    ensure_eq!(policy, libc::SCHED_OTHER as u32, "policy {when}");
    Ok(())
}

/// Checks that a thread that another process unbinds is an ordinary thread at once: it may run on all CPUs, and
/// continues.
pub fn unbound() -> Check {
    in_each_phase(|device, child, board| {
        device.unbind(sys::pidfd_open(child.pid, 0).explain("pidfd")?).explain("unbind")?;
        ensure_free(child, "once unbound")?;
        let done = board.get(0);
        // A thread that waits, or does so later, gets an error and ends.
        let goes_on = || board.get(0) > done || child.poll().is_some();
        ensure!(sys::eventually(SOON, goes_on), "it does not go on: {}", child.describe());
        child.signal(libc::SIGKILL);
        Ok(())
    })
}

/// Checks that a thread continues on all CPUs when the table is removed.
pub fn removed() -> Check {
    in_each_phase(|device, child, board| {
        device.remove().explain("remove")?;
        ensure_free(child, "after the removal")?;
        let done = board.get(0);
        let goes_on = || board.get(0) > done || child.poll().is_some();
        ensure!(sys::eventually(SOON, goes_on), "it does not go on: {}", child.describe());
        child.signal(libc::SIGKILL);
        table().install(device)
    })
}

/// Checks threads that end by themselves, some of them in the window after a move.
pub fn exits() -> Check {
    let (u, device) = (unit_ns(), Device::open()?);
    alternating(u).install(&device)?;
    device.start(0).explain("start")?;
    for round in 0..20 {
        let child = member("t", move |device| {
            let _ = device.wait();
            sys::spin(round * u / 3);
            0
        })?;
        child.succeed(SOON)?;
        ensure_eq!(device.stats(0).explain("stats")?.nr_threads, 0, "threads after exit {round}");
    }
    Ok(())
}

/// Checks exec(2), which chooses a CPU itself, in the middle of a window, at its end and after it.
pub fn executes() -> Check {
    let (u, device) = (unit_ns(), Device::open()?);
    alternating(u).install(&device)?;
    device.start(0).explain("start")?;
    for round in 0..12 {
        let before = device.stats(0).explain("stats")?.completions;
        let child = member("t", move |device| {
            let _ = device.wait();
            sys::spin(round * u / 2);
            exec("/proc/self/exe", &["jobs", "3"])
        })?;
        child.succeed(SECOND)?;
        let stats = device.stats(0).explain("stats")?;
        ensure!(stats.completions >= before + 3, "the new program of round {round} had no jobs");
        ensure_eq!(stats.nr_threads, 0, "threads after round {round}");
    }
    Ok(())
}

/// Checks stops and starts in every phase, with a thread that waits at once, one that makes calls and one that sleeps.
pub fn stopped_and_started() -> Check {
    const ROUNDS: u64 = 60;
    let (u, device, board) = (unit_ns(), Device::open()?, Board::new(2));
    alternating(u).install(&device)?;
    let log = Log::new(4096);
    let calling = member("t", |device| loop {
        match device.wait() {
            Ok(_) if pipes(0) => board.add(0, 1),
            Ok(_) => return 77,
            Err(errno) => return errno,
        }
    })?;
    let asleep = member("t", |device| loop {
        if let Err(errno) = device.wait() {
            return errno;
        }
        sys::sleep(5 * u);
        board.add(1, 1);
    })?;
    let children = [calling, asleep, periodic("t", log, u / 4)?];
    for round in 0..ROUNDS {
        let done = log.count();
        let epoch = device.start(sys::now_ns() + 5 * u).explain("start")?;
        sys::sleep_until(epoch + 20 * u + round * u * 7 / 10);
        device.stop().explain("stop")?;
        for child in children {
            ensure_eq!(sys::sched(child.pid).explain("getattr")?.policy, SCHED_TT, "policy while stopped");
        }
        sys::sleep(5 * u); // until a thread that was stopped in a job waits again
        Grid::alternating(epoch, u).ensure_on(&log.jobs()[done..])?;
    }
    let rounds = [log.count() as u64, board.get(0), board.get(1)];
    ensure!(rounds.iter().all(|jobs| *jobs > ROUNDS / 2), "{rounds:?} jobs in {ROUNDS} rounds");
    device.remove().explain("remove")?;
    children.iter().try_for_each(|child| ensure_free(*child, "after the removal"))
}
