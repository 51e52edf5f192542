//! Tests of the admission of one more container.

use std::time::Instant;

use macrotick_analysis::servers::*;
use macrotick_fixtures::{ms, ns, table, us, window};
use macrotick_model::Duration;

use crate::by_hand::{bound, group, host, task};
use crate::draw::{self, Form};

fn container(name: &str, criticality: u32, tasks: Vec<GroupTask>) -> Container {
    Container {
        name: name.into(),
        criticality,
        priority: None,
        cpus: Vec::new(),
        budget: None,
        may_grow: false,
        tasks,
        order: TaskOrder::Given,
    }
}

fn refusals(answer: Result<Admission, ServersError>) -> Vec<Refusal> {
    match answer {
        Err(ServersError::Refused(refusals)) => refusals,
        other => panic!("{other:?}"),
    }
}

#[test]
fn who_leaves_nothing_is_named() {
    let full = Host { groups: vec![group("low", 9, 10, vec![])], ..host(vec![], 0, &[]) };
    let refused = refusals(admit(&full, &container("new", 20, vec![bound("t", 1, 10, 1)])));
    let told = "CPU 0: budgets of 10ns (`low`) + 1ns (`new`) per 10ns and a reserve of 0.0 % are too much: budgets must sum up to \
                1ns less";
    assert_eq!(refused[0].to_string(), told);
}

#[test]
fn a_container_gets_the_least_budget_and_a_priority_between() {
    // The host has criticalities 20 and 40. 3 units within 9 of any arrival: (10 - C) + 2 + 3 = 9 for C = 6.
    let present = vec![group("low", 20, 1, vec![]), group("high", 40, 2, vec![])];
    let tasks = vec![GroupTask { deadline: ns(9), ..task("t", 3, 100, 1) }];
    let admission = admit(&host(present, 0, &[]), &container("new", 30, tasks)).unwrap();
    assert_eq!((admission.cpu, admission.priority, admission.budget), (0, 30, ns(6)));
    assert_eq!(admission.tasks[0].response, Some(ns(9)));
    assert_eq!(admission.changes, []);
    assert!(analyse(&admission.host).unwrap().is_feasible());
}

#[test]
fn a_task_below_that_would_miss_is_named() {
    // 3 + 4 + H <= 10 allows a budget of 3 above.
    let present = vec![group("low", 10, 3, vec![bound("pump", 3, 10, 1), bound("log", 3, 10_000, 1)])];
    let present = host(present, 0, &[]);
    let with = |budget| Container { budget: Some(ns(budget)), ..container("new", 20, vec![]) };
    assert!(refusals(admit(&present, &with(5)))[0].to_string().starts_with("CPU 0: task `pump` of group `low`"));
    let tight = group("low", 10, 7, vec![GroupTask { deadline: ns(8), ..bound("pump", 4, 10, 1) }]);
    let tight = host(vec![tight], 0, &[]);
    assert!(admit(&tight, &Container { budget: Some(ns(3)), ..container("new", 20, vec![]) }).is_ok());
    let tight = host(vec![group("low", 10, 5, tight.groups[0].servers[0].tasks.clone())], 0, &[]);
    let refused = refusals(admit(&tight, &with(5)));
    assert_eq!(
        refused[0].to_string(),
        "CPU 0: task `pump` of group `low` is late by 1ns with a budget of 5ns, its deadline is 8ns, above it is `new`"
    );
}

#[test]
fn a_container_that_cannot_meet_its_own_deadlines_is_refused() {
    let present = host(vec![group("high", 40, 4, vec![])], 0, &[]);
    let tasks = vec![GroupTask { deadline: ns(6), ..bound("t", 3, 100, 1) }];
    let refused = refusals(admit(&present, &container("new", 30, tasks.clone())));
    let [Refusal::Misses { group, task, over: Some(over), above, budget, .. }] = &refused[..] else {
        panic!("{refused:?}");
    };
    // The refusal is for all the time left on the CPU.
    assert_eq!((group.as_str(), task.as_str(), *over, *budget), ("new", "t", ns(1), ns(6)));
    assert_eq!(above, &["high"]);
    // With a higher priority it fits.
    assert!(admit(&present, &container("new", 50, tasks)).is_ok());
}

