//! The qdisc taprio: gates.

use macrotick_model::Duration;
use netlink_bindings::tc::{
    IterableTaprioAttrs, IterableTaprioSchedEntryList, PushAttrs, PushTaprioAttrs, TaprioAttrs, TaprioTcEntryAttrs,
    TcMqprioQopt,
};
use netlink_bindings::utils::{self, Pusher};

use super::wanted::{Entry, GateClock, Mapping, Mode, Queues, Taprio, MAX_CLASSES};

/// `TCA_TAPRIO_ATTR_FLAG_TXTIME_ASSIST`.
const TXTIME_ASSIST: u32 = 1 << 0;
/// `TCA_TAPRIO_ATTR_FLAG_FULL_OFFLOAD`.
const FULL_OFFLOAD: u32 = 1 << 1;
/// `TCA_TAPRIO_ATTR_FLAG_EXACT`, of a kernel with Macrotick's patches.
const EXACT: u32 = 1 << 2;
/// `TCA_TAPRIO_ATTR_LEAD`, of the same kernel: nanoseconds.
const LEAD: u16 = 13;
/// `TCA_TAPRIO_ATTR_THREAD`, of the same kernel: the number of the gate thread.
const THREAD: u16 = 14;
/// `TC_TAPRIO_CMD_SET_GATES`.
const SET_GATES: u8 = 0;

/// A gate list that the kernel has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Schedule {
    pub base_time: i64,
    pub cycle: Duration,
    pub entries: Vec<Entry>,
}

/// The state of a taprio qdisc in the kernel.
#[derive(Debug, Clone)]
pub(super) struct Running {
    pub mode: Mode,
    pub clock: GateClock,
    pub mapping: Mapping,
    /// The kernel reports those of the list that it regards as running.
    pub max_sdu: Vec<u32>,
    /// They are those of an earlier list.
    pub old_limits: bool,
    /// The gate list in force. Until it starts, all gates are open.
    pub now: Option<Schedule>,
    /// The gate list that follows at its base time.
    pub next: Option<Schedule>,
    /// The thread that opens exact gates.
    pub thread: Option<u32>,
}

impl PartialEq for Running {
    fn eq(&self, other: &Running) -> bool {
        let limits = self.old_limits || other.old_limits || self.max_sdu == other.max_sdu;
        let list = |of: &Running| (of.now.clone(), of.next.clone());
        let frame = (self.mode, self.clock, &self.mapping) == (other.mode, other.clock, &other.mapping);
        limits && frame && list(self) == list(other)
    }
}

impl Eq for Running {}

impl Running {
    /// With exact gates, the kernel switches when the first frame comes after the base time. Until then it reports the
    /// list as the next one, although it is in force. `now` is the present instant of the clock.
    pub fn settle(&mut self, now: i64) {
        let exact = matches!(self.mode, Mode::Exact { .. });
        if exact && self.next.as_ref().is_some_and(|next| next.base_time <= now) {
            self.now = self.next.take();
            self.old_limits = true;
        }
    }

    /// Returns the configuration that makes this state.
    pub fn wanted(&self) -> Option<Taprio> {
        let schedule = self.next.as_ref().or(self.now.as_ref())?.clone();
        let Schedule { base_time, cycle, entries } = schedule;
        let (mode, clock, mapping) = (self.mode, self.clock, self.mapping.clone());
        Some(Taprio { mode, clock, base_time, cycle, entries, mapping, max_sdu: self.max_sdu.clone() })
    }

    /// Whether this state is what the configuration makes, once its base time has come.
    pub fn is(&self, wanted: &Taprio) -> bool {
        let schedule = self.next.as_ref().or(self.now.as_ref());
        // The kernel reports the limits of the gate list in force only.
        let old_limits = self.old_limits || self.next.is_some();
        let limits = old_limits || fit(&self.max_sdu, &wanted.max_sdu);
        self.has_frame_of(wanted)
            && is_mode(self.mode, wanted.mode)
            && limits
            && schedule.is_some_and(|schedule| schedule.is(wanted))
    }

    /// Whether a change under the same handle can make the configuration of this state: clock and classes are equal.
    pub fn has_frame_of(&self, wanted: &Taprio) -> bool {
        let clock = self.mode == Mode::Hardware || self.clock == wanted.clock;
        clock && self.mapping == wanted.mapping
    }
}

