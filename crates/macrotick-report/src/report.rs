//! The report: the results of a run, in numbers and with a verdict.

use macrotick_model::{
    Backend, ClockInForce, CpuSet, CpuTable, Duration, EntityCounters, Environment, GatesInForce, LeadInForce,
    Observation, Segment, System, Task, TaskObservation, Tier,
};
use schemars::JsonSchema;
use serde::Serialize;

use crate::chains::{self, BoundVerdict, ChainReport};
use crate::group_report::{self, GroupReport};
use crate::jobs::{join, Outcome, Outcomes};
use crate::pools::{self, PoolReport};
use crate::stats::Statistics;
use crate::words;

/// The results of a run. The report is deterministic: the same observation gives the same bytes of JSON.
///
/// The samples behind the statistics are here for plots, but not in JSON: an observation has them already.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
#[schemars(deny_unknown_fields)]
pub struct Report {
    /// Version of this format.
    #[schemars(extend("const" = Report::VERSION))]
    pub version: u32,
    /// The system's name.
    pub system: String,
    /// The solver that made the plan.
    pub solver: String,
    /// The backend that dispatched the jobs.
    pub backend: Backend,
    /// The enforcement that the run really had.
    pub tier: Tier,
    /// The cycle, in nanoseconds.
    pub cycle_ns: i64,
    /// The length of the run, in nanoseconds.
    pub duration_ns: i64,
    /// The verdict.
    pub verdict: Verdict,
    /// One entry per task, in the order of the system.
    pub tasks: Vec<TaskReport>,
    /// One entry per pool, in the order of the system.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pools: Vec<PoolReport>,
    /// One entry per group, in the order of the system.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<GroupReport>,
    /// One entry per chain, in the order of the system.
    pub chains: Vec<ChainReport>,
    /// The machine of the run.
    pub environment: Environment,
    /// The lead of the kernel class; `None` without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lead: Option<LeadInForce>,
    /// The clock that the kernel class followed; `None` for `CLOCK_MONOTONIC`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock: Option<ClockInForce>,
    /// The gates of interfaces, in the order of the description.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<GatesInForce>,
    /// Remarks of the run, and differences between records, plan and kernel.
    pub remarks: Vec<String>,
    /// Limits of the numbers.
    pub caveats: Vec<String>,
    #[serde(skip)]
    pub(crate) tables: Vec<CpuTable>,
    /// The trace that a Gantt in the terminal shows. It covers at most the first cycle, or the longest period of a task
    /// without windows.
    #[serde(skip)]
    pub(crate) first_segments: Vec<Segment>,
}

/// Whether a run showed what the description requires.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[schemars(deny_unknown_fields)]
pub struct Verdict {
    /// Whether every task ran, no job missed its deadline and every bound of every chain was kept.
    pub holds: bool,
    /// Conditions that did not hold, or that the run did not show, one sentence each; empty when everything held.
    pub reasons: Vec<String>,
    /// Jobs with a deadline within the run.
    pub released: u64,
    /// Misses of all tasks.
    pub missed: u64,
    /// Bounds of chains.
    pub bounds: u64,
    /// Bounds of chains that were kept.
    pub bounds_kept: u64,
}

/// The numbers of one task.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
#[schemars(deny_unknown_fields)]
pub struct TaskReport {
    /// The task's name.
    pub name: String,
    /// The CPUs of its windows or of its reservation, or else the requested one. It is one CPU unless the task
    /// migrates.
    #[serde(rename = "cpu")]
    pub cpus: CpuSet,
    /// The period, in nanoseconds.
    pub period_ns: i64,
    /// The worst-case execution time of the plan, in nanoseconds.
    pub wcet_ns: i64,
    /// The runtime of its reservation of SCHED_DEADLINE, in nanoseconds; `None` if it has windows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime_ns: Option<i64>,
    /// The shortest time from a job's nominal instant to its deadline in the table, in nanoseconds.
    pub deadline_ns: Option<i64>,
    /// Jobs with a deadline within the run.
    pub released: u64,
    /// Jobs that completed, in time or late.
    pub completed: u64,
    /// Jobs that were not complete at their deadline.
    pub missed: u64,
    /// Jobs without a first instruction.
    pub never_started: u64,
    /// Misses that the kernel counted after the record buffer was full.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missed_later: Option<u64>,
    /// The least time from a job's end to its deadline, of the jobs that completed, in nanoseconds; a negative value is
    /// a miss.
    pub least_slack_ns: Option<i64>,
    /// Start minus nominal instant, of the jobs that started.
    pub lateness: Option<Statistics>,
    /// End minus nominal instant, of the jobs that completed.
    pub response: Option<Statistics>,
    /// End minus start, preemptions included, of the jobs that completed.
    pub stretch: Option<Statistics>,
    /// The kernel's counters, if it gave any.
    pub counters: Option<EntityCounters>,
    #[serde(skip)]
    pub(crate) jobs: Vec<Outcome>,
}

