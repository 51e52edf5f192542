//! The judge of captures: the time stamps of frames against the gates and the slots of the plan.

use std::collections::HashMap;

use macrotick_model::{Duration, Instant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::classify::Rule;
use super::packet::Packet;
use super::reader::{CaptureError, CapturedFrame};
use super::sequence::{Numbering, Sequence, Tracker};
use crate::network::{Port, Slot};

/// The properties that a capture must show.
#[derive(Clone, Debug)]
pub struct Expectation<'a> {
    /// The port that sent the frames. Its gates have the epoch of the plan's clock.
    pub port: &'a Port,
    /// The TDMA slots of the port, on the same epoch.
    pub slots: &'a [Slot],
    /// The interface of the capture to judge; `None` for all.
    pub interface: Option<u32>,
    /// The clock of the gates minus that of the capture. It is added to each time stamp.
    pub clock: Duration,
    /// The constant time from the gate to the time stamp. It is taken from each time stamp.
    pub path: Duration,
    /// The time by which a frame may be early or late nevertheless.
    pub tolerance: Duration,
    /// Whether the time stamp is the start of a frame that takes its time on the link, and has to end in its window.
    /// Otherwise a frame is an instant.
    pub whole: bool,
    /// The sequence numbers to follow.
    pub sequences: &'a [Sequence],
    /// The flows to count. The first one that matches a frame counts it.
    pub flows: &'a [FlowRule],
    /// The number of frames outside their window or slot that the verdict names. All are counted.
    pub shown: usize,
}

/// The frames of a flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowRule {
    /// The name of the flow.
    pub name: String,
    /// Its frames.
    pub rule: Rule,
    /// The place of its sequence numbers in the payload. Only its offset, width and byte order count.
    pub numbers: Option<Sequence>,
    /// The first bytes of each payload with a number.
    pub prefix: &'static [u8],
}

/// The verdict on a capture.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaptureVerdict {
    /// The interface of the plan.
    pub interface: String,
    /// The number of frames that were judged.
    pub frames: u64,
    /// The frames of other interfaces.
    pub other: u64,
    /// The frames without a time stamp.
    pub untimed: u64,
    /// The frames without a class.
    pub unclassified: u64,
    /// One entry per class, in the order of the port.
    pub classes: Vec<ClassCapture>,
    /// One entry per flow.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<FlowCapture>,
    /// The first frames outside their window or slot.
    pub strays: Vec<Stray>,
}

/// The frames of a class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClassCapture {
    /// The class.
    pub name: String,
    /// The number of frames.
    pub frames: u64,
    /// The frames while the gate was open, or within the tolerance of that.
    pub inside: u64,
    /// The frames before the gate opened, nearer to the opening than to the last closing.
    pub early: Outside,
    /// The frames after the gate had closed.
    pub late: Outside,
    /// The frames of a class that never opens.
    pub closed: u64,
    /// The frames outside the slots of the class, if it has slots.
    pub outside_slots: Outside,
    /// The frames in slots of other classes.
    pub foreign_slots: Outside,
    /// The instants of the frames, counted from the openings of their gates. `None` without frames, and for a class that
    /// never closes.
    pub offsets: Option<Offsets>,
    /// The times from one frame to the next one in the file. `None` with less than two frames.
    pub gaps: Option<Gaps>,
    /// The frames per cycle of the gate list. `None` without gates, or without frames.
    pub bursts: Option<Bursts>,
    /// The result of the sequence numbers, if they are followed.
    pub numbers: Option<Numbering>,
}

/// The frames of a flow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlowCapture {
    /// The flow.
    pub name: String,
    /// The number of frames.
    pub frames: u64,
    /// The result of the sequence numbers, if its frames have them.
    pub numbers: Option<Numbering>,
}

/// The instants of frames, counted from the openings of their gates. They are negative for early frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Offsets {
    /// The earliest.
    pub earliest: Duration,
    /// The latest.
    pub latest: Duration,
    /// The mean, rounded down.
    pub mean: Duration,
}

/// Frames outside a window or a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Outside {
    /// The number.
    pub frames: u64,
    /// The greatest distance.
    pub worst: Duration,
}

