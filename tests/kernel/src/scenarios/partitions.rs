//! Properties that the tests and manuals of Xenomai's SCHED_TP and of LITMUS^RT's table-driven reservations state,
//! checked with pools (docs/how-to/move-from-litmus-rt.md, docs/how-to/move-from-xenomai.md).

use std::sync::atomic::Ordering;

use macrotick_uapi::{self as abi, Device};

use super::pools::{ensure_only_inside, Stage};
use super::{unit_ns, Scenario};
use crate::board::Board;
use crate::check::{Check, Explain};
use crate::process::{self, hog, member};
use crate::sys::{self, SchedAttr};
use crate::table::Table;
use crate::{ensure, ensure_eq};

pub const ALL: &[Scenario] = &[
    Scenario::new("partition_order", partition_order).punctual(),
    Scenario::new("reservation_by_clock", reservation_by_clock).punctual(),
    Scenario::new("reservation_of_a_running_process", reservation_of_a_running_process).punctual(),
];

/// Returns the lateness limit of a thread that waits for its window or wakes up at its beginning. An instruction takes
/// 4 ns here, and several threads may wake up at once.
fn bound_ns() -> u64 {
    unit_ns() / 2
}

/// The marks of threads, with their instants. Word 0 is the epoch, word 1 the number of marks, and then the marks
/// follow.
#[derive(Clone, Copy)]
struct Marks {
    board: Board,
    capacity: usize,
}

#[derive(Clone, Copy, Debug)]
struct Mark {
    letter: char,
    /// The time since the epoch, in nanoseconds.
    at_ns: u64,
}

impl Marks {
    fn new(capacity: usize) -> Marks {
        Marks { board: Board::new(2 + capacity), capacity }
    }

    fn begin(&self, epoch: u64) {
        self.board.set(0, epoch);
    }

    fn await_epoch(&self) -> u64 {
        while self.board.get(0) == 0 {
            sys::sleep(unit_ns());
        }
        sys::sleep_until(self.board.get(0));
        self.board.get(0)
    }

    /// Adds a mark, with the instant in the upper 56 bits. Returns false if there is no room.
    fn add(&self, letter: u8) -> bool {
        let now = sys::now_ns() - self.board.get(0);
        let place = self.board.word(1).fetch_add(1, Ordering::SeqCst) as usize;
        let room = place < self.capacity;
        if room {
            self.board.set(2 + place, now << 8 | u64::from(letter));
        }
        room
    }

    fn all(&self) -> Vec<Mark> {
        let mark = |place| {
            let word: u64 = self.board.get(2 + place);
            Mark { letter: char::from(word as u8), at_ns: word >> 8 }
        };
        (0..self.capacity.min(self.board.get(1) as usize)).map(mark).collect()
    }
}

/// A partition of the frame: its letter, its beginning, and its number of cells.
const PARTITIONS: [(u8, u64, u64); 3] = [(b'C', 0, 10), (b'B', 10, 5), (b'A', 15, 2)];
const FRAME: u64 = 40;
const FRAMES: u64 = 10;

