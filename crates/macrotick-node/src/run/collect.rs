//! The end of a run: stops all parts, and makes the observation.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;

use macrotick_host::clock::Discipline;
use macrotick_host::environment::environment;
use macrotick_host::sys::{self, Tid};
use macrotick_model::{
    Backend, ClockInForce, Duration, EntityCounters, Environment, Instant, Observation, OnMiss, PoolObservation,
    ProcessOutput, TaskObservation, Tier, Workload,
};

use crate::backend::budget_groups::BudgetGroups;
use crate::backend::dispatcher::Dispatcher;
use crate::backend::kernel::InstalledTable;
use crate::deployment::TaskDeployment;
use crate::error::NodeError;
use crate::process::child::Child;
use crate::process::stray;
use crate::run::records::{merge, Frame};
use crate::run::resources::{Outcome, Run};
use crate::run::supervisor::{is_killed, Past};
use crate::run::trace::{self, Known, Traced};

/// The time that a program has to end by itself, and again after SIGTERM.
pub const GRACE: Duration = Duration::from_millis(200);

/// Ends all parts of a run and makes the observation.
pub fn collect(mut run: Run, epoch: Instant, outcome: Outcome) -> Result<Observation, NodeError> {
    let pools = pool_observations(&run)?;
    let groups = run.groups.as_ref().map_or(Ok(Vec::new()), BudgetGroups::observe)?;
    let clock = clock_in_force(&run)?;
    let mut remarks = run.deployment.remarks.clone();
    if let Some(signal) = outcome.signal {
        remarks.push(format!("{signal} ended the run after {}", outcome.duration));
    }
    remarks.extend(run.remarks());
    if let Some(trace) = &run.trace {
        trace.stop().map_err(NodeError::Trace)?;
    }
    let ended: Vec<usize> = (0..run.tasks.len()).filter(|task| run.tasks[*task].exited().is_some()).collect();
    remarks.extend(ended.iter().filter_map(|task| describe_task_end(&run, *task)));
    remarks.extend(strays(&run, epoch + outcome.duration));
    if let Some(supervisor) = &run.supervisor {
        remarks.extend(supervisor.remarks(&run));
        supervisor.end(&mut run.tasks);
    }
    remarks.extend(run.processes.iter().filter_map(describe_end));
    remarks.extend(run.dispatchers.iter().filter_map(Dispatcher::describe_end));
    let known = known_threads(&run);
    let counters = end(&mut run, &ended, &mut remarks)?;
    let counted = run.tasks.iter().zip(&counters).filter_map(|(child, counters)| Some((child, counters.as_ref()?)));
    let stopped = counted.filter(|(_, counters)| counters.stopped);
    remarks.extend(stopped.map(|(child, counters)| describe_stop(&child.name, counters.missed_in_row)));
    let traced = read_trace(&run, known, epoch, outcome.duration)?;
    if traced.dropped > 0 {
        remarks.push(format!("the trace did not fit into its buffer: {} switches are missing", traced.dropped));
    }
    let end = Ended { epoch, duration: outcome.duration, follows: clock.is_some() };
    let tasks = task_observations(&run, &end, &counters, &mut remarks);
    let output = outputs(&run);
    let all = run.tasks.iter().chain(&run.processes);
    remarks.extend(all.filter_map(Child::describe_output));
    let backend = run.deployment.backend;
    Ok(Observation {
        version: Observation::VERSION,
        backend,
        tier: tier(backend),
        environment: Environment {
            profile: run.profile.as_ref().map(|profile| profile.observed().clone()),
            ..environment()
        },
        lead: run.lead,
        clock,
        gates: run.gates.as_ref().map_or_else(Vec::new, |gates| gates.in_force().to_vec()),
        duration: outcome.duration,
        tasks,
        pools,
        groups,
        segments: traced.segments,
        output,
        remarks,
        plan: run.deployment.plan.clone(),
    })
}

/// Returns the output of each process that wrote something, including the former processes of a task.
fn outputs(run: &Run) -> Vec<ProcessOutput> {
    let of_task = |(task, child): (usize, &Child)| {
        let past = past(run, task).map_or("", |past| &past.output);
        ProcessOutput { name: child.name.clone(), text: past.to_owned() + &child.output() }
    };
    let of_load = |child: &Child| ProcessOutput { name: child.name.clone(), text: child.output() };
    let all = run.tasks.iter().enumerate().map(of_task).chain(run.processes.iter().map(of_load));
    all.filter(|output| !output.text.is_empty()).collect()
}

