//! Groups with windows.

use macrotick_model::{Duration, Group, PoolOrder, Windows};

/// Returns a group with windows only. The solver chooses its CPU, and its threads do not take turns.
pub fn pool(name: &str, period: Duration, length: Duration) -> Group {
    let windows = Windows { order: PoolOrder::Fifo, ..Windows::new(period, length) };
    Group { windows: Some(windows), ..Group::named(name, Vec::new()) }
}
