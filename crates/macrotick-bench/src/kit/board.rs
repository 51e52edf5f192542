//! What the processes of a guest share, and how they begin together.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::clock::now_ns;
use super::process::Gate;

const MS: u64 = 1_000_000;
/// From the last preparation to time zero, for everybody to go to sleep.
const DELAY_NS: u64 = 50 * MS;
/// The ticks come at whole milliseconds. Time zero lies between two of them: no job of the high task has one.
const OFF_THE_TICK_NS: u64 = 300_000;
/// Room for the samples of the longest run.
pub const SAMPLES: usize = 8192;

/// What the processes share.
pub struct Board {
    /// Processes that have prepared.
    ready: AtomicU32,
    /// It is known when time zero is.
    begins: Gate,
    zero_ns: AtomicU64,
    /// What the measured task saw.
    pub samples: [AtomicU64; SAMPLES],
    /// How often the hostile process has read a timer.
    pub reads: AtomicU64,
    /// How often those had expired.
    pub expirations: AtomicU64,
}

/// Waits until so many processes have prepared; returns a time zero.
pub fn gather(board: &Board, processes: u32) -> u64 {
    while board.ready.load(Ordering::SeqCst) < processes {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    (now_ns() + DELAY_NS).next_multiple_of(MS) + OFF_THE_TICK_NS
}

/// Tells them time zero.
pub fn release(board: &Board, zero: u64) {
    board.zero_ns.store(zero, Ordering::SeqCst);
    board.begins.open();
}

impl Board {
    /// One more has prepared; waits until all have, and returns time zero.
    pub fn join(&self) -> u64 {
        self.ready.fetch_add(1, Ordering::SeqCst);
        self.begins.wait();
        self.zero_ns.load(Ordering::SeqCst)
    }

    /// The hostile process has read that a timer has expired, so many times.
    pub fn count_expirations(&self, expirations: u64) {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.expirations.fetch_add(expirations, Ordering::Relaxed);
    }
}
