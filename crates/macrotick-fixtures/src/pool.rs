//! Pools.

use macrotick_model::{Duration, Pool, PoolOrder};

/// A pool whose threads do not take turns.
pub fn pool(name: &str, period: Duration, budget: Duration) -> Pool {
    Pool { order: PoolOrder::Fifo, ..Pool::named(name, period, budget) }
}
