//! A model of the kernel's qdiscs, filters, neighbours and queues for one device, with the traps of Linux 6.12.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use macrotick_model::Duration;
use netlink_bindings::rt_link::{self, Ifinfomsg, IflaVlanQosMapping, LinkinfoDataMsg};
use netlink_bindings::rt_neigh;
use netlink_bindings::tc::{OpDelqdiscDo, OpNewqdiscDo, OptionsMsg, PushTaprioAttrs, Request, Tcmsg};
use netlink_bindings::traits::NetlinkRequest;

use super::channels::{self, Channels};
use super::classifier::{Side, CLOSED};
use super::kernel::{Kernel, Refusal, Shared, ENOTSUPP};
use super::message::{Family, Message};
use super::qdisc::{self, Put, CLSACT, ROOT};
use super::taprio::{self, Running, Schedule};
use super::wanted::{GateClock, Mode, Taprio};

/// The number of the device.
pub(super) const INDEX: i32 = 3;

/// The place and the handle of a qdisc; the side and the information of a filter.
type Spot = (u32, u32);
/// The message for a qdisc, and the state of gates.
type Configured = (Vec<u8>, Option<Running>);

/// The state that a failed deployment must leave as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct State {
    qdiscs: BTreeMap<Spot, Configured>,
    /// By side and preference.
    filters: BTreeMap<Spot, Vec<u8>>,
    neighbours: BTreeMap<Vec<u8>, Vec<u8>>,
    vlan: Option<BTreeMap<u32, u8>>,
    pub queues: u32,
}

pub(super) struct Fake {
    pub state: State,
    pub time: i64,
    /// The change that fails, counted from 0.
    pub fail_at: Option<usize>,
    /// All changes from this one on fail.
    pub always_fail_from: Option<usize>,
    /// The time that a change takes, in nanoseconds.
    pub duration: i64,
    /// The changes so far.
    pub changes: usize,
    /// The modes of gates that the device or the kernel does not have.
    pub refused: Vec<&'static str>,
    /// The device had gates, and later neither gates in force nor a filter that drops all frames.
    pub leaked: bool,
    gated: bool,
    /// The instant at which the next gate list starts.
    start: i64,
    /// No frame comes, so that exact gates do not report a switch.
    pub silent: bool,
}

fn refusal(errno: i32, text: &str) -> Refusal {
    Refusal { errno, text: Some(text.into()) }
}

/// Puts a changed model behind the type that deployments share.
pub(super) fn shared(fake: Fake) -> (Rc<RefCell<Fake>>, Shared) {
    let fake = Rc::new(RefCell::new(fake));
    (fake.clone(), fake)
}

impl Fake {
    /// A device with four queues and, as a VLAN, with priorities.
    pub fn new(vlan: bool) -> Fake {
        let vlan = vlan.then(|| BTreeMap::from([(3, 2)]));
        let maps = BTreeMap::new();
        let state = State { qdiscs: BTreeMap::new(), filters: maps, neighbours: BTreeMap::new(), vlan, queues: 4 };
        let time = 5_000_000_000_000;
        Fake {
            state,
            time,
            fail_at: None,
            always_fail_from: None,
            duration: 0,
            changes: 0,
            refused: Vec::new(),
            leaked: false,
            gated: false,
            start: 0,
            silent: false,
        }
    }

    fn root(&self) -> Option<(&Spot, &Configured)> {
        self.state.qdiscs.iter().find(|((parent, _), _)| *parent == ROOT)
    }

    /// Lets a gate list start, and watches for frames that pass no gate.
    fn settle(&mut self) {
        let starts = self.start <= self.time;
        for (_, running) in self.state.qdiscs.values_mut() {
            let Some(running) = running.as_mut().filter(|running| starts && running.next.is_some()) else { continue };
            if self.silent && running.mode.tier() == "exact" {
                continue;
            }
            running.now = running.next.take();
        }
        let in_force =
            self.root().is_some_and(|(_, (_, gates))| gates.as_ref().is_some_and(|gates| gates.now.is_some()));
        self.leaked |= self.gated && !in_force && !self.closed();
        self.gated |= in_force;
    }

