//! Tasks with `on-miss: restart` under the kernel class: the runner restarts a task when its process ends.
//!
//! The runner sleeps on descriptors of the processes, and does nothing else until one of them ends. The kernel killed
//! it because of a miss, or it ended by itself. Then the task gets a new process with a new block. The half-done work
//! of the old process, and later writes of its children, stay in the old block. Until the new process is ready, the
//! runner checks it every [`LOOK`], when the tick interrupts anyway. Binding the thread makes the kernel wait for the
//! next activation, and lets a stopped entity continue. Therefore the runner does not restart a stopped task.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use macrotick_host::sys::{self, Tid};
use macrotick_model::{Backend, Duration, EntityCounters, Instant, OnMiss};

use crate::block::abi::{self, Record};
use crate::deployment::{self, TaskDeployment};
use crate::error::NodeError;
use crate::process::child::Child;
use crate::process::signals::Signals;
use crate::run::resources::Run;
use crate::run::spawn::spawn_task;
use crate::run::start::place_task;

/// The maximum number of restarts in a row without a completed job in between.
const MOST_IN_VAIN: u32 = 3;
/// The interval at which the runner checks whether a new process is ready. The tick's period is a multiple of it.
const LOOK: Duration = Duration::from_millis(1);

/// The size of the output that is kept of the former processes of a task, in bytes.
const PAST_OUTPUT: usize = 128 << 10;

/// The tasks that the runner restarts.
pub struct Supervisor {
    wards: Vec<Ward>,
}

impl Supervisor {
    /// Makes a supervisor for the tasks of a run, which are ready. Returns `None` if no task restarts.
    pub fn new(run: &Run) -> Result<Option<Supervisor>, NodeError> {
        if run.deployment.backend != Backend::Kernel {
            return Ok(None);
        }
        let mut wards = Vec::new();
        for (index, (child, deployed)) in run.tasks.iter().zip(&run.deployment.tasks).enumerate() {
            if deployed.task.on_miss == OnMiss::Restart {
                wards.push(Ward::new(index, pidfd(child)?));
            }
        }
        Ok(Some(Supervisor { wards }).filter(|supervisor| !supervisor.wards.is_empty()))
    }

    /// Makes a supervisor for the tasks of a run after a change. `origins` has the origin of each task's process.
    pub fn renew(former: Option<Supervisor>, run: &Run, origins: &[Origin]) -> Result<Option<Supervisor>, NodeError> {
        let mut former = former.map_or(Vec::new(), |supervisor| supervisor.wards);
        let mut wards = Vec::new();
        for (index, (child, deployed)) in run.tasks.iter().zip(&run.deployment.tasks).enumerate() {
            if deployed.task.on_miss != OnMiss::Restart {
                continue;
            }
            let known = former.iter().position(|ward| origins[index] == Origin::Same(ward.task));
            wards.push(match (known, origins[index]) {
                (Some(known), _) => Ward { task: index, ..former.swap_remove(known) },
                // The new process may have missed a deadline already.
                (None, Origin::New) => Ward::new(index, pidfd(child)?),
                (None, _) => Ward { misses: counters(run, index)?.missed, ..Ward::new(index, pidfd(child)?) },
            });
        }
        Ok(Some(Supervisor { wards }).filter(|supervisor| !supervisor.wards.is_empty()))
    }

    /// Stops the restart of tasks that are about to leave. Tasks are given by their places in the system.
    pub fn release(&mut self, tasks: &[usize]) {
        self.wards.retain(|ward| !tasks.contains(&ward.task));
    }

    /// Returns whether a task, by its place in the system, is supervised.
    pub fn has(&self, task: usize) -> bool {
        self.wards.iter().any(|ward| ward.task == task)
    }

    /// Returns whether a task, by its place in the system, restarts when its process ends.
    pub fn cares_for(&self, task: usize) -> bool {
        self.wards.iter().any(|ward| ward.task == task && ward.process.is_some())
    }

    /// Returns the descriptors that become readable when there is work.
    pub fn descriptors(&self) -> Vec<RawFd> {
        self.wards.iter().filter_map(|ward| ward.process.as_ref()).map(OwnedFd::as_raw_fd).collect()
    }

