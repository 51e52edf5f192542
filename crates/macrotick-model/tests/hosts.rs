//! Systems with several hosts: the defaults of a description, and the parts of a plan.

use macrotick_fixtures::{by_hand, described, ms, read_tree, table, us, window};
use macrotick_model::{PartError, Plan, System};

fn example() -> System {
    described(&read_tree("examples/two-hosts.yaml"))
}

/// Makes a plan of the example, with each window in its own table.
fn plan() -> Plan {
    let of_arm = [window("current", us(0), us(100), "AD"), window("move", ms(5), us(500), "AD")];
    let tables = vec![
        table(0, [window("grab", ms(0), us(800), "AD")]),
        table(1, [window("find", ms(1), ms(3), "AD")]),
        table(2, of_arm),
    ];
    by_hand(example(), ms(10), tables)
}

#[test]
fn the_hosts_give_the_cpus_and_the_cpus_the_hosts() {
    let text = "system: s\nclock: {tai: {period: 10ms, length: 200us, bound: 20us}}\n\
                hosts: [{name: one, cpus: [0, 2]}, {name: two, cpus: [1, 3], own: [4, 6]}]\n\
                namespaces: [{name: n, address: 10.0.0.1/24, host: two}]\n\
                tasks:\n  - {name: a, period: 10ms, wcet: 1ms, cpu: 1}\n  \
                - {name: b, period: 10ms, wcet: 1ms, namespace: n}\n  \
                - {name: c, period: 10ms, wcet: 1ms}\n  \
                - {name: d, period: 10ms, wcet: 1ms, cpus: [0, 2]}\n\
                groups:\n  - {name: g, budget: 1ms, priority: 1, host: two}\n\
                load: [{name: l, hog: {}, cpu: 0}]\n";
    let system = described(text);
    assert_eq!(system.cpus, [0, 1, 2, 3]);
    assert_eq!((system.hosts[0].own.as_slice(), system.hosts[1].own.as_slice()), (&[0, 1][..], &[4, 6][..]));
    let hosts: Vec<Option<&str>> = system.tasks.iter().map(|task| task.host.as_deref()).collect();
    assert_eq!(hosts, [Some("two"), Some("two"), None, Some("one")]);
    let cpus: Vec<Vec<u32>> = system.tasks.iter().map(|task| system.cpus_of(task).as_slice().to_vec()).collect();
    assert_eq!(cpus, [vec![1], vec![1, 3], vec![0, 1, 2, 3], vec![0, 2]]);
    assert_eq!((system.groups[0].cpus.as_slice(), system.load[0].host.as_deref()), (&[1, 3][..], Some("one")));
    assert_eq!(described(&system.to_yaml()), system);
}

#[test]
fn a_host_has_its_tables_its_numbers_and_its_end_of_the_way() {
    let plan = plan();
    assert_eq!(Plan::from_json(&plan.to_json(), "plan.json").expect("a valid plan"), plan);

    let camera = plan.part(Some("camera")).expect("a host");
    assert_eq!(camera.system.problems(), [""; 0]);
    assert_eq!(camera.tables, plan.tables[..2]);
    let network = camera.system.network.as_ref().expect("the network of the camera");
    let names: Vec<&str> = network.interfaces.iter().map(|interface| interface.name.as_str()).collect();
    assert_eq!(
        (names, &network.flows[0].via, &network.flows[0].to),
        (vec!["camera-out"], &vec!["camera-out".into()], &None)
    );
    assert!(camera.system.chains.is_empty() && camera.system.hosts.is_empty());

    let arm = plan.part(Some("arm")).expect("a host");
    assert_eq!(arm.system.problems(), [""; 0]);
    assert_eq!((arm.tables.len(), arm.tables[0].cpu, arm.system.cpus.as_slice()), (1, 1, &[1][..]));
    assert_eq!(arm.tables[0].windows, plan.tables[2].windows);
    let tasks: Vec<&str> = arm.system.tasks.iter().map(|task| task.name.as_str()).collect();
    assert_eq!((tasks, arm.system.network), (vec!["move", "current"], None));
}

