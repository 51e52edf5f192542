//! Rules of flows.

use super::{Rules, CLASS_NAMES, GROUP_NAMES, INTERFACE_NAMES, TASK_NAMES};
use crate::parse::nearest_name;
use crate::system::{Flow, Interface, Network};
use crate::time::Duration;

impl Rules<'_> {
    pub(super) fn flow(&mut self, path: &str, network: &Network, flow: &Flow) {
        let at = |key: &str| format!("{path}.{key}");
        let knows_from = self.known_end(&at("from"), &flow.from);
        self.windowed_task(&at("from"), &flow.from);
        let knows_to = flow.to.as_ref().is_none_or(|to| self.known_end(&at("to"), to));
        if flow.to.as_ref() == Some(&flow.from) {
            self.add(at("to"), &[&at("from")], format!("flow `{}` returns to its sender `{}`", flow.name, flow.from));
        }
        self.class_of_flow(path, network, flow);
        self.instants(path, flow);
        for (index, name) in flow.via.iter().enumerate() {
            let place = format!("{path}.via[{index}]");
            let all = network.interfaces.iter().map(|interface| interface.name.as_str());
            self.known((&place, name), ("interface", INTERFACE_NAMES), all);
            if flow.via[..index].contains(name) {
                self.add(place, &[], format!("interface `{name}` is listed twice"));
            }
        }
        if knows_from && knows_to && flow.via.is_empty() {
            self.known_way(path, network, flow);
        }
        self.deadline_of_flow(path, network, flow);
        if flow.express && knows_from {
            self.express(path, network, flow);
        }
    }

    /// Checks that something times the frames of a socket that passes no gate.
    fn express(&mut self, path: &str, network: &Network, flow: &Flow) {
        let Flow { name, from, .. } = flow;
        let has_windows = self.system.task(from).is_some_and(|task| task.supply.is_windows());
        let gated = self.system.way(network, flow).into_iter().find(|interface| interface.gates.is_some());
        let Some(interface) = gated.filter(|_| !has_windows) else { return };
        let needs = [path, TASK_NAMES, GROUP_NAMES, INTERFACE_NAMES, "tasks", "groups"];
        let interface = &interface.name;
        let text = format!(
            "flow `{name}`: an express socket passes no gate of interface `{interface}`, and `{from}` has no windows of \
             a task that would time its frames"
        );
        self.add(format!("{path}.express"), &needs, text).hint =
            Some("send them with an ordinary socket, or from a task with windows".into());
    }

    /// Checks that an end of a flow is a task or a group.
    fn known_end(&mut self, path: &str, name: &str) -> bool {
        let system = self.system;
        let names = system.tasks.iter().map(|task| &task.name).chain(system.groups.iter().map(|group| &group.name));
        let is_known = names.clone().any(|other| other == name);
        if !is_known {
            let near = nearest_name(name, names.map(String::as_str));
            let text = format!("no task or group is named `{name}`");
            self.add(path, &[TASK_NAMES, GROUP_NAMES], text).hint = near.map(|near| format!("did you mean `{near}`?"));
        }
        is_known
    }

    fn class_of_flow(&mut self, path: &str, network: &Network, flow: &Flow) {
        let (name, place) = (&flow.class, format!("{path}.class"));
        let all = network.classes.iter().map(|class| class.name.as_str());
        self.known((&place, name), ("class", CLASS_NAMES), all);
        let Some(class) = network.class(name) else { return };
        let planned = self.system.way(network, flow).into_iter().any(Interface::is_planned);
        if planned && network.classes.last() == Some(class) {
            let text = format!("flow `{}` is in the class `{name}`, which takes all other frames", flow.name);
            self.add(&place, &[CLASS_NAMES], text).hint =
                Some("planned gates need a class for it: add one with a `priority` before the last one".into());
        }
        if flow.size > class.max_size {
            let text = format!("size {} is longer than the `max-size` {} of class `{name}`", flow.size, class.max_size);
            self.add(format!("{path}.size"), &[&place, "network.classes"], text);
        }
    }

    /// Checks the keys that say when the frames of the flow are ready.
    fn instants(&mut self, path: &str, flow: &Flow) {
        let at = |key: &str| format!("{path}.{key}");
        let needs = [at("from"), at("period")];
        let needs = [needs[0].as_str(), needs[1].as_str(), TASK_NAMES, GROUP_NAMES, "tasks", "groups"];
        if let Some(task) = self.system.task(&flow.from) {
            if flow.period.is_some() {
                let text = format!("flow `{}` has the period of task `{}`", flow.name, task.name);
                self.add(at("period"), &needs[..1], text).hint = Some("leave out `period`".into());
            }
            if let Some(after) = flow.after.filter(|after| *after > task.period) {
                let text = format!("after {after} is longer than the period {} of task `{}`", task.period, task.name);
                self.add(at("after"), &needs, text);
            }
        }
        let Some(group) = self.system.groups.iter().find(|group| group.name == flow.from) else { return };
        let of_windows = group.windows.as_ref().map(|windows| windows.period);
        let Some(period) = flow.period.or(of_windows) else {
            let text = format!("flow `{}` of group `{}` has no `period`", flow.name, group.name);
            self.add(path, &needs, text).hint = Some("add the interval between two frames".into());
            return;
        };
        if let Some(after) = flow.after.filter(|after| *after > period) {
            self.add(at("after"), &needs, format!("after {after} is longer than the period {period}"));
        }
        if let (Some(windows), None) = (of_windows.filter(|windows| *windows != period), flow.after) {
            let text = format!("period {period} is not the period {windows} of the windows of group `{}`", group.name);
            self.add(at("period"), &needs, text).hint =
                Some("leave out `period`, or say with `after` when a frame is ready".into());
        }
    }

    /// Checks that the namespaces of both ends give an interface.
    fn known_way(&mut self, path: &str, network: &Network, flow: &Flow) {
        if !self.system.way(network, flow).is_empty() {
            return;
        }
        let Flow { name, from, to, .. } = flow;
        let needs = ["network.interfaces", INTERFACE_NAMES, TASK_NAMES, GROUP_NAMES, "tasks", "groups"];
        let (text, hint) = match to {
            None => (
                format!("flow `{name}` has neither `to` nor `via`"),
                "list the interfaces that send its frames in `via`".to_owned(),
            ),
            Some(to) if self.system.host_of(from) != self.system.host_of(to) => (
                format!("flow `{name}`: `{from}` and `{to}` are on different hosts, and there is no `via`"),
                "list the interfaces that send its frames in `via`".to_owned(),
            ),
            Some(to) if self.system.namespaces_of(from) == self.system.namespaces_of(to) => (
                format!("flow `{name}` crosses no interface: `{from}` and `{to}` are in the same namespace"),
                "set `namespace` of one of them, or list the interfaces in `via`".to_owned(),
            ),
            Some(to) => (
                format!("flow `{name}`: no interface is on its way from `{from}` to `{to}`"),
                "describe the namespace of the sender, or the port of that of the receiver, under `interfaces`; or list \
                 the interfaces in `via`"
                    .to_owned(),
            ),
        };
        self.add(path, &needs, text).hint = Some(hint);
    }

    /// Checks that the frame can cross its interfaces within its deadline at all.
    fn deadline_of_flow(&mut self, path: &str, network: &Network, flow: &Flow) {
        let way = self.system.way(network, flow);
        let add = |sum: Duration, one: &&Interface| sum.checked_add(one.path)?.checked_add(one.sending_time(flow.size));
        let Some(least) = way.iter().try_fold(Duration::ZERO, add) else { return };
        if flow.deadline < least {
            let text = format!("deadline {} is shorter than the {least} of the frame on its links", flow.deadline);
            self.add(format!("{path}.deadline"), &["network.interfaces", path], text);
        }
    }
}
