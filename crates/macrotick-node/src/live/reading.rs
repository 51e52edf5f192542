//! The readings of a soak: what the tasks and groups did since the reading before. A reading settles the jobs with a
//! deadline up to the reading before, so that late jobs have time to end.

use macrotick_host::sys;
use macrotick_model::{Duration, EntityCounters, GroupObservation, Instant, Job};

use crate::backend::budget_groups::BudgetGroups;
use crate::error::NodeError;
use crate::run;
use crate::run::collect::past;
use crate::run::records::{Frame, Settling};
use crate::run::resources::Run;

/// The interval of the readings.
pub(super) const EVERY: Duration = Duration::from_secs(1);

/// The jobs and counters of a deployment since the reading before.
#[derive(Clone, Debug)]
pub struct Reading {
    /// The epoch on `CLOCK_REALTIME`, by the present offset of the clocks, in nanoseconds.
    pub epoch_unix_ns: i64,
    /// The time from the epoch up to which all jobs are settled.
    pub settled: Duration,
    /// The tasks, in the order of the system.
    pub tasks: Vec<TaskReading>,
    /// The groups with a budget, with their counters since the start of the deployment.
    pub groups: Vec<GroupObservation>,
    /// The reason why counters are missing.
    pub failure: Option<String>,
}

/// The jobs and counters of a task since the reading before.
#[derive(Clone, Debug, Default)]
pub struct TaskReading {
    /// Its name.
    pub name: String,
    /// The settled jobs with their deadlines, since the epoch.
    pub jobs: Vec<(Job, Duration)>,
    /// The number of settled jobs without a record, because there was no room.
    pub unrecorded: u64,
    /// The number of records that do not fit the plan.
    pub strange: u64,
    /// The kernel's counters since the start of the deployment, for a task with windows.
    pub counters: Option<EntityCounters>,
}

/// The readings of a deployment.
pub(super) struct Readings {
    next: Instant,
    /// The end of the deployment, since the epoch, if it ends by itself.
    end: Option<Duration>,
    /// The time of the reading before, since the epoch.
    before: Duration,
    /// The tasks, in the order of the system: their jobs, and the known number of jobs without a record.
    tasks: Vec<(Settling, u64)>,
}

impl Readings {
    /// Makes the readings of a deployment that starts at the epoch and ends by itself after a time.
    pub(super) fn new(run: &Run, epoch: Instant, end: Option<Duration>) -> Readings {
        let tasks = run.tasks.iter().map(|_| (Settling::default(), 0)).collect();
        Readings { next: epoch + EVERY, end, before: Duration::ZERO, tasks }
    }

    /// Returns the instant of the next reading or of the end.
    pub(super) fn next_look(&self, run: &Run, epoch: Instant) -> Instant {
        self.end_at(run, epoch).map_or(self.next, |end| self.next.min(end))
    }

    /// Returns whether the deployment must end.
    pub(super) fn is_over(&self, run: &Run, epoch: Instant) -> bool {
        self.end_at(run, epoch).is_some_and(|end| sys::now() >= end)
    }

    /// Returns the instant of the end. A table that moved with its clock ends later or earlier.
    fn end_at(&self, run: &Run, epoch: Instant) -> Option<Instant> {
        self.end.map(|end| epoch + end + run::moved(run).unwrap_or(Duration::ZERO))
    }

    /// Takes a reading, if it is due.
    pub(super) fn look(&mut self, run: &mut Run, epoch: Instant) -> Option<Reading> {
        let now = sys::now();
        if now < self.next {
            return None;
        }
        // A supervisor that was kept from running skips readings.
        while self.next <= now {
            self.next = self.next + EVERY;
        }
        let until = self.before;
        Some(self.read(run, epoch, until))
    }

    /// Takes the last reading: it settles all jobs with a deadline up to now, or up to the end.
    pub(super) fn last(&mut self, run: &mut Run, epoch: Instant) -> Reading {
        let now = sys::now() - epoch - run::moved(run).unwrap_or(Duration::ZERO);
        let until = self.end.map_or(now, |end| end.min(now)).max(self.before);
        self.read(run, epoch, until)
    }

    fn read(&mut self, run: &mut Run, epoch: Instant, until: Duration) -> Reading {
        let now = sys::now() - epoch;
        let mut failure = None;
        let mut tasks = Vec::new();
        for (task, (settling, known)) in self.tasks.iter_mut().enumerate() {
            let mut records = run.supervisor.as_mut().map_or_else(Vec::new, |all| all.take_records(task));
            records.extend(run.tasks[task].block.take());
            let former = past(run, task).map_or(0, |past| past.unrecorded);
            let unrecorded = former + run.tasks[task].block.unrecorded();
            let deployed = &run.deployment.tasks[task];
            let follows = run.discipline.is_some() && deployed.is_windowed();
            let frame = Frame { epoch, cycle: deployed.repetition, duration: now, follows };
            // A program may write any number.
            let new = unrecorded.saturating_sub(*known);
            *known = unrecorded;
            let settled = settling.settle(frame, &deployed.jobs, records, new, until);
            let counters = counters(run, task).unwrap_or_else(|error| {
                failure = Some(error.with_reason());
                None
            });
            tasks.push(TaskReading {
                name: deployed.task.name.clone(),
                jobs: settled.jobs,
                unrecorded: settled.unrecorded,
                strange: settled.strange,
                counters,
            });
        }
        let groups = run.groups.as_ref().map_or(Ok(Vec::new()), BudgetGroups::observe).unwrap_or_else(|error| {
            failure = Some(error.with_reason());
            Vec::new()
        });
        self.before = now - run::moved(run).unwrap_or(Duration::ZERO).max(Duration::ZERO);
        let epoch_unix_ns = sys::unix_now() - now.as_nanos();
        Reading { epoch_unix_ns, settled: until, tasks, groups, failure }
    }
}

/// Returns the kernel's counters of a task, if it has windows.
fn counters(run: &Run, task: usize) -> Result<Option<EntityCounters>, NodeError> {
    let table = run.table.as_ref().filter(|_| run.deployment.tasks[task].is_windowed());
    let Some(table) = table else { return Ok(None) };
    let counters = table.counters(&run.tasks[task].name, task)?;
    let restarted = past(run, task).map_or(0, |past| past.count());
    Ok(Some(EntityCounters { restarted, ..counters }))
}
