//! The state of a device for an examination, by the ethtool and the route family of netlink.
//!
//! The bindings number the commands of the ethtool family wrongly (they count notifications too). The right numbers are set
//! here.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CStr;
use std::net::Ipv4Addr;

use netlink_bindings::ethtool::{
    IterableBitset, OpCoalesceGetDo, OpEeeGetDo, OpFeaturesGetDo, OpPauseGetDo, OpRingsGetDo, OpTsinfoGetDo, Request,
};
use netlink_bindings::traits::NetlinkRequest;

use super::channels;
use super::classifier::Filter;
use super::kernel::{Kernel, Refusal};
use super::link;
use super::message::Message;
use super::neighbour;
use super::present;
use super::qdisc::ROOT;

/// The state of a device. A part that its driver does not have is `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Described {
    /// The kind of the root qdisc.
    pub qdisc: Option<String>,
    /// The transmit queues in use, and the most.
    pub queues: Option<(u32, u32)>,
    /// The delays of receive and transmit interrupts in microseconds, and whether the driver changes them.
    pub coalescing: Option<(u32, u32, bool)>,
    /// The names of the features that are on.
    pub features: Option<BTreeSet<String>>,
    /// Whether energy-efficient Ethernet is on.
    pub eee: Option<bool>,
    /// Whether received pause frames stop the transmitter, and whether the device sends them.
    pub pause: Option<(bool, bool)>,
    /// The frames of the transmit and of the receive ring.
    pub rings: Option<(u32, u32)>,
    /// Whether the device stamps frames in hardware, and the number of its clock.
    pub stamps: Option<(bool, Option<u32>)>,
    /// Whether the root qdisc has a size table. `None`: there is no root qdisc.
    pub has_sizes: Option<bool>,
    /// If it is a VLAN: its number, the name of the device below, and the PCP by priority.
    pub vlan: Option<(u16, Option<String>, BTreeMap<u32, u8>)>,
    /// The priorities that classifiers of a deployment give to frames.
    pub priorities: Option<BTreeSet<u32>>,
    /// The neighbours with a hardware address: address, hardware address, whether it is permanent.
    pub neighbours: Option<Vec<(Ipv4Addr, String, bool)>>,
}

/// Reads the state of a device. Fails only if there is no such device.
pub fn describe(kernel: &mut dyn Kernel, device: &str) -> Result<Described, Refusal> {
    let missing = || Refusal { errno: libc::ENODEV, text: None };
    let answers = kernel.send(&link::read(device))?;
    let link = link::decode(&answers).ok_or_else(missing)?;
    let index = link.index;
    let qdiscs = present::read_qdiscs(kernel, index).unwrap_or_default();
    let root = qdiscs.into_iter().find(|found| found.parent == ROOT);
    let vlan = link.vlan_priorities.zip(link::vlan_of(&answers));
    let vlan = vlan.map(|(code_points, (number, below))| (number, name_of(kernel, below), code_points));
    let filters = present::read_filters(kernel, index).ok();
    let neighbours = kernel.send(&neighbour::dump()).ok();
    let mut ask = |message: Message| kernel.send(&message).ok()?.into_iter().next();
    let channels = ask(channels::read(index)).and_then(|answer| channels::decode(&[answer]));
    Ok(Described {
        // A table that a deployment does not make is a table.
        has_sizes: root.as_ref().map(|found| found.sizes != Some(None)),
        qdisc: root.map(|found| found.name),
        vlan,
        priorities: filters.map(|all| {
            let priority = |filter: Filter| match filter {
                Filter::Classifier(classifier) => Some(classifier.priority),
                Filter::Closed => None,
            };
            all.into_iter().filter_map(|found| priority(found.filter?)).collect()
        }),
        neighbours: neighbours.map(|answers| {
            let known = neighbour::decode_all(index, &answers);
            known.map(|(known, permanent)| (known.address, neighbour::hardware_words(&known), permanent)).collect()
        }),
        queues: channels.map(|channels| (channels.queues, channels.max)),
        coalescing: ask(coalescing(index)).and_then(|answer| {
            let found = OpCoalesceGetDo::decode_reply(&answer);
            let is_on = |switch: Result<u8, _>| switch.is_ok_and(|on| on != 0);
            let adaptive = is_on(found.get_use_adaptive_rx()) || is_on(found.get_use_adaptive_tx());
            let (receive, transmit) = (found.get_rx_usecs(), found.get_tx_usecs());
            (receive.is_ok() || transmit.is_ok()).then(|| (receive.unwrap_or(0), transmit.unwrap_or(0), adaptive))
        }),
        features: ask(features(index))
            .and_then(|answer| names(&OpFeaturesGetDo::decode_reply(&answer).get_active().ok()?)),
        eee: ask(eee(index)).and_then(|answer| Some(OpEeeGetDo::decode_reply(&answer).get_enabled().ok()? != 0)),
        pause: ask(pause(index)).and_then(|answer| {
            let found = OpPauseGetDo::decode_reply(&answer);
            Some((found.get_rx().ok()? != 0, found.get_tx().ok()? != 0))
        }),
        rings: ask(rings(index)).and_then(|answer| {
            let found = OpRingsGetDo::decode_reply(&answer);
            Some((found.get_tx().ok()?, found.get_rx().ok()?))
        }),
        stamps: ask(stamps(index)).and_then(|answer| {
            let found = OpTsinfoGetDo::decode_reply(&answer);
            let names = names(&found.get_timestamping().ok()?)?;
            let hardware = names.contains("hardware-transmit") && names.contains("hardware-receive");
            Some((hardware, found.get_phc_index().ok()))
        }),
    })
}

/// Returns the name of the device with this number.
fn name_of(kernel: &mut dyn Kernel, index: i32) -> Option<String> {
    let all = link::decode_list(&kernel.send(&link::dump()).ok()?);
    all.into_iter().find(|device| device.index == index).map(|device| device.name)
}

/// Returns the names of the bits that are set. With a mask, a bit of the list can be off: it lacks the value.
fn names(bits: &IterableBitset) -> Option<BTreeSet<String>> {
    let has_mask = bits.get_nomask().is_err();
    let list = bits.get_bits().ok()?;
    let is_set = |bit: &netlink_bindings::ethtool::IterableBitsetBit| !has_mask || bit.get_value().is_ok();
    let text = |name: &CStr| name.to_string_lossy().into_owned();
    Some(list.get_bit().filter(is_set).filter_map(|bit| bit.get_name().ok().map(text)).collect())
}

/// Defines the request of each part: its name, the operation of the bindings, and the number of the command.
macro_rules! requests {
    ($($name:ident: $operation:ident, $number:literal;)*) => {
        $(fn $name(index: i32) -> Message {
            let mut request = Request::new().$operation();
            request.header_mut().cmd = $number;
            request.encode().nested_header().push_dev_index(index as u32);
            Message::of(&request)
        })*
    };
}

// `ETHTOOL_MSG_FEATURES_GET` and the others of `include/uapi/linux/ethtool_netlink_generated.h`.
requests! {
    features: op_features_get_do, 11;
    rings: op_rings_get_do, 15;
    coalescing: op_coalesce_get_do, 19;
    pause: op_pause_get_do, 21;
    eee: op_eee_get_do, 23;
    stamps: op_tsinfo_get_do, 25;
}
