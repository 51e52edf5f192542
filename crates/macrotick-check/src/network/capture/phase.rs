//! The epoch of gates from the frames of a capture, where no clock tells it.

use macrotick_model::{Duration, Instant};

use crate::network::Gates;

/// The most frames that take part. Their number bounds the memory.
const MOST: usize = 200_000;

/// The epoch with which the most frames are in their windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fit {
    /// The epoch, on the clock of the capture. It is the latest one of its range: with it, some frame is exactly at the
    /// opening of its gate.
    pub epoch: Instant,
    /// The time by which the epoch could be earlier, without another number of frames in their windows.
    pub range: Duration,
    /// The number of frames in their windows.
    pub inside: u64,
    /// The number of frames of classes with a gate.
    pub frames: u64,
}

/// Returns the epoch that fits frames with these classes and instants. `None` without a frame of a class that opens and
/// closes.
///
/// A frame is in a window `[open, close)` of its class if the epoch is in `(frame - close, frame - open]`, modulo the
/// cycle. So each frame and window has one interval of epochs, and the most of them cover the result.
pub(super) fn fit(gates: &Gates, frames: impl Iterator<Item = (usize, Instant)>) -> Option<Fit> {
    let cycle = gates.cycle().as_nanos();
    let gated = frames.filter(|(class, _)| gates.windows(*class).next().is_some());
    let frames: Vec<(usize, i64)> = gated.take(MOST).map(|(class, at)| (class, at.as_nanos())).collect();
    let last = frames.last()?.1;
    // Changes of the number of frames in their windows, from an epoch on.
    let mut changes: Vec<(i64, i64)> = Vec::new();
    let mut covered = 0;
    for &(class, at) in &frames {
        for (open, close) in gates.windows(class) {
            let (from, to) = ((at - close + 1).rem_euclid(cycle), (at - open + 1).rem_euclid(cycle));
            // An interval over the end of the cycle covers its start.
            covered += i64::from(from > to);
            changes.extend([(from, 1), (to, -1)]);
        }
    }
    changes.sort_unstable();
    let mut best = (i64::MIN, 0, 0);
    let mut index = 0;
    let mut start = 0;
    while start < cycle {
        while changes.get(index).is_some_and(|(at, _)| *at == start) {
            covered += changes[index].1;
            index += 1;
        }
        let end = changes.get(index).map_or(cycle, |(at, _)| *at);
        if covered > best.0 {
            best = (covered, start, end);
        }
        start = end;
    }
    let (inside, start, end) = best;
    // The start of the last cycle before the last frame.
    let phase = end - 1;
    let epoch = last - (last - phase).rem_euclid(cycle);
    let range = Duration::from_nanos(end - 1 - start);
    let (epoch, inside, frames) = (Instant::from_nanos(epoch), inside as u64, frames.len() as u64);
    Some(Fit { epoch, range, inside, frames })
}

#[cfg(test)]
mod tests {
    use macrotick_model::{GateEntry, GateList};

    use super::*;

    fn gates() -> Gates {
        let entry = |length, open: &str| GateEntry { length: Duration::from_nanos(length), open: vec![open.into()] };
        let entries = vec![entry(700, "rest"), entry(300, "control")];
        let list = GateList { interface: "left".into(), cycle: Duration::from_nanos(1000), entries };
        Gates::new(&["control", "rest"], &list, Instant::default()).unwrap()
    }

    #[test]
    fn the_epoch_puts_the_earliest_frame_at_its_opening() {
        let epoch = 123_456_789;
        let frames: Vec<(usize, Instant)> = (0..100)
            .flat_map(|cycle| {
                [(0, epoch + cycle * 1000 + 700 + cycle % 5), (1, epoch + cycle * 1000 + 13 * cycle % 700)]
            })
            .map(|(class, at)| (class, Instant::from_nanos(at)))
            .collect();
        let fit = fit(&gates(), frames.into_iter()).unwrap();
        assert_eq!((fit.inside, fit.frames), (200, 200));
        assert_eq!((fit.epoch.as_nanos() - epoch).rem_euclid(1000), 0);
        assert!(fit.range < Duration::from_nanos(14), "{fit:?}");
    }

    #[test]
    fn a_stray_frame_does_not_move_the_epoch() {
        let stamps = [1700, 2702, 3650, 4701].map(|at| (0, Instant::from_nanos(at)));
        // With an epoch of 950 modulo 1000 all four frames fit: the window has 300 ns.
        let four = fit(&gates(), stamps.into_iter()).unwrap();
        assert_eq!((four.inside, four.epoch.as_nanos().rem_euclid(1000)), (4, 950));
        let stamps = [1700, 2702, 3300, 4701].map(|at| (0, Instant::from_nanos(at)));
        let three = fit(&gates(), stamps.into_iter()).unwrap();
        assert_eq!((three.inside, three.epoch.as_nanos().rem_euclid(1000)), (3, 0));
        assert_eq!(fit(&gates(), std::iter::empty()), None);
    }
}
