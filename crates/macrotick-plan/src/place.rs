//! Placement of one task on a phase: the same windows in every period.

use macrotick_model::Duration;

use crate::cut::{Cut, Missing};
use crate::demand::{round_up, Demand};
use crate::occupancy::Occupancy;

/// The distance after the common grid at which jobs start if possible. It is longer than the interrupts of timers that
/// expire there.
pub(crate) const GUARD: Duration = Duration::from_micros(20);

/// A window of a placed task in job 0. It may lie beyond the first period.
pub(crate) type Part = (Duration, Duration);

/// The parameters of one search for a phase.
pub(crate) struct Search<'a> {
    pub occupancy: &'a Occupancy,
    pub demand: &'a Demand,
    pub macrotick: Duration,
    pub cut: Cut,
    /// The phase at which the search starts, modulo the period. Earlier phases are the second choice.
    pub hint: Duration,
    /// Whether one window later is better than several now. A task of a chain prefers an early end.
    pub rather_whole: bool,
}

/// Returns the start itself, or the first one with its whole lead after the guard that follows the common grid.
///
/// Returns `None` if that start is not before the next guard, because the macrotick is too coarse or the lead too long.
/// Also returns `None` if the period drifts over the common grid anyway.
pub(crate) fn behind_guard(start: Duration, demand: &Demand, macrotick: Duration) -> Option<Duration> {
    let guard = GUARD + demand.lead;
    let grid = demand.common_grid;
    let phase = start % grid;
    if !demand.period.is_multiple_of(grid) {
        return None;
    }
    if phase >= guard {
        return Some(start);
    }
    let moved = round_up(start - phase + guard, macrotick);
    (moved % grid >= guard).then_some(moved)
}

impl Search<'_> {
    /// Returns the windows of job 0 on the best phase, or `None` if no phase works.
    ///
    /// A phase after the hint is better than another one. Next in preference are one window (unless an early end is
    /// better), a start off the common grid, and the earliest phase.
    pub fn run(&self) -> Option<Vec<Part>> {
        let (earliest, latest) = self.demand.starts();
        let hint = self.hint_within(earliest);
        let ranges = [(hint, latest), (earliest, latest.min(hint))];
        let forms: &[bool] = match (self.demand.preemptible, self.rather_whole) {
            (false, _) => &[true],
            (true, true) => &[true, false],
            (true, false) => &[false],
        };
        let ranges = ranges.into_iter().filter(|(from, to)| from <= to);
        for (from, to) in ranges {
            for &whole in forms {
                for guarded in [true, false] {
                    if let Some(parts) = self.scan(from, to, whole, guarded) {
                        return Some(parts);
                    }
                }
            }
        }
        None
    }

    fn hint_within(&self, earliest: Duration) -> Duration {
        let hint = self.hint % self.demand.period;
        if hint < earliest {
            hint + self.demand.period
        } else {
            hint
        }
    }

    /// Returns the earliest start in `[from, to]` with room for one window or for several.
    fn scan(&self, from: Duration, to: Duration, whole: bool, guarded: bool) -> Option<Vec<Part>> {
        let mut from = from;
        loop {
            let (free, end) = self.occupancy.next_free(self.demand.period, from)?;
            let behind_lead = self.behind_lead(free);
            let start = if guarded { behind_guard(behind_lead, self.demand, self.macrotick)? } else { behind_lead };
            if start > to {
                return None;
            }
            if start >= end {
                from = start;
                continue;
            }
            let parts = if whole { self.one(start, end) } else { self.several(start) };
            if parts.is_some() {
                return parts;
            }
            from = end;
        }
    }

    /// Returns the first start from `free` on that has its lead, unless the free interval ends before.
    fn behind_lead(&self, free: Duration) -> Duration {
        let Demand { period, lead, .. } = *self.demand;
        free + lead - self.occupancy.free_before(period, free, lead)
    }

    fn one(&self, start: Duration, free_until: Duration) -> Option<Vec<Part>> {
        let end = start + self.demand.wcet;
        (end <= free_until.min(self.demand.limit(start))).then(|| vec![(start, self.demand.wcet)])
    }

    /// Takes free time from `start` on until the sum is the wcet, in parts that are long enough for their cost.
    fn several(&self, start: Duration) -> Option<Vec<Part>> {
        let limit = self.demand.limit(start);
        let (mut parts, mut time, mut from) = (Vec::new(), self.demand.needed, start);
        loop {
            let (free, end) = self.occupancy.next_free(self.demand.period, from)?;
            let end = end.min(limit);
            if free >= limit {
                return None;
            }
            from = end;
            let missing = Missing::of(self.demand, time, !parts.is_empty());
            if end - free < self.cut.least(self.demand, missing) {
                if parts.is_empty() {
                    return None;
                }
                continue;
            }
            let needed = self.cut.completing(missing);
            let length = needed.min(end - free);
            parts.push((free, length));
            if length == needed {
                return Some(parts);
            }
            time = missing.behind(length);
        }
    }
}
