//! What became of every job that the plan asked for.

use macrotick_model::{Duration, Job, Plan, TaskObservation};

/// A planned job together with what was recorded of it. Instants are since the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Number of the activation since the epoch.
    pub job: u64,
    /// The nominal instant: in the table, or the release of a job without windows.
    pub nominal: Duration,
    /// The end of the job's DEADLINE window, or its deadline where it has no windows.
    pub deadline: Duration,
    /// The first instruction; `None`: it never ran.
    pub start: Option<Duration>,
    /// The last instruction; `None`: it was not complete when the run ended.
    pub end: Option<Duration>,
}

impl Outcome {
    /// Not complete at the deadline. A job that ends exactly at its deadline is in time: windows are half-open.
    pub fn missed(&self) -> bool {
        self.end.is_none_or(|end| end > self.deadline)
    }
    /// First instruction minus nominal instant.
    pub fn lateness(&self) -> Option<Duration> {
        self.start.map(|start| start - self.nominal)
    }
    /// Last instruction minus nominal instant.
    pub fn response(&self) -> Option<Duration> {
        self.end.map(|end| end - self.nominal)
    }
    /// Deadline minus last instruction; negative: a miss.
    pub fn slack(&self) -> Option<Duration> {
        self.end.map(|end| self.deadline - end)
    }
    /// Last instruction minus first instruction, with all preemptions in between.
    pub fn stretch(&self) -> Option<Duration> {
        Some(self.end? - self.start?)
    }
}

/// The jobs of one task that the plan asked for within the duration, and what does not fit in the records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcomes {
    /// One per job whose deadline lies within the duration, ascending, as far as there was room for records.
    pub jobs: Vec<Outcome>,
    /// The nominal instant of the first job whose deadline lies beyond, or that there was no room for: records are complete
    /// up to here.
    pub horizon: Option<Duration>,
    /// Whether there was no room for more.
    pub ended_early: bool,
    /// Jobs that the plan asked for and nobody recorded.
    pub unrecorded: u64,
    /// Records whose nominal instant is not the plan's. The plan's is used.
    pub off_table: u64,
    /// Records of one job beside another record of it, which was used.
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
