//! Frames that wait for a gate, beside loads: how long after the gate each one leaves.

use std::fmt::Write as _;

use macrotick_lab::{Flavor, GuestJob};
use macrotick_model::Duration;
use macrotick_report::{overlaid_histogram, Distribution, Figure, Statistics};
use serde::{Deserialize, Serialize};

use super::classes::LEAD_NS;
use super::gates_guest::{CYCLE, OPEN, RUN};
use crate::error::BenchError;
use crate::kit::aims::Aim;
use crate::kit::bench::Bench;
use crate::kit::lab;
use crate::kit::scale::Scale;

/// The frames of a run with exact gates on the idle guest, which skips the time between them.
const IDLE_FRAMES: u64 = 1_000_000;
/// The same beside a load.
const FRAMES: u64 = 60_000;
/// The frames of a run with the other gates, which vary far more.
const OTHER_FRAMES: u64 = 6000;
const QUICK_FRAMES: u64 = 300;
/// The frames of a run with exact gates that is made twice.
const REPEATED: u64 = 1000;
/// A guest with a flood needs several seconds of wall time for each virtual second.
const WALL: Duration = Duration::from_secs(7200);

/// The limits for exact gates, in microseconds.
const AIM_SPREAD: f64 = 0.06;
const AIM_MEAN: f64 = 0.2;
const AIM_DEVIATION: f64 = 0.015;
/// The limits for the set-up without the kernel's patch, but for one frame in 1000.
const AIM_SOFTWARE: f64 = 5.0;
const AIM_SOFTWARE_SPREAD: f64 = 1.3;

/// The part that opens the gates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// The qdisc taprio as in Linux.
    Stock,
    /// The same, with ksoftirqd above the tasks.
    Ksoftirqd,
    /// Exact gates.
    Exact,
}

impl Column {
    const ALL: [Column; 3] = [Column::Stock, Column::Ksoftirqd, Column::Exact];

    /// Returns the word on the guest's command line.
    pub fn name(self) -> &'static str {
        match self {
            Column::Stock => "stock",
            Column::Ksoftirqd => "ksoftirqd",
            Column::Exact => "exact",
        }
    }

    /// Returns the name in tables and figures.
    fn title(self) -> &'static str {
        match self {
            Column::Stock => "stock taprio",
            Column::Ksoftirqd => "taprio, ksoftirqd above the tasks",
            Column::Exact => "exact gates",
        }
    }

    /// Parses a name of [`Column::name`].
    pub fn from_name(name: &str) -> Result<Column, String> {
        Column::ALL.into_iter().find(|one| one.name() == name).ok_or_else(|| format!("no column `{name}`"))
    }
}

/// The load beside the frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// Nothing.
    Idle,
    /// Four processes under SCHED_OTHER that never sleep.
    Hogs,
    /// A flood of pings from the other side.
    Flood,
    /// A flood of pings through the gated device.
    FloodThrough,
    /// The processes, and the flood from the other side.
    Both,
}

impl Load {
    const ALL: [Load; 5] = [Load::Idle, Load::Hogs, Load::Flood, Load::FloodThrough, Load::Both];
    const QUICK: [Load; 2] = [Load::Idle, Load::Both];

    /// Returns the word on the guest's command line.
    pub fn name(self) -> &'static str {
        match self {
            Load::Idle => "idle",
            Load::Hogs => "hogs",
            Load::Flood => "flood",
            Load::FloodThrough => "flood-through",
            Load::Both => "both",
        }
    }

    /// Returns the name in tables and figures.
    pub fn title(self) -> &'static str {
        match self {
            Load::Idle => "idle",
            Load::Hogs => "four hogs",
            Load::Flood => "ping flood from the other side",
            Load::FloodThrough => "ping flood through the device",
            Load::Both => "hogs and ping flood",
        }
    }

    /// Parses a name of [`Load::name`].
    pub fn from_name(name: &str) -> Result<Load, String> {
        Load::ALL.into_iter().find(|one| one.name() == name).ok_or_else(|| format!("no load `{name}`"))
    }

    /// Whether four processes compute beside the frames.
    pub fn has_hogs(self) -> bool {
        matches!(self, Load::Hogs | Load::Both)
    }
}

/// The guest's readings of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    /// The constant path that the guest measured before the run, in ns. The gate opens earlier by this time.
    pub path_ns: i64,
    /// How often each lateness occurred, in ns after the nominal instant, in ascending order.
    pub lateness: Vec<(i64, u64)>,
    /// The frames that did not arrive.
    pub lost: u64,
    /// The processor time of the gate's thread in one second without frames, in ns.
    pub idle_ns: i64,
    /// The processor time of the gate's thread with frames, in ns.
    pub thread_ns: i64,
    /// The length of the run, in ns.
    pub span_ns: i64,
    /// A hash of all time stamps in their order.
    pub fingerprint: u64,
}

