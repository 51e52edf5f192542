//! The scheduler's events of a thread.

/// A change of a thread's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// A blocked thread becomes ready.
    Wakes,
    /// A CPU begins to run it.
    Runs,
    /// The CPU runs another thread, and this one stays ready.
    Preempted,
    /// The thread blocks, or ends.
    Blocks,
}

/// A change of a thread's state, with its instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The instant, in nanoseconds of `CLOCK_MONOTONIC`.
    pub at: i64,
    /// The thread's id.
    pub thread: i32,
    /// The change.
    pub change: Change,
}
