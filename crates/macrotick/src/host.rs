//! What a container is admitted to: what runs on this host, or what a description says of one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use macrotick_check::servers::{Bandwidth, Cpu, Group, GroupTask, Host, Phase, Refill, Server};
use macrotick_model::validate::MIN_BUDGET;
use macrotick_model::Duration;
use macrotick_node::{Present, PresentGroup};

use crate::error::CliError;
use crate::input::plan_from;

/// A host to admit containers to.
pub struct Base {
    /// The host.
    pub host: Host,
    /// What it is, in a line.
    pub what: String,
    /// What is to be known of it.
    pub remarks: Vec<String>,
    /// Of a host that runs: the directories of each of its groups.
    pub directories: Option<Vec<(String, Vec<PathBuf>)>>,
}

impl Base {
    /// What runs on this host.
    pub fn here() -> Result<Base, CliError> {
        let present = macrotick_node::present()?;
        let together = together(&present.groups);
        let host = host(&present, &together);
        host.validate().map_err(CliError::PresentHost)?;
        let paths = |groups: &[&PresentGroup]| groups.iter().map(|group| group.path.clone()).collect();
        let directories = together.iter().map(|groups| (name(groups), paths(groups))).collect();
        let running = present.system.as_ref().map_or(String::new(), |system| format!(", deployment `{system}`"));
        let what = format!("this host{running}: {}", sum_up(&host, present.groups.len()));
        Ok(Base { host, what, remarks: remarks(&present), directories: Some(directories) })
    }

    /// What a description or plan says.
    pub fn described(path: &Path) -> Result<Base, CliError> {
        let plan = plan_from(path)?;
        let host = Host::of(&plan).map_err(CliError::DescribedHost)?;
        host.validate().map_err(CliError::DescribedHost)?;
        let what = format!("system `{}`: {}", plan.system.name, sum_up(&host, host.groups.len()));
        let groups = plan.system.groups.iter().map(|group| (group.name.as_str(), group.criticality));
        Ok(Base { host, what, remarks: uncritical(groups).into_iter().collect(), directories: None })
    }
}

/// The groups, with those together of which only budgets are known and that have the same priority, as all have at first:
/// they take turns, which makes no difference to anybody above or below them.
fn together(groups: &[PresentGroup]) -> Vec<Vec<&PresentGroup>> {
    let mut all: Vec<Vec<&PresentGroup>> = Vec::new();
    for group in groups {
        let like = |other: &PresentGroup| {
            group.declared.is_none() && other.declared.is_none() && other.priority == group.priority
        };
        match all.iter_mut().find(|others| like(others[0])) {
            Some(others) => others.push(group),
            None => all.push(vec![group]),
        }
    }
    all
}

fn name(groups: &[&PresentGroup]) -> String {
    groups.iter().map(|group| group.name.as_str()).collect::<Vec<_>>().join(" + ")
}

fn host(present: &Present, groups: &[Vec<&PresentGroup>]) -> Host {
    let table = present.table.as_ref();
    let phase = match table {
        Some(table) => table.refill.map_or(Phase::Any, Phase::At),
        None => Phase::At(Duration::ZERO),
    };
    Host {
        server_period: present.server_period,
        refill: Refill::Lockstep(phase),
        granule: Host::GRANULE,
        least: MIN_BUDGET,
        reserve: Host::RESERVE,
        cpus: cpus(present),
        cycle: table.map_or(Duration::ZERO, |table| table.cycle),
        lead: table.map_or(Duration::ZERO, |table| table.lead),
        tables: table.map_or(Vec::new(), |table| table.tables.clone()),
        groups: groups.iter().map(|groups| group(groups)).collect(),
        network: None,
    }
}

fn cpus(present: &Present) -> Vec<Cpu> {
    let bandwidth = |parts: u64| Bandwidth(u32::try_from(parts).unwrap_or(u32::MAX).min(Bandwidth::WHOLE.0));
    let each = present.cpus.iter().zip(&present.deadline);
    each.map(|(&cpu, &parts)| Cpu { cpu, deadline: bandwidth(parts) }).collect()
}

/// Budgets are those that groups have; all else is what the deployment's description says.
fn group(groups: &[&PresentGroup]) -> Group {
    let declared = groups[0].declared.as_ref();
    let tasks = |cpu: u32| declared.iter().flat_map(|group| &group.tasks).filter(move |task| task.cpu == cpu);
    let mut budgets: BTreeMap<u32, Duration> = BTreeMap::new();
    for &(cpu, budget) in groups.iter().flat_map(|group| &group.budgets) {
        let sum = budgets.entry(cpu).or_default();
        *sum += budget;
    }
    let server = |(cpu, budget)| Server {
        cpu,
        budget,
        may_grow: declared.is_some_and(|group| group.may_grow),
        tasks: tasks(cpu).map(GroupTask::of).collect(),
    };
    Group {
        name: name(groups),
        criticality: declared.and_then(|group| group.criticality).unwrap_or(0),
        priority: groups[0].priority,
        servers: budgets.into_iter().map(server).collect(),
        windows: declared.and_then(|group| group.pool.clone()),
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
        remarks.push(format!("nothing but their budgets is known of {names}: these they keep"));
    }
    let criticality = |group: &PresentGroup| group.declared.as_ref().and_then(|group| group.criticality);
    remarks.extend(uncritical(present.groups.iter().map(|group| (group.name.as_str(), criticality(group)))));
    if present.changes {
        remarks.push("a change of the deployment is under way: this answer is for the windows before it".into());
    }
    remarks
}

