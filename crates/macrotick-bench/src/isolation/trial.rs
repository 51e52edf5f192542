//! A task that is disturbed: what the lab is asked for, and what it tells.

use macrotick_lab::{taken_along, GuestJob};
use macrotick_model::Duration;

use super::rivals::{Program, Rival, NOTHING};
use super::set_guest::VICTIM;
use super::victim::STRESS;
use crate::error::BenchError;
use crate::kit::policy::Policy;
use crate::kit::variant::Variant;
use crate::kit::{disk, lab, process};

/// Rivals that have had less in all of a trial have not run.
const LEAST_US: u64 = 100_000;

/// What the guest is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Of the task.
    pub policy: Policy,
    /// Of its group; zero: none.
    pub lead_us: u32,
    /// The kernel, and TimerShield's switch.
    pub variant: Variant,
    /// Of the task.
    pub period_ns: u32,
    /// By which the first release is later than time zero, and with it beyond the tick.
    pub phase_ns: u32,
    /// What a job takes.
    pub work_us: u64,
    /// How long.
    pub millis: u64,
    /// What runs beside.
    pub rival: Rival,
}

/// What it tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// How many there were.
    pub jobs: u64,
    /// The most that one began late, in nanoseconds.
    pub latency_ns: u64,
    /// What they began late together.
    pub sum_ns: u64,
    /// The longest from a release to the end of the job.
    pub response_ns: u64,
    /// Processor time of what ran beside.
    pub rival_us: u64,
}

impl Request {
    fn words(&self) -> [String; 8] {
        [
            self.policy.name().into(),
            self.lead_us.to_string(),
            self.variant.name().into(),
            self.period_ns.to_string(),
            self.phase_ns.to_string(),
            self.work_us.to_string(),
            self.millis.to_string(),
            self.rival.word(),
        ]
    }

    /// What a command line asks for.
    pub fn from_words(words: &[&str]) -> Result<Request, String> {
        let &[policy, lead, variant, period, phase, work, millis, rival] = words else {
            return Err("eight words".into());
        };
        Ok(Request {
            policy: Policy::from_name(policy)?,
            lead_us: process::number(lead)?,
            variant: Variant::from_name(variant).ok_or_else(|| format!("no variant `{variant}`"))?,
            period_ns: process::number(period)?,
            phase_ns: process::number(phase)?,
            work_us: process::number(work)?,
            millis: process::number(millis)?,
            rival: Rival::from_word(rival)?,
        })
    }

    fn job(&self) -> Result<GuestJob, BenchError> {
        let words = std::iter::once(VICTIM.to_owned()).chain(self.words());
        let mut job = lab::job(self.variant.flavor(), words);
        job.wall_limit = Duration::from_secs(1800);
        let stress = matches!(self.rival.program, Program::Stress(_)).then_some(STRESS);
        let maker = self.rival.is_load().then_some(disk::MAKER);
        let needed: Vec<String> = stress.into_iter().chain(maker).map(String::from).collect();
        job.files.extend(taken_along(&needed, job.image)?);
        Ok(job)
    }

    /// Runs it.
    pub fn measure(&self, bench: &str) -> Result<Reading, BenchError> {
        lab::announce(&format!("{bench}: {}", self.words().join(" ")));
        let has_run = |reading: &Reading| self.rival == NOTHING || reading.rival_us >= LEAST_US;
        lab::read(&self.job()?, "readings", |output| Reading::parse(output).filter(has_run))
    }
}

impl Reading {
    fn parse(output: &str) -> Option<Reading> {
        let words: Vec<&str> = output.split_whitespace().collect();
        let value = |key: &str| words.chunks(2).find(|pair| pair[0] == key)?.get(1)?.parse().ok();
        Some(Reading {
            jobs: value("jobs").filter(|&jobs: &u64| jobs > 0)?,
            latency_ns: value("latency")?,
            sum_ns: value("sum")?,
            response_ns: value("response")?,
            rival_us: value("rival")?,
        })
    }

    /// What jobs began late on average, in microseconds.
    pub fn mean_us(&self) -> f64 {
        self.sum_ns as f64 / self.jobs as f64 / 1e3
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_read_as_it_was_written() {
        for rival in Rival::all() {
            let (policy, variant, lead_us) = (Policy::Ds, Variant::On, 9);
            let (period_ns, phase_ns) = (100_100, 70);
            let request = Request { policy, lead_us, variant, period_ns, phase_ns, work_us: 0, millis: 5000, rival };
            let words = request.words();
            assert_eq!(Request::from_words(&words.each_ref().map(String::as_str)), Ok(request));
        }
        assert!(Request::from_words(&["ds", "0", "on", "1", "1", "1", "1", "meteor"]).is_err());
    }

    #[test]
    fn output_is_named_numbers() {
        let reading = Reading::parse("jobs 4 latency 900 sum 2000 response 1200 rival 7\n").unwrap();
        assert_eq!((reading.latency_ns, reading.response_ns, reading.rival_us), (900, 1200, 7));
        assert!((reading.mean_us() - 0.5).abs() < 1e-9);
        assert_eq!(Reading::parse("jobs 0 latency 900 sum 2000 response 1200 rival 7\n"), None);
        assert_eq!(Reading::parse("jobs 4\n"), None);
    }
}
