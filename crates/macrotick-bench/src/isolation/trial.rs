//! A trial of a task and a rival: the request to the lab, and the readings.

use macrotick_lab::{taken_along, GuestJob};
use macrotick_model::Duration;

use super::rivals::{Program, Rival, NOTHING};
use super::set_guest::VICTIM;
use super::victim::STRESS;
use crate::error::BenchError;
use crate::kit::policy::Policy;
use crate::kit::variant::Variant;
use crate::kit::{disk, lab, process};

/// A rival that used less processor time in a trial did not run.
const LEAST_US: u64 = 100_000;

/// A trial that the host requests from the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The policy of the task.
    pub policy: Policy,
    /// The lead of its group; zero for no lead.
    pub lead_us: u32,
    /// The kernel, and the state of TimerShield.
    pub variant: Variant,
    /// The period of the task.
    pub period_ns: u32,
    /// The time from time zero to the first release. It moves the releases away from the tick.
    pub phase_ns: u32,
    /// The work of a job.
    pub work_us: u64,
    /// The length of the trial.
    pub millis: u64,
    /// The rival.
    pub rival: Rival,
}

/// The readings of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The number of jobs.
    pub jobs: u64,
    /// The greatest latency, in nanoseconds.
    pub latency_ns: u64,
    /// The sum of all latencies.
    pub sum_ns: u64,
    /// The longest time from a release to the end of the job.
    pub response_ns: u64,
    /// The processor time of the rival.
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

    /// Parses the words of a command line.
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

    /// Runs the trial.
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

    /// Returns the mean latency, in microseconds.
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
