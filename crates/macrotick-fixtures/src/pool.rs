//! Groups with windows.

use macrotick_model::{Duration, Group, PoolOrder, Windows};

/// A group with windows only, on a CPU that the solver chooses, whose threads do not take turns.
pub fn pool(name: &str, period: Duration, length: Duration) -> Group {
    let windows = Windows { order: PoolOrder::Fifo, ..Windows::new(period, length) };
    Group { windows: Some(windows), ..Group::named(name, Vec::new()) }
}