/// The times between frames. They are negative where a time stamp is before that of the frame before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Gaps {
    /// The shortest.
    pub least: Duration,
    /// The longest.
    pub greatest: Duration,
    /// The mean, rounded down.
    pub mean: Duration,
}

/// The frames of a class in each cycle, from its first frame to its last one. An early frame counts for the cycle in
/// which its gate opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Bursts {
    /// The number of cycles.
    pub cycles: u64,
    /// The cycles without a frame.
    pub empty: u64,
    /// The fewest frames of a cycle. The first and the last cycle do not count if there are others, because the capture
    /// can begin and end within them.
    pub least: u64,
    /// The most frames of a cycle.
    pub most: u64,
}

/// A frame outside its window or slot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stray {
    /// The number of the frame in the file, from 1.
    pub number: u64,
    /// Its class.
    pub class: String,
    /// The rule that it breaks.
    pub kind: StrayKind,
    /// The group of the slot, for frames in foreign slots.
    pub group: Option<String>,
    /// The distance from where it is allowed.
    pub by: Duration,
    /// The cycle of the gate list, counted from the epoch. Without gates it is 0.
    pub cycle: i64,
    /// The time from the start of the cycle, or without gates from the epoch, to the frame.
    pub at: Duration,
}

/// The rule that a frame breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StrayKind {
    /// Before its gate opens.
    Early,
    /// After its gate has closed.
    Late,
    /// The gate of its class never opens.
    Closed,
    /// Outside the slots of its class.
    OutsideSlots,
    /// In a slot of another class.
    ForeignSlot,
}

impl CaptureVerdict {
    /// Whether at least one frame was judged, all judged frames have a class, and each was in its window and slot.
    /// Sequence numbers do not count.
    pub fn is_clean(&self) -> bool {
        let fine = |class: &ClassCapture| {
            let outside = [class.early, class.late, class.outside_slots, class.foreign_slots];
            class.closed == 0 && outside.iter().all(|outside| outside.frames == 0)
        };
        self.frames > 0 && self.unclassified == 0 && self.untimed == 0 && self.classes.iter().all(fine)
    }
}

/// Judges the frames of a capture. `classify` returns the place of the class of a frame in the port; a place that the
/// port does not have is no class.
///
/// ```
/// use macrotick_check::network::capture::{judge_capture, Capture, Classifier, Expectation, Rule};
/// use macrotick_check::network::{Class, Gates, Link, Port};
/// use macrotick_model::{Duration, GateEntry, GateList, Instant};
///
/// let list = GateList {
///     interface: "eth0".into(),
///     cycle: Duration::from_millis(1),
///     entries: vec![
///         GateEntry { length: Duration::from_micros(700), open: vec!["rest".into()] },
///         GateEntry { length: Duration::from_micros(300), open: vec!["control".into()] },
///     ],
/// };
/// let names = ["control", "rest"];
/// let mut port = Port::new("eth0", Link::ethernet(1_000_000_000), names.map(Class::new).into());
/// port.gates = Some(Gates::new(&names, &list, Instant::from_nanos(0))?);
/// let rules = [
///     Rule { class: "control".into(), destination_port: Some(5000), ..Rule::default() },
///     Rule { class: "rest".into(), ..Rule::default() },
/// ];
/// let classifier = Classifier::new(&names, &rules)?;
/// # let file = [0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0];
/// let expectation = Expectation { path: Duration::from_nanos(1_100), ..Expectation::of(&port) };
/// let verdict = judge_capture(Capture::new(&file)?, &expectation, |packet| classifier.classify(packet))?;
/// println!("{verdict}");
/// # assert_eq!(verdict.frames, 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// Returns the first error of the capture.
pub fn judge_capture<'c>(
    capture: impl Iterator<Item = Result<CapturedFrame<'c>, CaptureError>>,
    expectation: &Expectation,
    classify: impl Fn(&Packet) -> Option<usize>,
) -> Result<CaptureVerdict, CaptureError> {
    let mut judge = Judge::new(expectation);
    for frame in capture {
        judge.frame(&frame?, &classify);
    }
    Ok(judge.finish())
}

