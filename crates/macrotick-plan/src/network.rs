//! Advice for tasks that use the network: windows for the kernel threads that do a part of its work.
//!
//! The sending or receiving thread does most of the work. Kernel threads under SCHED_OTHER or a low SCHED_FIFO priority
//! do the rest, and the work of timers and RCU. If other load leaves them no time, a datagram waits for a long time: 10
//! to 63 ms in the SCHED_TT paper (section 4.3).

use std::fmt;

use macrotick_model::{
    Duration, GivenWindow, Group, GroupThread, KernelThread, Plan, Pool, PoolOrder, System, Task, Windows, Workload,
};

use crate::{plan, Solver, MIN_WINDOW};

/// The divisor of the period that gives the window time of the threads. During a flood of pings in the lab, they take
/// less than a thousandth of the processor. The work for a single packet takes at most about 10 us.
const SHARE: i64 = 100;

/// A missing group with windows, for the kernel threads of one CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkAdvice {
    /// The CPU.
    pub cpu: u32,
    /// The tasks on it that use the network.
    pub tasks: Vec<String>,
    /// The lines for `groups` of the description, and for `table` if it has one.
    pub sections: Vec<(&'static str, Vec<String>)>,
    /// Whether the plan has room for the group without other changes.
    pub fits: bool,
}

/// Returns the advice for every CPU with tasks that use the network and without a pool with `ksoftirqd`.
pub fn network_advice(plan: &Plan) -> Vec<NetworkAdvice> {
    let each = plan.tables.iter().map(|table| table.cpu);
    each.filter(|cpu| !has_pool(plan, *cpu)).filter_map(|cpu| advice(plan, cpu)).collect()
}

fn serves(plan: &Plan, cpu: u32, name: &str) -> bool {
    let of_cpu = plan.tables.iter().filter(|table| table.cpu == cpu);
    of_cpu.flat_map(|table| &table.windows).any(|window| window.task == name)
}

fn has_pool(plan: &Plan, cpu: u32) -> bool {
    let has = |pool: &Pool| pool.kernel_threads.contains(&GroupThread::EachCpu(KernelThread::Ksoftirqd));
    plan.system.pools().filter(has).any(|pool| serves(plan, cpu, &pool.name))
}

fn uses_network(task: &&Task) -> bool {
    task.namespace.is_some() || matches!(task.run, Workload::UdpSend(_) | Workload::UdpReceive(_))
}

fn advice(plan: &Plan, cpu: u32) -> Option<NetworkAdvice> {
    let tasks: Vec<&Task> =
        plan.system.tasks.iter().filter(uses_network).filter(|task| serves(plan, cpu, &task.name)).collect();
    let period = tasks.iter().map(|task| task.period).min()?;
    let group = group(&plan.system, cpu, period);
    let pool = group.pool()?;
    let windows = plan.system.table.as_ref().map(|_| windows(plan, &pool));
    let fits = fits(&plan.system, &group, windows.as_ref().map(|windows| windows.as_deref()));
    let mut sections = vec![("groups", vec![group_line(&pool)])];
    if let Some(Some(windows)) = &windows {
        sections.push(("table", windows.iter().map(window_line).collect()));
    }
    Some(NetworkAdvice { cpu, tasks: tasks.iter().map(|task| task.name.clone()).collect(), sections, fits })
}

/// Makes the group, with slack because these threads also work for other threads.
fn group(system: &System, cpu: u32, period: Duration) -> Group {
    let wished = (period.as_nanos() / SHARE).max(MIN_WINDOW.as_nanos());
    let grid = system.macrotick.as_nanos();
    let length = Duration::from_nanos((wished + grid - 1) / grid * grid).min(period);
    let order = PoolOrder::Priority(PoolOrder::DEFAULT_SLICE);
    // `ktimers` is left out: not every kernel has it, and the network does not need it.
    let threads = KernelThread::ALL.iter().copied().filter(|thread| *thread != KernelThread::Ktimers);
    Group {
        windows: Some(Windows { order, slack: true, ..Windows::new(period, length) }),
        kernel_threads: threads.map(GroupThread::EachCpu).collect(),
        ..Group::named(free_name(system, cpu), vec![cpu])
    }
}

