//! End-to-end times of cause-effect chains in a draft of a table.
//!
//! A job reads its input when it starts and writes its output when its last window ends; a reader takes the newest
//! output (`docs/reference/description.md`, "Chains").

use macrotick_model::{Chain, Duration};

use crate::error::Bound;
use crate::table::Piece;

/// The instants at which the jobs of one task read and write, in one cycle and in order.
struct Jobs {
    cycle: Duration,
    times: Vec<(Duration, Duration)>,
}

impl Jobs {
    /// Returns the jobs of the tasks of all paths, by the index of the task. Other tasks have none.
    fn all(paths: &[Vec<usize>], pieces: &[Vec<Piece>], cycle: Duration) -> Vec<Jobs> {
        let count = paths.iter().flatten().max().map_or(0, |&last| last + 1);
        let mut needed = vec![false; count];
        paths.iter().flatten().for_each(|&task| needed[task] = true);
        let mut instants: Vec<(Vec<Duration>, Vec<Duration>)> = vec![Default::default(); count];
        for piece in pieces.iter().flatten().filter(|piece| needed.get(piece.task) == Some(&true)) {
            let (reads, writes) = &mut instants[piece.task];
            if piece.activate {
                reads.push(piece.start);
            }
            if piece.deadline {
                writes.push(piece.end());
            }
        }
        instants.into_iter().map(|(reads, writes)| Jobs::new(reads, writes, cycle)).collect()
    }

    fn new(mut reads: Vec<Duration>, mut writes: Vec<Duration>, cycle: Duration) -> Jobs {
        reads.sort_unstable();
        writes.sort_unstable();
        let write = |read: Duration| match writes.partition_point(|&end| end <= read) {
            index if index < writes.len() => writes[index],
            _ => writes[0] + cycle,
        };
        Jobs { cycle, times: reads.iter().map(|&read| (read, write(read))).collect() }
    }

    /// Returns job `index`. The index continues over the cycles in both directions.
    fn job(&self, index: i64) -> (Duration, Duration) {
        let count = self.times.len() as i64;
        let (read, write) = self.times[index.rem_euclid(count) as usize];
        let shift = self.cycle * index.div_euclid(count);
        (read + shift, write + shift)
    }

    /// Returns the first job that reads at or after the instant.
    fn reading_from(&self, instant: Duration) -> (Duration, Duration) {
        let turn = instant.as_nanos().div_euclid(self.cycle.as_nanos());
        let within = instant - self.cycle * turn;
        let index = self.times.partition_point(|&(read, _)| read < within);
        self.job(index as i64 + turn * self.times.len() as i64)
    }

    /// Returns the last job that has written by the instant.
    fn written_by(&self, instant: Duration) -> (Duration, Duration) {
        let turn = instant.as_nanos().div_euclid(self.cycle.as_nanos());
        let within = instant - self.cycle * turn;
        let count = self.times.partition_point(|&(_, write)| write <= within) as i64;
        let mut index = count - 1 + turn * self.times.len() as i64;
        // The last jobs of the previous cycle may write in this cycle.
        while self.job(index).1 > instant {
            index -= 1;
        }
        self.job(index)
    }
}

/// A bound of a chain, and the time that a draft reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reached {
    pub chain: usize,
    pub kind: Bound,
    pub bound: Duration,
    pub reached: Duration,
}

impl Reached {
    pub fn kept(&self) -> bool {
        self.reached <= self.bound
    }

    /// Returns the excess over the bound, in thousandths of the bound.
    pub fn excess(&self) -> i128 {
        i128::from((self.reached - self.bound).as_nanos()) * 1000 / i128::from(self.bound.as_nanos())
    }
}

/// Measures all bounds of all chains. `paths` has the indices of the chains' tasks.
pub(crate) fn measure(chains: &[Chain], paths: &[Vec<usize>], pieces: &[Vec<Piece>], cycle: Duration) -> Vec<Reached> {
    let mut reached = Vec::new();
    let all = Jobs::all(paths, pieces, cycle);
    for (index, (chain, path)) in chains.iter().zip(paths).enumerate() {
        let jobs: Vec<&Jobs> = path.iter().map(|&task| &all[task]).collect();
        if let Some(bound) = chain.reaction {
            reached.push(Reached { chain: index, kind: Bound::Reaction, bound, reached: reaction(&jobs) });
        }
        if let Some(bound) = chain.age {
            reached.push(Reached { chain: index, kind: Bound::Age, bound, reached: age(&jobs) });
        }
    }
    reached
}

/// Returns the longest reaction time. It starts just after the first task has read, and ends with the first job of the
/// last task that uses the next input.
fn reaction(path: &[&Jobs]) -> Duration {
    let count = path[0].times.len() as i64;
    let follow = |index: i64| {
        let output = path[1..].iter().fold(path[0].job(index).1, |written, task| task.reading_from(written).1);
        output - path[0].job(index - 1).0
    };
    (0..count).map(follow).max().unwrap_or(Duration::ZERO)
}

/// Returns the longest data age. It starts when the first task reads, and ends with the last job of the last task that
/// uses this input.
fn age(path: &[&Jobs]) -> Duration {
    let (last, before) = path.split_last().expect("a chain has tasks");
    let trace = |&(read, write): &(Duration, Duration)| {
        write - before.iter().rev().fold(read, |read, task| task.written_by(read).0)
    };
    last.times.iter().map(trace).max().unwrap_or(Duration::ZERO)
}