impl<'a> Expectation<'a> {
    /// Expects the frames of a port in its windows to the nanosecond, without slots and sequence numbers.
    pub fn of(port: &'a Port) -> Expectation<'a> {
        Expectation {
            port,
            slots: &[],
            interface: None,
            clock: Duration::ZERO,
            path: Duration::ZERO,
            tolerance: Duration::ZERO,
            whole: false,
            sequences: &[],
            flows: &[],
            shown: 20,
        }
    }

    /// Returns the instant of a time stamp on the clock of the gates; `None` if the parameters move it out of range.
    fn corrected(&self, at: Instant) -> Option<i64> {
        let at = i128::from(at.as_nanos()) + i128::from(self.clock.as_nanos()) - i128::from(self.path.as_nanos());
        (at.abs() <= 1 << 62).then_some(at as i64)
    }

    /// Returns the time that a frame takes, in nanoseconds.
    fn duration(&self, packet: &Packet) -> i64 {
        match self.whole && self.port.link.speed > 0 {
            true => {
                let link = &self.port.link;
                link.time(link.frame_bytes(packet.content, packet.vlan.is_some())).as_nanos()
            }
            false => 1,
        }
    }
}

/// The frames of a class so far.
#[derive(Default)]
struct Progress {
    /// The instants of the first and the last frame of the file.
    stamps: Option<(i64, i64)>,
    /// The number of gaps, the shortest one, and the longest one.
    gaps: u64,
    least: i64,
    greatest: i64,
    /// The number of offsets, the earliest and the latest one, and their sum.
    offsets: u64,
    earliest: i64,
    latest: i64,
    sum: i128,
    /// The frames of each cycle that has one.
    cycles: HashMap<i64, u64>,
}

struct Judge<'a> {
    expectation: &'a Expectation<'a>,
    verdict: CaptureVerdict,
    progress: Vec<Progress>,
    trackers: Vec<Tracker>,
    /// The tracker of each flow with sequence numbers.
    numbers: Vec<Option<Tracker>>,
}

