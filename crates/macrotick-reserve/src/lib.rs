//! Any program, unmodified, in a reservation: a runtime in each period.
//!
//! There are two mechanisms. SCHED_DEADLINE reserves for one thread, on every kernel. A control group with a budget
//! (SCHED_DS) reserves for a process tree, and needs the Macrotick kernel.
//!
//! [`prepare`] reads the host, chooses the mechanism, and asks the analysis. It changes nothing. [`Prepared::commit`]
//! makes the reservation. A started program takes the place of this process, as with `chrt` and `taskset`. So signals
//! and exit code are its own, and its end is that of the reservation. For a running process, this process stays until
//! the end, and a second one restores the former state even if this one is killed.
//!
//! | module | part |
//! |---|---|
//! | `request` | the wanted reservation, and the ranges of its times |
//! | `facts` | what the choice and the admission need of this host |
//! | `choice` | which mechanism fits, and why |
//! | `room` | the kernel's account of SCHED_DEADLINE |
//! | `admission` | whether deadlines are met beside the other reservations of SCHED_DEADLINE |
//! | `budget` | the budget of a group that is enough for the reservation |
//! | `refusal` | why the kernel refuses SCHED_DEADLINE, and what helps |
//! | `program` | the program to execute |
//! | `start` | a program that starts in its reservation |
//! | `attach` | a running process: its reservation, and its end |
//! | `former` | the state of threads before a reservation, and its return |
//! | `wait` | the signals and processes that end a reservation |
//! | `adapt` | the feedback that finds the runtime |
//! | `report` | the result, for people and for programs |

pub mod adapt;
mod admission;
mod attach;
mod budget;
mod choice;
mod error;
mod facts;
mod former;
mod program;
mod refusal;
mod report;
mod request;
mod room;
mod start;
mod wait;

use std::fs::File;
use std::os::fd::AsFd;

use macrotick_host::cgroup::ProgramGroup;
use macrotick_host::sys::{self, SchedAttr, Standing, Tid};
use macrotick_model::{CpuSet, Duration};

pub use error::ReserveError;
pub use program::execute;
pub use report::Report;
pub use request::{Mechanism, Request, Target, Times};
pub use wait::Signals;

use facts::{Facts, Own};

/// A reservation that is admitted and not made yet.
pub struct Prepared {
    target: Target,
    facts: Facts,
    plan: Plan,
    report: Report,
}

/// How it is made.
enum Plan {
    Deadline { attr: SchedAttr, pin: Option<CpuSet> },
    Group(Box<budget::Budget>),
}

/// The longest wait for the bandwidth or the budget of a program that has just ended.
const PATIENCE: Duration = Duration::from_secs(1);
/// The pause between two tries.
const PAUSE: Duration = Duration::from_millis(10);

/// Reads this host, and decides how the reservation is made. Changes nothing.
///
/// # Errors
///
/// Wrong input, or the reason why no mechanism fits or the reservation is not admitted.
pub fn prepare(request: &Request) -> Result<Prepared, ReserveError> {
    let give_up = sys::now() + PATIENCE;
    loop {
        match prepare_now(request, Own::Nothing) {
            Err(ReserveError::Misses(_)) if ProgramGroup::one_ends() && sys::now() < give_up => sys::sleep(PAUSE),
            prepared => return prepared,
        }
    }
}

/// Prepares a reservation, or the change of one that the program has.
fn prepare_now(request: &Request, own: Own) -> Result<Prepared, ReserveError> {
    request.times.check()?;
    if let Target::Program(words) = &request.target {
        program::find(words)?;
    }
    let facts = Facts::read(&request.target, own)?;
    let cpus = wanted_cpus(request, &facts)?;
    let choice = choice::choose(&choice::Wish::of(request, &cpus, facts.threads.len()), &facts.host())?;
    let times = request.times;
    let mut report = Report::new(request, &choice);
    let plan = match choice.mechanism {
        Mechanism::Deadline => {
            times.check_range(&facts.limits)?;
            facts.check_thread()?;
            let others = facts.deadline_threads();
            let Times { runtime, period, deadline } = times;
            let attr = SchedAttr::new(Standing::Deadline { runtime, deadline, period }, true).with(request.options);
            // Where the sum is too high, the kernel's account says more than the analysis.
            let late = |error| refusal::foreseen(&attr, &facts).unwrap_or(error);
            let guarantee = facts.supply(others).and_then(|supply| admission::admit(times, &supply)).map_err(late)?;
            report.by_deadline(request, &facts, guarantee);
            Plan::Deadline { attr, pin: request.cpus.clone() }
        }
        Mechanism::Group => {
            let budget = budget::admit(request, &cpus, &facts)?;
            report.by_group(request, &budget, ProgramGroup::path_of(&name_of_group(&facts)));
            Plan::Group(Box::new(budget))
        }
    };
    Ok(Prepared { target: request.target.clone(), facts, plan, report })
}