#[test]
fn a_group_below_grows_if_it_may() {
    // With a budget of 4 the low group has 6 + 3 <= 9. Below a budget of 2 it needs 6.
    let mut low = group("low", 10, 4, vec![GroupTask { deadline: ns(9), ..task("t", 3, 100, 1) }]);
    let new = container("new", 20, vec![bound("t", 2, 10, 1)]);
    assert!(matches!(&refusals(admit(&host(vec![low.clone()], 0, &[]), &new))[..], [Refusal::Misses { .. }]));
    low.servers[0].may_grow = true;
    let admission = admit(&host(vec![low.clone()], 0, &[]), &new).unwrap();
    let grown = Change::Budget { group: "low".into(), cpu: 0, from: ns(4), to: ns(6) };
    assert_eq!((admission.budget, &admission.changes[..]), (ns(2), &[grown][..]));
    // It does not grow if the CPU has no room for that.
    let full = Host { capacity: Capacity::AllBut(Permille(300)), ..host(vec![low], 0, &[]) };
    assert!(matches!(&refusals(admit(&full, &new))[..], [Refusal::Misses { .. }]));
}

#[test]
fn no_budget_is_below_the_least_and_no_cpu_beside_those_asked_for() {
    let mut present = Host { least: ns(4), ..host(vec![], 0, &[]) };
    present.cpus.extend([1, 2]);
    let tasks = vec![bound("t", 1, 10, 1)];
    let wanted = Container { cpus: vec![2, 1], ..container("a", 1, tasks) };
    let admission = admit(&present, &wanted).unwrap();
    assert_eq!((admission.cpu, admission.budget), (1, ns(4)));
    // 7 of 10 are taken: 4 do not fit, although 1 would be enough.
    let full = Host { groups: vec![group("full", 9, 7, vec![])], ..host(vec![], 0, &[]) };
    assert!(admit(&full, &Container { cpus: Vec::new(), ..wanted.clone() }).is_ok());
    let refused = refusals(admit(&Host { least: ns(4), ..full }, &Container { cpus: Vec::new(), ..wanted }));
    assert!(refused[0].to_string().ends_with("are too much: budgets must sum up to 1ns less"), "{}", refused[0]);
}

#[test]
fn tasks_without_an_order_are_told_with_their_lateness() {
    let task = |name: &str| GroupTask { deadline: ns(5), ..bound(name, 6, 20, 1) };
    let best = |tasks| Container { budget: Some(ns(10)), order: TaskOrder::Best, ..container("new", 1, tasks) };
    let alone = refusals(admit(&host(vec![], 0, &[]), &best(vec![task("a")])));
    assert_eq!(
        alone[0].to_string(),
        "CPU 0: task `a` of group `new` is late by 1ns with a budget of 10ns, its deadline is 5ns"
    );
    let both = refusals(admit(&host(vec![], 0, &[]), &best(vec![task("a"), task("b")])));
    assert_eq!(
        both[0].to_string(),
        "CPU 0: with a budget of 10ns group `new` has no order of tasks: none of `a` (which is late by 7ns), `b` (which is \
         late by 7ns) can be lowest"
    );
}

#[test]
fn the_cpu_is_the_one_that_costs_least() {
    let tasks = vec![bound("t", 3, 10, 1)];
    let mut present = host(vec![], 20, &[(0, 6), (10, 6)]);
    present.cpus.push(3);
    let first = admit(&present, &container("a", 1, tasks.clone())).unwrap();
    assert_eq!((first.cpu, first.budget), (0, ns(3)));
    let wanted = Container { cpus: vec![3], ..container("a", 1, tasks.clone()) };
    assert_eq!(admit(&present, &wanted).unwrap().cpu, 3);
    // One more does not fit on CPU 0, so the admission tries the other CPU.
    let second = admit(&first.host, &container("b", 1, tasks.clone())).unwrap();
    assert_eq!(second.cpu, 3);
    let many = (0..).try_fold(present, |host, index| {
        let next = container(&index.to_string(), 1, vec![bound("t", 3, 10, 1)]);
        admit(&host, &next).map(|admission| admission.host)
    });
    let ServersError::Refused(refused) = many.unwrap_err() else { panic!() };
    assert_eq!(refused.len(), 2, "one reason for each CPU: {refused:?}");
}

