//! The guest's part: the groups of a set.

use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};

use super::play::Play;
use super::sets::{above_name, above_priority, task_priority, GROUP, SERVER_PERIOD_US};
use crate::kit::board::{gather, release, Board};
use crate::kit::clock::{now_ns, sleep_until};
use crate::kit::group;
use crate::kit::process;
use crate::kit::process::lock_memory;
use crate::kit::round::{round_ps, work};

/// A hidden verb of this program: plays the sets of a file.
pub const RUN: &str = "jitter-run";

/// Runs the verb: its main function.
pub fn main() -> ExitCode {
    process::main(|words| match words {
        [path] => run(path),
        _ => Err("this verb belongs to `macrotick-bench jitter`".into()),
    })
}

/// Prints a line of responses, in nanoseconds, for each set.
fn run(path: &str) -> Result<(), String> {
    let plays: Vec<Play> = process::read(path)?;
    group::set_period(SERVER_PERIOD_US)?;
    let round_ps = round_ps();
    plays.iter().try_for_each(|play| process::print(&take_turn(play, round_ps)?))
}

fn take_turn(play: &Play, round_ps: u64) -> Result<Vec<u64>, String> {
    // SAFETY: atomic words.
    let board: &'static Board = unsafe { process::share()? };
    let set = &play.set;
    let mut others = Vec::new();
    for (index, &budget_us) in set.above_us.iter().enumerate() {
        group::make(&above_name(index), budget_us, above_priority(index) as u32)?;
        others.push(process::fork(|| crowd(play, &above_name(index), board))?);
    }
    group::make(GROUP, set.budget_us, 1)?;
    others.push(process::fork(|| use_up(board))?);
    let measured = set.tasks.len() - 1;
    for index in 0..measured {
        others.push(process::fork(|| be(play, index, round_ps, board))?);
    }
    let child = process::fork(|| be(play, measured, round_ps, board))?;
    let zero = gather(board, others.len() as u32 + 1);
    release(board, group::next_refill(zero)?);
    process::wait(child)?;
    others.into_iter().try_for_each(process::end)?;
    (0..set.above_us.len()).try_for_each(|index| group::remove(&above_name(index)))?;
    group::remove(GROUP)?;
    Ok(board.samples[..play.phases_ns.len()].iter().map(|sample| sample.load(Ordering::SeqCst)).collect())
}

/// Becomes a group above. It sleeps, and then uses its budget from the start of each server period.
fn crowd(play: &Play, name: &str, board: &Board) -> Result<(), String> {
    lock_memory()?;
    group::enter(name, 50)?;
    let zero = board.join();
    for trial in 0..play.phases_ns.len() {
        sleep_until(zero + play.crowd_ns(trial));
        while now_ns() < zero + play.crowd_ends_ns(trial) {
            work(1);
        }
    }
    Ok(())
}

/// Becomes the group's own thread that exhausts the rest of the budget.
fn use_up(board: &Board) -> Result<(), String> {
    lock_memory()?;
    group::enter(GROUP, 1)?;
    board.join();
    loop {
        work(1);
    }
}

/// Becomes a task. The last task records its responses, from the arrival on.
fn be(play: &Play, index: usize, round_ps: u64, board: &Board) -> Result<(), String> {
    lock_memory()?;
    group::enter(GROUP, task_priority(index))?;
    let task = play.set.tasks[index];
    let rounds = u64::from(task.wcet_us) * 1_000_000 / round_ps;
    let is_measured = index + 1 == play.set.tasks.len();
    let zero = board.join();
    for (trial, sample) in (0..play.phases_ns.len()).zip(&board.samples) {
        for released in play.releases_ns(trial, index) {
            sleep_until(zero + released);
            work(rounds);
            if is_measured {
                note(sample, zero + released - u64::from(task.jitter_us) * 1000);
            }
        }
    }
    // The other tasks do not exit, because the exit of a process takes time from tasks of lower priority.
    if is_measured {
        return Ok(());
    }
    loop {
        std::thread::park();
    }
}

fn note(sample: &AtomicU64, arrived: u64) {
    sample.store(now_ns() - arrived, Ordering::SeqCst);
}