/// A time that is measured for every job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Metric {
    /// Start minus nominal instant.
    Lateness,
    /// End minus nominal instant.
    Response,
}

impl Metric {
    /// Returns the name in tables and plots.
    pub fn name(self) -> &'static str {
        match self {
            Metric::Lateness => "lateness",
            Metric::Response => "response",
        }
    }
}

impl TaskReport {
    /// Returns the samples of a metric in ascending order, in nanoseconds.
    pub fn samples(&self, metric: Metric) -> Vec<i64> {
        match metric {
            Metric::Lateness => sorted(&self.jobs, Outcome::lateness),
            Metric::Response => sorted(&self.jobs, Outcome::response),
        }
    }
    /// Returns the statistics of a metric.
    pub fn statistics(&self, metric: Metric) -> Option<&Statistics> {
        match metric {
            Metric::Lateness => self.lateness.as_ref(),
            Metric::Response => self.response.as_ref(),
        }
    }
}

impl Report {
    /// The version of the format that this code writes.
    pub const VERSION: u32 = 3;

    /// Judges the records of a run.
    pub fn new(observation: &Observation) -> Report {
        let plan = &observation.plan;
        let records = |name: &str| observation.tasks.iter().find(|task| task.name == name);
        let outcomes: Vec<Outcomes> = plan
            .system
            .tasks
            .iter()
            .map(|task| join(plan, &task.name, records(&task.name), observation.duration))
            .collect();
        let remarks = remarks(observation, &outcomes);
        let chains = chain_reports(observation, &outcomes);
        let tasks: Vec<TaskReport> = plan
            .system
            .tasks
            .iter()
            .zip(outcomes)
            .map(|(task, outcomes)| task_report(observation, task, records(&task.name), outcomes))
            .collect();
        Report {
            version: Report::VERSION,
            system: plan.system.name.clone(),
            solver: plan.solver.clone(),
            backend: observation.backend,
            tier: observation.tier,
            cycle_ns: plan.cycle.as_nanos(),
            duration_ns: observation.duration.as_nanos(),
            verdict: verdict(&plan.system, &tasks, &chains),
            tasks,
            pools: pools::reports(observation),
            groups: group_report::reports(observation),
            chains,
            environment: observation.environment.clone(),
            lead: observation.lead,
            clock: observation.clock,
            gates: observation.gates.clone(),
            remarks,
            caveats: words::caveats(observation),
            tables: plan.tables.clone(),
            first_segments: first_segments(observation),
        }
    }

    /// Whether the run showed that every task ran, no deadline was missed and every chain's bound was kept.
    ///
    /// Only positive evidence counts: a run that is too short for a task or a chain does not hold.
    pub fn holds(&self) -> bool {
        self.verdict.holds
    }

    /// Returns the report as JSON, indented, with a newline at its end.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("strings, numbers and lists always serialise");
        text.push('\n');
        text
    }

    /// Returns the cycle, or the longest period of a task without windows.
    pub(crate) fn longest_ns(&self) -> i64 {
        let reserved = self.tasks.iter().filter(|task| task.runtime_ns.is_some());
        reserved.map(|task| task.period_ns).fold(self.cycle_ns.max(1), i64::max)
    }

    /// Returns the task of that name.
    pub fn task(&self, name: &str) -> Option<&TaskReport> {
        self.tasks.iter().find(|task| task.name == name)
    }
}

fn sorted(jobs: &[Outcome], time: impl Fn(&Outcome) -> Option<Duration>) -> Vec<i64> {
    let mut samples: Vec<i64> = jobs.iter().filter_map(time).map(Duration::as_nanos).collect();
    samples.sort_unstable();
    samples
}

