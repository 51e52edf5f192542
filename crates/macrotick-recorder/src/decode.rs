//! The kernel's events (`macrotick_uapi`), in the terms of this crate.

use std::collections::BTreeMap;
use std::fs;

use macrotick_host::sys::Tid;
use macrotick_uapi::event as kind;

use crate::event::{Event, JobOf, Softirq, State, What};

/// Names the interrupts of devices.
#[derive(Default)]
pub(crate) struct Decoder {
    interrupts: BTreeMap<u32, String>,
}

impl Decoder {
    /// Reads an event of a CPU, with the name of a thread if it has one. `None`: an unknown kind.
    pub(crate) fn decode(&mut self, cpu: u32, event: &macrotick_uapi::Event) -> Option<(Event, Option<(Tid, String)>)> {
        let thread = event.object as Tid;
        let priority = (event.data >> 32) as i32;
        let mut name = None;
        let what = match event.kind {
            kind::SWITCH => {
                name = Some((thread, text(&event.name)));
                What::Switch { state: State::of(event.data as u32), next: thread, priority }
            }
            kind::WAKES => {
                name = Some((thread, text(&event.name)));
                What::Wakes { thread, priority }
            }
            kind::EXITS => What::Exits(thread),
            kind::IRQ_BEGINS => What::InterruptBegins(self.interrupt(event.object)),
            kind::VECTOR_BEGINS => What::InterruptBegins(vector(event.object)),
            kind::IRQ_ENDS | kind::VECTOR_ENDS => What::InterruptEnds,
            kind::SOFTIRQ_BEGINS => What::SoftirqBegins(Softirq(event.object)),
            kind::SOFTIRQ_ENDS => What::SoftirqEnds,
            kind::LOCK_BEGINS => What::WaitsForLock(event.data),
            kind::LOCK_ENDS => What::HasLock,
            kind::PAGE_FAULT => What::PageFault,
            kind::WINDOW_BEGINS => What::WindowBegins { entity: text(&event.name), instant: event.data as i64 },
            kind::WINDOW_SKIPPED => What::WindowSkipped { entity: text(&event.name), instant: event.data as i64 },
            kind::MISSES => What::Misses { entity: text(&event.name), instant: event.data as i64 },
            kind::JOB_BEGINS => What::JobBegins(job(event)),
            kind::JOB_ENDS => What::JobEnds(job(event)),
            _ => return None,
        };
        Some((Event { at: event.ns as i64, cpu, thread: event.thread as Tid, what }, name))
    }

    /// Returns an interrupt with its number and its devices.
    fn interrupt(&mut self, number: u32) -> String {
        let of_device = |number: u32| {
            let devices = fs::read_to_string(format!("/sys/kernel/irq/{number}/actions")).unwrap_or_default();
            match devices.trim() {
                "" => number.to_string(),
                devices => format!("{number} ({devices})"),
            }
        };
        self.interrupts.entry(number).or_insert_with(|| of_device(number)).clone()
    }
}

fn job(event: &macrotick_uapi::Event) -> JobOf {
    JobOf { entity: text(&event.name), job: u64::from(event.object), nominal: event.data as i64 }
}

fn text(name: &[u8]) -> String {
    let end = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
    String::from_utf8_lossy(&name[..end]).into_owned()
}

/// Returns an interrupt of the CPU itself in words (`arch/x86/include/asm/irq_vectors.h`).
fn vector(number: u32) -> String {
    match number {
        0xec => "timer".to_owned(),
        0xf6 => "irq work".to_owned(),
        0xfb => "call function single".to_owned(),
        0xfc => "call function".to_owned(),
        0xfd => "request to reschedule".to_owned(),
        other => format!("vector {other:#x}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(kind: u16, object: u32, data: u64, name: &str) -> macrotick_uapi::Event {
        let name = macrotick_uapi::name(name);
        macrotick_uapi::Event { sequence: 1, kind, ns: 7, thread: 3, object, data, name, ..Default::default() }
    }

    fn decoded(event: &macrotick_uapi::Event) -> What {
        Decoder::default().decode(1, event).expect("a known kind").0.what
    }

    #[test]
    fn a_switch_has_state_priority_and_name() {
        let event = raw(kind::SWITCH, 5, 98 << 32 | 0x1, "logger");
        let (event, name) = Decoder::default().decode(2, &event).unwrap();
        assert_eq!((event.at, event.cpu, event.thread), (7, 2, 3));
        assert_eq!(event.what, What::Switch { state: State::Sleeps, next: 5, priority: 98 });
        assert_eq!(name, Some((5, "logger".to_owned())));
    }

    /// The kernel's priority of a thread of SCHED_DEADLINE is -1.
    #[test]
    fn a_priority_may_be_negative() {
        let event = raw(kind::WAKES, 5, u64::from(u32::MAX) << 32, "x");
        assert_eq!(decoded(&event), What::Wakes { thread: 5, priority: -1 });
    }

    #[test]
    fn windows_and_jobs_have_their_entity() {
        let long = "x".repeat(31);
        let missed = What::Misses { entity: long.clone(), instant: 9 };
        assert_eq!(decoded(&raw(kind::MISSES, 0, 9, &long)), missed);
        let job = JobOf { entity: "a".to_owned(), job: 4, nominal: 8 };
        assert_eq!(decoded(&raw(kind::JOB_BEGINS, 4, 8, "a")), What::JobBegins(job));
    }

    #[test]
    fn interrupts_have_names_where_they_are_known() {
        assert_eq!(decoded(&raw(kind::VECTOR_BEGINS, 0xec, 0, "")), What::InterruptBegins("timer".to_owned()));
        let unknown = decoded(&raw(kind::IRQ_BEGINS, 4_000_000_000, 0, ""));
        assert_eq!(unknown, What::InterruptBegins("4000000000".to_owned()));
    }

    #[test]
    fn an_unknown_kind_is_left_out() {
        assert!(Decoder::default().decode(0, &raw(99, 0, 0, "")).is_none());
    }
}
