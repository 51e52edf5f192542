//! Groups in a description.

use macrotick_fixtures::{by_hand, ms};
use macrotick_model::{
    ContainerLoad, ContainerRoot, Duration, Engine, Finding, GroupThread, KernelThread, Load, Plan, Policy, Program,
    System,
};

const HEAD: &str = "system: s\ncpus: [0, 1]\ntasks:\n  - {name: a, period: 10ms, wcet: 1ms}\n";

fn parse(rest: &str) -> Result<System, String> {
    System::parse(&format!("{HEAD}{rest}"), "s.yaml").map_err(|errors| errors.to_string())
}

fn refusal(rest: &str) -> String {
    parse(rest).expect_err("a mistake")
}

#[test]
fn what_is_left_out_has_its_default() {
    let system = parse(
        "groups:\n  - name: g\n    budget: 500us\n    priority: 7\n    cpus: [1]\n    tasks:\n      \
         - {name: loop, period: 5ms, wcet: 100us, priority: 9}\n",
    )
    .unwrap();
    let expected = "groups:\n  - name: g\n    budget: 500us\n    priority: 7\n    cpus: [1]\n    tasks:\n      \
                    - {name: loop, period: 5ms, wcet: 100us, deadline: 5ms, release-jitter: 0ns, priority: 9, cpu: 1}\n";
    assert!(system.to_yaml().contains(expected), "{}", system.to_yaml());
    assert_eq!(system.server_period, Duration::from_micros(2500));
    let everywhere = parse("groups:\n  - {name: g, priority: 7, budget: 500us}\n").unwrap();
    assert_eq!(everywhere.groups[0].cpus, [0, 1]);
    assert!(!parse("").unwrap().to_yaml().contains("group"));
}

#[test]
fn what_is_left_open_stays_open_in_the_normal_form() {
    let system = parse(
        "groups:\n  - name: g\n    criticality: 3\n    may-grow: true\n    cpus: [1]\n    tasks:\n      \
         - {name: a, period: 5ms, wcet: 100us}\n      - {name: b, period: 9ms, wcet: 100us}\n  \
         - {name: h, criticality: 0, budget: 20us}\n",
    )
    .unwrap();
    let open = ["priority", "budget", "tasks[0].priority", "tasks[1].priority"].map(|key| format!("groups[0].{key}"));
    assert_eq!(system.left_open(), [&open[..], &["groups[1].priority".to_string()]].concat());
    assert_eq!((system.groups[0].criticality, system.groups[0].may_grow), (Some(3), true));
    assert_eq!(System::parse(&system.to_yaml(), "again.yaml").unwrap(), system);
}

/// A plan is complete: it has no open values.
#[test]
fn a_plan_leaves_nothing_open() {
    let mut system = parse("groups:\n  - {name: g, criticality: 3, budget: 20us}\n").unwrap();
    let plan = |system: &System| by_hand(system.clone(), ms(10), Vec::new()).to_json();
    let refused = Plan::from_json(&plan(&system), "p.json").unwrap_err().to_string();
    assert_eq!(refused, "p.json: system.groups[0].priority: a plan needs this value");
    system.groups[0].priority = Some(5);
    assert_eq!(Plan::from_json(&plan(&system), "p.json").unwrap().system, system);
}

/// Findings of later stages look like findings of the parser.
#[test]
fn findings_of_others_have_their_place() {
    let source = format!("{HEAD}groups:\n  - {{name: g, criticality: 3, budget: 20us}}\n");
    let finding = |at: &str| Finding { at: at.into(), message: "no good".into(), hint: Some("mend it".into()) };
    let told = System::refuse(&source, "s.yaml", vec![finding("groups[0].budget"), finding("groups[0].priority")]);
    let places: Vec<(usize, usize)> = told.iter().map(|finding| (finding.at.line, finding.at.column)).collect();
    // A finding about a default is shown at the mapping around it.
    assert_eq!(places, [(6, 5), (6, 39)]);
    assert!(told.to_string().contains("error: no good\n --> s.yaml:6:39\n"), "{told}");
}

