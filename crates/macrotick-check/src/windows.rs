//! The rules of windows that do not depend on jobs: grid, order, overlap, leads, capacity, CPUs.

use macrotick_model::{CpuTable, Duration, Plan};

use crate::{sync, CpuVerdict, Verdict, Violation};

/// `MACROTICK_MIN_WINDOW_NS`, `MACROTICK_CAP_PERMILLE` and `MACROTICK_MAX_WINDOWS` of `linux/macrotick.h`. They are
/// repeated here because the judge is independent of the solvers.
pub(crate) const MIN_WINDOW: Duration = Duration::from_micros(1);
const CAP_PERMILLE: i128 = 950;
const MAX_WINDOWS: usize = 1 << 20;

/// Checks that cycle, periods and macrotick fit together. Returns false if they do not.
pub(crate) fn time_base(plan: &Plan, violations: &mut Vec<Violation>) -> bool {
    let before = violations.len();
    if plan.system.macrotick <= Duration::ZERO {
        violations.push(Violation::Macrotick { macrotick: plan.system.macrotick });
    }
    let tasks = plan.system.windowed().map(|task| (task.name.clone(), task.period));
    let pools = plan.system.pools().map(|pool| (pool.name, pool.period));
    for (name, period) in tasks.chain(pools) {
        if period <= Duration::ZERO || plan.cycle <= Duration::ZERO || plan.cycle % period != Duration::ZERO {
            violations.push(Violation::Cycle { cycle: plan.cycle, task: name, period });
        }
    }
    sync::time_base(plan, violations);
    violations.len() == before
}

pub(crate) fn check(plan: &Plan, verdict: &mut Verdict) {
    let (syncs, shortening) = sync::shortening(plan);
    let count = plan.tables.iter().map(|table| table.windows.len() + syncs).sum();
    if count > MAX_WINDOWS {
        verdict.violations.push(Violation::TooManyWindows { windows: count, limit: MAX_WINDOWS });
    }
    for (index, table) in plan.tables.iter().enumerate() {
        let cpu = table.cpu;
        if !plan.system.cpus.contains(&cpu) {
            verdict.violations.push(Violation::UnknownCpu { cpu });
        }
        if index > 0 && plan.tables[index - 1].cpu >= cpu {
            verdict.violations.push(Violation::TableOrder { cpu });
        }
        shapes(plan, table, &mut verdict.violations);
        order(table, &mut verdict.violations);
        let lead = plan.system.lead.map_or(Duration::ZERO, |lead| lead.reserved());
        leads(plan.cycle, lead, table, &mut verdict.violations);
        for (index, window) in table.windows.iter().enumerate() {
            sync::window(plan, cpu, index, window, lead, &mut verdict.violations);
        }
        capacity(plan.cycle, shortening, lead, table, verdict);
    }
}

fn shapes(plan: &Plan, table: &CpuTable, violations: &mut Vec<Violation>) {
    let (cpu, grid) = (table.cpu, plan.system.macrotick);
    let tasks = plan.system.windowed().map(|task| task.name.clone());
    let pools = plan.system.pools().map(|pool| pool.name);
    let names: std::collections::BTreeSet<String> = tasks.chain(pools).collect();
    for (index, window) in table.windows.iter().enumerate() {
        let (offset, length) = (window.offset, window.length);
        if !names.contains(&window.task) {
            violations.push(Violation::UnknownTask { cpu, window: index, task: window.task.clone() });
        }
        if offset % grid != Duration::ZERO || length % grid != Duration::ZERO {
            violations.push(Violation::OffGrid { cpu, window: index, offset, length });
        }
        if length < MIN_WINDOW {
            violations.push(Violation::TooShort { cpu, window: index, length, limit: MIN_WINDOW });
        }
        let end = offset.checked_add(length).unwrap_or(Duration::from_nanos(i64::MAX));
        if offset < Duration::ZERO || end > plan.cycle {
            violations.push(Violation::OutsideCycle { cpu, window: index, offset, end });
        }
    }
}

/// Checks order and overlap. Windows are half-open: `[0, 10) [10, 20)` touch and do not overlap.
fn order(table: &CpuTable, violations: &mut Vec<Violation>) {
    let cpu = table.cpu;
    // The end of the window that reaches farthest so far: the next window must not overlap with it.
    let mut farthest: Option<(usize, Duration)> = None;
    for (index, window) in table.windows.iter().enumerate() {
        if index > 0 && window.offset < table.windows[index - 1].offset {
            violations.push(Violation::NotSorted { cpu, window: index });
        }
        let end = window.offset.checked_add(window.length).unwrap_or(Duration::from_nanos(i64::MAX));
        if let Some((other, reach)) = farthest {
            if window.offset < reach && end > table.windows[other].offset {
                violations.push(Violation::Overlap { cpu, window: index, other });
            }
        }
        if farthest.is_none_or(|(_, reach)| end > reach) {
            farthest = Some((index, end));
        }
    }
}

/// Checks that each ACTIVATE window has no window directly before it, for the length of the lead. The table repeats, so
/// the window before the first one is the last one of the previous cycle.
fn leads(cycle: Duration, lead: Duration, table: &CpuTable, violations: &mut Vec<Violation>) {
    let count = table.windows.len();
    for (index, window) in table.windows.iter().enumerate().filter(|(_, window)| window.activate) {
        let (other, shift) = if index == 0 { (count - 1, cycle) } else { (index - 1, Duration::ZERO) };
        let before = &table.windows[other];
        // In 128 bits, because offsets and lengths can have any value.
        let end = i128::from(before.offset.as_nanos()) + i128::from(before.length.as_nanos());
        let gap = i128::from(window.offset.as_nanos()) + i128::from(shift.as_nanos()) - end;
        // Another rule reports windows that overlap.
        if (0..i128::from(lead.as_nanos())).contains(&gap) {
            let gap = Duration::from_nanos(gap as i64);
            violations.push(Violation::Lead { cpu: table.cpu, window: index, other, gap, lead });
        }
    }
}

/// Checks the windows against the shortest cycle: sync windows can take `shortening` from it, in nanoseconds.
fn capacity(cycle: Duration, shortening: i128, lead: Duration, table: &CpuTable, verdict: &mut Verdict) {
    let length = |nanos: i128| Duration::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX));
    let busy: i128 = table.windows.iter().map(|window| i128::from(window.length.as_nanos())).sum();
    let activations = table.windows.iter().filter(|window| window.activate).count();
    let leads = i128::from(lead.as_nanos()) * activations as i128;
    let (together, busy, leads) = (busy + leads, length(busy), length(leads));
    let shortest = i128::from(cycle.as_nanos()) - shortening;
    // The kernel counts in whole thousandths of a cycle (`decode_capacity()` in `table.c`).
    let capacity = shortest / 1000 * CAP_PERMILLE;
    if together > capacity {
        let capacity = length(capacity);
        verdict.violations.push(Violation::Capacity { cpu: table.cpu, busy, leads, capacity });
    }
    let share = |length: Duration| length.as_secs_f64() / cycle.as_secs_f64();
    let (utilisation, lead_share) = (share(busy), share(leads));
    verdict.cpus.push(CpuVerdict { cpu: table.cpu, busy, utilisation, leads, lead_share });
}
