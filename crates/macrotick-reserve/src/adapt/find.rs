//! The thread to follow, and its period.

use macrotick_host::sys::Tid;
use macrotick_measure::{find, near, rounded, Burst, Grid, Record};
use macrotick_model::Duration;

/// The newest wake-ups that count: what a program does while it starts is forgotten.
const RECENT: i64 = 2_000_000_000;
/// The fewest wake-ups that are enough. With fewer ones in [`RECENT`], older ones count as well.
const FEWEST: usize = 8;

/// A periodic thread.
#[derive(Clone, Debug)]
pub struct Found {
    pub thread: Tid,
    pub name: String,
    pub grid: Grid,
    /// The period for the reservation.
    pub period: Duration,
    /// The first burst that counts.
    pub from: usize,
    /// The number of bursts that count.
    pub bursts: usize,
    /// Other periodic threads: name and period.
    pub also: Vec<(String, Duration)>,
}

/// Returns the periodic thread with the most CPU time. With a wanted period, only such threads count.
pub fn follow(record: &Record, only: Option<Tid>, wanted: Option<Duration>, now: i64) -> Option<Found> {
    let threads = record.threads().filter(|(thread, ..)| only.is_none_or(|only| only == *thread));
    let mut all: Vec<(i64, Found)> = threads
        .filter_map(|(thread, name, bursts)| {
            let (from, grid) = grid(bursts.done(), wanted, now)?;
            let period = wanted.unwrap_or_else(|| rounded(grid.period, grid.error));
            let counted = &bursts.done()[from..];
            let time = counted.iter().filter_map(|burst| burst.ran).sum();
            let name = name.to_owned();
            Some((time, Found { thread, name, grid, period, from, bursts: counted.len(), also: Vec::new() }))
        })
        .collect();
    all.sort_by_key(|(time, _)| std::cmp::Reverse(*time));
    let mut all = all.into_iter().map(|(_, found)| found);
    let first = all.next()?;
    Some(Found { also: all.map(|other| (other.name, other.period)).collect(), ..first })
}

/// Returns the first burst that counts, and the grid.
pub fn grid(done: &[Burst], wanted: Option<Duration>, now: i64) -> Option<(usize, Grid)> {
    let recent = done.partition_point(|burst| burst.woken < now - RECENT);
    let from = if done.len() - recent < FEWEST { 0 } else { recent };
    let wakes: Vec<i64> = done[from..].iter().map(|burst| burst.woken).collect();
    let grid = match wanted {
        Some(period) => near(&wakes, period.as_nanos() as f64),
        None => find(&wakes),
    };
    grid.map(|grid| (from, grid))
}