/// Checks the order of Xenomai's sched-tp and EVL's sched-tp-accuracy. Each partition has a thread that leaves a mark
/// and sleeps for 1.02 cells. Thus a window has as many marks as cells. A thread that wakes up after its window waits
/// for the next frame.
fn partition_order() -> Check {
    let (cell, device) = (4 * unit_ns(), Device::open()?);
    let table = PARTITIONS.iter().fold(Table::new(FRAME * cell), |table, (letter, begin, cells)| {
        table.window(&char::from(*letter).to_string(), 0, begin * cell, cells * cell, 0).pool(0, 0)
    });
    table.install(&device)?;
    let marks_in_a_frame: u64 = PARTITIONS.iter().map(|(_, _, cells)| cells).sum();
    let marks = Marks::new((2 * FRAMES * marks_in_a_frame) as usize);
    for (letter, ..) in PARTITIONS {
        member(&char::from(letter).to_string(), |_| {
            marks.await_epoch();
            while marks.add(letter) {
                sys::sleep(cell + cell / 50);
            }
            1
        })?;
    }
    hog(SchedAttr::other());
    let epoch = device.start(sys::now_ns() + 10 * cell).explain("start")?;
    marks.begin(epoch);
    sys::sleep_until(epoch + FRAMES * FRAME * cell - cell);
    let marks = marks.all();
    let order: String = marks.iter().map(|mark| mark.letter).collect();
    let frame = PARTITIONS.iter().map(|(letter, _, cells)| char::from(*letter).to_string().repeat(*cells as usize));
    ensure_eq!(order, frame.collect::<String>().repeat(FRAMES as usize), "the order of {FRAMES} frames");
    let mut marks = marks.into_iter();
    for frame in 0..FRAMES {
        // In its first frame, a thread may have to copy the pages that it shares with its parent.
        let most = if frame == 0 { cell } else { bound_ns() };
        for (_, begin, cells) in PARTITIONS {
            let begin = (frame * FRAME + begin) * cell;
            let window: Vec<Mark> = marks.by_ref().take(cells as usize).collect();
            let late = window[0].at_ns.checked_sub(begin);
            ensure!(late.is_some_and(|late| late < most), "first mark in the window at {begin}: {:?}", window[0]);
            let outside = window.iter().find(|mark| mark.at_ns >= begin + cells * cell);
            ensure!(outside.is_none(), "a mark behind the window at {begin}: {outside:?}");
        }
    }
    Ok(())
}

/// Checks a table that is started at 0, like those of LITMUS^RT: they count from zero of `CLOCK_MONOTONIC`. Its tasks
/// can sleep until their slots begin.
fn reservation_by_clock() -> Check {
    const SLOTS: [(u64, u64); 3] = [(10, 2), (20, 5), (40, 1)];
    const CYCLES: u64 = 10;
    let (u, device) = (unit_ns(), Device::open()?);
    let major = 50 * u;
    let slots = SLOTS.iter().fold(Table::new(major), |table, (at, cells)| table.window("r", 0, at * u, cells * u, 0));
    slots.pool(0, 0).install(&device)?;
    let marks = Marks::new(2 * SLOTS.len() * CYCLES as usize);
    member("r", |_| {
        let first = marks.await_epoch();
        for cycle in 0.. {
            for (at, _) in SLOTS {
                sys::sleep_until(first + cycle * major + at * u);
                marks.add(b'r');
            }
        }
        1
    })?;
    hog(SchedAttr::fifo(50));
    let epoch = device.start(0).explain("start")?;
    ensure_eq!(epoch % major, 0, "the epoch's place in a cycle that begins at zero");
    marks.begin(epoch + major);
    sys::sleep_until(epoch + (CYCLES + 1) * major - u);
    let instants = (0..CYCLES).flat_map(|cycle| SLOTS.map(|(at, _)| cycle * major + at * u));
    let marks = marks.all();
    ensure_eq!(marks.len(), SLOTS.len() * CYCLES as usize, "marks");
    for (mark, instant) in marks.into_iter().zip(instants) {
        let late = mark.at_ns.checked_sub(instant);
        ensure!(late.is_some_and(|late| late < bound_ns()), "{mark:?} in the slot at {instant}");
    }
    Ok(())
}

/// Checks `resctl -a`: a running process is attached, and its children are attached with it.
fn reservation_of_a_running_process() -> Check {
    let stage = Stage::new(abi::RR, 0)?;
    let forks = Board::new(1);
    let child = process::fork(|| {
        while forks.get(0) == 0 {
            sys::spin(stage.u / 10);
        }
        for index in 1..3 {
            process::fork(|| stage.watch(index));
        }
        stage.watch(0)
    });
    let pidfd = sys::pidfd_open(child.pid, 0).explain("pidfd")?;
    stage.device.bind(pidfd, "p").explain("bind")?;
    stage.await_threads(1)?;
    let epoch = stage.start()?;
    forks.set(0, 1);
    stage.await_threads(3)?;
    sys::sleep(2 * 20 * stage.u);
    for seen in stage.seen_in::<3>(20) {
        ensure_only_inside(seen, "the process or a child")?;
    }
    stage.ensure_undisturbed(epoch)
}
