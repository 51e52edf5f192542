//! The host's ends of the veths of another network namespace.

use std::fs::File;
use std::os::fd::AsRawFd;

use netlink_bindings::utils;

use super::kernel::{Refusal, Shared};
use super::link::{self, Listed};
use super::message::{Family, Message};

/// The kind of a pair of virtual Ethernet devices.
const VETH: &str = "veth";
/// The attributes of a namespace: an open file of it, and its number (`NETNSA_FD`, `NETNSA_NSID`).
const BY_FILE: u16 = 3;
const NUMBER: u16 = 1;
/// The length of `struct rtgenmsg`, as it is aligned.
const HEADER: usize = 4;

/// The reason why the frames of a namespace do not all enter the host through veths.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoEnds {
    /// The namespace has no veth.
    #[error("the network namespace has no veth to this host")]
    None,
    /// The other end of a veth is in a third namespace.
    #[error("the other end of interface `{0}` is in another network namespace than that of this host")]
    Elsewhere(String),
    /// Frames can leave through an interface that is no veth.
    #[error("interface `{name}` is no veth ({kind})")]
    OtherKind {
        /// Its name.
        name: String,
        /// Its kind.
        kind: String,
    },
    /// The kernel refused to list the interfaces.
    #[error("cannot list the interfaces of the network namespace: {0}")]
    Refused(#[from] Refusal),
}

/// Returns the names of the host's ends of all veths in a namespace. `host` and `inside` are the kernel in both
/// namespaces. Fails if frames can also leave the namespace in another way.
pub fn host_ends(host: &Shared, inside: &Shared, namespace: &File) -> Result<Vec<String>, NoEnds> {
    let here = list(host)?;
    // A list gives a number to each namespace of another end that has none yet.
    let number = number_of(host, namespace)?;
    let mut ends = Vec::new();
    for interface in list(inside)?.iter().filter(|one| !one.is_loopback) {
        match (interface.kind.as_str(), interface.namespace) {
            (VETH, Some(_)) => {
                let end = here.iter().find(|end| number.is_some() && is_pair(end, interface, number));
                ends.push(end.ok_or_else(|| NoEnds::Elsewhere(interface.name.clone()))?.name.clone());
            }
            // A physical device, the end of a user-space network, or a device above one in another namespace.
            (kind @ ("" | "tun"), None) | (kind, Some(_)) => {
                let kind = if kind.is_empty() { "physical" } else { kind }.to_owned();
                return Err(NoEnds::OtherKind { name: interface.name.clone(), kind });
            }
            // It sends through another interface of the same namespace, if at all.
            (_, None) => {}
        }
    }
    match ends.is_empty() {
        true => Err(NoEnds::None),
        false => Ok(ends),
    }
}

/// Whether a device of the host is the other end of an interface in the namespace of this number.
fn is_pair(end: &Listed, interface: &Listed, number: Option<i32>) -> bool {
    end.kind == VETH && end.index == interface.other && end.other == interface.index && end.namespace == number
}

fn list(kernel: &Shared) -> Result<Vec<Listed>, Refusal> {
    Ok(link::decode_list(&kernel.borrow_mut().send(&link::dump())?))
}

