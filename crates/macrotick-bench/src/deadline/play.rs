//! Plays tasks in the lab, and reads their outcomes.

use macrotick_lab::{Flavor, GuestJob};
use macrotick_model::Duration;
use serde::{Deserialize, Serialize};

use super::player_guest;
use crate::error::BenchError;
use crate::kit::lab;

const FILE: &str = "/tmp/turns.json";
/// The turns that one guest plays, one after the other.
const TURNS_PER_GUEST: usize = 30;

/// Tasks that run together for a time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// The tasks, which are released together.
    pub tasks: Vec<Player>,
    /// The length of the turn.
    pub millis: u64,
    /// Whether each task records the times in which it ran.
    pub spans: bool,
}

/// A task, as the guest needs it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Player {
    /// Its policy.
    pub policy: Policy,
    /// The CPU, in a partition of its own; `None` for all CPUs.
    pub cpu: Option<u32>,
    /// The period, at the end of which a job is due.
    pub period_us: u32,
    /// The processor time of a job; `None` for a greedy task, which never sleeps.
    pub work_us: Option<u32>,
}

/// The policy of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// SCHED_DEADLINE, with the runtime in microseconds.
    Deadline(u32),
    /// SCHED_FIFO, with the priority.
    Fifo(u32),
    /// SCHED_OTHER.
    Other,
}

/// The outcome of a task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Jobs that were due before the end of the turn.
    pub due: u64,
    /// Due jobs that were late or did not complete.
    pub misses: u64,
    /// The greatest tardiness of a job.
    pub tardiest_ns: u64,
    /// The tardiness of all jobs together.
    pub tardiness_ns: u64,
    /// The longest response time.
    pub response_ns: u64,
    /// The processor time of the task.
    pub took_ns: u64,
    /// The times in which it ran, in microseconds from the common release. Spans beyond the room of the array are left
    /// out.
    pub spans: Vec<(u64, u64)>,
}

/// The configuration of a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The kernel.
    pub flavor: Flavor,
    /// The number of virtual CPUs.
    pub cpus: u32,
    /// The time of an instruction is `2^shift` ns.
    pub shift: u32,
}

/// The outcomes of all guests.
pub struct Played {
    /// The outcomes in the order of the turns and of their tasks.
    pub outcomes: Vec<Vec<Outcome>>,
    /// The least share that a busy virtual CPU had of its equal part.
    pub evenness: f64,
}

/// Plays all turns.
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

/// Parses the counters of the virtual CPUs, and the outcomes of this number of turns.
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
