//! The in-packet trace: kernel events that stamp a packet on its way.
//!
//! The kernel side is off by default. A packet with room for a trace is an ordinary packet for a kernel that does not
//! stamp. A kernel that has the trace point [`EVENT`] emits it for each stamp as well, also when the packet is full.

use macrotick_model::Duration;

use crate::packet::Stamp;

/// The points of the trace, in the order in which a packet passes them. Their numbers are positions here, from 1.
pub const POINTS: [&str; 10] = [
    "send-call",
    "qdisc-enqueue",
    "qdisc-dequeue",
    "driver-send",
    "interrupt",
    "poll",
    "stack-receive",
    "socket-enqueue",
    "wake-up",
    "receive-call",
];

/// The trace point that tells of a stamp: `run=N sequence=N point=N`.
pub const EVENT: &str = "macrotick/macrotick_packet";

/// Returns the name of a point.
pub fn name(point: u16) -> &'static str {
    let index = usize::from(point).wrapping_sub(1);
    POINTS.get(index).copied().unwrap_or("unknown")
}

/// A kernel event, as tracefs tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    /// The run of the packet.
    pub run: u64,
    /// The sequence number of the packet.
    pub sequence: u64,
    /// The event. Its instant is on `CLOCK_MONOTONIC`, in whole microseconds.
    pub stamp: Stamp,
}

/// Reads the lines of `trace` in tracefs; lines of other events are ignored.
///
/// ```text
/// probe-42  [001] d..2.  12.345678: macrotick_packet: run=7 sequence=3 point=4
/// ```
pub fn parse(text: &str) -> Vec<Told> {
    text.lines().filter_map(line).collect()
}

fn line(line: &str) -> Option<Told> {
    let (head, fields) = line.split_once(": macrotick_packet: ")?;
    let (before, at) = head.trim_end().rsplit_once(' ')?;
    let cpu = before.rsplit_once('[')?.1.split_once(']')?.0.parse().ok()?;
    let field = |name: &str| {
        let value = fields.split_whitespace().find_map(|field| field.strip_prefix(name)?.strip_prefix('='));
        value?.parse::<u64>().ok()
    };
    let at = format!("{at}s").parse::<Duration>().ok()?.as_nanos();
    let stamp = Stamp { point: u16::try_from(field("point")?).ok()?, cpu, at };
    Some(Told { run: field("run")?, sequence: field("sequence")?, stamp })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_tracefs_are_read() {
        let text = "# tracer: nop\n\
            \x20 probe-42 [001] d..2. 12.345678: macrotick_packet: run=7 sequence=3 point=4\n\
            \x20 a: b-7   [000] ..... 1.5: sched_switch: run=7 sequence=3 point=4\n\
            \x20 a: b [x]-7 [003] ..... 1.000001: macrotick_packet: run=1 sequence=2 point=99999\n\
            \x20 a: b [x]-7 [003] ..... 1.000001: macrotick_packet: run=1 sequence=2 point=99\n";
        let first = Told { run: 7, sequence: 3, stamp: Stamp { point: 4, cpu: 1, at: 12_345_678_000 } };
        let second = Told { run: 1, sequence: 2, stamp: Stamp { point: 99, cpu: 3, at: 1_000_001_000 } };
        assert_eq!(parse(text), [first, second]);
    }

    #[test]
    fn points_have_names() {
        assert_eq!([name(0), name(1), name(10), name(11)], ["unknown", "send-call", "receive-call", "unknown"]);
    }
}
