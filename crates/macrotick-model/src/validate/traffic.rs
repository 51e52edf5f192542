//! Rules of traffic classes, and of interfaces with their gates.

use super::{Rules, CLASS_NAMES, INTERFACE_NAMES, NAMESPACE_NAMES, PERIODS};
use crate::gates::{GateEntry, GateList};
use crate::parse::nearest_name;
use crate::system::{Gates, Interface, InterfaceEnd, Network, SyncClass};
use crate::time::Duration;

/// The longest name of a network device, without the terminating NUL (`IFNAMSIZ`).
const MAX_DEVICE: usize = 15;
const CLASSES: &str = "network.classes";

impl Rules<'_> {
    pub(super) fn network(&mut self, network: &Network) {
        self.classes(network);
        self.sync_class(network);
        for index in 0..network.interfaces.len() {
            self.interface(network, index);
        }
        for (index, flow) in network.flows.iter().enumerate() {
            self.flow(&format!("network.flows[{index}]"), network, flow);
        }
        self.slots(network);
    }

    fn classes(&mut self, network: &Network) {
        let count = network.class_names().count();
        if network.classes.is_empty() {
            self.add(CLASSES, &[], "a network needs at least one class").hint =
                Some("write `- {name: rest}` for all frames".into());
        } else if count > Network::MAX_CLASSES {
            let sync = if network.sync.is_some() { ", `sync` included," } else { "" };
            let text = format!("{count} classes{sync} are too many, the limit is {}", Network::MAX_CLASSES);
            self.add(CLASSES, &["network.sync"], text);
        }
        if network.queues() > Network::MAX_QUEUES {
            let text = format!(
                "{} transmit queues of all classes are too many, the limit is {}",
                network.queues(),
                Network::MAX_QUEUES
            );
            self.add(CLASSES, &[], text).hint = Some("set fewer `queues`".into());
        }
        for index in 0..network.classes.len() {
            self.class(network, index);
        }
    }

    fn class(&mut self, network: &Network, index: usize) {
        let class = &network.classes[index];
        let (name, path) = (&class.name, format!("{CLASSES}[{index}]"));
        let at = format!("{path}.priority");
        let is_last = index + 1 == network.classes.len();
        match class.priority {
            None if !is_last => {
                self.add(&path, &[&at], format!("class `{name}` has no `priority`")).hint =
                    Some("only the last class takes the frames of all other priorities".into());
            }
            Some(_) if is_last => {
                let text = format!("class `{name}` is the last one: it takes the frames of all other priorities");
                self.add(&at, &[], text).hint = Some("leave out `priority`, or add a class after it".into());
            }
            Some(priority) => {
                let before = network.classes[..index].iter().position(|other| other.priority == Some(priority));
                if let Some(other) = before {
                    let text = format!("class `{}` already has priority {priority}", network.classes[other].name);
                    self.add(&at, &[&format!("{CLASSES}[{other}].priority")], text);
                }
                if network.sync.is_some_and(|sync| sync.priority == priority) {
                    let text = format!("class `{}` already has priority {priority}", SyncClass::NAME);
                    self.add(&at, &["network.sync"], text).hint =
                        Some("choose another one, or set `priority` of `sync`".into());
                }
            }
            None => {}
        }
        self.shaper(network, index);
        if name == SyncClass::NAME {
            let text = format!("`{name}` is the name of the class for clock synchronisation");
            self.add(format!("{path}.name"), &[], text).hint =
                Some("choose another name, or describe that class under `sync` of the network".into());
        }
    }

    /// Checks what delays the frames of a class beyond its gates, or changes their order.
    fn shaper(&mut self, network: &Network, index: usize) {
        let class = &network.classes[index];
        let (name, path) = (&class.name, format!("{CLASSES}[{index}]"));
        let at = |key: &str| format!("{path}.{key}");
        if let Some(rate) = class.rate {
            if let Some(slow) = network.interfaces.iter().find(|interface| interface.link_speed() <= rate) {
                let (speed, interface) = (slow.link_speed(), &slow.name);
                let text =
                    format!("rate {rate} of class `{name}` is not below the speed of interface `{interface}`, {speed}");
                self.add(at("rate"), &[INTERFACE_NAMES, "network.interfaces"], text).hint =
                    Some("set a lower rate, or leave it out".into());
            }
        }
        let (key, effect) = match (class.rate, class.queues) {
            (None, 1) => return,
            (Some(_), 1) => ("rate", "its frames wait for the shaper"),
            (None, _) => ("queues", "its frames may change their order"),
            (Some(_), count) => {
                let text = format!("class `{name}` has {count} queues, and a shaper serves one");
                self.add(at("queues"), &[&at("rate")], text).hint = Some("leave out `queues` or `rate`".into());
                return;
            }
        };
        let flow = network.flows.iter().position(|flow| flow.class == *name);
        let slot = || network.slots.iter().position(|slot| slot.class == *name);
        let user = match flow {
            Some(flow) => {
                Some((format!("flow `{}` has a deadline", network.flows[flow].name), format!("network.flows[{flow}]")))
            }
            None => slot().map(|slot| {
                (format!("group `{}` has slots", network.slots[slot].group), format!("network.slots[{slot}]"))
            }),
        };
        if let Some((user, place)) = user {
            let text = format!("class `{name}` has `{key}`, so {effect}, but {user} in this class");
            self.add(at(key), &[&place], text).hint = Some(format!("leave out `{key}`, or give it a class of its own"));
        }
    }

    fn sync_class(&mut self, network: &Network) {
        if network.sync.is_some() && self.system.sync().is_none() {
            self.add("network.sync", &["clock"], "the class `sync` needs a clock that hosts share").hint =
                Some("add `clock: {tai: {period: TIME, length: TIME, bound: TIME}}`, or leave it out".into());
        }
    }

    fn interface(&mut self, network: &Network, index: usize) {
        let interface = &network.interfaces[index];
        let (name, path) = (&interface.name, format!("network.interfaces[{index}]"));
        let at = |key: &str| format!("{path}.{key}");
        let twice = network.interfaces[..index].iter().find(|other| {
            let is_switch = matches!(interface.end, InterfaceEnd::Switch(_));
            other.end == interface.end && other.host == interface.host && !is_switch
        });
        if let Some(other) = twice {
            let key = self.end(&path, interface);
            let text = format!("interface `{}` already is this one", other.name);
            self.add(at(key), &[INTERFACE_NAMES], text);
        } else {
            self.end(&path, interface);
        }
        for (key, given) in [("lead", interface.lead.is_some()), ("cpu", interface.cpu.is_some())] {
            if given && !interface.is_planned() {
                let text = format!("interface `{}` has `{key}`, but no planned gates", interface.name);
                self.add(at(key), &[&at("gates")], text).hint =
                    Some(format!("set `gates: planned`, or leave out `{key}`"));
            }
        }
        let is_switch = matches!(interface.end, InterfaceEnd::Switch(_));
        match interface.entries {
            Some(_) if interface.gates.is_none() => {
                let text = format!("interface `{name}` has `entries`, but no gates");
                self.add(at("entries"), &[], text).hint = Some("set `gates`, or leave out `entries`".into());
            }
            Some(entries) if interface.most_entries() > GateList::MAX_ENTRIES && !is_switch => {
                let most = GateList::MAX_ENTRIES;
                let text = format!("interface `{name}` has {entries} `entries`, but the kernel can show only {most}");
                self.add(at("entries"), &[], text).hint = Some(format!("set at most {most}"));
            }
            _ => {}
        }
        match interface.cpu {
            Some(_) if interface.lead.is_none() => {
                let text = format!("interface `{}` has `cpu`, but no gate thread", interface.name);
                self.add(at("cpu"), &[&at("lead")], text).hint = Some("set `lead`, or leave out `cpu`".into());
            }
            Some(cpu) => self.cpu(&at("cpu"), cpu),
            None => {}
        }
        if let Some(Gates::Given(entries)) = &interface.gates {
            self.gates(&at("gates"), network, interface, entries);
        }
    }

    /// Checks the device of an interface, and returns its key.
    fn end(&mut self, path: &str, interface: &Interface) -> &'static str {
        match &interface.end {
            InterfaceEnd::Namespace(name) => {
                self.known_namespace(path, Some(name));
                "namespace"
            }
            InterfaceEnd::Port(name) => {
                let all = self.system.namespaces.iter().map(|namespace| namespace.name.as_str());
                self.known((&format!("{path}.port"), name), ("namespace", NAMESPACE_NAMES), all);
                "port"
            }
            InterfaceEnd::Device(device) => {
                self.device(&format!("{path}.device"), device);
                if interface.speed.is_none() {
                    let text = format!("interface `{}` has a device, but no `speed`", interface.name);
                    let hint = format!("add `speed: 1Gb/s`, with the speed in /sys/class/net/{device}/speed");
                    self.add(path, &[&format!("{path}.speed"), &format!("{path}.device")], text).hint = Some(hint);
                }
                "device"
            }
            InterfaceEnd::Switch(name) => {
                if interface.speed.is_none() {
                    let text = format!("interface `{}` is on switch `{name}`, but has no `speed`", interface.name);
                    self.add(path, &[&format!("{path}.speed"), &format!("{path}.switch")], text).hint =
                        Some("add `speed: 1Gb/s`".into());
                }
                "switch"
            }
        }
    }

    fn device(&mut self, path: &str, device: &str) {
        let odd = |c: char| c == '/' || c == ':' || c.is_whitespace() || c.is_control();
        if device.is_empty() || device.len() > MAX_DEVICE || device.contains(odd) || [".", ".."].contains(&device) {
            let text = format!("`{device}` is not the name of a network device");
            self.add(path, &[], text).hint =
                Some(format!("write a name as in `ip link`, of at most {MAX_DEVICE} characters"));
        }
    }

    /// Checks the interface of a gate thread, which a group serves.
    pub(super) fn gate_thread(&mut self, path: &str, name: &str) {
        let network = self.system.network.as_ref();
        let all = network.into_iter().flat_map(|network| &network.interfaces);
        let needs = [INTERFACE_NAMES, "network"];
        match network.and_then(|network| network.interface(name)) {
            None => {
                let near = nearest_name(name, all.map(|interface| interface.name.as_str()));
                self.add(path, &needs, format!("no interface is named `{name}`")).hint =
                    near.map(|near| format!("did you mean `gate/{near}`?"));
            }
            Some(interface) if interface.lead.is_none() => {
                self.add(path, &needs, format!("interface `{name}` has no gate thread")).hint =
                    Some("set `lead` of the interface, or leave out the thread".into());
            }
            Some(_) => {}
        }
    }

    fn gates(&mut self, path: &str, network: &Network, interface: &Interface, entries: &[GateEntry]) {
        if entries.is_empty() {
            self.add(path, &[], format!("the gate list of interface `{}` is empty", interface.name)).hint =
                Some("leave it out to keep all gates open".into());
            return;
        }
        let (count, most) = (entries.len(), interface.most_entries());
        if count > most {
            let text =
                format!("the gate list of interface `{}` has {count} intervals, the limit is {most}", interface.name);
            self.add(path, &[], text);
        }
        for (index, entry) in entries.iter().enumerate() {
            self.gate(&format!("{path}[{index}]"), network, interface, entry);
        }
        self.cycle_of_gates(path, interface, entries);
    }

    fn gate(&mut self, path: &str, network: &Network, interface: &Interface, entry: &GateEntry) {
        let (least, length) = (interface.shortest_frame_time(), entry.length);
        if length > Duration::ZERO && length < least {
            let text = format!(
                "an interval of {length} is too short: the shortest frame takes {least} at {}",
                interface.link_speed()
            );
            self.add(format!("{path}.length"), &[], text);
        }
        for (index, class) in entry.open.iter().enumerate() {
            let place = format!("{path}.open[{index}]");
            self.known((&place, class), ("class", CLASS_NAMES), network.class_names());
            if entry.open[..index].contains(class) {
                self.add(place, &[], format!("class `{class}` is listed twice"));
            }
        }
    }

    fn cycle_of_gates(&mut self, path: &str, interface: &Interface, entries: &[GateEntry]) {
        if entries.iter().any(|entry| entry.length <= Duration::ZERO) {
            return;
        }
        let name = &interface.name;
        let sum = entries.iter().try_fold(Duration::ZERO, |sum, entry| sum.checked_add(entry.length));
        let Some(sum) = sum.filter(|sum| *sum <= GateList::MAX_CYCLE) else {
            let text = format!("the gates of interface `{name}` repeat after more than {}", GateList::MAX_CYCLE);
            self.add(path, &[], text).hint = Some("the kernel has 31 bits for the nanoseconds of the sum".into());
            return;
        };
        let Some(cycle) = self.system.cycle_of_plan().filter(|cycle| *cycle > Duration::ZERO) else { return };
        if cycle % sum != Duration::ZERO {
            let text =
                format!("the gates of interface `{name}` sum up to {sum}, but the cycle {cycle} is no multiple of it");
            self.add(path, &[PERIODS, "cycle"], text).hint =
                Some("change a length, or set `cycle` to a common multiple".into());
        }
    }
}
