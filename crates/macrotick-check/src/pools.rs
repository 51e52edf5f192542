//! Replay of the windows of one pool: checks that each of its periods has its budget.

use macrotick_model::{Duration, Plan, Pool, Window};

use crate::jobs::{allowed, LEAST_WINDOW};
use crate::{PoolVerdict, Violation};

/// Checks the windows of a pool: CPU, budget, and no flags of jobs.
pub(crate) fn judge(
    plan: &Plan,
    pool: &Pool,
    served: &[(u32, &Window)],
    violations: &mut Vec<Violation>,
) -> Option<PoolVerdict> {
    let name = || pool.name.clone();
    let Some(&(cpu, _)) = served.first() else {
        violations.push(Violation::PoolNoWindow { pool: name() });
        return None;
    };
    places(plan, pool, served, violations);
    for (cpu, window) in served.iter().filter(|(_, window)| window.activate || window.deadline) {
        violations.push(Violation::PoolFlags { pool: name(), cpu: *cpu, offset: window.offset });
    }
    for (offset, length) in stretches(plan, served).into_iter().filter(|&(_, length)| length < LEAST_WINDOW) {
        violations.push(Violation::PoolShort { pool: name(), offset, length, limit: LEAST_WINDOW });
    }
    let given = given(plan, pool, served);
    for (number, &given) in given.iter().enumerate().filter(|(_, &given)| given < pool.length) {
        violations.push(Violation::PoolBudget { pool: name(), number: number as i64, given, budget: pool.length });
    }
    Some(PoolVerdict {
        name: name(),
        cpu,
        windows: served.len(),
        given: given.into_iter().min()?,
        budget: pool.length,
        period: pool.period,
        gap: longest_gap(plan, served)?,
    })
}

fn places(plan: &Plan, pool: &Pool, served: &[(u32, &Window)], violations: &mut Vec<Violation>) {
    let name = || pool.name.clone();
    let mut cpus: Vec<u32> = served.iter().map(|(cpu, _)| *cpu).collect();
    cpus.dedup();
    let allowed = allowed(plan, pool.cpu, pool.host.as_ref());
    for (index, &cpu) in cpus.iter().enumerate() {
        if let Some(allowed) = allowed.clone().filter(|allowed| !allowed.contains(cpu)) {
            violations.push(Violation::PoolWrongCpu { pool: name(), cpu, allowed });
        }
        if index > 0 {
            violations.push(Violation::PoolMigrates { pool: name(), cpu, other: cpus[0] });
        }
    }
}

/// Returns the window time within each period of one cycle. A window may continue over several periods.
fn given(plan: &Plan, pool: &Pool, served: &[(u32, &Window)]) -> Vec<Duration> {
    let period = pool.period.as_nanos();
    let mut given = vec![0; (plan.cycle / pool.period) as usize];
    for (_, window) in served {
        // Another rule reports time outside the cycle. Such time does not count.
        let mut from = window.offset.as_nanos().max(0);
        let end = window.offset.as_nanos().saturating_add(window.length.as_nanos()).min(plan.cycle.as_nanos());
        while from < end {
            let number = from / period;
            let until = end.min((number + 1) * period);
            given[number as usize] += until - from;
            from = until;
        }
    }
    given.into_iter().map(Duration::from_nanos).collect()
}

/// Returns the start and the length of each interval with windows of the pool. Adjacent windows are one interval, also
/// around the end of the cycle.
fn stretches(plan: &Plan, served: &[(u32, &Window)]) -> Vec<(Duration, Duration)> {
    let mut windows: Vec<(u32, Duration, Duration)> =
        served.iter().map(|(cpu, window)| (*cpu, window.offset, window.length)).collect();
    windows.sort_unstable();
    let mut all: Vec<(u32, Duration, Duration)> = Vec::new();
    for (cpu, offset, length) in windows {
        match all.last_mut() {
            Some((last, start, before)) if *last == cpu && offset == *start + *before => *before += length,
            _ => all.push((cpu, offset, length)),
        }
    }
    if let [(cpu, Duration::ZERO, first), .., (last, start, length)] = &mut all[..] {
        if cpu == last && *start + *length == plan.cycle {
            *length += *first;
            all.remove(0);
        }
    }
    all.into_iter().map(|(_, offset, length)| (offset, length)).collect()
}

/// Returns the longest time from the end of one window to the start of the next. After the last window, the first one
/// of the next cycle follows.
fn longest_gap(plan: &Plan, served: &[(u32, &Window)]) -> Option<Duration> {
    let mut spans: Vec<(i64, i64)> = served
        .iter()
        .map(|(_, window)| {
            let start = window.offset.as_nanos();
            (start, start.saturating_add(window.length.as_nanos()))
        })
        .collect();
    spans.sort_unstable();
    let first = spans.first()?.0.saturating_add(plan.cycle.as_nanos());
    let starts = spans.iter().skip(1).map(|&(start, _)| start).chain([first]);
    let gaps = spans.iter().zip(starts).map(|(&(_, end), start)| start.saturating_sub(end));
    gaps.max().map(|gap| Duration::from_nanos(gap.max(0)))
}
