//! The control group of a program in a reservation. Its name does not begin like those of a run. A run removes the
//! groups that a killed run left, with all their processes.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use macrotick_model::Duration;

use super::{threads_below, Existing, CPUS, GRACE, PROCESSES, ROOT};
use crate::budgets::{declare, note_bound, BUDGET, FIFO, PRIORITY};
use crate::error::HostFailure;
use crate::sys::{self, Tid};
use crate::undo::Undo;

/// The prefix of these groups; a name follows.
const PREFIX: &str = "macrotick.reserve-";
/// The file that says whether a group has processes.
const EVENTS: &str = "cgroup.events";
/// The longest wait for a change of [`EVENTS`], in milliseconds.
const LOOK: i32 = 1000;
/// The kernel frees the budget of a removed group a little later, after the last reference to the group is gone.
const TRIES: u32 = 20;

/// A control group with a budget for one program. Dropping it removes the group, unless it has processes, and disables
/// the controllers that it needed.
pub struct ProgramGroup {
    group: Existing,
    undo: Undo,
}

impl ProgramGroup {
    /// Returns the directory of the group of a name.
    pub fn path_of(name: &str) -> PathBuf {
        Path::new(ROOT).join(format!("{PREFIX}{name}"))
    }

    /// Whether the group of a program that has ended still has its budget. It is about to be removed.
    pub fn one_ends() -> bool {
        left(Path::new(ROOT)).next().is_some()
    }

    /// Makes a group, and removes those without processes that a killed program left. The caller holds the
    /// [`turn`](super::turn) until a process has entered the group, or the group is dropped.
    pub fn make(name: &str) -> Result<ProgramGroup, HostFailure> {
        remove_left(Path::new(ROOT));
        let group = Existing::new(&format!("{PREFIX}{name}"));
        let mut undo = Undo::default();
        group.enable("cpu", &mut undo)?;
        fs::create_dir(group.path()).map_err(HostFailure::file("make", group.path()))?;
        let path = group.path().to_owned();
        undo.later(move || remove_idle(&path));
        Ok(ProgramGroup { group, undo })
    }

    /// Returns its directory.
    pub fn path(&self) -> &Path {
        self.group.path()
    }

    /// Binds it to CPUs.
    pub fn bind(&mut self, cpus: &[u32]) -> Result<(), HostFailure> {
        self.group.enable("cpuset", &mut self.undo)?;
        // The controller must not be disabled before the group is gone.
        let path = self.path().to_owned();
        self.undo.later(move || remove_idle(&path));
        self.write(CPUS, &sys::cpu_list(cpus))?;
        note_bound(self.path())
    }

    /// Gives it the budget of a declaration on CPUs, in the kernel's format, and stores the declaration for later
    /// admissions. SCHED_FIFO threads are served, too.
    pub fn give(&self, budget: &str, priority: u32, declared: &macrotick_model::Group) -> Result<(), HostFailure> {
        self.write(PRIORITY, &priority.to_string())?;
        self.write(FIFO, "1")?;
        let mut written = self.write(BUDGET, budget);
        for _ in 0..TRIES {
            if !written.as_ref().is_err_and(|failure| failure.errno() == Some(libc::EBUSY)) {
                break;
            }
            sys::sleep(Duration::from_millis(10));
            written = self.write(BUDGET, budget);
        }
        written?;
        declare(self.path(), declared)
    }

    /// Moves a process into it; 0 is this one.
    pub fn enter(&self, process: Tid) -> Result<(), HostFailure> {
        self.write(PROCESSES, &process.to_string())
    }

    /// Returns a function that moves its caller into the group. A new process can call it before it executes a program.
    pub fn entry(&self) -> impl Fn() -> io::Result<()> + Send + Sync + 'static {
        let path = self.path().join(PROCESSES);
        move || fs::write(&path, "0\n")
    }

    /// Moves all its processes to a group, given by its path below the root. If that group is gone, or takes no process,
    /// it is the nearest group above that takes them. Returns the processes.
    pub fn leave(&self, below_root: &str) -> Vec<Tid> {
        leave(Path::new(ROOT), self.path(), below_root)
    }

    /// Waits until it has no process.
    pub fn wait(&self) {
        wait_until_empty(self.path());
    }

    /// Whether it has no process, or is gone.
    pub fn is_empty(&self) -> bool {
        let populated = File::open(self.path().join(EVENTS)).and_then(|mut events| is_populated(&mut events));
        !populated.unwrap_or(false)
    }

    /// Returns the threads in it and in the groups below.
    pub fn threads(&self) -> Vec<Tid> {
        threads_below(self.path())
    }

    fn write(&self, file: &str, text: &str) -> Result<(), HostFailure> {
        let path = self.path().join(file);
        fs::write(&path, format!("{text}\n")).map_err(HostFailure::file("write", path))
    }
}

