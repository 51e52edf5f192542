//! Slots (TDMA): two senders with coprime periods beside bulk. The judge compares a capture with the slots. The experiment
//! is that of section 5.4 of the paper on real-time containers.

use std::fmt::Write as _;

use macrotick_check::network::capture::{
    judge_capture, Capture, CaptureVerdict, Classifier, Expectation, Packet, Rule, Sequence, Width,
};
use macrotick_check::network::{Class, Gates, Link, Port, Slot};
use macrotick_lab::Flavor;
use macrotick_model::{Duration, GateEntry, GateList, Instant};
use macrotick_report::{Figure, Statistics};

use super::classes::MICROSECOND;
use super::slots_guest::{CAPTURE, RUN};
use crate::error::BenchError;
use crate::kit::aims::Aim;
use crate::kit::bench::Bench;
use crate::kit::lab;
use crate::kit::scale::Scale;

/// The cycle of the paper, and its slots.
pub const CYCLE: i64 = 6 * SLOT;
const SLOT: i64 = 1000 * MICROSECOND;
/// The time at the end of the default slot in which all gates are closed. A frame of the bulk that has started ends in it.
const GUARD: i64 = 20 * MICROSECOND;
/// The time from a whole millisecond to a release.
pub const RELEASE: i64 = 300 * MICROSECOND;
/// The port of the bulk.
pub const BULK_PORT: u16 = 9;
/// The speed of a veth for the kernel.
const SPEED: u64 = 10_000_000_000;
/// The greatest difference of two ways from an exact gate to the time stamp.
const TOLERANCE: Duration = Duration::from_nanos(60);

const CYCLES: i64 = 770;
const QUICK_CYCLES: i64 = 77;
const WALL: Duration = Duration::from_secs(3600);

/// A sender with a slot.
#[derive(Clone, Copy, Debug)]
pub struct Sender {
    /// The name, and that of its class.
    pub name: &'static str,
    /// The period.
    pub period: i64,
    /// The port of its datagrams.
    pub port: u16,
    /// The priority of its frames.
    pub priority: u8,
    /// The start of its slot.
    slot: i64,
}

/// The senders. Their classes have the same order.
pub const SENDERS: [Sender; 2] = [
    Sender { name: "first", period: 7 * SLOT, port: 4001, priority: 6, slot: SLOT },
    Sender { name: "second", period: 11 * SLOT, port: 4002, priority: 5, slot: 2 * SLOT },
];
const BULK: &str = "bulk";

/// The gate list: masks of open classes, and lengths. Three slots of the cycle belong to other nodes.
pub const ENTRIES: [(u32, i64); 5] = [(4, SLOT - GUARD), (0, GUARD), (1, SLOT), (2, SLOT), (0, 3 * SLOT)];

/// The times from the start of a slot to the frames that waited for it, in ascending order.
struct Waited {
    sender: Sender,
    times: Vec<i64>,
}

/// The result of the run.
pub struct Slots {
    verdict: CaptureVerdict,
    waited: Vec<Waited>,
    /// Whether a second run made the same capture. `None`: there was no second run.
    is_repeated: Option<bool>,
}

fn cycles(scale: Scale) -> i64 {
    scale.of(CYCLES, QUICK_CYCLES)
}

/// Returns the cycles of each run.
pub fn extent(scale: Scale) -> Vec<u64> {
    vec![cycles(scale) as u64; scale.of(2, 1)]
}

impl Slots {
    /// Runs everything in the lab. The gates open earlier by the constant path, in ns.
    pub fn measure(bench: &Bench, path_ns: i64) -> Result<Slots, BenchError> {
        let capture = || {
            lab::announce(&format!("{}: slots", bench.name));
            let words = [RUN, &path_ns.to_string(), &cycles(bench.scale).to_string()].map(String::from);
            let mut job = lab::job(Flavor::Patched, words);
            job.wall_limit = WALL;
            job.collect = vec![CAPTURE.into()];
            let outcome = lab::run(&job)?;
            let file = outcome.files.get(CAPTURE).cloned();
            file.ok_or_else(|| lab::no_output(&job, "capture", outcome.stderr_text()))
        };
        let file = capture()?;
        let is_repeated = match bench.scale {
            Scale::Full => Some(capture()? == file),
            Scale::Quick => None,
        };
        judged(&file, is_repeated).map_err(BenchError::Capture)
    }

