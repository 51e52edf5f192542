//! Memory that a scenario shares with the processes it forks.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use macrotick_uapi::Wait;

use crate::sys;

/// Words in shared memory, initially zero. The memory is never unmapped: the process of a scenario lives only for a
/// short time.
#[derive(Clone, Copy)]
pub struct Board {
    words: &'static [AtomicU64],
}

impl Board {
    /// Allocates a board with this many words.
    pub fn new(words: usize) -> Board {
        let bytes = words * 8;
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_POPULATE;
        // SAFETY: a fresh mapping; zeroes are valid atomics, and no code unmaps it.
        let words = unsafe {
            let at = libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0);
            assert!(at != libc::MAP_FAILED, "no shared memory");
            std::slice::from_raw_parts(at.cast::<AtomicU64>(), words)
        };
        Board { words }
    }

    /// Returns a word.
    pub fn word(&self, index: usize) -> &'static AtomicU64 {
        &self.words[index]
    }

    /// Returns all words.
    pub fn words(&self) -> &'static [AtomicU64] {
        self.words
    }

    /// Reads a word.
    pub fn get(&self, index: usize) -> u64 {
        self.words[index].load(Ordering::SeqCst)
    }

    /// Writes a word.
    pub fn set(&self, index: usize, value: u64) {
        self.words[index].store(value, Ordering::SeqCst);
    }

    /// Adds to a word.
    pub fn add(&self, index: usize, value: u64) {
        self.words[index].fetch_add(value, Ordering::SeqCst);
    }

    /// Returns the lower half of a word, for futex calls.
    pub fn futex(&self, index: usize) -> &'static AtomicU32 {
        // SAFETY: aligned, inside the mapping, and every access is atomic.
        unsafe { &*self.words[index].as_ptr().cast::<AtomicU32>() }
    }
}

/// One job, as its thread saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// The number of the job.
    pub number: u64,
    /// Its nominal instant, in nanoseconds.
    pub nominal_ns: u64,
    /// The thread's clock after the wait, in nanoseconds.
    pub start_ns: u64,
    /// The number of activations lost before.
    pub lost: u64,
    /// The CPU on which the job started.
    pub cpu: u32,
}

/// The jobs of a thread, in shared memory.
#[derive(Clone, Copy)]
pub struct Log {
    board: Board,
    capacity: usize,
}

impl Log {
    const WORDS: usize = 5;

    /// Allocates a log for this many jobs. The log counts further jobs but does not keep them.
    pub fn new(capacity: usize) -> Log {
        Log { board: Board::new(1 + capacity * Log::WORDS), capacity }
    }

    /// Adds a job. Only one thread may write to a log.
    pub fn push(&self, wait: &Wait) {
        let at = self.count();
        if at < self.capacity {
            let first = 1 + at * Log::WORDS;
            // A thread that is in a window at this instant was in it, and on its CPU, before.
            let cpu = u64::from(sys::this_cpu());
            let values = [wait.job, wait.nominal_ns, sys::now_ns(), wait.lost, cpu];
            values.into_iter().enumerate().for_each(|(i, value)| self.board.set(first + i, value));
        }
        self.board.set(0, at as u64 + 1);
    }

    /// Returns how many jobs were added.
    pub fn count(&self) -> usize {
        self.board.get(0) as usize
    }

    /// Returns the jobs that were kept.
    pub fn jobs(&self) -> Vec<Job> {
        let job = |at: usize| {
            let word = |i: usize| self.board.get(1 + at * Log::WORDS + i);
            Job { number: word(0), nominal_ns: word(1), start_ns: word(2), lost: word(3), cpu: word(4) as u32 }
        };
        (0..self.count().min(self.capacity)).map(job).collect()
    }
}