impl Schedule {
    fn is(&self, wanted: &Taprio) -> bool {
        let cycle = wanted.cycle.as_nanos().max(1);
        self.cycle == wanted.cycle
            && self.entries == wanted.entries
            && (self.base_time - wanted.base_time).rem_euclid(cycle) == 0
    }
}

/// Whether a mode that was read is the wanted one. The kernel may leave out a lead.
fn is_mode(found: Mode, wanted: Mode) -> bool {
    let no_lead = Mode::Exact { lead: Duration::from_nanos(0) };
    found == wanted || found == no_lead && matches!(wanted, Mode::Exact { .. })
}

/// Whether the limits that the kernel reports follow from the wanted ones. The kernel lowers a limit to the longest frame
/// that fits into an interval of its class.
fn fit(found: &[u32], wanted: &[u32]) -> bool {
    let of = |limits: &[u32], class: usize| limits.get(class).copied().unwrap_or(0);
    (0..found.len().max(wanted.len())).all(|class| match (of(found, class), of(wanted, class)) {
        (found, wanted) if found == wanted => true,
        (0, _) => false,
        (found, wanted) => wanted == 0 || found < wanted,
    })
}

/// Returns the limits without the zeros at the end.
fn limits(max_sdu: &[u32]) -> &[u32] {
    let count = max_sdu.iter().rposition(|limit| *limit != 0).map_or(0, |last| last + 1);
    &max_sdu[..count]
}

fn flags(mode: Mode) -> u32 {
    match mode {
        Mode::Hardware => FULL_OFFLOAD,
        Mode::Exact { .. } => EXACT,
        Mode::Software => 0,
        Mode::TxtimeAssist { .. } => TXTIME_ASSIST,
    }
}

/// Returns a length in the kernel's format. The check of the gate list ensures that it fits.
fn nanos(length: Duration) -> u32 {
    u32::try_from(length.as_nanos()).unwrap_or(u32::MAX)
}

/// Adds kind and options, in the order of tc.
pub(super) fn encode<Prev: Pusher>(taprio: &Taprio, to: PushAttrs<Prev>) {
    let options = encode_frame(taprio, to.nested_options_taprio());
    let mut options = encode_schedule(taprio, options);
    // A zero takes back the limit of an earlier list.
    for (class, limit) in (0..).zip(&taprio.max_sdu) {
        options = options.nested_tc_entry().push_index(class).push_max_sdu(*limit).end_nested();
    }
}

/// Adds what stays while the gate list changes.
pub(super) fn encode_frame<Prev: Pusher>(taprio: &Taprio, mut options: PushTaprioAttrs<Prev>) -> PushTaprioAttrs<Prev> {
    if taprio.mode != Mode::Hardware {
        options = options.push_sched_clockid(taprio.clock.id());
    }
    if flags(taprio.mode) != 0 {
        options = options.push_flags(flags(taprio.mode));
    }
    options = options.push_priomap(encode_mapping(&taprio.mapping));
    match taprio.mode {
        Mode::TxtimeAssist { delay } => options = options.push_txtime_delay(nanos(delay)),
        Mode::Exact { lead } => {
            utils::push_header(options.as_vec_mut(), LEAD, 4);
            options.as_vec_mut().extend(nanos(lead).to_ne_bytes());
        }
        Mode::Hardware | Mode::Software => {}
    }
    options
}

/// Adds the gate list.
pub(super) fn encode_schedule<Prev: Pusher>(taprio: &Taprio, options: PushTaprioAttrs<Prev>) -> PushTaprioAttrs<Prev> {
    let options = options.push_sched_base_time(taprio.base_time).push_sched_cycle_time(taprio.cycle.as_nanos());
    let mut list = options.nested_sched_entry_list();
    for entry in &taprio.entries {
        let open = list.nested_entry().push_cmd(SET_GATES).push_gate_mask(entry.open);
        list = open.push_interval(nanos(entry.length)).end_nested();
    }
    list.end_nested()
}

/// Returns the classes in the kernel's format. The device itself does not sort (`hw 0`).
pub(super) fn encode_mapping(mapping: &Mapping) -> TcMqprioQopt {
    let mut map = TcMqprioQopt { num_tc: mapping.queues.len() as u8, ..Default::default() };
    map.prio_tc_map = mapping.classes;
    // The bindings have bytes where the kernel has 16-bit numbers.
    for (class, queues) in mapping.queues.iter().enumerate().take(MAX_CLASSES) {
        map.count[2 * class..][..2].copy_from_slice(&queues.count.to_ne_bytes());
        map.offset[2 * class..][..2].copy_from_slice(&queues.offset.to_ne_bytes());
    }
    map
}

