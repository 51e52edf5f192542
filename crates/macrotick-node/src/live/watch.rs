//! The watch over a deployment's processes: reports once each process that ends by itself, and each task that is
//! restarted.

use std::collections::BTreeSet;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use macrotick_host::sys::Tid;

use crate::process::child::Child;
use crate::process::signals::readable_now;
use crate::run::collect::{describe_end, describe_task_end};
use crate::run::resources::Run;

/// The watched processes: those that are not restarted.
pub struct Watch {
    processes: Vec<(Tid, OwnedFd)>,
    /// The processes with a reported end.
    told: BTreeSet<Tid>,
    /// The last remarks on restarted tasks.
    remarks: Vec<String>,
}

impl Watch {
    /// Watches the processes of a run.
    pub fn new(run: &Run) -> Watch {
        let mut watch = Watch { processes: Vec::new(), told: BTreeSet::new(), remarks: Vec::new() };
        watch.renew(run);
        watch
    }

    /// Updates the watch after the processes of the run changed.
    pub fn renew(&mut self, run: &Run) {
        let present: BTreeSet<Tid> = children(run).map(|(_, child)| child.pid()).collect();
        self.told.retain(|pid| present.contains(pid));
        let cared_for = |task: Option<usize>| {
            task.is_some_and(|task| run.supervisor.as_ref().is_some_and(|supervisor| supervisor.has(task)))
        };
        let untold = children(run).filter(|(task, child)| !cared_for(*task) && !self.told.contains(&child.pid()));
        // A lack of descriptors does not stop the deployment. The end of such a process is not reported.
        self.processes = untold.filter_map(|(_, child)| Some((child.pid(), child.pidfd().ok()?))).collect();
    }

    /// Returns the descriptors that become readable when a process ends.
    pub fn descriptors(&self) -> Vec<RawFd> {
        self.processes.iter().map(|(_, descriptor)| descriptor.as_raw_fd()).collect()
    }

    /// Returns the tasks, by their places in the system, with an end that the watch reported or the supervisor reports.
    pub fn told(&self, run: &Run) -> Vec<usize> {
        let begun_anew = |task| run.supervisor.as_ref().is_some_and(|supervisor| supervisor.has(task));
        let is_told = |task: &usize| {
            self.told.contains(&run.tasks[*task].pid()) || begun_anew(*task) && run.tasks[*task].exited().is_some()
        };
        (0..run.tasks.len()).filter(is_told).collect()
    }

    /// Removes tasks, by their places in the system, that are about to leave. Their end is expected.
    pub fn leave_out(&mut self, run: &Run, tasks: &[usize]) {
        let leaving: Vec<Tid> = tasks.iter().map(|task| run.tasks[*task].pid()).collect();
        self.processes.retain(|(pid, _)| !leaving.contains(pid));
    }

    /// Returns the reported remarks on restarted tasks.
    pub fn remarks(&self) -> &[String] {
        &self.remarks
    }

    /// Returns the news since the last call.
    pub fn look(&mut self, run: &Run) -> News {
        let mut ended = Vec::new();
        // In reverse order, because each removal moves the places behind it.
        for place in readable_now(&self.descriptors()).into_iter().rev() {
            let (pid, _) = self.processes.remove(place);
            self.told.insert(pid);
            let found = children(run).find(|(_, child)| child.pid() == pid);
            ended.extend(found.and_then(|(task, child)| match task {
                Some(task) => describe_task_end(run, task),
                None => describe_end(child),
            }));
        }
        let remarks = run.supervisor.as_ref().map(|supervisor| supervisor.remarks(run)).unwrap_or_default();
        let begun_anew = remarks.iter().filter(|remark| !self.remarks.contains(remark)).cloned().collect();
        self.remarks = remarks;
        News { ended, begun_anew }
    }
}

/// News for the user.
pub struct News {
    /// Remarks on processes that ended.
    pub ended: Vec<String>,
    /// Remarks on tasks that were restarted, or are not restarted any more.
    pub begun_anew: Vec<String>,
}

/// Returns all processes; those of tasks with their places in the system.
fn children<'a>(run: &'a Run) -> impl Iterator<Item = (Option<usize>, &'a Child)> {
    let tasks = run.tasks.iter().enumerate().map(|(index, child)| (Some(index), child));
    tasks.chain(run.processes.iter().map(|child| (None, child)))
}
