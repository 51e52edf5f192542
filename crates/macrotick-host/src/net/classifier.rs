//! Classifiers: they give a frame its priority again, which it lost when it crossed a veth or a namespace.
//!
//! They are filters of clsact. At egress the kernel runs them before the root qdisc, and before the frame's queue is
//! chosen. At ingress it runs them before a bridge or a route takes the frame. Their preferences are numbers of our own,
//! so that filters of others stay.

use netlink_bindings::tc::{
    ActOptionsMsg, IterableActAttrs, IterableFlowerAttrs, OpGettfilterDump, OptionsMsg, PushActAttrs, Request,
    TcaStatsAttrs, Tcmsg,
};
use netlink_bindings::traits::NetlinkRequest;
use netlink_bindings::utils::{self, Pusher};

use super::message::Message;
use super::wanted::{Classifier, Frames, Protocol};

/// The preference of the first classifier. Those of the others follow.
pub(super) const FIRST: u16 = 0x4d00;
/// The largest number of classifiers of a device.
pub(super) const MAX_CLASSIFIERS: usize = 256;
/// The preference of the filter that closes the device: before all others.
pub(super) const CLOSED: u16 = 1;
const HANDLE: u32 = 1;

const ETH_P_ALL: u16 = libc::ETH_P_ALL as u16;
const ETH_P_IP: u16 = libc::ETH_P_IP as u16;
const ETH_P_8021Q: u16 = libc::ETH_P_8021Q as u16;
/// `TC_ACT_OK`: the frame goes on to the qdisc, and no further filter sees it.
const PASS: i32 = 0;
/// `TC_ACT_SHOT`: the frame is dropped.
const DROP: i32 = 2;
/// The attribute of actions of a filter, of matchall and of flower.
const MATCHALL_ACTIONS: u16 = 2;
const FLOWER_ACTIONS: u16 = 3;
/// The code point is in the upper six bits of the byte.
const CODE_POINT_MASK: u8 = 0xfc;

/// A side of a device: the frames that enter this host through it, or those that leave it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Ingress,
    Egress,
}

impl Side {
    pub const BOTH: [Side; 2] = [Side::Ingress, Side::Egress];

    /// Returns the parent of filters on this side (`TC_H_CLSACT` with `TC_H_MIN_INGRESS` or `TC_H_MIN_EGRESS`).
    pub fn parent(self) -> u32 {
        match self {
            Side::Ingress => 0xffff_fff2,
            Side::Egress => 0xffff_fff3,
        }
    }

    /// Returns the name that tc uses.
    pub fn name(self) -> &'static str {
        match self {
            Side::Ingress => "ingress",
            Side::Egress => "egress",
        }
    }
}

/// A filter that the kernel has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    pub side: Side,
    pub preference: u16,
    protocol: u16,
    /// `None`: a deployment does not make such a filter.
    pub filter: Option<Filter>,
    /// The frames that it has seen.
    pub packets: u32,
}

/// A filter that a deployment makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Filter {
    /// Drops all frames.
    Closed,
    Classifier(Classifier),
}

impl Filter {
    fn priority(&self) -> u32 {
        match self {
            Filter::Closed => 0,
            Filter::Classifier(classifier) => classifier.priority,
        }
    }

    fn verdict(&self) -> i32 {
        match self {
            Filter::Closed => DROP,
            Filter::Classifier(_) => PASS,
        }
    }

    fn frames(&self) -> Frames {
        match self {
            Filter::Closed => Frames::default(),
            Filter::Classifier(classifier) => classifier.frames.clone(),
        }
    }

    /// Returns the names of filter and action, and the options of the kernel that they need.
    pub fn needs(&self) -> &'static str {
        match kind(&self.frames()) {
            Match::All => "CONFIG_NET_CLS_ACT, CONFIG_NET_CLS_MATCHALL and CONFIG_NET_ACT_SKBEDIT",
            Match::Vlan(_) | Match::Ip => "CONFIG_NET_CLS_ACT, CONFIG_NET_CLS_FLOWER and CONFIG_NET_ACT_SKBEDIT",
        }
    }

    /// Returns the arguments for tc, from the preference on.
    pub fn words(&self, preference: u16) -> String {
        let frames = self.frames();
        let protocol = match kind(&frames) {
            Match::All => "all",
            Match::Vlan(_) => "802.1q",
            Match::Ip => "ip",
        };
        let verdict = if self.verdict() == DROP { "drop" } else { "pass" };
        format!(
            "pref {preference} protocol {protocol} handle {HANDLE} {} action skbedit priority 0:{:x} {verdict}",
            match_words(&frames),
            self.priority(),
        )
    }
}

/// The kinds of filters.
enum Match {
    All,
    Vlan(u8),
    Ip,
}

fn kind(frames: &Frames) -> Match {
    match frames.pcp {
        Some(pcp) => Match::Vlan(pcp),
        None if *frames == Frames::default() => Match::All,
        None => Match::Ip,
    }
}

