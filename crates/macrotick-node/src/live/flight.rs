//! The flight recorder of a deployment. After a miss of a task with `on-miss: record`, the supervisor takes what the CPUs
//! did around it (`macrotick_recorder`), and tells the cause.
//!
//! The kernel records all the time, and wakes the supervisor at a miss.

use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use macrotick_host::sys;
use macrotick_model::{Duration, Instant, OnMiss, Plan};
use macrotick_recorder::{explain, trace_json, Missed, Planned, Recorder, Recording, What};

use crate::error::NodeError;
use crate::live::event::{Event, Recorded};
use crate::process::signals;
use crate::run;
use crate::run::resources::Run;

/// The size of the ring buffer of a CPU. 5000 events in a second take some 300 KB.
const KILOBYTES: u32 = 2048;
/// A recording begins this long before the first window of the missed job.
const BEFORE: Duration = Duration::from_secs(1);
/// The time from a miss to its recording. A late thread becomes ready after its deadline.
const AFTER: Duration = Duration::from_millis(20);
/// The least time between two recordings of a task.
const REST: Duration = Duration::from_secs(10);

/// The recorder of a deployment, if the misses of a task are recorded.
pub struct Flight {
    recorder: Recorder,
    /// Readable after a miss.
    misses: OwnedFd,
    /// The instant of the next recording.
    due: Option<Instant>,
    /// The instant of the last recording of a task.
    told: BTreeMap<String, Instant>,
    /// The instant of the last look: misses before it are over.
    looked: Instant,
}

impl Flight {
    /// Starts the recorder, if a task of the run needs it.
    pub fn begin(run: &Run) -> Result<Option<Flight>, NodeError> {
        let (Some(table), true) = (&run.table, is_wanted(&run.deployment.plan)) else { return Ok(None) };
        let recorder = Recorder::start(KILOBYTES).map_err(NodeError::Trace)?;
        let misses = signals::event().map_err(NodeError::system("making a descriptor for misses"))?;
        table.notify(misses.as_raw_fd())?;
        Ok(Some(Flight { recorder, misses, due: None, told: BTreeMap::new(), looked: sys::now() }))
    }

    /// Starts or ends the recorder after the tasks of the run changed.
    pub fn renew(before: Option<Flight>, run: &Run) -> Result<Option<Flight>, NodeError> {
        match (before, &run.table) {
            (Some(flight), Some(table)) if is_wanted(&run.deployment.plan) => {
                table.notify(flight.misses.as_raw_fd())?;
                Ok(Some(flight))
            }
            _ => Flight::begin(run),
        }
    }

    /// Returns the descriptor that becomes readable after a miss.
    pub fn descriptor(&self) -> Option<RawFd> {
        self.due.is_none().then(|| self.misses.as_raw_fd())
    }

    /// Returns the instant of the next recording, if there is one.
    pub fn next_look(&self) -> Option<Instant> {
        self.due
    }

    /// Does the pending work. Returns the recordings of misses.
    pub fn look(&mut self, run: &Run, epoch: Instant) -> Result<Vec<Event>, NodeError> {
        let now = sys::now();
        match self.due {
            None if signals::take_event(&self.misses) => self.due = Some(now + AFTER),
            Some(due) if due <= now => {
                self.due = None;
                // Misses until now are in this recording.
                signals::take_event(&self.misses);
                return self.record(run, epoch, now);
            }
            _ => {}
        }
        Ok(Vec::new())
    }

