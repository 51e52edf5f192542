//! The examples and benchmarks give plans as their texts promise.

use macrotick_analysis::assign;
use macrotick_check::{check, Deadlines};
use macrotick_model::{Duration, Plan, System};
use macrotick_plan::{plan, Solver};

fn planned(name: &str) -> Plan {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
    let system = System::load(&path).unwrap_or_else(|error| panic!("{error}"));
    let plan = plan(&system, Solver::default_for(&system)).unwrap_or_else(|error| panic!("{name}: {error}"));
    let plan = assign(plan).unwrap_or_else(|error| panic!("{name}: {error}"));
    let verdict = check(&plan);
    assert!(verdict.is_feasible(), "{name}: {verdict}\n{}", macrotick_model::timeline::timeline(&plan));
    println!("{verdict}\n{}", macrotick_model::timeline::timeline(&plan));
    plan
}

#[test]
fn robot_arm_keeps_its_chain() {
    let plan = planned("examples/robot-arm.yaml");
    let verdict = check(&plan);
    assert_eq!(verdict.chains[0].reaction_bound, Some(Duration::from_millis(12)));
    let utilisation = verdict.cpus[0].utilisation;
    assert!((0.55..=0.65).contains(&utilisation), "{utilisation}");
}

#[test]
fn the_pool_has_its_budget_around_the_tasks() {
    let plan = planned("examples/pool.yaml");
    let pool = &check(&plan).pools[0];
    assert_eq!((pool.given, pool.period), (Duration::from_millis(3), Duration::from_millis(10)));
    assert!(pool.windows > 4, "{pool:?}");
}

#[test]
fn three_ways_to_get_a_processor_are_judged_together() {
    let plan = planned("examples/deadline.yaml");
    assert_eq!(plan.cycle, Duration::from_millis(10), "the reservations need no common cycle");
    let verdict = check(&plan);
    assert_eq!((verdict.tasks.len(), verdict.domains.len()), (1, 1));
    let domain = &verdict.domains[0];
    assert_eq!(
        (domain.tasks.as_slice(), &domain.deadlines),
        (&["camera".into(), "logger".into()][..], &Deadlines::Met)
    );
    assert!(verdict.groups.is_some());
}

#[test]
fn no_window_lies_in_the_sync_window_of_the_shared_clock() {
    let plan = planned("examples/shared-clock.yaml");
    let sync = plan.system.sync().unwrap();
    assert_eq!(sync.offset, Duration::from_millis(9));
    assert!(plan.tables[0].windows.iter().all(|window| window.end() % plan.cycle <= sync.offset));
}

#[test]
fn a_task_that_fits_on_neither_cpu_has_half_of_each_job_on_both() {
    let plan = planned("examples/two-cpus.yaml");
    assert_eq!(plan.cpus("fusion").as_slice(), [0, 1]);
    // The cost of cutting other tasks is added.
    let busy = Duration::from_millis(18)..=Duration::from_micros(18_010);
    assert!(check(&plan).cpus.iter().all(|cpu| busy.contains(&cpu.busy)));
    let half = |cpu: usize| plan.tables[cpu].windows.iter().find(|window| window.task == "fusion").unwrap();
    assert_eq!((half(0).length, half(1).length), (Duration::from_millis(6), Duration::from_millis(6)));
    assert_eq!(half(0).end(), half(1).offset);
}

#[test]
fn a_value_is_on_the_other_host_before_its_task_begins() {
    let plan = planned("examples/two-hosts.yaml");
    let verdict = check(&plan);
    assert!(verdict.is_feasible(), "{verdict}");
    // The picture, the object and the motion are in one cycle, with the switch in between.
    let chain = &verdict.chains[0];
    assert!(chain.age.is_some_and(|age| age < Duration::from_millis(5)), "{:?}", chain.age);
    let starts = |name: &str| plan.jobs(name)[0].nominal;
    let found = plan.jobs("find")[0].deadline;
    let interfaces = &plan.system.network.as_ref().unwrap().interfaces;
    let delays: Duration = interfaces.iter().map(|interface| interface.path + interface.delay).sum();
    assert!(starts("move") >= found + delays, "{} after {found}", starts("move"));
    for host in ["camera", "arm"] {
        let part = plan.part(Some(host)).unwrap();
        assert_eq!(part.system.problems(), [""; 0]);
        assert!(check(&part).is_feasible(), "{host}: {}", check(&part));
    }

    // Without the delays of the way, the task would begin earlier: the judge sees it.
    let mut early = plan.clone();
    let table = early.tables.iter_mut().find(|table| table.cpu == 2).unwrap();
    let network = early.system.network.as_mut().unwrap();
    network.interfaces[1].delay += Duration::from_micros(200);
    assert!(table.windows.iter().any(|window| window.task == "move"));
    let violations = check(&early).violations;
    assert!(violations.iter().any(|violation| violation.to_string().contains("`target`")), "{violations:?}");
}

