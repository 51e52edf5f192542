//! The deadlines of tasks: upper limits of their response times.

use std::collections::BTreeMap;

use super::element::{Element, Key, Refusal};
use super::model::Model;
use super::units::time;
use crate::findings::Findings;

/// The least limit in nanoseconds of each task that has one, with its requirement.
pub type Deadlines<'a> = BTreeMap<Key, (i64, Element<'a>)>;

/// Reads the requirements of all files.
///
/// # Errors
///
/// If a reference names no element, or a limit is not above zero.
pub fn deadlines<'a>(model: &Model<'a>, findings: &mut Findings) -> Result<Deadlines<'a>, Refusal> {
    let mut deadlines = Deadlines::new();
    for requirement in model.all("constraintsModel", "requirements") {
        let limit = requirement.child("limit").filter(|limit| is_response_time(requirement, *limit));
        let Some(value) = limit.and_then(|limit| limit.child("limitValue")) else {
            findings.remark(requirement.path(), "only upper limits of the response times of tasks become deadlines");
            continue;
        };
        let length = time(value)?.down().unwrap_or(i64::MAX);
        if length <= 0 {
            return Err(value.refusal("a deadline must be longer than zero"));
        }
        for task in model.targets(requirement, "process")? {
            let known = deadlines.entry(task.key()).or_insert((length, requirement));
            if length < known.0 {
                *known = (length, requirement);
            }
        }
    }
    Ok(deadlines)
}

fn is_response_time(requirement: Element, limit: Element) -> bool {
    requirement.kind() == "ProcessRequirement"
        && limit.kind() == "TimeRequirementLimit"
        && limit.attribute("limitType") == Some("UpperLimit")
        && limit.attribute("metric") == Some("ResponseTime")
}
