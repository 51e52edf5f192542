//! The reserve: each CPU has this time without windows, leads and sync windows in every period.

use macrotick_model::{Duration, Plan, Reserve, SyncWindow};

use crate::Violation;

/// Checks the reserve of each CPU, if the system has one. Another rule reports windows that overlap; time that two of
/// them take counts once.
pub(crate) fn check(plan: &Plan, violations: &mut Vec<Violation>) {
    let Some(Reserve { period, length }) = plan.system.reserve else { return };
    if length <= Duration::ZERO {
        return;
    }
    if period <= Duration::ZERO || plan.cycle % period != Duration::ZERO {
        violations.push(Violation::ReserveCycle { cycle: plan.cycle, period });
        return;
    }
    violations.extend(plan.tables.iter().filter_map(|table| first(plan, table.cpu, period, length)));
}

/// Returns the first period of a CPU with too little free time. Only periods with busy time are looked at, and the first
/// that is busy as a whole ends the search.
fn first(plan: &Plan, cpu: u32, period: Duration, length: Duration) -> Option<Violation> {
    let taken = taken(plan, cpu);
    let mut next = 0;
    let mut number = 0;
    while let Some(&(start, _)) = taken.get(next) {
        number = (start / period.as_nanos()).max(number);
        let (begin, end) = (period.as_nanos() * number, (period.as_nanos() * number).saturating_add(period.as_nanos()));
        let here = taken[next..].iter().take_while(|&&(start, _)| start < end);
        let busy: i64 = here.map(|&(start, until)| until.min(end) - start.max(begin)).sum();
        let free = Duration::from_nanos(period.as_nanos() - busy);
        if free < length {
            return Some(Violation::Reserve { cpu, at: Duration::from_nanos(begin), period, free, length });
        }
        number += 1;
        // Spans are in order and disjoint, so the next period goes on where this one ended.
        while taken.get(next).is_some_and(|&(_, until)| until <= end) {
            next += 1;
        }
    }
    None
}

/// Returns the time within the cycle that windows with their leads and sync windows take on a CPU, in order and disjoint.
fn taken(plan: &Plan, cpu: u32) -> Vec<(i64, i64)> {
    let cycle = plan.cycle.as_nanos();
    let lead = plan.system.lead.map_or(0, |lead| lead.reserved().as_nanos());
    let windows = plan.tables.iter().filter(|table| table.cpu == cpu).flat_map(|table| &table.windows);
    let mut spans: Vec<(i64, i64)> = windows
        .map(|window| {
            let start = window.offset.as_nanos();
            let before = if window.activate { lead } else { 0 };
            (start.saturating_sub(before), start.saturating_add(window.length.as_nanos()))
        })
        .collect();
    // A lead before the start of the cycle is at its end.
    let wrapped = spans.iter().filter(|(start, _)| *start < 0).map(|&(start, end)| (start + cycle, end.min(0) + cycle));
    spans.extend(wrapped.collect::<Vec<_>>());
    // Another rule reports sync windows outside of their period, and the end of the cycle.
    let is_inside = |sync: &SyncWindow| {
        let end = sync.offset.as_nanos().checked_add(sync.length.as_nanos());
        sync.offset >= Duration::ZERO && end.is_some_and(|end| end <= sync.period.as_nanos())
    };
    let sync = plan.system.sync().filter(is_inside).into_iter();
    spans.extend(sync.flat_map(|sync| {
        let length = sync.length.as_nanos();
        sync.starts(plan.cycle).map(move |start| (start.as_nanos(), start.as_nanos() + length))
    }));
    spans.sort_unstable();
    let mut joined: Vec<(i64, i64)> = Vec::with_capacity(spans.len());
    for (start, end) in spans {
        let (start, end) = (start.max(0), end.min(cycle));
        match joined.last_mut() {
            Some((_, last)) if start <= *last => *last = end.max(*last),
            _ if start < end => joined.push((start, end)),
            _ => {}
        }
    }
    joined
}