/// Groups come before SCHED_DEADLINE. A budget of 2 in each 10 takes 4 of 5 units, and also 4 of 6 units.
#[test]
fn a_task_of_sched_deadline_that_would_miss_is_named() {
    use macrotick_analysis::deadline;
    let with = |deadline| {
        let task = deadline::Task { wcet: ns(2), period: ns(100), deadline: ns(deadline) };
        let reserved = vec![Reserved { name: "camera".into(), cpu: 0, task }];
        let new = Container { budget: Some(ns(2)), ..container("new", 1, vec![]) };
        admit(&Host { reserved, ..host(vec![], 0, &[]) }, &new)
    };
    assert_eq!(with(6).map(|admission| admission.budget), Ok(ns(2)));
    assert_eq!(
        refusals(with(5))[0].to_string(),
        "CPU 0: SCHED_DEADLINE tasks `camera` behind windows and budgets of 2ns per 10ns: in 5ns the tasks may need 2ns, \
         and are sure to get 1ns"
    );
}

#[test]
fn sums_name_what_conflicts() {
    let present = host(vec![group("high", 40, 4, vec![])], 20, &[(0, 5), (10, 5)]);
    let new = Container { budget: Some(ns(2)), ..container("new", 1, vec![]) };
    assert_eq!(
        refusals(admit(&present, &new))[0].to_string(),
        "CPU 0: windows of 10ns per 20ns, budgets of 4ns (`high`) + 2ns (`new`) per 10ns and a reserve of 0.0 % are \
         too much: budgets must sum up to 1ns less"
    );
}

#[test]
fn many_that_are_as_critical_find_room_below_each_other() {
    let mut host = host(vec![group("foreign", 1, 1, vec![])], 0, &[]);
    host.groups[0].criticality = 0;
    for index in 0..40 {
        let new = Container { budget: Some(ns(1)), ..container(&format!("c{index}"), 1, vec![]) };
        // This test is not about sums.
        host.groups.iter_mut().for_each(|group| group.servers.clear());
        let admission = admit(&host, &new).unwrap();
        assert_eq!((admission.priority, &admission.changes[..]), (50 - index, &[][..]));
        host = admission.host;
    }
}

#[test]
fn priorities_are_renumbered_only_where_none_is_left() {
    let present = host(vec![group("a", 30, 1, vec![]), group("c", 31, 1, vec![])], 0, &[]);
    // The priority would be between 30 and 31 by criticality. An equally critical one that comes later gets the number
    // just below `a`.
    let new = |criticality| Container { budget: Some(ns(1)), ..container("b", criticality, vec![]) };
    assert_eq!(admit(&present, &new(30)).unwrap().priority, 29);
    let mut squeezed = present.clone();
    squeezed.groups[0].criticality = 1;
    let admission = admit(&squeezed, &new(20)).unwrap();
    assert_eq!(admission.priority, 50);
    let change = |group: &str, from, to| Change::Priority { group: group.into(), from, to };
    assert_eq!(admission.changes, [change("a", 30, 25), change("c", 31, 75)]);
    let same = Container { priority: Some(31), ..new(1) };
    assert!(matches!(admit(&present, &same), Err(ServersError::Invalid(HostError::SamePriority { .. }))));
}

#[test]
fn containers_that_make_no_sense_are_no_refusals() {
    let present = host(vec![group("a", 30, 1, vec![])], 0, &[]);
    let text = |container: &Container| match admit(&present, container) {
        Err(ServersError::Invalid(error)) => error.to_string(),
        other => panic!("{other:?}"),
    };
    let good = Container { budget: Some(ns(1)), ..container("b", 1, vec![]) };
    assert_eq!(text(&container("b", 1, vec![])), "container `b` has neither tasks nor a budget");
    assert_eq!(text(&Container { name: "a".into(), ..good.clone() }), "there are two groups `a`");
    assert_eq!(text(&Container { cpus: vec![9], ..good.clone() }), "container `b`: there is no CPU 9");
    assert!(text(&Container { priority: Some(0), ..good.clone() }).contains("priorities are 1 to 99"));
    assert!(text(&Container { budget: Some(ns(11)), ..good }).contains("longer than the server period"));
}

