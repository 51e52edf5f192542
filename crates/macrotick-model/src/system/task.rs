//! Tasks, and what gives them the processor.

use super::run::{ExecutionTime, Workload};
use super::{MAX_NAME, PRIORITY};
use crate::cpus::CpuSet;
use crate::keys::{forms, object, words, Kind};
use crate::time::Duration;

object! {
    /// A periodic source of jobs.
    pub struct Task: "a task" {
        "name" name: String [Kind::Name { most: MAX_NAME }], required
            = "Its name, unique; also that of the task's entity in the kernel.";
        "period" period: Duration, required = "Length between two releases, a multiple of the macrotick.";
        "wcet" wcet: Duration, required = "Worst-case execution time: what each job is given.";
        "deadline" deadline: Duration, or "the period" { period } = "Length from release to deadline, at most the period.";
        "offset" offset: Option<Duration> [Kind::TIME], optional "[see below](#when-a-job-may-run)"
            = "Release of job 0 after the epoch, less than the period, a multiple of the macrotick.";
        "jitter" jitter: Option<Duration> [Kind::TIME], optional "none: any"
            = "Bound on the variation of starts, at most the deadline.";
        "cpu" cpu: Option<u32> [Kind::Cpu], optional "the solver's choice" = "The CPU, one of `cpus`.";
        "migrate" migrate: bool, optional "`false`"
            = "Whether it may have windows on several CPUs, see [Tasks that migrate](#tasks-that-migrate); not with `cpu`.";
        "priority" priority: Option<u8> [PRIORITY], optional "rate-monotonic"
            = "Its `SCHED_FIFO` priority under the `fifo` backend.";
        "on-miss" on_miss: OnMiss, or "`resume`" { OnMiss::Resume } = "What becomes of it, see [When a job misses](#when-a-job-misses).";
        "max-misses" max_misses: Option<u32> [Kind::Integer { least: 1, most: u32::MAX as i64 }], optional "none: never"
            = "Misses in a row after which the task is stopped.";
        "namespace" namespace: Option<String>, optional "the host's"
            = "The [network namespace](#namespaces) that its process is in.";
        "supply" supply: Supply, or "`windows`" { Supply::Windows } = "What gives its jobs the processor.";
        "run" run: Workload, or "`spin`, with [room](#what-runs) in the wcet" { Workload::Spin(ExecutionTime::within(wcet)) }
            = "What a job does, see [What runs](#what-runs).";
    }
}

forms! {
    /// What gives a task's jobs the processor.
    #[derive(Eq)]
    pub enum Supply: "a supply" {
        word "windows" Windows = "Windows of a table.";
        also "deadline" { Supply::Deadline(Reservation::unsaid()) } = "A reservation of SCHED_DEADLINE, all of it as below where left out.";
        key "deadline" Deadline: Reservation = "A reservation of SCHED_DEADLINE.";
    }
}

impl Supply {
    /// Whether it is what a description without a word about it means.
    pub fn is_windows(&self) -> bool {
        *self == Supply::Windows
    }
}

object! {
    /// A reservation of `SCHED_DEADLINE`: so much of each period, before the task's deadline.
    #[derive(Eq)]
    pub struct Reservation: "a reservation" {
        "runtime" runtime: Duration [Kind::TIME], or "wcet + 2 % + 10 us, at most the deadline" { Reservation::UNSAID }
            = "The budget of each period: at least the wcet and 6 us, at most the deadline.";
        "cpus" cpus: CpuSet, optional "one, which the solver chooses"
            = "The CPUs that it may run on: one, or several between which it moves (global EDF).";
    }
}

impl Reservation {
    /// Of a shorter budget the switch to the thread leaves nothing. The kernel takes any of 1024 ns (`DL_SCALE`).
    pub const MIN_RUNTIME: Duration = Duration::from_micros(6);
    /// Stands for a runtime that follows from the task, until that is known. No text says it.
    const UNSAID: Duration = Duration::from_nanos(i64::MIN);

    fn unsaid() -> Reservation {
        Reservation { runtime: Self::UNSAID, cpus: CpuSet::default() }
    }

    /// The budget where the description gives none: 2 % and 10 us more than the WCET, at most the deadline. The wait call and the switch are charged to it too, and a task whose budget is used up to the last
    /// nanosecond is throttled until its next period.
    pub fn default_runtime(wcet: Duration, deadline: Duration) -> Duration {
        let margin = Duration::from_nanos(wcet.as_nanos() / 50) + Duration::from_micros(10);
        wcet.checked_add(margin).unwrap_or(wcet).min(deadline)
    }
}

words! {
    /// What becomes of a task whose job is a miss.
    pub enum OnMiss: "a reaction to a miss" {
        "resume" Resume = "The job goes on in the task's next window, in place of the next job.";
        "signal" Signal
            = "The same, and the thread gets SIGXCPU ([what to do with it](write-a-task.md#when-a-job-misses)). Built-in jobs ignore it.";
        "kill" Kill = "The process gets SIGKILL; the task stays dead.";
        "restart" Restart
            = "The process gets SIGKILL; whenever it has ended, so or by itself, the runner begins the task anew.";
    }
}

impl OnMiss {
    /// Whether it is what a description without a word about misses means.
    pub fn is_default(&self) -> bool {
        *self == OnMiss::Resume
    }
}

impl Task {
    /// Its reservation; `None`: it has windows.
    pub fn reservation(&self) -> Option<&Reservation> {
        match &self.supply {
            Supply::Windows => None,
            Supply::Deadline(reservation) => Some(reservation),
        }
    }

    /// Whether anything but the next window comes of a miss. Only the kernel class does it.
    pub fn acts_on_misses(&self) -> bool {
        self.on_miss != OnMiss::Resume || self.max_misses.is_some()
    }

    /// What follows from the wcet and the deadline where it was left out.
    pub(super) fn complete(&mut self) {
        if let Supply::Deadline(reservation) = &mut self.supply {
            if reservation.runtime == Reservation::UNSAID {
                reservation.runtime = Reservation::default_runtime(self.wcet, self.deadline);
            }
        }
        self.run.complete(self.wcet);
    }
}
