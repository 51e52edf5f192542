//! Devices: number, queues, and the priorities of a VLAN.

use std::collections::BTreeMap;

use netlink_bindings::rt_link::{Ifinfomsg, IflaVlanQosMapping, LinkinfoDataMsg, OpGetlinkDo, OpGetlinkDump, Request};
use netlink_bindings::traits::NetlinkRequest;

use super::message::Message;

/// A device in the kernel's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Link {
    pub index: i32,
    /// The kind of a virtual device, for example `veth`.
    pub kind: String,
    /// The transmit queues that exist. The device may use fewer.
    pub tx_queues: u32,
    pub mtu: u32,
    /// The PCP by priority; `None`: no VLAN.
    pub vlan_priorities: Option<BTreeMap<u32, u8>>,
}

/// Asks for a device.
pub(super) fn read(name: &str) -> Message {
    let mut request = Request::new().op_getlink_do(&Ifinfomsg::default());
    request.encode().push_ifname_bytes(name.as_bytes());
    Message::of(&request)
}

/// Reads the answer of [`read`].
pub(super) fn decode(answers: &[Vec<u8>]) -> Option<Link> {
    let (header, attributes) = OpGetlinkDo::decode_reply(answers.first()?);
    let info = attributes.get_linkinfo().ok();
    let kind = info.as_ref().and_then(|info| info.get_kind().ok());
    let kind = kind.map_or(String::new(), |kind| kind.to_string_lossy().into_owned());
    let vlan_priorities = info.and_then(|info| match info.get_data().ok()? {
        LinkinfoDataMsg::Vlan(vlan) => {
            let entries = vlan.get_egress_qos().map_or_else(
                |_| BTreeMap::new(),
                |map| map.get_mapping().map(|entry| (entry.from, entry.to as u8)).collect(),
            );
            Some(entries)
        }
        _ => None,
    });
    Some(Link {
        index: header.ifi_index,
        kind,
        tx_queues: attributes.get_num_tx_queues().unwrap_or(1),
        mtu: attributes.get_mtu().unwrap_or(0),
        vlan_priorities,
    })
}

/// Returns the number of a VLAN and that of the device below from the answer of [`read`].
pub(super) fn vlan_of(answers: &[Vec<u8>]) -> Option<(u16, i32)> {
    let (_, attributes) = OpGetlinkDo::decode_reply(answers.first()?);
    match attributes.get_linkinfo().ok()?.get_data().ok()? {
        LinkinfoDataMsg::Vlan(vlan) => Some((vlan.get_id().ok()?, attributes.get_link().ok()? as i32)),
        _ => None,
    }
}

/// Asks for all devices.
pub(super) fn dump() -> Message {
    Message::of(&Request::new().op_getlink_dump(&Ifinfomsg::default()))
}

/// A device among all devices of a namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Listed {
    pub index: i32,
    pub name: String,
    /// The kind of a virtual device.
    pub kind: String,
    pub is_loopback: bool,
    /// The number of the other end of a veth, or of the device below.
    pub other: i32,
    /// The number of the namespace of that device; `None`: it is in the same one.
    pub namespace: Option<i32>,
}

/// Reads the answers of [`dump`].
pub(super) fn decode_list(answers: &[Vec<u8>]) -> Vec<Listed> {
    let one = |answer: &Vec<u8>| {
        let (header, attributes) = OpGetlinkDump::decode_reply(answer);
        let text = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
        let kind = attributes.get_linkinfo().and_then(|info| info.get_kind());
        Listed {
            index: header.ifi_index,
            name: attributes.get_ifname().map_or(String::new(), text),
            kind: kind.map_or(String::new(), text),
            is_loopback: header.ifi_flags & libc::IFF_LOOPBACK as u32 != 0,
            other: attributes.get_link().map_or(0, |index| index as i32),
            namespace: attributes.get_link_netnsid().ok(),
        }
    };
    answers.iter().map(one).collect()
}

/// Finds the VLAN of a device in the answers of [`dump`].
pub(super) fn decode_vlan(answers: &[Vec<u8>], below: i32, vlan: u16) -> Option<String> {
    answers.iter().find_map(|answer| {
        let (_, attributes) = OpGetlinkDump::decode_reply(answer);
        let is_above = attributes.get_link().is_ok_and(|link| i64::from(link) == i64::from(below));
        let is_it = match attributes.get_linkinfo().ok()?.get_data().ok()? {
            LinkinfoDataMsg::Vlan(found) => found.get_id().is_ok_and(|found| found == vlan),
            _ => false,
        };
        let name = attributes.get_ifname().ok()?.to_string_lossy().into_owned();
        (is_above && is_it).then_some(name)
    })
}

/// Sets the PCP of priorities. Other priorities keep theirs.
pub(super) fn set_vlan_priorities(index: i32, map: &BTreeMap<u32, u8>) -> Message {
    let mut request = Request::new().op_newlink_do(&Ifinfomsg { ifi_index: index, ..Default::default() });
    let mut entries = request.encode().nested_linkinfo().nested_data_vlan().nested_egress_qos();
    for (from, to) in map {
        entries = entries.push_mapping(IflaVlanQosMapping { from: *from, to: (*to).into() });
    }
    drop(entries);
    Message::of(&request)
}

/// Returns the arguments for ip.
pub(super) fn vlan_words(device: &str, map: &BTreeMap<u32, u8>) -> String {
    let entries: Vec<String> = map.iter().map(|(from, to)| format!("{from}:{to}")).collect();
    format!("link set dev {device} type vlan egress-qos-map {}", entries.join(" "))
}
