//! The rule that two CPUs never serve a task at the same time.

use std::collections::BTreeMap;

use macrotick_model::{Duration, Plan, Task, Window};

use crate::Violation;

/// Compares each window of a task, with the lead before an ACTIVATE, with windows on other CPUs that started before it.
/// The table repeats, so the windows of the previous cycle come before the first ones. Only tasks that may migrate are
/// checked here: for other tasks, several CPUs are an error of their own.
pub(crate) fn check(plan: &Plan, task: &Task, served: &[(u32, &Window)], violations: &mut Vec<Violation>) {
    if !task.migrate {
        return;
    }
    let lead = plan.system.lead.map_or(Duration::ZERO, |lead| lead.reserved());
    let mut windows = served.to_vec();
    windows.sort_by_key(|(_, window)| window.offset);
    // For each CPU, the end of the task's windows there so far.
    let mut reach: BTreeMap<u32, i128> = BTreeMap::new();
    for (cpu, window) in served {
        extend(&mut reach, *cpu, end(window) - nanos(plan.cycle));
    }
    for (cpu, window) in windows {
        let lead = if window.activate { nanos(lead) } else { 0 };
        let begin = nanos(window.offset) - lead;
        let others = reach.iter().filter(|(&other, _)| other != cpu);
        if let Some((&other, &end)) = others.max_by_key(|(_, &end)| end).filter(|(_, &end)| end > begin) {
            let (task, offset, begin, end) = (task.name.clone(), window.offset, length(begin), length(end));
            violations.push(Violation::Parallel { task, cpu, offset, begin, other, end });
        }
        extend(&mut reach, cpu, end(window));
    }
}

fn extend(reach: &mut BTreeMap<u32, i128>, cpu: u32, end: i128) {
    let farthest = reach.entry(cpu).or_insert(end);
    *farthest = end.max(*farthest);
}

/// Returns the end in 128 bits, because offsets and lengths can have any value.
fn end(window: &Window) -> i128 {
    nanos(window.offset) + nanos(window.length)
}

fn nanos(length: Duration) -> i128 {
    i128::from(length.as_nanos())
}

fn length(nanos: i128) -> Duration {
    Duration::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX))
}
