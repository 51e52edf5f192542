//! Reading recorded paths of the kernel: the addresses of their instructions, in the order of execution.

use macrotick_lab::Symbols;

/// Where a function that is entered at `begin` has returned to its caller; `None` where the path ends before.
pub fn return_from(symbols: &Symbols, path: &[u64], begin: usize) -> Option<usize> {
    let caller = symbols.function(path[begin.checked_sub(1)?])?;
    let back = |&at: &u64| symbols.function(at) == Some(caller);
    path[begin..].iter().position(back).map(|after| begin + after)
}
