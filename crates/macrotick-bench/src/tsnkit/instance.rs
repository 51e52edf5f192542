//! A system of tsnkit as a switched network, and a plan of it for tsnkit's simulator.

use macrotick_model::wire::{Course, Link, Node, Wire, WireFlow};
use macrotick_model::{Duration, Size, Speed};
use serde::{Deserialize, Serialize};

/// The step of tsnkit's simulator, in which its planners count, too.
const TICK: Duration = Duration::from_nanos(100);
/// The speed of the generator's links.
const SPEED: Speed = Speed::from_bits(1_000_000_000);

/// A system of tsnkit's generator. Times are nanoseconds.
#[derive(Deserialize)]
pub struct Drawn {
    links: Vec<DrawnLink>,
    streams: Vec<Stream>,
}

#[derive(Deserialize)]
struct DrawnLink {
    from: usize,
    to: usize,
    /// The time from the end of a frame on the link until the node can forward it.
    process: i64,
}

#[derive(Deserialize)]
struct Stream {
    from: usize,
    to: usize,
    /// The bytes that occupy a link.
    size: u32,
    period: i64,
    deadline: i64,
}

/// A plan for tsnkit's simulator. Times are nanoseconds.
#[derive(Serialize)]
pub struct Planned {
    cycle: i64,
    gates: Vec<((usize, usize), i64, i64)>,
    routes: Vec<Vec<(usize, usize)>>,
    offsets: Vec<i64>,
}

impl Drawn {
    /// Returns the network and its flows. A deadline of tsnkit contains the time until the receiver could forward the
    /// frame.
    pub fn network(&self) -> (Wire, Vec<WireFlow>) {
        let ns = Duration::from_nanos;
        let process = self.links.iter().map(|link| link.process).max().unwrap_or(0);
        let last = self.links.iter().map(|link| link.from.max(link.to)).max().unwrap_or(0);
        let is_host = |node| self.links.iter().filter(|link| link.from == node).count() == 1;
        let node = |node: usize| Node { name: node.to_string(), forwards: (!is_host(node)).then_some(ns(process)) };
        let link = |link: &DrawnLink| Link {
            from: link.from,
            to: link.to,
            speed: SPEED,
            opening: Duration::ZERO,
            gap: Duration::ZERO,
            propagation: Duration::ZERO,
        };
        let flow = |(number, stream): (usize, &Stream)| WireFlow {
            name: number.to_string(),
            from: stream.from,
            to: stream.to,
            route: None,
            job: None,
            frame: Size::from_bytes(stream.size),
            period: ns(stream.period),
            ready: None,
            deadline: ns(stream.deadline - process),
        };
        let links = self.links.iter().map(link).collect();
        let wire = Wire { nodes: (0..=last).map(node).collect(), links, tick: TICK };
        (wire, self.streams.iter().enumerate().map(flow).collect())
    }
}

impl Planned {
    /// Returns the plan with these courses. Each frame has an entry of its own in the gate lists.
    pub fn new(wire: &Wire, flows: &[WireFlow], courses: &[Course]) -> Planned {
        let cycle = flows.iter().fold(Duration::from_nanos(1), |all, flow| all.lcm(flow.period).unwrap_or(all));
        let ends = |link: usize| (wire.links[link].from, wire.links[link].to);
        let entries = |(flow, course): (&WireFlow, &Course)| {
            let (frame, period) = (flow.frame, flow.period);
            let hops = course.hops.clone();
            let of_hop = move |(link, start): (usize, Duration)| {
                let length = wire.links[link].time(frame);
                (0..cycle / period).map(move |turn| {
                    let start = (start + period * turn) % cycle;
                    (ends(link), start.as_nanos(), (start + length).as_nanos())
                })
            };
            hops.into_iter().flat_map(of_hop).collect::<Vec<_>>()
        };
        Planned {
            cycle: cycle.as_nanos(),
            gates: flows.iter().zip(courses).flat_map(entries).collect(),
            routes: courses.iter().map(|course| course.hops.iter().map(|(link, _)| ends(*link)).collect()).collect(),
            offsets: courses.iter().map(|course| course.hops[0].1.as_nanos()).collect(),
        }
    }
}