fn free_name(system: &System, cpu: u32) -> String {
    let taken = |name: &str| {
        system.task(name).is_some()
            || system.groups.iter().any(|group| group.name == name)
            || system.processes().any(|process| process.name == name)
    };
    let names = std::iter::successors(Some(format!("network-{cpu}")), |name| Some(format!("{name}-")));
    names.into_iter().find(|name| !taken(name)).unwrap_or_default()
}

/// Whether a plan with the group is possible. For a table by hand, `windows` has the windows of the group, or `None`
/// inside if there is no room.
fn fits(system: &System, group: &Group, windows: Option<Option<&[GivenWindow]>>) -> bool {
    let mut system = system.clone();
    system.groups.push(group.clone());
    match (windows, &mut system.table) {
        (Some(None), _) => false,
        (Some(Some(windows)), Some(table)) => {
            table.extend_from_slice(windows);
            system.problems().is_empty()
        }
        _ => plan(&system, Solver::FoldedOccupancy).is_ok(),
    }
}

/// Returns one window in each period of the pool, in the longest gap of the table. `None` if a period has no room.
fn windows(plan: &Plan, pool: &Pool) -> Option<Vec<GivenWindow>> {
    let cpu = pool.cpu?;
    let table = plan.tables.iter().find(|table| table.cpu == cpu)?;
    let lead = plan.system.lead.map_or(Duration::ZERO, |lead| lead.reserved());
    let mut all = Vec::new();
    for number in 0..plan.cycle / pool.period {
        let (from, to) = (pool.period * number, pool.period * (number + 1));
        // Free time lies before a window, or before the end.
        let mut free = from;
        let mut longest = (Duration::ZERO, from);
        for window in table.windows.iter().filter(|window| window.end() > from && window.offset < to) {
            let kept = if window.activate { lead } else { Duration::ZERO };
            longest = longest.max((window.offset - kept - free, free));
            free = free.max(window.end());
        }
        longest = longest.max((to - free, free));
        let (length, offset) = (pool.length, longest.1);
        if longest.0 < length {
            return None;
        }
        all.push(GivenWindow::new(&pool.name, cpu, offset, length));
    }
    Some(all)
}

fn group_line(pool: &Pool) -> String {
    let threads: Vec<String> = pool.kernel_threads.iter().map(GroupThread::name).collect();
    format!(
        "{{name: {}, windows: {{period: {}, length: {}, order: {}, slack: {}}}, cpus: [{}], kernel-threads: [{}]}}",
        pool.name,
        pool.period,
        pool.length,
        pool.order.name(),
        pool.slack,
        pool.cpu.unwrap_or(0),
        threads.join(", ")
    )
}

fn window_line(window: &GivenWindow) -> String {
    let GivenWindow { task, cpu, offset, length, .. } = window;
    format!("{{task: {task}, cpu: {cpu}, offset: {offset}, length: {length}}}")
}

