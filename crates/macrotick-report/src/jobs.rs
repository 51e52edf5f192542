//! The outcome of every job of the plan.

use macrotick_model::{Duration, Job, Plan, TaskObservation};

/// A planned job and its record. Instants are since the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The number of the activation since the epoch.
    pub job: u64,
    /// The nominal instant: in the table, or the release of a job without windows.
    pub nominal: Duration,
    /// The end of the job's DEADLINE window, or its deadline if it has no windows.
    pub deadline: Duration,
    /// The first instruction; `None` if it never ran.
    pub start: Option<Duration>,
    /// The last instruction; `None` if it was not complete at the end of the run.
    pub end: Option<Duration>,
}

impl Outcome {
    /// Whether it was incomplete at its deadline. A job that ends exactly at its deadline is in time: windows are
    /// half-open.
    pub fn missed(&self) -> bool {
        self.end.is_none_or(|end| end > self.deadline)
    }
    /// Returns first instruction minus nominal instant.
    pub fn lateness(&self) -> Option<Duration> {
        self.start.map(|start| start - self.nominal)
    }
    /// Returns last instruction minus nominal instant.
    pub fn response(&self) -> Option<Duration> {
        self.end.map(|end| end - self.nominal)
    }
    /// Returns deadline minus last instruction; a negative value is a miss.
    pub fn slack(&self) -> Option<Duration> {
        self.end.map(|end| self.deadline - end)
    }
    /// Returns last instruction minus first instruction, preemptions included.
    pub fn stretch(&self) -> Option<Duration> {
        Some(self.end? - self.start?)
    }
}

/// The jobs of one task that the plan lists within the duration, and records that do not fit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcomes {
    /// One per job with a deadline within the duration, ascending, as far as the record buffer reached.
    pub jobs: Vec<Outcome>,
    /// The nominal instant of the first job with a deadline beyond the duration, or beyond the record buffer. Records
    /// are complete up to here.
    pub horizon: Option<Duration>,
    /// Whether the record buffer was full.
    pub ended_early: bool,
    /// Jobs of the plan without a record.
    pub unrecorded: u64,
    /// Records with a nominal instant that differs from the plan's. The plan's is used.
    pub off_table: u64,
    /// Records of a job that has an earlier record, which is used.
    pub repeated: u64,
}

/// Joins the plan of a task with its records.
pub(crate) fn join(plan: &Plan, task: &str, records: Option<&TaskObservation>, duration: Duration) -> Outcomes {
    let planned = plan.jobs(task);
    let mut outcomes = Outcomes::default();
    let repetition = plan.repetition(task);
    if planned.is_empty() || repetition <= Duration::ZERO {
        return outcomes;
    }
    let until = records.and_then(|records| records.recorded_until);
    let mut recorded: Vec<&Job> = records.iter().flat_map(|task| &task.jobs).collect();
    recorded.sort_by_key(|record| record.job);
    let total = recorded.len();
    recorded.dedup_by_key(|record| record.job);
    outcomes.repeated = (total - recorded.len()) as u64;
    let mut recorded = recorded.into_iter().peekable();
    for job in 0u64.. {
        let entry = &planned[(job % planned.len() as u64) as usize];
        let shift = repetition * (job / planned.len() as u64) as i64;
        let (nominal, deadline) = (entry.nominal + shift, entry.deadline + shift);
        let is_beyond = deadline > duration;
        let no_room = until.is_some_and(|until| nominal >= until) || outcomes.jobs.len() == TaskObservation::MOST_JOBS;
        if is_beyond || no_room {
            outcomes.horizon = Some(nominal);
            outcomes.ended_early = !is_beyond;
            break;
        }
        let record = recorded.next_if(|record| record.job == job);
        outcomes.unrecorded += u64::from(record.is_none());
        outcomes.off_table += u64::from(record.is_some_and(|record| record.nominal != nominal));
        let (start, end) = record.map_or((None, None), |record| (record.start, record.end));
        outcomes.jobs.push(Outcome { job, nominal, deadline, start, end });
    }
    outcomes
}
