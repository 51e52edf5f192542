//! Runs a plan in the lab: the job that observes it there, and the observation that comes back.
//!
//! The agent's program observes if its first word is [`VERB`].

use std::str::FromStr;

use macrotick_model::{Backend, Duration, Observation, Plan};

use crate::error::LabError;
use crate::job::GuestJob;
use crate::kernel::Flavor;
use crate::plan_files;
use crate::progress::Progress;
use crate::run::Lab;

/// The first word for the guest's program. The plan, `--output` with the observation's file, and [`Dispatch::words`]
/// follow.
pub const VERB: &str = "observe";

const PLAN: &str = "/tmp/plan.json";
const OBSERVATION: &str = "/tmp/observation.json";
/// Wall time limits of a guest: per second of virtual time, and at least. A busy guest needs about 5 s per second.
const WALL_PER_VIRTUAL: i64 = 60;
const WALL_LEAST: Duration = Duration::from_secs(120);

/// The options of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dispatch {
    /// The mechanism that dispatches the jobs.
    pub backend: Backend,
    /// The length of the run; by default the length in the system.
    pub duration: Option<Duration>,
    /// The time from the epoch for which the threads on each CPU are traced.
    pub trace: Option<Duration>,
    /// Seed of drawn execution times.
    pub seed: u64,
    /// Whether settings of the whole host stay unchanged; a deployment would hold them.
    pub leaves_host_settings: bool,
}

impl Dispatch {
    /// Returns a run with all defaults.
    pub fn under(backend: Backend) -> Dispatch {
        Dispatch { backend, duration: None, trace: None, seed: 1, leaves_host_settings: false }
    }

    /// Returns the options of `observe`, each with its value.
    pub fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        let mut option = |name: &str, value: String| words.extend([name.to_string(), value]);
        option("--backend", self.backend.to_string());
        option("--seed", self.seed.to_string());
        if self.leaves_host_settings {
            option("--host-settings", "leave".into());
        }
        if let Some(duration) = self.duration {
            option("--duration", duration.to_string());
        }
        if let Some(trace) = self.trace {
            option("--trace", trace.to_string());
        }
        words
    }

    /// Reverses [`Dispatch::words`].
    pub fn from_words(words: &[&str]) -> Result<Dispatch, String> {
        fn parsed<T: FromStr>(name: &str, value: &str) -> Result<T, String> {
            value.parse().map_err(|_| format!("{name}: `{value}` is not valid"))
        }
        let mut dispatch = Dispatch::under(Backend::Kernel);
        for option in words.chunks(2) {
            match option {
                ["--backend", name] => {
                    let found = Backend::ALL.into_iter().find(|backend| backend.name() == *name);
                    dispatch.backend = found.ok_or_else(|| format!("there is no backend `{name}`"))?;
                }
                [name @ "--seed", value] => dispatch.seed = parsed(name, value)?,
                ["--host-settings", "leave"] => dispatch.leaves_host_settings = true,
                [name @ "--duration", value] => dispatch.duration = Some(parsed(name, value)?),
                [name @ "--trace", value] => dispatch.trace = Some(parsed(name, value)?),
                other => return Err(format!("`{}` is no option", other.join(" "))),
            }
        }
        Ok(dispatch)
    }
}

/// Returns the job that observes a plan on `cpus` virtual CPUs, by default as many as the plan needs. The plan's
/// programs that have a path come with it.
pub fn job(plan: &Plan, dispatch: &Dispatch, cpus: Option<u32>, shift: u32) -> Result<GuestJob, LabError> {
    let words = ["/bin/macrotick", VERB, PLAN, "--output", OBSERVATION].map(String::from);
    let needed = plan.system.cpus.iter().max().map_or(1, |last| last + 1);
    let job = GuestJob::new(Flavor::Patched, words.into_iter().chain(dispatch.words()));
    let mut job = job.on(cpus.unwrap_or(needed), shift);
    job.files.push((PLAN.into(), plan.to_json().into_bytes()));
    job.files.extend(plan_files::of(&plan.system)?);
    job.collect.push(OBSERVATION.into());
    let virtual_time = dispatch.duration.unwrap_or(plan.system.experiment.duration);
    job.wall_limit = WALL_LEAST + virtual_time * WALL_PER_VIRTUAL;
    job.title = Some(format!("run {virtual_time} of virtual time in the lab under `{}`", dispatch.backend));
    Ok(job)
}

impl Lab {
    /// Runs a job of [`job`] and returns the observation.
    pub fn observe(&self, job: &GuestJob, progress: &mut dyn Progress) -> Result<Observation, LabError> {
        let outcome = self.succeed(job, progress)?;
        let records = outcome.files.get(OBSERVATION).ok_or_else(|| LabError::GuestOutput {
            command: job.argv.join(" "),
            expected: "observation",
            output: outcome.stderr_text(),
        })?;
        Ok(Observation::from_json(&String::from_utf8_lossy(records), "the lab's observation.json")?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_as_they_were_written() {
        let all = Dispatch {
            backend: Backend::Fifo,
            duration: Some(Duration::from_millis(1500)),
            trace: Some(Duration::from_micros(10)),
            seed: 7,
            leaves_host_settings: true,
        };
        for dispatch in [all, Dispatch::under(Backend::Kernel)] {
            let words = dispatch.words();
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            assert_eq!(Dispatch::from_words(&words), Ok(dispatch));
        }
        for odd in [&["--backend", "none"][..], &["--seed"], &["--seed", "x"], &["--speed", "1"]] {
            assert!(Dispatch::from_words(odd).is_err(), "{odd:?}");
        }
    }
}
