//! Groups.

use macrotick_model::{Duration, Group};

/// Returns a group on CPU 0 with priority and budget.
pub fn group(name: &str, priority: u32, budget: Duration) -> Group {
    Group { priority: Some(priority), budget: Some(budget), ..Group::named(name, vec![0]) }
}
