//! Switched networks with random flows.

use macrotick_model::wire::{ethernet, Link, Node, Wire, WireFlow};
use macrotick_model::{Duration, Size, Speed};

use crate::draw::Random;

/// The switches of a network, and the links between them. Each cable sends in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topology {
    /// A line of switches.
    Line(usize),
    /// A ring of switches.
    Ring(usize),
    /// A mesh of so many switches in each of two directions.
    Mesh(usize, usize),
    /// A fat tree of switches with so many ports, an even number (Leiserson 1985; Al-Fares and others 2008).
    FatTree(usize),
}

/// The flows of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traffic {
    /// The number of flows.
    pub flows: usize,
    /// The hosts at each switch with hosts. A switch of a fat tree has half as many as it has ports, instead.
    pub hosts: usize,
}

const SPEED: Speed = Speed::from_bits(1_000_000_000);
const PROPAGATION: Duration = Duration::from_nanos(500);
const FORWARDS: Duration = Duration::from_micros(2);
/// Periods and their weights: most flows of a plant are slow.
const PERIODS_US: [i64; 8] = [1000, 2000, 2000, 4000, 4000, 8000, 8000, 8000];

/// Returns a network and its flows between random hosts. The planner chooses their ready instants, and each deadline is
/// the period.
pub fn switched(seed: u64, topology: Topology, traffic: Traffic) -> (Wire, Vec<WireFlow>) {
    let mut network = Network::default();
    network.build(topology, traffic.hosts);
    let mut random = Random::new(seed);
    let hosts = network.hosts;
    let flow = |number: usize| {
        let from = random.one(&hosts);
        let to = std::iter::repeat_with(|| random.one(&hosts)).find(|to| *to != from).expect("there are several hosts");
        let period = Duration::from_micros(random.one(&PERIODS_US));
        let frame = ethernet(Size::from_bytes(random.between(46, 1500) as u32));
        WireFlow {
            name: format!("f{number}"),
            from,
            to,
            route: None,
            job: None,
            frame,
            period,
            ready: None,
            deadline: period,
        }
    };
    let flows = (0..traffic.flows).map(flow).collect();
    (network.wire, flows)
}

#[derive(Default)]
struct Network {
    wire: Wire,
    hosts: Vec<usize>,
}

impl Network {
    fn build(&mut self, topology: Topology, hosts: usize) {
        match topology {
            Topology::Line(count) => {
                let switches = self.switches(count);
                switches.windows(2).for_each(|pair| self.cable(pair[0], pair[1]));
                self.attach(&switches, hosts);
            }
            Topology::Ring(count) => {
                let switches = self.switches(count);
                (0..count).for_each(|at| self.cable(switches[at], switches[(at + 1) % count]));
                self.attach(&switches, hosts);
            }
            Topology::Mesh(width, height) => {
                let switches = self.switches(width * height);
                for at in 0..width * height {
                    if at % width + 1 < width {
                        self.cable(switches[at], switches[at + 1]);
                    }
                    if at + width < width * height {
                        self.cable(switches[at], switches[at + width]);
                    }
                }
                self.attach(&switches, hosts);
            }
            Topology::FatTree(ports) => self.fat_tree(ports / 2),
        }
    }

    /// Builds a fat tree of switches with twice `half` ports: `half` squared core switches, and twice `half` pods.
    fn fat_tree(&mut self, half: usize) {
        let core = self.switches(half * half);
        for _ in 0..2 * half {
            let (upper, lower) = (self.switches(half), self.switches(half));
            for (index, &above) in upper.iter().enumerate() {
                core[index * half..(index + 1) * half].iter().for_each(|&core| self.cable(above, core));
                lower.iter().for_each(|&below| self.cable(below, above));
            }
            self.attach(&lower, half);
        }
    }

    fn node(&mut self, name: String, forwards: Option<Duration>) -> usize {
        self.wire.nodes.push(Node { name, forwards });
        self.wire.nodes.len() - 1
    }

    fn switches(&mut self, count: usize) -> Vec<usize> {
        (0..count).map(|_| self.node(format!("s{}", self.wire.nodes.len()), Some(FORWARDS))).collect()
    }

    fn attach(&mut self, switches: &[usize], hosts: usize) {
        for &switch in switches {
            for _ in 0..hosts {
                let host = self.node(format!("h{}", self.hosts.len()), None);
                self.hosts.push(host);
                self.cable(host, switch);
            }
        }
    }

    fn cable(&mut self, one: usize, other: usize) {
        for (from, to) in [(one, other), (other, one)] {
            self.wire.links.push(Link {
                from,
                to,
                speed: SPEED,
                opening: Duration::ZERO,
                gap: Duration::ZERO,
                propagation: PROPAGATION,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_have_the_switches_and_cables_of_their_kind() {
        let count = |topology| {
            let (wire, flows) = switched(1, topology, Traffic { flows: 10, hosts: 2 });
            let switches = wire.nodes.iter().filter(|node| node.forwards.is_some()).count();
            assert!(flows.iter().all(|flow| flow.from != flow.to && flow.deadline == flow.period));
            (switches, wire.nodes.len() - switches, wire.links.len() / 2)
        };
        assert_eq!(count(Topology::Line(4)), (4, 8, 3 + 8));
        assert_eq!(count(Topology::Ring(4)), (4, 8, 4 + 8));
        assert_eq!(count(Topology::Mesh(3, 2)), (6, 12, 7 + 12));
        // With four ports: 20 switches, 16 hosts and 48 cables.
        assert_eq!(count(Topology::FatTree(4)), (20, 16, 48));
    }

    #[test]
    fn a_seed_repeats_its_network() {
        let of = |seed| switched(seed, Topology::Ring(5), Traffic { flows: 20, hosts: 1 });
        assert_eq!(of(7), of(7));
        assert_ne!(of(7), of(8));
    }
}
