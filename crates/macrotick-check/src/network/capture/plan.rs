//! An interface of a plan, for captures: its gates, its slots, and the frames of its classes and flows.

use std::net::SocketAddr;

use macrotick_model::{Duration, Flow, Instant, Interface, Network, Plan, SyncClass, Workload};

use super::classify::{Classifier, Rule, UnknownClass};
use super::judge::{judge_capture, CaptureVerdict, Expectation, FlowRule};
use super::packet::Packet;
use super::phase::{fit, Fit};
use super::reader::{Capture, CaptureError, CapturedFrame};
use super::sequence::{Sequence, Width};
use crate::gates::{is_used, sides, slots_of};
use crate::network::{Port, Slot};

/// The EtherType of PTP, and its ports over UDP.
const PTP: u16 = 0x88f7;
const PTP_PORTS: [u16; 2] = [319, 320];

/// The first bytes of the packets of `macrotick probe`, and the offset of their number.
const PROBE: &[u8] = b"MTP\x01";
const PROBE_NUMBER: usize = 16;

/// An interface of a plan, and the frames that belong to its classes.
#[derive(Clone, Debug)]
pub struct PlannedPort {
    /// The port, with the epoch at zero.
    pub port: Port,
    /// The slots of groups.
    pub slots: Vec<Slot>,
    /// The rules that give frames their class, in order. The first one that matches decides.
    pub rules: Vec<Rule>,
    /// The flows with frames that can be recognised.
    pub flows: Vec<FlowRule>,
    classifier: Classifier,
}

/// The circumstances of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The epoch of the plan on the clock of the capture.
    pub epoch: Instant,
    /// The interface of the capture to judge; `None` for all.
    pub interface: Option<u32>,
    /// The constant time from the gate to the time stamp.
    pub path: Duration,
    /// The time by which a frame may be early or late nevertheless.
    pub tolerance: Duration,
}

/// The reason why no capture can be judged against a plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanRefusal {
    /// The system has no network.
    #[error("the plan has no network: there are no gates to compare a capture with")]
    NoNetwork,
    /// No interface has this name.
    #[error("the plan has no interface `{interface}`: use one of {}", .known.join(", "))]
    UnknownInterface {
        /// The name.
        interface: String,
        /// The names that exist.
        known: Vec<String>,
    },
    /// The plan has several interfaces with gates, or none.
    #[error("{} interfaces of the plan have gates: name the one of the capture{}", .known.len(), among(.known))]
    Choose {
        /// The interfaces with gates.
        known: Vec<String>,
    },
    /// The interface has no gates.
    #[error("interface `{interface}` has no gates: all frames can leave at any time")]
    NoGates {
        /// The interface.
        interface: String,
    },
    /// The gate list cannot be used.
    #[error("the gates of interface `{interface}` cannot be used: {}", .reasons.join("; "))]
    Unusable {
        /// The interface.
        interface: String,
        /// The broken rules.
        reasons: Vec<String>,
    },
    /// A capture does not show which frames belong to a class.
    #[error(
        "class `{class}` of interface `{interface}`: a capture does not show its frames. Its senders have no \
         `udp-send`, and the interface has no VLAN. Describe the frames, as in `{class}=udp:5000`"
    )]
    Unrecognised {
        /// The class.
        class: String,
        /// The interface.
        interface: String,
    },
    /// A rule names a class that does not exist.
    #[error(transparent)]
    UnknownClass(#[from] UnknownClass),
}

fn among(known: &[String]) -> String {
    match known {
        [] => String::new(),
        known => format!(", one of {}", known.join(", ")),
    }
}