    fn change(&mut self) -> Result<(), Refusal> {
        self.changes += 1;
        self.time += self.duration;
        let fails = self.fail_at.is_some_and(|at| at + 1 == self.changes)
            || self.always_fail_from.is_some_and(|from| from < self.changes);
        match fails {
            true => Err(refusal(libc::ENOMEM, "the fault of the test")),
            false => Ok(()),
        }
    }

    fn put_qdisc(&mut self, message: &Message) -> Result<(), Refusal> {
        let create = message.flags & libc::NLM_F_CREATE as u16 != 0;
        let (header, attributes) = OpNewqdiscDo::decode_reply(&message.payload);
        let key = (header.parent, header.handle);
        let below = ![ROOT, CLSACT].contains(&header.parent);
        let has_root = self.root().is_some_and(|((_, handle), _)| *handle == header.parent & 0xffff_0000);
        if below && !has_root {
            return Err(refusal(libc::ENOENT, "Failed to find specified qdisc"));
        }
        let old = self.state.qdiscs.get(&key).cloned();
        match (&old, create) {
            (Some(_), true) => return Err(refusal(libc::EEXIST, "Exclusivity flag on, cannot modify")),
            (None, false) => return Err(refusal(libc::ENOENT, "Qdisc not found")),
            _ => {}
        }
        assert!(!create || header.parent != ROOT || self.root().is_none(), "the kernel hangs");
        let mut gates = None;
        if let Ok(OptionsMsg::Taprio(options)) = attributes.get_options() {
            let new = taprio::decode(&options).ok_or_else(|| refusal(libc::EINVAL, "bad gates"))?;
            if self.refused.contains(&new.mode.tier()) {
                return Err(refusal(libc::EOPNOTSUPP, "Device does not support taprio offload"));
            }
            let followed = self.follow(old.and_then(|(_, gates)| gates), new)?;
            self.start = followed.next.as_ref().map_or(0, |next| start(next, self.time));
            gates = Some(followed);
        }
        self.state.qdiscs.insert(key, (message.payload.clone(), gates));
        Ok(())
    }

    /// Returns the gates after a new list was sent: it follows the running one.
    fn follow(&self, old: Option<Running>, new: Running) -> Result<Running, Refusal> {
        let wanted = new.wanted().ok_or_else(|| refusal(libc::EINVAL, "no gate list"))?;
        match &old {
            Some(old) if !old.has_frame_of(&wanted) || old.mode.tier() != new.mode.tier() => {
                let words = "Changing the traffic mapping of a running schedule is not supported";
                Err(refusal(ENOTSUPP, words))
            }
            Some(old) => Ok(Running { now: old.now.clone(), next: new.now, ..new }),
            None => Ok(Running { now: None, next: new.now, ..new }),
        }
    }

    fn delete_qdisc(&mut self, message: &Message) -> Result<(), Refusal> {
        let (header, _) = OpDelqdiscDo::decode_request(&message.payload);
        let missing = || refusal(libc::ENOENT, "Cannot find specified qdisc on specified device");
        self.state.qdiscs.remove(&(header.parent, header.handle)).ok_or_else(missing)?;
        match header.parent {
            CLSACT => self.state.filters.clear(),
            _ => self.state.qdiscs.retain(|(parent, _), _| *parent == CLSACT),
        }
        Ok(())
    }

    fn dump_qdiscs(&self) -> Vec<Vec<u8>> {
        let default = Tcmsg { ifindex: INDEX, parent: ROOT, ..Default::default() };
        let mut request = Request::new().op_newqdisc_do(&default);
        request.encode().push_kind(c"noqueue");
        let default = self.root().is_none().then(|| Message::of(&request).payload);
        let configured = self.state.qdiscs.iter().map(|(key, (sent, gates))| match gates {
            Some(gates) => dump_gates(*key, sent, gates),
            None => sent.clone(),
        });
        default.into_iter().chain(configured).collect()
    }

