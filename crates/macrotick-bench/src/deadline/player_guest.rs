//! The guest's part: tasks that use a processor time, on one CPU or on several.
//!
//! With several virtual CPUs, the emulator executes one at a time. It changes to the next one at `pause`, or when a
//! timer is due, which is milliseconds later. Therefore the tasks' work contains many pauses. All working CPUs then
//! progress evenly, to some tens of microseconds. The time of an instruction still depends on the number of busy CPUs.
//! Therefore a job ends after its processor time, as in rt-app, and not after a number of instructions.

use std::fs;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};

use super::play::{Outcome, Player, Policy, Turn};
use crate::kit::board::{gather, release, Board};
use crate::kit::clock::{now_ns, sleep_until};
use crate::kit::group::{create, write, ROOT};
use crate::kit::process;
use crate::kit::process::lock_memory;

/// A hidden verb of this program: plays the turns of a file.
pub const PLAY: &str = "deadline-play";

const MS: u64 = 1_000_000;
/// A task that does not read the clock for this time was not running.
const GAP_NS: u64 = 100_000;
/// Room for a task's report: `WORDS` words of numbers, then its spans.
const WORDS: usize = 8;
const ALL_WORDS: usize = 1024;
const SPANS: usize = 512;
/// The time for which busy CPUs are compared.
const EVEN_NS: u64 = 200 * MS;

/// Runs the verb: its main function.
pub fn main() -> ExitCode {
    process::main(|words| match words {
        [path] => play(path),
        _ => Err("this verb belongs to `macrotick-bench deadline`".into()),
    })
}

/// Prints the counters of busy CPUs, and a line of outcomes for each turn.
fn play(path: &str) -> Result<(), String> {
    let turns: Vec<Turn> = process::read(path)?;
    process::print(&count_beside_each_other()?)?;
    // The real-time policies may use all the time.
    write("/proc/sys/kernel/sched_rt_runtime_us", "-1")?;
    let cpus = turns.iter().flat_map(|turn| &turn.tasks).filter_map(|task| task.cpu).max();
    (1..=cpus.unwrap_or(0)).try_for_each(make_partition)?;
    turns.iter().try_for_each(|turn| process::print(&take_turn(turn)?))
}

/// Makes a partition of one CPU, without load balancing. SCHED_DEADLINE accepts no other affinity than all CPUs of a
/// partition. CPU 0 stays in the root's partition, which must have one.
fn make_partition(cpu: u32) -> Result<(), String> {
    write(&format!("{ROOT}/cgroup.subtree_control"), "+cpuset")?;
    let path = partition(cpu);
    create(&path)?;
    write(&format!("{path}/cpuset.cpus"), &cpu.to_string())?;
    let kind = format!("{path}/cpuset.cpus.partition");
    write(&kind, "root")?;
    match fs::read_to_string(&kind).map_err(|error| format!("{kind}: {error}"))?.trim() {
        "root" => Ok(()),
        other => Err(format!("{kind} is `{other}`")),
    }
}

fn partition(cpu: u32) -> String {
    format!("{ROOT}/cpu{cpu}")
}

/// Works a little, then yields to the other virtual CPUs. The emulator executes `nop` much faster than other
/// instructions.
fn work() {
    // SAFETY: has no effect.
    unsafe { std::arch::asm!(".rept 1920", "nop", ".endr", "pause", options(nomem, nostack, preserves_flags)) };
}

/// Returns the counters of all CPUs, which count at the same time.
fn count_beside_each_other() -> Result<Vec<u64>, String> {
    let cpus = std::thread::available_parallelism().map_err(|error| format!("CPUs: {error}"))?.get();
    // SAFETY: atomic words.
    let board: &'static Board = unsafe { process::share()? };
    let count = |cpu: usize| {
        pin(cpu)?;
        lock_memory()?;
        let zero = board.join();
        sleep_until(zero);
        while now_ns() < zero + EVEN_NS {
            work();
            board.samples[cpu].fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    };
    let children: Vec<i32> = (0..cpus).map(|cpu| process::fork(|| count(cpu))).collect::<Result<_, String>>()?;
    release(board, gather(board, cpus as u32));
    children.into_iter().try_for_each(process::wait)?;
    Ok(board.samples[..cpus].iter().map(|count| count.load(Ordering::SeqCst)).collect())
}

fn pin(cpu: usize) -> Result<(), String> {
    // SAFETY: a set of CPUs is plain data; reads one.
    let result = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set)
    };
    match result {
        0 => Ok(()),
        _ => Err(process::last_error("sched_setaffinity")),
    }
}

/// The memory in which a task reports its outcome.
#[derive(Clone, Copy)]
struct Report<'a>(&'a [AtomicU64]);

const DONE: usize = 0;
const LATE: usize = 1;
const TARDIEST: usize = 2;
const TARDINESS: usize = 3;
const RESPONSE: usize = 4;
const TOOK: usize = 5;
const RUNS: usize = 6;