impl PlannedPort {
    /// Prepares an interface of a plan; without a name, the only one with gates. `rules` come before those that follow
    /// from the description. These are:
    ///
    /// * the PCP of each class, if the interface has a VLAN,
    /// * PTP for the class `sync`,
    /// * the destination of the `udp-send` of a flow's sender, or of a process of its group,
    /// * all other frames for the last class.
    ///
    /// # Errors
    ///
    /// Refuses a plan without gates, gates that cannot be used, and a class with a flow or a slot that no rule
    /// describes.
    pub fn new(plan: &Plan, interface: Option<&str>, rules: &[Rule]) -> Result<PlannedPort, PlanRefusal> {
        let network = plan.system.network.as_ref().ok_or(PlanRefusal::NoNetwork)?;
        let interface = choose(network, interface)?;
        let mut found = Vec::new();
        let place = network.interfaces.iter().position(|one| one.name == interface.name);
        let side = place.and_then(|place| sides(plan, network, &mut found).into_iter().nth(place).flatten());
        let unusable = |found: Vec<crate::network::NetworkViolation>| PlanRefusal::Unusable {
            interface: interface.name.clone(),
            reasons: found.iter().map(ToString::to_string).collect(),
        };
        let Some(side) = side else { return Err(unusable(found)) };
        let mut missing = Vec::new();
        let slots = slots_of(plan, network, &side, &mut missing);
        if !missing.is_empty() {
            return Err(unusable(missing));
        }
        let flows = flows(plan, network, interface, rules);
        let rules = all_rules(network, interface, rules, &flows);
        recognised(plan, network, interface, &rules)?;
        let names: Vec<&str> = network.class_names().collect();
        let classifier = Classifier::new(&names, &rules)?;
        Ok(PlannedPort { port: side.punctual, slots, rules, flows, classifier })
    }

    /// Finds the epoch with which the most frames are in their windows. `interface` is that of the capture; `None` for
    /// all.
    ///
    /// # Errors
    ///
    /// Returns the first error of the capture.
    pub fn fit<'c>(
        &self,
        capture: impl Iterator<Item = Result<CapturedFrame<'c>, CaptureError>>,
        interface: Option<u32>,
        path: Duration,
    ) -> Result<Option<Fit>, CaptureError> {
        let mut frames = Vec::new();
        for frame in capture {
            let frame = frame?;
            let is_other = interface.is_some_and(|interface| interface != frame.interface);
            let class = self.classifier.classify(&Packet::new(&frame));
            if let (Some(class), Some(at), false) = (class, frame.at, is_other) {
                frames.push((class, at - path));
            }
        }
        Ok(self.port.gates.as_ref().and_then(|gates| fit(gates, frames.into_iter())))
    }

    /// Judges the frames of a capture.
    ///
    /// # Errors
    ///
    /// Returns the first error of the capture.
    pub fn judge<'c>(
        &self,
        capture: impl Iterator<Item = Result<CapturedFrame<'c>, CaptureError>>,
        settings: Settings,
    ) -> Result<CaptureVerdict, CaptureError> {
        let Settings { epoch, interface, path, tolerance } = settings;
        let gates = self.port.gates.clone().map(|gates| gates.at(epoch));
        let port = Port { gates, ..self.port.clone() };
        let (slots, flows) = (&self.slots[..], &self.flows[..]);
        let expectation = Expectation { slots, flows, interface, path, tolerance, ..Expectation::of(&port) };
        judge_capture(capture, &expectation, |packet| self.classifier.classify(packet))
    }

    /// Returns the number of the interface of a capture with this name; `None` for all, if the file describes at most
    /// one.
    ///
    /// # Errors
    ///
    /// Returns the names in the file, if it has several interfaces and none of this name.
    pub fn interface_of(mut capture: Capture, device: &str) -> Result<Option<u32>, Vec<String>> {
        while matches!(capture.next(), Some(Ok(_))) {}
        let names = capture.interfaces();
        match names.iter().position(|name| *name == Some(device)) {
            _ if names.len() < 2 => Ok(None),
            Some(number) => Ok(Some(number as u32)),
            None => Err(names.into_iter().flatten().map(str::to_owned).collect()),
        }
    }
}

/// Returns the interface of that name; without a name, the only one with gates.
fn choose<'a>(network: &'a Network, name: Option<&str>) -> Result<&'a Interface, PlanRefusal> {
    let name_of = |interface: &Interface| interface.name.clone();
    let with_gates: Vec<&Interface> = network.interfaces.iter().filter(|one| one.gates.is_some()).collect();
    let interface = match (name, &with_gates[..]) {
        (None, [only]) => only,
        (None, several) => {
            return Err(PlanRefusal::Choose { known: several.iter().map(|one| name_of(one)).collect() });
        }
        (Some(name), _) => network.interface(name).ok_or_else(|| PlanRefusal::UnknownInterface {
            interface: name.into(),
            known: network.interfaces.iter().map(name_of).collect(),
        })?,
    };
    match interface.gates {
        Some(_) => Ok(interface),
        None => Err(PlanRefusal::NoGates { interface: name_of(interface) }),
    }
}

