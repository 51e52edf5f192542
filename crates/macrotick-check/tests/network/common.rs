//! Ports, frames and results in short forms.

use macrotick_check::network::{Class, Fate, Frame, Gates, Link, Loss, Port};
use macrotick_model::{Duration, GateEntry, GateList, Instant};

pub fn ns(nanos: i64) -> Duration {
    Duration::from_nanos(nanos)
}

/// Makes a gate list from lengths in nanoseconds and the names of the open classes, separated by blanks.
pub fn list(entries: &[(i64, &str)]) -> GateList {
    let entry = |&(length, open): &(i64, &str)| GateEntry {
        length: ns(length),
        open: open.split_whitespace().map(str::to_owned).collect(),
    };
    let cycle = ns(entries.iter().map(|(length, _)| length).sum());
    GateList { interface: "left".into(), cycle, entries: entries.iter().map(entry).collect() }
}

/// Makes a port with 1 Gb/s, so that a byte takes 8 ns. The classes are `control` and `rest`.
pub fn port(entries: &[(i64, &str)]) -> Port {
    let names = ["control", "rest"];
    let mut port = Port::new("left", Link::ethernet(1_000_000_000), names.map(Class::new).into());
    if !entries.is_empty() {
        port.gates = Some(Gates::new(&names, &list(entries), Instant::from_nanos(0)).unwrap());
    }
    port
}

pub const CONTROL: usize = 0;
pub const REST: usize = 1;

/// Makes a frame without a tag.
pub fn frame(class: usize, content: u32, at: i64) -> Frame {
    Frame { class, content, tagged: false, at: Instant::from_nanos(at) }
}

/// Returns start and end of a frame that was sent.
pub fn times(fate: &Fate) -> (i64, i64) {
    match fate {
        Fate::Sent { start, end, .. } => (start.as_nanos(), end.as_nanos()),
        Fate::Lost { reason } => panic!("lost: {reason}"),
    }
}

pub fn overrun(fate: &Fate) -> i64 {
    match fate {
        Fate::Sent { overrun, .. } => overrun.as_nanos(),
        Fate::Lost { reason } => panic!("lost: {reason}"),
    }
}

pub fn loss(fate: &Fate) -> &Loss {
    match fate {
        Fate::Lost { reason } => reason,
        Fate::Sent { start, .. } => panic!("sent at {}", start.as_nanos()),
    }
}