impl Report<'_> {
    fn add(&self, word: usize, by: u64) {
        self.0[word].fetch_add(by, Ordering::Relaxed);
    }

    fn most(&self, word: usize, value: u64) {
        self.0[word].fetch_max(value, Ordering::Relaxed);
    }

    fn get(&self, word: usize) -> u64 {
        self.0[word].load(Ordering::SeqCst)
    }

    fn job(&self, response: u64, period: u64) {
        let tardiness = response.saturating_sub(period);
        self.add(DONE, 1);
        self.add(LATE, u64::from(tardiness > 0));
        self.add(TARDINESS, tardiness);
        self.most(TARDIEST, tardiness);
        self.most(RESPONSE, response);
    }

    /// Records that the task ran from one instant to another, in nanoseconds from time zero.
    fn ran(&self, from: u64, until: u64) {
        let runs = self.get(RUNS) as usize;
        if runs < SPANS - WORDS {
            self.0[WORDS + 2 * runs].store(from / 1000, Ordering::Relaxed);
            self.0[WORDS + 2 * runs + 1].store(until / 1000, Ordering::Relaxed);
            self.add(RUNS, 1);
        }
    }

    fn outcome(&self, task: &Player, millis: u64) -> Outcome {
        // A job that is due at the end does not count. A greedy task has no jobs.
        let due = task.work_us.map_or(0, |_| (millis * 1000 - 1) / u64::from(task.period_us));
        let undone = due.saturating_sub(self.get(DONE));
        let span = |run| (self.get(WORDS + 2 * run), self.get(WORDS + 2 * run + 1));
        Outcome {
            due,
            misses: self.get(LATE) + undone,
            tardiest_ns: self.get(TARDIEST),
            tardiness_ns: self.get(TARDINESS),
            response_ns: self.get(RESPONSE),
            took_ns: self.get(TOOK),
            spans: (0..self.get(RUNS) as usize).map(span).collect(),
        }
    }
}

fn take_turn(turn: &Turn) -> Result<Vec<Outcome>, String> {
    let words = if turn.spans { ALL_WORDS } else { WORDS };
    // SAFETY: atomic words.
    let board: &'static Board = unsafe { process::share()? };
    let reports: Vec<Report> = board.samples.chunks(words).map(Report).take(turn.tasks.len()).collect();
    if reports.len() < turn.tasks.len() {
        return Err(format!("there is no room for {} tasks", turn.tasks.len()));
    }
    let mut children = Vec::new();
    for (task, &report) in turn.tasks.iter().zip(&reports) {
        children.push(process::fork(|| be(task, turn, board, report))?);
    }
    let zero = gather(board, children.len() as u32);
    release(board, zero);
    children.into_iter().try_for_each(process::wait)?;
    Ok(turn.tasks.iter().zip(reports).map(|(task, report)| report.outcome(task, turn.millis)).collect())
}

/// Becomes a task, and runs to the end of the turn.
fn be(task: &Player, turn: &Turn, board: &Board, report: Report) -> Result<(), String> {
    lock_memory()?;
    if let Some(cpu) = task.cpu.filter(|&cpu| cpu > 0) {
        write(&format!("{}/cgroup.procs", partition(cpu)), "0")?;
    }
    let period = u64::from(task.period_us) * 1000;
    match task.policy {
        Policy::Deadline(runtime_us) => process::set_deadline(u64::from(runtime_us) * 1000, period)?,
        Policy::Fifo(priority) => process::set_policy(libc::SCHED_FIFO as u32, priority)?,
        Policy::Other => {}
    }
    let zero = board.join();
    let life = Life { zero, end: zero + turn.millis * MS, spans: turn.spans, report };
    let began = process::processor_ns();
    match task.work_us {
        Some(work_us) => life.repeat(period, u64::from(work_us) * 1000),
        None => life.devour(),
    }
    report.add(TOOK, process::processor_ns() - began);
    Ok(())
}

/// The life of a task, from time zero to the end.
struct Life<'a> {
    zero: u64,
    end: u64,
    spans: bool,
    report: Report<'a>,
}

impl Life<'_> {
    /// Runs a job in each period; late jobs follow each other. The processor time to sleep and to wake up is part of
    /// the jobs. When a job takes too long, the next one is shorter. The job at the end does not count.
    fn repeat(&self, period: u64, work_ns: u64) {
        let mut until = process::processor_ns();
        for release in (self.zero..).step_by(period as usize) {
            sleep_until(release);
            until += work_ns;
            self.run(|_| process::processor_ns() < until);
            let end = now_ns();
            if end >= self.end {
                return;
            }
            self.report.job(end - release, period);
        }
    }

    /// Computes to the end and never sleeps.
    fn devour(&self) {
        sleep_until(self.zero);
        self.run(|now| now < self.end);
    }

    /// Works as long as a condition on the time holds.
    fn run(&self, goes_on: impl Fn(u64) -> bool) {
        let mut from = now_ns();
        let mut last = from;
        while goes_on(last) {
            work();
            let now = now_ns();
            if self.spans && now - last > GAP_NS {
                self.report.ran(from - self.zero, last - self.zero);
                from = now;
            }
            last = now;
        }
        if self.spans {
            self.report.ran(from - self.zero, last - self.zero);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_task_tells_is_read() {
        let words: Vec<AtomicU64> = (0..ALL_WORDS).map(|_| AtomicU64::new(0)).collect();
        let report = Report(&words);
        report.job(9 * MS, 10 * MS);
        report.job(12 * MS, 10 * MS);
        report.ran(MS, 2 * MS);
        let task = Player { policy: Policy::Other, cpu: None, period_us: 10_000, work_us: Some(1) };
        let outcome = report.outcome(&task, 41);
        assert_eq!((outcome.due, outcome.misses), (4, 3), "one late, two never done");
        assert_eq!((outcome.tardiest_ns, outcome.response_ns), (2 * MS, 12 * MS));
        assert_eq!(outcome.spans, [(1000, 2000)]);
        assert_eq!(report.outcome(&Player { work_us: None, ..task }, 41).due, 0);
    }

    #[test]
    fn spans_beyond_the_room_are_left_out() {
        let words: Vec<AtomicU64> = (0..ALL_WORDS).map(|_| AtomicU64::new(0)).collect();
        let report = Report(&words);
        (0..2000).for_each(|at| report.ran(at, at + 1));
        assert_eq!(report.get(RUNS) as usize, SPANS - WORDS);
    }
}
