//! The verdicts of all checks.

use serde::Serialize;

use crate::check::{Check, Mend, Verdict};
use crate::checks;
use crate::host::Host;
use crate::needs::Needs;

/// The verdict of one check on a host.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Examined {
    /// The name of the check.
    pub name: &'static str,
    /// Its place in the order of effects.
    pub rank: u8,
    /// Whether the plan depends on it.
    pub needed: bool,
    /// The state of a fit host.
    pub states: &'static str,
    /// The effect of another state.
    pub why: &'static str,
    /// Where the expected state comes from.
    pub source: &'static str,
    /// The verdict.
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// The verdicts of all checks: first those that the plan depends on, each part in the order of effects.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Examination {
    /// The system, if there is a description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// The release of the kernel.
    pub kernel: String,
    /// The verdicts.
    pub checks: Vec<Examined>,
}

/// The checks of what a `profile` of the description sets up for the time of a deployment
/// (`macrotick-host/src/profile`).
const PROFILE: [&str; 16] = [
    "ksoftirqd",
    "ktimers",
    "network-threads",
    "interrupt-threads",
    "interrupt-cpus",
    "default-interrupt-cpus",
    "interrupt-thread-cpus",
    "throttling",
    "fair-server",
    "isolation",
    "timer-migration",
    "watchdogs",
    "workqueues",
    "governor",
    "idle-states",
    "packet-steering",
];

/// Examines a host.
pub fn examine(host: &Host, needs: &Needs) -> Examination {
    let mut checks: Vec<Examined> = checks::all().map(|check| judged(check, host, needs)).collect();
    checks.sort_by_key(|examined| (!examined.needed, examined.rank));
    Examination { system: needs.system.clone(), kernel: host.kernel.release.clone(), checks }
}

fn judged(check: &'static Check, host: &Host, needs: &Needs) -> Examined {
    let Check { name, rank, states, why, source, is_needed, judge, .. } = *check;
    let needed = needs.is_described() && is_needed(needs);
    Examined { name, rank, needed, states, why, source, verdict: judge(host, needs) }
}

impl Examination {
    /// Returns the checks with a bad verdict that the plan depends on, and that no profile sets up.
    pub fn delays(&self, has_profile: bool) -> impl Iterator<Item = &Examined> {
        self.findings().filter(move |found| found.needed && !(has_profile && PROFILE.contains(&found.name)))
    }

    /// Returns the checks with a bad verdict.
    pub fn findings(&self) -> impl Iterator<Item = &Examined> {
        self.checks.iter().filter(|examined| examined.verdict.is_bad())
    }

    /// Whether no check has a bad verdict. With a description only the checks count that its plan depends on.
    pub fn is_fit(&self) -> bool {
        self.findings().all(|examined| self.system.is_some() && !examined.needed)
    }

    /// Returns the steps that `--fix` makes, in the order of the checks, with the name of the check.
    pub fn steps(&self) -> impl Iterator<Item = (&'static str, &Mend)> {
        let steps = self.findings().filter_map(|examined| Some((examined.name, examined.verdict.finding()?)));
        steps.flat_map(|(name, finding)| finding.mend.iter().map(move |mend| (name, mend)))
    }
}
