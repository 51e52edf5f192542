//! What tasks and loads start beyond their process groups: it ends with the run, and nothing of it stays real-time.
//!
//! A process whose parent has ended becomes a child of the nearest subreaper above it (prctl(2), `PR_SET_CHILD_SUBREAPER`),
//! which is the runner, whatever session or process group it went to.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use macrotick_host::proc;
use macrotick_host::sys::{self, SchedAttr, Standing, Tid};
use macrotick_model::Duration;

/// Those that [`Child`](crate::process::child::Child) reaps itself.
static SPAWNED: Mutex<BTreeSet<Tid>> = Mutex::new(BTreeSet::new());

/// How long leftovers may take to end by themselves: an engine's monitor puts its container away.
const GRACE: Duration = Duration::from_millis(100);
/// How long killed ones may take.
const DEATH: Duration = Duration::from_millis(300);
const LOOK: Duration = Duration::from_millis(5);
/// Who forks while he is looked for is found the next time.
const MOST_LOOKS: u32 = 20;

/// Tells of a process that is reaped by whoever started it.
pub fn enter(pid: Tid) {
    spawned().insert(pid);
}

/// The same process is reaped now.
pub fn leave(pid: Tid) {
    spawned().remove(&pid);
}

fn spawned() -> MutexGuard<'static, BTreeSet<Tid>> {
    SPAWNED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// While it lives, this process is a subreaper.
pub struct Descendants {
    was_subreaper: bool,
    below: Below,
}

/// What is below this process, but for children that it had before.
pub struct Below {
    strangers: BTreeSet<Tid>,
}

impl Below {
    /// What comes to be there from now on.
    pub fn from_now_on() -> Below {
        Below { strangers: Tree::read().children(own_pid()).collect() }
    }

    /// Puts threads under SCHED_OTHER that have such a standing, whatever forks meanwhile. Returns the processes that they are of.
    pub fn calm(&self, is_meant: impl Fn(&SchedAttr) -> bool) -> BTreeMap<Tid, String> {
        // The flag of those who have it may not be taken away by an ordinary user.
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
    /// Becomes a subreaper.
    pub fn adopt() -> Descendants {
        let below = Below::from_now_on();
        let was_subreaper = sys::is_subreaper();
        sys::set_subreaper(true);
        Descendants { was_subreaper, below }
    }

    /// Puts whatever is real-time, but for SCHED_TT and SCHED_DS, under SCHED_OTHER: on the same CPU nothing of lower
    /// priority could end otherwise, killed or not. So does what is under SCHED_IDLE, which others keep from ending.
    pub fn calm(&self) {
        self.below.calm(SchedAttr::is_no_ordinary_thread);
    }

    /// Ends and reaps whatever is left, and tells of each that had to be killed. Own processes are reaped already.
    pub fn end(&self) -> Vec<String> {
        let (begin, mut killed): (_, BTreeMap<Tid, String>) = (sys::now(), BTreeMap::new());
        loop {
            self.reap();
            let tree = Tree::read();
            let left = self.below.all(&tree);
            let waited = sys::now() - begin;
            if left.is_empty() || waited > GRACE + DEATH {
                let each = killed.iter().map(|(pid, name)| describe(*pid, name, left.contains(pid)));
                return shorten(each.collect(), "were killed at the end, too");
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

/// Remarks on processes: of many the first ones, and how many more there are of which the same is true.
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
        false => format!("process {pid} (`{name}`), which a task or a load had left behind, was killed at the end"),
        true => format!("process {pid} (`{name}`) of a task or a load does not end though it was killed"),
    }
}

fn own_pid() -> Tid {
    std::process::id() as Tid
}

/// All processes.
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

    /// Killed or not, it keeps nobody from ending, and nothing keeps it. Only root may put processes there and back.
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