    /// Returns the latest instant of the next check, if no descriptor becomes readable before.
    pub fn next_look(&self) -> Option<Instant> {
        let starting = self.wards.iter().any(|ward| ward.process.is_some() && ward.ready_by.is_some());
        starting.then(|| next_multiple(sys::now(), LOOK))
    }

    /// Does the pending work. It waits only for the start of a process.
    pub fn look(&mut self, run: &mut Run, epoch: Instant) {
        self.wards.iter_mut().for_each(|ward| ward.look(run, epoch));
    }

    /// Ends the processes that are not bound yet. The run is over.
    pub fn end(&self, tasks: &mut [Child]) {
        let starting = self.wards.iter().filter(|ward| ward.ready_by.is_some());
        starting.for_each(|ward| tasks[ward.task].kill());
    }

    /// Returns whether the present process of a task, by its place in the system, is not bound yet.
    pub fn is_starting(&self, task: usize) -> bool {
        self.wards.iter().any(|ward| ward.task == task && ward.ready_by.is_some())
    }

    /// Returns the remains of the former processes of a task, by its place in the system.
    pub fn past(&self, task: usize) -> Option<&Past> {
        self.wards.iter().find(|ward| ward.task == task).map(|ward| &ward.past)
    }

    /// Takes the records of the former processes of a task, by its place in the system.
    pub fn take_records(&mut self, task: usize) -> Vec<Record> {
        let ward = self.wards.iter_mut().find(|ward| ward.task == task);
        ward.map_or_else(Vec::new, |ward| std::mem::take(&mut ward.past.records))
    }

    /// Returns remarks for the observation.
    pub fn remarks(&self, run: &Run) -> Vec<String> {
        self.wards.iter().flat_map(|ward| ward.remarks(&run.tasks[ward.task].name)).collect()
    }
}

/// Sleeps until an instant, a signal, a readable descriptor or the need of a restart. Restarts the task in that case.
/// May return early.
pub fn attend(run: &mut Run, at: Instant, epoch: Instant, signals: &Signals, descriptors: &[RawFd]) {
    let Some(mut supervisor) = run.supervisor.take() else {
        return signals.sleep_until_readable(at, descriptors);
    };
    let all = [&supervisor.descriptors(), descriptors].concat();
    signals.sleep_until_readable(supervisor.next_look().map_or(at, |look| look.min(at)), &all);
    supervisor.look(run, epoch);
    run.supervisor = Some(supervisor);
}

/// The origin of a task's process after a change of the deployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The process of the task that had this place.
    Same(usize),
    /// The process replaces another one, and the kernel has counted misses of that one.
    Other,
    /// The task is new.
    New,
}

/// The remains of a task's former processes.
#[derive(Debug, Default)]
pub struct Past {
    /// Their records, in order.
    pub records: Vec<Record>,
    /// Whether there was no room for more records.
    pub is_full: bool,
    /// The number of their jobs that left no record.
    pub unrecorded: u64,
    /// Their threads, if a trace is taken.
    pub threads: Vec<Tid>,
    /// The number of processes that ended because of a miss and were replaced.
    missed: u32,
    /// The number of processes that ended otherwise and were replaced.
    ended: u32,
    /// The exit status and the last line of the last process that ended otherwise.
    last_end: String,
    /// Their output: the end of it.
    pub output: String,
}

impl Past {
    /// Returns the number of former processes.
    pub fn count(&self) -> u32 {
        self.missed + self.ended
    }

    fn add(&mut self, child: &Child, end: &End, is_traced: bool) {
        self.records.extend(child.block.records());
        self.is_full |= child.block.is_full();
        self.unrecorded += child.block.unrecorded();
        self.add_output(&child.output());
        // Zero: it never joined. Only a trace needs the threads, and a deployment may have many over time.
        self.threads.extend(Some(child.block.tid()).filter(|tid| is_traced && *tid != 0));
        match end.missed {
            true => self.missed += 1,
            false => {
                self.ended += 1;
                self.last_end = format!("{}{}", end.status, child.last_words());
            }
        }
    }

    /// Adds output. Beyond the limit, the oldest output is dropped.
    fn add_output(&mut self, text: &str) {
        self.output.push_str(text);
        let excess = self.output.len().saturating_sub(PAST_OUTPUT);
        let cut = (excess..self.output.len()).find(|at| self.output.is_char_boundary(*at)).unwrap_or(0);
        self.output.drain(..cut);
    }
}

