//! The steps of a deployment: what each sends, what takes it back, and the commands that do the same.

use super::channels::{self, Channels};
use super::classifier::{self, Filter, Side};
use super::link;
use super::message::Message;
use super::neighbour;
use super::qdisc::{self, Placed, Put, ROOT};
use super::wanted::{Mode, Neighbour};
use std::collections::BTreeMap;

/// A message with the command that does the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Order {
    pub message: Message,
    pub command: String,
}

/// The action of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Action {
    /// Sends one message.
    Send(Order),
    /// Sends the first message that the kernel accepts. They differ in what enforces the gates.
    Try(Vec<(Mode, Order)>),
    /// Waits until the gates are in force.
    Await,
}

/// The effect of a step on the frames of the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    None,
    /// From here on the kernel drops all frames at egress.
    Closes,
    /// It drops them no longer.
    Opens,
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Step {
    /// Its purpose, after "cannot".
    pub what: String,
    pub action: Action,
    /// The actions that take it back, in order.
    pub undo: Vec<Action>,
    pub effect: Effect,
    /// The options of the kernel that it needs.
    pub needs: &'static str,
}

impl Step {
    pub fn new(what: impl Into<String>, action: Action, undo: Vec<Action>) -> Step {
        Step { what: what.into(), action, undo, effect: Effect::None, needs: "" }
    }

    pub fn needing(self, needs: &'static str) -> Step {
        Step { needs, ..self }
    }
}

/// A device, as the commands name it.
#[derive(Debug, Clone)]
pub(super) struct Place<'a> {
    pub device: &'a str,
    pub namespace: Option<&'a str>,
    pub index: i32,
}

impl Place<'_> {
    fn command(&self, tool: &str, arguments: &str) -> String {
        match self.namespace {
            Some(namespace) if tool == "ethtool" => format!("ip netns exec {namespace} {tool} {arguments}"),
            Some(namespace) => format!("{tool} -netns {namespace} {arguments}"),
            None => format!("{tool} {arguments}"),
        }
    }

    fn tc(&self, arguments: &str) -> String {
        self.command("tc", arguments)
    }

    pub fn put(&self, how: Put, qdisc: &Placed) -> Order {
        let verb = if how == Put::Add { "add" } else { "change" };
        let sizes = qdisc.sizes.map_or(String::new(), |sizes| format!("stab overhead {} ", sizes.overhead));
        let at = spot(qdisc.parent, qdisc.handle);
        let words = format!("qdisc {verb} dev {} {at} {sizes}{}", self.device, qdisc.kind.words());
        Order { message: qdisc::put(self.index, how, qdisc), command: self.tc(&words) }
    }

    /// Deletes the root, and with it everything below. The kernel puts its default in place.
    pub fn delete_root(&self, handle: u32) -> Order {
        let command = self.tc(&format!("qdisc del dev {} {}", self.device, spot(ROOT, handle)));
        Order { message: qdisc::delete(self.index, ROOT, handle), command }
    }

    pub fn add_clsact(&self) -> Order {
        let command = self.tc(&format!("qdisc add dev {} clsact", self.device));
        Order { message: qdisc::add_clsact(self.index), command }
    }

    pub fn delete_clsact(&self) -> Order {
        let command = self.tc(&format!("qdisc del dev {} clsact", self.device));
        Order { message: qdisc::delete(self.index, qdisc::CLSACT, qdisc::CLSACT_HANDLE), command }
    }

    pub fn add_filter(&self, side: Side, preference: u16, filter: &Filter) -> Order {
        let words = filter.words(preference);
        let command = self.tc(&format!("filter add dev {} {} {words}", self.device, side.name()));
        Order { message: classifier::add(self.index, side, preference, filter), command }
    }

    pub fn delete_filter(&self, side: Side, preference: u16, filter: &Filter) -> Order {
        let command = self.tc(&format!("filter del dev {} {} pref {preference}", self.device, side.name()));
        Order { message: classifier::delete(self.index, side, preference, filter), command }
    }

    pub fn set_queues(&self, channels: Channels) -> Order {
        let command = self.command("ethtool", &channels::words(self.device, channels.combined, channels.queues));
        Order { message: channels::set(self.index, channels), command }
    }

    pub fn set_vlan_priorities(&self, map: &BTreeMap<u32, u8>) -> Order {
        let command = self.command("ip", &link::vlan_words(self.device, map));
        Order { message: link::set_vlan_priorities(self.index, map), command }
    }

    pub fn put_neighbour(&self, neighbour: &Neighbour) -> Order {
        let command = self.command("ip", &neighbour::words(self.device, neighbour));
        Order { message: neighbour::put(self.index, neighbour), command }
    }

    pub fn delete_neighbour(&self, neighbour: &Neighbour) -> Order {
        let command = self.command("ip", &format!("neighbour del {} dev {}", neighbour.address, self.device));
        Order { message: neighbour::delete(self.index, neighbour), command }
    }
}

/// Returns the place of a qdisc, for tc.
fn spot(parent: u32, handle: u32) -> String {
    let handle = format!("handle {:x}:", handle >> 16);
    match parent {
        ROOT => format!("root {handle}"),
        parent => format!("parent {:x}:{:x} {handle}", parent >> 16, parent & 0xffff),
    }
}

/// Returns the text of a dry run: one command a line.
pub(super) fn commands(steps: &[Step]) -> Vec<String> {
    let mut lines = Vec::new();
    for step in steps {
        match &step.action {
            Action::Send(order) => lines.push(order.command.clone()),
            Action::Await => lines.push("# wait until the gates have started".into()),
            Action::Try(tries) => {
                for (number, (mode, order)) in tries.iter().enumerate() {
                    match number {
                        0 => lines.push(order.command.clone()),
                        _ => lines.push(format!("# or, if refused ({} gates): {}", mode.tier(), order.command)),
                    }
                }
            }
        }
    }
    lines
}