#[test]
fn a_group_has_a_lead() {
    let group = |lead: &str| parse(&format!("groups:\n  - {{name: g, priority: 7, budget: 500us{lead}}}\n"));
    for (text, lead) in [(", lead: 1us", 1), (", lead: 20us", 20), (", lead: 1ms", 1000)] {
        let system = group(text).unwrap();
        assert_eq!(system.groups[0].lead, Some(Duration::from_micros(lead)));
        assert_eq!(System::parse(&system.to_yaml(), "again.yaml").unwrap(), system);
        let json = serde_json::to_string(&system).unwrap();
        assert_eq!(serde_json::from_str::<System>(&json).unwrap(), system);
    }
    let without = group("").unwrap();
    assert!(without.groups[0].lead.is_none() && !without.to_yaml().contains("lead"));
    assert!(!serde_json::to_string(&without).unwrap().contains("lead"));
}

#[test]
fn processes_run_in_groups() {
    let group = "groups:\n  - name: g\n    priority: 7\n    budget: 500us\n    serve-fifo: true\n    run: [{name: l, hog: {}, fifo: 5}]\n";
    let system = parse(group).unwrap();
    let placed: Vec<_> = system.processes().collect();
    assert_eq!((placed[0].server().map(String::as_str), placed[0].policy), (Some("g"), Policy::Fifo(5)));
    assert_eq!(System::parse(&system.to_yaml(), "again.yaml").unwrap(), system);
    let refused = refusal(&group.replace("    serve-fifo: true\n", ""));
    assert!(refused.contains("`l` has SCHED_FIFO, which group `g` does not serve"), "{refused}");
}

fn contained(load: &str) -> Result<System, String> {
    parse(&format!(
        "groups:\n  - name: g\n    priority: 7\n    budget: 500us\n    run: [{{name: c, container: {load}}}]\n"
    ))
}

#[test]
fn a_load_is_a_container() {
    let load = |text: &str| {
        let system = contained(text).unwrap();
        assert_eq!(System::parse(&system.to_yaml(), "again.yaml").unwrap(), system);
        system.groups[0].run[0].run.clone()
    };
    let rootfs = ContainerRoot::Rootfs("/srv/web".into());
    let program = Some(Program::new(["/bin/web", "-x"]));
    let expected = ContainerLoad { root: rootfs, program, engine: Engine::Crun };
    assert_eq!(load("{rootfs: /srv/web, program: [/bin/web, -x]}"), Load::Container(expected.clone()));
    let whole = "{rootfs: /srv/web, program: {command: [/bin/web, -x], env: [A=1], directory: /data, user: 1000}}";
    let program = Program {
        env: vec!["A=1".into()],
        directory: Some("/data".into()),
        user: Some("1000".into()),
        ..Program::new(["/bin/web", "-x"])
    };
    assert_eq!(load(whole), Load::Container(ContainerLoad { program: Some(program), ..expected.clone() }));
    let runc = ContainerLoad { engine: Engine::Runc, ..expected };
    assert_eq!(load("{rootfs: /srv/web, program: [/bin/web, -x], engine: runc}"), Load::Container(runc));
    let image = ContainerRoot::Image("docker.io/library/web:1".into());
    let expected = ContainerLoad { root: image, program: None, engine: Engine::Podman };
    assert_eq!(load("{image: \"docker.io/library/web:1\"}"), Load::Container(expected));
}

#[test]
fn what_is_wrong_with_a_container_is_told() {
    for (load, expected) in [
        ("{program: [x]}", "`container` has none of the keys `rootfs`, `image`"),
        ("{rootfs: /srv, image: web, program: [x]}", "`container` has both `rootfs` and `image`"),
        ("{rootfs: srv, program: [x]}", "`srv` is not the absolute path of a directory"),
        ("{rootfs: /srv}", "a container with `rootfs` needs a `program`"),
        ("{image: web, engine: runc}", "runc does not support images"),
        ("{image: --privileged}", "\"--privileged\" is not the name of an image"),
        ("{rootfs: /srv, program: [x], engine: docker}", "unknown engine `docker`"),
        ("{root: /srv, program: [x]}", "unknown key `root` in `container`"),
    ] {
        let told = contained(load).expect_err(load);
        assert!(told.contains(expected) && told.contains("s.yaml:9"), "{load}: {told}");
    }
    let both = "[{name: l, hog: {}}, {name: c, container: {rootfs: /srv, program: [x]}}]\n";
    let mixed = refusal(&format!("groups:\n  - name: g\n    priority: 7\n    budget: 500us\n    run: {both}"));
    assert!(mixed.contains("`c` is a container and `l` is not") && mixed.contains("s.yaml:9"), "{mixed}");
    assert!(parse(&format!("load: {both}")).is_ok());
}