impl Reading {
    fn frames(&self) -> u64 {
        self.lateness.iter().map(|(_, count)| count).sum()
    }

    /// Returns all times from the opening of the gate to the time stamp, in ascending order.
    fn after_gate(&self) -> Vec<i64> {
        let each = |&(lateness, count): &(i64, u64)| std::iter::repeat_n(lateness + self.path_ns, count as usize);
        self.lateness.iter().flat_map(each).collect()
    }

    /// Returns the frames that left before their gate opened or after it had closed.
    fn outside(&self) -> u64 {
        let length = CYCLE - OPEN;
        let is_outside = |(lateness, _): &&(i64, u64)| !(0..length).contains(&(lateness + self.path_ns));
        self.lateness.iter().filter(is_outside).map(|(_, count)| count).sum()
    }

    /// Returns the share of the CPU that the gate's thread took, in percent.
    fn share(&self) -> f64 {
        self.thread_ns as f64 * 100.0 / (self.frames() as f64 * CYCLE as f64)
    }
}

/// A run: its column, its load, its readings, and their statistics, from the opening of the gate.
struct Case {
    column: Column,
    load: Load,
    reading: Reading,
    statistics: Statistics,
}

impl Case {
    fn new(column: Column, load: Load, reading: Reading) -> Option<Case> {
        let statistics = Statistics::of_sorted(&reading.after_gate())?;
        Some(Case { column, load, reading, statistics })
    }

    fn label(&self) -> String {
        format!("{}: {}", self.load.title(), self.column.title())
    }

    fn spread(&self) -> i64 {
        self.statistics.max_ns - self.statistics.min_ns
    }
}

/// All runs.
pub struct Gates {
    cases: Vec<Case>,
    /// The number of repeated runs that differ from the first one. `None`: nothing was repeated.
    different: Option<usize>,
}

fn frames(column: Column, load: Load, scale: Scale) -> u64 {
    let full = match column {
        Column::Exact if load == Load::Idle => IDLE_FRAMES,
        Column::Exact => FRAMES,
        Column::Stock | Column::Ksoftirqd => OTHER_FRAMES,
    };
    scale.of(full, QUICK_FRAMES)
}

fn cases(scale: Scale) -> Vec<(Column, Load)> {
    let loads = scale.of(&Load::ALL[..], &Load::QUICK[..]);
    loads.iter().flat_map(|load| Column::ALL.map(|column| (column, *load))).collect()
}

/// Returns the frames of each run.
pub fn extent(scale: Scale) -> Vec<u64> {
    let all: Vec<u64> = cases(scale).into_iter().map(|(column, load)| frames(column, load, scale)).collect();
    let repeated = scale.of(vec![REPEATED; 2 * Load::ALL.len()], Vec::new());
    [all, repeated].concat()
}

fn job(column: Column, load: Load, frames: u64) -> GuestJob {
    let words = [RUN, column.name(), load.name(), &frames.to_string()].map(String::from);
    let mut job = lab::job(Flavor::Patched, words);
    job.wall_limit = WALL;
    job
}

impl Gates {
    /// Runs everything in the lab.
    pub fn measure(bench: &Bench) -> Result<Gates, BenchError> {
        let (mut measured, mut different) = (Vec::new(), 0);
        for (column, load) in cases(bench.scale) {
            lab::announce(&format!("{}: {}, {}", bench.name, load.title(), column.title()));
            let frames = frames(column, load, bench.scale);
            let parse = |output: &str| Case::new(column, load, serde_json::from_str(output).ok()?);
            measured.push(lab::read(&job(column, load, frames), "frames", parse)?);
            if bench.scale == Scale::Full && column == Column::Exact {
                let run = || Ok::<_, BenchError>(lab::run(&job(column, load, REPEATED))?.stdout);
                different += usize::from(run()? != run()?);
            }
        }
        Ok(Gates { cases: measured, different: bench.scale.of(Some(different), None) })
    }

    /// Returns the constant path of exact gates on the idle guest, in ns.
    pub fn path_ns(&self) -> i64 {
        self.of(Column::Exact).next().map_or(0, |case| case.reading.path_ns)
    }

    fn of(&self, column: Column) -> impl Iterator<Item = &Case> {
        self.cases.iter().filter(move |case| case.column == column)
    }

    fn most(&self, column: Column, value: impl Fn(&Case) -> f64) -> f64 {
        self.of(column).map(value).fold(f64::NEG_INFINITY, f64::max)
    }

