//! Plays task sets in the lab, and reads their outcomes.

use std::sync::Mutex;

use macrotick_lab::{taken_along, Flavor, GuestJob};
use macrotick_model::Duration;
use serde::{Deserialize, Serialize};

use super::set_guest;
use super::sets::TaskSet;
use crate::error::BenchError;
use crate::kit::loads::Load;
use crate::kit::{disk, lab};

/// A guest instruction takes 4 ns. Emulation is four times as fast as with 1 ns, and the kernel's work costs four times
/// as much.
const SHIFT: u32 = 2;
/// The greatest number of sets that one guest plays, one after the other.
const SETS_PER_GUEST: usize = 10;
/// The number of guests at the same time. Each one has a processor of the host.
const GUESTS: usize = 2;
const SETS: &str = "/tmp/sets.json";

/// The fault of a scenario, or its load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scenario {
    /// Tasks of the high-priority container take 1.8 times their declared time.
    LowHi,
    /// All tasks keep their declared time. Each set has one of the loads beside it, in turn.
    Loaded,
}

/// The loads of [`Scenario::Loaded`].
pub const LOADS: [Load; 4] = [Load::Hog, Load::Io, Load::Network, Load::Timers];

/// The time that a job of the high container takes, in tenths of its declared time.
const EXCESS: u32 = 18;

/// A set, and the way to play it, as the guest needs it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    /// The set.
    pub set: TaskSet,
    /// The time that jobs of the high container take, in tenths of their declared time.
    pub tenths: u32,
    /// The name of the load.
    pub load: String,
    /// The seconds that the set plays.
    pub seconds: u64,
}

impl Turn {
    /// Returns the turn of the `index`th set of a total.
    pub fn new(set: TaskSet, scenario: Scenario, seconds: u64) -> Turn {
        let (tenths, load) = match scenario {
            Scenario::LowHi => (EXCESS, Load::None),
            Scenario::Loaded => (10, LOADS[set.index as usize % LOADS.len()]),
        };
        Turn { set, tenths, load: load.name().into(), seconds }
    }
}

/// The outcome of the tasks of a container.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Jobs that were due before the end of the turn.
    pub due: u64,
    /// Due jobs that were late or did not complete.
    pub misses: u64,
    /// Jobs with a response beyond the checker's bound.
    pub beyond: u64,
    /// The greatest ratio of a response to its bound.
    pub of_bound: f64,
    /// The processor time of all jobs, divided by their declared time.
    pub of_declared: f64,
}

/// The outcomes of both containers, in the order of the set.
pub type Outcomes = [Outcome; 2];

/// Plays all turns, some guests at the same time. The outcomes are in the order of the turns.
pub fn play(bench: &str, turns: &[Turn]) -> Result<Vec<Outcomes>, BenchError> {
    let batches: Vec<&[Turn]> = turns.chunks(turns.len().div_ceil(GUESTS).clamp(1, SETS_PER_GUEST)).collect();
    let next = Mutex::new(0..batches.len());
    let take = || next.lock().ok().and_then(|mut next| next.next());
    let work = || {
        let mut done = Vec::new();
        while let Some(index) = take() {
            let first = &batches[index][0].set;
            lab::announce(&format!(
                "{bench}: sets of {} %, from {}, {}",
                first.total, first.index, batches[index][0].load
            ));
            done.push((index, play_batch(batches[index])?));
        }
        Ok::<_, BenchError>(done)
    };
    let mut done = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..GUESTS).map(|_| scope.spawn(work)).collect();
        let mut done = Vec::new();
        for worker in workers {
            done.extend(worker.join().expect("a worker does not panic")?);
        }
        Ok::<_, BenchError>(done)
    })?;
    done.sort_by_key(|(index, _)| *index);
    Ok(done.into_iter().flat_map(|(_, outcomes)| outcomes).collect())
}

fn job(turns: &[Turn]) -> Result<GuestJob, BenchError> {
    let mut job = lab::job_on(Flavor::Patched, 1, SHIFT, [set_guest::PLAY, SETS]);
    let text = serde_json::to_vec(turns).expect("turns are plain data");
    job.files.push((SETS.into(), text));
    job.files.extend(taken_along(&[disk::MAKER.into()], job.image)?);
    job.wall_limit = Duration::from_secs(3600);
    Ok(job)
}

fn play_batch(turns: &[Turn]) -> Result<Vec<Outcomes>, BenchError> {
    lab::read(&job(turns)?, "outcomes", |output| {
        let outcomes: Option<Vec<Outcomes>> = output.lines().map(|line| serde_json::from_str(line).ok()).collect();
        outcomes.filter(|outcomes| outcomes.len() == turns.len())
    })
}
