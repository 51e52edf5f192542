//! The greatest latency of a task with a period of 100 us, beside loads (table 2 of the paper).

use std::fmt::Write as _;

use macrotick_report::Figure;

use super::rivals::{Rival, LOADS, NOTHING};
use super::trial::{Reading, Request};
use crate::error::BenchError;
use crate::kit::aims::Aim;
use crate::kit::bench::Bench;
use crate::kit::policy::Policy;
use crate::kit::scale::Scale;
use crate::kit::variant::Variant;

/// Releases that pass over the tick and the refills. They move by one microsecond relative to the tick with each tick.
const PASSING: Releases = Releases { period_ns: 100_100, phase_ns: 0 };
/// Releases that are never near a tick or a refill, like windows of the planner. The ticks are at multiples of 1 ms,
/// the refills 250 us after multiples of 500 us.
const CLEAR: Releases = Releases { period_ns: 100_000, phase_ns: 25_000 };
const MILLIS: u64 = 5000;
const QUICK_MILLIS: u64 = 200;
/// The loads of the aims.
const HARD: [&str; 2] = ["hdd", "udp"];
/// The greatest ratio to the latency of SCHED_FIFO on the pristine kernel.
const AIM: f64 = 0.5;

/// More than the task's latency without a lead.
const LEAD_US: u32 = 15;

/// The instants at which the task is released.
#[derive(Clone, Copy)]
struct Releases {
    period_ns: u32,
    phase_ns: u32,
}

/// A configuration of the task.
struct Column {
    title: &'static str,
    policy: Policy,
    lead_us: u32,
    variant: Variant,
    releases: Releases,
}

impl Column {
    const fn new(title: &'static str, policy: Policy, variant: Variant) -> Column {
        Column { title, policy, lead_us: 0, variant, releases: PASSING }
    }

    const fn leading(self) -> Column {
        Column { lead_us: LEAD_US, ..self }
    }

    const fn clear(self) -> Column {
        Column { releases: CLEAR, ..self }
    }
}

const COLUMNS: [Column; 8] = [
    Column::new("FIFO, pristine", Policy::Fifo, Variant::Pristine),
    Column::new("FIFO, ours", Policy::Fifo, Variant::Off),
    Column::new("FIFO, TimerShield", Policy::Fifo, Variant::On),
    Column::new("DS", Policy::Ds, Variant::Off),
    Column::new("DS, TimerShield", Policy::Ds, Variant::On),
    Column::new("DS, TimerShield, lead", Policy::Ds, Variant::On).leading(),
    Column::new("FIFO, pristine, clear", Policy::Fifo, Variant::Pristine).clear(),
    Column::new("DS, TimerShield, lead, clear", Policy::Ds, Variant::On).leading().clear(),
];
/// The columns that have an aim, and the columns that they are compared with.
const JUDGED: [(usize, usize); 3] = [(4, 0), (5, 0), (7, 6)];

/// Returns the loads. A quick run has none, because it takes longest to bring stress-ng into a guest; a quick run's
/// attacks use it.
fn rivals(scale: Scale) -> Vec<Rival> {
    [&[NOTHING][..], scale.of(&LOADS[..], &[])].concat()
}

fn millis(scale: Scale) -> u64 {
    scale.of(MILLIS, QUICK_MILLIS)
}

/// Returns the milliseconds of each trial.
pub fn extent(scale: Scale) -> Vec<u64> {
    vec![millis(scale); rivals(scale).len() * COLUMNS.len()]
}

/// The readings by load, in the order of the columns.
pub struct Latencies {
    rows: Vec<(Rival, [Reading; COLUMNS.len()])>,
}

impl Latencies {
    /// Runs everything in the lab.
    pub fn measure(bench: &Bench) -> Result<Latencies, BenchError> {
        let mut rows = Vec::new();
        for rival in rivals(bench.scale) {
            let readings = COLUMNS.iter().map(|column| {
                let &Column { policy, lead_us, variant, releases: Releases { period_ns, phase_ns }, .. } = column;
                let (work_us, millis) = (0, millis(bench.scale));
                Request { policy, lead_us, variant, period_ns, phase_ns, work_us, millis, rival }.measure(bench.name)
            });
            let readings: Vec<Reading> = readings.collect::<Result<_, _>>()?;
            rows.push((rival, readings.try_into().expect("a reading for each column")));
        }
        Ok(Latencies { rows })
    }

    /// Returns the aims.
    pub fn aims(&self) -> Vec<Aim> {
        let hard = || self.rows.iter().filter(|(rival, _)| HARD.contains(&rival.name));
        let aim = |(column, other): (usize, usize), (rival, readings): &(Rival, [Reading; COLUMNS.len()])| Aim {
            what: format!(
                "most latency beside {}, {}, of that of {}",
                rival.name, COLUMNS[column].title, COLUMNS[other].title
            ),
            unit: "ratio",
            value: readings[column].latency_ns as f64 / readings[other].latency_ns as f64,
            limit: AIM,
        };
        JUDGED.iter().flat_map(|&pair| hard().map(move |row| aim(pair, row))).collect()
    }

    /// Returns the table.
    pub fn markdown(&self) -> String {
        let mut text = format!(
            "### most and mean latency of a task with a period of 100 us, in us\n\n| load | {} |\n|---|{}\n",
            COLUMNS.each_ref().map(|column| column.title).join(" | "),
            "---:|".repeat(COLUMNS.len())
        );
        for (rival, readings) in &self.rows {
            let cells = readings
                .each_ref()
                .map(|reading| format!("{:.3} ({:.3})", reading.latency_ns as f64 / 1e3, reading.mean_us()));
            let _ = writeln!(text, "| {} | {} |", rival.name, cells.join(" | "));
        }
        text
    }

    /// Returns the same values as figures.
    pub fn figures(&self) -> Vec<Figure> {
        let mut figures = Vec::new();
        for (rival, readings) in &self.rows {
            for (column, reading) in COLUMNS.iter().zip(readings) {
                let case = format!("{}, {}", rival.name, column.title);
                let figure = |figure: &str, value| Figure {
                    figure: figure.into(),
                    case: case.clone(),
                    value,
                    unit: "us".into(),
                };
                figures.push(figure("most latency", reading.latency_ns as f64 / 1e3));
                figures.push(figure("mean latency", reading.mean_us()));
            }
        }
        figures
    }

    /// Returns the greatest latency of the columns that have an aim, over all loads, in microseconds.
    pub fn most_us(&self) -> [f64; 3] {
        let most = |column: usize| self.rows.iter().map(|(_, readings)| readings[column].latency_ns).max();
        JUDGED.map(|(column, _)| most(column).unwrap_or(0) as f64 / 1e3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_aim_is_half() {
        let reading = |latency_ns| Reading { jobs: 1, latency_ns, sum_ns: 0, response_ns: 0, rival_us: 1 };
        let rows =
            LOADS.map(|rival| (rival, [10, 9, 8, 7, if rival.name == "udp" { 6 } else { 5 }, 4, 9, 3].map(reading)));
        let latencies = Latencies { rows: rows.to_vec() };
        assert_eq!(latencies.aims().iter().map(Aim::is_met).collect::<Vec<_>>(), [true, false, true, true, true, true]);
        assert_eq!(latencies.most_us(), [0.006, 0.004, 0.003]);
        assert!(latencies.markdown().contains("| udp | 0.010 (0.000) | 0.009 (0.000) |"));
    }
}
