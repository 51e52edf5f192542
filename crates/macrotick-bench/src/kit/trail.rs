//! Reading recorded paths of the kernel: the addresses of their instructions, in the order of execution.

use std::collections::HashSet;

use macrotick_lab::Symbols;

/// Where a function that is entered at `begin` has returned to its caller; `None` where the path ends before.
pub fn return_from(symbols: &Symbols, path: &[u64], begin: usize) -> Option<usize> {
    let caller = symbols.function(path[begin.checked_sub(1)?])?;
    let back = |&at: &u64| symbols.function(at) == Some(caller);
    path[begin..].iter().position(back).map(|after| begin + after)
}

/// Where the scheduler core tells windows what it has picked. What they do about that, such as to charge who has run, is a
/// part of the pick, though no class is asked.
pub const RUN: &str = "mt_run";
/// The same of groups, who are told last.
pub const RUN_GROUPS: &str = "mt_ds_run";

/// What the scheduler core asks the classes when it picks, in the order of precedence.
const CALLBACKS: [&str; 5] = ["balance", "pick_next_task", "pick_task", "put_prev_task", "set_next_task"];

/// The functions by which scheduling classes answer, where the kernel has them.
pub fn callbacks_of(symbols: &Symbols, classes: &[&str]) -> HashSet<u64> {
    let names = CALLBACKS.iter().flat_map(|call| classes.iter().map(move |class| format!("{call}_{class}")));
    names.filter_map(|name| symbols.address(&name)).collect()
}
