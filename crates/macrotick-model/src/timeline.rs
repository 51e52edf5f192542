//! A plan as text for reading and comparing: one line per window, in order of time, or only one line per CPU.

use std::fmt::{Display, Write as _};

use crate::gates::{GateEntry, GateList};
use crate::plan::{CpuTable, Plan};
use crate::system::{Group, GroupTask, Lead};
use crate::time::Duration;

/// Returns the timeline of a plan.
///
/// ```text
/// cycle 10ms, solver null
/// cpu 0: 2 windows, 18.0 %
///   1100us ..     2500us   1400us  AD  sender
///   3500us ..     3900us    400us  A-  receiver
/// ```
///
/// `A` is an ACTIVATE, `D` a DEADLINE. With a lead, the first line names it: `lead 20us`, or `lead up to 20us` if the
/// deployment measures it. The line of each CPU then has the share of its leads (`leads 2.5 %`). Gate lists follow, with
/// the open classes of each entry (`-` if all gates are closed), then groups with their tasks.
pub fn timeline(plan: &Plan) -> String {
    text(plan, true)
}

/// Returns the timeline without the lines of windows and of entries of gate lists.
pub fn outline(plan: &Plan) -> String {
    text(plan, false)
}

fn text(plan: &Plan, whole: bool) -> String {
    let lead = match plan.system.lead {
        None => String::new(),
        Some(Lead::Fixed(lead)) => format!(", lead {lead}"),
        Some(Lead::Auto(at_most)) => format!(", lead up to {at_most}"),
    };
    let mut text = format!("cycle {}, solver {}{lead}\n", plan.cycle, plan.solver);
    for table in &plan.tables {
        cpu(&mut text, plan, table);
        if whole {
            windows(&mut text, table);
        }
    }
    for list in &plan.gates {
        gates(&mut text, list);
        if whole {
            entries(&mut text, list);
        }
    }
    for group in plan.system.servers() {
        self::group(&mut text, group, plan.system.server_period);
    }
    text
}

/// Writes a group. An open value is a question mark.
fn group(text: &mut String, group: &Group, period: Duration) {
    let cpus: Vec<String> = group.cpus.iter().map(u32::to_string).collect();
    let (name, priority, budget) = (&group.name, known(group.priority), known(group.budget));
    let _ = writeln!(text, "group {name}: priority {priority}, {budget} of {period} on CPU {}", cpus.join(", "));
    for GroupTask { name, priority, period, wcet, .. } in &group.tasks {
        let _ = writeln!(text, "  priority {:>2}  {wcet} of {period}  {name}", known(*priority));
    }
}

fn known<T: Display>(value: Option<T>) -> String {
    value.map_or("?".into(), |value| value.to_string())
}

fn cpu(text: &mut String, plan: &Plan, table: &CpuTable) {
    let cycle = plan.cycle;
    let busy: Duration = table.windows.iter().map(|window| window.length).sum();
    let activations = table.windows.iter().filter(|window| window.activate).count() as i64;
    let leads = plan
        .system
        .lead
        .map_or(String::new(), |lead| format!(", leads {}", share(lead.reserved() * activations, cycle)));
    let count = table.windows.len();
    let noun = if count == 1 { "window" } else { "windows" };
    let host = plan.system.host_of_cpus(&[table.cpu]).map_or(String::new(), |host| format!(" of {}", host.name));
    let _ = writeln!(text, "cpu {}{host}: {count} {noun}, {}{leads}", table.cpu, share(busy, cycle));
}

fn windows(text: &mut String, table: &CpuTable) {
    for window in &table.windows {
        let activate = if window.activate { 'A' } else { '-' };
        let deadline = if window.deadline { 'D' } else { '-' };
        let (offset, end, length) = (window.offset, window.end(), window.length);
        let _ = writeln!(text, "  {offset:>10} .. {end:>10} {length:>8}  {activate}{deadline}  {}", window.task);
    }
}

fn gates(text: &mut String, list: &GateList) {
    let count = list.entries.len();
    let noun = if count == 1 { "entry" } else { "entries" };
    let _ = writeln!(text, "interface {}: {count} {noun}, cycle {}", list.interface, list.cycle);
}

fn entries(text: &mut String, list: &GateList) {
    let mut offset = Duration::ZERO;
    for GateEntry { length, open } in &list.entries {
        let end = offset + *length;
        let open = if open.is_empty() { "-".into() } else { open.join(", ") };
        let _ = writeln!(text, "  {offset:>10} .. {end:>10} {length:>8}  {open}");
        offset = end;
    }
}

/// Returns tenths of a percent, rounded down like those of the judge. Integer arithmetic keeps the text equal
/// everywhere.
fn share(length: Duration, cycle: Duration) -> String {
    let permille = i128::from(length.as_nanos()) * 1000 / i128::from(cycle.as_nanos()).max(1);
    format!("{}.{} %", permille / 10, permille % 10)
}
