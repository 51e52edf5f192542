//! The host that a container is admitted to: this host, or the one of a description.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use macrotick_analysis::servers::Host;
use macrotick_host::present::{self, Present, PresentGroup};
use macrotick_model::{Container, Plan};
use macrotick_plan::Watch;

use crate::answer::answer;
use crate::described::Described;
use crate::{AdmitError, Answer};

/// A host to admit containers to.
pub struct Base {
    /// The host.
    pub(crate) host: Host,
    /// Its summary in one line.
    pub what: String,
    /// Remarks for the user.
    pub remarks: Vec<String>,
    /// For a running host: the directories of each of its groups.
    pub(crate) directories: Option<Vec<(String, Vec<PathBuf>)>>,
    /// Names that a container cannot have: those of tasks and processes of a description or plan.
    pub(crate) names: BTreeSet<String>,
    /// The description, if the host is a described one.
    pub(crate) described: Option<Described>,
}

impl Base {
    /// Reads the groups and windows of this host.
    ///
    /// # Errors
    ///
    /// [`AdmitError::Here`] if it cannot be read, and [`AdmitError::PresentHost`] if the analysis does not cover it.
    pub fn here() -> Result<Base, AdmitError> {
        let present = present::present()?;
        let together = present::together(&present.groups);
        let host = present::analysed(&present, &together)?;
        let paths = |groups: &[&PresentGroup]| groups.iter().map(|group| group.path.clone()).collect();
        let directories = together.iter().map(|groups| (present::name(groups), paths(groups))).collect();
        let running = present.system.as_ref().map_or(String::new(), |system| format!(", deployment `{system}`"));
        let what = format!("this host{running}: {}", sum_up(&host, present.groups.len()));
        let (names, described) = (BTreeSet::new(), None);
        Ok(Base { host, what, remarks: remarks(&present), directories: Some(directories), names, described })
    }

    /// Plans a description.
    ///
    /// # Errors
    ///
    /// Those of [`planned`](crate::planned), and those of [`Base::of_plan`].
    pub fn of_description(path: &Path, watch: &dyn Watch) -> Result<Base, AdmitError> {
        let described = Described::load(path, watch)?;
        Ok(Base { described: Some(described.clone()), ..Base::of_plan(described.plan())? })
    }

    /// Takes the windows and groups of a plan.
    ///
    /// # Errors
    ///
    /// [`AdmitError::DescribedHost`] if the analysis does not cover the plan.
    pub fn of_plan(plan: &Plan) -> Result<Base, AdmitError> {
        let host = Host::of(plan).map_err(AdmitError::DescribedHost)?;
        host.validate().map_err(AdmitError::DescribedHost)?;
        let what = format!("system `{}`: {}", plan.system.name, sum_up(&host, host.groups.len()));
        let groups = plan.system.servers().map(|group| (group.name.as_str(), group.criticality));
        let remarks = uncritical(groups).into_iter().collect();
        let mut names = plan.system.names();
        names.retain(|name| plan.system.servers().all(|group| group.name != *name));
        Ok(Base { host, what, remarks, directories: None, names, described: None })
    }

    /// Admits the container that `path` describes, if it fits. Later answers count it.
    ///
    /// # Errors
    ///
    /// [`AdmitError::Load`] if the description of the container does not suit this host, and the errors of
    /// [`planned`](crate::planned).
    pub fn admit(&mut self, path: &Path, container: &Container, watch: &dyn Watch) -> Result<Answer, AdmitError> {
        answer(self, path, container, watch)
    }
}

fn sum_up(host: &Host, groups: usize) -> String {
    let count = |count: usize, noun: &str| format!("{count} {noun}{}", if count == 1 { "" } else { "s" });
    let windows: usize = host.tables.iter().map(|table| table.windows.len()).sum();
    let windows = match windows {
        0 => "no windows".to_string(),
        some => format!("{} in {}", count(some, "window"), host.cycle),
    };
    let cpus = count(host.cpus.len(), "CPU");
    format!("{cpus}, {windows}, {} with budgets of {}", count(groups, "group"), host.server_period)
}

fn remarks(present: &Present) -> Vec<String> {
    let foreign = present.groups.iter().filter(|group| group.declared.is_none());
    let foreign = names(foreign.map(|group| group.name.as_str()));
    let mut remarks = Vec::new();
    if let Some(names) = foreign {
        remarks.push(format!("only the budgets of {names} are known: they do not change"));
    }
    remarks.extend(present.groups.iter().filter_map(PresentGroup::astray));
    let criticality = |group: &PresentGroup| group.declared.as_ref().and_then(|group| group.criticality);
    remarks.extend(uncritical(present.groups.iter().map(|group| (group.name.as_str(), criticality(group)))));
    if present.changes {
        remarks.push("the deployment is changing: this answer is for the windows before the change".into());
    }
    remarks
}

/// Lists the groups without a criticality: they rank below all others, which may surprise.
fn uncritical<'a>(groups: impl Iterator<Item = (&'a str, Option<u32>)>) -> Option<String> {
    let without = groups.filter(|(_, criticality)| criticality.is_none());
    names(without.map(|(name, _)| name)).map(|names| format!("without a criticality, and so least critical: {names}"))
}

/// The most names that are listed; the others are only counted.
const SHOWN: usize = 8;

fn names<'a>(names: impl Iterator<Item = &'a str>) -> Option<String> {
    let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    let (shown, rest) = names.split_at(names.len().min(SHOWN));
    let rest = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
    (!shown.is_empty()).then(|| format!("{}{rest}", shown.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_said() {
        let present = macrotick_fixtures::present();
        let told = remarks(&present);
        assert_eq!(told[0], "only the budgets of `/web` are known: they do not change");
        assert_eq!(told[1], "without a criticality, and so least critical: `/web`");
        let many: Vec<String> = (0..10).map(|number| number.to_string()).collect();
        let many = names(many.iter().map(String::as_str)).unwrap();
        assert!(many.starts_with("`0`, `1`, ") && many.ends_with(", `7` and 2 more"), "{many}");
        assert!(told[2].starts_with("the deployment is changing"), "{told:?}");
        let host = present::analysed(&present, &present::together(&present.groups)).unwrap();
        assert_eq!(sum_up(&host, 2), "2 CPUs, no windows, 2 groups with budgets of 2500us");
    }
}
