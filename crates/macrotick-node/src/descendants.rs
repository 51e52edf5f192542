//! What tasks and loads start beyond their process groups: it ends with the run, and nothing of it stays real-time.
//!
//! A process whose parent has ended becomes a child of the nearest subreaper above it (prctl(2), `PR_SET_CHILD_SUBREAPER`),
//! which is the runner, whatever session or process group it went to.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::str::FromStr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use macrotick_model::Duration;

use crate::sys::{self, SchedAttr, Standing, Tid};

/// Those that [`Child`](crate::child::Child) reaps itself.
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
    /// Children from before, which are left alone.
    strangers: BTreeSet<Tid>,
}

impl Descendants {
    /// Becomes a subreaper.
    pub fn adopt() -> Descendants {
        let strangers = Tree::read().children(own_pid()).collect();
        let was_subreaper = sys::is_subreaper();
        sys::set_subreaper(true);
        Descendants { was_subreaper, strangers }
    }

    /// Puts whatever is real-time, but for SCHED_TT and SCHED_DS, under SCHED_OTHER: on the same CPU nothing of lower
    /// priority could end otherwise, killed or not. So does what is under SCHED_IDLE, which others keep from ending.
    pub fn calm(&self) {
        // The flag of those who have it may not be taken away by an ordinary user.
        let calm = SchedAttr::new(Standing::Other(0), true);
        for _ in 0..MOST_LOOKS {
            let threads = self.all(&Tree::read()).into_iter().flat_map(threads);
            let busy = threads.filter(|tid| sys::sched_attr(*tid).is_ok_and(|attr| attr.is_no_ordinary_thread()));
            let calmed = busy.filter(|tid| sys::set_sched_attr(*tid, &calm).is_ok()).count();
            if calmed == 0 {
                break;
            }
        }
    }

    /// Ends and reaps whatever is left, and tells of each that had to be killed. Own processes are reaped already.
    pub fn end(&self) -> Vec<String> {
        let (begin, mut killed): (_, BTreeMap<Tid, String>) = (sys::now(), BTreeMap::new());
        loop {
            self.reap();
            let tree = Tree::read();
            let left = self.all(&tree);
            let waited = sys::now() - begin;
            if left.is_empty() || waited > GRACE + DEATH {
                return killed.iter().map(|(pid, name)| describe(*pid, name, left.contains(pid))).collect();
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
            if !spawned.contains(&pid) && !self.strangers.contains(&pid) {
                sys::reap(pid);
            }
        }
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

impl Drop for Descendants {
    fn drop(&mut self) {
        sys::set_subreaper(self.was_subreaper);
    }
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

/// All processes: parent, and name.
struct Tree {
    processes: BTreeMap<Tid, (Tid, String)>,
}

impl Tree {
    fn read() -> Tree {
        let status = |pid: Tid| parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?);
        Tree { processes: numbers_in("/proc").filter_map(|pid| Some((pid, status(pid)?))).collect() }
    }

    fn children(&self, of: Tid) -> impl Iterator<Item = Tid> + '_ {
        self.processes.iter().filter(move |(_, (parent, _))| *parent == of).map(|(pid, _)| *pid)
    }

    fn name(&self, pid: Tid) -> String {
        self.processes.get(&pid).map_or_else(String::new, |(_, name)| name.clone())
    }
}

/// Parent and name in `/proc/PID/stat`; the name may have any character in it.
fn parse(stat: &str) -> Option<(Tid, String)> {
    let (begin, rest) = stat.rsplit_once(") ")?;
    let name = begin.split_once('(')?.1;
    Some((rest.split(' ').nth(1)?.parse().ok()?, name.into()))
}

fn threads(pid: Tid) -> impl Iterator<Item = Tid> {
    numbers_in(&format!("/proc/{pid}/task"))
}

fn numbers_in(folder: &str) -> impl Iterator<Item = Tid> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| Tid::from_str(entry.file_name().to_str()?).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_look_like_the_rest() {
        assert_eq!(parse("12 (a) b (c) S 7 12 12 0"), Some((7, "a) b (c".into())));
        assert_eq!(parse("12 (a"), None);
    }

    #[test]
    fn the_tree_has_this_process() {
        let tree = Tree::read();
        assert!(tree.processes.contains_key(&own_pid()));
        assert!(threads(own_pid()).any(|tid| tid == own_pid()));
    }
}