    /// Returns the aims.
    pub fn aims(&self) -> Vec<Aim> {
        let aim = |what: &str, unit, value, limit| Aim { what: format!("slots: {what}"), unit, value, limit };
        let classes = &self.verdict.classes;
        let outside: u64 = classes.iter().map(|class| class.outside_slots.frames + class.foreign_slots.frames).sum();
        let gates: u64 = classes.iter().map(|class| class.early.frames + class.late.frames + class.closed).sum();
        let lost: u64 = classes.iter().filter_map(|class| Some(class.numbers?.lost)).sum();
        let most = |value: fn(&Statistics) -> f64| {
            let each = self.waited.iter().filter_map(|waited| Statistics::of_sorted(&waited.times));
            each.map(|statistics| value(&statistics)).fold(f64::NEG_INFINITY, f64::max)
        };
        let mut aims = vec![
            aim("frames outside their slot, or in a slot of another", "frames", outside as f64, 0.0),
            aim("frames outside their gate", "frames", gates as f64, 0.0),
            aim("lost frames of the senders", "frames", lost as f64, 0.0),
            aim("max - min of frames that waited", "us", most(|s| us(s.max_ns - s.min_ns)), 0.06),
            aim("mean of frames that waited", "us", most(|s| s.mean_ns.as_us_f64().abs()), 0.2),
            aim("standard deviation of frames that waited", "us", most(|s| s.deviation_ns.as_us_f64()), 0.015),
        ];
        let differs = |same: bool| aim("runs that differ from their repetition", "runs", f64::from(!same), 0.0);
        aims.extend(self.is_repeated.map(differs));
        aims
    }

    /// Returns the tables.
    pub fn markdown(&self) -> String {
        let mut text = format!(
            "### slots of 1 ms in a cycle of {} ms: the capture\n\n\
             The judge of captures (`macrotick_check::network`) compares each time stamp with gates and slots.\n\n\
             | class | frames | outside its slot | in a foreign slot | outside its gate | lost |\n\
             |---|---:|---:|---:|---:|---:|\n",
            CYCLE / SLOT
        );
        for class in &self.verdict.classes {
            let lost = class.numbers.map_or("not numbered".into(), |numbers| numbers.lost.to_string());
            let gate = class.early.frames + class.late.frames + class.closed;
            let (outside, foreign) = (class.outside_slots.frames, class.foreign_slots.frames);
            let _ = writeln!(text, "| {} | {} | {outside} | {foreign} | {gate} | {lost} |", class.name, class.frames);
        }
        text += "\n### from the start of the slot to a frame that waited for it [us]\n\n\
             | sender | period [ms] | waited | min | mean | max | std dev |\n|---|---:|---:|---:|---:|---:|---:|\n";
        for Waited { sender, times } in &self.waited {
            let Some(s) = Statistics::of_sorted(times) else { continue };
            let _ = writeln!(
                text,
                "| {} | {} | {} | {:+.3} | {:+.4} | {:+.3} | {:.4} |",
                sender.name,
                sender.period / SLOT,
                s.count,
                us(s.min_ns),
                s.mean_ns.as_us_f64(),
                us(s.max_ns),
                s.deviation_ns.as_us_f64()
            );
        }
        text
    }

    /// Returns the same values as figures.
    pub fn figures(&self) -> Vec<Figure> {
        let mut figures = Vec::new();
        let mut add = |case: &str, figure: &str, value: f64, unit: &str| {
            let case = format!("slots, {case}");
            figures.push(Figure { figure: figure.into(), case, value, unit: unit.into() });
        };
        for class in &self.verdict.classes {
            add(&class.name, "frames", class.frames as f64, "frames");
            let outside = class.outside_slots.frames + class.foreign_slots.frames;
            add(&class.name, "outside slots", outside as f64, "frames");
        }
        for Waited { sender, times } in &self.waited {
            let Some(s) = Statistics::of_sorted(times) else { continue };
            add(sender.name, "waited", s.count as f64, "frames");
            add(sender.name, "after the slot's start.min", us(s.min_ns), "us");
            add(sender.name, "after the slot's start.mean", s.mean_ns.as_us_f64(), "us");
            add(sender.name, "after the slot's start.max", us(s.max_ns), "us");
            add(sender.name, "after the slot's start.std", s.deviation_ns.as_us_f64(), "us");
        }
        figures
    }
}

