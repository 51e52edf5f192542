//! The guest's part: one measured task beside others.

use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};

use super::workload::{Task, Workload};
use crate::kit::board::{gather, release, Board, SAMPLES};
use crate::kit::clock::{now_ns, sleep_until};
use crate::kit::round::work;
use crate::kit::variant::{switch, Variant};
use crate::kit::{hostile, process};

/// A hidden verb of this program.
pub const RUN: &str = "timershield-run";

/// Rounds between two readings of the clock.
const BATCH: u64 = 8;

/// Runs the verb: its main function.
pub fn main() -> ExitCode {
    process::main(|words| parse(words).and_then(|request| run(&request)))
}

/// The host's request.
#[derive(Debug, PartialEq, Eq)]
struct Request {
    variant: Variant,
    workload: Workload,
    size: u32,
    samples: u32,
}

fn parse(words: &[&str]) -> Result<Request, String> {
    let &[variant, workload, size, samples] = words else {
        return Err("a verb of `macrotick-bench timershield`".into());
    };
    let variant = Variant::from_name(variant).ok_or_else(|| format!("no variant `{variant}`"))?;
    let workload = Workload::from_name(workload).ok_or_else(|| format!("no workload `{workload}`"))?;
    let samples = process::number(samples)?;
    if samples as usize > SAMPLES {
        return Err(format!("there is no room for {samples} samples"));
    }
    Ok(Request { variant, workload, size: process::number(size)?, samples })
}

/// Returns the words of the command line that [`main`] takes.
pub fn words(variant: Variant, workload: Workload, size: u32, samples: u32) -> [String; 5] {
    [RUN.into(), variant.name().into(), workload.name().into(), size.to_string(), samples.to_string()]
}

/// Starts all processes, waits for the measured one, and prints its samples.
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

/// Starts processes that repeat these tasks, from time zero.
pub fn begin_tasks(tasks: &[Task], board: &'static Board) -> Result<Vec<i32>, String> {
    let begin = |task: &Task| process::fork(|| rehearsed(board, task.priority, |zero| repeat(task, zero)));
    tasks.iter().map(begin).collect()
}

/// Becomes a task under SCHED_FIFO with all its pages, and runs when time zero is known.
fn rehearsed(board: &Board, priority: u8, body: impl FnOnce(u64) -> Result<(), String>) -> Result<(), String> {
    process::lock_memory()?;
    let parameter = libc::sched_param { sched_priority: i32::from(priority) };
    // SAFETY: reads one structure.
    if unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameter) } != 0 {
        return Err(process::last_error("sched_setscheduler"));
    }
    body(board.join())
}

/// Runs a job at every release, without end.
fn repeat(task: &Task, zero: u64) -> Result<(), String> {
    for release in (zero + task.phase_ns..).step_by(task.period_ns as usize) {
        sleep_until(release);
        work(task.rounds);
    }
    Ok(())
}

/// Runs a job for each sample: the response, from the release to the end of the job.
fn respond(task: &Task, zero: u64, samples: &[AtomicU64]) -> Result<(), String> {
    for (release, sample) in (zero + task.phase_ns..).step_by(task.period_ns as usize).zip(samples) {
        sleep_until(release);
        work(task.rounds);
        sample.store(now_ns() - release, Ordering::Relaxed);
    }
    Ok(())
}

/// Works without a pause for the first half of every period. Each sample is the number of rounds in that half.
fn count(task: &Task, zero: u64, samples: &[AtomicU64]) -> Result<(), String> {
    for (release, sample) in (zero + task.phase_ns..).step_by(task.period_ns as usize).zip(samples) {
        sleep_until(release);
        let mut done = 0;
        while now_ns() < release + task.period_ns / 2 {
            work(BATCH);
            done += BATCH;
        }
        sample.store(done, Ordering::Relaxed);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::scale::Scale;

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
        assert!(Workload::ALL.iter().all(|workload| workload.samples(Scale::Full) as usize <= SAMPLES));
    }
}
