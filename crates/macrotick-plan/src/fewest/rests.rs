//! The least time that jobs with a part of their pieces still need, alone and together.
//!
//! The jobs share slots, so less for one of them can mean more for another one. The vectors of rests that they can have
//! are those with at least this sum for each set of jobs (a contra-polymatroid). A slot that some of them share changes
//! these sums, and nothing else is necessary to describe it.

use macrotick_model::Duration;

/// The least sum of the rests of each set of jobs. Bit *i* of a set is job *i*.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Rests(Vec<Duration>);

impl Rests {
    /// Returns those of no job.
    pub fn none() -> Rests {
        Rests(vec![Duration::ZERO])
    }

    /// Returns the least sum of a set.
    pub fn of(&self, set: usize) -> Duration {
        self.0[set]
    }

    /// Returns the least sum of all jobs.
    pub fn all(&self) -> Duration {
        self.0[self.0.len() - 1]
    }

    /// Adds a job behind the others, which needs this time.
    pub fn with(&self, needed: Duration) -> Rests {
        Rests(self.0.iter().copied().chain(self.0.iter().map(|&rest| rest + needed)).collect())
    }

    /// Adds time to one job.
    pub fn add(&mut self, job: usize, time: Duration) {
        let sets = self.0.iter_mut().enumerate().filter(|(set, _)| set >> job & 1 == 1);
        sets.for_each(|(_, rest)| *rest += time);
    }

    /// Lets the jobs of a set share a time.
    pub fn share(&mut self, set: usize, time: Duration) {
        for (other, rest) in self.0.iter_mut().enumerate().filter(|(other, _)| other & set != 0) {
            debug_assert!(other != 0);
            *rest -= time;
        }
        // A rest is at least zero, so the sum of a set is at least that of each part of it.
        let jobs = self.0.len().trailing_zeros();
        for bit in (0..jobs).map(|job| 1usize << job) {
            for other in (0..self.0.len()).filter(|other| other & bit != 0) {
                self.0[other] = self.0[other].max(self.0[other ^ bit]);
            }
        }
    }

    /// Removes jobs that need nothing more. `None` if they do.
    pub fn without(&self, complete: usize) -> Option<Rests> {
        let others = (0..self.0.len()).filter(|set| set & complete == 0);
        (self.0[complete] == Duration::ZERO).then(|| Rests(others.map(|set| self.0[set | complete]).collect()))
    }

    /// Whether every sum is at most that of others, for the same jobs.
    pub fn at_most(&self, others: &Rests) -> bool {
        self.0.iter().zip(&others.0).all(|(one, other)| one <= other)
    }
}
