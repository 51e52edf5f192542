//! The most that a task with a period of 100 us begins late, beside loads (table 2 of the paper).

use std::fmt::Write as _;

use macrotick_report::Figure;

use super::rivals::{Rival, LOADS, NOTHING};
use super::trial::{Reading, Request};
use crate::bench::containers::aims::Aim;
use crate::bench::containers::yields::Policy;
use crate::bench::timershield::Variant;
use crate::error::CliError;

const PERIOD_US: u32 = 100;
const SECONDS: u64 = 5;
/// Beside these the aim is for.
const HARD: [&str; 2] = ["hdd", "udp"];
/// Of what SCHED_FIFO on the pristine kernel has.
const AIM: f64 = 0.5;

/// Policies and kernels, and what a table calls them.
const COLUMNS: [(Policy, Variant, &str); 5] = [
    (Policy::Fifo, Variant::Pristine, "FIFO, pristine"),
    (Policy::Fifo, Variant::Off, "FIFO, ours"),
    (Policy::Fifo, Variant::On, "FIFO, TimerShield"),
    (Policy::Ds, Variant::Off, "DS"),
    (Policy::Ds, Variant::On, "DS, TimerShield"),
];

/// By load, in the order of the columns.
pub struct Latencies {
    rows: Vec<(Rival, [Reading; COLUMNS.len()])>,
}

impl Latencies {
    /// Has everything run in the lab.
    pub fn measure(bench: &str) -> Result<Latencies, CliError> {
        let mut rows = Vec::new();
        for rival in [NOTHING].into_iter().chain(LOADS) {
            let readings = COLUMNS.iter().map(|&(policy, variant, _)| {
                Request { policy, variant, period_us: PERIOD_US, work_us: 0, seconds: SECONDS, rival }.measure(bench)
            });
            let readings: Vec<Reading> = readings.collect::<Result<_, _>>()?;
            rows.push((rival, readings.try_into().expect("a reading for each column")));
        }
        Ok(Latencies { rows })
    }

    /// What shall hold.
    pub fn aims(&self) -> Vec<Aim> {
        let hard = self.rows.iter().filter(|(rival, _)| HARD.contains(&rival.name));
        hard.map(|(rival, readings)| Aim {
            what: format!(
                "most latency of DS with TimerShield beside {}, of that of FIFO on the pristine kernel",
                rival.name
            ),
            unit: "ratio",
            value: readings[4].latency_ns as f64 / readings[0].latency_ns as f64,
            limit: AIM,
        })
        .collect()
    }

    /// The table.
    pub fn markdown(&self) -> String {
        let mut text = format!(
            "### most and mean latency of a task with a period of {PERIOD_US} us, in us\n\n| load | {} |\n|---|{}\n",
            COLUMNS.map(|(_, _, title)| title).join(" | "),
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

    /// The same for machines.
    pub fn figures(&self) -> Vec<Figure> {
        let mut figures = Vec::new();
        for (rival, readings) in &self.rows {
            for ((_, _, title), reading) in COLUMNS.iter().zip(readings) {
                let case = format!("{}, {title}", rival.name);
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

    /// The most of the last column, over all loads, in microseconds.
    pub fn most_us(&self) -> f64 {
        self.rows.iter().map(|(_, readings)| readings[4].latency_ns as f64 / 1e3).fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_aim_is_half() {
        let reading = |latency_ns| Reading { jobs: 1, latency_ns, sum_ns: 0, response_ns: 0, rival_us: 1 };
        let rows = LOADS.map(|rival| (rival, [10, 9, 8, 7, if rival.name == "udp" { 6 } else { 5 }].map(reading)));
        let latencies = Latencies { rows: rows.to_vec() };
        assert_eq!(latencies.aims().iter().map(Aim::is_met).collect::<Vec<_>>(), [true, false]);
        assert!((latencies.most_us() - 0.006).abs() < 1e-12);
        assert!(latencies.markdown().contains("| udp | 0.010 (0.000) | 0.009 (0.000) |"));
    }
}
