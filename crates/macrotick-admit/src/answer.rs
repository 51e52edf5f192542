//! The answer for one container.

use std::path::Path;

use macrotick_analysis::servers::{self, Admission, Change, Host, HostError, Refusal, ServersError, TaskAnalysis};
use macrotick_model::{Container, Duration, Finding, Group, Plan};
use macrotick_plan::Watch;
use serde::Serialize;

use crate::described::Found;
use crate::{AdmitError, Base};

/// The answer for one container. It can be serialized, for programs.
#[derive(Serialize)]
pub struct Answer {
    #[serde(skip)]
    pub(crate) container: Container,
    pub(crate) name: String,
    #[serde(flatten)]
    pub(crate) verdict: Verdict,
}

#[derive(Serialize)]
#[serde(tag = "answer", rename_all = "kebab-case")]
pub(crate) enum Verdict {
    Admitted(Box<Place>),
    Refused { reasons: Vec<Reason> },
}

/// The place of a container, and the changes that it needs.
#[derive(Serialize)]
pub(crate) struct Place {
    pub cpu: u32,
    pub priority: u32,
    pub budget: Duration,
    pub tasks: Vec<TaskAnalysis>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub slots: Vec<SlotPlace>,
    pub changes: Vec<Change>,
    #[serde(skip)]
    pub host: Host,
    /// The container as a group of the system.
    #[serde(skip)]
    pub group: Group,
}

/// The place of a slot in the gates of the plan.
#[derive(Serialize)]
pub(crate) struct SlotPlace {
    pub interface: String,
    #[serde(flatten)]
    pub slot: macrotick_check::network::Slot,
}

#[derive(Serialize)]
pub(crate) struct Reason {
    pub text: String,
    /// The analysis's reason; `None`: the analysis has no objection, but there is no plan with the container.
    #[serde(flatten)]
    pub refusal: Option<Refusal>,
}

impl Answer {
    /// Whether the container fits.
    pub fn is_admitted(&self) -> bool {
        matches!(self.verdict, Verdict::Admitted(_))
    }
}

/// Admits the container that `path` describes, if it fits.
pub(crate) fn answer(
    base: &mut Base,
    path: &Path,
    container: &Container,
    watch: &dyn Watch,
) -> Result<Answer, AdmitError> {
    if base.names.contains(&container.name) {
        let text = format!("duplicate name `{}`: another task, group or process has this name", container.name);
        return Err(refused(path, "container", text, Some("give it another one")));
    }
    if base.described.is_none() && !container.slots.is_empty() {
        let text = "slots need new gates, and so the description of the system".into();
        return Err(refused(path, "slots", text, Some("admit the container to a description with `--system`")));
    }
    let answer = match &mut base.described {
        Some(described) if container.priority.is_some() && described.by_criticality() => {
            let text = "the priorities of the system's groups follow from their criticality".into();
            return Err(refused(path, "priority", text, Some("leave it out: it follows from `criticality`")));
        }
        Some(described) => described.admit(container, watch)?,
        None => here(&base.host, container),
    };
    let verdict = match answer {
        Found::Admitted(admission, group) => {
            let Admission { cpu, priority, budget, tasks, changes, host } = *admission;
            base.host = host.clone();
            let changes = base.described.as_ref().map_or(changes.clone(), |described| described.to_change(&changes));
            let slots = base.described.as_ref().map_or(Vec::new(), |described| slots(described.plan(), container));
            Verdict::Admitted(Box::new(Place { cpu, priority, budget, tasks, slots, changes, host, group: *group }))
        }
        Found::Refused(ServersError::Refused(refusals)) => {
            let reason = |refusal: Refusal| Reason { text: refusal.to_string(), refusal: Some(refusal) };
            Verdict::Refused { reasons: refusals.into_iter().map(reason).collect() }
        }
        Found::Refused(ServersError::Invalid(error)) => return Err(misfit(path, container, &error)),
        Found::NoPlan(why) => {
            Verdict::Refused { reasons: why.into_iter().map(|text| Reason { text, refusal: None }).collect() }
        }
    };
    Ok(Answer { container: container.clone(), name: container.name.clone(), verdict })
}

/// Returns the slots of a container in a plan.
fn slots(plan: &Plan, container: &Container) -> Vec<SlotPlace> {
    let all = macrotick_check::network::placed_slots(plan).into_iter();
    let own = all.filter(|(_, slot)| slot.group == container.name);
    own.map(|(interface, slot)| SlotPlace { interface, slot }).collect()
}

/// Answers for the present windows, which do not change.
fn here(host: &Host, container: &Container) -> Found {
    match servers::admit(host, &servers::Container::of(container)) {
        Ok(admission) => {
            // As for the hook's containers: otherwise no budget would bound a thread under SCHED_FIFO.
            let group = admission.group_of(container, true);
            Found::Admitted(Box::new(admission), Box::new(group))
        }
        Err(error) => Found::Refused(error),
    }
}

/// Makes an error of a description that is wrong only on this host.
fn misfit(path: &Path, container: &Container, error: &HostError) -> AdmitError {
    let (at, hint) = match error {
        HostError::Twice { .. } => {
            ("container".to_string(), Some("the host has a group of that name: give it another one"))
        }
        HostError::UnknownCpu { .. } => ("cpus".into(), None),
        HostError::SamePriority { .. } => ("priority".into(), Some("leave it out: it follows from `criticality`")),
        HostError::BeyondPeriod { .. } => ("budget".into(), None),
        HostError::BoundPeriod { task, .. } => {
            let index = container.tasks.iter().position(|other| other.name == *task).unwrap_or(0);
            (format!("tasks[{index}].period"), None)
        }
        _ => ("container".into(), None),
    };
    refused(path, &at, error.to_string(), hint)
}

fn refused(path: &Path, at: &str, message: String, hint: Option<&str>) -> AdmitError {
    let finding = Finding { at: at.into(), message, hint: hint.map(String::from) };
    Container::refuse_file(path, vec![finding]).into()
}
