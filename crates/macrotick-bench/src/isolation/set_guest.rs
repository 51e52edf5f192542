//! The guest's part: the containers of a task set.

use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};

use super::play::{Outcome, Outcomes, Turn};
use super::sets::{Container, Task, SERVER_PERIOD_US};
use super::victim;
use crate::kit::board::{gather, release, Board};
use crate::kit::clock::{now_ns, sleep_until};
use crate::kit::group;
use crate::kit::loads::{self, Load};
use crate::kit::process;
use crate::kit::process::lock_memory;
use crate::kit::round::{round_ps, work};

/// A hidden verb of this program: plays the task sets of a file.
pub const PLAY: &str = "isolation-play";
/// A hidden verb: runs the victim of a trial.
pub const VICTIM: &str = "isolation-victim";

/// A hidden verb: attacks from inside a container.
pub const ATTACK: &str = "isolation-attack";

const MS: u64 = 1_000_000;
/// The words of a task's report.
const WORDS: usize = 5;

/// Runs a verb: its main function.
pub fn main(verb: &str) -> ExitCode {
    process::main(|words| match (verb, words) {
        (PLAY, [path]) => play(path),
        (VICTIM, words) => victim::run(words),
        (ATTACK, [name]) => victim::attack(name),
        _ => Err("these verbs belong to `macrotick-bench isolation`".into()),
    })
}

/// Prints a line of outcomes for each set.
fn play(path: &str) -> Result<(), String> {
    let turns: Vec<Turn> = process::read(path)?;
    group::set_period(SERVER_PERIOD_US)?;
    let round_ps = round_ps();
    turns.iter().try_for_each(|turn| process::print(&take_turn(turn, round_ps)?))
}

/// The memory in which a task reports its outcome.
struct Report<'a>(&'a [AtomicU64]);

impl Report<'_> {
    fn add(&self, word: usize, by: u64) {
        self.0[word].fetch_add(by, Ordering::Relaxed);
    }

    fn get(&self, word: usize) -> u64 {
        self.0[word].load(Ordering::SeqCst)
    }
}

const DONE: usize = 0;
const LATE: usize = 1;
const BEYOND: usize = 2;
const WORST: usize = 3;
const TIME: usize = 4;

fn take_turn(turn: &Turn, round_ps: u64) -> Result<Outcomes, String> {
    // SAFETY: atomic words.
    let board: &'static Board = unsafe { process::share()? };
    let load = Load::from_name(&turn.load)?;
    let loads = loads::begin(load, board)?;
    let mut children = Vec::new();
    for (container, tenths) in turn.set.containers.iter().zip([10, turn.tenths]) {
        group::make(&container.name, container.budget_us, container.priority)?;
        for task in &container.tasks {
            let report = Report(&board.samples[children.len() * WORDS..][..WORDS]);
            let rounds = u64::from(task.wcet_us) * 1_000_000 * u64::from(tenths) / 10 / round_ps;
            let life = turn.seconds * 1000 * MS;
            children.push(process::fork(|| be(container, task, rounds, life, board, &report))?);
        }
    }
    let zero = gather(board, (children.len() + loads.len()) as u32);
    release(board, zero);
    children.into_iter().try_for_each(process::wait)?;
    loads.into_iter().try_for_each(process::end)?;
    turn.set.containers.iter().try_for_each(|container| group::remove(&container.name))?;
    let mut first = 0;
    Ok(turn.set.containers.each_ref().map(|container| {
        let reports = board.samples[first * WORDS..].chunks(WORDS).map(Report);
        first += container.tasks.len();
        sum(container, turn.seconds, reports)
    }))
}

fn sum<'a>(container: &Container, seconds: u64, reports: impl Iterator<Item = Report<'a>>) -> Outcome {
    let mut outcome = Outcome::default();
    let (mut took, mut declared) = (0, 0);
    for (task, report) in container.tasks.iter().zip(reports) {
        // A job that is due at the end does not count.
        let due = (seconds * 1000 - 1) / u64::from(task.period_ms);
        let undone = due.saturating_sub(report.get(DONE));
        outcome.due += due;
        outcome.misses += report.get(LATE) + undone;
        outcome.beyond += report.get(BEYOND) + undone;
        outcome.of_bound = outcome.of_bound.max(report.get(WORST) as f64 / task.bound_ns as f64);
        took += report.get(TIME);
        declared += report.get(DONE) * u64::from(task.wcet_us) * 1000;
    }
    outcome.of_declared = took as f64 / declared as f64;
    outcome
}

/// Becomes a task, and runs to the end of the turn. The job at the end does not count.
fn be(
    container: &Container,
    task: &Task,
    rounds: u64,
    life: u64,
    board: &Board,
    report: &Report,
) -> Result<(), String> {
    lock_memory()?;
    group::enter(&container.name, task.priority)?;
    let period = u64::from(task.period_ms) * MS;
    let zero = board.join();
    for release in (zero..).step_by(period as usize) {
        sleep_until(release);
        let began = process::processor_ns();
        work(rounds);
        let (took, end) = (process::processor_ns() - began, now_ns());
        if end >= zero + life {
            return Ok(());
        }
        let response = end - release;
        report.add(DONE, 1);
        report.add(LATE, u64::from(response > period));
        report.add(BEYOND, u64::from(response > task.bound_ns));
        report.0[WORST].fetch_max(response, Ordering::Relaxed);
        report.add(TIME, took);
    }
    Ok(())
}
