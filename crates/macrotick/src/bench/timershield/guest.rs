//! What runs in the guest: one task that is measured, beside others.

use std::fs;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::hostile;
use super::work::{work, Matrix};
use super::workload::{Task, Workload};
use super::Variant;
use crate::bench::process::{self, Gate};

/// A hidden verb of this program.
pub const RUN: &str = "timershield-run";

const SWITCH: &str = "/proc/sys/kernel/timershield";
const MS: u64 = 1_000_000;
/// From the last preparation to time zero, for everybody to go to sleep.
const DELAY_NS: u64 = 50 * MS;
/// The ticks come at whole milliseconds. Time zero lies between two of them: no job of the high task has one.
const OFF_THE_TICK_NS: u64 = 300_000;
/// Multiplications between two looks at the clock.
const BATCH: u32 = 8;
/// Room for the samples of the longest run.
const SAMPLES: usize = 8192;

/// What the processes share.
pub struct Board {
    /// Processes that have prepared.
    ready: AtomicU32,
    /// It is known when time zero is.
    begins: Gate,
    zero_ns: AtomicU64,
    /// What the measured task saw.
    pub samples: [AtomicU64; SAMPLES],
    /// How often the hostile process has read a timer, and how often those had expired.
    reads: AtomicU64,
    expirations: AtomicU64,
}

/// The verb's own main function.
pub fn main() -> ExitCode {
    process::main(|words| parse(words).and_then(|request| run(&request)))
}

/// What the host asks for.
#[derive(Debug, PartialEq, Eq)]
struct Request {
    variant: Variant,
    workload: Workload,
    size: u32,
    samples: u32,
}

fn parse(words: &[&str]) -> Result<Request, String> {
    let &[variant, workload, size, samples] = words else {
        return Err("a verb of `macrotick bench timershield`".into());
    };
    let variant = Variant::from_name(variant).ok_or_else(|| format!("no variant `{variant}`"))?;
    let workload = Workload::from_name(workload).ok_or_else(|| format!("no workload `{workload}`"))?;
    let samples = process::number(samples)?;
    if samples as usize > SAMPLES {
        return Err(format!("there is no room for {samples} samples"));
    }
    Ok(Request { variant, workload, size: process::number(size)?, samples })
}

/// The words of the command line that [`main`] takes.
pub fn words(variant: Variant, workload: Workload, size: u32, samples: u32) -> [String; 5] {
    [RUN.into(), variant.name().into(), workload.name().into(), size.to_string(), samples.to_string()]
}

/// Begins all processes, waits for the measured one, and prints its samples.
fn run(request: &Request) -> Result<(), String> {
    let &Request { variant, workload, size, samples } = request;
    switch(variant)?;
    // SAFETY: atomic words.
    let board: &'static Board = unsafe { process::share()? };
    let samples = &board.samples[..samples as usize];
    let mut children = begin_tasks(&workload.others(size), board)?;
    let timers = workload.timers(size);
    if !timers.is_empty() {
        children.push(process::fork(|| hostile::run(&timers, board))?);
    }
    let measured = workload.measured();
    let body = |zero| match workload {
        Workload::Throughput => count(&measured, zero, samples),
        _ => respond(&measured, zero, samples),
    };
    let child = process::fork(|| rehearsed(board, measured.priority, body))?;
    let zero = gather(board, children.len() as u32 + 1);
    release(board, zero);
    process::wait(child)?;
    children.into_iter().for_each(process::kill);
    println!("reads {}", board.reads.load(Ordering::SeqCst));
    println!("expirations {}", board.expirations.load(Ordering::SeqCst));
    samples.iter().for_each(|sample| println!("sample {}", sample.load(Ordering::SeqCst)));
    Ok(())
}

/// Processes that repeat these tasks, from time zero.
pub fn begin_tasks(tasks: &[Task], board: &'static Board) -> Result<Vec<i32>, String> {
    let begin = |task: &Task| process::fork(|| rehearsed(board, task.priority, |zero| repeat(task, zero)));
    tasks.iter().map(begin).collect()
}

/// Sets TimerShield's switch, where there is one.
pub fn switch(variant: Variant) -> Result<(), String> {
    let Some(on) = variant.switch() else { return Ok(()) };
    fs::write(SWITCH, if on { "1" } else { "0" }).map_err(|error| format!("{SWITCH}: {error}"))
}