    fn record(&mut self, run: &Run, epoch: Instant, now: Instant) -> Result<Vec<Event>, NodeError> {
        let plan = &run.deployment.plan;
        self.told.retain(|_, told| now < *told + REST);
        let is_new = |place: &usize| {
            let task = &run.deployment.tasks[*place].task;
            task.on_miss == OnMiss::Record && !self.told.contains_key(&task.name)
        };
        let tasks: Vec<usize> = (0..run.tasks.len()).filter(is_new).collect();
        let looked = std::mem::replace(&mut self.looked, now).as_nanos();
        if tasks.is_empty() {
            return Ok(Vec::new());
        }
        let recording = self.recorder.latest();
        let epoch = epoch + run::moved(run)?;
        let mut events = Vec::new();
        for place in tasks {
            let task = &run.deployment.tasks[place].task;
            let Some(deadline) = first_miss(&recording, &task.name, looked) else { continue };
            let mut missed = missed(plan, &task.name, deadline - epoch.as_nanos());
            missed.thread = run.tasks[place].block.tid();
            missed.windows.iter_mut().for_each(|window| {
                window.from += epoch.as_nanos();
                window.to += epoch.as_nanos();
            });
            let first = missed.windows.first().map_or(deadline, |window| window.from);
            let recording = recording.clone().since(first - BEFORE.as_nanos());
            let sentence = explain(&recording, &missed).sentence;
            let trace = trace_json(&recording, &missed, &sentence);
            self.told.insert(task.name.clone(), now);
            events.push(Event::Recorded(Recorded { task: task.name.clone(), job: missed.job, sentence, trace }));
        }
        Ok(events)
    }
}

fn is_wanted(plan: &Plan) -> bool {
    plan.system.windowed().any(|task| task.on_miss == OnMiss::Record)
}

/// Returns the first deadline that a task missed since the last look, in nanoseconds of `CLOCK_MONOTONIC`. The kernel
/// keeps events after a look.
fn first_miss(recording: &Recording, task: &str, looked: i64) -> Option<i64> {
    recording.events.iter().filter(|event| event.at > looked).find_map(|event| match &event.what {
        What::Misses { entity, instant } if entity == task => Some(*instant),
        _ => None,
    })
}

/// Finds the job of a task with a deadline at about an instant since the epoch, and its windows. A clock that the table
/// follows moves deadlines by a little.
fn missed(plan: &Plan, task: &str, deadline: i64) -> Missed {
    let (jobs, cycle) = (plan.jobs(task), plan.cycle.as_nanos());
    let turns = |job: usize| {
        let after = deadline - jobs[job].deadline.as_nanos();
        let turn = (after + cycle / 2).div_euclid(cycle);
        (turn, (after - turn * cycle).abs())
    };
    let nearest = (0..jobs.len()).min_by_key(|&job| turns(job).1).unwrap_or(0);
    let (turn, (from, to)) = match jobs.get(nearest) {
        Some(job) => (turns(nearest).0, (job.nominal.as_nanos(), job.deadline.as_nanos())),
        None => (0, (0, 0)),
    };
    let mut windows = Vec::new();
    for table in &plan.tables {
        for window in table.windows.iter().filter(|window| window.task == task) {
            // A job may end in the cycle after that of its release.
            for shift in [0, cycle] {
                let (begin, end) = (window.offset.as_nanos() + shift, window.end().as_nanos() + shift);
                if begin >= from && end <= to {
                    windows.push(Planned { cpu: table.cpu, from: begin + turn * cycle, to: end + turn * cycle });
                }
            }
        }
    }
    windows.sort_by_key(|window| window.from);
    Missed {
        task: task.to_owned(),
        thread: 0,
        job: (turn * jobs.len() as i64 + nearest as i64) as u64,
        wcet: plan.system.task(task).map_or(0, |task| task.wcet.as_nanos()),
        windows,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use macrotick_recorder::Event;

    #[test]
    fn an_old_miss_is_told_once() {
        let miss =
            |at: i64| Event { at, cpu: 0, thread: 1, what: What::Misses { entity: "a".into(), instant: at - 1 } };
        let recording = Recording { events: vec![miss(10), miss(20)], ..Default::default() };
        assert_eq!(first_miss(&recording, "a", 0), Some(9));
        assert_eq!(first_miss(&recording, "a", 10), Some(19));
        assert_eq!(first_miss(&recording, "a", 20), None);
        assert_eq!(first_miss(&recording, "b", 0), None);
    }
}
