//! The recording for Perfetto: a track for each CPU, with the thread on it, its interrupts on top, and the windows of the
//! plan.

use std::collections::BTreeMap;

use macrotick_host::sys::Tid;
use macrotick_model::trace_events::TraceEvents;

use crate::event::{Recording, What};
use crate::explain::Missed;

const CPUS: u32 = 1;
const TASK: u32 = 2;

/// Returns a recording as a trace: JSON in the Chrome trace event format. Times are since the first event.
pub fn trace_json(recording: &Recording, missed: &Missed, sentence: &str) -> String {
    let mut events = TraceEvents::default();
    let zero = recording.events.first().map_or(0, |event| event.at);
    let end = recording.events.last().map_or(0, |event| event.at);
    events.name(CPUS, None, "CPUs");
    events.name(TASK, None, &missed.task);
    events.name(TASK, Some(1), "planned windows");
    for window in &missed.windows {
        let cpu = format!(r#""cpu":{}"#, window.cpu);
        events.span((TASK, 1), &format!("job {}", missed.job), (window.from - zero, window.to - zero), &cpu);
    }
    events.name(TASK, Some(2), "miss");
    if let Some(last) = missed.windows.last() {
        events.mark((TASK, 2), sentence, last.to - zero);
    }
    let mut cpus: BTreeMap<u32, Track> = BTreeMap::new();
    for event in &recording.events {
        let track = (CPUS, event.cpu + 1);
        let cpu = cpus.entry(event.cpu).or_insert_with(|| {
            events.name(CPUS, Some(event.cpu + 1), &format!("CPU {}", event.cpu));
            Track { thread: event.thread, since: zero, interrupts: Vec::new() }
        });
        let at = event.at;
        match &event.what {
            What::Switch { next, .. } => {
                cpu.close(&mut events, recording, event.cpu, at, zero);
                cpu.thread = *next;
            }
            What::InterruptBegins(name) => cpu.interrupts.push((name.clone(), at)),
            What::InterruptEnds => {
                if let Some((name, since)) = cpu.interrupts.pop() {
                    events.span(track, &format!("interrupt {name}"), (since - zero, at - zero), "");
                }
            }
            What::Wakes { thread, .. } => events.mark(track, &format!("wakes {}", recording.name(*thread)), at - zero),
            What::PageFault => events.mark(track, "page fault", at - zero),
            What::WaitsForLock(address) => events.mark(track, &format!("waits for the lock {address:#x}"), at - zero),
            What::HasLock => events.mark(track, "waits for a lock no longer", at - zero),
            What::Exits(thread) => events.mark(track, &format!("{} ends", recording.name(*thread)), at - zero),
            What::SoftirqBegins(softirq) => events.mark(track, &format!("softirq for {}", softirq.name()), at - zero),
            What::SoftirqEnds => events.mark(track, "end of the softirq", at - zero),
            What::WindowBegins { entity, .. } => events.mark(track, &format!("window of {entity}"), at - zero),
            What::WindowSkipped { entity, .. } => events.mark(track, &format!("window of {entity}, over"), at - zero),
            What::Misses { entity, .. } => events.mark(track, &format!("miss of {entity}"), at - zero),
            What::JobBegins(job) => events.mark(track, &format!("job {} of {}", job.job, job.entity), at - zero),
            What::JobEnds(job) => events.mark(track, &format!("end of job {} of {}", job.job, job.entity), at - zero),
        }
    }
    for (cpu, track) in &mut cpus {
        track.close(&mut events, recording, *cpu, end, zero);
    }
    events.json(&[("sentence", sentence)])
}

/// The track of a CPU.
struct Track {
    thread: Tid,
    since: i64,
    interrupts: Vec<(String, i64)>,
}

impl Track {
    /// Ends the span of the thread on the CPU.
    fn close(&mut self, events: &mut TraceEvents, recording: &Recording, cpu: u32, at: i64, zero: i64) {
        if self.thread != 0 && at > self.since {
            let name = recording.name(self.thread);
            events.span((CPUS, cpu + 1), &name, (self.since - zero, at - zero), "");
        }
        self.since = at;
        self.interrupts.clear();
    }
}