    fn filter(&mut self, message: &Message, add: bool) -> Result<(), Refusal> {
        let (header, _) = OpNewqdiscDo::decode_reply(&message.payload);
        if !self.state.qdiscs.keys().any(|(parent, _)| *parent == CLSACT) {
            return Err(refusal(libc::EINVAL, "Parent Qdisc doesn't exists"));
        }
        match add {
            true => match self.state.filters.insert((header.parent, header.info), message.payload.clone()) {
                None => Ok(()),
                Some(_) => Err(refusal(libc::EEXIST, "Filter already exists")),
            },
            false => match self.state.filters.remove(&(header.parent, header.info)) {
                Some(_) => Ok(()),
                None => Err(refusal(libc::ENOENT, "Cannot find filter")),
            },
        }
    }

    fn dump_filters(&self, message: &Message) -> Vec<Vec<u8>> {
        let (header, _) = OpNewqdiscDo::decode_reply(&message.payload);
        let each = self.state.filters.iter().filter(|((side, _), _)| *side == header.parent);
        each.map(|(_, filter)| filter.clone()).collect()
    }

    fn link(&self) -> Vec<u8> {
        let header = Ifinfomsg { ifi_index: INDEX, ..Default::default() };
        let mut request = rt_link::Request::new().op_newlink_do(&header);
        request.encode().push_mtu(1500).push_num_tx_queues(4);
        match &self.state.vlan {
            Some(map) => {
                let mut entries = request.encode().nested_linkinfo().nested_data_vlan().nested_egress_qos();
                for (from, to) in map {
                    entries = entries.push_mapping(IflaVlanQosMapping { from: *from, to: (*to).into() });
                }
            }
            None => drop(request.encode().nested_linkinfo().push_kind(c"veth")),
        }
        Message::of(&request).payload
    }

    fn set_link(&mut self, message: &Message) {
        let (_, attributes) = rt_link::OpNewlinkDo::decode_reply(&message.payload);
        let data = attributes.get_linkinfo().and_then(|info| info.get_data());
        let (Ok(LinkinfoDataMsg::Vlan(vlan)), Some(map)) = (data, &mut self.state.vlan) else { panic!("no VLAN") };
        for entry in vlan.get_egress_qos().unwrap().get_mapping() {
            map.insert(entry.from, entry.to as u8);
        }
        // A dump has no priorities with PCP 0.
        map.retain(|_, pcp| *pcp != 0);
    }

    fn neighbour(&mut self, message: &Message, add: bool) -> Result<(), Refusal> {
        let (_, attributes) = rt_neigh::OpGetneighDump::decode_reply(&message.payload);
        let address = attributes.get_dst().unwrap().to_string().into_bytes();
        match add {
            true => drop(self.state.neighbours.insert(address, message.payload.clone())),
            false => drop(self.state.neighbours.remove(&address).ok_or_else(|| refusal(libc::ENOENT, ""))?),
        }
        Ok(())
    }

    fn channels(&mut self, message: &Message) -> Result<Vec<Vec<u8>>, Refusal> {
        // The command is the first byte: 17 reads, 18 sets.
        if message.payload[0] == 18 {
            self.change()?;
            self.state.queues = channels::decode(std::slice::from_ref(&message.payload)).unwrap().queues;
            return Ok(Vec::new());
        }
        let mut answer = channels::set(INDEX, Channels { queues: self.state.queues, max: 4, combined: true }).payload;
        // `ETHTOOL_A_CHANNELS_COMBINED_MAX`.
        answer.extend([8, 0, 5, 0, 4, 0, 0, 0]);
        Ok(vec![answer])
    }
}

/// Returns the start of a gate list: its base time, or the next cycle after a past one (`taprio_get_start_time()`).
fn start(list: &Schedule, now: i64) -> i64 {
    let cycle = list.cycle.as_nanos();
    match list.base_time > now {
        true => list.base_time,
        false => list.base_time + ((now - list.base_time) / cycle + 1) * cycle,
    }
}