#[test]
fn a_reservation_is_on_its_host() {
    let text = "system: s\nclock: {tai: {period: 10ms, length: 200us, bound: 20us}}\n\
                hosts: [{name: one, cpus: [0]}, {name: two, cpus: [1]}]\n\
                tasks:\n  - {name: w, period: 10ms, wcet: 4ms, host: two}\n  \
                - {name: r, period: 5ms, wcet: 1ms, supply: deadline, host: two}\n";
    let system = System::parse(text, "s.yaml").unwrap();
    let plan = plan(&system, Solver::default_for(&system)).unwrap();
    assert!(check(&plan).is_feasible(), "{}", check(&plan));
    assert_eq!(plan.cpus("r").as_slice(), [1]);
    let mut wrong = plan.clone();
    let task = wrong.system.tasks.iter_mut().find(|task| task.name == "r").unwrap();
    if let macrotick_model::Supply::Deadline(reservation) = &mut task.supply {
        reservation.cpus = std::iter::once(0).collect();
    }
    let told: Vec<String> = check(&wrong).violations.iter().map(ToString::to_string).collect();
    assert_eq!(told, ["task `r` may use the CPUs of its host (1), but its reservation is on CPU 0"]);
}

#[test]
fn response_has_two_thousand_activations() {
    let plan = planned("bench/response.yaml");
    assert!(plan.system.experiment.duration / plan.system.tasks[0].period >= 2000);
}

#[test]
fn end_to_end_is_the_table_of_the_paper() {
    let plan = planned("examples/end-to-end.yaml");
    let us = |n| Duration::from_micros(n);
    let windows: Vec<(&str, Duration, Duration)> =
        plan.tables[0].windows.iter().map(|window| (window.task.as_str(), window.offset, window.end())).collect();
    let expected = [
        ("sender", us(1100), us(2500)),
        ("receiver", us(3500), us(3900)),
        ("preemptor", us(3900), us(4200)),
        ("receiver", us(4200), us(4400)),
    ];
    assert_eq!(windows, expected);
}

#[test]
fn containers_have_the_priorities_of_their_criticality() {
    let groups = planned("examples/containers.yaml").system.groups;
    let priorities: Vec<(&str, Option<u32>)> =
        groups.iter().map(|group| (group.name.as_str(), group.priority)).collect();
    assert_eq!(priorities, [("vendor", Some(66)), ("guests", Some(33))]);
}

#[test]
fn the_receiver_starts_after_the_gate() {
    let plan = planned("examples/two-containers-and-a-gate.yaml");
    let list = &plan.gates[0];
    let gate = list.entries.iter().position(|entry| entry.open == ["control"]).expect("a gate");
    let opens: Duration = list.entries[..gate].iter().map(|entry| entry.length).sum();
    // The gate thread begins when the sensor ends, a lead before the gate opens.
    assert_eq!(opens, plan.jobs("sensor")[0].deadline + Duration::from_micros(100));
    assert!(plan.jobs("controller")[0].nominal >= opens + list.entries[gate].length);
}

/// The windows of a thread that opens gates are those of a group, and a receiver that starts later keeps its deadline.
#[test]
fn plans_with_gate_threads_are_feasible() {
    let text = "system: s
cpus: [0, 1]
lead: 10us
tasks:
  - {name: s, period: 1ms, wcet: 100us, namespace: left}
  - {name: t, period: 2ms, wcet: 150us, jitter: 0us, namespace: left}
  - {name: r, period: 1ms, wcet: 100us, deadline: 700us, namespace: right}
  - {name: q, period: 2ms, wcet: 200us, deadline: 500us, jitter: 0us, namespace: right}
clock: {tai: {period: 4ms, length: 200us, bound: 100us}}
namespaces:
  - {name: left, address: 10.0.0.1/24}
  - {name: right, address: 10.0.0.2/24}
network:
  classes: [{name: x, priority: 6}, {name: rest}]
  interfaces:
    - {name: left, namespace: left, speed: 1Gb/s, gates: planned, lead: 20us}
    - {name: port, port: right, speed: 1Gb/s, path: 2us, gates: planned, lead: 20us}
  flows:
    - {name: f, from: s, to: r, size: 64B, class: x, deadline: 400us}
    - {name: g, from: t, to: q, size: 500B, class: x, deadline: 400us}
";
    let system = System::parse(text, "s.yaml").unwrap_or_else(|errors| panic!("{errors}"));
    let plan = plan(&system, Solver::FoldedOccupancy).unwrap_or_else(|error| panic!("{error}"));
    let verdict = check(&plan);
    assert!(verdict.is_feasible(), "{verdict}\n{}", macrotick_model::timeline::timeline(&plan));
    let threads: Vec<&str> = verdict.pools.iter().map(|pool| pool.name.as_str()).collect();
    assert_eq!(threads, ["gate-left", "gate-port"]);
}