#[test]
fn a_task_that_the_solver_places_is_on_one_host() {
    let hosts = "hosts: [{name: one, cpus: [0]}, {name: two, cpus: [1]}, {name: three, cpus: [2]}]\n";
    let clock = "clock: {tai: {period: 10ms, length: 200us, bound: 20us}}\n";
    let task = "tasks: [{name: a, period: 10ms, wcet: 1ms}]\n";
    let system = described(&format!("system: s\n{hosts}{clock}{task}"));
    let plan = by_hand(system, ms(10), vec![table(1, [window("a", ms(0), ms(1), "AD")])]);
    let two = plan.part(Some("two")).expect("a part");
    assert_eq!((two.tables[0].cpu, two.system.tasks.len()), (0, 1));
    assert_eq!(plan.part(Some("one")), Err(PartError::Empty("one".into())));
    let hosts: Vec<String> = ["one", "two", "three"].map(String::from).into();
    assert_eq!(plan.part(None), Err(PartError::Unnamed(hosts.clone())));
    assert_eq!(plan.part(Some("four")), Err(PartError::Unknown { name: "four".into(), hosts }));
}

#[test]
fn without_hosts_the_plan_is_its_own_part() {
    let system = described("system: s\ntasks: [{name: a, period: 10ms, wcet: 1ms}]\n");
    let plan = by_hand(system, ms(10), vec![table(0, [window("a", ms(0), ms(1), "AD")])]);
    assert_eq!(plan.part(None).as_ref(), Ok(&plan));
    let error = plan.part(Some("x")).expect_err("no hosts").to_string();
    assert_eq!(error, "the plan has no host `x`, it is for one host without a name");
}

#[test]
fn slots_groups_and_the_profile_are_on_their_host() {
    let text = "system: s\nclock: {tai: {period: 10ms, length: 200us, bound: 20us}}\n\
                hosts: [{name: one, cpus: [0, 1]}, {name: two, cpus: [2], own: [7]}]\n\
                profile: {like: affinity, cpus: [1, 2]}\n\
                tasks: [{name: a, period: 10ms, wcet: 1ms, host: two}]\n\
                groups:\n  - {name: g, windows: {period: 10ms, length: 1ms}, host: two, run: [{name: p, hog: {}, host: two}]}\n  \
                - {name: h, budget: 1ms, priority: 1, cpus: [0, 1], tasks: [{name: t, period: 20ms, wcet: 1ms, cpu: 1}]}\n\
                load: [{name: l, hog: {}, cpu: 2}]\n\
                network:\n  classes: [{name: g, priority: 6}, {name: rest}]\n  interfaces:\n    \
                - {name: out, device: eth1, host: two, cpu: 2, lead: 10us, speed: 1Gb/s, gates: planned}\n  \
                slots: [{group: g, period: 10ms, length: 1ms}]\n";
    let windows = [window("a", ms(0), ms(1), "AD"), window("g", ms(2), ms(1), "")];
    let plan = by_hand(described(text), ms(10), vec![table(2, windows)]);
    let two = plan.part(Some("two")).expect("a part").system;
    assert_eq!(two.problems(), [""; 0]);
    let network = two.network.expect("a network");
    assert_eq!((network.slots[0].interface.as_deref(), network.interfaces[0].cpu), (Some("out"), Some(7)));
    assert_eq!((two.groups.len(), two.groups[0].name.as_str(), two.load[0].cpu), (1, "g", Some(7)));
    assert_eq!(two.profile.expect("its profile").cpus.as_slice(), [7]);
    let one = plan.part(Some("one")).expect("a part").system;
    assert_eq!((one.problems(), one.network), (vec![], None));
    assert_eq!((one.groups[0].cpus.as_slice(), one.groups[0].tasks[0].cpu), (&[0, 1][..], 1));
    assert_eq!(one.profile.expect("its profile").cpus.as_slice(), [1]);
}
