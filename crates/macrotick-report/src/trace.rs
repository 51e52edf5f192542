//! There are three groups of tracks. The first has the planned windows per task and pool. The second has the actual
//! jobs per task, with a mark at missed deadlines. With a trace, the third has the thread on each CPU.

use macrotick_model::trace_events::TraceEvents;
use macrotick_model::{Duration, Observation};

use crate::jobs::{join, Outcome};

const PLANNED: u32 = 1;
const ACTUAL: u32 = 2;
const CPUS: u32 = 3;

/// Returns the run as a trace: JSON in the Chrome trace event format.
pub fn trace_json(observation: &Observation) -> String {
    let mut events = TraceEvents::default();
    events.name(PLANNED, None, "planned windows");
    events.name(ACTUAL, None, "actual jobs");
    for (index, task) in observation.plan.system.tasks.iter().enumerate() {
        let track = index as u32 + 1;
        events.name(PLANNED, Some(track), &task.name);
        events.name(ACTUAL, Some(track), &task.name);
        windows(&mut events, observation, &task.name, track);
        jobs(&mut events, observation, &task.name, track);
    }
    let first = observation.plan.system.tasks.len() as u32 + 1;
    for (track, pool) in (first..).zip(observation.plan.system.pools()) {
        events.name(PLANNED, Some(track), &pool.name);
        windows(&mut events, observation, &pool.name, track);
    }
    cpus(&mut events, observation);
    events.json(&[("system", &observation.plan.system.name), ("backend", &observation.backend.to_string())])
}

fn windows(events: &mut TraceEvents, observation: &Observation, task: &str, track: u32) {
    let (plan, duration) = (&observation.plan, observation.duration);
    if plan.cycle <= Duration::ZERO {
        return;
    }
    let several = plan.cpus(task).is_several();
    for cycle in 0..=duration / plan.cycle {
        let each = plan.tables.iter().flat_map(|table| table.windows.iter().map(|window| (table.cpu, window)));
        for (cpu, window) in each.filter(|(_, window)| window.task == task) {
            let (start, end) = (window.offset + plan.cycle * cycle, window.end() + plan.cycle * cycle);
            let name = match (window.activate, window.deadline) {
                (true, true) => "activate, deadline",
                (true, false) => "activate",
                (false, true) => "deadline",
                (false, false) => "continue",
            };
            if end <= duration {
                let cpu = if several { format!(r#""cpu":{cpu}"#) } else { String::new() };
                events.span((PLANNED, track), name, (start.as_nanos(), end.as_nanos()), &cpu);
            }
        }
    }
}

fn jobs(events: &mut TraceEvents, observation: &Observation, task: &str, track: u32) {
    let records = observation.tasks.iter().find(|records| records.name == task);
    for job in join(&observation.plan, task, records, observation.duration).jobs {
        if let Some(start) = job.start {
            let end = job.end.unwrap_or(observation.duration.max(start));
            let span = (start.as_nanos(), end.as_nanos());
            events.span((ACTUAL, track), &format!("job {}", job.job), span, &arguments(&job));
        }
        if job.missed() {
            events.mark((ACTUAL, track), &format!("miss of job {}", job.job), job.deadline.as_nanos());
        }
    }
}

fn arguments(job: &Outcome) -> String {
    let number = |time: Option<Duration>| time.map_or("null".into(), |time| time.as_nanos().to_string());
    format!(
        r#""nominal_ns":{},"deadline_ns":{},"lateness_ns":{},"response_ns":{}"#,
        job.nominal.as_nanos(),
        job.deadline.as_nanos(),
        number(job.lateness()),
        number(job.response())
    )
}

fn cpus(events: &mut TraceEvents, observation: &Observation) {
    let mut cpus: Vec<u32> = observation.segments.iter().map(|segment| segment.cpu).collect();
    cpus.sort_unstable();
    cpus.dedup();
    if !cpus.is_empty() {
        events.name(CPUS, None, "running threads");
    }
    for cpu in cpus {
        events.name(CPUS, Some(cpu + 1), &format!("CPU {cpu}"));
    }
    for segment in &observation.segments {
        events.span((CPUS, segment.cpu + 1), &segment.who, (segment.start_ns, segment.end_ns), "");
    }
}
