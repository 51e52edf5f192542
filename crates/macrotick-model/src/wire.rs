//! A switched network: nodes, links between them, and the frames that cross it at planned instants.
//!
//! A link has one direction, and is a resource like a CPU: it sends one frame at a time, and no frame is interrupted.
//! Each node stores a frame and forwards it. The instants of a frame repeat with the period of its flow.

use crate::time::Duration;
use crate::units::{Size, Speed};

/// A switched network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wire {
    /// The hosts and switches.
    pub nodes: Vec<Node>,
    /// The links. A cable that sends in both directions is two links.
    pub links: Vec<Link>,
    /// A sender starts its frames at multiples of this time, at least 1 ns.
    pub tick: Duration,
}

impl Default for Wire {
    fn default() -> Wire {
        Wire { nodes: Vec::new(), links: Vec::new(), tick: Duration::from_nanos(1) }
    }
}

/// A host or a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// The unique name.
    pub name: String,
    /// The longest time from the end of a frame at the node until it can start on the next link. A node that forwards no
    /// frames, such as a host, has none.
    pub forwards: Option<Duration>,
}

/// A link in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// The number of the node that sends.
    pub from: usize,
    /// The number of the node that receives.
    pub to: usize,
    /// The speed.
    pub speed: Speed,
    /// The longest time from the instant of a frame until it starts: gates open a little late.
    pub opening: Duration,
    /// The least time from the end of a frame to the instant of the next one.
    pub gap: Duration,
    /// The time of a bit on the cable.
    pub propagation: Duration,
}

/// A message that is sent once in each period, as one frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireFlow {
    /// The unique name.
    pub name: String,
    /// The number of the node that sends it.
    pub from: usize,
    /// The number of the node that receives it.
    pub to: usize,
    /// The links of its way, in order. `None` lets the planner choose it.
    pub route: Option<Vec<usize>>,
    /// The time of the sender's job on the first link of the route, which is its CPU. The frame starts after the job.
    /// `None`: the first link is one like the others.
    pub job: Option<Duration>,
    /// The bytes for which the frame occupies a link, with preamble and gap (see [`ethernet`]).
    pub frame: Size,
    /// The period.
    pub period: Duration,
    /// The instant at which the frame is ready, within its period. `None` lets the planner choose it.
    pub ready: Option<Duration>,
    /// The longest time from there until the frame has arrived.
    pub deadline: Duration,
}

/// The way of a flow, and its instants there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Course {
    /// The numbers of the links, in order, and the instant at which the frame starts on each. The first frame is ready
    /// within the first period, so later instants can lie beyond it.
    pub hops: Vec<(usize, Duration)>,
}

/// Returns the bytes for which an Ethernet frame with this payload and the tag of a VLAN occupies a link.
pub fn ethernet(payload: Size) -> Size {
    /// Header, check sequence, tag, preamble and gap.
    const AROUND: u32 = 14 + 4 + 4 + 8 + 12;
    /// The shortest frame with its tag, preamble and gap.
    const SHORTEST: u32 = 68 + 8 + 12;
    Size::from_bytes(payload.bytes().saturating_add(AROUND).max(SHORTEST))
}

impl Link {
    /// Returns the longest time from the instant of a frame until its end.
    pub fn time(&self, frame: Size) -> Duration {
        self.opening + self.speed.time(frame.bytes())
    }
}

impl WireFlow {
    /// Returns the longest time from the instant of the flow on a link until the end of its frame, or of its job.
    pub fn time(&self, wire: &Wire, link: usize) -> Duration {
        let is_first = self.route.as_ref().and_then(|route| route.first()) == Some(&link);
        self.job.filter(|_| is_first).unwrap_or_else(|| wire.links[link].time(self.frame))
    }

    /// Returns the time for which no other flow can have a link.
    pub fn occupies(&self, wire: &Wire, link: usize) -> Duration {
        self.time(wire, link) + wire.links[link].gap
    }
}

impl Wire {
    /// Returns the time from the start of a frame on a link until it can start on the next one, or has arrived.
    pub fn hop(&self, link: usize, frame: Size) -> Duration {
        self.links[link].time(frame) + self.onwards(link)
    }

    /// Returns the time from the end of a frame on a link until it can start on the next one, or has arrived.
    pub fn onwards(&self, link: usize) -> Duration {
        let link = &self.links[link];
        link.propagation + self.nodes[link.to].forwards.unwrap_or(Duration::ZERO)
    }

    /// Returns the instant at which a frame with this course has arrived. A course without hops has none.
    pub fn arrival(&self, course: &Course, flow: &WireFlow) -> Option<Duration> {
        let (link, start) = *course.hops.last()?;
        Some(start + flow.time(self, link) + self.links[link].propagation)
    }
}
