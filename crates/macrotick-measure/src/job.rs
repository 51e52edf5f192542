//! Jobs: the bursts of one period.

use crate::burst::Burst;
use crate::period::Grid;

/// A job of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// The number of its period, from any begin.
    pub slot: i64,
    /// Its first wake-up, in nanoseconds.
    pub arrival: i64,
    /// The instant at which it blocks for the next period.
    pub ended: i64,
    /// Its CPU time, if it is known of each burst.
    pub ran: Option<i64>,
    /// The time in which it was blocked between its bursts.
    pub suspended: i64,
    /// Whether it lasted into a later period, and no wake-up began a job there. It may be several jobs.
    pub merged: bool,
}

/// Joins bursts to jobs. Without a grid, each burst is a job. With one, the first and the last job are left out, as
/// parts of them may be missing.
pub fn jobs(bursts: &[Burst], grid: Option<&Grid>) -> Vec<Job> {
    let Some(grid) = grid else { return bursts.iter().zip(0..).map(|(burst, slot)| single(burst, slot)).collect() };
    let mut jobs: Vec<Job> = Vec::new();
    for burst in bursts {
        let slot = grid.slot(burst.woken);
        match jobs.last_mut().filter(|job| job.slot == slot) {
            Some(job) => {
                job.suspended += burst.woken - job.ended;
                job.ended = burst.ended;
                job.ran = job.ran.zip(burst.ran).map(|(before, more)| before + more);
            }
            None => jobs.push(single(burst, slot)),
        }
    }
    for index in 0..jobs.len() {
        let next = jobs.get(index + 1).map_or(i64::MAX, |job| job.slot);
        let job = &mut jobs[index];
        job.merged = next > job.slot + 1 && grid.slot(job.ended) > job.slot;
    }
    let whole = 1.min(jobs.len())..jobs.len().saturating_sub(1).max(1.min(jobs.len()));
    jobs[whole].to_vec()
}

fn single(burst: &Burst, slot: i64) -> Job {
    let &Burst { woken, ended, ran } = burst;
    Job { slot, arrival: woken, ended, ran, suspended: 0, merged: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRID: Grid = Grid { period: 100.0, error: 0.0, cut: -50.0 };

    fn bursts(all: &[(i64, i64)]) -> Vec<Burst> {
        all.iter().map(|&(woken, ended)| Burst { woken, ended, ran: Some(ended - woken) }).collect()
    }

    #[test]
    fn bursts_of_a_period_are_one_job() {
        let all = bursts(&[(0, 10), (100, 110), (120, 130), (200, 205), (300, 301)]);
        let found = jobs(&all, Some(&GRID));
        let job = |slot, arrival, ended, ran, suspended| Job {
            slot,
            arrival,
            ended,
            ran: Some(ran),
            suspended,
            merged: false,
        };
        assert_eq!(found, [job(1, 100, 130, 20, 10), job(2, 200, 205, 5, 0)]);
        assert_eq!(jobs(&all, None).len(), 5);
    }

    #[test]
    fn a_job_that_fills_the_next_period_is_not_one_job() {
        let found = jobs(&bursts(&[(0, 1), (100, 260), (300, 310), (400, 455), (480, 490), (600, 601)]), Some(&GRID));
        let merged: Vec<(i64, bool)> = found.iter().map(|job| (job.slot, job.merged)).collect();
        // The fourth job ends late, and the next one begins late.
        assert_eq!(merged, [(1, true), (3, false), (4, false), (5, false)]);
    }

    #[test]
    fn few_bursts_are_no_jobs() {
        for count in 0..3 {
            let all: Vec<(i64, i64)> = (0..count).map(|at| (at * 100, at * 100 + 1)).collect();
            assert_eq!(jobs(&bursts(&all), Some(&GRID)), []);
        }
    }
}