pub(super) fn decode_mapping(map: &TcMqprioQopt) -> Mapping {
    let number = |bytes: &[u8], class: usize| u16::from_ne_bytes([bytes[2 * class], bytes[2 * class + 1]]);
    let queues = |class| Queues { count: number(&map.count, class), offset: number(&map.offset, class) };
    let count = usize::from(map.num_tc).min(MAX_CLASSES);
    Mapping { classes: map.prio_tc_map, queues: (0..count).map(queues).collect() }
}

/// Reads the options of a dump. `None`: this configuration is not one that a deployment can make.
pub(super) fn decode(options: &IterableTaprioAttrs<'_>) -> Option<Running> {
    let number = |found: Option<u32>| Duration::from_nanos(found.unwrap_or(0).into());
    let mode = match options.get_flags().unwrap_or(0) {
        0 => Mode::Software,
        TXTIME_ASSIST => Mode::TxtimeAssist { delay: number(options.get_txtime_delay().ok()) },
        FULL_OFFLOAD => Mode::Hardware,
        EXACT => Mode::Exact { lead: number(utils::find_attr(options.get_buf(), LEAD).and_then(utils::parse_u32)) },
        _ => return None,
    };
    // The dump of gates in hardware names no clock.
    let clock = options.get_sched_clockid().map_or(Some(GateClock::Tai), GateClock::from_id)?;
    let mapping = decode_mapping(&options.get_priomap().ok()?);
    let next = options.get_admin_sched().ok().map(|next| decode_schedule(&TaprioAttrs::new(next)));
    let next = match next {
        Some(next) => Some(next?),
        None => None,
    };
    let now = match options.get_sched_entry_list() {
        Ok(_) => Some(decode_schedule(options)?),
        Err(_) => None,
    };
    let thread = utils::find_attr(options.get_buf(), THREAD).and_then(utils::parse_u32);
    Some(Running { mode, clock, mapping, max_sdu: decode_limits(options)?, old_limits: false, now, next, thread })
}

fn decode_schedule(attributes: &IterableTaprioAttrs<'_>) -> Option<Schedule> {
    let entries = decode_entries(attributes.get_sched_entry_list().ok()?)?;
    // A switch that stretches the last cycle is not what a deployment makes.
    if attributes.get_sched_cycle_time_extension().unwrap_or(0) != 0 {
        return None;
    }
    let base_time = attributes.get_sched_base_time().ok()?;
    Some(Schedule { base_time, cycle: Duration::from_nanos(attributes.get_sched_cycle_time().ok()?), entries })
}

fn decode_entries(list: IterableTaprioSchedEntryList<'_>) -> Option<Vec<Entry>> {
    let entry = |entry: netlink_bindings::tc::IterableTaprioSchedEntry<'_>| {
        let plain = entry.get_cmd().is_ok_and(|command| command == SET_GATES);
        let length = Duration::from_nanos(entry.get_interval().ok()?.into());
        plain.then_some(Entry { length, open: entry.get_gate_mask().ok()? })
    };
    list.get_entry().map(entry).collect()
}

/// Returns the largest frame of each class. `None`: frames of some class are preemptible.
fn decode_limits(options: &IterableTaprioAttrs<'_>) -> Option<Vec<u32>> {
    let mut found = vec![0; MAX_CLASSES];
    for attribute in (*options).flatten() {
        let TaprioAttrs::TcEntry(class) = attribute else { continue };
        let index = class.get_index().ok()? as usize;
        *found.get_mut(index)? = class.get_max_sdu().unwrap_or(0);
        // `TC_FP_EXPRESS` is 1.
        if class.flatten().any(|attribute| matches!(attribute, TaprioTcEntryAttrs::Fp(fp) if fp != 1)) {
            return None;
        }
    }
    found.truncate(limits(&found).len());
    Some(found)
}