#[test]
fn kernel_threads_are_those_of_cpus_and_of_interrupts() {
    let system = parse(
        "groups:\n  - {name: g, priority: 7, budget: 500us, cpus: [0], kernel-threads: [ksoftirqd, irq/30-eth0]}\n  \
         - {name: h, priority: 8, budget: 500us, cpus: [1], kernel-threads: [ksoftirqd]}\n",
    )
    .unwrap();
    let expected = [GroupThread::EachCpu(KernelThread::Ksoftirqd), GroupThread::Interrupt("irq/30-eth0".into())];
    assert_eq!(system.groups[0].kernel_threads, expected);
    assert_eq!(System::parse(&system.to_yaml(), "again.yaml").unwrap(), system);
    let json = serde_json::to_value(&system).unwrap();
    assert_eq!(json["groups"][0]["kernel-threads"], serde_json::json!(["ksoftirqd", "irq/30-eth0"]));
    assert_eq!(serde_json::from_value::<System>(json).unwrap(), system);
}

#[test]
fn a_kernel_thread_has_one_group_or_pool() {
    let two = |first: &str, second: &str| {
        refusal(&format!(
            "groups:\n  - {{name: g, priority: 7, budget: 500us, {first}}}\n  - {{name: h, priority: 8, budget: 500us, {second}}}\n"
        ))
    };
    let shared = two("kernel-threads: [ksoftirqd]", "cpus: [1], kernel-threads: [ksoftirqd]");
    assert!(
        shared.contains("kernel thread `ksoftirqd` is already in group `g`") && shared.contains("s.yaml:7"),
        "{shared}"
    );
    let interrupt = two("cpus: [0], kernel-threads: [irq/1-a]", "cpus: [1], kernel-threads: [irq/1-a]");
    assert!(interrupt.contains("kernel thread `irq/1-a` is already in group `g`"), "{interrupt}");
    let windows = refusal(
        "groups:\n  - {name: p, windows: {period: 10ms, length: 1ms}, kernel-threads: [rcuc]}\n  \
         - {name: g, priority: 7, budget: 1ms, kernel-threads: [rcuc]}\n",
    );
    assert!(windows.contains("kernel thread `rcuc` is already in group `p`"), "{windows}");
    assert!(windows.contains("every CPU has its own thread: set `cpus` for groups with windows"), "{windows}");
}

