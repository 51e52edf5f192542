//! The processes that tasks and loads start outside their process groups. They end with the run, and none of them stays
//! real-time.
//!
//! A process becomes a child of the nearest subreaper above it when its parent ends (prctl(2),
//! `PR_SET_CHILD_SUBREAPER`). That is the runner, also for a process in another session or process group.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use macrotick_host::proc;
use macrotick_host::sys::{self, SchedAttr, Standing, Tid};
use macrotick_model::Duration;

/// The processes that [`Child`](crate::process::child::Child) reaps itself.
static SPAWNED: Mutex<BTreeSet<Tid>> = Mutex::new(BTreeSet::new());

/// The time that leftover processes have to end by themselves: an engine's monitor cleans up its container.
const GRACE: Duration = Duration::from_millis(100);
/// The time limit for the death of killed processes.
const DEATH: Duration = Duration::from_millis(300);
const LOOK: Duration = Duration::from_millis(5);
/// The maximum number of passes. A process that forks during a pass is found in the next one.
const MOST_LOOKS: u32 = 20;

/// Registers a process that its starter reaps.
pub fn enter(pid: Tid) {
    spawned().insert(pid);
}

/// Removes the process from the register after it was reaped.
pub fn leave(pid: Tid) {
    spawned().remove(&pid);
}

fn spawned() -> MutexGuard<'static, BTreeSet<Tid>> {
    SPAWNED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A guard: while it exists, this process is a subreaper.
pub struct Descendants {
    was_subreaper: bool,
    below: Below,
}

/// The processes below this process, except the children that it had before.
pub struct Below {
    strangers: BTreeSet<Tid>,
}

impl Below {
    /// Returns a guard for the processes that start below this process after the call.
    pub fn from_now_on() -> Below {
        Below { strangers: Tree::read().children(own_pid()).collect() }
    }

    /// Puts threads with a matching standing under SCHED_OTHER, also those of processes that fork in the meantime.
    /// Returns the processes of these threads.
    pub fn calm(&self, is_meant: impl Fn(&SchedAttr) -> bool) -> BTreeMap<Tid, String> {
        // An unprivileged user may not clear the flag SCHED_FLAG_RESET_ON_FORK of a thread. Therefore the new
        // attributes set it.
        let calm = SchedAttr::new(Standing::Other(0), true);
        let mut calmed = BTreeMap::new();
        for _ in 0..MOST_LOOKS {
            let (tree, mut any) = (Tree::read(), false);
            for pid in self.all(&tree) {
                let meant = proc::threads(pid).filter(|tid| sys::sched_attr(*tid).is_ok_and(|attr| is_meant(&attr)));
                if meant.filter(|tid| sys::set_sched_attr(*tid, &calm).is_ok()).count() > 0 {
                    any = true;
                    calmed.entry(pid).or_insert_with(|| tree.name(pid));
                }
            }
            if !any {
                break;
            }
        }
        calmed
    }

    fn all(&self, tree: &Tree) -> BTreeSet<Tid> {
        let mut all = BTreeSet::new();
        let mut open: Vec<Tid> = tree.children(own_pid()).filter(|pid| !self.strangers.contains(pid)).collect();
        while let Some(pid) = open.pop() {
            if all.insert(pid) {
                open.extend(tree.children(pid));
            }
        }
        all
    }
}

impl Descendants {
    /// Makes this process a subreaper.
    pub fn adopt() -> Descendants {
        let below = Below::from_now_on();
        let was_subreaper = sys::is_subreaper();
        sys::set_subreaper(true);
        Descendants { was_subreaper, below }
    }

    /// Puts all real-time threads under SCHED_OTHER, except those of SCHED_TT and SCHED_DS. Otherwise no thread of
    /// lower priority on the same CPU could end, even if killed. Does the same with threads under SCHED_IDLE, because
    /// other threads keep them from ending.
    pub fn calm(&self) {
        self.below.calm(SchedAttr::is_no_ordinary_thread);
    }

