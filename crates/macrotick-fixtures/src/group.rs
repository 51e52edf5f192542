//! Groups.

use macrotick_model::{Duration, Group};

/// A group on CPU 0 that leaves nothing open.
pub fn group(name: &str, priority: u32, budget: Duration) -> Group {
    Group { priority: Some(priority), budget: Some(budget), ..Group::named(name, vec![0]) }
}
