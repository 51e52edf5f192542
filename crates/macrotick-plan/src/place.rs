//! Placing one task on a phase: the same windows in every period.

use macrotick_model::Duration;

use crate::demand::{round_up, Demand};
use crate::occupancy::Occupancy;

/// Other timers expire on multiples of this: the kernel's tick (1000 Hz or a divisor) and most applications' periods.
const COMMON_GRID: Duration = Duration::from_millis(1);
/// How far behind the common grid a job starts if it can: longer than the interrupts that expire on it take.
const GUARD: Duration = Duration::from_micros(20);

/// A window of a placed task in job 0; it may lie beyond the first period.
pub(crate) type Part = (Duration, Duration);

/// The rules of one search for a phase.
pub(crate) struct Search<'a> {
    pub occupancy: &'a Occupancy,
    pub demand: &'a Demand,
    pub macrotick: Duration,
    /// Shortest window.
    pub quantum: Duration,
    /// Start looking here, modulo the period; earlier phases are the second choice.
    pub hint: Duration,
    /// Rather one window later than several now. A task of a chain wants to be done soon instead.
    pub rather_whole: bool,
}

/// The instant itself, or the end of the guard after the common grid where it lies in one. `None`: the macrotick is
/// too coarse to leave the guard before the next one begins, or the period drifts over the common grid anyway.
pub(crate) fn behind_guard(instant: Duration, period: Duration, macrotick: Duration) -> Option<Duration> {
    let phase = instant % COMMON_GRID;
    if !period.is_multiple_of(COMMON_GRID) {
        return None;
    }
    if phase >= GUARD {
        return Some(instant);
    }
    let moved = round_up(instant - phase + GUARD, macrotick);
    (moved % COMMON_GRID >= GUARD).then_some(moved)
}

impl Search<'_> {
    /// The windows of job 0 on the best phase, or `None` where no phase will do.
    ///
    /// In order of preference: behind the hint before elsewhere; in one window, unless done soon is better; off the
    /// common grid. Within that the earliest phase.
    pub fn run(&self) -> Option<Vec<Part>> {
        let (earliest, latest) = self.starts();
        let hint = self.hint_within(earliest);
        let ranges = [(hint, latest), (earliest, latest.min(hint))];
        let forms: &[bool] = if self.rather_whole { &[true, false] } else { &[false] };
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

    /// The earliest and the latest start of job 0.
    fn starts(&self) -> (Duration, Duration) {
        let Demand { period, wcet, deadline, .. } = *self.demand;
        let slack = deadline - wcet;
        match (self.demand.offset, self.demand.jitter) {
            (Some(offset), Some(jitter)) => (offset, offset + jitter.min(slack)),
            (Some(offset), None) => (offset, offset + slack),
            (None, Some(_)) => (Duration::ZERO, period - wcet),
            (None, None) => (Duration::ZERO, slack),
        }
    }

    /// The instant by which a job that starts at `start` must be done.
    fn limit(&self, start: Duration) -> Duration {
        match (self.demand.offset, self.demand.jitter) {
            // The solver chooses the release, and keeps every job within its period.
            (None, Some(_)) => (start + self.demand.deadline).min(self.demand.period),
            _ => self.demand.release() + self.demand.deadline,
        }
    }

    fn hint_within(&self, earliest: Duration) -> Duration {
        let hint = self.hint % self.demand.period;
        if hint < earliest {
            hint + self.demand.period
        } else {
            hint
        }
    }

    /// The earliest start in `[from, to]` that leaves room, as a whole window or in several.
    fn scan(&self, from: Duration, to: Duration, whole: bool, guarded: bool) -> Option<Vec<Part>> {
        let mut from = from;
        loop {
            let (free, end) = self.occupancy.next_free(self.demand.period, from)?;
            let start = if guarded { behind_guard(free, self.demand.period, self.macrotick)? } else { free };
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

    fn one(&self, start: Duration, free_until: Duration) -> Option<Vec<Part>> {
        let end = start + self.demand.wcet;
        (end <= free_until.min(self.limit(start))).then(|| vec![(start, self.demand.wcet)])
    }

    /// Takes free time from `start` on until the wcet is together. No part is shorter than the quantum.
    fn several(&self, start: Duration) -> Option<Vec<Part>> {
        let limit = self.limit(start);
        let (mut parts, mut missing, mut from) = (Vec::new(), self.demand.wcet, start);
        loop {
            let (free, end) = self.occupancy.next_free(self.demand.period, from)?;
            let end = end.min(limit);
            if free >= limit {
                return None;
            }
            from = end;
            let mut length = missing.min(end - free);
            if length < self.quantum {
                if parts.is_empty() {
                    return None;
                }
                continue;
            }
            let rest = missing - length;
            if rest > Duration::ZERO && rest < self.quantum {
                // Too little would be left for a window: leave more, or else give more than was asked for.
                let lent = self.quantum - rest;
                if length - lent >= self.quantum {
                    length -= lent;
                } else {
                    missing += lent;
                }
            }
            parts.push((free, length));
            missing -= length;
            if missing == Duration::ZERO {
                return Some(parts);
            }
        }
    }
}
