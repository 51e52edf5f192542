//! The way of a flow: the interfaces that send its frames, in order.

use std::collections::BTreeSet;

use super::{Flow, Interface, InterfaceEnd, Network, System};

impl System {
    /// Returns the namespaces in which a task, or the processes of a group, are. `None` stands for the host. A group
    /// without processes in a namespace is on the host.
    pub fn namespaces_of(&self, name: &str) -> BTreeSet<Option<&str>> {
        if let Some(task) = self.task(name) {
            return [task.namespace.as_deref()].into();
        }
        let group = self.groups.iter().find(|group| group.name == name);
        let inside: BTreeSet<_> =
            group.into_iter().flat_map(|group| &group.run).map(|process| process.namespace.as_deref()).collect();
        if inside.is_empty() {
            [None].into()
        } else {
            inside
        }
    }

    /// Returns the interfaces on the way of a flow, in order. They are those of `via`, or else the interface of the
    /// sender's namespace and the port of the receiver's namespace, as far as `network` has them. Unknown names in `via`
    /// are left out.
    pub fn way<'a>(&'a self, network: &'a Network, flow: &Flow) -> Vec<&'a Interface> {
        if !flow.via.is_empty() {
            return flow.via.iter().filter_map(|name| network.interface(name)).collect();
        }
        let to = flow.to.as_deref().map_or_else(BTreeSet::new, |to| self.namespaces_of(to));
        let from = self.namespaces_of(&flow.from);
        if from == to {
            return Vec::new();
        }
        let only = |ends: &BTreeSet<Option<&str>>| match ends.first() {
            Some(Some(name)) if ends.len() == 1 => Some((*name).to_owned()),
            _ => None,
        };
        let ends = [only(&from).map(InterfaceEnd::Namespace), only(&to).map(InterfaceEnd::Port)];
        let found = |end: &InterfaceEnd| network.interfaces.iter().find(|interface| interface.end == *end);
        ends.iter().flatten().filter_map(found).collect()
    }
}
