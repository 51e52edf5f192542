//! A starved thread that holds a kernel lock while other threads of its group keep it from running.

use std::fs;
use std::os::fd::AsRawFd;

use super::spans::later;
use super::{ds, run_in, set_period, stat, PERIOD, SECOND};
use crate::board::Board;
use crate::check::Check;
use crate::group::Group;
use crate::process;
use crate::scenarios::unit_ns;
use crate::sys::{self, SchedAttr};
use crate::{ensure, ensure_eq};

/// The entries of a directory. To read them takes longer than a budget.
const ENTRIES: usize = 4000;
const BUDGET: u64 = 8;
/// A thread is relieved when it was ready for this time and a period without running (`ds_relief.c`).
const STARVED_NS: u64 = 100_000_000;

/// The words of the board.
const READS: usize = 0;
const DONE: usize = 1;

/// A directory. Dropping it removes it with its entries.
struct Directory(&'static str);

impl Directory {
    fn new(path: &'static str) -> Check<Directory> {
        let _ = fs::remove_dir_all(path);
        fs::create_dir(path).map_err(|error| format!("{path}: {error}"))?;
        let directory = Directory(path);
        (0..ENTRIES).try_for_each(|number| directory.add(&number.to_string()))?;
        Ok(directory)
    }

    fn add(&self, name: &str) -> Check {
        fs::write(format!("{}/{name}", self.0), "").map_err(|error| format!("{name}: {error}"))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(self.0);
    }
}

/// Reads all entries in one system call. The call holds the directory's lock for reading.
fn read_directory(directory: &Directory, start: u64, board: Board) -> i32 {
    let Ok(file) = fs::File::open(directory.0) else { return 1 };
    let mut entries = vec![1u8; 64 * ENTRIES];
    // The reader moves to the CPU with the budget, and may leave it again.
    let cpus: Vec<u32> = (0..sys::nr_cpus()).collect();
    if sys::set_affinity(0, &[0]).and_then(|()| sys::set_affinity(0, &cpus)).is_err() {
        return 2;
    }
    sys::sleep_until(start);
    board.set(READS, sys::now_ns());
    // SAFETY: writes at most the buffer's length.
    let length = unsafe { libc::syscall(libc::SYS_getdents64, file.as_raw_fd(), entries.as_mut_ptr(), entries.len()) };
    board.set(DONE, sys::now_ns());
    i32::from(length < 24 * ENTRIES as i64)
}

/// Computes endlessly. With several CPUs it also takes a thread off the run queue and puts it back from time to time.
fn keep_out(pid: i32) -> ! {
    let cpus: Vec<u32> = (0..sys::nr_cpus()).collect();
    loop {
        for cpus in [&cpus[..1], &cpus] {
            sys::spin(STARVED_NS / 10);
            let _ = sys::set_affinity(pid, cpus);
        }
    }
}

/// Checks a reader in a group with a budget on one CPU. Another process that writes into the directory waits no longer
/// than the relief takes. In user mode the reader is in its group again.
pub(super) fn kept_in_the_kernel() -> Check {
    let directory = Directory::new("/tmp/read")?;
    set_period(PERIOD * unit_ns())?;
    let group = Group::new("a")?;
    group.set("cpu.ds.budget", &format!("0={}", BUDGET * unit_ns() / 1000))?;
    let board = Board::new(2);
    let start = later();
    let reader = run_in(&group, 1, || read_directory(&directory, start, board))?;
    let hog = run_in(&group, 5, || {
        let _ = sys::set_affinity(0, &[0]);
        sys::sleep_until(start + 3 * unit_ns());
        keep_out(reader.pid)
    })?;
    sys::sleep_until(start + PERIOD * unit_ns());
    ensure!(board.get(READS) != 0 && board.get(DONE) == 0, "it is not inside the kernel: {:?}", board.words());
    let (used, refills) = (stat(&group, "usage_usec")?, stat(&group, "refills")?);
    let begin = sys::now_ns();
    directory.add("new")?;
    let took = sys::now_ns() - begin;
    // The reader is relieved soon after that. On the debug kernel the rest of the read takes four times as long.
    ensure!((STARVED_NS / 2..STARVED_NS + SECOND).contains(&took), "{took} ns to write into a directory that is read");
    // The reader is at its return to user mode, and waits for its turn.
    sys::sleep(2 * STARVED_NS);
    ensure_eq!(board.get(DONE), 0, "it has run in user mode");
    ensure_eq!(stat(&group, "reliefs")?, 1, "{}", group.get("cpu.ds.stat")?);
    ensure_eq!(process::cpu(reader.pid), Some(0), "where it is");
    let (used, refills) = (stat(&group, "usage_usec")? - used, stat(&group, "refills")? - refills);
    let share = used as f64 / (refills * BUDGET * unit_ns() / 1000) as f64;
    ensure!((0.9..1.15).contains(&share), "{share} of the budget in {refills} periods");
    hog.kill(SECOND)?;
    reader.succeed(SECOND)?;
    group.remove()
}

/// Checks a thread that sleeps under another policy. When it returns, its wait starts again: a short delay does not
/// relieve it.
pub(super) fn slept_elsewhere() -> Check {
    set_period(PERIOD * unit_ns())?;
    let group = Group::new("a")?;
    group.set("cpu.ds.budget", &(BUDGET * unit_ns() / 1000).to_string())?;
    let back = sys::now_ns() + 2 * SECOND;
    let sleeper = run_in(&group, 1, || {
        if sys::set_sched(0, SchedAttr::other()).is_err() {
            return 1;
        }
        sys::sleep_until(back);
        if sys::set_sched(0, ds(1)).is_err() {
            return 2;
        }
        sys::spin_until(back + 2 * STARVED_NS);
        0
    })?;
    // The sleeper never runs at the instants when the class looks for starved threads.
    let hog = run_in(&group, 5, || {
        sys::sleep_until(back - 2 * PERIOD * unit_ns());
        sys::spin_until(back + STARVED_NS / 2);
        i32::from(sys::now_ns() > back + STARVED_NS)
    })?;
    hog.succeed(3 * SECOND)?;
    sleeper.succeed(2 * SECOND)?;
    ensure_eq!(stat(&group, "reliefs")?, 0, "{}", group.get("cpu.ds.stat")?);
    group.remove()
}

/// Checks that killed threads end although they get no time. One is behind a more important thread of its group. The
/// other one has the least budget: on slow kernels, a switch to the thread takes longer than that.
pub(super) fn killed() -> Check {
    let crowded = Group::new("a")?;
    crowded.set("cpu.ds.budget", "500")?;
    let victim = run_in(&crowded, 1, || sys::hog())?;
    let hog = run_in(&crowded, 5, || sys::hog())?;
    let tiny = Group::new("b")?;
    tiny.set("cpu.ds.budget", "10")?;
    let alone = run_in(&tiny, 1, || sys::hog())?;
    // Both are relieved, and wait at their return to user mode.
    sys::sleep(4 * STARVED_NS);
    ensure_eq!(stat(&crowded, "reliefs")?, 1, "{}", crowded.get("cpu.ds.stat")?);
    for (child, what) in [(&victim, "behind another thread"), (&alone, "with the least budget")] {
        child.kill(5 * STARVED_NS).map_err(|reason| format!("{what}: {reason}"))?;
    }
    // The relief of the killed thread is its second one.
    ensure_eq!(stat(&crowded, "reliefs")?, 2, "{}", crowded.get("cpu.ds.stat")?);
    hog.kill(SECOND)?;
    tiny.remove()?;
    crowded.remove()
}
