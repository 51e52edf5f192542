//! The switch, while many timers are pending: with equal expiries, in the past, or far away.

use libc::{CLOCK_BOOTTIME, CLOCK_MONOTONIC, CLOCK_REALTIME, CLOCK_TAI};

use super::{bound, set, soon, stats, STOP};
use crate::board::Board;
use crate::check::Check;
use crate::group::Group;
use crate::process::{self, Child};
use crate::random::{variation, Random};
use crate::scenarios::{budgets, is_slow, unit_ns};
use crate::sys::{self, SchedAttr};
use crate::{ensure, ensure_eq};

const SECOND: u64 = 1_000_000_000;
const CLOCKS: [libc::clockid_t; 4] = [CLOCK_MONOTONIC, CLOCK_REALTIME, CLOCK_TAI, CLOCK_BOOTTIME];
/// An instant later than all events of the scenarios.
const FAR: u64 = 4_000_000_000 * SECOND;

/// The scheduling of a sleeper. With several CPUs, only timers of real-time sleepers that are bound to a CPU have a
/// level.
#[derive(Clone, Copy)]
enum Who {
    Bound,
    Fifo,
    Deadline,
    /// A sleeper under SCHED_DS, of an unprivileged user.
    Group,
    Other,
}

const ALL: [Who; 5] = [Who::Bound, Who::Fifo, Who::Deadline, Who::Group, Who::Other];

impl Who {
    /// Forks a process that does something under this policy. Without the right to it, the process exits with a special
    /// code.
    fn begin(self, number: usize, group: &Group, body: impl FnOnce() -> i32) -> Child {
        let priority = 1 + number as u32 % 50;
        // A turn ends soon, and the reservations of all sleepers fit one CPU.
        let deadline = SchedAttr::deadline(unit_ns() / 2, 100 * unit_ns());
        match self {
            Who::Bound => bound(number as u32 % sys::nr_cpus(), priority, body),
            Who::Fifo => process::fork(|| under(SchedAttr::fifo(priority), body)),
            Who::Deadline => process::fork(|| under(deadline, body)),
            Who::Group => process::fork(|| match budgets::become_user_in(group, priority) {
                Ok(()) => under(budgets::ds(priority), body),
                Err(_) => 101,
            }),
            Who::Other => process::fork(body),
        }
    }

    /// Whether its sleeps have a level.
    fn is_kept(self) -> bool {
        match self {
            Who::Bound => true,
            // On PREEMPT_RT, the softirq serves them.
            Who::Other => sys::nr_cpus() == 1 && !sys::is_preempt_rt(),
            _ => sys::nr_cpus() == 1,
        }
    }
}

fn under(attr: SchedAttr, body: impl FnOnce() -> i32) -> i32 {
    sys::set_sched(0, attr).err().unwrap_or_else(body)
}

/// Sleeps repeatedly: often until common instants, sometimes until past ones, or for a moment. Counts the sleeps.
fn nap(seed: u64, board: Board, word: usize) -> i32 {
    let (u, mut random) = (unit_ns(), Random::new(seed));
    while board.get(STOP) == 0 {
        let clock = *random.pick(&CLOCKS);
        let now = sys::read_clock(clock);
        let at = match random.below(4) {
            0 | 1 => (now + 2 * u).next_multiple_of(10 * u),
            2 => 1,
            _ => now + random.below(5 * u),
        };
        sys::sleep_until_on(clock, at);
        if sys::read_clock(clock) < at {
            return 102;
        }
        board.add(word, 1);
        // With only past instants, no other thread would get a CPU.
        sys::sleep(u);
    }
    0
}

/// Forks sleepers of each kind: `each` of them sleep until the same far instant, and as many until different ones.
fn far_ones(each: usize, group: &Group) -> Vec<(Who, Child)> {
    let one = |number: usize| {
        let who = ALL[number % ALL.len()];
        let clock = CLOCKS[number / ALL.len() % CLOCKS.len()];
        let apart = if number < each * ALL.len() { 0 } else { number as u64 * SECOND };
        (
            who,
            who.begin(number, group, move || {
                sys::sleep_until_on(clock, FAR + apart);
                103
            }),
        )
    };
    (0..2 * each * ALL.len()).map(one).collect()
}

/// Checks that this many timers with a level are pending.
fn ensure_pending(count: u64, when: &str) -> Check {
    let right = || stats().is_ok_and(|stats| stats.pending == count);
    ensure!(sys::eventually(5 * SECOND, right), "{:?} {when}, not {count} pending", stats()?);
    Ok(())
}

pub(super) fn storm() -> Check {
    let (u, board) = (unit_ns(), Board::new(64));
    let group = budgets::first_group("switching", 5, 1)?;
    set(true)?;
    // On one CPU, the runner's own wait is one of the pending timers.
    let others = stats()?.pending;
    let far = far_ones(if is_slow() { 4 } else { 12 }, &group);
    let kept = far.iter().filter(|(who, _)| who.is_kept()).count() as u64;
    ensure_pending(others + kept, "once all sleep")?;
    let nappers: Vec<Child> = (0..20)
        .map(|i| ALL[i % ALL.len()].begin(i, &group, move || nap(1000 * variation() + i as u64, board, i)))
        .collect();
    sys::sleep_until(soon(20));
    let mut random = Random::new(variation());
    for round in 0..if is_slow() { 60 } else { 400 } {
        set(round % 2 == 1)?;
        sys::sleep(random.below(3 * u));
    }
    let before: Vec<u64> = (0..20).map(|i| board.get(i)).collect();
    let all_nap = || (0..20).all(|i| board.get(i) > before[i] + 2);
    ensure!(sys::eventually(20 * SECOND, all_nap), "naps that do not end: {before:?}, {:?}", &board.words()[..20]);
    board.set(STOP, 1);
    nappers.iter().try_for_each(|child| child.succeed(20 * SECOND))?;
    ensure_pending(others + kept, "after the storm")?;
    set(false)?;
    ensure_eq!(stats()?.pending, 0, "pending timers, switched off");
    set(true)?;
    ensure_eq!(stats()?.pending, others + kept, "pending timers, switched on again");
    for (_, child) in &far {
        ensure!(child.poll().is_none(), "a far sleep has ended: {}", child.describe());
        child.kill(5 * SECOND)?;
    }
    ensure_pending(others, "once all are gone")
}
