//! The cost of groups for their threads. Threads that count and yield to each other are compared under SCHED_DS and
//! SCHED_FIFO (figure 6 of the paper).

use std::fmt::Write as _;

use macrotick_lab::{taken_along, Flavor, GuestJob};
use macrotick_model::Duration;
use macrotick_report::Figure;

use super::thread_guest;
use crate::error::BenchError;
use crate::kit::aims::Aim;
use crate::kit::bench::Bench;
use crate::kit::loads::Load;
use crate::kit::policy::Policy;
use crate::kit::scale::Scale;
use crate::kit::variant::Variant;
use crate::kit::{disk, lab, process};

/// The group's share of the CPU, in percent.
pub const SHARE: u32 = 40;

/// The combinations of a run.
struct Sweep {
    periods_us: &'static [u32],
    yields_us: &'static [u64],
    loads: &'static [Load],
    /// The length of each run. It is a whole number of all server periods.
    seconds: u64,
}

const ALL: Sweep = Sweep {
    periods_us: &[1000, 2500, 5000, 7500, 10_000],
    yields_us: &[100, 1000, 10_000],
    loads: &[Load::Hog, Load::Io, Load::Network, Load::Timers],
    seconds: 3,
};
const QUICK: Sweep =
    Sweep { periods_us: &[1000, 2500], yields_us: &[YIELD_US], loads: &[Load::Io, Load::Timers], seconds: 1 };

fn sweep(scale: Scale) -> Sweep {
    scale.of(ALL, QUICK)
}

/// Returns the milliseconds of each run.
pub fn extent(scale: Scale) -> Vec<u64> {
    let Sweep { periods_us, yields_us, loads, seconds } = sweep(scale);
    let alone = (1 + periods_us.len()) * yields_us.len();
    vec![seconds * 1000; alone + loads.len() * SWITCHED.len()]
}

/// The server period, and the time before a yield, of the runs with a load.
const PERIOD_US: u32 = 2500;
const YIELD_US: u64 = 1000;
/// The states of TimerShield in the runs with a load.
const SWITCHED: [Variant; 2] = [Variant::Off, Variant::On];
/// The greatest overhead, in percentage points.
const AIM: f64 = 0.05;
const AIM_LOADED: f64 = 0.1;
const UNIT: &str = "percentage points";

/// A run that the host requests from the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The policy of the threads that count.
    pub policy: Policy,
    /// The server period.
    pub period_us: u32,
    /// The time for which a thread counts before it yields.
    pub yield_us: u64,
    /// The length of the run.
    pub seconds: u64,
    /// The load that runs beside the threads.
    pub load: Load,
    /// The state of TimerShield.
    pub variant: Variant,
}

impl Request {
    fn words(&self) -> [String; 6] {
        let Request { policy, period_us, yield_us, seconds, load, variant } = self;
        [
            policy.name().into(),
            period_us.to_string(),
            yield_us.to_string(),
            seconds.to_string(),
            load.name().into(),
            variant.name().into(),
        ]
    }

    /// Parses the words of a command line.
    pub fn from_words(words: &[&str]) -> Result<Request, String> {
        let &[policy, period, yields, seconds, load, variant] = words else { return Err("six words".into()) };
        Ok(Request {
            policy: Policy::from_name(policy)?,
            period_us: process::number(period)?,
            yield_us: process::number(yields)?,
            seconds: process::number(seconds)?,
            load: Load::from_name(load)?,
            variant: Variant::from_name(variant).ok_or_else(|| format!("no variant `{variant}`"))?,
        })
    }

    fn job(&self) -> Result<GuestJob, BenchError> {
        let words = std::iter::once(thread_guest::COUNT.to_owned()).chain(self.words());
        let mut job = lab::job(Flavor::Patched, words);
        job.wall_limit = Duration::from_secs(900);
        if self.load == Load::Io {
            job.files.extend(taken_along(&[disk::MAKER.into()], job.image)?);
        }
        Ok(job)
    }

    /// Runs the guest, and returns the number of rounds.
    fn measure(&self) -> Result<u64, BenchError> {
        lab::read(&self.job()?, "rounds", parse)
    }
}

fn parse(output: &str) -> Option<u64> {
    output.trim().strip_prefix("rounds ")?.parse().ok().filter(|&rounds| rounds > 0)
}

/// One run of a group. `overhead` is the missing part of its share of the rounds under SCHED_FIFO, in percentage
/// points.
struct Row {
    request: Request,
    overhead: f64,
}

/// All runs.
pub struct Yields {
    rows: Vec<Row>,
}

fn overhead(fifo: u64, ds: u64) -> f64 {
    f64::from(SHARE) - ds as f64 / fifo as f64 * 100.0
}

impl Yields {
    /// Runs everything in the lab.
    pub fn measure(bench: &Bench) -> Result<Yields, BenchError> {
        let Sweep { periods_us, yields_us, loads, seconds } = sweep(bench.scale);
        let mut rows = Vec::new();
        let ds = |period_us, yield_us, load, variant| {
            let request = Request { policy: Policy::Ds, period_us, yield_us, seconds, load, variant };
            lab::announce(&format!("{}: {}", bench.name, request.words().join(" ")));
            Ok::<_, BenchError>((request, request.measure()?))
        };
        for &yield_us in yields_us {
            let (load, variant) = (Load::None, Variant::Off);
            let reference = Request { policy: Policy::Fifo, period_us: PERIOD_US, yield_us, seconds, load, variant };
            lab::announce(&format!("{}: {}", bench.name, reference.words().join(" ")));
            let fifo = reference.measure()?;
            let mut add = |(request, rounds)| rows.push(Row { request, overhead: overhead(fifo, rounds) });
            for &period_us in periods_us {
                add(ds(period_us, yield_us, load, variant)?);
            }
            if yield_us == YIELD_US {
                for &load in loads {
                    for variant in SWITCHED {
                        add(ds(PERIOD_US, YIELD_US, load, variant)?);
                    }
                }
            }
        }
        Ok(Yields { rows })
    }

