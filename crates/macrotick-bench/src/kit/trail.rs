//! Reads recorded paths of the kernel: the addresses of their instructions, in the order of execution.

use std::collections::HashSet;

use macrotick_lab::Symbols;

/// Returns the position where a function that is entered at `begin` has returned to its caller; `None` if the path ends
/// before.
pub fn return_from(symbols: &Symbols, path: &[u64], begin: usize) -> Option<usize> {
    let caller = symbols.function(path[begin.checked_sub(1)?])?;
    let back = |&at: &u64| symbols.function(at) == Some(caller);
    path[begin..].iter().position(back).map(|after| begin + after)
}

/// The scheduler core calls this to report its choice to the windows. Their work, such as to charge the previous
/// thread, is a part of the pick, although it is not a callback of a class.
pub const RUN: &str = "mt_run";
/// The scheduler core calls this to report its choice to the groups. It is the last report.
pub const RUN_GROUPS: &str = "mt_ds_run";

/// The callbacks of the classes in a pick, in the order of precedence.
const CALLBACKS: [&str; 5] = ["balance", "pick_next_task", "pick_task", "put_prev_task", "set_next_task"];

/// Returns the addresses of the classes' callbacks that the kernel has.
pub fn callbacks_of(symbols: &Symbols, classes: &[&str]) -> HashSet<u64> {
    let names = CALLBACKS.iter().flat_map(|call| classes.iter().map(move |class| format!("{call}_{class}")));
    names.filter_map(|name| symbols.address(&name)).collect()
}
