//! Times with short names.

use macrotick_model::Duration;

/// Returns a number of nanoseconds.
pub const fn ns(n: i64) -> Duration {
    Duration::from_nanos(n)
}

/// Returns a number of microseconds.
pub const fn us(n: i64) -> Duration {
    Duration::from_micros(n)
}

/// Returns a number of milliseconds.
pub const fn ms(n: i64) -> Duration {
    Duration::from_millis(n)
}