/// Returns the judge's verdict on a capture, and the times of frames that waited.
fn judged(file: &[u8], is_repeated: Option<bool>) -> Result<Slots, String> {
    let names = [SENDERS[0].name, SENDERS[1].name, BULK];
    let said = |error: &dyn std::fmt::Display| error.to_string();
    let entry = |&(open, length): &(u32, i64)| GateEntry {
        length: Duration::from_nanos(length),
        open: names
            .iter()
            .zip(0..)
            .filter(|(_, class)| open & 1 << class != 0)
            .map(|(name, _)| (*name).into())
            .collect(),
    };
    let list = GateList {
        interface: "near0".into(),
        cycle: Duration::from_nanos(CYCLE),
        entries: ENTRIES.iter().map(entry).collect(),
    };
    let mut port = Port::new("near0", Link::ethernet(SPEED), names.map(Class::new).into());
    port.gates = Some(Gates::new(&names, &list, Instant::from_nanos(0)).map_err(|error| said(&error))?);
    let slot = |name: &str, offset| Slot {
        group: name.into(),
        class: name.into(),
        period: Duration::from_nanos(CYCLE),
        offset: Duration::from_nanos(offset),
        length: Duration::from_nanos(SLOT),
    };
    let slots = [slot(BULK, 0), slot(SENDERS[0].name, SENDERS[0].slot), slot(SENDERS[1].name, SENDERS[1].slot)];
    let rule = |class: &str, port| Rule { class: class.into(), destination_port: port, ..Rule::default() };
    let [first, second] = SENDERS.map(|sender| rule(sender.name, Some(sender.port)));
    let classifier = Classifier::new(&names, &[first, second, rule(BULK, None)]).map_err(|error| said(&error))?;
    let numbers = |class| Sequence { class, offset: 8, width: Width::U64, big_endian: false };
    let sequences = [numbers(0), numbers(1)];
    let expectation =
        Expectation { slots: &slots, tolerance: TOLERANCE, sequences: &sequences, ..Expectation::of(&port) };
    let capture = || Capture::new(file).map_err(|error| said(&error));
    let verdict = judge_capture(capture()?, &expectation, |packet| classifier.classify(packet));
    let mut waited = SENDERS.map(|sender| Waited { sender, times: Vec::new() });
    for frame in capture()? {
        let frame = frame.map_err(|error| said(&error))?;
        let packet = Packet::new(&frame);
        let of = waited.iter_mut().find(|one| packet.destination_port == Some(one.sender.port));
        let release = packet.payload.first_chunk().map(|bytes| i64::from_ne_bytes(*bytes));
        if let (Some(one), Some(release), Some(at)) = (of, release, frame.at) {
            one.times.extend(wait(&one.sender, release).map(|start| at.as_nanos() - start));
        }
    }
    waited.iter_mut().for_each(|one| one.times.sort_unstable());
    Ok(Slots { verdict: verdict.map_err(|error| said(&error))?, waited: waited.into(), is_repeated })
}

/// Returns the start of the slot for which a frame with this release has to wait; `None` if it is released in its slot.
fn wait(sender: &Sender, release: i64) -> Option<i64> {
    let since = (release - sender.slot).rem_euclid(CYCLE);
    (since >= SLOT).then_some(release - since + CYCLE)
}

fn us(ns: i64) -> f64 {
    ns as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::capture::File;

    /// A frame with a release, at an instant.
    fn frame(port: u16, release: i64, number: u64) -> Vec<u8> {
        let mut data = vec![0u8; 58];
        data[12..14].copy_from_slice(&[8, 0]);
        data[14] = 0x45;
        data[17] = 44;
        data[23] = 17;
        data[36..38].copy_from_slice(&port.to_be_bytes());
        data[39] = 24;
        data[42..50].copy_from_slice(&release.to_le_bytes());
        data[50..58].copy_from_slice(&number.to_le_bytes());
        data
    }

    #[test]
    fn a_frame_outside_its_slot_is_found() {
        let of = |instants: &[(u16, i64, i64)]| {
            let mut file = File::new();
            for (&(port, release, at), number) in instants.iter().zip(0..) {
                file.add(at, 58, &frame(port, release, number));
            }
            judged(file.bytes(), Some(true)).unwrap()
        };
        let [first, second] = SENDERS.map(|sender| sender.port);
        let start = 10 * CYCLE;
        let good = of(&[
            (BULK_PORT, 0, start + 5000),
            (first, start + RELEASE, start + SLOT + 20),
            (first, start + SLOT + RELEASE, start + SLOT + RELEASE + 4000),
            (second, start + RELEASE, start + 2 * SLOT - 10),
        ]);
        assert_eq!(good.waited.iter().map(|one| one.times.clone()).collect::<Vec<_>>(), [vec![20], vec![-10]]);
        assert!(good.verdict.is_clean() && good.aims()[..4].iter().all(Aim::is_met), "{}", good.markdown());

        let bad = of(&[(BULK_PORT, 0, start + SLOT + 5000), (second, start, start + SLOT + 100)]);
        assert_eq!(bad.aims()[0].value, 4.0, "each is outside its own slot and in another");
        assert!(!bad.verdict.is_clean());
    }

    #[test]
    fn a_frame_waits_unless_it_is_released_in_its_slot() {
        let [first, second] = SENDERS;
        assert_eq!(wait(&first, RELEASE), Some(SLOT));
        assert_eq!(wait(&first, SLOT + RELEASE), None);
        assert_eq!(wait(&first, 2 * SLOT + RELEASE), Some(CYCLE + SLOT));
        assert_eq!(wait(&second, 3 * SLOT + RELEASE), Some(CYCLE + 2 * SLOT));
    }

    #[test]
    fn the_entries_are_a_cycle_with_a_slot_for_each() {
        assert_eq!(ENTRIES.iter().map(|(_, length)| length).sum::<i64>(), CYCLE);
    }
}
