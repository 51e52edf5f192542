//! Tasks and the supply of their CPU time.

use super::run::{ExecutionTime, Workload};
use super::{MAX_NAME, PRIORITY};
use crate::cpus::CpuSet;
use crate::keys::{forms, object, words, Kind};
use crate::time::Duration;

object! {
    /// A periodic source of jobs.
    pub struct Task: "a task" {
        "name" name: String [Kind::Name { most: MAX_NAME }], required
            = "The unique name of the task, and of its entity in the kernel.";
        "period" period: Duration, required = "Interval between two releases, a multiple of the macrotick.";
        "wcet" wcet: Duration, required = "Worst-case execution time: each job gets this much CPU time.";
        "deadline" deadline: Duration, or "the period" { period } = "Deadline relative to the release, at most the period.";
        "offset" offset: Option<Duration> [Kind::TIME], optional "see [When a job may run](#when-a-job-may-run)"
            = "Release of job 0 after the epoch: a multiple of the macrotick, less than the period.";
        "jitter" jitter: Option<Duration> [Kind::TIME], optional "no bound"
            = "Upper bound on the variation of starts, at most the deadline.";
        "after" after: Vec<String> [Kind::List(&Kind::Text("tasks"))], optional "none"
            = "Tasks of the same period: each job starts after their jobs of the same number have ended, see [Order of jobs](#order-of-jobs).";
        "apart" apart: Vec<String> [Kind::List(&Kind::Text("tasks"))], optional "none"
            = "Tasks with windows on other CPUs than this task, see [Tasks apart](#tasks-apart).";
        "exclusive" exclusive: Vec<String> [Kind::List(&Kind::Name { most: MAX_NAME })], optional "none"
            = "Resources that each job has for itself from its start to its end, see [Exclusive resources](#exclusive-resources).";
        "host" host: Option<String> [Kind::Text("host")], optional "that of its CPUs or of its namespace; otherwise the solver chooses" = "The name of its [host](#hosts).";
        "cpu" cpu: Option<u32> [Kind::Cpu], optional "the solver chooses" = "The CPU of the task, one of `cpus`.";
        "cpus" cpus: CpuSet, optional "those of its host"
            = "The CPUs that the solver can choose for the task. Not with `cpu`.";
        "migrate" migrate: bool, optional "`false`"
            = "Whether the task can have windows on several CPUs, see [Tasks that migrate](#tasks-that-migrate). Not with `cpu`.";
        "preemptible" preemptible: Option<bool>, optional "`preemptible` of the system"
            = "Whether the table can interrupt jobs, see [Tasks without preemption](#tasks-without-preemption).";
        "priority" priority: Option<u8> [PRIORITY], optional "rate-monotonic"
            = "`SCHED_FIFO` priority under the backend `fifo`.";
        "on-miss" on_miss: OnMiss, or "`resume`" { OnMiss::Resume } = "Reaction to a miss, see [When a job misses](#when-a-job-misses).";
        "max-misses" max_misses: Option<u32> [Kind::Integer { least: 1, most: u32::MAX as i64 }], optional "no limit"
            = "Number of consecutive misses after which the kernel stops the task.";
        "namespace" namespace: Option<String>, optional "the host's"
            = "The [network namespace](#namespaces) of its process.";
        "supply" supply: Supply, or "`windows`" { Supply::Windows } = "The source of CPU time for the jobs: windows or `SCHED_DEADLINE`.";
        "run" run: Workload, or "`spin` for less than the wcet, see [What runs](#what-runs)" { Workload::Spin(ExecutionTime::within(wcet)) }
            = "The work of a job, see [What runs](#what-runs).";
    }
}

forms! {
    /// The supply of a task's jobs with CPU time.
    #[derive(Eq)]
    pub enum Supply: "a supply" {
        word "windows" Windows = "Windows of the table.";
        also "deadline" { Supply::Deadline(Reservation::unsaid()) } = "A reservation of `SCHED_DEADLINE` with default values.";
        key "deadline" Deadline: Reservation = "A reservation of `SCHED_DEADLINE`.";
    }
}

impl Supply {
    /// Whether the supply is the default.
    pub fn is_windows(&self) -> bool {
        *self == Supply::Windows
    }
}

object! {
    /// A reservation of `SCHED_DEADLINE`: a runtime in each period, before the deadline of the task.
    #[derive(Eq)]
    pub struct Reservation: "a reservation" {
        "runtime" runtime: Duration [Kind::TIME], or "wcet + 2 % + 10 us, at most the deadline" { Reservation::UNSAID }
            = "Budget in each period: at least the wcet, at least 6 us, and at most the deadline.";
        "cpus" cpus: CpuSet, optional "one, which the solver chooses"
            = "The CPUs of the task: one, or several among which it migrates (global EDF).";
    }
}

impl Reservation {
    /// The shortest runtime: the switch to the thread uses up a shorter one. The kernel accepts runtimes from 1024 ns
    /// on (`DL_SCALE`).
    pub const MIN_RUNTIME: Duration = Duration::from_micros(6);
    /// The placeholder for a runtime that follows from the task. No text has this value.
    const UNSAID: Duration = Duration::from_nanos(i64::MIN);

    fn unsaid() -> Reservation {
        Reservation { runtime: Self::UNSAID, cpus: CpuSet::default() }
    }

    /// Returns the default runtime: 2 % and 10 us more than the WCET, at most the deadline. The kernel also charges the
    /// wait call and the switch to it. A task that uses up its runtime to the last nanosecond is throttled until its
    /// next period.
    pub fn default_runtime(wcet: Duration, deadline: Duration) -> Duration {
        let margin = Duration::from_nanos(wcet.as_nanos() / 50) + Duration::from_micros(10);
        wcet.checked_add(margin).unwrap_or(wcet).min(deadline)
    }
}

words! {
    /// The reaction to a miss.
    pub enum OnMiss: "a reaction to a miss" {
        "resume" Resume = "The job continues in the next window of the task, in place of the next job.";
        "record" Record
            = "As `resume`, and a deployment writes down [what the CPUs did](../how-to/record-misses.md) around the miss, with the cause.";
        "signal" Signal
            = "As `resume`, and the thread receives `SIGXCPU`, see [Reaction to a miss](task-interface.md#when-a-job-misses). Built-in jobs ignore the signal.";
        "kill" Kill = "The process receives `SIGKILL`. The task does not run again.";
        "restart" Restart
            = "The process receives `SIGKILL`. The runner restarts the task each time its process ends, for whatever reason.";
    }
}

impl OnMiss {
    /// Whether the reaction is the default.
    pub fn is_default(&self) -> bool {
        *self == OnMiss::Resume
    }
}

impl Task {
    /// Returns the reservation of the task; `None` if it has windows.
    pub fn reservation(&self) -> Option<&Reservation> {
        match &self.supply {
            Supply::Windows => None,
            Supply::Deadline(reservation) => Some(reservation),
        }
    }

    /// Whether a miss has consequences other than the next window. Only the kernel class supports them.
    pub fn acts_on_misses(&self) -> bool {
        self.on_miss != OnMiss::Resume || self.max_misses.is_some()
    }

    /// Fills in the defaults that follow from the wcet and the deadline.
    pub(super) fn complete(&mut self) {
        if let Supply::Deadline(reservation) = &mut self.supply {
            if reservation.runtime == Reservation::UNSAID {
                reservation.runtime = Reservation::default_runtime(self.wcet, self.deadline);
            }
        }
        self.run.complete(self.wcet);
    }
}
