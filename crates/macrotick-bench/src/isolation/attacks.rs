//! The change of a critical container's worst response when another container attacks.

use std::fmt::Write as _;

use macrotick_report::Figure;

use super::rivals::{Program, Rival, ATTACKS, NOTHING, POOL_OF_ONE};
use super::trial::{Reading, Request};
use crate::error::BenchError;
use crate::kit::aims::Aim;
use crate::kit::bench::Bench;
use crate::kit::policy::Policy;
use crate::kit::scale::Scale;
use crate::kit::variant::Variant;

/// The victim's period. Its releases pass over the tick.
const PERIOD_US: u32 = 1001;
const WORK_US: u64 = 100;
const MILLIS: u64 = 10_000;
const QUICK_MILLIS: u64 = 300;
/// The attacks of a quick run: one of stress-ng, one of our own.
const QUICK_ATTACKS: [Rival; 2] = [ATTACKS[0], ATTACKS[11]];
const AIM_US: f64 = 5.0;
const VARIANTS: [Variant; 2] = [Variant::Off, Variant::On];
const SETTINGS: [&str; 2] = ["TimerShield off, settings of the host left", "TimerShield on, settings of the host held"];

fn rivals(scale: Scale) -> Vec<Rival> {
    let all = [&[NOTHING, POOL_OF_ONE], &ATTACKS[..]].concat();
    scale.of(all, [&[NOTHING], &QUICK_ATTACKS[..]].concat())
}

fn millis(scale: Scale) -> u64 {
    scale.of(MILLIS, QUICK_MILLIS)
}

/// Returns the milliseconds of each trial.
pub fn extent(scale: Scale) -> Vec<u64> {
    vec![millis(scale); rivals(scale).len() * VARIANTS.len()]
}

/// The readings by attack; the first row has no attack. Each row has a host without settings, and a host with the
/// settings of deployments.
pub struct Attacks {
    /// The milliseconds of each trial.
    millis: u64,
    rows: Vec<(Rival, [Reading; 2])>,
}

impl Attacks {
    /// Runs everything in the lab.
    pub fn measure(bench: &Bench) -> Result<Attacks, BenchError> {
        let millis = millis(bench.scale);
        let mut rows = Vec::new();
        for rival in rivals(bench.scale) {
            let [off, on] = VARIANTS.map(|variant| {
                let (policy, lead_us, work_us) = (Policy::Ds, 0, WORK_US);
                let (period_ns, phase_ns) = (PERIOD_US * 1000, 0);
                Request { policy, lead_us, variant, period_ns, phase_ns, work_us, millis, rival }.measure(bench.name)
            });
            rows.push((rival, [off?, on?]));
        }
        Ok(Attacks { millis, rows })
    }

    /// Returns the difference to the worst response without the attack, in microseconds.
    fn moved_us(&self, rival: &Rival, readings: &[Reading; 2], variant: usize) -> f64 {
        let without = self
            .rows
            .iter()
            .find(|(other, _)| *other == rival.without())
            .map_or(0, |(_, other)| other[variant].response_ns);
        (readings[variant].response_ns as f64 - without as f64) / 1e3
    }

    /// Returns a line with the attack that moves the worst response most on a host with the settings of deployments,
    /// and the difference.
    pub fn headline(&self) -> String {
        let moved = |(rival, readings): &(Rival, [Reading; 2])| (self.moved_us(rival, readings, 1), rival.name);
        let (us, name) = self.rows.iter().map(moved).max_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or_default();
        format!(
            "**The worst job of a critical container under any of {} attacks is {us:.1} us later than without** ({name}; \
             settings of the host held).\n",
            self.attacks()
        )
    }

    fn attacks(&self) -> usize {
        self.rows.iter().filter(|(rival, _)| ATTACKS.contains(rival)).count()
    }

    /// Returns the aims. Settings of the host limit hundreds of simultaneous wake-ups, control groups, and perf clocks.
    /// Therefore the first aim has only attacks of stress-ng.
    pub fn aims(&self) -> Vec<Aim> {
        let aim = |attacks: &str, variant: usize, counts: fn(&Rival) -> bool| Aim {
            what: format!(
                "worst response of the critical container, under {attacks} beyond that without, {}",
                SETTINGS[variant]
            ),
            unit: "us",
            value: self
                .rows
                .iter()
                .filter(|(rival, _)| counts(rival))
                .map(|(rival, each)| self.moved_us(rival, each, variant))
                .fold(f64::NEG_INFINITY, f64::max),
            limit: AIM_US,
        };
        let is_stress = |rival: &Rival| matches!(rival.program, Program::Stress(_));
        vec![aim("any attack of stress-ng", 0, is_stress), aim("any attack", 1, |_| true)]
    }

    /// Returns the table.
    pub fn markdown(&self) -> String {
        let mut text = format!(
            "### attacks on a container with a job of {WORK_US} us every {PERIOD_US} us, in us\n\n\
             Processor time of a run and of its preparation, as a share of its {} s, under all policies: a budget does \
             not limit the idle time that SCHED_OTHER uses.\n\n\
             | attack | its processor time | worst response, settings left | moved by | held | moved by |\n\
             |---|---:|---:|---:|---:|---:|\n",
            self.millis as f64 / 1e3
        );
        for (rival, readings) in &self.rows {
            let share = readings[0].rival_us as f64 / (self.millis as f64 * 10.0);
            let cell = |variant: usize| {
                format!(
                    "{:.3} | {:+.3}",
                    readings[variant].response_ns as f64 / 1e3,
                    self.moved_us(rival, readings, variant)
                )
            };
            let _ = writeln!(text, "| {} | {share:.1} % | {} | {} |", rival.name, cell(0), cell(1));
        }
        text
    }

    /// Returns the same values as figures.
    pub fn figures(&self) -> Vec<Figure> {
        let mut figures = Vec::new();
        for (rival, readings) in &self.rows {
            for (variant, reading) in VARIANTS.iter().zip(readings) {
                figures.push(Figure {
                    figure: "worst response".into(),
                    case: format!("{}, TimerShield {}", rival.name, variant.name()),
                    value: reading.response_ns as f64 / 1e3,
                    unit: "us".into(),
                });
            }
        }
        figures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_attack_moves_is_beyond_none() {
        let reading = |response_ns| Reading { jobs: 1, latency_ns: 0, sum_ns: 0, response_ns, rival_us: 100_000 };
        let pair = |off, on| [reading(off), reading(on)];
        let own = ATTACKS[ATTACKS.len() - 1];
        let rows = vec![
            (NOTHING, pair(100_000, 90_000)),
            (POOL_OF_ONE, pair(150_000, 91_000)),
            (ATTACKS[0], pair(105_000, 95_001)),
            (own, pair(200_000, 96_002)),
        ];
        let attacks = Attacks { millis: MILLIS, rows };
        assert_eq!(attacks.aims().iter().map(|aim| (aim.value * 1e3).round()).collect::<Vec<_>>(), [5000.0, 5002.0]);
        assert_eq!(attacks.aims().iter().map(Aim::is_met).collect::<Vec<_>>(), [true, false]);
        let text = attacks.markdown();
        assert!(text.contains("| a hog | 1.0 % | 105.000 | +5.000 | 95.001 | +5.001 |"), "{text}");
        assert!(attacks.headline().contains("is 5.0 us later than without** (pool of 900;"), "{}", attacks.headline());
    }
}
