//! Bursts: many frames in each cycle, and a workload that starts when the last one is in.

use std::fmt::Write as _;

use macrotick_lab::Flavor;
use macrotick_model::Duration;
use macrotick_report::{Figure, Statistics};
use serde::{Deserialize, Serialize};

use super::bursts_guest::{RUN, WORK_NS};
use super::classes::MICROSECOND;
use super::gates::Load;
use crate::error::BenchError;
use crate::kit::aims::Aim;
use crate::kit::bench::Bench;
use crate::kit::lab;
use crate::kit::scale::Scale;

const CYCLES: u64 = 500;
const QUICK_CYCLES: u64 = 40;
const LOADS: [Load; 2] = [Load::Idle, Load::Hogs];
const WALL: Duration = Duration::from_secs(3600);

/// A burst: its frames, and the cycle in which it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
    /// The number of frames.
    pub frames: u64,
    /// The length of the cycle, in ns.
    pub cycle_ns: i64,
}

/// The guest executes at least 1.1 million instructions for 256 frames: it sends them, passes them through the veth, and
/// receives them. A cycle of 1 ms has 1 million.
const BURSTS: [Burst; 2] =
    [Burst { frames: 128, cycle_ns: 1000 * MICROSECOND }, Burst { frames: 256, cycle_ns: 2000 * MICROSECOND }];

impl Burst {
    /// Returns the opening and the closing of the window in the cycle, in ns.
    pub fn window(self) -> (i64, i64) {
        (self.cycle_ns * 3 / 10, self.cycle_ns * 8 / 10)
    }

    fn title(self) -> String {
        format!("{} frames in {} ms", self.frames, self.cycle_ns / (1000 * MICROSECOND))
    }
}

/// The guest's readings of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    /// The frames that arrived.
    pub frames: u64,
    /// The frames that did not arrive.
    pub lost: u64,
    /// The bursts that arrived whole and in order.
    pub whole: u64,
    /// How often each lateness of a frame occurred, in ns after the opening of the window, in ascending order.
    pub lateness: Vec<(i64, u64)>,
    /// How often each start of the workload occurred, in ns after the time stamp of the last frame, in ascending order.
    pub starts: Vec<(i64, u64)>,
    /// The latest end of a workload, in ns after the start of the cycle.
    pub latest_end_ns: i64,
}

impl Reading {
    fn outside(&self, burst: Burst) -> u64 {
        let (open, close) = burst.window();
        let length = close - open;
        self.lateness.iter().filter(|(ns, _)| !(0..length).contains(ns)).map(|(_, count)| count).sum()
    }
}

fn statistics(counts: &[(i64, u64)]) -> Option<Statistics> {
    let all: Vec<i64> = counts.iter().flat_map(|&(value, count)| std::iter::repeat_n(value, count as usize)).collect();
    Statistics::of_sorted(&all)
}

/// A run.
struct Row {
    burst: Burst,
    load: Load,
    reading: Reading,
}

/// All runs.
pub struct Bursts {
    cycles: u64,
    rows: Vec<Row>,
    /// The number of repeated runs that differ. `None`: nothing was repeated.
    different: Option<usize>,
}

fn cycles(scale: Scale) -> u64 {
    scale.of(CYCLES, QUICK_CYCLES)
}

/// Returns the cycles of each run.
pub fn extent(scale: Scale) -> Vec<u64> {
    vec![cycles(scale); BURSTS.len() * LOADS.len() * scale.of(2, 1)]
}

impl Row {
    fn outside(&self) -> u64 {
        self.reading.outside(self.burst)
    }
}

impl Bursts {
    /// Runs everything in the lab, in full twice.
    pub fn measure(bench: &Bench) -> Result<Bursts, BenchError> {
        let cycles = cycles(bench.scale);
        let (mut rows, mut different) = (Vec::new(), 0);
        for (burst, load) in BURSTS.into_iter().flat_map(|burst| LOADS.map(|load| (burst, load))) {
            lab::announce(&format!("{}: {}, {}", bench.name, burst.title(), load.title()));
            let numbers = [burst.frames.to_string(), burst.cycle_ns.to_string(), cycles.to_string()];
            let words = [RUN, load.name()].map(String::from).into_iter().chain(numbers);
            let mut job = lab::job(Flavor::Patched, words);
            job.wall_limit = WALL;
            let run = || lab::read(&job, "bursts", |output| serde_json::from_str(output).ok());
            let reading: Reading = run()?;
            if bench.scale == Scale::Full {
                different += usize::from(run()? != reading);
            }
            rows.push(Row { burst, load, reading });
        }
        Ok(Bursts { cycles, rows, different: bench.scale.of(Some(different), None) })
    }