/// Who has no criticality stands below whoever has one, which may surprise.
fn uncritical<'a>(groups: impl Iterator<Item = (&'a str, Option<u32>)>) -> Option<String> {
    let without = groups.filter(|(_, criticality)| criticality.is_none());
    names(without.map(|(name, _)| name)).map(|names| format!("without a criticality, and so least critical: {names}"))
}

/// More names than this are only counted.
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

    fn present() -> Present {
        let declared = "system: s\ntasks:\n  - {name: a, period: 1ms, wcet: 1us}\ngroups:\n  - name: vision\n    \
                        criticality: 3\n    budget: 400us\n    tasks:\n      \
                        - {name: filter, period: 10ms, wcet: 100us, priority: 4}\n";
        let declared = macrotick_model::System::parse(declared, "s.yaml").unwrap().groups.remove(0);
        let group = |name: &str, priority, budgets: &[(u32, i64)], declared| PresentGroup {
            name: name.into(),
            path: format!("/sys/fs/cgroup/{name}").into(),
            priority,
            budgets: budgets.iter().map(|&(cpu, budget)| (cpu, Duration::from_micros(budget))).collect(),
            declared,
        };
        Present {
            server_period: Duration::from_micros(2500),
            cpus: vec![0, 1],
            deadline: vec![(1 << 19) + 1, 1 << 18],
            table: None,
            groups: vec![
                group("vision", 20, &[(0, 500)], Some(declared)),
                group("/web", 7, &[(0, 300), (1, 300)], None),
            ],
            system: Some("s".into()),
            changes: true,
        }
    }

    fn analysed(present: &Present) -> Host {
        host(present, &together(&present.groups))
    }

    #[test]
    fn budgets_are_what_groups_have_and_tasks_what_was_declared() {
        let host = analysed(&present());
        host.validate().unwrap();
        let (vision, web) = (&host.groups[0], &host.groups[1]);
        assert_eq!((vision.criticality, vision.priority), (3, 20));
        assert_eq!((vision.servers.len(), vision.servers[0].budget), (1, Duration::from_micros(500)));
        assert_eq!(vision.servers[0].tasks[0].name, "filter");
        assert_eq!((web.criticality, web.servers.len()), (0, 2));
        assert!(web.servers.iter().all(|server| server.tasks.is_empty()));
    }

    #[test]
    fn groups_of_one_priority_are_as_one_unless_something_is_promised_there() {
        let mut present = present();
        let budgets = vec![(1, Duration::from_micros(200))];
        present.groups.push(PresentGroup { name: "/db".into(), budgets, ..present.groups[1].clone() });
        let host = analysed(&present);
        host.validate().unwrap();
        let both: Vec<(u32, i64)> =
            host.groups[1].servers.iter().map(|server| (server.cpu, server.budget.as_nanos() / 1000)).collect();
        assert_eq!((host.groups.len(), host.groups[1].name.as_str()), (2, "/web + /db"));
        assert_eq!(both, [(0, 300), (1, 500)]);
        present.groups[0].priority = 7;
        let refused = CliError::PresentHost(analysed(&present).validate().unwrap_err()).to_string();
        assert_eq!(
            refused,
            "what runs on this host cannot be analysed: groups `/web + /db` and `vision` both have priority 7, so nothing \
             says which goes first: write another one to cpu.ds.priority of one"
        );
    }

    #[test]
    fn each_cpu_has_its_part_of_what_deadline_tasks_were_promised() {
        let cpus = analysed(&present()).cpus;
        assert_eq!(cpus.iter().map(|cpu| cpu.deadline.0).collect::<Vec<_>>(), [(1 << 19) + 1, 1 << 18]);
    }

    #[test]
    fn what_is_not_known_is_said() {
        let told = remarks(&present());
        assert_eq!(told[0], "nothing but their budgets is known of `/web`: these they keep");
        assert_eq!(told[1], "without a criticality, and so least critical: `/web`");
        let many: Vec<String> = (0..10).map(|number| number.to_string()).collect();
        let many = names(many.iter().map(String::as_str)).unwrap();
        assert!(many.starts_with("`0`, `1`, ") && many.ends_with(", `7` and 2 more"), "{many}");
        assert!(told[2].starts_with("a change of the deployment is under way"), "{told:?}");
        assert_eq!(sum_up(&analysed(&present()), 2), "2 CPUs, no windows, 2 groups with budgets of 2500us");
    }
}