/// Writes gates as the kernel does: the list in force, and the next one in `TCA_TAPRIO_ATTR_ADMIN_SCHED`.
fn dump_gates((parent, handle): (u32, u32), sent: &[u8], gates: &Running) -> Vec<u8> {
    let complete = |schedule: &Schedule| Taprio {
        mode: gates.mode,
        clock: gates.clock,
        base_time: schedule.base_time,
        cycle: schedule.cycle,
        entries: schedule.entries.clone(),
        mapping: gates.mapping.clone(),
        max_sdu: gates.max_sdu.clone(),
    };
    let sizes = qdisc::decode(INDEX, &[sent.to_vec()]).remove(0).sizes.flatten();
    let put = |taprio| {
        let kind = qdisc::Kind::Taprio(taprio);
        qdisc::put(INDEX, Put::Add, &qdisc::Placed { parent, handle, sizes, kind }).payload
    };
    let Some(next) = &gates.next else { return put(complete(gates.now.as_ref().unwrap())) };
    let mut following = Vec::new();
    taprio::encode_schedule(&complete(next), PushTaprioAttrs::new(&mut following));
    let header = Tcmsg { ifindex: INDEX, parent, handle, ..Default::default() };
    let mut request = Request::new().op_newqdisc_do(&header);
    let mut options = request.encode().nested_options_taprio().push_admin_sched(&following);
    options = taprio::encode_frame(&complete(next), options);
    match &gates.now {
        Some(now) => drop(taprio::encode_schedule(&complete(now), options)),
        None => drop(options),
    }
    if let Some(qdisc_sizes) = sizes {
        let base = netlink_bindings::tc::TcSizespec { overhead: qdisc_sizes.overhead, ..Default::default() };
        request.encode().nested_stab().push_base(base);
    }
    Message::of(&request).payload
}

impl Kernel for Fake {
    fn send(&mut self, message: &Message) -> Result<Vec<Vec<u8>>, Refusal> {
        let Family::Route(kind) = message.family else { return self.channels(message) };
        let reads = [libc::RTM_GETLINK, libc::RTM_GETQDISC, libc::RTM_GETTFILTER, libc::RTM_GETNEIGH];
        if !reads.contains(&kind) {
            self.change()?;
        }
        self.settle();
        let answers = match kind {
            libc::RTM_GETLINK => vec![self.link()],
            libc::RTM_GETQDISC => self.dump_qdiscs(),
            libc::RTM_GETTFILTER => self.dump_filters(message),
            libc::RTM_GETNEIGH => self.state.neighbours.values().cloned().collect(),
            libc::RTM_NEWQDISC => self.put_qdisc(message).map(|()| Vec::new())?,
            libc::RTM_DELQDISC => self.delete_qdisc(message).map(|()| Vec::new())?,
            libc::RTM_NEWTFILTER => self.filter(message, true).map(|()| Vec::new())?,
            libc::RTM_DELTFILTER => self.filter(message, false).map(|()| Vec::new())?,
            libc::RTM_NEWNEIGH => self.neighbour(message, true).map(|()| Vec::new())?,
            libc::RTM_DELNEIGH => self.neighbour(message, false).map(|()| Vec::new())?,
            libc::RTM_NEWLINK => {
                self.set_link(message);
                Vec::new()
            }
            kind => panic!("message {kind}"),
        };
        self.settle();
        Ok(answers)
    }

    fn now(&self, _: GateClock) -> i64 {
        self.time
    }

    fn wait(&mut self, length: Duration) {
        self.time += length.as_nanos();
        self.settle();
    }
}

impl Fake {
    /// Whether a filter drops all frames.
    pub fn closed(&self) -> bool {
        let is_it = |(side, info): &Spot| *side == Side::Egress.parent() && info >> 16 == u32::from(CLOSED);
        self.state.filters.keys().any(is_it)
    }

    /// Returns the mode of the gates in force.
    pub fn mode(&self) -> Option<Mode> {
        self.root().and_then(|(_, (_, gates))| gates.as_ref()).map(|gates| gates.mode)
    }
}