    /// Returns the aims.
    pub fn aims(&self) -> Vec<Aim> {
        let aim = |what: &str, unit, value, limit| Aim { what: what.into(), unit, value, limit };
        let exact = |value: &dyn Fn(&Case) -> f64| self.most(Column::Exact, value);
        let software = |value: &dyn Fn(&Case) -> f64| self.most(Column::Ksoftirqd, value);
        let mut aims = vec![
            aim("exact gates: max - min, most of all loads", "us", exact(&|case| us(case.spread())), AIM_SPREAD),
            aim(
                "exact gates: frames outside their window",
                "frames",
                exact(&|case| case.reading.outside() as f64),
                0.0,
            ),
            aim("exact gates: lost frames", "frames", exact(&|case| case.reading.lost as f64), 0.0),
            aim("exact gates, path taken off: mean, most of all loads", "us", exact(&|case| off(case).abs()), AIM_MEAN),
            aim(
                "exact gates, path taken off: standard deviation, most of all loads",
                "us",
                exact(&|case| case.statistics.deviation_ns.as_us_f64()),
                AIM_DEVIATION,
            ),
            aim(
                "ksoftirqd above the tasks: latest frame but for one in 1000, most of all loads",
                "us",
                software(&|case| us(case.statistics.p999_ns)),
                AIM_SOFTWARE,
            ),
            aim(
                "ksoftirqd above the tasks: max - min but for one frame in 1000, most of all loads",
                "us",
                software(&|case| us(case.statistics.p999_ns - case.statistics.min_ns)),
                AIM_SOFTWARE_SPREAD,
            ),
            aim(
                "the gate's thread while no frame waits: processor time in one second",
                "ns",
                exact(&|case| case.reading.idle_ns as f64),
                0.0,
            ),
        ];
        aims.extend(
            self.different.map(|n| aim("exact gates: runs that differ from their repetition", "runs", n as f64, 0.0)),
        );
        aims
    }

    /// Returns the tables.
    pub fn markdown(&self) -> String {
        [self.after_gate(), self.after_nominal(), self.costs()].join("\n")
    }

    fn after_gate(&self) -> String {
        let mut text = "### from the opening of the gate to the frame's time stamp [us]\n\n\
             | load | gates | frames | min | mean | p99.9 | max | std dev | max - min | outside the window | lost |\n\
             |---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n"
            .to_owned();
        for case in &self.cases {
            let (s, reading) = (&case.statistics, &case.reading);
            let _ = writeln!(
                text,
                "| {} | {} | {} | {:.3} | {:.4} | {:.3} | {:.3} | {:.4} | {:.3} | {} | {} |",
                case.load.title(),
                case.column.title(),
                s.count,
                us(s.min_ns),
                s.mean_ns.as_us_f64(),
                us(s.p999_ns),
                us(s.max_ns),
                s.deviation_ns.as_us_f64(),
                us(case.spread()),
                reading.outside(),
                reading.lost
            );
        }
        text
    }

    fn after_nominal(&self) -> String {
        let mut text = "### exact gates, with the constant path taken off [us]\n\n\
             The gate opens earlier than the nominal instant by the path.\n\n\
             | load | path | min | mean | max | std dev |\n|---|---:|---:|---:|---:|---:|\n"
            .to_owned();
        for case in self.of(Column::Exact) {
            let (s, path) = (&case.statistics, case.reading.path_ns);
            let _ = writeln!(
                text,
                "| {} | {:.3} | {:+.3} | {:+.4} | {:+.3} | {:.4} |",
                case.load.title(),
                us(path),
                us(s.min_ns - path),
                off(case),
                us(s.max_ns - path),
                s.deviation_ns.as_us_f64()
            );
        }
        text
    }

    fn costs(&self) -> String {
        let planned = LEAD_NS as f64 * 100.0 / CYCLE as f64;
        let mut text = format!(
            "### processor time of the gate's thread\n\n\
             The lead is {} us. A gate opens once per cycle for waiting frames: {planned:.1} % of the CPU. When the \
             thread releases its locks, it also runs the softirqs of the network that are pending, those of a flood \
             included.\n\n\
             | load | one second without frames [ns] | with frames [% of the CPU] |\n|---|---:|---:|\n",
            LEAD_NS / 1000
        );
        for case in self.of(Column::Exact) {
            let _ =
                writeln!(text, "| {} | {} | {:.2} |", case.load.title(), case.reading.idle_ns, case.reading.share());
        }
        text
    }

