//! Times as short words.

use macrotick_model::Duration;

/// So many nanoseconds.
pub const fn ns(n: i64) -> Duration {
    Duration::from_nanos(n)
}

/// So many microseconds.
pub const fn us(n: i64) -> Duration {
    Duration::from_micros(n)
}

/// So many milliseconds.
pub const fn ms(n: i64) -> Duration {
    Duration::from_millis(n)
}
