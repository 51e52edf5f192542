//! The guest's part: threads in groups.

use std::process::ExitCode;
use std::sync::atomic::Ordering;

use super::population::{Population, Thread};
use super::yields::Request;
use crate::kit::board::{gather, release, Board};
use crate::kit::clock::{now_ns, sleep_until};
use crate::kit::loads;
use crate::kit::policy::Policy;
use crate::kit::process::{lock_memory, spin};
use crate::kit::variant::switch;
use crate::kit::{group, process};

/// A hidden verb of this program: runs the threads of a population.
pub const LOAD: &str = "containers-load";
/// A hidden verb of this program: runs threads that count and yield.
pub const COUNT: &str = "containers-count";

const MS: u64 = 1_000_000;
/// The server period of [`LOAD`].
pub const PERIOD_US: u32 = 2500;
/// The length of a job of a thread that sleeps.
const JOB_NS: u64 = 20_000;
/// The number of threads of [`COUNT`].
const COUNTERS: usize = 12;
/// Iterations of a round.
const ITERATIONS: u32 = 200;
/// Rounds of the measurement of a round's length.
const TRIAL: u64 = 10_000;
/// Runs the verb: its main function.
pub fn main(verb: &str) -> ExitCode {
    process::main(|words| match (verb, words) {
        (LOAD, [population, periods]) => load(&Population::from_word(population)?, process::number(periods)?),
        (COUNT, words) => count(&Request::from_words(words)?),
        _ => Err("these verbs belong to `macrotick-bench containers`".into()),
    })
}

fn group_name(index: usize) -> String {
    format!("g{index}")
}

/// Runs threads in groups for a number of server periods.
fn load(population: &Population, periods: u64) -> Result<(), String> {
    group::set_period(PERIOD_US)?;
    // SAFETY: atomic words.
    let board: &'static Board = unsafe { process::share()? };
    let mut children = Vec::new();
    for index in 0..population.threads.len() {
        group::make(&group_name(index), population.budget_us(PERIOD_US), 1 + index as u32)?;
        for thread in population.threads_of(index) {
            children.push(process::fork(|| be(index, thread, board))?);
        }
    }
    let zero = gather(board, children.len() as u32);
    release(board, zero);
    sleep_until(zero + periods * u64::from(PERIOD_US) * 1000);
    children.into_iter().for_each(process::kill);
    Ok(())
}

/// Becomes a thread of a group; runs without end.
fn be(group: usize, thread: Thread, board: &Board) -> Result<(), String> {
    lock_memory()?;
    group::enter(&group_name(group), thread.priority)?;
    let zero = board.join();
    sleep_until(zero);
    match thread.period_us {
        None => spin(),
        Some(period) => {
            for release in (zero..).step_by(period as usize * 1000) {
                sleep_until(release);
                let end = now_ns() + JOB_NS;
                while now_ns() < end {}
            }
            Ok(())
        }
    }
}

/// Runs threads that count and yield to each other, and prints the sum of their rounds.
fn count(request: &Request) -> Result<(), String> {
    let Request { policy, period_us, yield_us, seconds, load, variant } = *request;
    switch(variant)?;
    let name = group_name(0);
    if policy == Policy::Ds {
        group::set_period(period_us)?;
        group::make(&name, period_us * super::yields::SHARE / 100, 1)?;
    }
    let rounds_per_turn = (yield_us * 1000 / round_ns()).max(1);
    // SAFETY: atomic words.
    let board: &'static Board = unsafe { process::share()? };
    let loads = loads::begin(load, board)?;
    let counters = (0..COUNTERS).map(|i| {
        process::fork(|| {
            lock_memory()?;
            match policy {
                Policy::Ds => group::enter(&name, 50)?,
                Policy::Fifo => process::set_policy(libc::SCHED_FIFO as u32, 50)?,
            }
            let zero = board.join();
            sleep_until(zero);
            let rounds = take_turns(rounds_per_turn, zero + seconds * 1000 * MS);
            board.samples[i].store(rounds, Ordering::SeqCst);
            Ok(())
        })
    });
    let counters = counters.collect::<Result<Vec<i32>, String>>()?;
    // The runs start at a refill. Their length is a whole number of server periods.
    let zero = group::next_refill(gather(board, (counters.len() + loads.len()) as u32))?;
    release(board, zero);
    counters.into_iter().try_for_each(process::wait)?;
    loads.into_iter().for_each(process::kill);
    println!("rounds {}", (0..COUNTERS).map(|i| board.samples[i].load(Ordering::SeqCst)).sum::<u64>());
    Ok(())
}

/// Counts until an instant, and yields after each turn. Returns the number of rounds.
fn take_turns(rounds_per_turn: u64, until: u64) -> u64 {
    let mut rounds = 0;
    loop {
        for _ in 0..rounds_per_turn {
            if now_ns() >= until {
                return rounds;
            }
            round();
            rounds += 1;
        }
        // SAFETY: takes nothing.
        unsafe { libc::sched_yield() };
    }
}

fn round() {
    (0..ITERATIONS).for_each(|i| {
        std::hint::black_box(i);
    });
}

/// Returns the nanoseconds of a round, including one reading of the clock.
fn round_ns() -> u64 {
    let begin = now_ns();
    (0..TRIAL).for_each(|_| {
        std::hint::black_box(now_ns());
        round();
    });
    (now_ns() - begin) / TRIAL
}