/// Moves all processes of a group to another one of the hierarchy, or to the nearest one above it.
fn leave(root: &Path, from: &Path, below_root: &str) -> Vec<Tid> {
    let home = root.join(below_root);
    // The root takes every process.
    let homes: Vec<_> =
        home.ancestors().take_while(|path| path.starts_with(root)).map(|path| path.join(PROCESSES)).collect();
    let mut moved = Vec::new();
    // A process that forks meanwhile leaves a child behind, which the next look finds.
    for _ in 0..TRIES {
        let text = fs::read_to_string(from.join(PROCESSES)).unwrap_or_default();
        if text.is_empty() {
            break;
        }
        // A 0 is a process of another PID namespace. Written, it would mean this process.
        for process in text.lines().filter_map(|line| line.parse::<Tid>().ok()).filter(|process| *process > 0) {
            moved.push(process);
            for home in &homes {
                match fs::write(home, process.to_string()) {
                    Ok(()) => break,
                    // It has ended.
                    Err(error) if error.raw_os_error() == Some(libc::ESRCH) => break,
                    Err(_) => {}
                }
            }
        }
    }
    moved.sort_unstable();
    moved.dedup();
    moved
}

/// Waits until a control group has no process, or is gone.
fn wait_until_empty(path: &Path) {
    let Ok(mut events) = File::open(path.join(EVENTS)) else { return };
    while is_populated(&mut events).unwrap_or(false) {
        let mut poll = libc::pollfd { fd: events.as_raw_fd(), events: libc::POLLPRI, revents: 0 };
        // SAFETY: one structure, alive for the call.
        unsafe { libc::poll(&mut poll, 1, LOOK) };
    }
}

fn is_populated(events: &mut File) -> io::Result<bool> {
    let mut text = String::new();
    events.seek(SeekFrom::Start(0))?;
    events.read_to_string(&mut text)?;
    Ok(text.lines().any(|line| line == "populated 1"))
}

/// Removes a group and the groups below. Groups with processes stay: this ends no process.
fn remove_idle(path: &Path) {
    let below = fs::read_dir(path).into_iter().flatten().flatten();
    below
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .for_each(|entry| remove_idle(&entry.path()));
    // A process leaves its group only after its last thread has exited.
    let give_up = sys::now() + GRACE;
    while fs::remove_dir(path).is_err_and(|error| error.raw_os_error() == Some(libc::EBUSY)) && sys::now() < give_up {
        sys::sleep(Duration::from_millis(1));
    }
}

/// Removes the groups without processes. Their keepers were killed, or are about to do the same.
fn remove_left(root: &Path) {
    left(root).for_each(|path| remove_idle(&path));
}

/// Returns the groups of this kind without processes.
fn left(root: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(root).into_iter().flatten().flatten();
    let ours = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX));
    ours.map(|entry| entry.path()).filter(|path| {
        let populated = File::open(path.join(EVENTS)).and_then(|mut events| is_populated(&mut events));
        populated.is_ok_and(|populated| !populated)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_groups_without_processes_are_removed() {
        let root = std::env::temp_dir().join(format!("macrotick-program-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        let group = |name: &str, populated: &str| {
            fs::create_dir_all(root.join(name)).unwrap();
            fs::write(root.join(name).join(EVENTS), format!("populated {populated}\nfrozen 0\n")).unwrap();
        };
        group("macrotick.reserve-7", "1");
        group("other-8", "0");
        let mut events = |name: &str| is_populated(&mut File::open(root.join(name).join(EVENTS)).unwrap()).unwrap();
        assert_eq!(["macrotick.reserve-7", "other-8"].map(&mut events), [true, false]);
        assert_eq!(left(&root).count(), 0);
        group("macrotick.reserve-9", "0");
        assert_eq!(left(&root).collect::<Vec<_>>(), [root.join("macrotick.reserve-9")]);
        fs::remove_dir_all(root.join("macrotick.reserve-9")).unwrap();
        remove_left(&root);
        assert!(root.join("macrotick.reserve-7").exists() && root.join("other-8").exists());
        wait_until_empty(&root.join("other-8"));
        wait_until_empty(&root.join("none"));
        fs::create_dir_all(root.join("idle/below")).unwrap();
        remove_idle(&root.join("idle"));
        assert!(!root.join("idle").exists());
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn processes_return_to_the_nearest_group_that_is_still_there() {
        let root = std::env::temp_dir().join(format!("macrotick-return-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        ["own", "a/b"].iter().for_each(|name| fs::create_dir_all(root.join(name)).unwrap());
        fs::write(root.join("own").join(PROCESSES), "8\n0\n7\n").unwrap();
        let last_of = |group: &str| fs::read_to_string(root.join(group).join(PROCESSES)).unwrap_or_default();
        assert_eq!(leave(&root, &root.join("own"), "a/b"), [7, 8]);
        assert_eq!((last_of("a/b").as_str(), last_of("a").as_str()), ("7", ""));
        fs::remove_dir_all(root.join("a/b")).unwrap();
        leave(&root, &root.join("own"), "a/b");
        assert_eq!((last_of("a").as_str(), last_of("").as_str()), ("7", ""));
        fs::remove_dir_all(root.join("a")).unwrap();
        leave(&root, &root.join("own"), "a/b");
        assert_eq!(last_of(""), "7");
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn a_run_does_not_take_it_for_its_own() {
        assert!(!PREFIX.starts_with(super::super::PREFIX));
    }
}
