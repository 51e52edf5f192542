//! The memory that the processes of a guest share, and their common start.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::clock::now_ns;
use super::process::Gate;

const MS: u64 = 1_000_000;
/// The time from the last preparation to time zero, in which all processes go to sleep.
const DELAY_NS: u64 = 50 * MS;
/// The ticks come at whole milliseconds. Time zero lies between two ticks: no job of the high task has a tick.
const OFF_THE_TICK_NS: u64 = 300_000;
/// Room for the samples of the longest run.
pub const SAMPLES: usize = 8192;

/// The memory that the processes share.
pub struct Board {
    /// The number of processes that have prepared.
    ready: AtomicU32,
    /// Opens when time zero is set.
    begins: Gate,
    zero_ns: AtomicU64,
    /// The samples of the measured task.
    pub samples: [AtomicU64; SAMPLES],
    /// The number of timer reads of the hostile process.
    pub reads: AtomicU64,
    /// The number of expirations that these reads returned.
    pub expirations: AtomicU64,
}

/// Waits until a number of processes have prepared; returns a time zero.
pub fn gather(board: &Board, processes: u32) -> u64 {
    while board.ready.load(Ordering::SeqCst) < processes {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    (now_ns() + DELAY_NS).next_multiple_of(MS) + OFF_THE_TICK_NS
}

/// Sets time zero, and lets the processes go.
pub fn release(board: &Board, zero: u64) {
    board.zero_ns.store(zero, Ordering::SeqCst);
    board.begins.open();
}

impl Board {
    /// Counts the calling process as prepared, waits until all are, and returns time zero.
    pub fn join(&self) -> u64 {
        self.ready.fetch_add(1, Ordering::SeqCst);
        self.begins.wait();
        self.zero_ns.load(Ordering::SeqCst)
    }

    /// Counts one timer read of the hostile process with this number of expirations.
    pub fn count_expirations(&self, expirations: u64) {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.expirations.fetch_add(expirations, Ordering::Relaxed);
    }
}
