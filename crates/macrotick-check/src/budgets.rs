//! Groups beside the windows of a plan: whether their tasks meet their deadlines, and whether the CPUs have room.

use macrotick_analysis::servers::{self, Host};
use macrotick_model::Plan;

use crate::violation::Violation;
use crate::Verdict;

/// Analyses the groups, if the system has any.
pub(crate) fn check(plan: &Plan, verdict: &mut Verdict) {
    if plan.system.servers().next().is_none() {
        return;
    }
    match Host::of(plan).and_then(|host| servers::analyse(&host)) {
        Ok(analysis) => {
            let refusals = analysis.refusals.iter().cloned();
            verdict.violations.extend(refusals.map(|refusal| Violation::Groups { refusal }));
            verdict.groups = Some(analysis);
        }
        Err(error) => verdict.violations.push(Violation::GroupsUnknown { error: error.to_string() }),
    }
}
