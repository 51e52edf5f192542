//! Messages about qdiscs, and qdiscs as they are read back.

use macrotick_model::Duration;
use netlink_bindings::tc::{OpGetqdiscDump, OptionsMsg, Request, TcCbsQopt, TcEtfQopt, TcFifoQopt, TcSizespec, Tcmsg};
use netlink_bindings::traits::NetlinkRequest;

use super::message::Message;
use super::taprio::{self, Running};
use super::wanted::{Cbs, Etf, GateClock, Leaf, Mapping, Sizes, Taprio};

/// The parent of a root qdisc (`TC_H_ROOT`).
pub(super) const ROOT: u32 = 0xffff_ffff;
/// The parent of clsact (`TC_H_CLSACT`).
pub(super) const CLSACT: u32 = 0xffff_fff1;
/// The handle of clsact.
pub(super) const CLSACT_HANDLE: u32 = 0xffff_0000;
/// The handle of our root qdiscs. tc shows it as `4d00:`. Those of queues have the numbers after it.
pub(super) const HANDLE: u32 = 0x4d00_0000;

/// `TC_ETF_DEADLINE_MODE_ON`, `TC_ETF_OFFLOAD_ON` and `TC_ETF_SKIP_SOCK_CHECK`.
const DEADLINE_MODE: i32 = 1 << 0;
const OFFLOAD: i32 = 1 << 1;
const SKIP_SOCKET_CHECK: i32 = 1 << 2;

/// A qdisc that a deployment can make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    Taprio(Taprio),
    Mqprio(Mapping),
    Leaf(Leaf),
}

impl Kind {
    /// Returns the name of the kind, and the option of the kernel that it needs.
    pub fn name(&self) -> (&'static str, &'static str) {
        match self {
            Kind::Taprio(_) => ("taprio", "CONFIG_NET_SCH_TAPRIO"),
            Kind::Mqprio(_) => ("mqprio", "CONFIG_NET_SCH_MQPRIO"),
            Kind::Leaf(Leaf::Etf(_)) => ("etf", "CONFIG_NET_SCH_ETF"),
            Kind::Leaf(Leaf::Cbs(_)) => ("cbs", "CONFIG_NET_SCH_CBS"),
            Kind::Leaf(Leaf::Pfifo { .. }) => ("pfifo", "CONFIG_NET_SCH_FIFO"),
        }
    }

    /// Returns the arguments for tc.
    pub fn words(&self) -> String {
        match self {
            Kind::Taprio(taprio) => taprio::words(taprio),
            Kind::Mqprio(mapping) => format!("mqprio {} hw 0", taprio::mapping_words(mapping)),
            Kind::Leaf(leaf) => leaf_words(leaf),
        }
    }
}

/// A qdisc at its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Placed {
    pub parent: u32,
    pub handle: u32,
    pub sizes: Option<Sizes>,
    pub kind: Kind,
}

/// A qdisc in a dump.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    pub parent: u32,
    pub handle: u32,
    pub name: String,
    /// `None`: a size table that a deployment does not make.
    pub sizes: Option<Option<Sizes>>,
    /// `None`: a deployment does not make such a qdisc, or not with these options.
    pub state: Option<State>,
}

/// The state of a qdisc in the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum State {
    Taprio(Running),
    Mqprio(Mapping),
    Leaf(Leaf),
}

impl Found {
    /// Returns the qdisc that makes this state.
    pub fn placed(&self) -> Option<Placed> {
        let kind = match self.state.as_ref()? {
            State::Taprio(running) => Kind::Taprio(running.wanted()?),
            State::Mqprio(mapping) => Kind::Mqprio(mapping.clone()),
            State::Leaf(leaf) => Kind::Leaf(*leaf),
        };
        Some(Placed { parent: self.parent, handle: self.handle, sizes: self.sizes?, kind })
    }

