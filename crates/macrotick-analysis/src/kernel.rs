//! The kernel's own accounts of a CPU: `kernel/sched/macrotick/admit.c`, and `__dl_overflow()` and `to_ratio()` of
//! Linux.

use macrotick_model::Duration;

use crate::servers::Bandwidth;

/// One whole CPU in the unit of windows and budgets (`SCHED_CAPACITY_SCALE`).
pub const PARTS: i128 = 1 << 10;
/// The limit for the windows and budgets of a CPU together (`MACROTICK_CAP_PERMILLE`).
const MOST: i128 = PARTS * 950 / 1000;
/// One whole CPU in the unit of SCHED_DEADLINE.
pub const WHOLE: i128 = Bandwidth::WHOLE.0 as i128;
/// The limit for deadline tasks and the servers of the fair class, of the time that windows and budgets leave. It is
/// `sched_rt_runtime_us` of `sched_rt_period_us`, with their default values.
const LIMIT: i128 = 950_000 * WHOLE / 1_000_000;
/// The server of the fair class on each CPU: 50 ms of every second (`dl_server_start()`).
const FAIR_SERVER: i128 = WHOLE / 20;

/// Returns a share in parts of a scale, rounded up.
pub fn round_up(part: Duration, whole: Duration, scale: i128) -> i128 {
    let (part, whole) = (i128::from(part.as_nanos()), i128::from(whole.as_nanos()).max(1));
    (part * scale + whole - 1) / whole
}

/// Returns a bandwidth of SCHED_DEADLINE, which is rounded down.
pub fn bandwidth(runtime: Duration, period: Duration) -> i128 {
    i128::from(runtime.as_nanos()) * WHOLE / i128::from(period.as_nanos()).max(1)
}

/// Returns the bandwidth for deadline tasks on this number of CPUs, if windows and budgets leave `left` [`PARTS`] of
/// them.
pub fn for_deadline(cpus: usize, left: i128) -> i128 {
    LIMIT * left / PARTS - cpus as i128 * FAIR_SERVER
}

/// The bandwidth promised to deadline tasks of a domain (`promised()` in `admit.c`), and the other load there.
pub(crate) struct Promised {
    /// The number of its CPUs.
    pub cpus: usize,
    /// The bandwidth of all tasks, in parts of [`WHOLE`].
    pub tasks: i128,
    /// The share of windows and budgets on the other CPUs, in [`PARTS`].
    pub elsewhere: i128,
}

/// Returns the [`PARTS`] of a CPU for budgets, beside windows with this number of parts. It is negative if the other
/// load is already too much.
pub(crate) fn for_budgets(windows: i128, promised: &Promised) -> i128 {
    let cpus = promised.cpus as i128;
    let kept = ((promised.tasks + cpus * FAIR_SERVER) * PARTS + LIMIT - 1) / LIMIT;
    let most = MOST - windows;
    match promised.tasks {
        0 => most,
        _ => most.min(cpus * PARTS - windows - promised.elsewhere - kept),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_for_budgets_leaves_deadline_tasks_what_they_were_promised() {
        for (cpus, windows, elsewhere) in [(1, 0, 0), (1, 1, 0), (1, 300, 0), (2, 0, 615), (3, 100, 1100), (4, 200, 0)]
        {
            for tasks in (1..1 << 19).step_by(977) {
                let all = cpus as i128 * PARTS;
                let leaves = |budgets| for_deadline(cpus, all - windows - elsewhere - budgets) >= tasks;
                let fits = |budgets: &i128| windows + budgets <= MOST && leaves(*budgets);
                let most = (-all..=PARTS).rev().find(fits);
                assert_eq!(
                    Some(for_budgets(windows, &Promised { cpus, tasks, elsewhere })),
                    most,
                    "{cpus} {windows} {tasks}"
                );
            }
        }
        let ms = Duration::from_millis;
        assert_eq!([ms(0), ms(1), ms(3)].map(|part| round_up(part, ms(3), PARTS)), [0, 342, 1024]);
        assert_eq!(round_up(ms(0), ms(0), PARTS), 0);
        assert_eq!(bandwidth(ms(1), ms(3)), 349_525);
        let nothing = Promised { cpus: 2, tasks: 0, elsewhere: 2000 };
        assert_eq!((for_budgets(0, &nothing), for_budgets(972, &nothing)), (972, 0));
    }
}
