//! The profile of a thread: all that its events tell.

use macrotick_model::{nanos, Duration};
use serde::Serialize;

use crate::bound::{beyond_the_greatest, quantile, suggest};
use crate::burst::Burst;
use crate::job::{jobs, Job};
use crate::period::{find, Grid};

/// The profile of a thread.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Profile {
    /// The thread's id.
    pub thread: i32,
    /// The thread's name.
    pub name: String,
    /// The number of whole jobs. Without a period, each burst from a wake-up to a block is a job.
    pub jobs: usize,
    /// The share of one CPU that it had, in percent.
    pub load: f64,
    /// The number of jobs of unknown CPU time, because the kernel left out an event.
    pub untimed: usize,
    /// Its period, if it is periodic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub period: Option<Period>,
    /// The CPU time of a job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution: Option<Execution>,
    /// The greatest time in which a job was blocked between its first and its last burst.
    #[serde(rename = "suspended_ns", with = "nanos")]
    pub suspended: Duration,
    /// The greatest time from the first wake-up of a job to its end.
    #[serde(rename = "response_ns", with = "nanos")]
    pub response: Duration,
    /// Numbers of arrivals or jobs in a row, and what they span and need.
    pub rows: Vec<Row>,
}

/// The period of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Period {
    /// The mean distance of arrivals.
    #[serde(rename = "length_ns", with = "nanos")]
    pub length: Duration,
    /// The standard error of the length, in nanoseconds.
    #[serde(rename = "error_ns")]
    pub error: f64,
    /// The latest arrival minus the earliest one, against the grid of the period.
    #[serde(rename = "jitter_ns", with = "nanos")]
    pub jitter: Duration,
    /// The number of periods without an arrival.
    pub missing: usize,
    /// The number of jobs that lasted into a later period, in which no other one began. They may be several jobs each,
    /// and do not count for execution times.
    pub merged: usize,
}

/// The CPU time of a job.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Execution {
    /// The least one.
    #[serde(rename = "min_ns", with = "nanos")]
    pub min: Duration,
    /// Half of the jobs needed at most this.
    #[serde(rename = "median_ns", with = "nanos")]
    pub median: Duration,
    /// 99 % of the jobs needed at most this.
    #[serde(rename = "p99_ns", with = "nanos")]
    pub p99: Duration,
    /// The greatest one.
    #[serde(rename = "max_ns", with = "nanos")]
    pub max: Duration,
    /// The suggestion: at most a thousandth of the jobs needs more.
    #[serde(rename = "suggested_ns", with = "nanos")]
    pub suggested: Duration,
    /// The share of jobs that needs more than the greatest sample at most, with a confidence of 95 %.
    pub beyond_max: f64,
    /// The histogram: the upper end of each bin, in nanoseconds, and the number of jobs.
    pub histogram: Vec<(i64, usize)>,
}

/// A number of arrivals and jobs in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Row {
    /// The number.
    pub count: usize,
    /// The shortest time from the first arrival to the last one: the arrival curve, inverted.
    #[serde(rename = "shortest_ns", with = "nanos")]
    pub shortest: Duration,
    /// The longest such time.
    #[serde(rename = "longest_ns", with = "nanos")]
    pub longest: Duration,
    /// The greatest CPU time of so many jobs.
    #[serde(rename = "execution_ns", with = "nanos")]
    pub execution: Duration,
}

/// The numbers of jobs in a row.
const ROWS: [usize; 8] = [2, 3, 4, 5, 8, 16, 32, 64];
/// The number of bins of a histogram.
const BINS: i64 = 20;

impl Profile {
    /// Makes the profile of a thread from its bursts in an interval of this length, in nanoseconds.
    pub fn of(thread: i32, name: &str, bursts: &[Burst], interval: i64) -> Profile {
        let wakes: Vec<i64> = bursts.iter().map(|burst| burst.woken).collect();
        let grid = find(&wakes);
        let jobs = jobs(bursts, grid.as_ref());
        let known: Vec<i64> = bursts.iter().filter_map(|burst| burst.ran).collect();
        let ran = known.iter().sum::<i64>() as f64 * bursts.len() as f64 / known.len().max(1) as f64;
        let greatest = |of: fn(&Job) -> i64| Duration::from_nanos(jobs.iter().map(of).max().unwrap_or(0));
        Profile {
            thread,
            name: name.into(),
            jobs: jobs.len(),
            load: ran * 100.0 / interval.max(1) as f64,
            untimed: jobs.iter().filter(|job| job.ran.is_none()).count(),
            period: grid.filter(|_| !jobs.is_empty()).map(|grid| period(&grid, &jobs)),
            execution: execution(&jobs),
            suspended: greatest(|job| job.suspended),
            response: greatest(|job| job.ended - job.arrival),
            rows: ROWS.into_iter().filter(|&count| 2 * count <= jobs.len()).map(|count| row(&jobs, count)).collect(),
        }
    }
}

fn period(grid: &Grid, jobs: &[Job]) -> Period {
    let offsets = || jobs.iter().map(|job| job.arrival as f64 - job.slot as f64 * grid.period);
    let (first, last) = offsets().fold((f64::MAX, f64::MIN), |(low, high), at| (low.min(at), high.max(at)));
    let slots = jobs.last().map_or(0, |last| last.slot - jobs[0].slot + 1) as usize;
    Period {
        length: Duration::from_nanos(grid.period.round() as i64),
        error: grid.error,
        jitter: Duration::from_nanos((last - first).ceil() as i64),
        missing: slots - jobs.len(),
        merged: jobs.iter().filter(|job| job.merged).count(),
    }
}

fn execution(jobs: &[Job]) -> Option<Execution> {
    let mut samples: Vec<i64> = jobs.iter().filter(|job| !job.merged).filter_map(|job| job.ran).collect();
    samples.sort_unstable();
    let at = |part| quantile(&samples, part).map(Duration::from_nanos);
    Some(Execution {
        min: at(0.0)?,
        median: at(0.5)?,
        p99: at(0.99)?,
        max: at(1.0)?,
        suggested: suggest(&samples).map(Duration::from_nanos)?,
        beyond_max: beyond_the_greatest(samples.len()),
        histogram: histogram(&samples),
    })
}

/// Counts samples, which are in order, in bins of equal width.
fn histogram(samples: &[i64]) -> Vec<(i64, usize)> {
    let (Some(&least), Some(&most)) = (samples.first(), samples.last()) else { return Vec::new() };
    let width = ((most - least) / BINS + 1).max(1);
    let mut bins: Vec<(i64, usize)> = Vec::new();
    for &sample in samples {
        let end = least + ((sample - least) / width + 1) * width - 1;
        match bins.last_mut().filter(|bin| bin.0 == end) {
            Some(bin) => bin.1 += 1,
            None => bins.push((end, 1)),
        }
    }
    bins
}

fn row(jobs: &[Job], count: usize) -> Row {
    let spans = || jobs.windows(count).map(|jobs| jobs[count - 1].arrival - jobs[0].arrival);
    let work = jobs.windows(count).filter_map(|jobs| jobs.iter().map(|job| job.ran).sum::<Option<i64>>());
    let length = |value: Option<i64>| Duration::from_nanos(value.unwrap_or(0));
    Row { count, shortest: length(spans().min()), longest: length(spans().max()), execution: length(work.max()) }
}
