//! The solver `null`: the table by hand.

use std::collections::BTreeMap;

use macrotick_model::{CpuTable, System, Window};

use crate::error::PlanError;

/// Returns the windows of the description, sorted and without a check.
pub(crate) fn tables(system: &System) -> Result<Vec<CpuTable>, PlanError> {
    let given = system.table.as_ref().ok_or(PlanError::NoTable)?;
    let mut tables: BTreeMap<u32, Vec<Window>> = BTreeMap::new();
    for window in given {
        tables.entry(window.cpu).or_default().push(Window {
            activate: window.activate,
            deadline: window.deadline,
            ..Window::new(&window.task, window.offset, window.length)
        });
    }
    for windows in tables.values_mut() {
        windows.sort_by_key(|window| window.offset);
    }
    Ok(tables.into_iter().map(|(cpu, windows)| CpuTable::new(cpu, windows)).collect())
}
