//! The kernel's events, as they stand in the ring buffers of tracefs.

use std::collections::BTreeMap;

use macrotick_host::sys::Tid;
use macrotick_host::trace::{Field, Instance, Point, Text};
use macrotick_host::HostFailure;

use crate::event::{JobOf, Softirq, State, What};

/// The events that every kernel has which the recorder works with.
const NEEDED: [&str; 3] = ["sched/sched_switch", "sched/sched_waking", "sched/sched_process_exit"];
/// Those that depend on options, on the architecture, or on Macrotick.
const OPTIONAL: [&str; 13] = [
    "irq/irq_handler_entry",
    "irq/irq_handler_exit",
    "irq/softirq_entry",
    "irq/softirq_exit",
    "lock/contention_begin",
    "lock/contention_end",
    "exceptions/page_fault_user",
    "exceptions/page_fault_kernel",
    "macrotick/macrotick_window_begin",
    "macrotick/macrotick_window_skipped",
    "macrotick/macrotick_miss",
    "macrotick/macrotick_release",
    "macrotick/macrotick_complete",
];
/// The folder of the interrupts of the CPU itself, on x86-64: the timer, and those of other CPUs.
const VECTORS: &str = "irq_vectors";

/// Returns the trace points that this kernel has.
pub(crate) fn points(instance: &Instance) -> Vec<String> {
    let there = OPTIONAL.iter().filter(|event| instance.has(event)).map(|event| (*event).to_owned());
    let vectors = instance.events_in(VECTORS).into_iter();
    // Setting up a vector is no interrupt.
    let vectors = vectors.filter(|event| event.ends_with("_entry") || event.ends_with("_exit"));
    NEEDED
        .map(str::to_owned)
        .into_iter()
        .chain(there)
        .chain(vectors.map(|event| format!("{VECTORS}/{event}")))
        .collect()
}

/// Reads the data of one kind of event.
enum Reader {
    Switch { state: Field, next: Field, priority: Field, name: Text },
    Wakes { thread: Field, priority: Field, name: Text },
    Exits(Field),
    Interrupt { number: Field, name: Text },
    Vector(String),
    InterruptEnds,
    Softirq(Field),
    SoftirqEnds,
    Lock(Field),
    LockEnds,
    Fault,
    Window { kind: fn(String, i64) -> What, entity: Text, instant: Field },
    Job { kind: fn(JobOf) -> What, entity: Text, job: Field, nominal: Field },
}

/// The places of all fields.
pub(crate) struct Decoder {
    thread: Field,
    readers: BTreeMap<u16, Reader>,
}

/// An event with the name of a thread, if it has one.
pub(crate) struct Decoded {
    pub thread: Tid,
    pub what: What,
    pub name: Option<(Tid, String)>,
}

impl Decoder {
    /// Reads the descriptions of the trace points.
    pub(crate) fn read(instance: &Instance, points: &[String]) -> Result<Decoder, HostFailure> {
        let mut readers = BTreeMap::new();
        let mut common = None;
        for name in points {
            let point = Point::read(instance, name)?;
            common.get_or_insert(point.field("common_pid")?);
            readers.insert(point.id, reader(name, &point)?);
        }
        Ok(Decoder { thread: common.expect("there is a point"), readers })
    }

    /// Reads an event.
    pub(crate) fn decode(&self, data: &[u8]) -> Option<Decoded> {
        let kind = u16::from_ne_bytes(data.get(..2)?.try_into().ok()?);
        let reader = self.readers.get(&kind)?;
        let thread = self.thread.of(data) as Tid;
        let mut name = None;
        let what = match reader {
            Reader::Switch { state, next, priority, name: text } => {
                let next = next.of(data) as Tid;
                name = Some((next, text.of(data)));
                What::Switch { state: State::of(state.of(data)), next, priority: priority.of(data) as i32 }
            }
            Reader::Wakes { thread, priority, name: text } => {
                let thread = thread.of(data) as Tid;
                name = Some((thread, text.of(data)));
                What::Wakes { thread, priority: priority.of(data) as i32 }
            }
            Reader::Exits(thread) => What::Exits(thread.of(data) as Tid),
            Reader::Interrupt { number, name } => {
                What::InterruptBegins(format!("{} ({})", number.of(data), name.of(data)))
            }
            Reader::Vector(name) => What::InterruptBegins(name.clone()),
            Reader::InterruptEnds => What::InterruptEnds,
            Reader::Softirq(vector) => What::SoftirqBegins(Softirq(vector.of(data) as u32)),
            Reader::SoftirqEnds => What::SoftirqEnds,
            Reader::Lock(address) => What::WaitsForLock(address.of(data) as u64),
            Reader::LockEnds => What::HasLock,
            Reader::Fault => What::PageFault,
            Reader::Window { kind, entity, instant } => kind(entity.of(data), instant.of(data)),
            Reader::Job { kind, entity, job, nominal } => {
                kind(JobOf { entity: entity.of(data), job: job.of(data) as u64, nominal: nominal.of(data) })
            }
        };
        Some(Decoded { thread, what, name })
    }
}

fn reader(name: &str, point: &Point) -> Result<Reader, HostFailure> {
    let (field, text) = (|name| point.field(name), |name| point.text(name));
    let window = |kind| Ok(Reader::Window { kind, entity: text("entity")?, instant: field("instant")? });
    let job = |kind| Ok(Reader::Job { kind, entity: text("entity")?, job: field("job")?, nominal: field("nominal")? });
    match name {
        "sched/sched_switch" => Ok(Reader::Switch {
            state: field("prev_state")?,
            next: field("next_pid")?,
            priority: field("next_prio")?,
            name: text("next_comm")?,
        }),
        "sched/sched_waking" => {
            Ok(Reader::Wakes { thread: field("pid")?, priority: field("prio")?, name: text("comm")? })
        }
        "sched/sched_process_exit" => Ok(Reader::Exits(field("pid")?)),
        "irq/irq_handler_entry" => Ok(Reader::Interrupt { number: field("irq")?, name: text("name")? }),
        "irq/irq_handler_exit" => Ok(Reader::InterruptEnds),
        "irq/softirq_entry" => Ok(Reader::Softirq(field("vec")?)),
        "irq/softirq_exit" => Ok(Reader::SoftirqEnds),
        "lock/contention_begin" => Ok(Reader::Lock(field("lock_addr")?)),
        "lock/contention_end" => Ok(Reader::LockEnds),
        "exceptions/page_fault_user" | "exceptions/page_fault_kernel" => Ok(Reader::Fault),
        "macrotick/macrotick_window_begin" => window(|entity, instant| What::WindowBegins { entity, instant }),
        "macrotick/macrotick_window_skipped" => window(|entity, instant| What::WindowSkipped { entity, instant }),
        "macrotick/macrotick_miss" => window(|entity, instant| What::Misses { entity, instant }),
        "macrotick/macrotick_release" => job(What::JobBegins),
        "macrotick/macrotick_complete" => job(What::JobEnds),
        vector => {
            let vector = vector.rsplit('/').next().unwrap_or(vector);
            Ok(match vector.strip_suffix("_entry") {
                Some(vector) => Reader::Vector(words(vector)),
                None => Reader::InterruptEnds,
            })
        }
    }
}

/// Returns an interrupt of the CPU itself in words.
fn words(vector: &str) -> String {
    match vector {
        "local_timer" => "timer".to_owned(),
        "reschedule" => "request to reschedule".to_owned(),
        other => other.replace('_', " "),
    }
}
