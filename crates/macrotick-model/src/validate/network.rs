//! Rules of network namespaces and their contents.

use std::net::Ipv4Addr;

use super::{Rules, NAMESPACE_NAMES};
use crate::parse::nearest_name;
use crate::system::Namespace;

impl Rules<'_> {
    pub(super) fn namespaces(&mut self) {
        let system = self.system;
        for (index, namespace) in system.namespaces.iter().enumerate() {
            let path = format!("namespaces[{index}]");
            self.interface_address(&format!("{path}.address"), namespace);
            let twice = |other: &Namespace| other.decode().is_some_and(|(at, _)| Some(at) == address(namespace));
            if system.namespaces[..index].iter().any(twice) {
                let text = format!("another namespace already has the address {}", namespace.address);
                self.add(format!("{path}.address"), &[], text);
            }
        }
    }

    fn interface_address(&mut self, path: &str, namespace: &Namespace) {
        if namespace.decode().is_none() {
            let text = format!("`{}` is not an IPv4 address with a prefix length", namespace.address);
            self.add(path, &[], text).hint = Some("write \"10.0.0.1/24\"".into());
        }
    }

    /// Checks the namespace of a task or process.
    pub(super) fn known_namespace(&mut self, path: &str, name: Option<&str>) {
        let Some(name) = name.filter(|name| self.system.namespace(name).is_none()) else { return };
        let near = nearest_name(name, self.system.namespaces.iter().map(|namespace| namespace.name.as_str()));
        let hint = near.map(|near| format!("did you mean `{near}`?"));
        let text = format!("no namespace is named `{name}`");
        self.add(format!("{path}.namespace"), &[NAMESPACE_NAMES], text).hint = hint;
    }

    /// Checks the destination of a flood.
    pub(super) fn ping(&mut self, path: &str, to: &str) {
        if to.parse::<Ipv4Addr>().is_err() {
            self.add(format!("{path}.to"), &[], format!("`{to}` is not an IPv4 address")).hint =
                Some("write \"10.0.0.1\"".into());
        }
    }
}

fn address(namespace: &Namespace) -> Option<Ipv4Addr> {
    namespace.decode().map(|(address, _)| address)
}
