//! Plans and their tables.

use macrotick_model::{CpuTable, Duration, Plan, System, Window};

/// Returns a window. It releases a job if `flags` contains an `A`. The end of the window is the job's deadline if they
/// contain a `D`.
///
/// # Panics
///
/// Panics if `flags` contains another letter.
#[track_caller]
pub fn window(task: &str, offset: Duration, length: Duration, flags: &str) -> Window {
    assert!(flags.chars().all(|flag| "AD".contains(flag)), "window flags `{flags}`: A is ACTIVATE, D is DEADLINE");
    let (activate, deadline) = (flags.contains('A'), flags.contains('D'));
    Window { activate, deadline, ..Window::new(task, offset, length) }
}

/// Returns the table of one CPU.
pub fn table(cpu: u32, windows: impl IntoIterator<Item = Window>) -> CpuTable {
    CpuTable::new(cpu, windows.into_iter().collect())
}

/// Returns the tables of a host with windows on CPU 0 only.
pub fn tables(windows: impl IntoIterator<Item = Window>) -> Vec<CpuTable> {
    vec![table(0, windows)]
}

/// Returns a plan without a solver.
pub fn by_hand(system: System, cycle: Duration, tables: Vec<CpuTable>) -> Plan {
    Plan::new("hand", cycle, tables, system)
}