    /// Ends and reaps all processes that are left. Returns a remark for each process that it had to kill. The runner's
    /// own processes are reaped already.
    pub fn end(&self) -> Vec<String> {
        let (begin, mut killed): (_, BTreeMap<Tid, String>) = (sys::now(), BTreeMap::new());
        loop {
            self.reap();
            let tree = Tree::read();
            let left = self.below.all(&tree);
            let waited = sys::now() - begin;
            if left.is_empty() || waited > GRACE + DEATH {
                let each = killed.iter().map(|(pid, name)| describe(*pid, name, left.contains(pid)));
                return shorten(each.collect(), "were also killed at the end");
            }
            if waited > GRACE {
                for pid in left {
                    sys::kill(pid);
                    killed.entry(pid).or_insert_with(|| tree.name(pid));
                }
            }
            sys::sleep(LOOK);
        }
    }

    /// Reaps orphans that have ended.
    pub fn reap(&self) {
        if !sys::has_ended_child() {
            return;
        }
        let spawned = spawned().clone();
        for pid in Tree::read().children(own_pid()) {
            if !spawned.contains(&pid) && !self.below.strangers.contains(&pid) {
                sys::reap(pid);
            }
        }
    }
}

impl Drop for Descendants {
    fn drop(&mut self) {
        sys::set_subreaper(self.was_subreaper);
    }
}

/// Shortens a list of remarks on processes: keeps the first ones, and adds one remark with the number of the others.
pub fn shorten(mut remarks: Vec<String>, what: &str) -> Vec<String> {
    const SHOWN: usize = 5;
    if remarks.len() > SHOWN + 1 {
        let more = remarks.split_off(SHOWN).len();
        remarks.push(format!("{more} more processes {what}"));
    }
    remarks
}

fn describe(pid: Tid, name: &str, stays: bool) -> String {
    match stays {
        false => format!("process {pid} (`{name}`), left behind by a task or a load, was killed at the end"),
        true => format!("process {pid} (`{name}`) of a task or a load did not end after SIGKILL"),
    }
}

fn own_pid() -> Tid {
    std::process::id() as Tid
}

/// All processes of the host.
struct Tree {
    names: BTreeMap<Tid, String>,
    children: BTreeMap<Tid, Vec<Tid>>,
}

impl Tree {
    fn read() -> Tree {
        let mut tree = Tree { names: BTreeMap::new(), children: BTreeMap::new() };
        for pid in proc::processes() {
            let Some((parent, name)) = proc::stat(pid).as_deref().and_then(parent_and_name) else { continue };
            tree.children.entry(parent).or_default().push(pid);
            tree.names.insert(pid, name);
        }
        tree
    }

    fn children(&self, of: Tid) -> impl Iterator<Item = Tid> + '_ {
        self.children.get(&of).into_iter().flatten().copied()
    }

    fn name(&self, pid: Tid) -> String {
        self.names.get(&pid).cloned().unwrap_or_default()
    }
}

fn parent_and_name(stat: &str) -> Option<(Tid, String)> {
    let (name, mut fields) = proc::split_stat(stat)?;
    Some((fields.nth(1)?.parse().ok()?, name.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_processes_the_first_are_told() {
        let remarks = |count: usize| shorten((0..count).map(|place| place.to_string()).collect(), "were killed");
        assert_eq!(remarks(6), ["0", "1", "2", "3", "4", "5"]);
        assert_eq!(remarks(300), ["0", "1", "2", "3", "4", "295 more processes were killed"]);
    }

    #[test]
    fn a_child_is_below_its_parent() {
        let mut child = std::process::Command::new("/bin/sleep").arg("1000").spawn().unwrap();
        let (pid, tree) = (child.id() as Tid, Tree::read());
        assert!(tree.children(own_pid()).any(|other| other == pid));
        assert!(!tree.name(pid).is_empty() && !tree.name(own_pid()).is_empty());
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// A test: such a thread can end, and keeps no other thread from ending. Only root may change the policies there
    /// and back.
    #[test]
    fn whatever_is_no_ordinary_thread_becomes_one() {
        let descendants = Descendants::adopt();
        for standing in [Standing::Fifo(90), Standing::Idle] {
            let mut child = std::process::Command::new("/bin/sleep").arg("1000").spawn().unwrap();
            let pid = child.id() as Tid;
            let is_ordinary = || !sys::sched_attr(pid).unwrap().is_no_ordinary_thread();
            let is_there = sys::set_standing(pid, standing).map(|()| is_ordinary());
            descendants.calm();
            let after = is_ordinary();
            child.kill().unwrap();
            child.wait().unwrap();
            match is_there {
                Ok(ordinary) => assert!(!ordinary && after, "{standing}"),
                Err(refused) => eprintln!("skipped, {standing}: {refused}"),
            }
        }
    }
}
