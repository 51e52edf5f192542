//! Processes of a long-lived deployment that end though nobody told them to, and what becomes of tasks that are begun
//! anew: each is told once.

use std::collections::BTreeSet;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use macrotick_host::sys::Tid;

use crate::process::child::Child;
use crate::process::signals::readable_now;
use crate::run::collect::{describe_end, describe_task_end};
use crate::run::resources::Run;

/// The processes that are watched: those that are not begun anew.
pub struct Watch {
    processes: Vec<(Tid, OwnedFd)>,
    /// Those whose end was told.
    told: BTreeSet<Tid>,
    /// What was told last of tasks that are begun anew.
    remarks: Vec<String>,
}

impl Watch {
    /// Watches the processes of a run.
    pub fn new(run: &Run) -> Watch {
        let mut watch = Watch { processes: Vec::new(), told: BTreeSet::new(), remarks: Vec::new() };
        watch.renew(run);
        watch
    }

    /// The run has other processes now.
    pub fn renew(&mut self, run: &Run) {
        let present: BTreeSet<Tid> = children(run).map(|(_, child)| child.pid()).collect();
        self.told.retain(|pid| present.contains(pid));
        let cared_for = |task: Option<usize>| {
            task.is_some_and(|task| run.supervisor.as_ref().is_some_and(|supervisor| supervisor.has(task)))
        };
        let untold = children(run).filter(|(task, child)| !cared_for(*task) && !self.told.contains(&child.pid()));
        // That there are no descriptors left keeps nobody from running: then an end is not told.
        self.processes = untold.filter_map(|(_, child)| Some((child.pid(), child.pidfd().ok()?))).collect();
    }

    /// What becomes readable when one ends.
    pub fn descriptors(&self) -> Vec<RawFd> {
        self.processes.iter().map(|(_, descriptor)| descriptor.as_raw_fd()).collect()
    }

    /// Tasks, by their places in the system, whose end was told, or is told by whoever begins them anew.
    pub fn told(&self, run: &Run) -> Vec<usize> {
        let begun_anew = |task| run.supervisor.as_ref().is_some_and(|supervisor| supervisor.has(task));
        let is_told = |task: &usize| {
            self.told.contains(&run.tasks[*task].pid()) || begun_anew(*task) && run.tasks[*task].exited().is_some()
        };
        (0..run.tasks.len()).filter(is_told).collect()
    }

    /// Tasks, by their places in the system, that are about to leave: it is no news that they end.
    pub fn leave_out(&mut self, run: &Run, tasks: &[usize]) {
        let leaving: Vec<Tid> = tasks.iter().map(|task| run.tasks[*task].pid()).collect();
        self.processes.retain(|(pid, _)| !leaving.contains(pid));
    }

    /// What became of tasks that are begun anew, as far as it was told.
    pub fn remarks(&self) -> &[String] {
        &self.remarks
    }

    /// What there is to tell since the last time.
    pub fn look(&mut self, run: &Run) -> News {
        let mut ended = Vec::new();
        // From the last one, so that the places of the others stay.
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

/// What there is to tell.
pub struct News {
    /// Processes that ended.
    pub ended: Vec<String>,
    /// Tasks that were begun anew, or are not any more.
    pub begun_anew: Vec<String>,
}

/// With the places of tasks in the system.
fn children<'a>(run: &'a Run) -> impl Iterator<Item = (Option<usize>, &'a Child)> {
    let tasks = run.tasks.iter().enumerate().map(|(index, child)| (Some(index), child));
    tasks.chain(run.processes.iter().map(|child| (None, child)))
}