/// Returns remarks on tasks that are alive but do no jobs.
fn strays(run: &Run, end: Instant) -> Vec<String> {
    let each = run.tasks.iter().zip(&run.deployment.tasks).enumerate();
    let starting = |task| run.supervisor.as_ref().is_some_and(|supervisor| supervisor.is_starting(task));
    // A separate remark reports the tasks that the kernel stopped.
    let stopped = |task: usize, child: &Child| {
        let table = run.table.as_ref().filter(|_| run.deployment.tasks[task].is_windowed());
        table.is_some_and(|table| table.counters(&child.name, task).is_ok_and(|counters| counters.stopped))
    };
    let alive =
        each.filter(|(task, (child, _))| child.exited().is_none() && !starting(*task) && !stopped(*task, child));
    let describe = |(_, (child, deployed)): (usize, (&Child, &TaskDeployment))| {
        stray::describe(child, deployed, run.deployment.backend, child.noted_program(), end)
    };
    alive.filter_map(describe).collect()
}

/// Reads the counters of the pools. Called first, while the pools are still served.
fn pool_observations(run: &Run) -> Result<Vec<PoolObservation>, NodeError> {
    match (&run.pools, &run.table) {
        (Some(pools), Some(table)) => pools.observe(&run.deployment.plan.system, run.groups.as_ref(), table),
        _ => Ok(Vec::new()),
    }
}

/// Reads the state of the clock while the table runs.
fn clock_in_force(run: &Run) -> Result<Option<ClockInForce>, NodeError> {
    let (Some(before), Some(table)) = (run.discipline, &run.table) else { return Ok(None) };
    let after = Discipline::read().map_err(NodeError::system("reading the state of the clock"))?;
    Ok(Some(before.in_force(after, &table.grid()?)))
}

/// Stops the release of jobs, reports the end to the tasks, and ends the load, the tasks and all their descendants.
/// Returns the kernel's counters of each task, if it has any. Adds remarks on leftover processes and on programs that
/// fail at their end. `told` are the tasks with an end that is reported already, by their places in the system.
pub fn end(run: &mut Run, told: &[usize], remarks: &mut Vec<String>) -> Result<Vec<Option<EntityCounters>>, NodeError> {
    let table = run.table.take();
    let mut counters = Vec::new();
    if let Some(table) = &table {
        table.stop()?;
        counters = read_counters(run, table)?;
    }
    // Threads that spin must let go of their CPU: otherwise others cannot end. A dispatcher may have served a task
    // once more.
    run.descendants.calm();
    run.dispatchers.clear();
    run.descendants.calm();
    run.tasks.iter().for_each(|child| child.block.stop());
    // The table goes only after the tasks know about the end: a task that loses its place in the table then knows the
    // reason. It goes before any wait: without the table, unfinished jobs can run to their end.
    drop(table);
    Child::kill_all(&mut run.processes);
    end_tasks(run, told, remarks);
    remarks.extend(run.descendants.end());
    Ok(counters)
}

/// Returns the counters in the order of the tasks. A task without windows is not in the table.
fn read_counters(run: &Run, table: &InstalledTable) -> Result<Vec<Option<EntityCounters>>, NodeError> {
    let each = run.tasks.iter().zip(&run.deployment.tasks).enumerate();
    let of = |(place, (child, deployed)): (usize, (&Child, &TaskDeployment))| {
        deployed.is_windowed().then(|| table.counters(&child.name, place)).transpose()
    };
    each.map(of).collect()
}

/// Returns a remark on a task that ended before the end of the run. The supervisor reports a process that was not bound
/// yet.
pub fn describe_task_end(run: &Run, task: usize) -> Option<String> {
    let child = &run.tasks[task];
    if run.supervisor.as_ref().is_some_and(|supervisor| supervisor.is_starting(task)) {
        return None;
    }
    let counters = || run.table.as_ref().and_then(|table| table.counters(&child.name, task).ok());
    let misses = || counters().map_or(0, |all| all.missed);
    let dies = matches!(run.deployment.tasks[task].task.on_miss, OnMiss::Kill | OnMiss::Restart);
    if dies && child.exited().is_some_and(is_killed) && misses() > 0 {
        return Some(format!("task `{}`: killed after a miss", child.name));
    }
    describe_end(child)
}

/// Returns the remains of the former processes of a task, if it had any.
pub fn past<'r>(run: &'r Run, task: usize) -> Option<&'r Past> {
    run.supervisor.as_ref().and_then(|supervisor| supervisor.past(task))
}

/// Ends the tasks. Programs get time to end by themselves; built-in workloads do not need it.
fn end_tasks(run: &mut Run, told: &[usize], remarks: &mut Vec<String>) {
    let (mut programs, mut others): (Vec<&mut Child>, Vec<&mut Child>) = (Vec::new(), Vec::new());
    for (place, (child, deployed)) in run.tasks.iter_mut().zip(&run.deployment.tasks).enumerate() {
        let program = matches!(deployed.task.run, Workload::Program(_)) && !told.contains(&place);
        if program { &mut programs } else { &mut others }.push(child);
    }
    Child::kill_all(others);
    if !await_exit(&programs) {
        programs.iter().for_each(|child| child.terminate());
        await_exit(&programs);
    }
    remarks.extend(programs.iter().filter_map(|child| describe_failure(child)));
    Child::kill_all(programs);
}

