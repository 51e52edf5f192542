//! The promises on a host as input of the analysis.

use macrotick_analysis::servers::{Domain, Host};
use macrotick_fixtures::{described, ms, present, present_group, us};
use macrotick_host::present::{analysed, together, Present, PresentDomain, Unanalysable};

fn here(present: &Present) -> Result<Host, Unanalysable> {
    analysed(present, &together(&present.groups))
}

#[test]
fn budgets_are_what_groups_have_and_tasks_what_was_declared() {
    let host = here(&present()).unwrap();
    let (vision, web) = (&host.groups[0], &host.groups[1]);
    assert_eq!((vision.criticality, vision.priority), (3, 20));
    assert_eq!((vision.servers.len(), vision.servers[0].budget), (1, us(500)));
    assert_eq!(vision.servers[0].tasks[0].name, "filter");
    assert_eq!((web.criticality, web.servers.len()), (0, 2));
    assert!(web.servers.iter().all(|server| server.tasks.is_empty()));
}

#[test]
fn a_lead_counts_to_what_tasks_need() {
    let mut present = present();
    present.groups[0].declared.as_mut().unwrap().lead = Some(us(20));
    let host = here(&present).unwrap();
    assert_eq!(host.groups[0].servers[0].tasks[0].wcet, us(120));
}

#[test]
fn groups_of_one_priority_are_as_one_unless_something_is_promised_there() {
    let mut present = present();
    present.groups.push(present_group("/db", 7, &[(1, 200)]));
    let host = here(&present).unwrap();
    let both: Vec<(u32, i64)> =
        host.groups[1].servers.iter().map(|server| (server.cpu, server.budget.as_nanos() / 1000)).collect();
    assert_eq!((host.groups.len(), host.groups[1].name.as_str()), (2, "/web + /db"));
    assert_eq!(both, [(0, 300), (1, 500)]);
    present.groups[0].priority = 7;
    let refused = here(&present).unwrap_err().to_string();
    assert_eq!(
        refused,
        "cannot analyse the groups of this host: groups `/web + /db` and `vision` both have priority 7, so their \
         order is undefined: write another priority to cpu.ds.priority of one"
    );
}

#[test]
fn tasks_of_sched_deadline_that_stay_on_a_cpu_are_told() {
    let declared = "system: s\ncpus: [0, 1, 2]\ntasks:\n  \
                    - {name: a, period: 1ms, wcet: 1us, cpu: 0}\n  \
                    - {name: camera, period: 10ms, wcet: 1ms, deadline: 5ms, supply: {deadline: {runtime: 2ms, cpus: [1]}}}\n  \
                    - {name: roams, period: 10ms, wcet: 1ms, supply: {deadline: {cpus: [0, 2]}}}\n";
    let declared = described(declared).tasks;
    let host = here(&Present { reserved: declared, ..present() }).unwrap();
    let told: Vec<_> = host.reserved.iter().map(|one| (one.name.as_str(), one.cpu, one.task.wcet)).collect();
    assert_eq!(told, [("camera", 1, ms(2))]);
}

#[test]
fn deadline_tasks_have_what_they_were_promised_and_at_most_all() {
    let domain = |cpus: &[u32], promised| PresentDomain::new(cpus.iter().copied().collect(), promised);
    let domains = |domains| here(&Present { domains, ..present() }).unwrap().domains;
    let promised = |domains: &[Domain]| domains.iter().map(|domain| domain.promised.0).collect::<Vec<_>>();
    assert_eq!(promised(&domains(vec![domain(&[0], 3), domain(&[1], 1 << 40)])), [3, 1 << 20]);
    let both = domains(vec![domain(&[0, 1], 1_500_001)]);
    assert_eq!((promised(&both), both[0].cpus.as_slice()), (vec![1_500_001], &[0, 1][..]));
}