/// The end of a process.
struct End {
    status: ExitStatus,
    missed: bool,
}

impl End {
    fn describe(&self, child: &Child) -> String {
        format!(" ({}{})", self.status, child.last_words())
    }
}

/// One supervised task.
struct Ward {
    /// Its place in the system.
    task: usize,
    /// A descriptor that is readable when its process has ended. `None`: the task does not restart any more.
    process: Option<OwnedFd>,
    /// The instant by which a new process must be ready. `None`: the process is bound.
    ready_by: Option<Instant>,
    past: Past,
    /// The number of misses that the kernel had counted at the last end of a process.
    misses: u64,
    /// The number of restarts since the last completed job.
    in_vain: u32,
    /// The reason why the task does not restart any more, if no other part reports it.
    given_up: Option<String>,
}

impl Ward {
    fn new(task: usize, process: OwnedFd) -> Ward {
        let past = Past::default();
        Ward { task, process: Some(process), ready_by: None, past, misses: 0, in_vain: 0, given_up: None }
    }

    fn look(&mut self, run: &mut Run, epoch: Instant) {
        if self.process.is_none() {
            return;
        }
        let result = match (run.tasks[self.task].exited(), self.ready_by) {
            (Some(status), _) => self.follow(run, status, epoch),
            (None, Some(by)) => self.admit(run, by, epoch),
            (None, None) => Ok(()),
        };
        // The run continues without the task.
        if let Err(reason) = result {
            run.tasks[self.task].kill();
            (self.process, self.given_up) = (None, reason);
        }
    }

    /// Restarts the task after its process ended. The error is the reason why it does not restart, or `None` if another
    /// part reports it.
    fn follow(&mut self, run: &mut Run, status: ExitStatus, epoch: Instant) -> Result<(), Option<String>> {
        let child = &mut run.tasks[self.task];
        // The processes that it started end with it.
        child.kill();
        if child.block.has_completed() {
            self.in_vain = 0;
        }
        let counters = counters(run, self.task).map_err(tell)?;
        let end = End { status, missed: is_killed(status) && counters.missed > self.misses };
        self.misses = counters.missed;
        if counters.stopped {
            return Err(None);
        }
        if self.in_vain == MOST_IN_VAIN {
            // If the process was bound before, another remark reports its end.
            let how = if self.ready_by.is_some() { end.describe(&run.tasks[self.task]) } else { String::new() };
            let text = "times in a row it ended before it completed a job";
            return Err(Some(format!("{MOST_IN_VAIN} {text}{how}")));
        }
        self.in_vain += 1;
        self.begin(run, &end, epoch).map_err(tell)
    }

    fn begin(&mut self, run: &mut Run, end: &End, epoch: Instant) -> Result<(), NodeError> {
        let deployed = &run.deployment.tasks[self.task];
        let kept = self.past.records.len() + run.tasks[self.task].block.records().len();
        let child = spawn_task(run, &run.deployment, deployed, capacity(run, deployed, kept as u32, epoch))?;
        self.process = Some(pidfd(&child)?);
        self.ready_by = Some(sys::now() + run.options.ready_limit);
        let former = std::mem::replace(&mut run.tasks[self.task], child);
        self.past.add(&former, end, run.trace.is_some());
        Ok(())
    }

    /// Binds the new process once it is ready: from then on it is the task.
    fn admit(&mut self, run: &Run, by: Instant, epoch: Instant) -> Result<(), Option<String>> {
        let child = &run.tasks[self.task];
        let late = sys::now() > by;
        if child.block.phase() < abi::PHASE_READY {
            let limit = run.options.ready_limit;
            let text = || format!("its new process was not ready within {limit}: it {}", child.doing());
            return if late { Err(Some(text())) } else { Ok(()) };
        }
        match bind(run, self.task) {
            Ok(()) => {
                child.block.publish(epoch);
                self.ready_by = None;
                Ok(())
            }
            // Its thread fell asleep on another CPU, and falls asleep on its own CPU after this. Or it is just ending.
            Err(error) if !late && matches!(error.errno(), Some(libc::EAGAIN | libc::ESRCH)) => {
                child.block.nudge();
                Ok(())
            }
            Err(error) => Err(tell(error)),
        }
    }