fn read_trace(run: &Run, known: Known, epoch: Instant, duration: Duration) -> Result<Traced, NodeError> {
    match &run.trace {
        Some(instance) => trace::read(instance, known, epoch, run.trace_length(duration)),
        None => Ok(Traced::default()),
    }
}

/// Returns the data about the threads of this run for the trace.
fn known_threads(run: &Run) -> Known {
    let pools = run.pools.as_ref().map(|pools| pools.threads().clone()).unwrap_or_default();
    Known { names: thread_names(run), pools }
}

/// Returns the names of the threads of this run in the trace.
fn thread_names(run: &Run) -> BTreeMap<Tid, String> {
    let processes = run.processes.iter().map(|child| (child.pid(), child.name.clone()));
    let tasks = run.tasks.iter().map(|child| (child.block.tid(), child.name.clone()));
    let dispatchers = run.dispatchers.iter().map(|dispatcher| (dispatcher.pid, dispatcher.name.clone()));
    let runner = (std::process::id() as Tid, "macrotick".to_string());
    let past = run.tasks.iter().enumerate().filter_map(|(task, child)| Some((past(run, task)?, &child.name)));
    let former = past.flat_map(|(past, name)| past.threads.iter().map(|tid| (*tid, name.clone())));
    former.chain(processes).chain(tasks).chain(dispatchers).chain([runner]).collect()
}

fn task_observations(
    run: &Run,
    end: &Ended,
    counters: &[Option<EntityCounters>],
    remarks: &mut Vec<String>,
) -> Vec<TaskObservation> {
    let mut observations = Vec::new();
    for (index, (child, deployed)) in run.tasks.iter().zip(&run.deployment.tasks).enumerate() {
        if !child.block.is_intact() {
            let name = &child.name;
            remarks.push(format!(
                "task `{name}`: its program has overwritten the memory that it shares with the runner: its records are lost"
            ));
        }
        let past = past(run, index);
        let mut records = past.map(|past| past.records.clone()).unwrap_or_default();
        records.extend(child.block.records());
        let is_full = child.block.is_full() || past.is_some_and(|past| past.is_full);
        let merged = merge(end.frame(deployed), &deployed.jobs, &records, is_full);
        if let Some(until) = merged.until {
            let name = &child.name;
            remarks.push(format!("task `{name}`: there was room for the records of the first {until} only"));
        }
        if merged.strange > 0 {
            let strange = merged.strange;
            remarks.push(format!("task `{}`: {strange} records do not fit the plan", child.name));
        }
        let restarted = past.map_or(0, Past::count);
        let counters = counters.get(index).copied().flatten();
        let counters = counters.map(|counters| EntityCounters { restarted, ..counters });
        observations.push(TaskObservation {
            name: child.name.clone(),
            jobs: merged.jobs,
            recorded_until: merged.until,
            counters,
        });
    }
    observations
}

/// The observed time.
struct Ended {
    epoch: Instant,
    duration: Duration,
    /// Whether the table moved with its clock.
    follows: bool,
}

impl Ended {
    /// Returns the frame of a task. A task without windows keeps its period on `CLOCK_MONOTONIC`.
    fn frame(&self, task: &TaskDeployment) -> Frame {
        let follows = self.follows && task.is_windowed();
        Frame { epoch: self.epoch, cycle: task.repetition, duration: self.duration, follows }
    }
}

fn tier(backend: Backend) -> Tier {
    match backend {
        Backend::Kernel => Tier::KernelClass,
        Backend::User => Tier::UserSpaceDispatcher,
        Backend::Fifo | Backend::Deadline | Backend::Other => Tier::NotEnforced,
    }
}

/// Returns a remark on a process that ended before the end of the run.
pub fn describe_end(child: &Child) -> Option<String> {
    let status = child.exited()?;
    Some(format!("`{}` ended during the run ({status}){}", child.name, child.last_words()))
}

fn describe_stop(name: &str, misses: u32) -> String {
    let misses = if misses == 1 { "a miss".into() } else { format!("{misses} misses in a row") };
    format!("task `{name}`: stopped after {misses}")
}

/// Returns a remark on a program that failed after it got the report of the run's end. A program that had to be killed
/// has not failed.
fn describe_failure(child: &Child) -> Option<String> {
    let ours = |signal| [libc::SIGTERM, libc::SIGKILL].contains(&signal);
    let status = child.exited().filter(|status| !status.success() && !status.signal().is_some_and(ours))?;
    Some(format!("`{}` failed at the end of the run ({status}){}", child.name, child.last_words()))
}

/// Returns whether all have ended within the grace time.
fn await_exit(children: &[&mut Child]) -> bool {
    let give_up = sys::now() + GRACE;
    loop {
        if children.iter().all(|child| child.exited().is_some()) {
            return true;
        }
        if sys::now() > give_up {
            return false;
        }
        sys::sleep(Duration::from_millis(5));
    }
}