impl Prepared {
    /// Returns what is reserved, how, and why in this way.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// Returns the error that the kernel would give now by its account of SCHED_DEADLINE, for a dry run.
    pub fn foreseen(&self) -> Option<ReserveError> {
        match &self.plan {
            Plan::Deadline { attr, .. } => refusal::foreseen(attr, &self.facts),
            Plan::Group(_) => None,
        }
    }

    /// Makes the reservation of a running process, and calls `made` as soon as it is there. It stays until the process
    /// ends, or `until` has input or ends. Then the former state is back.
    ///
    /// The calling process must have one thread.
    ///
    /// # Errors
    ///
    /// The reason why there is no reservation. Of a program to start there is none.
    pub fn commit_until(self, until: &impl AsFd, made: impl FnOnce(&Report)) -> Result<(), ReserveError> {
        self.attach(made, |keeper| wait::wait_for_either(keeper, until))
    }

    /// Reserves for a running process until `wait` returns. It gets input that ends with the keeper.
    fn attach(self, made: impl FnOnce(&Report), wait: impl FnOnce(&File)) -> Result<(), ReserveError> {
        let Prepared { target, facts, plan, report } = self;
        let during = |keeper: &File| {
            made(&report);
            wait(keeper);
            Ok(())
        };
        match (target, plan) {
            (Target::Program(_), _) => Err(ReserveError::NoProcess(0)),
            (Target::Process(thread), Plan::Deadline { attr, pin }) => {
                attach::by_deadline(thread, &attr, pin.as_ref(), &facts, former::AtEnd::TheSame, during)
            }
            (Target::Process(_), Plan::Group(budget)) => attach::in_group(&facts, &budget, |keeper, _| during(keeper)),
        }
    }

    /// Makes the reservation, and calls `made` as soon as it is there. With a program to start, it returns only an
    /// error. With a running process, it returns at the end of the process, or after SIGINT, SIGTERM or SIGHUP, when
    /// the former state is back.
    ///
    /// The calling process must have one thread.
    pub fn commit(self, made: impl FnOnce(&Report)) -> Result<(), ReserveError> {
        if matches!(self.target, Target::Process(_)) {
            let signals = wait::Signals::block()?;
            return self.attach(made, |keeper| signals.wait(keeper));
        }
        let Prepared { target, facts, plan, report } = self;
        let Target::Program(words) = target else { unreachable!("a process is attached") };
        let made = || made(&report);
        match plan {
            Plan::Deadline { attr, pin } => start::by_deadline(&words, &attr, pin.as_ref(), &facts, made),
            Plan::Group(budget) => start::in_group(&words, &name_of_group(&facts), &budget, made),
        }
    }
}

/// Returns the CPUs of the reservation: the requested ones, or those that the program may use anyway.
fn wanted_cpus(request: &Request, facts: &Facts) -> Result<CpuSet, ReserveError> {
    let Some(cpus) = &request.cpus else { return Ok(facts.affinity.clone()) };
    match cpus.as_slice().iter().find(|cpu| !facts.online.contains(**cpu)) {
        None => Ok(cpus.clone()),
        Some(cpu) => Err(ReserveError::NoCpu { cpu: *cpu, online: facts.online.clone() }),
    }
}

/// Returns the name of the group of a process, which is this one if a program is to take its place.
fn name_of_group(facts: &Facts) -> String {
    match facts.process {
        0 => std::process::id().to_string(),
        process => process.to_string(),
    }
}

/// Returns the name of a thread, safe for a terminal.
fn name_of(thread: Tid) -> String {
    macrotick_model::visible::visible(&macrotick_host::proc::name(thread).unwrap_or_default())
}
