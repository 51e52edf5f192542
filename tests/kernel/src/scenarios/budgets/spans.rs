//! When somebody ran, as seen by itself.

use super::PERIOD;
use crate::board::Board;
use crate::check::Check;
use crate::ensure;
use crate::scenarios::unit_ns;
use crate::sys;

/// When somebody ran: spans of the processor's time that are as good as uninterrupted.
#[derive(Clone, Copy)]
pub(super) struct Spans {
    board: Board,
    at: usize,
}

const MOST: usize = 500;
const WORDS: usize = 2 + 2 * MOST;

impl Spans {
    /// Places for several of them to record.
    pub(super) fn several<const N: usize>() -> [Spans; N] {
        let board = Board::new(N * WORDS);
        std::array::from_fn(|i| Spans { board, at: i * WORDS })
    }

    /// Runs for ever, or for so much processor time.
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

    /// Its pages are there from now on.
    pub(super) fn touch(&self) {
        (0..WORDS).for_each(|word| self.board.set(self.at + word, 0));
        self.board.set(self.at, u64::from(sys::now_ns() == 0) + u64::from(sys::cpu_time_ns() == 0));
    }

    /// Runs for ever.
    pub(super) fn hog(&self) -> ! {
        if self.count() == 0 {
            self.touch();
        }
        self.record(0);
        unreachable!("it runs for ever")
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.board.get(self.at) as usize
    }

    /// All of them.
    pub(super) fn all(&self) -> Vec<(u64, u64)> {
        let word = |i: usize| self.board.get(self.at + i);
        (0..self.count()).map(|i| (word(2 * i + 1), word(2 * i + 2))).collect()
    }

    /// Those that began since an instant, without the last one, which may go on.
    pub(super) fn since(&self, from: u64) -> Vec<(u64, u64)> {
        let mut all = self.all();
        all.pop();
        all.into_iter().filter(|&(begin, _)| begin >= from).collect()
    }
}

/// A refill by which those that were started have begun.
pub(in crate::scenarios) fn next_refill() -> u64 {
    let period = PERIOD * unit_ns();
    (sys::now_ns() / period + 4) * period + phase_ns()
}

/// How far refills are behind the multiples of the period.
pub(super) fn phase_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/sys/kernel/sched_ds_phase_ns").expect("the phase of refills");
    text.trim().parse().expect("a number")
}

/// A refill by which whoever is going to wait for it does.
pub(super) fn later() -> u64 {
    next_refill() + 60 * PERIOD * unit_ns()
}

/// Each span begins so many units after a refill, and lasts as long as it should, within three fifths of a unit.
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
