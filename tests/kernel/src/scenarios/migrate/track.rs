//! The places and times of a thread.

use crate::board::Board;
use crate::check::Check;
use crate::ensure;
use crate::sys;

/// A time on one CPU in which the thread looked at the clock repeatedly.
#[derive(Clone, Copy, Debug)]
pub struct Stretch {
    pub cpu: u32,
    pub from_ns: u64,
    pub to_ns: u64,
}

/// The stretches of a thread, in shared memory. Word 0 is their number, and three words follow for each.
#[derive(Clone, Copy)]
pub struct Track {
    board: Board,
    capacity: usize,
    /// The longest time between two looks of a stretch.
    gap_ns: u64,
}

impl Track {
    /// Allocates a track for this many stretches. The track counts further ones but does not keep them.
    pub fn new(capacity: usize, gap_ns: u64) -> Track {
        Track { board: Board::new(1 + 3 * capacity), capacity, gap_ns }
    }

    /// Records the caller's current place. Only one thread may write to a track.
    pub fn look(&self) {
        let (before, now) = (sys::this_cpu(), sys::now_ns());
        if before != sys::this_cpu() {
            return; // it moved between the two; the next look records its place
        }
        let count = self.board.get(0) as usize;
        let last = (count.max(1) - 1).min(self.capacity - 1);
        let goes_on =
            count > 0 && self.board.get(1 + 3 * last) == u64::from(before) && now < self.end_of(last) + self.gap_ns;
        if goes_on {
            self.board.set(3 + 3 * last, now);
            return;
        }
        if count < self.capacity {
            let values = [u64::from(before), now, now];
            values.into_iter().enumerate().for_each(|(i, value)| self.board.set(1 + 3 * count + i, value));
        }
        self.board.set(0, count as u64 + 1);
    }

    fn end_of(&self, stretch: usize) -> u64 {
        self.board.get(3 + 3 * stretch)
    }

    /// Uses CPU time, and looks.
    pub fn spin(&self, ns: u64) {
        let end = sys::cpu_time_ns() + ns;
        while sys::cpu_time_ns() < end {
            self.look();
            // At this instruction QEMU ends a CPU's turn, which other CPUs need.
            sys::relax();
        }
    }

    /// Looks endlessly.
    pub fn hog(&self) -> ! {
        loop {
            self.look();
            sys::relax();
        }
    }

    /// Returns the stretches that were kept. The last one may continue.
    pub fn stretches(&self) -> Vec<Stretch> {
        let stretch = |at: usize| {
            let word = |i: usize| self.board.get(1 + 3 * at + i);
            Stretch { cpu: word(0) as u32, from_ns: word(1), to_ns: word(2) }
        };
        (0..self.capacity.min(self.board.get(0) as usize)).map(stretch).collect()
    }
}

/// The windows of one entity, to which its threads are limited: the CPU, the beginning and the end in a cycle.
pub struct Windows {
    pub epoch: u64,
    pub cycle: u64,
    pub windows: Vec<(u32, u64, u64)>,
    /// The greatest lateness of the interrupt at a window's end.
    pub late: u64,
}

impl Windows {
    /// Returns the window in which a stretch started, and the time that it ran after the window's end.
    fn of(&self, stretch: &Stretch) -> Option<(usize, u64)> {
        let phase = stretch.from_ns.checked_sub(self.epoch)? % self.cycle;
        let holds = |(cpu, from, to): &(u32, u64, u64)| *cpu == stretch.cpu && (*from..*to).contains(&phase);
        let window = self.windows.iter().position(holds)?;
        let end = phase + stretch.to_ns - stretch.from_ns;
        Some((window, end.saturating_sub(self.windows[window].2)))
    }

    /// Returns the thread's total time in each window, and its stretches outside, without their parts in windows.
    pub fn judge(&self, track: &Track) -> (Vec<u64>, Vec<Stretch>) {
        let (mut sums, mut outside) = (vec![0; self.windows.len()], Vec::new());
        for stretch in track.stretches() {
            let Some((window, behind)) = self.of(&stretch) else {
                outside.push(stretch);
                continue;
            };
            sums[window] += stretch.to_ns - stretch.from_ns - behind;
            if behind > self.late {
                outside.push(Stretch { from_ns: stretch.to_ns - behind, ..stretch });
            }
        }
        (sums, outside)
    }

    /// Checks that the thread was only in its windows. Returns its total time in each of them.
    pub fn ensure_inside(&self, track: &Track) -> Check<Vec<u64>> {
        let (sums, outside) = self.judge(track);
        let phase = outside.first().map(|stretch| stretch.from_ns.wrapping_sub(self.epoch) % self.cycle);
        ensure!(outside.is_empty(), "outside its windows, first at {phase:?} of {}: {outside:?}", self.cycle);
        Ok(sums)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_outside_is_found() {
        let windows = Windows { epoch: 1000, cycle: 100, windows: vec![(0, 0, 20), (1, 20, 40)], late: 5 };
        let of = |cpu, from_ns, to_ns| windows.of(&Stretch { cpu, from_ns, to_ns });
        assert_eq!(of(0, 1100, 1119), Some((0, 0)));
        assert_eq!(of(1, 1220, 1250), Some((1, 10)));
        assert_eq!(of(0, 1220, 1230), None, "the other CPU's window");
        assert_eq!(of(1, 1240, 1245), None, "behind it");
        assert_eq!(of(0, 990, 1010), None, "before the epoch");
    }
}