/// Uses random hosts. The last group of each becomes the container.
#[test]
fn what_is_admitted_is_feasible_and_what_is_refused_has_no_budget() {
    let (mut admitted, mut refused) = (0, 0);
    for seed in 30_000..33_000 {
        let mut present = draw::host(seed, Form::Known);
        let group = present.groups.remove(seed as usize % present.groups.len());
        // A container has no windows.
        let group = Group { windows: None, ..group };
        let server = &group.servers[0];
        present.groups.iter_mut().for_each(|group| group.servers[0].may_grow = false);
        if !analyse(&present).unwrap().is_feasible() {
            continue;
        }
        let priority = Some(group.priority);
        let new = Container { priority, ..container(&group.name, 1, server.tasks.clone()) };
        let with = |budget| {
            let mut host = present.clone();
            let server = Server { budget: ns(budget), ..server.clone() };
            host.groups.push(Group { servers: vec![server], ..group.clone() });
            analyse(&host).unwrap().is_feasible()
        };
        match admit(&present, &new) {
            Ok(admission) => {
                admitted += 1;
                let budget = admission.budget.as_nanos();
                assert!(with(budget) && (1..budget).all(|less| !with(less)), "seed {seed}");
                let analysis = analyse(&admission.host).unwrap();
                for task in &admission.tasks {
                    assert_eq!(analysis.task(&group.name, &task.name), Some(task), "seed {seed}");
                }
            }
            Err(ServersError::Refused(reasons)) => {
                refused += 1;
                assert!(!reasons.is_empty(), "seed {seed}");
                assert!((1..=present.server_period.as_nanos()).all(|budget| !with(budget)), "seed {seed}: {reasons:?}");
            }
            Err(error) => panic!("seed {seed}: {error}"),
        }
    }
    assert!(admitted > 100 && refused > 100, "{admitted} admitted, {refused} refused");
}

/// A host as in the paper, with a server period of 2.5 ms and a table of 40 windows. On each of four CPUs it has five
/// groups of six tasks of 1 ms to 2 s.
fn large(cycle: Duration, phase: Phase) -> Host {
    let tasks = |share: i64| {
        let periods = [10, 25, 100, 400, 1000, 2000];
        let task = |(index, &period): (usize, &i64)| GroupTask {
            jitter: us(100),
            ..GroupTask::unbound(format!("t{index}"), us(period * share), ms(period), 90 - index as u32)
        };
        periods.iter().enumerate().map(task).collect::<Vec<_>>()
    };
    let server = |cpu| Server { may_grow: true, ..Server::fixed(cpu, us(250), tasks(5)) };
    let group = |index: u32| Group {
        criticality: index,
        ..Group::served(format!("g{index}"), 10 * index, (0..4).map(server).collect())
    };
    let step = cycle.as_nanos() / 40;
    let windows = || (0..40).map(|index| window("tt", ns(index * step), ns(step / 4), ""));
    Host {
        refill: Refill::Lockstep(phase),
        capacity: Capacity::AllBut(Permille(50)),
        cpus: (0..4).collect(),
        cycle,
        tables: (0..4).map(|cpu| table(cpu, windows())).collect(),
        groups: (1..=5).map(group).collect(),
        ..Host::idle(us(2500))
    }
}

#[test]
fn an_answer_takes_milliseconds() {
    let at = Phase::At(Duration::ZERO);
    for (cycle, phase) in [(ms(10), at), (ms(100), at), (ms(1000), at), (ns(10_001_009), at), (ms(10), Phase::Any)] {
        let present = large(cycle, phase);
        let new = Container { may_grow: true, ..container("new", 6, present.groups[0].servers[0].tasks.clone()) };
        let begun = Instant::now();
        let admission = admit(&present, &new);
        let elapsed = begun.elapsed();
        let budget = admission.as_ref().map(|admission| admission.budget).map_err(ServersError::to_string);
        println!("cycle {cycle}, {phase:?}: {elapsed:?}: {budget:?}");
        assert!(budget.is_ok(), "{budget:?}");
        assert!(elapsed.as_millis() < 1000, "{elapsed:?}");
    }
}
