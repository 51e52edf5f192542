//! What runs on this host, as the analysis has it.

use std::collections::BTreeMap;

use macrotick_analysis::servers::{Domain, Group, GroupTask, Host, HostError, Phase, Refill, Reserved, Server};
use macrotick_model::Duration;

use super::{Present, PresentGroup};

/// What runs on this host cannot be analysed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("what runs on this host cannot be analysed: {0}{hint}", hint = priority_hint(.0))]
pub struct Unanalysable(pub HostError);

fn priority_hint(error: &HostError) -> &'static str {
    match error {
        HostError::SamePriority { .. } => {
            ", so nothing says which goes first: write another one to cpu.ds.priority of one"
        }
        _ => "",
    }
}

/// The groups, with those together of which only budgets are known and that have the same priority, as all have at first:
/// they take turns, which makes no difference to anybody above or below them.
pub fn together(groups: &[PresentGroup]) -> Vec<Vec<&PresentGroup>> {
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

/// What they are called together.
pub fn name(groups: &[&PresentGroup]) -> String {
    groups.iter().map(|group| group.name.as_str()).collect::<Vec<_>>().join(" + ")
}

/// The host with these groups.
pub fn analysed(present: &Present, groups: &[Vec<&PresentGroup>]) -> Result<Host, Unanalysable> {
    let table = present.table.as_ref();
    let phase = match table {
        Some(table) => table.refill.map_or(Phase::Any, Phase::At),
        None => Phase::At(Duration::ZERO),
    };
    let domains = present.domains.iter();
    let host = Host {
        refill: Refill::Lockstep(phase),
        cpus: present.cpus.clone(),
        domains: domains.map(|domain| Domain::new(domain.cpus.clone(), domain.promised.into())).collect(),
        cycle: table.map_or(Duration::ZERO, |table| table.cycle),
        lead: table.map_or(Duration::ZERO, |table| table.lead),
        tables: table.map_or(Vec::new(), |table| table.tables.clone()),
        groups: groups.iter().map(|groups| group(groups)).collect(),
        reserved: Reserved::of(&present.reserved),
        ..Host::idle(present.server_period)
    };
    host.validate().map_err(Unanalysable)?;
    Ok(host)
}

/// Budgets are those that groups have; all else is what the deployment's description says.
fn group(groups: &[&PresentGroup]) -> Group {
    let declared = groups[0].declared.as_ref();
    let lead = declared.and_then(|group| group.lead);
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
        tasks: tasks(cpu).map(|task| GroupTask::of(task, lead)).collect(),
    };
    Group {
        name: name(groups),
        criticality: declared.and_then(|group| group.criticality).unwrap_or(0),
        priority: groups[0].priority,
        servers: budgets.into_iter().map(server).collect(),
        windows: declared.and_then(|group| group.pool_name()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::present::PresentDomain;
    use macrotick_model::CpuSet;

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
            cpus: CpuSet::default(),
            bound: false,
            declared,
        };
        Present {
            server_period: Duration::from_micros(2500),
            cpus: vec![0, 1],
            domains: Vec::new(),
            table: None,
            groups: vec![
                group("vision", 20, &[(0, 500)], Some(declared)),
                group("/web", 7, &[(0, 300), (1, 300)], None),
            ],
            reserved: Vec::new(),
            system: Some("s".into()),
            changes: true,
        }
    }

    fn here(present: &Present) -> Result<Host, Unanalysable> {
        analysed(present, &together(&present.groups))
    }

    #[test]
    fn budgets_are_what_groups_have_and_tasks_what_was_declared() {
        let host = here(&present()).unwrap();
        let (vision, web) = (&host.groups[0], &host.groups[1]);
        assert_eq!((vision.criticality, vision.priority), (3, 20));
        assert_eq!((vision.servers.len(), vision.servers[0].budget), (1, Duration::from_micros(500)));
        assert_eq!(vision.servers[0].tasks[0].name, "filter");
        assert_eq!((web.criticality, web.servers.len()), (0, 2));
        assert!(web.servers.iter().all(|server| server.tasks.is_empty()));
    }

    #[test]
    fn a_lead_counts_to_what_tasks_need() {
        let mut present = present();
        present.groups[0].declared.as_mut().unwrap().lead = Some(Duration::from_micros(20));
        let host = here(&present).unwrap();
        assert_eq!(host.groups[0].servers[0].tasks[0].wcet, Duration::from_micros(120));
    }

    #[test]
    fn groups_of_one_priority_are_as_one_unless_something_is_promised_there() {
        let mut present = present();
        let budgets = vec![(1, Duration::from_micros(200))];
        present.groups.push(PresentGroup { name: "/db".into(), budgets, ..present.groups[1].clone() });
        let host = here(&present).unwrap();
        let both: Vec<(u32, i64)> =
            host.groups[1].servers.iter().map(|server| (server.cpu, server.budget.as_nanos() / 1000)).collect();
        assert_eq!((host.groups.len(), host.groups[1].name.as_str()), (2, "/web + /db"));
        assert_eq!(both, [(0, 300), (1, 500)]);
        present.groups[0].priority = 7;
        let refused = here(&present).unwrap_err().to_string();
        assert_eq!(
            refused,
            "what runs on this host cannot be analysed: groups `/web + /db` and `vision` both have priority 7, so nothing \
             says which goes first: write another one to cpu.ds.priority of one"
        );
    }

    #[test]
    fn tasks_of_sched_deadline_that_stay_on_a_cpu_are_told() {
        let declared = "system: s\ncpus: [0, 1, 2]\ntasks:\n  \
                        - {name: a, period: 1ms, wcet: 1us, cpu: 0}\n  \
                        - {name: camera, period: 10ms, wcet: 1ms, deadline: 5ms, supply: {deadline: {runtime: 2ms, cpus: [1]}}}\n  \
                        - {name: roams, period: 10ms, wcet: 1ms, supply: {deadline: {cpus: [0, 2]}}}\n";
        let declared = macrotick_model::System::parse(declared, "s.yaml").unwrap().tasks;
        let host = here(&Present { reserved: declared, ..present() }).unwrap();
        let told: Vec<_> = host.reserved.iter().map(|one| (one.name.as_str(), one.cpu, one.task.wcet)).collect();
        assert_eq!(told, [("camera", 1, Duration::from_millis(2))]);
    }

    #[test]
    fn deadline_tasks_have_what_they_were_promised_and_at_most_all() {
        let domain = |cpus: &[u32], promised| PresentDomain { cpus: cpus.iter().copied().collect(), promised };
        let domains = |domains| here(&Present { domains, ..present() }).unwrap().domains;
        let promised = |domains: &[Domain]| domains.iter().map(|domain| domain.promised.0).collect::<Vec<_>>();
        assert_eq!(promised(&domains(vec![domain(&[0], 3), domain(&[1], 1 << 40)])), [3, 1 << 20]);
        let both = domains(vec![domain(&[0, 1], 1_500_001)]);
        assert_eq!((promised(&both), both[0].cpus.as_slice()), (vec![1_500_001], &[0, 1][..]));
    }
}
