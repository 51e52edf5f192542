//! The trace of packets: the kernel's own events on their way, found by threads, buffers (`struct sk_buff`) and sockets.
//!
//! The thread of the client passes a packet to a device, and the kernel names the packet's buffer. Later events name
//! the buffer again, until it is in the queue of a socket. A thread reads the packets of a socket in their order.
//! Between two programs of one kernel the buffer stays the same. From another host, the answer is the packet that the
//! client reads.

use std::collections::{HashMap, VecDeque};

use macrotick_host::sys::Tid;

use crate::samples::Sample;

/// The points of the trace, in the order in which a packet passes them.
pub const POINTS: [&str; 10] = [
    "device-queue",
    "qdisc-enqueue",
    "qdisc-dequeue",
    "driver-send",
    "interrupt",
    "softirq",
    "stack-receive",
    "socket",
    "run",
    "read",
];

/// The kernel's trace points of these points, and those of a buffer that is freed.
pub const EVENTS: [&str; 12] = [
    "net/net_dev_queue",
    "qdisc/qdisc_enqueue",
    "qdisc/qdisc_dequeue",
    "net/net_dev_start_xmit",
    "irq/irq_handler_entry",
    "irq/softirq_entry",
    "net/netif_receive_skb",
    "sock/sk_data_ready",
    "sched/sched_switch",
    "sock/sock_recv_length",
    "skb/consume_skb",
    "skb/kfree_skb",
];

/// The places of some of them.
const DEVICE_QUEUE: usize = 0;
const DRIVER_SEND: usize = 3;
const INTERRUPT: usize = 4;
const SOFTIRQ: usize = 5;
const STACK_RECEIVE: usize = 6;
const SOCKET: usize = 7;
const RUN: usize = 8;
const READ: usize = 9;
const FREED: usize = 10;
const DROPPED: usize = 11;

/// An event of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The instant on the grid's clock, in ns.
    pub at: i64,
    /// The CPU.
    pub cpu: u32,
    /// The place of the trace point in [`EVENTS`].
    pub kind: usize,
    /// The thread: the next one of a switch, and otherwise the one that ran.
    pub thread: Tid,
    /// The buffer or the socket; 0 for events without.
    pub object: u64,
}

/// A point that a packet passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passed {
    /// The number of the packet.
    pub sequence: u64,
    /// Whether it was on the way back.
    pub back: bool,
    /// The place of the point in [`POINTS`].
    pub point: usize,
    /// The instant on the grid's clock, in ns.
    pub at: i64,
}

/// The number of a packet, and whether it is on the way back.
type Packet = (u64, bool);
/// The instants of a way, by points.
type Way = [Option<i64>; POINTS.len()];

/// A packet in the queue of a socket. Its number is unknown if it came from another host.
#[derive(Clone, Copy)]
struct Come {
    packet: Option<Packet>,
    way: Way,
}

/// The state of the kernel at an instant, as far as the events tell.
#[derive(Default)]
struct State {
    ways: HashMap<Packet, Way>,
    /// The packets of buffers.
    buffers: HashMap<u64, Packet>,
    /// The last interrupt, the last software interrupt, and the last received buffer of each CPU.
    interrupts: HashMap<u32, i64>,
    softirqs: HashMap<u32, i64>,
    received: HashMap<u32, (u64, Come)>,
    /// The queues of sockets, and reads that came before the event of their packet: the kernel lets readers in first.
    queues: HashMap<u64, VecDeque<Come>>,
    early: HashMap<u64, VecDeque<Event>>,
    /// When each thread began to run.
    began: HashMap<Tid, i64>,
    /// The packet that a thread other than the client read last.
    read: HashMap<Tid, u64>,
}

/// Returns when the client called send for a packet.
fn sent(samples: &[Sample], index: usize) -> Option<i64> {
    let sample = samples.get(index)?;
    Some(sample.nominal + sample.sent.ns()?)
}

