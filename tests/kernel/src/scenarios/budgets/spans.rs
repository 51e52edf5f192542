//! The spans in which a thread ran, as it sees them itself.

use super::PERIOD;
use crate::board::Board;
use crate::check::Check;
use crate::ensure;
use crate::scenarios::unit_ns;
use crate::sys;

/// The spans in which a thread ran, with only short interruptions.
#[derive(Clone, Copy)]
pub(super) struct Spans {
    board: Board,
    at: usize,
}

const MOST: usize = 500;
const WORDS: usize = 2 + 2 * MOST;

impl Spans {
    /// Allocates places for several threads.
    pub(super) fn several<const N: usize>() -> [Spans; N] {
        let board = Board::new(N * WORDS);
        std::array::from_fn(|i| Spans { board, at: i * WORDS })
    }

    /// Records spans endlessly (for 0), or for this much CPU time.
    pub(super) fn record(&self, limit_ns: u64) {
        let (mut count, mut last, begin) = (0, 0, sys::cpu_time_ns());
        while limit_ns == 0 || sys::cpu_time_ns() - begin < limit_ns {
            let now = sys::now_ns();
            if now - last > unit_ns() / 2 && count < MOST {
                count += 1;
                self.board.set(self.at + 2 * count - 1, now);
            }
            self.board.set(self.at + 2 * count, now);
            self.board.set(self.at, count as u64);
            last = now;
        }
    }

    /// Takes the page faults of the record before its use.
    pub(super) fn touch(&self) {
        (0..WORDS).for_each(|word| self.board.set(self.at + word, 0));
        self.board.set(self.at, u64::from(sys::now_ns() == 0) + u64::from(sys::cpu_time_ns() == 0));
    }

    /// Records spans endlessly.
    pub(super) fn hog(&self) -> ! {
        if self.count() == 0 {
            self.touch();
        }
        self.record(0);
        unreachable!("it runs for ever")
    }

    /// Returns the number of spans.
    pub(super) fn count(&self) -> usize {
        self.board.get(self.at) as usize
    }

    /// Returns all spans.
    pub(super) fn all(&self) -> Vec<(u64, u64)> {
        let word = |i: usize| self.board.get(self.at + i);
        (0..self.count()).map(|i| (word(2 * i + 1), word(2 * i + 2))).collect()
    }

    /// Returns the spans that began since an instant, without the last one, which may continue.
    pub(super) fn since(&self, from: u64) -> Vec<(u64, u64)> {
        let mut all = self.all();
        all.pop();
        all.into_iter().filter(|&(begin, _)| begin >= from).collect()
    }
}

/// Returns a refill by which forked threads have started.
pub(in crate::scenarios) fn next_refill() -> u64 {
    let period = PERIOD * unit_ns();
    (sys::now_ns() / period + 4) * period + phase_ns()
}

/// Returns the distance of refills from the multiples of the period.
pub(super) fn phase_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/sys/kernel/sched_ds_phase_ns").expect("the phase of refills");
    text.trim().parse().expect("a number")
}

/// Returns a refill that is late enough for threads to prepare for it.
pub(super) fn later() -> u64 {
    next_refill() + 60 * PERIOD * unit_ns()
}

/// Checks that each span begins this many units after a refill and has this length, within three fifths of a unit.
pub(super) fn ensure_spans(spans: &[(u64, u64)], after: u64, length: u64) -> Check {
    let (u, period, offset) = (unit_ns(), PERIOD * unit_ns(), phase_ns());
    let shown = || {
        let in_units = |&(begin, end): &(u64, u64)| {
            let phase = ((begin - offset) % period) as f64 / u as f64;
            format!("{phase:.2}+{:.2}", (end - begin) as f64 / u as f64)
        };
        spans.iter().take(12).map(in_units).collect::<Vec<_>>().join(" ")
    };
    for &(begin, end) in spans {
        let (phase, long) = ((begin - offset) % period, end - begin);
        let is_there = phase.abs_diff(after * u) <= 3 * u / 5;
        ensure!(is_there && long.abs_diff(length * u) <= 3 * u / 5, "{} instead of {after}+{length} units", shown());
    }
    Ok(())
}