    /// Whether this is the qdisc that was to be made.
    pub fn is(&self, wanted: &Placed) -> bool {
        let kind = match (&self.state, &wanted.kind) {
            (Some(State::Taprio(running)), Kind::Taprio(taprio)) => running.is(taprio),
            (Some(State::Mqprio(found)), Kind::Mqprio(mapping)) => found == mapping,
            (Some(State::Leaf(found)), Kind::Leaf(leaf)) => found == leaf,
            _ => false,
        };
        kind && self.parent == wanted.parent && self.handle == wanted.handle && self.sizes == Some(wanted.sizes)
    }
}

/// How a qdisc comes to its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Put {
    /// There must be none.
    Add,
    /// There is one of this kind and handle, which gets these options.
    Change,
}

fn at(index: i32, parent: u32, handle: u32) -> Tcmsg {
    Tcmsg { ifindex: index, parent, handle, ..Default::default() }
}

/// Adds or changes a qdisc.
pub(super) fn put(index: i32, how: Put, qdisc: &Placed) -> Message {
    let request = match how {
        Put::Add => Request::new().set_create().set_excl(),
        Put::Change => Request::new(),
    };
    let mut request = request.op_newqdisc_do(&at(index, qdisc.parent, qdisc.handle));
    match &qdisc.kind {
        Kind::Taprio(wanted) => taprio::encode(wanted, request.encode()),
        Kind::Mqprio(mapping) => {
            request.encode().nested_options_mqprio(&taprio::encode_mapping(mapping));
        }
        Kind::Leaf(Leaf::Pfifo { limit }) => {
            request.encode().nested_options_pfifo(&TcFifoQopt { limit: *limit });
        }
        Kind::Leaf(Leaf::Etf(etf)) => {
            request.encode().nested_options_etf().push_parms(encode_etf(etf));
        }
        Kind::Leaf(Leaf::Cbs(cbs)) => {
            request.encode().nested_options_cbs().push_parms(encode_cbs(cbs));
        }
    }
    if let Some(Sizes { overhead }) = qdisc.sizes {
        // `TC_LINKLAYER_UNAWARE` is 0. Without a table, the kernel only adds the overhead.
        request.encode().nested_stab().push_base(TcSizespec { overhead, ..Default::default() });
    }
    Message::of(&request)
}

/// Deletes a qdisc.
pub(super) fn delete(index: i32, parent: u32, handle: u32) -> Message {
    Message::of(&Request::new().op_delqdisc_do(&at(index, parent, handle)))
}

/// Adds the place for classifiers.
pub(super) fn add_clsact(index: i32) -> Message {
    let mut request = Request::new().set_create().set_excl().op_newqdisc_do(&at(index, CLSACT, CLSACT_HANDLE));
    request.encode().push_kind(c"clsact");
    Message::of(&request)
}

/// Asks for the qdiscs of a device.
pub(super) fn dump(index: i32) -> Message {
    Message::of(&Request::new().op_getqdisc_dump(&at(index, 0, 0)))
}

/// Reads the answers of [`dump`]. The kernel may report other devices too.
pub(super) fn decode(index: i32, answers: &[Vec<u8>]) -> Vec<Found> {
    answers.iter().filter_map(|answer| decode_one(index, answer)).collect()
}

fn decode_one(index: i32, answer: &[u8]) -> Option<Found> {
    let (header, attributes) = OpGetqdiscDump::decode_reply(answer);
    if header.ifindex != index {
        return None;
    }
    let name = attributes.get_kind().ok()?.to_string_lossy().into_owned();
    let state = attributes.get_options().ok().and_then(|options| decode_state(&options));
    let sizes = match attributes.get_stab() {
        Err(_) => Some(None),
        Ok(stab) => stab.get_base().ok().and_then(|base| decode_sizes(&base)).map(Some),
    };
    Some(Found { parent: header.parent, handle: header.handle, name, sizes, state })
}

fn decode_state(options: &OptionsMsg<'_>) -> Option<State> {
    match options {
        OptionsMsg::Taprio(options) => taprio::decode(options).map(State::Taprio),
        OptionsMsg::Mqprio(map) => (map.hw == 0).then(|| State::Mqprio(taprio::decode_mapping(map))),
        OptionsMsg::Pfifo(fifo) => Some(State::Leaf(Leaf::Pfifo { limit: fifo.limit })),
        OptionsMsg::Etf(options) => Some(State::Leaf(Leaf::Etf(decode_etf(&options.get_parms().ok()?)?))),
        OptionsMsg::Cbs(options) => Some(State::Leaf(Leaf::Cbs(decode_cbs(&options.get_parms().ok()?)))),
        _ => None,
    }
}

