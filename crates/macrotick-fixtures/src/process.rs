//! Processes beside the tasks.

use macrotick_model::{Load, Process};

/// Returns a process that computes without end.
pub fn hog(name: &str) -> Process {
    Process::named(name, Load::Hog)
}