    fn most(&self, of: impl Fn(&Request) -> bool) -> f64 {
        let chosen = self.rows.iter().filter(|row| of(&row.request));
        chosen.map(|row| row.overhead).fold(f64::NEG_INFINITY, f64::max)
    }

    /// Returns the aims.
    pub fn aims(&self) -> Vec<Aim> {
        let aim = |what: &str, value, limit| Aim { what: what.into(), unit: UNIT, value, limit };
        let loaded = |variant| self.most(|one| one.load != Load::None && one.variant == variant);
        let alone = self.most(|one| one.load == Load::None && one.period_us == PERIOD_US);
        vec![
            aim("overhead at 2.5 ms, most over the yielding periods", alone, AIM),
            aim("overhead beside a load, most, TimerShield off", loaded(Variant::Off), AIM_LOADED),
            aim("overhead beside a load, most, TimerShield on", loaded(Variant::On), AIM_LOADED),
        ]
    }

    /// Returns the least and the greatest overhead without a load, for server periods of 1 and of 2.5 ms.
    pub fn ranges(&self) -> [String; 2] {
        [1000, PERIOD_US].map(|period| {
            let alone = |one: &Request| one.load == Load::None && one.period_us == period;
            let least = -self
                .rows
                .iter()
                .filter(|row| alone(&row.request))
                .map(|row| -row.overhead)
                .fold(f64::NEG_INFINITY, f64::max);
            format!("{least:.3} to {:.3}", self.most(alone))
        })
    }

    /// Returns the tables of both parts of the figure.
    pub fn markdown(&self, scale: Scale) -> String {
        let Sweep { periods_us, yields_us, loads, .. } = sweep(scale);
        let value = |of: &dyn Fn(&Request) -> bool| {
            self.rows.iter().find(|row| of(&row.request)).map_or(String::new(), |row| format!("{:.4}", row.overhead))
        };
        let mut text = format!(
            "### overhead of a group with {SHARE} %\n\n| server period | yielding every {} ms |\n|---|{}\n",
            yields_us.iter().map(|&us| (us as f64 / 1e3).to_string()).collect::<Vec<_>>().join(" ms | "),
            "---:|".repeat(yields_us.len())
        );
        for &period in periods_us {
            let cells = yields_us.iter().map(|&yield_us| {
                value(&|one| (one.period_us, one.yield_us, one.load) == (period, yield_us, Load::None))
            });
            let cells = cells.collect::<Vec<_>>().join(" | ");
            let _ = writeln!(text, "| {} ms | {cells} |", f64::from(period) / 1e3);
        }
        text += "\n| load, at 2.5 ms and 1 ms | TimerShield off | on |\n|---|---:|---:|\n";
        for load in loads {
            let cells = SWITCHED.map(|variant| value(&|one| one.load == *load && one.variant == variant));
            let _ = writeln!(text, "| {} | {} |", load.name(), cells.join(" | "));
        }
        format!("{text}\nIn percentage points.\n")
    }

    /// Returns the same values as figures.
    pub fn figures(&self) -> Vec<Figure> {
        let figure = |row: &Row| Figure {
            figure: "overhead".into(),
            case: row.request.words()[1..].join(" "),
            value: row.overhead,
            unit: UNIT.into(),
        };
        self.rows.iter().map(figure).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(period_us: u32, load: Load, variant: Variant) -> Request {
        Request { policy: Policy::Ds, period_us, yield_us: YIELD_US, seconds: ALL.seconds, load, variant }
    }

    #[test]
    fn a_command_line_is_read_as_it_was_written() {
        for load in Load::ALL {
            let request = request(1000, load, Variant::On);
            let words = request.words();
            assert_eq!(Request::from_words(&words.each_ref().map(String::as_str)), Ok(request));
        }
        assert!(Request::from_words(&["ds", "1", "1", "1", "nothing", "on"]).is_err());
        assert!(Request::from_words(&["rr", "1", "1", "1", "alone", "on"]).is_err());
    }

    #[test]
    fn overhead_is_what_is_missing_of_the_share() {
        assert!((overhead(1000, 399) - 0.1).abs() < 1e-9);
        let row = |request, overhead| Row { request, overhead };
        let yields = Yields {
            rows: vec![
                row(request(2500, Load::None, Variant::Off), 0.05),
                row(request(1000, Load::None, Variant::Off), 0.2),
                row(request(2500, Load::Timers, Variant::Off), 0.3),
                row(request(2500, Load::Timers, Variant::On), 0.1),
            ],
        };
        assert_eq!(yields.aims().iter().map(Aim::is_met).collect::<Vec<_>>(), [true, false, true]);
        let text = yields.markdown(Scale::Full);
        assert!(
            text.contains("| 2.5 ms |  | 0.0500 |  |\n") && text.contains("| timers | 0.3000 | 0.1000 |\n"),
            "{text}"
        );
    }

    #[test]
    fn output_is_a_number() {
        assert_eq!([parse("rounds 12\n"), parse("rounds 0\n"), parse("")], [Some(12), None, None]);
    }
}