fn protocol(frames: &Frames) -> u16 {
    match kind(frames) {
        Match::All => ETH_P_ALL,
        Match::Vlan(_) => ETH_P_8021Q,
        Match::Ip => ETH_P_IP,
    }
}

fn number(protocol: Protocol) -> u8 {
    match protocol {
        Protocol::Udp => libc::IPPROTO_UDP as u8,
        Protocol::Tcp => libc::IPPROTO_TCP as u8,
    }
}

fn match_words(frames: &Frames) -> String {
    if matches!(kind(frames), Match::All) {
        return "matchall".into();
    }
    let mut text = String::from("flower");
    let mut add = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            text += &format!(" {name} {value}");
        }
    };
    add("vlan_prio", frames.pcp.map(|pcp| pcp.to_string()));
    add("ip_proto", frames.protocol.map(|protocol| if protocol == Protocol::Udp { "udp" } else { "tcp" }.into()));
    add("src_ip", frames.source.map(|address| address.to_string()));
    add("dst_ip", frames.destination.map(|address| address.to_string()));
    add("dst_port", frames.port.map(|port| port.to_string()));
    add("ip_tos", frames.code_point.map(|code| format!("{:#x}/{CODE_POINT_MASK:#x}", code << 2)));
    text
}

fn at(index: i32, side: Side, preference: u16, protocol: u16) -> Tcmsg {
    let info = u32::from(preference) << 16 | u32::from(protocol.to_be());
    Tcmsg { ifindex: index, handle: HANDLE, parent: side.parent(), info, ..Default::default() }
}

/// Adds a filter.
pub(super) fn add(index: i32, side: Side, preference: u16, filter: &Filter) -> Message {
    let frames = filter.frames();
    let header = at(index, side, preference, protocol(&frames));
    let mut request = Request::new().set_create().set_excl().op_newtfilter_do(&header);
    let encoder = request.encode();
    match kind(&frames) {
        Match::All => {
            let mut options = encoder.nested_options_matchall();
            push_action(options.as_vec_mut(), MATCHALL_ACTIONS, filter);
        }
        Match::Vlan(pcp) => {
            let mut options = encoder.nested_options_flower().push_key_vlan_prio(pcp);
            push_action(options.as_vec_mut(), FLOWER_ACTIONS, filter);
            options.push_flags(0).push_key_eth_type(ETH_P_8021Q);
        }
        Match::Ip => {
            let mut options = encoder.nested_options_flower();
            if let Some(protocol) = frames.protocol {
                options = options.push_key_ip_proto(number(protocol));
            }
            if let Some(source) = frames.source {
                options = options.push_key_ipv4_src(source).push_key_ipv4_src_mask([255; 4].into());
            }
            if let Some(destination) = frames.destination {
                options = options.push_key_ipv4_dst(destination).push_key_ipv4_dst_mask([255; 4].into());
            }
            match (frames.protocol, frames.port) {
                (Some(Protocol::Udp), Some(port)) => options = options.push_key_udp_dst(port),
                (Some(Protocol::Tcp), Some(port)) => options = options.push_key_tcp_dst(port),
                _ => {}
            }
            if let Some(code) = frames.code_point {
                options = options.push_key_ip_tos(code << 2).push_key_ip_tos_mask(CODE_POINT_MASK);
            }
            push_action(options.as_vec_mut(), FLOWER_ACTIONS, filter);
            options.push_flags(0).push_key_eth_type(ETH_P_IP);
        }
    }
    Message::of(&request)
}

/// Adds the action that sets the priority. The kernel numbers actions from 1, and the bindings from 0.
fn push_action(buffer: &mut Vec<u8>, attribute: u16, filter: &Filter) {
    let actions = utils::push_nested_header(buffer, attribute);
    let action = utils::push_nested_header(buffer, 1);
    // `struct tc_gen` and `TCA_SKBEDIT_PARMS`: index, capabilities, verdict, two counts.
    let parameters = [0, 0, filter.verdict(), 0, 0].map(i32::to_ne_bytes).concat();
    PushActAttrs::new(&mut *buffer).nested_options_skbedit().push_parms(&parameters).push_priority(filter.priority());
    utils::finalize_nested_header(buffer, action);
    utils::finalize_nested_header(buffer, actions);
}

/// Deletes a filter.
pub(super) fn delete(index: i32, side: Side, preference: u16, filter: &Filter) -> Message {
    let frames = filter.frames();
    let mut request = Request::new().op_deltfilter_do(&at(index, side, preference, protocol(&frames)));
    let name = if matches!(kind(&frames), Match::All) { c"matchall" } else { c"flower" };
    request.encode().push_kind(name);
    Message::of(&request)
}