/// Returns the number that the host's namespace has for another one; `None`: it has none.
fn number_of(host: &Shared, namespace: &File) -> Result<Option<i32>, Refusal> {
    let mut payload = vec![0; HEADER];
    utils::push_header(&mut payload, BY_FILE, 4);
    payload.extend(namespace.as_raw_fd().to_ne_bytes());
    let flags = (libc::NLM_F_REQUEST | libc::NLM_F_ACK) as u16;
    let answers = host.borrow_mut().send(&Message { family: Family::Route(libc::RTM_GETNSID), flags, payload })?;
    let attributes = answers.first().and_then(|answer| answer.get(HEADER..)).unwrap_or_default();
    Ok(utils::find_attr(attributes, NUMBER).and_then(utils::parse_i32).filter(|number| *number >= 0))
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use macrotick_model::Duration;
    use netlink_bindings::rt_link::{Ifinfomsg, Request};
    use netlink_bindings::traits::Pusher;

    use super::super::kernel::Kernel;
    use super::super::wanted::GateClock;
    use super::*;

    /// `IFLA_LINK_NETNSID`.
    const OTHER_NAMESPACE: u16 = 37;

    /// A namespace with interfaces, and with a number for the other one.
    struct Devices {
        links: Vec<Vec<u8>>,
        number: i32,
    }

    impl Kernel for Devices {
        fn send(&mut self, message: &Message) -> Result<Vec<Vec<u8>>, Refusal> {
            match message.family {
                Family::Route(libc::RTM_GETLINK) => Ok(self.links.clone()),
                Family::Route(libc::RTM_GETNSID) => {
                    let mut answer = vec![0; HEADER];
                    utils::push_header(&mut answer, NUMBER, 4);
                    answer.extend(self.number.to_ne_bytes());
                    Ok(vec![answer])
                }
                other => panic!("{other:?}"),
            }
        }

        fn now(&self, _: GateClock) -> i64 {
            0
        }

        fn wait(&mut self, _: Duration) {}
    }

    fn device(index: i32, name: &str, kind: &str, other: Option<(i32, i32)>) -> Vec<u8> {
        let ifi_flags = if name == "lo" { libc::IFF_LOOPBACK as u32 } else { 0 };
        let mut request =
            Request::new().op_newlink_do(&Ifinfomsg { ifi_index: index, ifi_flags, ..Default::default() });
        let mut attributes = request.encode().push_ifname_bytes(name.as_bytes());
        if let Some((other, namespace)) = other {
            attributes = attributes.push_link(other as u32);
            utils::push_header(&mut *attributes.as_vec_mut(), OTHER_NAMESPACE, 4);
            attributes.as_vec_mut().extend(namespace.to_ne_bytes());
        }
        match kind {
            "" => drop(attributes),
            kind => drop(attributes.nested_linkinfo().push_kind_bytes(kind.as_bytes())),
        }
        Message::of(&request).payload
    }

    fn ends(inside: Vec<Vec<u8>>) -> Result<Vec<String>, NoEnds> {
        let host = vec![
            device(1, "lo", "", None),
            device(2, "eth0", "", None),
            device(7, "vethA", "veth", Some((2, 4))),
            device(8, "vethB", "veth", Some((2, 5))),
            device(9, "vethC", "veth", Some((3, 4))),
        ];
        let shared = |links| -> Shared { Rc::new(RefCell::new(Devices { links, number: 4 })) };
        host_ends(&shared(host), &shared(inside), &File::open("/proc/self/ns/net").unwrap())
    }

    #[test]
    fn each_veth_has_its_end() {
        let lo = || device(1, "lo", "", None);
        let eth0 = |other| device(2, "eth0", "veth", Some((other, 0)));
        assert_eq!(ends(vec![lo(), eth0(7)]), Ok(vec!["vethA".into()]));
        let second = device(3, "net1", "veth", Some((9, 0)));
        let above = device(4, "eth0.5", "vlan", None);
        let tunnel = device(5, "tunl0", "ipip", None);
        let both = ends(vec![lo(), eth0(7), second, above, tunnel]);
        assert_eq!(both, Ok(vec!["vethA".into(), "vethC".into()]));
        // The end of the same numbers belongs to another namespace.
        assert_eq!(ends(vec![lo(), eth0(8)]), Err(NoEnds::Elsewhere("eth0".into())));
        assert_eq!(ends(vec![lo()]), Err(NoEnds::None));
    }

    #[test]
    fn other_ways_out_are_refused() {
        let eth0 = || device(2, "eth0", "veth", Some((7, 0)));
        let refused = |other| ends(vec![eth0(), other]).unwrap_err().to_string();
        assert_eq!(refused(device(3, "eth1", "", None)), "interface `eth1` is no veth (physical)");
        assert_eq!(refused(device(3, "tap0", "tun", None)), "interface `tap0` is no veth (tun)");
        assert_eq!(refused(device(3, "net1", "macvlan", Some((2, 0)))), "interface `net1` is no veth (macvlan)");
    }
}
