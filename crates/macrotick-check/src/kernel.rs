//! How the kernel counts what it promises of a CPU: `kernel/sched/macrotick/admit.c`, and `__dl_overflow()` and `to_ratio()` of
//! Linux.

use macrotick_model::Duration;

use crate::servers::Bandwidth;

/// What windows and budgets are counted in (`SCHED_CAPACITY_SCALE`).
pub(crate) const PARTS: i128 = 1 << 10;
/// Windows and budgets of a CPU together are no more (`MACROTICK_CAP_PERMILLE`).
const MOST: i128 = PARTS * 950 / 1000;
/// All of one CPU in what SCHED_DEADLINE counts in.
pub(crate) const WHOLE: i128 = Bandwidth::WHOLE.0 as i128;
/// Of what windows and budgets leave, deadline tasks and the servers of the fair class may have this much:
/// `sched_rt_runtime_us` of `sched_rt_period_us`, as they are at first.
const LIMIT: i128 = 950_000 * WHOLE / 1_000_000;
/// The server of the fair class on each CPU: 50 ms of every second (`dl_server_start()`).
const FAIR_SERVER: i128 = WHOLE / 20;

/// A share in parts of a scale, rounded up.
pub(crate) fn round_up(part: Duration, whole: Duration, scale: i128) -> i128 {
    let (part, whole) = (i128::from(part.as_nanos()), i128::from(whole.as_nanos()).max(1));
    (part * scale + whole - 1) / whole
}

/// What deadline tasks may be promised of so many CPUs of which windows and budgets leave so many [`PARTS`].
pub(crate) fn for_deadline(cpus: usize, left: i128) -> i128 {
    LIMIT * left / PARTS - cpus as i128 * FAIR_SERVER
}

/// How many [`PARTS`] of a CPU are there for budgets, where windows take so many and deadline tasks were promised this: negative
/// where they have too much already.
pub(crate) fn for_budgets(windows: i128, deadline: Bandwidth) -> i128 {
    let kept = match deadline {
        Bandwidth(0) => PARTS - MOST,
        Bandwidth(parts) => ((i128::from(parts) + FAIR_SERVER) * PARTS + LIMIT - 1) / LIMIT,
    };
    PARTS - windows - kept.max(PARTS - MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_for_budgets_leaves_deadline_tasks_what_they_were_promised() {
        for windows in [0, 1, 300] {
            for parts in (1..1 << 19).step_by(977) {
                let most = for_budgets(windows, Bandwidth(parts));
                let fits = |budgets: i128| for_deadline(1, PARTS - windows - budgets) >= i128::from(parts);
                assert!(fits(most), "{windows} {parts}");
                assert!(most == MOST - windows || !fits(most + 1), "{windows} {parts}");
            }
        }
        let ms = Duration::from_millis;
        assert_eq!([ms(0), ms(1), ms(3)].map(|part| round_up(part, ms(3), PARTS)), [0, 342, 1024]);
        assert_eq!(round_up(ms(0), ms(0), PARTS), 0);
        assert_eq!((for_budgets(0, Bandwidth(0)), for_budgets(972, Bandwidth(0))), (972, 0));
    }
}