/// Follows the packets of a client's thread through the events, which are in order. A packet can pass a point several
/// times, such as at a bridge. Of the points up to the driver the first time counts, and of the others the last time.
pub fn follow(events: &[Event], client: Tid, samples: &[Sample]) -> Vec<Passed> {
    let mut state = State::default();
    let mut next = 0;
    let mut answers: Vec<(i64, u64)> = samples
        .iter()
        .enumerate()
        .filter_map(|(index, sample)| Some((sample.nominal + sample.received.ns()?, index as u64)))
        .collect();
    answers.sort_unstable();
    let sent = |index| sent(samples, index);
    for event in events {
        let Event { at, cpu, kind, thread, object } = *event;
        match kind {
            INTERRUPT => drop(state.interrupts.insert(cpu, at)),
            SOFTIRQ => drop(state.softirqs.insert(cpu, at)),
            RUN => drop(state.began.insert(thread, at)),
            FREED | DROPPED => drop(state.buffers.remove(&object)),
            DEVICE_QUEUE if thread == client => {
                while next < samples.len() && sent(next).is_none_or(|sent| sent <= at) {
                    next += 1;
                }
                // The packet that was sent last, unless it already has a buffer: a long one has several.
                let Some(sequence) = next.checked_sub(1).map(|index| index as u64) else { continue };
                if !state.ways.contains_key(&(sequence, false)) {
                    state.begin((sequence, false), object, at);
                }
            }
            DEVICE_QUEUE => {
                // A bridge can pass on another packet in the time of the server's thread.
                if state.buffers.contains_key(&object) {
                    continue;
                }
                if let Some(sequence) = state.read.remove(&thread) {
                    state.begin((sequence, true), object, at);
                }
            }
            STACK_RECEIVE => state.receive(event),
            SOCKET => {
                if let Some((buffer, mut come)) = state.received.remove(&cpu) {
                    // Some kernels free a buffer that was read without an event.
                    state.buffers.remove(&buffer);
                    come.way[SOCKET] = Some(at);
                    match state.early.get_mut(&object).and_then(VecDeque::pop_front) {
                        Some(read) => state.finish(come, &read, client, samples, &answers),
                        None => state.queues.entry(object).or_default().push_back(come),
                    }
                }
            }
            READ => match state.queues.get_mut(&object).and_then(VecDeque::pop_front) {
                Some(come) => state.finish(come, event, client, samples, &answers),
                None => state.early.entry(object).or_default().push_back(*event),
            },
            _ => {
                let way = state.buffers.get(&object).and_then(|packet| state.ways.get_mut(packet));
                way.map(|way| way[kind].get_or_insert(at));
            }
        }
    }
    let mut passed: Vec<Passed> = Vec::new();
    for ((sequence, back), way) in state.ways {
        let each = way.into_iter().enumerate();
        passed.extend(each.filter_map(|(point, at)| Some(Passed { sequence, back, point, at: at? })));
    }
    passed.sort_by_key(|one| (one.sequence, one.back, one.point));
    passed
}

impl State {
    /// A thread passes a packet to a device.
    fn begin(&mut self, packet: Packet, buffer: u64, at: i64) {
        let way: &mut Way = self.ways.entry(packet).or_default();
        way[DEVICE_QUEUE] = Some(at);
        self.buffers.insert(buffer, packet);
    }

    /// The stack receives a buffer.
    fn receive(&mut self, event: &Event) {
        let Event { at, cpu, object, .. } = *event;
        let packet = self.buffers.get(&object).copied();
        let mut way = packet.and_then(|packet| self.ways.get(&packet)).copied().unwrap_or_default();
        way[STACK_RECEIVE] = Some(at);
        // Earlier ones were for other packets.
        let of_it = |at: &i64| way[DRIVER_SEND].or(way[DEVICE_QUEUE]).is_none_or(|sent| sent <= *at);
        let softirq = self.softirqs.get(&cpu).copied().filter(of_it);
        (way[INTERRUPT], way[SOFTIRQ]) = (self.interrupts.remove(&cpu).filter(of_it), softirq);
        if let Some(packet) = packet {
            self.ways.insert(packet, way);
        }
        self.received.insert(cpu, (object, Come { packet, way }));
    }