fn task_report(
    observation: &Observation,
    task: &Task,
    records: Option<&TaskObservation>,
    outcomes: Outcomes,
) -> TaskReport {
    let Outcomes { jobs, ended_early, .. } = outcomes;
    let count = |is: fn(&Outcome) -> bool| jobs.iter().filter(|job| is(job)).count() as u64;
    let statistics = |time: fn(&Outcome) -> Option<Duration>| Statistics::of_sorted(&sorted(&jobs, time));
    let plan = &observation.plan;
    let cpus = Some(plan.cpus(&task.name)).filter(|cpus| !cpus.is_empty());
    TaskReport {
        name: task.name.clone(),
        cpus: cpus.unwrap_or_else(|| CpuSet::from_iter(task.cpu)),
        period_ns: task.period.as_nanos(),
        wcet_ns: task.wcet.as_nanos(),
        runtime_ns: task.reservation().map(|reservation| reservation.runtime.as_nanos()),
        deadline_ns: plan.jobs(&task.name).iter().map(|job| (job.deadline - job.nominal).as_nanos()).min(),
        released: jobs.len() as u64,
        completed: count(|job| job.end.is_some()),
        missed: count(Outcome::missed),
        never_started: count(|job| job.start.is_none()),
        missed_later: missed_later(&jobs, ended_early, records),
        least_slack_ns: jobs.iter().filter_map(Outcome::slack).map(Duration::as_nanos).min(),
        lateness: statistics(Outcome::lateness),
        response: statistics(Outcome::response),
        stretch: statistics(Outcome::stretch),
        counters: records.and_then(|task| task.counters),
        jobs,
    }
}

/// Returns the misses of jobs beyond the record buffer. They have no records, but the kernel counts them.
fn missed_later(jobs: &[Outcome], ended_early: bool, records: Option<&TaskObservation>) -> Option<u64> {
    let counters = records.and_then(|task| task.counters).filter(|_| ended_early)?;
    counters.missed.checked_sub(jobs.iter().filter(|job| job.missed()).count() as u64)
}

fn chain_reports(observation: &Observation, outcomes: &[Outcomes]) -> Vec<ChainReport> {
    let system = &observation.plan.system;
    let nothing = Outcomes::default();
    let of = |name: &String| {
        let index = system.tasks.iter().position(|task| &task.name == name);
        index.map_or(&nothing, |index| &outcomes[index])
    };
    let measure = |chain| chains::measure(chain, &chain.path.iter().map(of).collect::<Vec<_>>());
    system.chains.iter().map(measure).collect()
}

fn first_segments(observation: &Observation) -> Vec<Segment> {
    let reserved = observation.plan.system.reserved().map(|(task, _)| task.period);
    let longest = reserved.fold(observation.plan.cycle, Duration::max);
    let early = |segment: &&Segment| segment.start_ns < longest.as_nanos();
    observation.segments.iter().filter(early).cloned().collect()
}

fn verdict(system: &System, tasks: &[TaskReport], chains: &[ChainReport]) -> Verdict {
    let mut reasons: Vec<String> = tasks.iter().filter_map(task_reason).collect();
    let bounds = || chains.iter().flat_map(ChainReport::bounded);
    for chain in chains {
        reasons.extend(chain.bounded().filter_map(|(name, latency)| words::chain_reason(chain, name, latency)));
    }
    if tasks.is_empty() && system.groups.is_empty() {
        reasons.push("the system has no task".into());
    }
    Verdict {
        holds: reasons.is_empty(),
        reasons,
        released: tasks.iter().map(|task| task.released).sum(),
        missed: tasks.iter().map(|task| task.missed).sum(),
        bounds: bounds().count() as u64,
        bounds_kept: bounds().filter(|(_, latency)| latency.verdict == BoundVerdict::Kept).count() as u64,
    }
}

fn task_reason(task: &TaskReport) -> Option<String> {
    let name = &task.name;
    if task.released == 0 {
        return Some(format!("{name}: not shown, no job's deadline lies within the run"));
    }
    let never = match task.never_started {
        0 => String::new(),
        count => format!(", {count} of them never started"),
    };
    let later = task.missed_later.unwrap_or(0);
    let any = task.missed + later > 0;
    let later = if later > 0 { format!(", and {later} after its records end") } else { String::new() };
    let (missed, released) = (task.missed, task.released);
    any.then(|| format!("{name}: {missed} of {released} jobs missed{never}{later}"))
}

/// Returns the run's own remarks, then differences between records, plan and kernel.
fn remarks(observation: &Observation, outcomes: &[Outcomes]) -> Vec<String> {
    let mut remarks = observation.remarks.clone();
    let tasks = &observation.plan.system.tasks;
    for (task, outcomes) in tasks.iter().zip(outcomes) {
        let records = observation.tasks.iter().find(|records| records.name == task.name);
        remarks.extend(words::record_remarks(&task.name, outcomes));
        if let Some(counters) = records.and_then(|records| records.counters) {
            remarks.extend(words::counter_remarks(&task.name, outcomes, &counters));
        }
    }
    for records in &observation.tasks {
        if !tasks.iter().any(|task| task.name == records.name) {
            remarks.push(format!("{}: recorded, but not a task of the system", records.name));
        }
    }
    remarks.extend(pools::remarks(observation));
    remarks
}
