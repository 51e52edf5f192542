//! A plan as text: one line per window in order of time, made to be read and compared.

use std::fmt::Write as _;

use crate::plan::{CpuTable, Plan};
use crate::time::Duration;

/// The timeline of a plan.
///
/// ```text
/// cycle 10ms, solver null
/// cpu 0: 2 windows, 18.0 %
///       1100us ..     2500us   1400us  AD  sender
///       3500us ..     3900us    400us  A-  receiver
/// ```
///
/// `A` marks an ACTIVATE, `D` a DEADLINE.
pub fn timeline(plan: &Plan) -> String {
    let mut text = format!("cycle {}, solver {}\n", plan.cycle, plan.solver);
    for table in &plan.tables {
        cpu(&mut text, table, plan.cycle);
    }
    text
}

fn cpu(text: &mut String, table: &CpuTable, cycle: Duration) {
    let busy: Duration = table.windows.iter().map(|window| window.length).sum();
    // Tenths of a percent, rounded down: exact integer arithmetic keeps the text the same everywhere.
    let permille = i128::from(busy.as_nanos()) * 1000 / i128::from(cycle.as_nanos()).max(1);
    let (count, whole, tenth) = (table.windows.len(), permille / 10, permille % 10);
    let noun = if count == 1 { "window" } else { "windows" };
    let _ = writeln!(text, "cpu {}: {count} {noun}, {whole}.{tenth} %", table.cpu);
    for window in &table.windows {
        let activate = if window.activate { 'A' } else { '-' };
        let deadline = if window.deadline { 'D' } else { '-' };
        let (offset, end, length) = (window.offset, window.end(), window.length);
        let _ = writeln!(text, "  {offset:>10} .. {end:>10} {length:>8}  {activate}{deadline}  {}", window.task);
    }
}
