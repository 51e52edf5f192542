//! Facts about processes from `/proc`.

use std::fs::{self, File};
use std::io;
use std::os::fd::RawFd;
use std::path::PathBuf;
use std::str::Split;

use crate::sys::Tid;

/// Returns an id that is different for each boot.
pub(crate) fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// Returns all processes.
pub fn processes() -> impl Iterator<Item = Tid> {
    numbers_in("/proc")
}

/// Returns the threads of a process.
pub fn threads(process: Tid) -> impl Iterator<Item = Tid> {
    numbers_in(&format!("/proc/{process}/task"))
}

/// Reads `/proc/PID/stat`. `None`: there is no such process.
pub fn stat(process: Tid) -> Option<String> {
    fs::read_to_string(format!("/proc/{process}/stat")).ok()
}

/// Opens a file that a process has open, for reading. Needs the privilege to trace that process.
pub fn open_file(process: Tid, descriptor: RawFd) -> io::Result<File> {
    File::open(format!("/proc/{process}/fd/{descriptor}"))
}

/// Returns the memory of this process that is present, in KiB.
pub fn own_memory_kib() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix("kB")?.trim().parse().ok())
}

/// Returns the state letter of a thread in `/proc`. It is `R` for a thread that runs or is ready. `None`: there is no
/// such thread.
pub fn state(thread: Tid) -> Option<char> {
    split_stat(&stat(thread)?)?.1.next()?.chars().next()
}

/// Whether a thread has ended, or was never there.
pub fn has_ended(thread: Tid) -> bool {
    state(thread).is_none_or(|state| matches!(state, 'Z' | 'X'))
}

/// Returns when a thread began, in ticks of the user clock since the boot. It tells a thread from a later one with its
/// id. `None`: there is no such thread.
pub fn started(thread: Tid) -> Option<u64> {
    start_in(&stat(thread)?)
}

/// It is the 22nd field; the third one follows the name.
fn start_in(stat: &str) -> Option<u64> {
    split_stat(stat)?.1.nth(22 - 3)?.parse().ok()
}

/// Whether `/proc` shows the processes by the ids that system calls take. If not, it is that of another PID namespace.
pub fn is_of_this_namespace() -> bool {
    let own = fs::read_link("/proc/self").ok();
    own.is_some_and(|own| own.to_str() == Some(&std::process::id().to_string()))
}

/// Returns the name of a thread, which its program chooses. `None`: there is no such thread.
pub fn name(thread: Tid) -> Option<String> {
    Some(fs::read_to_string(format!("/proc/{thread}/comm")).ok()?.trim_end().to_owned())
}

/// Returns the process of a thread. `None`: there is no such thread.
pub fn process_of(thread: Tid) -> Option<Tid> {
    number_in(&status(thread)?, "Tgid:")
}

/// Returns the users of a thread: real, effective, saved, and of files. `None`: there is no such thread.
pub fn users_of(thread: Tid) -> Option<[u32; 4]> {
    users_in(&status(thread)?)
}

fn users_in(status: &str) -> Option<[u32; 4]> {
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    let users: Vec<u32> = line.split_whitespace().map(|word| word.parse().ok()).collect::<Option<_>>()?;
    users.try_into().ok()
}

/// Whether a process is in the PID namespace of this one. Needs the privilege to trace that process.
pub fn shares_namespace(process: Tid) -> bool {
    let of = |process: &str| fs::read_link(format!("/proc/{process}/ns/pid")).ok();
    process > 0 && of("self").is_some_and(|own| of(&process.to_string()) == Some(own))
}

/// Whether a thread belongs to a process, or to one of its descendants.
pub fn is_of(thread: Tid, process: Tid) -> bool {
    const DEEPEST: usize = 64;
    let mut at = thread;
    for _ in 0..DEEPEST {
        let Some(status) = status(at) else { return false };
        let (Some(own), Some(parent)) = (number_in(&status, "Tgid:"), number_in(&status, "PPid:")) else {
            return false;
        };
        if own == process {
            return true;
        }
        at = parent;
    }
    false
}

fn status(thread: Tid) -> Option<String> {
    fs::read_to_string(format!("/proc/{thread}/status")).ok()
}

fn number_in(status: &str, key: &str) -> Option<Tid> {
    status.lines().find_map(|line| line.strip_prefix(key))?.trim().parse().ok()
}

/// Returns the program that a process executes. `None`: the process is gone, or belongs to another user.
pub fn program(process: Tid) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{process}/exe")).ok()
}

/// Splits the text of `/proc/PID/stat`. Returns the name, which may contain any character, and the fields from the
/// third one on. The third one is the state.
pub fn split_stat(stat: &str) -> Option<(&str, Split<'_, char>)> {
    let (begin, fields) = stat.rsplit_once(") ")?;
    Some((begin.split_once('(')?.1, fields.split(' ')))
}

fn numbers_in(folder: &str) -> impl Iterator<Item = Tid> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_look_like_the_rest() {
        let (name, mut fields) = split_stat("12 (a) b (c) S 7 12 12 0").unwrap();
        assert_eq!((name, fields.next(), fields.next()), ("a) b (c", Some("S"), Some("7")));
        assert!(split_stat("12 (a").is_none());
    }

    #[test]
    fn a_thread_is_of_its_process_and_of_those_above() {
        let own = std::process::id() as Tid;
        let mut child = std::process::Command::new("sleep").arg("9").spawn().unwrap();
        assert!(is_of(own, own) && is_of(child.id() as Tid, own) && is_of(crate::sys::own_tid(), own));
        assert!(!is_of(own, child.id() as Tid) && !is_of(1, own) && !is_of(-1, own) && !is_of(0, own));
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn the_begin_is_the_field_of_this_number() {
        let fields: Vec<String> = (4..=30).map(|field| field.to_string()).collect();
        assert_eq!(start_in(&format!("7 (a b) R) S {}", fields.join(" "))), Some(22));
        assert_eq!(start_in("7"), None);
    }

    #[test]
    fn a_thread_begins_before_its_child_and_an_ended_one_is_known_by_its_begin() {
        let own = std::process::id() as Tid;
        let mut child = std::process::Command::new("sleep").arg("9").spawn().unwrap();
        let id = child.id() as Tid;
        let began = started(id).unwrap();
        assert!(started(own).unwrap() <= began && is_of_this_namespace());
        child.kill().unwrap();
        // It stays until it is reaped.
        while !has_ended(id) {
            std::thread::yield_now();
        }
        assert_eq!(started(id), Some(began));
        child.wait().unwrap();
        assert_eq!(started(id), None);
    }

    #[test]
    fn users_are_four_numbers() {
        assert_eq!(users_in("Name:\tx\nUid:\t1\t0\t2\t3\nGid:\t7\n"), Some([1, 0, 2, 3]));
        assert_eq!([users_in("Uid:\t1\t0\t2\n"), users_in("Gid:\t1\n")], [None; 2]);
        let own = std::process::id() as Tid;
        assert!(users_of(own).is_some() && shares_namespace(own) && !shares_namespace(0));
    }

    #[test]
    fn this_process_has_its_first_thread() {
        let own = std::process::id() as Tid;
        assert!(processes().any(|process| process == own) && threads(own).any(|thread| thread == own));
    }
}