/// Returns the arguments for tc.
pub(super) fn words(taprio: &Taprio) -> String {
    let mut text = format!("taprio {}", mapping_words(&taprio.mapping));
    text += &format!(" base-time {} cycle-time {}", taprio.base_time, taprio.cycle.as_nanos());
    for entry in &taprio.entries {
        text += &format!(" sched-entry S {:02x} {}", entry.open, entry.length.as_nanos());
    }
    if !limits(&taprio.max_sdu).is_empty() {
        text += " max-sdu";
        limits(&taprio.max_sdu).iter().for_each(|limit| text += &format!(" {limit}"));
    }
    if flags(taprio.mode) != 0 {
        text += &format!(" flags {:#x}", flags(taprio.mode));
    }
    match taprio.mode {
        Mode::TxtimeAssist { delay } => text += &format!(" txtime-delay {}", delay.as_nanos()),
        Mode::Exact { lead } => text += &format!(" lead {}", lead.as_nanos()),
        Mode::Hardware => return text,
        Mode::Software => {}
    }
    text + " clockid " + taprio.clock.name()
}

/// Returns the arguments for tc that describe classes.
pub(super) fn mapping_words(mapping: &Mapping) -> String {
    let mut text = format!("num_tc {} map", mapping.queues.len());
    mapping.classes.iter().for_each(|class| text += &format!(" {class}"));
    text += " queues";
    mapping.queues.iter().for_each(|queues| text += &format!(" {}@{}", queues.count, queues.offset));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::samples;

    #[test]
    fn the_kernel_lowers_limits() {
        assert!(fit(&[0, 3482], &[]) && fit(&[0, 300], &[0, 400]) && fit(&[400], &[400, 0]));
        assert!(!fit(&[0, 500], &[0, 400]) && !fit(&[], &[400]));
    }

    /// Encodes, and returns what a dump of it would contain.
    fn reread(taprio: &Taprio) -> Running {
        let mut buffer = Vec::new();
        encode(taprio, PushAttrs::new(&mut buffer));
        let options = utils::find_attr(&buffer, 2).unwrap();
        decode(&TaprioAttrs::new(options)).unwrap()
    }

    #[test]
    fn what_is_written_is_read() {
        let us = |us: i64| Duration::from_nanos(us * 1000);
        let modes =
            [Mode::Hardware, Mode::Exact { lead: us(60) }, Mode::Software, Mode::TxtimeAssist { delay: us(200) }];
        for mode in modes {
            let wanted = Taprio { mode, max_sdu: vec![0, 1500, 0], ..samples::taprio() };
            let running = reread(&wanted);
            assert!(running.is(&wanted), "{running:?}");
            assert_eq!(running.wanted(), Some(Taprio { max_sdu: vec![0, 1500], ..wanted.clone() }));
            assert!(!running.is(&Taprio { max_sdu: vec![0, 900], ..wanted.clone() }));
        }
    }

    #[test]
    fn exact_gates_switch_by_the_clock() {
        let mode = Mode::Exact { lead: Duration::from_nanos(60_000) };
        let wanted = Taprio { mode, max_sdu: vec![1000], ..samples::taprio() };
        let mut running = reread(&wanted);
        running.next = running.now.take();
        running.max_sdu.clear();
        let waits = running.clone();
        running.settle(wanted.base_time - 1);
        assert_eq!(running, waits);
        running.settle(wanted.base_time);
        assert!(running.now.is_some() && running.next.is_none() && running.is(&wanted));
        let mut software = Running { mode: Mode::Software, ..waits };
        software.settle(wanted.base_time);
        assert!(software.next.is_some());
    }

    #[test]
    fn base_times_are_equal_modulo_the_cycle() {
        let wanted = samples::taprio();
        let moved = |by| Taprio { base_time: wanted.base_time + by, ..wanted.clone() };
        assert!(reread(&wanted).is(&moved(-7_000_000)));
        assert!(!reread(&wanted).is(&moved(1)));
    }

    #[test]
    fn another_map_needs_another_qdisc() {
        let wanted = samples::taprio();
        let other = Taprio { mapping: Mapping::one_queue_each(3, &[]), ..wanted.clone() };
        assert!(reread(&wanted).has_frame_of(&Taprio { entries: Vec::new(), ..wanted.clone() }));
        assert!(!reread(&wanted).has_frame_of(&other));
        assert!(!reread(&wanted).has_frame_of(&Taprio { clock: GateClock::Monotonic, ..wanted }));
    }
}