    fn remarks(&self, name: &str) -> Vec<String> {
        let mut remarks = Vec::new();
        let Past { missed, ended, last_end, .. } = &self.past;
        if *missed > 0 {
            let misses = if *missed == 1 { "a miss" } else { "misses" };
            remarks.push(format!("task `{name}`: restarted {} after {misses}", times(*missed)));
        }
        if *ended > 0 {
            let last = if *ended == 1 { "" } else { "the last time: " };
            remarks.push(format!(
                "task `{name}`: restarted {} after it ended by itself ({last}{last_end})",
                times(*ended)
            ));
        }
        remarks.extend(self.given_up.as_ref().map(|why| format!("task `{name}`: not restarted any more: {why}")));
        remarks
    }
}

/// Returns whether a process was killed with SIGKILL. During a run only the kernel class and the system itself do that.
pub fn is_killed(status: ExitStatus) -> bool {
    status.signal() == Some(libc::SIGKILL)
}

fn pidfd(child: &Child) -> Result<OwnedFd, NodeError> {
    child.pidfd().map_err(NodeError::system("opening a descriptor of a task's process"))
}

fn counters(run: &Run, task: usize) -> Result<EntityCounters, NodeError> {
    run.table.as_ref().map_or(Ok(EntityCounters::default()), |table| table.counters(&run.tasks[task].name, task))
}

fn bind(run: &Run, task: usize) -> Result<(), NodeError> {
    place_task(&run.tasks[task], &run.deployment.tasks[task])?;
    run.table.as_ref().map_or(Ok(()), |table| table.bind(&run.tasks[task]))
}

/// Returns the number of records for the rest of the run, within the limit of the task. Records that are taken meanwhile
/// need no more room than those of the former process.
fn capacity(run: &Run, deployed: &TaskDeployment, kept: u32, epoch: Instant) -> u32 {
    if run.options.reading.is_some() {
        return deployed.capacity;
    }
    let left = (epoch + run.deployment.duration - sys::now()).max(Duration::ZERO);
    let limit = deployed.capacity.saturating_sub(kept);
    deployment::capacity(run.deployment.plan.cycle, left, deployed.jobs.len(), Some(limit))
}

/// Returns an error as the end of a remark.
fn tell(error: NodeError) -> Option<String> {
    Some(error.with_reason())
}

fn times(count: u32) -> String {
    match count {
        1 => "once".into(),
        count => format!("{count} times"),
    }
}

/// Returns the first multiple of a length after an instant.
fn next_multiple(at: Instant, of: Duration) -> Instant {
    let (at, of) = (at.as_nanos(), of.as_nanos());
    Instant::from_nanos((at / of + 1) * of)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ward() -> Ward {
        Ward::new(0, std::fs::File::open("/dev/null").unwrap().into())
    }

    #[test]
    fn looks_are_on_the_grid_of_the_tick() {
        let at = |us: i64| Instant::from_nanos(us * 1000);
        assert_eq!(next_multiple(at(1999), LOOK), at(2000));
        assert_eq!(next_multiple(at(2000), LOOK), at(3000));
    }

    #[test]
    fn nothing_is_looked_at_while_nobody_starts() {
        let mut supervisor = Supervisor { wards: vec![ward()] };
        assert_eq!((supervisor.next_look(), supervisor.descriptors().len()), (None, 1));
        supervisor.wards[0].ready_by = Some(sys::now());
        assert!(supervisor.next_look().is_some());
        supervisor.wards[0].process = None;
        assert!(supervisor.descriptors().is_empty() && supervisor.next_look().is_none());
    }

    #[test]
    fn remarks_tell_why_and_how_often() {
        let mut ward = ward();
        assert_eq!(ward.remarks("a"), [""; 0]);
        ward.past.missed = 1;
        assert_eq!(ward.remarks("a"), ["task `a`: restarted once after a miss"]);
        ward.past = Past { missed: 2, ended: 1, last_end: "exit status: 1: bad".into(), ..Past::default() };
        ward.given_up = Some("no".into());
        assert_eq!(
            ward.remarks("a"),
            [
                "task `a`: restarted 2 times after misses",
                "task `a`: restarted once after it ended by itself (exit status: 1: bad)",
                "task `a`: not restarted any more: no",
            ]
        );
        assert_eq!(ward.past.count(), 3);
    }
}