impl<'a> Judge<'a> {
    fn new(expectation: &'a Expectation<'a>) -> Judge<'a> {
        let port = expectation.port;
        let named = |class: &crate::network::Class| ClassCapture { name: class.name.clone(), ..Default::default() };
        let classes = port.classes.iter().map(named).collect();
        let flow = |flow: &FlowRule| FlowCapture { name: flow.name.clone(), ..Default::default() };
        Judge {
            expectation,
            verdict: CaptureVerdict {
                interface: port.name.clone(),
                classes,
                flows: expectation.flows.iter().map(flow).collect(),
                ..CaptureVerdict::default()
            },
            numbers: expectation.flows.iter().map(|flow| flow.numbers.map(Tracker::new)).collect(),
            progress: port.classes.iter().map(|_| Progress::default()).collect(),
            trackers: expectation.sequences.iter().map(|sequence| Tracker::new(*sequence)).collect(),
        }
    }

    fn frame(&mut self, frame: &CapturedFrame, classify: &impl Fn(&Packet) -> Option<usize>) {
        if self.expectation.interface.is_some_and(|interface| interface != frame.interface) {
            self.verdict.other += 1;
            return;
        }
        self.verdict.frames += 1;
        let packet = Packet::new(frame);
        self.flow(&packet);
        let Some(class) = classify(&packet).filter(|&class| class < self.progress.len()) else {
            self.verdict.unclassified += 1;
            return;
        };
        self.verdict.classes[class].frames += 1;
        self.trackers.iter_mut().filter(|tracker| tracker.class() == class).for_each(|one| one.add(packet.payload));
        let Some(at) = frame.at.and_then(|at| self.expectation.corrected(at)) else {
            self.verdict.untimed += 1;
            return;
        };
        self.gap(class, at);
        self.offset(class, at);
        let duration = self.expectation.duration(&packet);
        self.window(frame.number, class, at, duration);
        self.slots(frame.number, class, at, duration);
    }

    fn flow(&mut self, packet: &Packet) {
        let Some(number) = self.expectation.flows.iter().position(|flow| flow.rule.matches(packet)) else { return };
        self.verdict.flows[number].frames += 1;
        if let Some(tracker) = &mut self.numbers[number] {
            let has_number = packet.payload.starts_with(self.expectation.flows[number].prefix);
            tracker.add(if has_number { packet.payload } else { &[] });
        }
    }

    fn offset(&mut self, class: usize, at: i64) {
        let gates = self.expectation.port.gates.as_ref();
        let Some(offset) = gates.and_then(|gates| gates.since_opening(class, Instant::from_nanos(at))) else { return };
        let (offset, progress) = (offset.as_nanos(), &mut self.progress[class]);
        let is_first = progress.offsets == 0;
        progress.earliest = if is_first { offset } else { progress.earliest.min(offset) };
        progress.latest = if is_first { offset } else { progress.latest.max(offset) };
        progress.offsets += 1;
        progress.sum += i128::from(offset);
    }

    fn gap(&mut self, class: usize, at: i64) {
        let progress = &mut self.progress[class];
        let Some((_, last)) = &mut progress.stamps else {
            progress.stamps = Some((at, at));
            return;
        };
        // Both are within 2^62 of zero.
        let gap = at.saturating_sub(*last);
        *last = at;
        progress.least = if progress.gaps == 0 { gap } else { progress.least.min(gap) };
        progress.greatest = if progress.gaps == 0 { gap } else { progress.greatest.max(gap) };
        progress.gaps += 1;
    }

    /// Compares a frame with the windows of its class.
    fn window(&mut self, number: u64, class: usize, at: i64, duration: i64) {
        let Expectation { port, tolerance, .. } = self.expectation;
        let Some(gates) = &port.gates else {
            self.verdict.classes[class].inside += 1;
            return;
        };
        let instant = Instant::from_nanos(at);
        let mut counts_at = instant;
        let stray = match gates.distance(class, instant) {
            Some((early, late)) if early < late => {
                counts_at = instant + early;
                (early > *tolerance).then_some((StrayKind::Early, early))
            }
            // The closing itself is outside already.
            Some((_, late)) => {
                counts_at = instant - (late + Duration::from_nanos(1));
                (late >= *tolerance).then_some((StrayKind::Late, late))
            }
            None if !gates.is_open(class, instant) => Some((StrayKind::Closed, Duration::ZERO)),
            None => {
                let over = gates.closes(class, instant).map(|close| instant + Duration::from_nanos(duration) - close);
                over.filter(|over| over > tolerance).map(|over| (StrayKind::Late, over))
            }
        };
        *self.progress[class].cycles.entry(gates.cycle_of(counts_at)).or_default() += 1;
        let result = &mut self.verdict.classes[class];
        match stray {
            None => result.inside += 1,
            Some((StrayKind::Early, by)) => result.early.add(by),
            Some((StrayKind::Closed, _)) => result.closed += 1,
            Some((_, by)) => result.late.add(by),
        }
        if let Some((kind, by)) = stray {
            self.stray(number, class, kind, None, by, at);
        }
    }

    /// Compares a frame with its own slots and with those of other classes.
    fn slots(&mut self, number: u64, class: usize, at: i64, duration: i64) {
        let Expectation { port, slots, tolerance, .. } = *self.expectation;
        let name = &port.classes[class].name;
        let place = |slot: &Slot| self.place(slot, at, duration);
        let own = slots.iter().filter(|slot| slot.class == *name).filter_map(place).map(|place| place.outside).min();
        let foreign = slots.iter().filter(|slot| slot.class != *name);
        let foreign = foreign.filter_map(|slot| Some((place(slot)?.inside, slot))).max_by_key(|(inside, _)| *inside);
        if let Some(by) = own.map(Duration::from_nanos).filter(|by| *by > tolerance) {
            self.verdict.classes[class].outside_slots.add(by);
            self.stray(number, class, StrayKind::OutsideSlots, None, by, at);
        }
        if let Some((by, slot)) =
            foreign.map(|(by, slot)| (Duration::from_nanos(by), slot)).filter(|(by, _)| *by > tolerance)
        {
            self.verdict.classes[class].foreign_slots.add(by);
            self.stray(number, class, StrayKind::ForeignSlot, Some(slot.group.clone()), by, at);
        }
    }

    /// Returns the place of a frame against the nearest occurrences of a slot; `None` for a slot without a period.
    fn place(&self, slot: &Slot, at: i64, duration: i64) -> Option<Place> {
        let (period, length) = (slot.period.as_nanos(), slot.length.as_nanos());
        if period <= 0 {
            return None;
        }
        let epoch = self.expectation.port.gates.as_ref().map_or(0, |gates| gates.epoch().as_nanos());
        let since = i128::from(at) - i128::from(epoch) - i128::from(slot.offset.as_nanos());
        // From the start of the last occurrence to the frame, and from the frame to the next one.
        let since = since.rem_euclid(i128::from(period)) as i64;
        let until = period - since;
        let end = since.saturating_add(duration);
        // A frame that started before the slot would have to start later; one in it would have to end earlier.
        let outside = if since < length { (end - length).max(0) } else { until.min(end - length) };
        let inside = if since < length { end.min(length - since) } else { (duration - until).max(0) };
        Some(Place { outside, inside })
    }

    fn stray(&mut self, number: u64, class: usize, kind: StrayKind, group: Option<String>, by: Duration, at: i64) {
        if self.verdict.strays.len() >= self.expectation.shown {
            return;
        }
        let port = self.expectation.port;
        let instant = Instant::from_nanos(at);
        let gates = port.gates.as_ref();
        let cycle = gates.map_or(0, |gates| gates.cycle_of(instant));
        let at = gates.map_or(Duration::from_nanos(at), |gates| gates.offset_of(instant));
        let class = port.classes[class].name.clone();
        self.verdict.strays.push(Stray { number, class, kind, group, by, cycle, at });
    }

    fn finish(mut self) -> CaptureVerdict {
        for (result, progress) in self.verdict.classes.iter_mut().zip(&self.progress) {
            result.gaps = progress.gaps();
            result.offsets = progress.offsets();
            result.bursts = progress.bursts();
        }
        for (flow, tracker) in self.verdict.flows.iter_mut().zip(self.numbers) {
            let numbers = tracker.map(Tracker::finish);
            // A program can send whatever it likes.
            flow.numbers = numbers.filter(|numbers| numbers.unnumbered < flow.frames);
        }
        for tracker in self.trackers {
            if let Some(result) = self.verdict.classes.get_mut(tracker.class()) {
                result.numbers = Some(tracker.finish());
            }
        }
        self.verdict
    }
}

