//! What runs beside the tasks.

use macrotick_model::{Load, Process};

/// A process that computes without end.
pub fn hog(name: &str) -> Process {
    Process::named(name, Load::Hog)
}
