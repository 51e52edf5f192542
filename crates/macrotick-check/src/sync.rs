//! Sync windows: no CPU may have a window or a lead in them, whatever length they have.

use macrotick_model::{Duration, Plan, SyncWindow, Window};

use crate::windows::MIN_WINDOW;
use crate::Violation;

/// Checks the sync windows against the cycle, if the system has any.
pub(crate) fn time_base(plan: &Plan, violations: &mut Vec<Violation>) {
    let Some(SyncWindow { period, offset, length, bound }) = plan.system.sync() else { return };
    if period <= Duration::ZERO || plan.cycle <= Duration::ZERO || plan.cycle % period != Duration::ZERO {
        violations.push(Violation::SyncCycle { cycle: plan.cycle, period });
    }
    let nanos = |length: Duration| i128::from(length.as_nanos());
    if offset < Duration::ZERO || length <= Duration::ZERO || nanos(offset) + nanos(length) > nanos(period) {
        violations.push(Violation::SyncRange { offset, length, period });
    }
    if bound <= Duration::ZERO || nanos(length) - nanos(bound) < nanos(MIN_WINDOW) {
        violations.push(Violation::SyncBound { length, bound, limit: MIN_WINDOW });
    }
}

/// Returns the number of sync windows in a cycle, and the longest time by which they shorten it, in nanoseconds.
pub(crate) fn shortening(plan: &Plan) -> (usize, i128) {
    let count = |sync: &SyncWindow| plan.cycle.as_nanos() / sync.period.as_nanos();
    plan.system.sync().map_or((0, 0), |sync| {
        let count = count(&sync);
        (count as usize, i128::from(count) * i128::from(sync.bound.as_nanos()))
    })
}

/// Checks a window of a CPU against the sync windows. A lead may start in the previous cycle, which has the same sync
/// windows.
pub(crate) fn window(
    plan: &Plan,
    cpu: u32,
    index: usize,
    window: &Window,
    lead: Duration,
    violations: &mut Vec<Violation>,
) {
    let Some(sync) = plan.system.sync() else { return };
    // In 128 bits, because offsets and lengths can have any value.
    let nanos = |length: Duration| i128::from(length.as_nanos());
    let lead = if window.activate { nanos(lead) } else { 0 };
    let (begin, end) = (nanos(window.offset) - lead, nanos(window.offset) + nanos(window.length));
    // The first sync window that ends after the start.
    let (period, offset) = (nanos(sync.period), nanos(sync.offset));
    let number = (begin - offset - nanos(sync.length)).div_euclid(period) + 1;
    let start = offset + number * period;
    if start < end {
        let at = |nanos: i128| Duration::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX));
        let (begin, end, sync) = (at(begin), at(end), at(start));
        violations.push(Violation::Sync { cpu, window: index, begin, end, sync });
    }
}
