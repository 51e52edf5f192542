//! A description to which containers are admitted: each container is checked in the plan that includes it.
//!
//! With another group, a solver may place windows differently. Values that a description leaves open are computed
//! again. So an answer for the windows without the container does not hold for the windows with it.

use std::path::{Path, PathBuf};

use macrotick_analysis::servers::{self, Admission, Change, Host, ServersError, TaskAnalysis};
use macrotick_model::{Container, Group, LoadError, Plan, System};
use macrotick_plan::{Options, Solver, Watch};

use crate::planned::{planned, planned_or_not};
use crate::AdmitError;

/// The most rounds in which the container is admitted again because the windows moved.
const ROUNDS: usize = 4;

/// A description with the containers admitted so far, and its plan.
#[derive(Clone)]
pub struct Described {
    path: PathBuf,
    system: System,
    plan: Plan,
    /// The violations of the plan without any container.
    faults: Vec<String>,
}

/// The answer for one container.
pub enum Found {
    /// It fits: the host with the container, its place there, and the group for the description.
    Admitted(Box<Admission>, Box<Group>),
    /// It does not fit: the reasons from the analysis.
    Refused(ServersError),
    /// It would fit, but no plan with it keeps every rule: the reasons.
    NoPlan(Vec<String>),
}

impl Described {
    /// Loads and plans a description.
    pub fn load(path: &Path, watch: &dyn Watch) -> Result<Described, AdmitError> {
        let system = System::load(path)?;
        let plan = planned(path, &system, Solver::default_for(&system), Options::default(), watch)?;
        let verdict = macrotick_check::check(&plan);
        let faults = verdict.violations.iter().map(|violation| format!("without it: {violation}")).collect();
        Ok(Described { path: path.into(), system, plan, faults })
    }

    /// Returns the plan with the admitted containers.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Whether priorities of groups follow from criticality: then no group states its own.
    pub fn by_criticality(&self) -> bool {
        self.system.servers().any(|group| group.priority.is_none())
    }

    /// Admits a container, and makes it one of the groups.
    pub fn admit(&mut self, container: &Container, watch: &dyn Watch) -> Result<Found, AdmitError> {
        if !self.faults.is_empty() {
            return Ok(Found::NoPlan(self.faults.clone()));
        }
        if self.system.network.is_none() && !container.slots.is_empty() {
            return Ok(Found::NoPlan(vec!["the system has no `network`: there is no interface for its slots".into()]));
        }
        let mut tables = self.plan.clone();
        let mut why = Vec::new();
        for _ in 0..ROUNDS {
            let host = Host::of(&tables).map_err(AdmitError::DescribedHost)?;
            let admission = match servers::admit(&host, &servers::Container::of(container)) {
                Ok(admission) => admission,
                Err(error) => return Ok(Found::Refused(error)),
            };
            let (system, group) = self.with(container, &admission);
            let problems = system.problems();
            if !problems.is_empty() {
                return Ok(Found::NoPlan(problems));
            }
            let plan =
                match planned_or_not(&self.path, &system, Solver::default_for(&system), Options::default(), watch) {
                    Ok(plan) => plan,
                    // The error's positions are those of a description without the new group.
                    Err(AdmitError::Infeasible(LoadError::Description(found))) => {
                        return Ok(Found::NoPlan(found.iter().map(|finding| finding.message.clone()).collect()));
                    }
                    Err(error) => return Err(error),
                };
            let verdict = macrotick_check::check(&plan);
            if verdict.is_feasible() {
                let admission = as_planned(&plan, admission)?;
                (self.system, self.plan) = (system, plan);
                return Ok(Found::Admitted(Box::new(admission), Box::new(group)));
            }
            why = verdict.violations.iter().map(|violation| format!("in the plan with it: {violation}")).collect();
            tables = without(plan, &container.name);
        }
        Ok(Found::NoPlan(why))
    }

    /// Returns the description with the container as a group and with the changes for it, and that group. Values that
    /// the description leaves open stay open.
    fn with(&self, container: &Container, admission: &Admission) -> (System, Group) {
        let mut system = self.system.clone();
        for change in &admission.changes {
            let (Change::Budget { group: name, .. } | Change::Priority { group: name, .. }) = change;
            let Some(group) = system.groups.iter_mut().find(|group| group.name == *name) else { continue };
            match change {
                Change::Budget { to, .. } => group.budget = group.budget.map(|budget| budget.max(*to)),
                Change::Priority { to, .. } => group.priority = group.priority.map(|_| *to),
            }
        }
        // As for the hook's containers: otherwise no budget would bound a thread under SCHED_FIFO.
        let mut group = admission.group_of(container, true);
        let follows = self.by_criticality() || system.servers().next().is_none() && container.priority.is_none();
        group.priority = group.priority.filter(|_| !follows);
        system.groups.push(group.clone());
        if let Some(network) = &mut system.network {
            network.slots.extend(container.slots());
        }
        (system, group)
    }

    /// Returns the changes that the user must make in the description: not those of values that it leaves open.
    pub fn to_change(&self, changes: &[Change]) -> Vec<Change> {
        let stands = |change: &&Change| {
            let (Change::Budget { group: name, .. } | Change::Priority { group: name, .. }) = *change;
            let group = self.system.groups.iter().find(|group| group.name == *name);
            group.is_some_and(|group| match change {
                Change::Budget { .. } => group.budget.is_some(),
                Change::Priority { .. } => group.priority.is_some(),
            })
        };
        changes.iter().filter(stands).cloned().collect()
    }
}

/// Returns the admission with the numbers of the plan that contains it.
fn as_planned(plan: &Plan, admission: Admission) -> Result<Admission, AdmitError> {
    let host = Host::of(plan).map_err(AdmitError::DescribedHost)?;
    let analysis = servers::analyse(&host).map_err(AdmitError::DescribedHost)?;
    let group = host.groups.last().expect("the container's group was added");
    let found = analysis.groups.iter().find(|found| found.name == group.name);
    let tasks: Vec<TaskAnalysis> =
        found.into_iter().flat_map(|group| &group.servers).flat_map(|s| s.tasks.clone()).collect();
    Ok(Admission { priority: group.priority, tasks, host, ..admission })
}

/// Returns the plan with its windows, and without one of its groups.
fn without(mut plan: Plan, group: &str) -> Plan {
    plan.system.groups.retain(|other| other.name != group);
    if let Some(network) = &mut plan.system.network {
        network.slots.retain(|slot| slot.group != group);
    }
    plan
}