/// Waits until so many processes have prepared; returns a time zero.
pub fn gather(board: &Board, processes: u32) -> u64 {
    while board.ready.load(Ordering::SeqCst) < processes {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    (now_ns() + DELAY_NS).next_multiple_of(MS) + OFF_THE_TICK_NS
}

/// Tells them time zero.
pub fn release(board: &Board, zero: u64) {
    board.zero_ns.store(zero, Ordering::SeqCst);
    board.begins.open();
}

impl Board {
    /// One more has prepared; waits until all have, and returns time zero.
    pub fn join(&self) -> u64 {
        self.ready.fetch_add(1, Ordering::SeqCst);
        self.begins.wait();
        self.zero_ns.load(Ordering::SeqCst)
    }

    /// The hostile process has read that a timer has expired, so many times.
    pub fn count_expirations(&self, expirations: u64) {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.expirations.fetch_add(expirations, Ordering::Relaxed);
    }
}

/// Becomes a task under SCHED_FIFO that has all its pages, and runs when time zero is known.
fn rehearsed(board: &Board, priority: u8, body: impl FnOnce(u64) -> Result<(), String>) -> Result<(), String> {
    lock_memory()?;
    let parameter = libc::sched_param { sched_priority: i32::from(priority) };
    // SAFETY: reads one structure.
    if unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameter) } != 0 {
        return Err(process::last_error("sched_setscheduler"));
    }
    body(board.join())
}

/// Has all pages that are mapped, shared memory included.
pub fn lock_memory() -> Result<(), String> {
    // SAFETY: passes a number.
    match unsafe { libc::mlockall(libc::MCL_CURRENT) } {
        0 => Ok(()),
        _ => Err(process::last_error("mlockall")),
    }
}

/// A job at every release, for ever.
fn repeat(task: &Task, zero: u64) -> Result<(), String> {
    let mut matrix = Matrix::default();
    for release in (zero + task.phase_ns..).step_by(task.period_ns as usize) {
        sleep_until(release);
        work(&mut matrix, task.work);
    }
    Ok(())
}

/// The same for as many jobs as there are samples: each is a response, from the release to the end of the job.
fn respond(task: &Task, zero: u64, samples: &[AtomicU64]) -> Result<(), String> {
    let mut matrix = Matrix::default();
    for (release, sample) in (zero + task.phase_ns..).step_by(task.period_ns as usize).zip(samples) {
        sleep_until(release);
        work(&mut matrix, task.work);
        sample.store(now_ns() - release, Ordering::Relaxed);
    }
    Ok(())
}

/// Works without a pause for the first half of every period: each sample is the number of multiplications in that.
fn count(task: &Task, zero: u64, samples: &[AtomicU64]) -> Result<(), String> {
    let mut matrix = Matrix::default();
    for (release, sample) in (zero + task.phase_ns..).step_by(task.period_ns as usize).zip(samples) {
        sleep_until(release);
        let mut done = 0;
        while now_ns() < release + task.period_ns / 2 {
            work(&mut matrix, BATCH);
            done += u64::from(BATCH);
        }
        sample.store(done, Ordering::Relaxed);
    }
    Ok(())
}

/// The clock of all instants, CLOCK_MONOTONIC.
pub fn now_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one timespec; the clock always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Until an instant of that clock.
pub fn sleep_until(at_ns: u64) {
    let until = libc::timespec { tv_sec: (at_ns / 1_000_000_000) as _, tv_nsec: (at_ns % 1_000_000_000) as _ };
    // SAFETY: reads one timespec.
    unsafe { libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &until, std::ptr::null_mut()) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_read_as_it_was_written() {
        for variant in Variant::ALL {
            let words = words(variant, Workload::Lowest, 30, 400);
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            assert_eq!(parse(&words[1..]), Ok(Request { variant, workload: Workload::Lowest, size: 30, samples: 400 }));
        }
        let odd = [&["on", "lowest", "1"][..], &["on", "lowest", "many", "1"], &["no", "lowest", "1", "1"]];
        assert!(odd.iter().all(|words| parse(words).is_err()));
        assert!(parse(&["on", "lowest", "1", "1000000"]).is_err());
    }

    #[test]
    fn there_is_room_for_the_samples() {
        assert!(Workload::ALL.iter().all(|workload| workload.samples() as usize <= SAMPLES));
    }
}