/// Asks for the filters of a device on one side.
pub(super) fn dump(index: i32, side: Side) -> Message {
    let header = Tcmsg { ifindex: index, parent: side.parent(), ..Default::default() };
    Message::of(&Request::new().op_gettfilter_dump(&header))
}

/// Reads the answers of [`dump`] for both sides.
pub(super) fn decode(index: i32, answers: &[Vec<u8>]) -> Vec<Found> {
    answers.iter().filter_map(|answer| decode_one(index, answer)).collect()
}

fn decode_one(index: i32, answer: &[u8]) -> Option<Found> {
    let (header, attributes) = OpGettfilterDump::decode_reply(answer);
    let side = Side::BOTH.into_iter().find(|side| side.parent() == header.parent)?;
    // The kernel first reports a preference without its filters.
    if header.ifindex != index || header.handle == 0 {
        return None;
    }
    let (preference, protocol) = ((header.info >> 16) as u16, u16::from_be(header.info as u16));
    let (filter, packets) = match attributes.get_options() {
        Ok(OptionsMsg::Matchall(options)) => {
            options.get_act().ok().map_or((None, 0), |act| decode_filter(Some(Frames::default()), act))
        }
        Ok(OptionsMsg::Flower(options)) => {
            options.get_act().ok().map_or((None, 0), |act| decode_filter(decode_frames(&options), act))
        }
        _ => (None, 0),
    };
    let ours = |filter: &Filter| header.handle == HANDLE && protocol == self::protocol(&filter.frames());
    Some(Found { side, preference, protocol, filter: filter.filter(ours), packets })
}

fn decode_filter<'a>(
    frames: Option<Frames>,
    mut actions: impl Iterator<Item = IterableActAttrs<'a>>,
) -> (Option<Filter>, u32) {
    let (Some(action), None) = (actions.next(), actions.next()) else { return (None, 0) };
    let packets = action.get_stats().ok().and_then(|statistics| {
        statistics.flatten().find_map(|part| match part {
            TcaStatsAttrs::Basic(basic) => Some(basic.packets),
            _ => None,
        })
    });
    let Ok(ActOptionsMsg::Skbedit(options)) = action.get_options() else { return (None, 0) };
    let verdict = options.get_parms().ok().and_then(|bytes| bytes.get(8..12)).and_then(utils::parse_i32);
    let filter = match (frames, verdict, options.get_priority()) {
        (Some(frames), Some(DROP), Ok(0)) if frames == Frames::default() => Some(Filter::Closed),
        (Some(frames), Some(PASS), Ok(priority)) => Some(Filter::Classifier(Classifier { frames, priority })),
        _ => None,
    };
    (filter, packets.unwrap_or(0))
}

/// Reads the keys of flower. `None`: it has keys that a deployment does not use.
fn decode_frames(options: &IterableFlowerAttrs<'_>) -> Option<Frames> {
    use netlink_bindings::tc::FlowerAttrs as Key;
    let mut frames = Frames::default();
    for key in (*options).flatten() {
        match key {
            Key::KeyVlanPrio(pcp) => frames.pcp = Some(pcp),
            Key::KeyIpProto(protocol) => {
                frames.protocol = [Protocol::Udp, Protocol::Tcp].into_iter().find(|known| number(*known) == protocol);
            }
            Key::KeyIpv4Src(source) => frames.source = Some(source),
            Key::KeyIpv4Dst(destination) => frames.destination = Some(destination),
            Key::KeyUdpDst(port) | Key::KeyTcpDst(port) => frames.port = Some(port),
            Key::KeyIpTos(service) => frames.code_point = Some(service >> 2),
            Key::KeyIpv4SrcMask(mask) | Key::KeyIpv4DstMask(mask) => {
                (mask == std::net::Ipv4Addr::BROADCAST).then_some(())?;
            }
            Key::KeyUdpDstMask(mask) | Key::KeyTcpDstMask(mask) => (mask == u16::MAX).then_some(())?,
            Key::KeyIpTosMask(mask) => (mask == CODE_POINT_MASK).then_some(())?,
            Key::KeyEthType(_) | Key::Act(_) | Key::Flags(_) | Key::InHwCount(_) => {}
            _ => return None,
        }
    }
    Some(frames)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::samples;

    #[test]
    fn what_is_written_is_read() {
        let tagged = Frames { pcp: Some(6), ..Frames::default() };
        let port = Frames { protocol: Some(Protocol::Tcp), port: Some(80), ..Frames::default() };
        let frames = [samples::frames(), Frames::default(), tagged, port];
        let filters = frames.map(|frames| Filter::Classifier(Classifier { frames, priority: 6 }));
        for (filter, side) in
            filters.into_iter().chain([Filter::Closed]).flat_map(|one| Side::BOTH.map(|side| (one.clone(), side)))
        {
            let found = decode(3, &[add(3, side, 7, &filter).payload]);
            assert_eq!((found[0].side, found[0].preference, found[0].filter.as_ref()), (side, 7, Some(&filter)));
        }
    }
}