/// Returns the flows that cross the interface and have a rule. This is that of the sender's `udp-send`, or a given one for
/// the class of a single flow. Frames of other given rules count under the name of their class.
fn flows(plan: &Plan, network: &Network, interface: &Interface, given: &[Rule]) -> Vec<FlowRule> {
    let crosses = |flow: &&Flow| plan.system.way(network, flow).iter().any(|one| one.name == interface.name);
    let all: Vec<(&Flow, Option<FlowRule>)> =
        network.flows.iter().filter(crosses).map(|flow| (flow, rule_of_flow(plan, flow))).collect();
    let of_given = given.iter().filter(|rule| rule.destination_port.is_some()).map(|rule| {
        let mut unnamed = all.iter().filter(|(flow, own)| flow.class == rule.class && own.is_none());
        let name = match (unnamed.next(), unnamed.next()) {
            (Some((flow, _)), None) => flow.name.clone(),
            _ => rule.class.clone(),
        };
        // Packets of `macrotick probe` have a number.
        let numbers = Sequence { class: 0, offset: PROBE_NUMBER, width: Width::U64, big_endian: true };
        FlowRule { name, rule: rule.clone(), numbers: Some(numbers), prefix: PROBE }
    });
    let of_given: Vec<FlowRule> = of_given.collect();
    all.into_iter().filter_map(|(_, rule)| rule).chain(of_given).collect()
}

fn rule_of_flow(plan: &Plan, flow: &Flow) -> Option<FlowRule> {
    let task = plan.system.task(&flow.from)?;
    let Workload::UdpSend(send) = &task.run else { return None };
    let to: SocketAddr = send.to.parse().ok()?;
    let source = task.namespace.as_deref().and_then(|name| plan.system.namespace(name)?.decode());
    let rule = Rule {
        class: flow.class.clone(),
        source: source.map(|(address, _)| address.into()),
        destination: Some(to.ip()),
        destination_port: Some(to.port()),
        ..Rule::default()
    };
    // The datagram of `udp-send` starts with the number of the job.
    let numbers = Sequence { class: 0, offset: 0, width: Width::U64, big_endian: false };
    Some(FlowRule { name: flow.name.clone(), rule, numbers: Some(numbers), prefix: &[] })
}

fn all_rules(network: &Network, interface: &Interface, given: &[Rule], flows: &[FlowRule]) -> Vec<Rule> {
    let mut rules = given.to_vec();
    if network.sync.is_some() {
        let class = || SyncClass::NAME.to_owned();
        rules.push(Rule { class: class(), ether_type: Some(PTP), ..Rule::default() });
        let port = |port| Rule { class: class(), destination_port: Some(port), ..Rule::default() };
        rules.extend(PTP_PORTS.map(port));
    }
    if interface.vlan.is_some() {
        let code = |class: &macrotick_model::TrafficClass| Rule {
            class: class.name.clone(),
            pcp: Some(class.code_point()),
            ..Rule::default()
        };
        rules.extend(network.classes.iter().map(code));
    }
    rules.extend(flows.iter().map(|flow| flow.rule.clone()));
    let rest = network.classes.last().map(|class| Rule { class: class.name.clone(), ..Rule::default() });
    rules.extend(rest);
    rules
}

/// Checks that each class with a flow or a slot has a rule of its own.
fn recognised(plan: &Plan, network: &Network, interface: &Interface, rules: &[Rule]) -> Result<(), PlanRefusal> {
    let all = |class: &str| Rule { class: class.into(), ..Rule::default() };
    let is_shown = |class: &str| rules.iter().any(|rule| rule.class == class && *rule != all(class));
    let mut used = network.classes.iter().map(|class| &class.name);
    match used.find(|class| is_used(plan, network, interface, class) && !is_shown(class)) {
        Some(class) => Err(PlanRefusal::Unrecognised { class: class.clone(), interface: interface.name.clone() }),
        None => Ok(()),
    }
}