    /// Returns the same values as figures.
    pub fn figures(&self) -> Vec<Figure> {
        let mut figures = Vec::new();
        for case in &self.cases {
            let mut add = |figure: &str, value: f64, unit: &str| {
                figures.push(Figure { figure: figure.into(), case: case.label(), value, unit: unit.into() });
            };
            let (s, reading) = (&case.statistics, &case.reading);
            add("frames", s.count as f64, "frames");
            add("after the gate.min", us(s.min_ns), "us");
            add("after the gate.mean", s.mean_ns.as_us_f64(), "us");
            add("after the gate.p99.9", us(s.p999_ns), "us");
            add("after the gate.max", us(s.max_ns), "us");
            add("after the gate.std", s.deviation_ns.as_us_f64(), "us");
            add("after the gate.max - min", us(case.spread()), "us");
            add("outside the window", reading.outside() as f64, "frames");
            add("lost", reading.lost as f64, "frames");
            if case.column == Column::Exact {
                add("path", us(reading.path_ns), "us");
                add("path taken off.min", us(s.min_ns - reading.path_ns), "us");
                add("path taken off.mean", off(case), "us");
                add("path taken off.max", us(s.max_ns - reading.path_ns), "us");
                add("gate's thread without frames", reading.idle_ns as f64, "ns");
                add("gate's thread with frames", reading.share(), "%");
            }
        }
        figures
    }

    /// Returns file, caption and content of a plot for each column.
    pub fn plots(&self) -> Vec<(String, String, String)> {
        let plot = |column: Column| {
            let samples: Vec<(&str, Vec<i64>)> =
                self.of(column).map(|case| (case.load.title(), case.reading.after_gate())).collect();
            let each: Vec<Distribution> =
                samples.iter().map(|(label, samples)| Distribution { label, samples }).collect();
            let caption = format!("From the opening of the gate to the time stamp: {}", column.title());
            let svg = overlaid_histogram(&caption, "frames", &each);
            (format!("gates-{}.svg", column.name()), caption, svg)
        };
        Column::ALL.map(plot).into()
    }
}

/// Returns the mean from the nominal instant, in microseconds.
fn off(case: &Case) -> f64 {
    case.statistics.mean_ns.as_us_f64() - us(case.reading.path_ns)
}

fn us(ns: i64) -> f64 {
    ns as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(path_ns: i64, lateness: &[(i64, u64)]) -> Reading {
        Reading { path_ns, lateness: lateness.into(), ..Reading::default() }
    }

    fn gates(exact: Reading, software: Reading) -> Gates {
        let case = |column, reading| Case::new(column, Load::Hogs, reading).unwrap();
        Gates { cases: vec![case(Column::Exact, exact), case(Column::Ksoftirqd, software)], different: Some(0) }
    }

    #[test]
    fn names_are_read_as_they_are_written() {
        for column in Column::ALL {
            assert_eq!(Column::from_name(column.name()), Ok(column));
        }
        for load in Load::ALL {
            assert_eq!(Load::from_name(load.name()), Ok(load));
        }
        assert!(Column::from_name("none").is_err() && Load::from_name("none").is_err());
    }

    #[test]
    fn a_window_is_half_open_and_begins_at_the_gate() {
        let reading = reading(1000, &[(-1001, 2), (-1000, 4), (298_999, 8), (299_000, 16)]);
        assert_eq!((reading.outside(), reading.frames()), (18, 30));
    }

    #[test]
    fn the_path_is_a_part_of_the_time_after_the_gate() {
        let gates = gates(reading(1100, &[(0, 1), (40, 1)]), reading(0, &[(4000, 999), (9000, 1)]));
        let values: Vec<(f64, bool)> =
            gates.aims().iter().map(|aim| ((aim.value * 1e4).round() / 1e4, aim.is_met())).collect();
        assert_eq!(values[0], (0.04, true));
        assert_eq!(values[3], (0.02, true));
        assert_eq!(values[4], (0.02, false), "the deviation");
        assert_eq!([values[5], values[6]], [(4.0, true), (0.0, true)], "one frame in 1000 does not count");
        let text = gates.markdown();
        assert!(
            text.contains("| four hogs | exact gates | 2 | 1.100 | 1.1200 | 1.140 | 1.140 | 0.0200 | 0.040 | 0 | 0 |"),
            "{text}"
        );
        assert!(text.contains("| four hogs | 1.100 | +0.000 | +0.0200 | +0.040 | 0.0200 |"), "{text}");
    }

    #[test]
    fn a_share_is_that_of_all_cycles() {
        let reading = Reading { thread_ns: 120_000, ..reading(0, &[(1, 2)]) };
        assert!((reading.share() - 6.0).abs() < 1e-9);
    }
}