/// The place of a frame against a slot, in nanoseconds.
struct Place {
    /// The least time by which the frame would have to move to be in the slot as a whole.
    outside: i64,
    /// The least time by which it would have to move to be out of the slot as a whole.
    inside: i64,
}

impl Outside {
    fn add(&mut self, by: Duration) {
        self.frames += 1;
        self.worst = self.worst.max(by);
    }
}

impl Progress {
    fn offsets(&self) -> Option<Offsets> {
        let mean = self.sum.checked_div_euclid(self.offsets.into())? as i64;
        let [earliest, latest, mean] = [self.earliest, self.latest, mean].map(Duration::from_nanos);
        Some(Offsets { earliest, latest, mean })
    }

    fn gaps(&self) -> Option<Gaps> {
        let (first, last) = self.stamps.filter(|_| self.gaps > 0)?;
        let mean = (i128::from(last) - i128::from(first)).div_euclid(self.gaps.into());
        let [least, greatest, mean] = [self.least, self.greatest, mean as i64].map(Duration::from_nanos);
        Some(Gaps { least, greatest, mean })
    }

    fn bursts(&self) -> Option<Bursts> {
        let (&first, &last) = (self.cycles.keys().min()?, self.cycles.keys().max()?);
        let cycles = (i128::from(last) - i128::from(first) + 1) as u64;
        let empty = cycles - self.cycles.len() as u64;
        let inner = self.cycles.iter().filter(|(&cycle, _)| cycle != first && cycle != last);
        let least = match (empty, inner.map(|(_, frames)| *frames).min()) {
            (1.., _) => 0,
            (0, Some(least)) => least,
            (0, None) => self.cycles.values().copied().min()?,
        };
        Some(Bursts { cycles, empty, least, most: self.cycles.values().copied().max()? })
    }
}
