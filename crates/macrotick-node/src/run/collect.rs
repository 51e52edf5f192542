//! The end of a run: everything is stopped, and what happened becomes the observation.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;

use macrotick_host::clock::Discipline;
use macrotick_host::environment::environment;
use macrotick_host::sys::{self, Tid};
use macrotick_model::{
    Backend, ClockInForce, Duration, EntityCounters, Instant, Observation, OnMiss, PoolObservation, ProcessOutput,
    TaskObservation, Tier, Workload,
};

use crate::backend::budget_groups::BudgetGroups;
use crate::backend::dispatcher::Dispatcher;
use crate::backend::kernel::InstalledTable;
use crate::deployment::TaskDeployment;
use crate::error::NodeError;
use crate::process::child::Child;
use crate::process::stray;
use crate::run::records::{merge, Frame};
use crate::run::supervisor::{is_killed, Past};
use crate::run::trace::{self, Known, Traced};
use crate::run::{Outcome, Run};

/// How long a program may take to end by itself, and then again after SIGTERM.
pub const GRACE: Duration = Duration::from_millis(200);

impl Run<'_> {
    /// Ends everything and makes the observation.
    pub fn collect(mut self, epoch: Instant, outcome: Outcome) -> Result<Observation, NodeError> {
        let pools = self.pool_observations()?;
        let groups = self.groups.as_ref().map_or(Ok(Vec::new()), BudgetGroups::observe)?;
        let clock = self.clock_in_force()?;
        let mut remarks = self.deployment.remarks.clone();
        if let Some(signal) = outcome.signal {
            remarks.push(format!("{signal} ended the run after {}", outcome.duration));
        }
        remarks.extend(self.remarks());
        if let Some(trace) = &self.trace {
            trace.stop().map_err(NodeError::Trace)?;
        }
        let ended: Vec<usize> = (0..self.tasks.len()).filter(|task| self.tasks[*task].exited().is_some()).collect();
        remarks.extend(ended.iter().filter_map(|task| self.describe_task_end(*task)));
        remarks.extend(self.strays(epoch + outcome.duration));
        if let Some(supervisor) = &self.supervisor {
            remarks.extend(supervisor.remarks(&self));
            supervisor.end(&mut self.tasks);
        }
        remarks.extend(self.processes.iter().filter_map(describe_end));
        remarks.extend(self.dispatchers.iter().filter_map(Dispatcher::describe_end));
        let known = self.known_threads();
        let counters = self.end(&ended, &mut remarks)?;
        let counted =
            self.tasks.iter().zip(&counters).filter_map(|(child, counters)| Some((child, counters.as_ref()?)));
        let stopped = counted.filter(|(_, counters)| counters.stopped);
        remarks.extend(stopped.map(|(child, counters)| describe_stop(&child.name, counters.missed_in_row)));
        let traced = self.read_trace(known, epoch, outcome.duration)?;
        if traced.dropped > 0 {
            remarks.push(format!("the trace was too long for its buffer: {} switches are missing", traced.dropped));
        }
        let end = Ended { epoch, duration: outcome.duration, follows: clock.is_some() };
        let tasks = self.task_observations(&end, &counters, &mut remarks);
        let output = self.outputs();
        let all = self.tasks.iter().chain(&self.processes);
        remarks.extend(all.filter_map(Child::describe_output));
        let backend = self.deployment.backend;
        Ok(Observation {
            version: Observation::VERSION,
            backend,
            tier: tier(backend),
            environment: environment(),
            lead: self.lead,
            clock,
            duration: outcome.duration,
            tasks,
            pools,
            groups,
            segments: traced.segments,
            output,
            remarks,
            plan: self.deployment.plan.clone(),
        })
    }

    /// What was written by each process that wrote anything, those before the present one of a task among them.
    fn outputs(&self) -> Vec<ProcessOutput> {
        let of_task = |(task, child): (usize, &Child)| {
            let past = self.past(task).map_or("", |past| &past.output);
            ProcessOutput { name: child.name.clone(), text: past.to_owned() + &child.output() }
        };
        let of_load = |child: &Child| ProcessOutput { name: child.name.clone(), text: child.output() };
        let all = self.tasks.iter().enumerate().map(of_task).chain(self.processes.iter().map(of_load));
        all.filter(|output| !output.text.is_empty()).collect()
    }

    /// Remarks on tasks that are there and do no jobs.
    fn strays(&self, end: Instant) -> Vec<String> {
        let each = self.tasks.iter().zip(&self.deployment.tasks).enumerate();
        let starting = |task| self.supervisor.as_ref().is_some_and(|supervisor| supervisor.is_starting(task));
        // Of those the kernel has stopped that is told.
        let stopped = |task: usize, child: &Child| {
            let table = self.table.as_ref().filter(|_| self.deployment.tasks[task].is_windowed());
            table.is_some_and(|table| table.counters(&child.name, task).is_ok_and(|counters| counters.stopped))
        };
        let alive =
            each.filter(|(task, (child, _))| child.exited().is_none() && !starting(*task) && !stopped(*task, child));
        let describe = |(_, (child, deployed)): (usize, (&Child, &TaskDeployment))| {
            stray::describe(child, deployed, self.deployment.backend, child.noted_program(), end)
        };
        alive.filter_map(describe).collect()
    }

    /// First of all, as long as the pools are served.
    fn pool_observations(&self) -> Result<Vec<PoolObservation>, NodeError> {
        match (&self.pools, &self.table) {
            (Some(pools), Some(table)) => pools.observe(&self.deployment.plan.system, self.groups.as_ref(), table),
            _ => Ok(Vec::new()),
        }
    }

    /// While the table runs.
    fn clock_in_force(&self) -> Result<Option<ClockInForce>, NodeError> {
        let (Some(before), Some(table)) = (self.discipline, &self.table) else { return Ok(None) };
        let after = Discipline::read().map_err(NodeError::system("reading the state of the clock"))?;
        Ok(Some(before.in_force(after, &table.grid()?)))
    }

    /// Stops what releases jobs, tells the tasks so, and ends the load, the tasks and all that they started. Returns the
    /// kernel's counters of each task, if it has any. Remarked is what was left, and programs that fail at their end, but
    /// for the tasks, by their places in the system, whose end was told.
    pub fn end(&mut self, told: &[usize], remarks: &mut Vec<String>) -> Result<Vec<Option<EntityCounters>>, NodeError> {
        let table = self.table.take();
        let mut counters = Vec::new();
        if let Some(table) = &table {
            table.stop()?;
            counters = self.counters(table)?;
        }
        // Whatever spins has to let go of its CPU, so that others can end; a dispatcher may have served once more.
        self.descendants.calm();
        self.dispatchers.clear();
        self.descendants.calm();
        self.tasks.iter().for_each(|child| child.block.stop());
        // Only after the tasks were told, so that whoever loses its place in the table knows why; and before anything
        // is waited for, because without the table the jobs that were cut off can run to their end.
        drop(table);
        Child::kill_all(&mut self.processes);
        self.end_tasks(told, remarks);
        remarks.extend(self.descendants.end());
        Ok(counters)
    }

    /// In the order of the tasks. A task without windows is none of the table's.
    fn counters(&self, table: &InstalledTable) -> Result<Vec<Option<EntityCounters>>, NodeError> {
        let each = self.tasks.iter().zip(&self.deployment.tasks).enumerate();
        let of = |(place, (child, deployed)): (usize, (&Child, &TaskDeployment))| {
            deployed.is_windowed().then(|| table.counters(&child.name, place)).transpose()
        };
        each.map(of).collect()
    }

    /// A remark on a task that ended before it was told to. Of a process that was still to become the task the
    /// supervisor tells.
    pub fn describe_task_end(&self, task: usize) -> Option<String> {
        let child = &self.tasks[task];
        if self.supervisor.as_ref().is_some_and(|supervisor| supervisor.is_starting(task)) {
            return None;
        }
        let counters = || self.table.as_ref().and_then(|table| table.counters(&child.name, task).ok());
        let misses = || counters().map_or(0, |all| all.missed);
        let dies = matches!(self.deployment.tasks[task].task.on_miss, OnMiss::Kill | OnMiss::Restart);
        if dies && child.exited().is_some_and(is_killed) && misses() > 0 {
            return Some(format!("task `{}`: killed after a miss", child.name));
        }
        describe_end(child)
    }

    /// What the former processes of a task left, if it had any.
    fn past(&self, task: usize) -> Option<&Past> {
        self.supervisor.as_ref().and_then(|supervisor| supervisor.past(task))
    }

    /// Programs get the chance to end by themselves; built-in workloads have nothing left to do.
    fn end_tasks(&mut self, told: &[usize], remarks: &mut Vec<String>) {
        let (mut programs, mut others): (Vec<&mut Child>, Vec<&mut Child>) = (Vec::new(), Vec::new());
        for (place, (child, deployed)) in self.tasks.iter_mut().zip(&self.deployment.tasks).enumerate() {
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

    fn read_trace(&self, known: Known, epoch: Instant, duration: Duration) -> Result<Traced, NodeError> {
        match &self.trace {
            Some(instance) => trace::read(instance, known, epoch, self.trace_length(duration)),
            None => Ok(Traced::default()),
        }
    }

    /// What is known of the threads of this run for the trace.
    fn known_threads(&self) -> Known {
        let pools = self.pools.as_ref().map(|pools| pools.threads().clone()).unwrap_or_default();
        Known { names: self.thread_names(), pools }
    }

    /// What the threads of this run are called in the trace.
    fn thread_names(&self) -> BTreeMap<Tid, String> {
        let processes = self.processes.iter().map(|child| (child.pid(), child.name.clone()));
        let tasks = self.tasks.iter().map(|child| (child.block.tid(), child.name.clone()));
        let dispatchers = self.dispatchers.iter().map(|dispatcher| (dispatcher.pid, dispatcher.name.clone()));
        let runner = (std::process::id() as Tid, "macrotick".to_string());
        let past = self.tasks.iter().enumerate().filter_map(|(task, child)| Some((self.past(task)?, &child.name)));
        let former = past.flat_map(|(past, name)| past.threads.iter().map(|tid| (*tid, name.clone())));
        former.chain(processes).chain(tasks).chain(dispatchers).chain([runner]).collect()
    }

    fn task_observations(
        &self,
        end: &Ended,
        counters: &[Option<EntityCounters>],
        remarks: &mut Vec<String>,
    ) -> Vec<TaskObservation> {
        let mut observations = Vec::new();
        for (index, (child, deployed)) in self.tasks.iter().zip(&self.deployment.tasks).enumerate() {
            if !child.block.is_intact() {
                let name = &child.name;
                remarks.push(format!(
                    "task `{name}`: its program has overwritten the memory that it shares with the runner: its records are lost"
                ));
            }
            let past = self.past(index);
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
}

/// What was observed.
struct Ended {
    epoch: Instant,
    duration: Duration,
    /// Whether the table moved with its clock.
    follows: bool,
}

impl Ended {
    /// That of a task. One without windows keeps its period on `CLOCK_MONOTONIC`.
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

/// A remark on a process that ended before it was told to.
pub fn describe_end(child: &Child) -> Option<String> {
    let status = child.exited()?;
    Some(format!("`{}` ended during the run ({status}){}", child.name, child.last_words()))
}

fn describe_stop(name: &str, misses: u32) -> String {
    let misses = if misses == 1 { "a miss".into() } else { format!("{misses} misses in a row") };
    format!("task `{name}`: stopped after {misses}")
}

/// A remark on a program that failed when it was told that the run is over. That it had to be killed is no failure.
fn describe_failure(child: &Child) -> Option<String> {
    let ours = |signal| [libc::SIGTERM, libc::SIGKILL].contains(&signal);
    let status = child.exited().filter(|status| !status.success() && !status.signal().is_some_and(ours))?;
    Some(format!("`{}` failed at the end of the run ({status}){}", child.name, child.last_words()))
}

/// Whether all have ended within the grace.
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