fn decode_sizes(base: &TcSizespec) -> Option<Sizes> {
    let plain = TcSizespec { overhead: base.overhead, ..Default::default() };
    (*base == plain).then_some(Sizes { overhead: base.overhead })
}

fn encode_etf(etf: &Etf) -> TcEtfQopt {
    let flag = |on: bool, flag| if on { flag } else { 0 };
    let flags = flag(etf.deadline_mode, DEADLINE_MODE)
        | flag(etf.offload, OFFLOAD)
        | flag(etf.skip_socket_check, SKIP_SOCKET_CHECK);
    TcEtfQopt { delta: etf.delta.as_nanos().try_into().unwrap_or(i32::MAX), clockid: etf.clock.id(), flags }
}

fn decode_etf(parameters: &TcEtfQopt) -> Option<Etf> {
    Some(Etf {
        clock: GateClock::from_id(parameters.clockid)?,
        delta: Duration::from_nanos(parameters.delta.into()),
        offload: parameters.flags & OFFLOAD != 0,
        deadline_mode: parameters.flags & DEADLINE_MODE != 0,
        skip_socket_check: parameters.flags & SKIP_SOCKET_CHECK != 0,
    })
}

fn encode_cbs(cbs: &Cbs) -> TcCbsQopt {
    TcCbsQopt {
        offload: cbs.offload.into(),
        hicredit: cbs.high_credit,
        locredit: cbs.low_credit,
        idleslope: cbs.idle_slope,
        sendslope: cbs.send_slope,
        ..Default::default()
    }
}

fn decode_cbs(parameters: &TcCbsQopt) -> Cbs {
    Cbs {
        idle_slope: parameters.idleslope,
        send_slope: parameters.sendslope,
        high_credit: parameters.hicredit,
        low_credit: parameters.locredit,
        offload: parameters.offload != 0,
    }
}

fn leaf_words(leaf: &Leaf) -> String {
    match leaf {
        Leaf::Pfifo { limit } => format!("pfifo limit {limit}"),
        Leaf::Etf(etf) => {
            let word = |on: bool, word| if on { word } else { "" };
            format!(
                "etf delta {} clockid {}{}{}{}",
                etf.delta.as_nanos(),
                etf.clock.name(),
                word(etf.offload, " offload"),
                word(etf.deadline_mode, " deadline_mode"),
                word(etf.skip_socket_check, " skip_sock_check"),
            )
        }
        Leaf::Cbs(cbs) => format!(
            "cbs idleslope {} sendslope {} hicredit {} locredit {} offload {}",
            cbs.idle_slope,
            cbs.send_slope,
            cbs.high_credit,
            cbs.low_credit,
            u8::from(cbs.offload),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::samples;

    #[test]
    fn what_is_written_is_read() {
        let kinds = [
            Kind::Taprio(samples::taprio()),
            Kind::Mqprio(Mapping::one_queue_each(2, &[(6, 0)])),
            Kind::Leaf(Leaf::Pfifo { limit: 500 }),
            Kind::Leaf(Leaf::Etf(samples::etf())),
            Kind::Leaf(Leaf::Cbs(samples::cbs())),
        ];
        for kind in kinds {
            let wanted = Placed { parent: ROOT, handle: HANDLE, sizes: Some(Sizes { overhead: 24 }), kind };
            // A message that adds a qdisc has the layout of an answer.
            let found = decode(3, &[put(3, Put::Add, &wanted).payload]);
            assert!(found[0].is(&wanted), "{found:?}");
            assert_eq!(found[0].placed(), Some(wanted.clone()));
            assert!(!found[0].is(&Placed { sizes: None, ..wanted }));
            assert!(decode(4, &[put(3, Put::Add, &found[0].placed().unwrap()).payload]).is_empty());
        }
    }
}