    /// A thread has read a packet of a socket. `answers` are the instants at which the client had the answers, in order,
    /// with the numbers of their packets.
    fn finish(&mut self, come: Come, read: &Event, client: Tid, samples: &[Sample], answers: &[(i64, u64)]) {
        let (Event { at, thread, .. }, Come { packet, mut way }) = (*read, come);
        // From now on it sends no answer to an earlier packet.
        self.read.remove(&thread);
        let answered = || {
            // The client reads its clock after the packet.
            let next = answers.partition_point(|(received, _)| *received < at);
            answers.get(next).map(|(_, sequence)| (*sequence, true))
        };
        let Some(packet) = packet.or_else(|| (thread == client).then(answered).flatten()) else { return };
        // Before the packet was sent, they were for others.
        let sent = sent(samples, packet.0 as usize);
        for point in [INTERRUPT, SOFTIRQ] {
            way[point] = way[point].filter(|at| sent.is_none_or(|sent| sent <= *at));
        }
        // A thread that ran already did not have to be woken.
        way[RUN] = self.began.get(&thread).copied().filter(|began| way[SOCKET].is_some_and(|come| come <= *began));
        way[READ] = Some(at);
        self.ways.insert(packet, way);
        if thread != client && !packet.1 {
            self.read.insert(thread, packet.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::Offset;

    const CLIENT: Tid = 10;
    const SERVER: Tid = 20;

    fn event(at: i64, kind: &str, thread: Tid, object: u64) -> Event {
        let kind = POINTS.iter().position(|name| *name == kind).unwrap_or(FREED);
        Event { at, cpu: 0, kind, thread, object }
    }

    fn sample(nominal: i64, received: i64) -> Sample {
        Sample { received: Offset::new(received), ..Sample::sent(nominal, nominal + 1) }
    }

    fn passed(events: &[Event], samples: &[Sample]) -> Vec<(u64, bool, &'static str, i64)> {
        let all = follow(events, CLIENT, samples);
        all.into_iter().map(|one| (one.sequence, one.back, POINTS[one.point], one.at)).collect()
    }

    /// Both programs are on one host: a buffer goes from one to the other. Other buffers and threads do not matter.
    #[test]
    fn a_round_trip_on_one_host_is_followed() {
        let events = [
            event(5, "device-queue", CLIENT, 1),
            event(102, "device-queue", 7, 3),
            event(103, "device-queue", CLIENT, 2),
            event(104, "qdisc-enqueue", CLIENT, 2),
            event(105, "qdisc-dequeue", 7, 2),
            event(106, "driver-send", 7, 2),
            event(107, "softirq", 7, 0),
            event(108, "stack-receive", 7, 2),
            event(109, "socket", 7, 50),
            event(110, "run", 7, 0),
            event(111, "run", SERVER, 0),
            event(112, "read", SERVER, 50),
            event(113, "device-queue", SERVER, 4),
            event(114, "stack-receive", 7, 4),
            event(115, "socket", 7, 60),
            event(117, "read", CLIENT, 60),
            event(203, "device-queue", CLIENT, 2),
        ];
        let out = [
            ("device-queue", 103),
            ("qdisc-enqueue", 104),
            ("qdisc-dequeue", 105),
            ("driver-send", 106),
            ("softirq", 107),
            ("stack-receive", 108),
            ("socket", 109),
            ("run", 111),
            ("read", 112),
        ]
        .map(|(name, at)| (0, false, name, at));
        let back = [("device-queue", 113), ("stack-receive", 114), ("socket", 115), ("read", 117)];
        let back = back.map(|(name, at)| (0, true, name, at));
        let expected = [&out[..], &back, &[(1, false, "device-queue", 203)]].concat();
        assert_eq!(passed(&events, &[sample(100, 18), sample(200, 18)]), expected);
    }

    /// The answer from another host is the packet that the client reads next. The buffer of a packet that has left can
    /// be used again.
    #[test]
    fn an_answer_from_another_host_is_that_of_the_packet_that_comes_next() {
        let events = [
            event(103, "device-queue", CLIENT, 1),
            event(104, "driver-send", CLIENT, 1),
            event(105, "freed", 7, 1),
            event(140, "stack-receive", 7, 9),
            event(141, "socket", 7, 70),
            event(150, "interrupt", 7, 0),
            event(151, "softirq", 7, 0),
            event(152, "stack-receive", 7, 1),
            event(153, "socket", 7, 60),
            event(154, "run", CLIENT, 0),
            event(155, "read", CLIENT, 60),
            event(160, "read", 7, 70),
        ];
        let out = [(0, false, "device-queue", 103), (0, false, "driver-send", 104)];
        let back = [
            ("interrupt", 150),
            ("softirq", 151),
            ("stack-receive", 152),
            ("socket", 153),
            ("run", 154),
            ("read", 155),
        ]
        .map(|(name, at)| (0, true, name, at));
        assert_eq!(passed(&events, &[sample(100, 56), sample(200, 20)]), [&out[..], &back].concat());
    }

    /// The kernel lets readers in before it says that a packet has come. A server can read what it does not answer.
    #[test]
    fn a_read_can_come_before_its_packet() {
        let events = [
            event(1, "interrupt", 7, 0),
            event(103, "device-queue", CLIENT, 1),
            event(108, "stack-receive", 7, 1),
            event(109, "read", SERVER, 50),
            event(110, "socket", 7, 50),
            event(120, "stack-receive", 7, 9),
            event(121, "socket", 7, 50),
            event(122, "read", SERVER, 50),
            event(123, "device-queue", SERVER, 3),
            event(203, "device-queue", CLIENT, 1),
            event(208, "stack-receive", 7, 1),
            event(209, "socket", 7, 50),
            event(210, "read", SERVER, 50),
        ];
        let way = |sequence, at: [i64; 4]| {
            let points = ["device-queue", "stack-receive", "socket", "read"];
            std::iter::zip(points, at).map(|(name, at)| (sequence, false, name, at)).collect::<Vec<_>>()
        };
        let expected = [way(0, [103, 108, 110, 109]), way(1, [203, 208, 209, 210])].concat();
        assert_eq!(passed(&events, &[sample(100, 18), sample(200, 18)]), expected);
    }

    #[test]
    fn nothing_is_followed_without_packets_or_events() {
        assert_eq!(passed(&[event(5, "device-queue", CLIENT, 1), event(6, "read", CLIENT, 1)], &[]), []);
        assert_eq!(passed(&[], &[sample(100, 1)]), []);
    }
}