    /// Returns the aims.
    pub fn aims(&self) -> Vec<Aim> {
        let sum = |value: fn(&Row) -> u64| self.rows.iter().map(value).sum::<u64>() as f64;
        let all = (self.cycles * self.rows.len() as u64) as f64;
        let share = |row: &Row| row.reading.latest_end_ns as f64 * 100.0 / row.burst.cycle_ns as f64;
        let latest = self.rows.iter().map(share).fold(0.0, f64::max);
        let aim = |what: &str, unit, value, limit| Aim { what: format!("bursts: {what}"), unit, value, limit };
        let mut aims = vec![
            aim("frames outside their window", "frames", sum(Row::outside), 0.0),
            aim("lost frames", "frames", sum(|row| row.reading.lost), 0.0),
            aim("cycles without a whole burst", "cycles", all - sum(|row| row.reading.whole), 0.0),
            aim("latest end of the workload in its cycle", "%", latest, 100.0),
        ];
        aims.extend(self.different.map(|n| aim("runs that differ from their repetition", "runs", n as f64, 0.0)));
        aims
    }

    /// Returns the table.
    pub fn markdown(&self) -> String {
        let mut text = format!(
            "### bursts\n\n\
             The window is open from 30 % to 80 % of the cycle. The workload has {} us. The guest executes more than \
             1 million instructions for 256 frames, from the sender to the receiver. They do not fit a cycle of 1 ms \
             at one instruction per nanosecond.\n\n\
             | burst | load | cycles | frames | outside the window | lost | first frame after the opening [us] | last \
             frame [us] | workload starts after the last frame [us] | its latest end in the cycle [us] |\n\
             |---|---|---:|---:|---:|---:|---:|---:|---:|---:|\n",
            WORK_NS / 1000
        );
        for row in &self.rows {
            let Row { burst, load, reading } = row;
            let (Some(frames), Some(starts)) = (statistics(&reading.lateness), statistics(&reading.starts)) else {
                continue;
            };
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} | {} | {} | {:.3} | {:.3} | {:.1} to {:.1} | {:.1} |",
                burst.title(),
                load.title(),
                self.cycles,
                reading.frames,
                row.outside(),
                reading.lost,
                us(frames.min_ns),
                us(frames.max_ns),
                us(starts.min_ns),
                us(starts.max_ns),
                us(reading.latest_end_ns)
            );
        }
        text
    }

    /// Returns the same values as figures.
    pub fn figures(&self) -> Vec<Figure> {
        let mut figures = Vec::new();
        for row in &self.rows {
            let Row { burst, load, reading } = row;
            let mut add = |figure: &str, value: f64, unit: &str| {
                let case = format!("bursts of {}, {}", burst.title(), load.title());
                figures.push(Figure { figure: figure.into(), case, value, unit: unit.into() });
            };
            add("frames", reading.frames as f64, "frames");
            add("outside the window", row.outside() as f64, "frames");
            add("lost", reading.lost as f64, "frames");
            if let (Some(frames), Some(starts)) = (statistics(&reading.lateness), statistics(&reading.starts)) {
                add("first frame", us(frames.min_ns), "us");
                add("last frame", us(frames.max_ns), "us");
                add("workload after the last frame.min", us(starts.min_ns), "us");
                add("workload after the last frame.max", us(starts.max_ns), "us");
            }
            add("latest end of the workload", us(reading.latest_end_ns), "us");
        }
        figures
    }
}

fn us(ns: i64) -> f64 {
    ns as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_that_is_not_whole_or_not_in_its_window_is_counted() {
        let good = Reading { frames: 256, whole: 2, lateness: vec![(1100, 256)], ..Reading::default() };
        let bad =
            Reading { frames: 511, lost: 1, whole: 1, lateness: vec![(1100, 254), (500_000, 1)], ..Reading::default() };
        let row = |load, reading| Row { burst: BURSTS[0], load, reading };
        let rows = vec![row(Load::Idle, good), row(Load::Hogs, bad)];
        let aims = Bursts { cycles: 2, rows, different: None }.aims();
        assert_eq!(aims.iter().map(|aim| aim.value).collect::<Vec<_>>(), [1.0, 1.0, 1.0, 0.0]);
    }
}