/// Writes a hint and the lines to add.
impl fmt::Display for NetworkAdvice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tasks: Vec<String> = self.tasks.iter().map(|name| format!("`{name}`")).collect();
        let (verb, cpu) = (if tasks.len() == 1 { "uses" } else { "use" }, self.cpu);
        writeln!(
            f,
            "hint: {} {verb} the network. Kernel threads of CPU {cpu} do part of its work, but only when no other \
             thread needs the CPU.",
            tasks.join(", ")
        )?;
        match self.fits {
            true => writeln!(f, "      To give them windows, add:")?,
            false => writeln!(f, "      To give them windows, add (the plan has no room for them as it is):")?,
        }
        for (section, lines) in &self.sections {
            writeln!(f, "  {section}:")?;
            lines.iter().try_for_each(|line| writeln!(f, "    - {line}"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TASKS: &str = "tasks:
  - {name: s, period: 10ms, wcet: 1ms, run: {udp-send: {to: \"10.0.0.2:5000\"}}}
  - {name: r, period: 20ms, wcet: 1ms, run: {udp-receive: {at: \"10.0.0.2:5000\"}}}
";
    const POOL: &str = "{name: network-0, windows: {period: 10ms, length: 100us, order: priority, slack: true}, \
                        cpus: [0], kernel-threads: [ksoftirqd, rcuc, backlog_napi]}";

    fn of(text: &str) -> Vec<NetworkAdvice> {
        let system = System::parse(&format!("system: s\n{text}"), "s.yaml").unwrap_or_else(|errors| panic!("{errors}"));
        network_advice(&plan(&system, Solver::default_for(&system)).unwrap())
    }

    #[test]
    fn a_pool_is_proposed_and_then_no_more() {
        let advice = of(TASKS);
        let text = format!(
            "hint: `s`, `r` use the network. Kernel threads of CPU 0 do part of its work, but only when no other \
             thread needs the CPU.\n      To give them windows, add:\n  groups:\n    - {POOL}\n"
        );
        assert_eq!(advice.iter().map(ToString::to_string).collect::<Vec<_>>(), [text]);
        assert_eq!(of(&format!("{TASKS}groups:\n  - {POOL}\n")), []);
    }

    #[test]
    fn tasks_that_use_no_network_need_none() {
        assert_eq!(of("tasks:\n  - {name: a, period: 10ms, wcet: 1ms}\n"), []);
        let inside = "tasks:\n  - {name: a, period: 10ms, wcet: 1ms, namespace: n, run: {program: [x]}}\n\
                      namespaces:\n  - {name: n, address: 10.0.0.1/24}\n";
        assert_eq!(of(inside)[0].tasks, ["a"]);
    }

    #[test]
    fn a_table_by_hand_gets_windows_in_its_longest_gaps() {
        let table = |r: &str| {
            format!(
                "{TASKS}table:\n  - {{task: s, cpu: 0, offset: 1ms, length: 1ms, activate: true, deadline: true}}\n  - \
                 {{task: s, cpu: 0, offset: 11ms, length: 1ms, activate: true, deadline: true}}\n  - {{task: r, cpu: 0, \
                 offset: 12ms, length: {r}, activate: true, deadline: true}}\n"
            )
        };
        let advice = of(&table("1ms"));
        let windows = [(2, "2ms"), (13, "13ms")]
            .map(|(_, at)| format!("{{task: network-0, cpu: 0, offset: {at}, length: 100us}}"));
        assert_eq!(advice[0].sections[1], ("table", windows.to_vec()));
        assert!(advice[0].fits);
        let whole = format!("{}  - {}\n  - {}\ngroups:\n  - {POOL}\n", table("1ms"), windows[0], windows[1]);
        assert_eq!(of(&whole), []);
        // No time is free from 12 ms to the end of the cycle, but the time from 10 ms to 11 ms is.
        assert_eq!(of(&table("8ms"))[0].sections[1].1[1], "{task: network-0, cpu: 0, offset: 10ms, length: 100us}");
    }

    #[test]
    fn where_there_is_no_room_it_says_so() {
        let full = "tasks:\n  - {name: s, period: 10ms, wcet: 9500us, run: {udp-send: {to: \"10.0.0.2:5000\"}}}\n";
        let advice = of(full);
        assert!(!advice[0].fits);
        assert!(advice[0].to_string().contains("`s` uses the network") && advice[0].to_string().contains("no room"));
    }

    #[test]
    fn names_that_are_taken_are_avoided() {
        let advice = of(&format!("{TASKS}load:\n  - {{name: network-0, hog: {{}}}}\n"));
        assert!(advice[0].sections[0].1[0].starts_with("{name: network-0-, "));
    }
}
