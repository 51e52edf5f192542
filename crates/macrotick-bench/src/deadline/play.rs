//! Has tasks play in the lab, and reads what came out.

use macrotick_lab::{Flavor, GuestJob};
use macrotick_model::Duration;
use serde::{Deserialize, Serialize};

use super::player_guest;
use crate::error::BenchError;
use crate::kit::lab;

const FILE: &str = "/tmp/turns.json";
/// Turns that one guest plays, one after the other.
const TURNS_PER_GUEST: usize = 30;

/// Tasks that run together, for a while.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// They are released together.
    pub tasks: Vec<Player>,
    /// How long.
    pub millis: u64,
    /// Whether each tells when it ran.
    pub spans: bool,
}

/// A task, as the guest has it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Player {
    /// Its policy.
    pub policy: Policy,
    /// Where it stays: in a partition of that CPU.
    pub cpu: Option<u32>,
    /// Its period, at the end of which a job is due.
    pub period_us: u32,
    /// The processor time of a job; `None` for a greedy task, which never sleeps.
    pub work_us: Option<u32>,
}

/// How a task is scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// SCHED_DEADLINE, with its runtime in microseconds.
    Deadline(u32),
    /// SCHED_FIFO, with its priority.
    Fifo(u32),
    /// SCHED_OTHER.
    Other,
}

/// What became of a task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Jobs that were due while it played.
    pub due: u64,
    /// Those that were late, or never done.
    pub misses: u64,
    /// By how much a job was late at most.
    pub tardiest_ns: u64,
    /// The tardiness of all jobs together.
    pub tardiness_ns: u64,
    /// The longest response.
    pub response_ns: u64,
    /// Its processor time.
    pub took_ns: u64,
    /// When it ran: microseconds from the release of all, at most as many as there is room for.
    pub spans: Vec<(u64, u64)>,
}

/// What guests are like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The kernel.
    pub flavor: Flavor,
    /// Virtual CPUs.
    pub cpus: u32,
    /// An instruction takes `2^shift` ns.
    pub shift: u32,
}

/// What guests told.
pub struct Played {
    /// In the order of the turns, and of their tasks.
    pub outcomes: Vec<Vec<Outcome>>,
    /// The least share of an equal part that a busy virtual CPU had.
    pub evenness: f64,
}

/// Plays all.
pub fn play(bench: &str, machine: Machine, turns: &[Turn]) -> Result<Played, BenchError> {
    let mut played = Played { outcomes: Vec::new(), evenness: 1.0 };
    for (index, batch) in turns.chunks(TURNS_PER_GUEST).enumerate() {
        let first = index * TURNS_PER_GUEST + 1;
        let last = first + batch.len() - 1;
        lab::announce(&format!("{bench}: {} CPUs, {first} to {last} of {}", machine.cpus, turns.len()));
        let (counts, outcomes) = play_batch(machine, batch)?;
        played.evenness = played.evenness.min(evenness(&counts));
        played.outcomes.extend(outcomes);
    }
    Ok(played)
}

fn evenness(counts: &[u64]) -> f64 {
    let least = counts.iter().min().copied().unwrap_or(0);
    least as f64 * counts.len() as f64 / counts.iter().sum::<u64>() as f64
}

fn job(machine: Machine, turns: &[Turn]) -> GuestJob {
    let mut job = lab::job_on(machine.flavor, machine.cpus, machine.shift, [player_guest::PLAY, FILE]);
    job.files.push((FILE.into(), serde_json::to_vec(turns).expect("turns are plain data")));
    job.wall_limit = Duration::from_secs(3600);
    job
}

fn play_batch(machine: Machine, turns: &[Turn]) -> Result<(Vec<u64>, Vec<Vec<Outcome>>), BenchError> {
    lab::read(&job(machine, turns), "outcomes", |output| read(output, turns.len()))
}

/// What the virtual CPUs counted, and the outcomes of as many turns.
fn read(output: &str, turns: usize) -> Option<(Vec<u64>, Vec<Vec<Outcome>>)> {
    let mut lines = output.lines();
    let counts = serde_json::from_str(lines.next()?).ok()?;
    let outcomes: Option<Vec<Vec<Outcome>>> = lines.map(|line| serde_json::from_str(line).ok()).collect();
    Some((counts, outcomes.filter(|outcomes| outcomes.len() == turns)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_that_is_cut_is_no_output() {
        let outcome = serde_json::to_string(&[Outcome { due: 3, ..Outcome::default() }]).unwrap();
        let (counts, outcomes) = read(&format!("[3,5]\n{outcome}\n"), 1).unwrap();
        assert_eq!((evenness(&counts), outcomes[0][0].due), (0.75, 3));
        assert!(read(&format!("[3,5]\n{outcome}\n"), 2).is_none());
        assert!(read("", 0).is_none());
    }
}
