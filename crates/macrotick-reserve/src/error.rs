//! The reasons why there is no reservation.

use std::io;

use macrotick_analysis::deadline::DeadlineError;
use macrotick_analysis::servers::HostError;
use macrotick_host::present::Unanalysable;
use macrotick_host::HostFailure;
use macrotick_measure::MeasureError;
use macrotick_model::{CpuSet, Duration};

use crate::choice::Misfit;
use crate::refusal::Refusal;

/// The reason why there is no reservation. Nothing has changed on the host.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // The message explains each field.
pub enum ReserveError {
    /// A time that must be within another one.
    #[error("{part} {length} is longer than {whole} {most}")]
    Longer { part: &'static str, length: Duration, whole: &'static str, most: Duration },
    /// A runtime below the kernel's unit.
    #[error("--runtime {runtime} is shorter than {least}, the least of SCHED_DEADLINE")]
    ShortRuntime { runtime: Duration, least: Duration },
    /// A period that the kernel does not take.
    #[error(
        "--period {period} is out of the range of SCHED_DEADLINE on this host, {least} to {most} \
         (kernel.sched_deadline_period_min_us and kernel.sched_deadline_period_max_us)"
    )]
    PeriodRange { period: Duration, least: Duration, most: Duration },
    /// A CPU that is not online.
    #[error("--cpus names CPU {cpu}, which is not online: this host has {}", .online.words())]
    NoCpu { cpu: u32, online: CpuSet },
    /// No program.
    #[error("name a program after `--`, or a process by --pid")]
    NoProgram,
    /// A program that does not exist, or that is not executable.
    #[error("there is no program `{0}` to execute")]
    NotExecutable(String),
    /// The kernel does not execute the program.
    #[error("cannot execute `{program}`: {source}")]
    Execute { program: String, source: io::Error },
    /// No such process.
    #[error("there is no process {0}")]
    NoProcess(i32),
    /// The thread has ended, and others of its process run.
    #[error("thread {thread} has ended, and process {process} has {left} others: give --pid one of these")]
    Ended { thread: i32, process: i32, left: usize },
    /// The files of processes are those of another namespace.
    #[error(
        "/proc is that of another PID namespace, so --pid would mean another process here: mount a /proc of this one"
    )]
    ForeignProc,
    /// The process is in a control group that cannot be seen.
    #[error(
        "process {process} is in the control group {group}, outside of this cgroup namespace, and could not return there: \
         run the command in the namespace of the host"
    )]
    ForeignGroup { process: i32, group: String },
    /// The threads of the process are in several control groups.
    #[error(
        "process {process} has threads in several control groups, /{one} and /{other}, and they could not return there: \
         a group with a budget holds whole processes. Use --by deadline for one thread"
    )]
    SeveralGroups { process: i32, one: String, other: String },
    /// The process that restores the state was killed.
    #[error("the keeper of the reservation was killed, so the reservation has ended early; the former state is back")]
    KeeperKilled,
    /// The process has a reservation, a budget or windows.
    #[error("process {process} has a thread under {policy}: it has a supply already")]
    Reserved { process: i32, policy: &'static str },
    /// No mechanism fits.
    #[error(transparent)]
    Misfit(#[from] Misfit),
    /// A deadline may be missed.
    #[error("a deadline may be missed beside the present reservations: {0}")]
    Late(DeadlineError),
    /// The kernel refuses SCHED_DEADLINE.
    #[error(transparent)]
    Kernel(#[from] Refusal),
    /// A task of this reservation or of another group would miss.
    #[error("no budget is enough: {0}")]
    Misses(String),
    /// Other groups would have to change.
    #[error("the group fits only after changes of other groups: {0} (see `macrotick admit`)")]
    NeedsChanges(String),
    /// The times suit no budget.
    #[error("no group can have these times: {0}")]
    NoBudget(HostError),
    /// The kernel refuses a budget.
    #[error(
        "a budget of {budget} in each {server_period} does not fit: windows and groups together may take 95 % of a \
         CPU, and must leave the share of SCHED_DEADLINE. {taken}"
    )]
    NoRoom { budget: Duration, server_period: Duration, taken: String },
    /// The thread cannot have the CPUs.
    #[error("cannot use {}: {source}: --cpus must be CPUs of the program's cpuset", .cpus.words())]
    Cpus { cpus: CpuSet, source: io::Error },
    /// The cpuset of the thread has fewer CPUs.
    #[error(
        "cannot use {}: the cpuset of the thread has only {} of these: give --cpus others, or widen cpuset.cpus",
        .cpus.words(), .present.words()
    )]
    BeyondCpuset { cpus: CpuSet, present: CpuSet },
    /// The groups on the host contradict each other.
    #[error(transparent)]
    Unanalysed(#[from] Unanalysable),
    /// The program cannot be watched.
    #[error(transparent)]
    Measure(#[from] MeasureError),
    /// No thread is periodic.
    #[error(
        "no thread of the program is periodic: none was found within {0}. Give --period, or more time by --find-within"
    )]
    NotPeriodic(Duration),
    /// No thread has the period.
    #[error("no thread of the program wakes up with --period {period}: none was found within {within}{found}")]
    OtherPeriod { period: Duration, within: Duration, found: String },
    /// The program has ended before its period was known.
    #[error("the program ended after {0}, before its period was known")]
    EndedEarly(Duration),
    /// The host cannot be read or changed.
    #[error(transparent)]
    Host(#[from] HostFailure),
}

impl ReserveError {
    /// Whether the input is wrong on every host.
    pub fn is_about_the_input(&self) -> bool {
        matches!(
            self,
            ReserveError::Longer { .. }
                | ReserveError::ShortRuntime { .. }
                | ReserveError::PeriodRange { .. }
                | ReserveError::NoCpu { .. }
                | ReserveError::NoProgram
                | ReserveError::NotExecutable(_)
                | ReserveError::NoProcess(_)
                | ReserveError::Ended { .. }
                | ReserveError::NoBudget(_)
                | ReserveError::Misfit(
                    Misfit::NoDeadline { .. } | Misfit::GroupOption(_) | Misfit::DeadlineOption { .. }
                )
        ) || matches!(self, ReserveError::Measure(error) if error.is_about_the_input())
    }

    /// Whether the command only lacks the privilege, so a helper can do it.
    pub fn needs_privilege(&self) -> bool {
        matches!(self, ReserveError::Kernel(Refusal::NotAllowed))
    }

    /// Whether the host works and has no place for the reservation.
    pub fn is_a_refusal(&self) -> bool {
        matches!(
            self,
            ReserveError::Reserved { .. }
                | ReserveError::Late(_)
                | ReserveError::Kernel(Refusal::Bandwidth { .. })
                | ReserveError::Misses(_)
                | ReserveError::NeedsChanges(_)
                | ReserveError::NoRoom { .. }
                | ReserveError::NotPeriodic(_)
                | ReserveError::OtherPeriod { .. }
                | ReserveError::EndedEarly(_)
        )
    }
}