#[test]
fn mistakes_are_told_at_their_place() {
    let group = |keys: &str| refusal(&format!("groups:\n  - {{name: g, {keys}}}\n"));
    for (keys, expected) in [
        ("priority: 7", "group `g` has no `budget`"),
        ("budget: 1ms", "group `g` has no `priority`"),
        ("priority: 7", "set it, or declare `tasks` to get the least budget for them"),
        ("budget: 1ms", "set it for all groups, or `criticality` for all groups to derive it"),
        ("criticality: -1, budget: 1ms", "criticality -1 is out of range: 0 to 4294967295"),
        (
            "priority: 7, tasks: [{name: t, period: 5ms, wcet: 1ms}]",
            "group `g` has no `budget`, and no task on CPU 1 to derive one from",
        ),
        (
            "priority: 7, budget: 1ms, tasks: [{name: t, period: 5ms, wcet: 1ms}, \
             {name: u, period: 5ms, wcet: 1ms, priority: 3}]",
            "task `t` has no `priority`",
        ),
        ("priority: 100, budget: 1ms", "priority 100 is out of range: 1 to 99"),
        ("priority: 7, budget: 3ms", "budget 3ms is longer than the server period 2500us"),
        ("priority: 7, budget: 5us", "budget 5us is shorter than 10us"),
        ("priority: 7, budget: 1500ns", "budget 1500ns is shorter than 10us"),
        ("priority: 7, budget: 100500ns", "budget 100500ns is not a whole number of microseconds"),
        ("priority: 7, budget: 1ms, lead: 0us", "lead 0ns is out of range: 1us to 1ms"),
        ("priority: 7, budget: 1ms, lead: 500ns", "lead 500ns is out of range: 1us to 1ms"),
        ("priority: 7, budget: 1ms, lead: 1001us", "lead 1001us is out of range: 1us to 1ms"),
        ("priority: 7, budget: 1ms, lead: -20us", "lead -20us is out of range: 1us to 1ms"),
        ("priority: 7, budget: 1ms, lead: 1500ns", "lead 1500ns is not a whole number of microseconds"),
        ("priority: 7, budget: 1ms, lead: 20", "s.yaml:6"),
        ("priority: 7, budget: 1ms, kernel-threads: [ksoftirq]", "unknown kernel thread `ksoftirq`\n"),
        ("priority: 7, budget: 1ms, kernel-threads: [eth0]", "`backlog_napi`, `irq/NUMBER-NAME`"),
        ("priority: 7, budget: 1ms, kernel-threads: [irq/eth0]", "`irq/eth0` is not the name of an interrupt thread"),
        ("priority: 7, budget: 1ms, kernel-threads: [rcuc, rcuc]", "kernel thread `rcuc` is listed twice in group `g`"),
        ("priority: 7, budget: 1ms, cpus: [2]", "CPU 2 is not one of the CPUs of the system (0, 1)"),
        ("priority: 7, budget: 1ms, cpu: 1", "unknown key `cpu` in a group"),
        (
            "priority: 7, budget: 1ms, cpus: [1], tasks: [{name: t, period: 5ms, wcet: 1ms, priority: 1, cpu: 0}]",
            "CPU 0 is not one of the CPUs of group `g`",
        ),
        (
            "priority: 7, budget: 1ms, tasks: [{name: t, period: 6ms, wcet: 1ms, priority: 1, at-refills: true}]",
            "its jobs arrive at refills, but the period 6ms is not a multiple of 2500us",
        ),
    ] {
        let told = group(keys);
        assert!(told.contains(expected) && told.contains("s.yaml:"), "{keys}: {told}");
    }
    let twice = refusal("groups:\n  - {name: g, priority: 7, budget: 1ms}\n  - {name: h, priority: 7, budget: 1ms}\n");
    assert!(twice.contains("group `g` already has priority 7"), "{twice}");
    let mixed =
        refusal("groups:\n  - {name: g, criticality: 7, budget: 1ms}\n  - {name: h, priority: 7, budget: 1ms}\n");
    assert!(
        mixed.contains("group `g` has no `priority`") && mixed.contains("group `h` has one: set it for all groups"),
        "{mixed}"
    );
    // The parser reports a mistake once.
    let misspelt = refusal("groups:\n  - {name: g, priorty: 7, budgett: 1ms}\n");
    assert_eq!(misspelt.matches("error: ").count(), 2, "{misspelt}");
    let period = refusal("server-period: 2s\n");
    assert!(period.contains("server-period 2s is out of range: 100us to 1s"), "{period}");
}

/// The golden errors show the mistakes; this is a correct group.
#[test]
fn windows_and_a_budget() {
    let group = "groups:\n  - {name: g, priority: 7, budget: 500us, cpus: [1], windows: {period: 10ms, length: 1ms, order: priority}}\n";
    let system = parse(group).unwrap();
    assert_eq!(system.groups[0].pool_name().as_deref(), Some("g.windows"));
    assert_eq!(system.periods().collect::<Vec<_>>().len(), 2);
    assert_eq!(System::parse(&system.to_yaml(), "again.yaml").unwrap(), system);
    // The budget can stay open.
    let tasks = group.replace("budget: 500us", "tasks: [{name: t, period: 5ms, wcet: 50us}]");
    assert_eq!(parse(&tasks).unwrap().left_open(), ["groups[0].budget", "groups[0].tasks[0].priority"]);
}
