//! Seeded random systems through all forms of a document: the description, the plan file, the observation file.

use macrotick_fixtures::{
    self as fixtures, by_hand, group_record, job, ms, ns, observation, pool_record, records, sync, table, us,
};
use macrotick_model::*;

/// Seeded choices.
struct Random(SplitMix64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0.bits()
    }
    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
    fn maybe<T>(&mut self, value: impl FnOnce(&mut Self) -> T) -> Option<T> {
        (self.below(2) == 0).then(|| value(self))
    }
    fn micros(&mut self, low: u64, high: u64) -> Duration {
        Duration::from_micros((low + self.below(high - low + 1)) as i64)
    }
    fn text(&mut self) -> String {
        const ODD: [&str; 12] = ["null", "~", "a b", "ü", "\"", "\\", "#x", "- y", "1", "x: y", "\n", "/bin/true"];
        ODD[self.below(ODD.len() as u64) as usize].into()
    }
}

/// Tasks use the first one, loads the second.
const NAMESPACES: [&str; 2] = ["left", "null"];

fn namespaces() -> Vec<Namespace> {
    let namespace = |(index, name): (usize, &&str)| fixtures::namespace(name, &format!("10.0.0.{}/24", index + 1));
    NAMESPACES.iter().enumerate().map(namespace).collect()
}

fn lead(random: &mut Random) -> Lead {
    let length = random.micros(1, 1000);
    match random.below(2) {
        0 => Lead::Fixed(length),
        _ => Lead::Auto(length),
    }
}

fn profile(random: &mut Random) -> Profile {
    let serving = |random: &mut Random| match random.below(3) {
        0 => Serving::Above,
        1 => Serving::Keep,
        _ => Serving::Fixed(1 + random.below(98) as u8),
    };
    let flag = |random: &mut Random| random.maybe(|random| random.below(2) == 0);
    Profile {
        like: SetUp::ALL[random.below(SetUp::ALL.len() as u64) as usize],
        devices: (0..random.below(3)).map(|index| format!("eth{index}")).collect(),
        cpus: (0..random.below(3) as u32).collect(),
        interrupts: random.maybe(serving),
        softirqs: random.maybe(serving),
        napi_threads: flag(random),
        interrupt_affinity: flag(random),
        clear_steering: flag(random),
        shield_interrupts: flag(random),
        shield_workqueues: flag(random),
        shield_watchdog: flag(random),
        // Tasks with a reservation need the CPUs in a scheduling domain.
        partition: Some(false),
        idle_latency: random.maybe(|random| match random.below(2) {
            0 => IdleLatency::Keep,
            _ => IdleLatency::Most(random.micros(0, 99)),
        }),
        governor: random.maybe(|_| "performance".into()),
        no_throttling: flag(random),
        no_timer_migration: flag(random),
        normal_grace_periods: flag(random),
    }
}

fn sync_window(random: &mut Random) -> SyncWindow {
    let period = Duration::from_millis(10);
    let (length, bound) = (random.micros(100, 1000), random.micros(1, 99));
    sync(period, random.micros(0, 9000), length, bound)
}

fn execution_time(random: &mut Random) -> ExecutionTime {
    let (low, high) = (random.micros(1, 50), random.micros(50, 100));
    match random.below(3) {
        0 => ExecutionTime::Fixed(low),
        1 => ExecutionTime::Uniform(Uniform { min: low, max: high }),
        _ => ExecutionTime::Gumbel(Gumbel { mode: low, scale: random.micros(1, 9), max: high }),
    }
}

fn task(random: &mut Random, index: u64) -> Task {
    let period = Duration::from_millis([1, 2, 5, 10, 20][random.below(5) as usize]);
    let spin = execution_time(random);
    let run = match random.below(4) {
        0 => Workload::Spin(spin),
        1 => Workload::UdpSend(UdpSend { spin, to: "127.0.0.1:5000".into() }),
        2 => Workload::UdpReceive(UdpReceive { spin, at: "[::1]:5000".into() }),
        _ => Workload::Program(program(random)),
    };
    let cpu = random.maybe(|random| random.below(2) as u32);
    let name = ["t", "null", "0", "1.5", "true", "a_b"][random.below(6) as usize].to_string() + &format!("-{index}");
    Task {
        deadline: random.maybe(|random| random.micros(100, 1000)).unwrap_or(period),
        offset: random.maybe(|random| random.micros(0, 999)),
        jitter: random.maybe(|random| random.micros(0, 100)),
        cpu,
        migrate: cpu.is_none() && random.below(2) == 0,
        preemptible: random.maybe(|_| true),
        priority: random.maybe(|random| 1 + random.below(99) as u8),
        on_miss: OnMiss::ALL[random.below(4) as usize],
        max_misses: random.maybe(|random| 1 + random.below(9) as u32),
        namespace: random.maybe(|_| NAMESPACES[0].into()),
        run,
        ..Task::named(name, period, random.micros(1, 100))
    }
}

fn program(random: &mut Random) -> Program {
    let env = random.maybe(|random| format!("A_B={}", random.text())).into_iter().collect();
    Program { env, ..Program::new([random.text(), random.text()]) }
}

/// A task with a reservation, without the keys for windows.
fn reserved(random: &mut Random, index: u64) -> Task {
    let cpus = random.maybe(|_| vec![0, 1]).unwrap_or_default();
    let supply = fixtures::reserved(random.micros(100, 300), &cpus);
    let deadline = random.micros(300, 1000);
    Task {
        name: format!("reserved-{index}"),
        period: deadline + random.micros(0, 7777),
        wcet: random.micros(1, 100),
        deadline,
        offset: None,
        jitter: None,
        cpu: None,
        migrate: false,
        preemptible: None,
        on_miss: OnMiss::Resume,
        max_misses: None,
        supply,
        ..task(random, index)
    }
}

fn windows(random: &mut Random) -> Windows {
    let period = Duration::from_millis([1, 2, 5, 10][random.below(4) as usize]);
    let slice = random.micros(10, 1_000_000);
    Windows {
        order: [PoolOrder::Fifo, PoolOrder::RoundRobin(slice), PoolOrder::Priority(slice)][random.below(3) as usize],
        slack: random.below(2) == 0,
        ..Windows::new(period, random.micros(1, 1000))
    }
}

/// A group with windows only.
fn pool(random: &mut Random, index: u64) -> Group {
    let threads = KernelThread::ALL.iter().filter(|_| index == 0 && random.below(2) == 0);
    Group {
        kernel_threads: threads.copied().map(GroupThread::EachCpu).collect(),
        windows: Some(windows(random)),
        cpus: random.maybe(|random| vec![random.below(2) as u32]).unwrap_or_default(),
        cgroup: random.maybe(|random| format!("/sys/fs/cgroup/{index}-{}", random.below(9))),
        run: (0..random.below(3)).map(|number| process(random, format!("in-{index}-{number}"), Some(false))).collect(),
        ..Group::named(format!("pool-{index}"), Vec::new())
    }
}

fn group(random: &mut Random, index: u64) -> Group {
    let task = |random: &mut Random, number: u64| {
        let (period, wcet) = (us(2500 * (1 + random.below(9) as i64)), random.micros(1, 500));
        GroupTask {
            deadline: random.micros(500, 90_000),
            release_jitter: random.micros(0, 100),
            priority: Some(1 + random.below(99) as u32),
            at_refills: random.below(2) == 0,
            ..GroupTask::named(format!("inner-{number}"), period, wcet, 1)
        }
    };
    let order = PoolOrder::Priority(random.micros(10, 1_000_000));
    let windows = random.maybe(|random| Windows { order, slack: false, ..windows(random) });
    let cpus = if windows.is_some() || random.below(2) == 0 { vec![1] } else { vec![0, 1] };
    let threads = random.maybe(|_| GroupThread::Interrupt(format!("irq/{index}-a b")));
    Group {
        criticality: random.maybe(|random| random.below(9) as u32),
        priority: Some(1 + index as u32),
        budget: Some(random.micros(10, 2500)),
        may_grow: random.below(2) == 0,
        cgroup: random.maybe(|_| format!("/sys/fs/cgroup/group-{index}")),
        serve_fifo: true,
        lead: random.maybe(|random| random.micros(1, 1000)),
        kernel_threads: threads.into_iter().filter(|_| windows.is_none()).collect(),
        windows,
        run: (0..random.below(3)).map(|number| process(random, format!("of-{index}-{number}"), Some(true))).collect(),
        tasks: (0..random.below(3)).map(|number| task(random, number)).collect(),
        ..Group::named(format!("group-{index}"), cpus)
    }
}

fn container(random: &mut Random) -> ContainerLoad {
    let program = Some(Program::new([random.text()]));
    match random.below(2) {
        0 => ContainerLoad {
            root: ContainerRoot::Rootfs(format!("/srv/{}", random.text())),
            program,
            engine: Engine::ALL[random.below(3) as usize],
        },
        _ => ContainerLoad { root: ContainerRoot::Image("web".into()), program: None, engine: Engine::Podman },
    }
}

/// A process in a group, which has containers or other processes, with a budget or without. Or a process in no group.
fn process(random: &mut Random, name: String, in_group: Option<bool>) -> Process {
    let run = match random.below(if in_group.is_some() { 5 } else { 6 }) {
        0 => Load::Hog,
        1 => Load::Syscalls,
        2 => Load::Periodic(Periodic { period: random.micros(100, 200), run: random.micros(1, 100) }),
        3 => Load::PingFlood(PingFlood { to: "10.0.0.9".into(), bytes: random.below(6000) as u32 }),
        4 => Load::Program(program(random)),
        _ => Load::Container(container(random)),
    };
    let policy = match random.below(2) {
        0 => Policy::Other(random.below(40) as i8 - 20),
        _ => Policy::Fifo(1 + random.below(98) as u8),
    };
    let count = 1 + random.below(3) as u32;
    let namespace = random.maybe(|_| NAMESPACES[1].into());
    let process = Process { count, namespace, ..Process::named(name, run) };
    match in_group {
        Some(false) => process,
        _ => Process { cpu: random.maybe(|random| random.below(4) as u32), policy, ..process },
    }
}

/// The network of a system with this sender and these groups, which have windows or budgets.
fn network(random: &mut Random, sender: &str, groups: &[Group]) -> Network {
    let is_shaped = random.below(2) == 0;
    let class = |name: &str, priority| TrafficClass {
        name: name.into(),
        priority,
        pcp: (priority == Some(9)).then_some(3),
        max_size: Size::from_bytes(1000),
        rate: (name == "rest" && is_shaped).then(|| Speed::from_bits(1_500_000)),
        queues: if name == "rest" && !is_shaped { 3 } else { 1 },
    };
    let gate = |length: i64, open: &[&str]| GateEntry {
        length: us(length),
        open: open.iter().map(|name| name.to_string()).collect(),
    };
    let given = Gates::Given(vec![gate(100, &["rest", "null"]), gate(400, &[]), gate(500, &["a.b"])]);
    let lead = random.maybe(|random| random.micros(1, 1000));
    let interface = |name: &str, end, gates| Interface {
        name: name.into(),
        end,
        speed: Some(Speed::VIRTUAL),
        vlan: None,
        gates,
        entries: None,
        host: None,
        path: Duration::ZERO,
        delay: Duration::ZERO,
        opening: Duration::from_micros(2),
        lead: None,
        cpu: None,
    };
    let device = InterfaceEnd::Device("eth1.5".into());
    let interfaces = vec![
        Interface {
            lead,
            cpu: lead.map(|_| 1),
            entries: lead.map(|_| 77),
            path: random.micros(0, 9),
            delay: random.micros(0, 9),
            opening: random.micros(1, 999),
            ..interface("0", InterfaceEnd::Namespace(NAMESPACES[0].into()), Some(Gates::Planned))
        },
        interface("port", InterfaceEnd::Port(NAMESPACES[1].into()), random.maybe(|_| given)),
        Interface {
            speed: Some(Speed::from_bits(2_000_000 + 500_000 * random.below(999))),
            vlan: random.maybe(|random| 1 + random.below(4094) as u32),
            ..interface("wire", device, None)
        },
    ];
    let flow = Flow {
        express: false,
        name: "flow".into(),
        from: sender.into(),
        to: random.maybe(|_| groups.first().map(|group| group.name.clone())).flatten(),
        via: vec!["0".into(), "wire".into()],
        size: Size::from_bytes(1 + random.below(1000) as u32),
        class: "null".into(),
        deadline: Duration::from_millis(100),
        after: random.maybe(|random| random.micros(0, 999)),
        period: None,
    };
    let slot = |(index, group): (usize, &Group)| Slot {
        group: group.name.clone(),
        class: "a.b".into(),
        interface: (index == 0).then(|| "0".into()),
        period: Duration::from_millis(20),
        length: Duration::from_millis(1),
        offset: (index == 0).then_some(Duration::from_micros(7)),
    };
    Network {
        classes: vec![class("null", Some(9)), class("a.b", Some(0)), class("rest", None)],
        sync: None,
        interfaces,
        flows: vec![flow],
        slots: groups.iter().enumerate().take(1).map(slot).collect(),
    }
}

fn window(random: &mut Random, index: u64, task: &Task) -> GivenWindow {
    let (cpu, offset) = ((index % 2) as u32, us(100 * index as i64));
    GivenWindow {
        activate: random.below(2) == 0,
        deadline: random.below(2) == 0,
        ..GivenWindow::new(&task.name, cpu, offset, random.micros(1, 100))
    }
}

fn system(seed: u64) -> System {
    let random = &mut Random(SplitMix64::new(seed));
    let mut tasks: Vec<Task> = (0..2 + random.below(6)).map(|index| task(random, index)).collect();
    let path: Vec<String> = tasks.iter().map(|task| task.name.clone()).collect();
    let reaction = random.maybe(|random| random.micros(1, 99_999));
    let age = random.maybe(|random| random.micros(1, 99_999)).or(reaction.xor(Some(Duration::from_millis(7))));
    let mut groups: Vec<Group> = (0..random.below(3)).map(|index| group(random, index)).collect();
    let server_period = if groups.is_empty() { Duration::from_millis(1) } else { System::DEFAULT_SERVER_PERIOD };
    groups.extend((0..random.below(4)).map(|index| pool(random, index)));
    let turn = random.below(1 + groups.len() as u64) as usize;
    groups.rotate_left(turn);
    let table = random.maybe(|random| (0..5).map(|index| window(random, index, &tasks[0])).collect());
    let network = random.maybe(|random| network(random, &tasks[0].name, &groups));
    let clock = random.maybe(sync_window).map_or(Clock::Monotonic, Clock::Tai);
    let sync = SyncClass { priority: 7, size: Size::from_bytes(128), frames: 8 };
    let network = network.map(|network| Network { sync: (clock != Clock::Monotonic).then_some(sync), ..network });
    let load = (0..random.below(4)).map(|index| process(random, format!("load-{index}"), None)).collect();
    // The tasks before these stay in front.
    tasks.extend((0..random.below(3)).map(|index| reserved(random, index)));
    System {
        macrotick: Duration::from_nanos([1, 10, 1000][random.below(3) as usize]),
        cycle: random.maybe(|random| Duration::from_millis(20 * (1 + random.below(5) as i64))),
        lead: random.maybe(lead),
        clock,
        cpus: vec![0, 1],
        experiment: Experiment { duration: random.micros(1, 10_000_000) },
        chains: vec![Chain { reaction, age, ..Chain::named("chain", path) }],
        load,
        tasks,
        server_period,
        groups,
        namespaces: namespaces(),
        profile: random.maybe(profile),
        network,
        table,
        lab: Lab { files: (0..random.below(3)).map(|_| format!("/x{}", random.text())).collect() },
        ..System::named(format!("random-{seed}"))
    }
}

fn plan(seed: u64) -> Plan {
    let windows = |cpu: i64| {
        (0..3).map(move |index| Window {
            activate: index % 2 == 0,
            deadline: index % 3 == 0,
            ..Window::new("t-0", us(index * 10 + cpu), us(5))
        })
    };
    let tables = (0..seed as i64 % 3).map(|cpu| table(cpu as u32, windows(cpu))).collect();
    let mut plan = by_hand(system(seed), ms(20), tables);
    if plan.system.network.is_some() {
        let entry =
            |length, open: &[&str]| GateEntry { length, open: open.iter().map(|name| name.to_string()).collect() };
        let entries = vec![entry(us(4500), &[]), entry(us(500), &["null", "rest"])];
        plan.gates = vec![GateList { interface: "0".into(), cycle: ms(5), entries }];
    }
    plan
}

#[test]
fn gate_lists_of_plans_are_checked() {
    let plan = (0..).map(plan).find(|plan| !plan.gates.is_empty()).expect("a plan with gates");
    let refused = |change: fn(&mut GateList)| {
        let mut plan = plan.clone();
        change(&mut plan.gates[0]);
        Plan::from_json(&plan.to_json(), "p.json").expect_err("refused").to_string()
    };
    let text = refused(|list| list.interface = "odd".into());
    assert_eq!(text, "p.json: gates[0]: the system has no interface `odd`");
    let text = refused(|list| list.cycle = ms(3));
    assert!(text.contains("gates[0]: the cycle 20ms of the plan is not a multiple of 3ms"), "{text}");
    assert!(text.contains("gates[0]: the entries sum up to 5ms, not to the cycle 3ms"), "{text}");
    assert!(refused(|list| list.cycle = ms(0)).contains("cycle 0ns is not within (0, 2147483647ns]"));
    let text = refused(|list| list.entries[0].open = vec!["odd".into()]);
    assert!(text.contains("entry 0 opens `odd`, which is no class"), "{text}");
    let text = refused(|list| list.entries[1].length = ns(67));
    assert!(text.contains("entry 1 of 67ns is shorter than a frame, 68ns"), "{text}");
    let text = refused(|list| list.entries = vec![list.entries[0].clone(); 401]);
    assert!(text.contains("401 entries are too many, the limit is 400"), "{text}");
}

#[test]
fn normal_form_parses_back() {
    for seed in 0..500 {
        let system = system(seed);
        let text = system.to_yaml();
        match System::parse(&text, "normal-form.yaml") {
            Ok(parsed) => assert_eq!(parsed, system, "seed {seed}:\n{text}"),
            Err(errors) => panic!("seed {seed}:\n{text}\n{errors}"),
        }
    }
}

#[test]
fn plans_survive_their_file() {
    for seed in 0..100 {
        let plan = plan(seed);
        let text = plan.to_json();
        assert_eq!(Plan::from_json(&text, "plan.json").expect("a valid plan"), plan, "{text}");
        let windows = plan.tables.iter().map(|table| table.windows.len()).sum::<usize>();
        assert_eq!(
            text.lines().filter(|line| line.contains("\"offset\":") && line.starts_with("  {")).count(),
            windows
        );
    }
}

#[test]
fn files_are_written_whole_and_read_back() {
    let folder = std::env::temp_dir().join(format!("macrotick-model-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let path = folder.join("plan.json");
    plan(2).save(&path).expect("a writable folder");
    assert_eq!(Plan::load(&path).expect("a readable plan"), plan(2));
    assert_eq!(std::fs::read_dir(&folder).expect("a folder").count(), 1, "no partial file remains");
    std::fs::remove_dir_all(&folder).expect("removable");
    let error = plan(2).save(&path).expect_err("the folder is gone").to_string();
    assert!(error.starts_with(&format!("cannot write {}", path.display())), "{error}");
    let error = Plan::load(&path).expect_err("the folder is gone").to_string();
    assert!(error.starts_with(&format!("cannot read {}", path.display())), "{error}");
}

#[test]
fn bad_plan_files_are_refused_with_place_and_reason() {
    let refuse = |text: &str| Plan::from_json(text, "p.json").expect_err("refused").to_string();
    let good = plan(1).to_json();
    assert_eq!(refuse("{\n\"version\": 2,\n\"solver\": }"), "p.json:3:11: expected value");
    assert_eq!(
        refuse(&good.replace("\"version\": 2", "\"version\": 7")),
        "p.json: a plan of version 7, this program reads version 2: create it again"
    );
    assert_eq!(refuse("{\"version\": 2}"), "p.json:1:14: missing field `solver`");
    // The decoder refuses unknown parts.
    for (part, renamed) in [("groups", "gruops"), ("wcet", "budget-of-time"), ("tables", "table"), ("offset", "at")] {
        let text = refuse(&good.replace(&format!("\"{part}\""), &format!("\"{renamed}\"")));
        assert!(["field", "key"].iter().any(|what| text.contains(&format!("unknown {what} `{renamed}`"))), "{text}");
    }
    let odd = refuse(&good.replace("\"cycle\": \"20ms\",\n\"tables\"", "\"cycle\": \"20\",\n\"tables\""));
    assert!(odd.starts_with("p.json:4:13: a time needs a unit"), "{odd}");
    let mut broken = plan(1);
    broken.system.tasks[0].period = Duration::ZERO;
    broken.cycle = Duration::ZERO;
    let text = refuse(&broken.to_json());
    assert!(text.contains("system.tasks[0].period: period must be longer than zero, this is 0ns"), "{text}");
    assert!(text.contains("; cycle: 0ns is not within"), "{text}");
}

#[test]
fn observations_survive_their_file() {
    let observation = Observation {
        tasks: vec![records("t-0", vec![job(3, ms(30), Some(ns(30_000_231)), None)])],
        groups: vec![GroupObservation { refills: 9, exhaustions: 8, throttled_ns: 7, ..group_record("group-0", 6) }],
        pools: vec![PoolObservation { overrun: 3, skipped: 4, threads: 5, ..pool_record("pool-0", 1, 2) }],
        output: vec![fixtures::output("hog.1", "\u{1b}[31mred\n")],
        ..observation(plan(4))
    };
    let text = observation.to_json();
    assert_eq!(Observation::from_json(&text, "o.json").expect("valid"), observation);
    let error = Observation::from_json(&text.replacen("3", "1", 1), "o.json").expect_err("refused").to_string();
    assert_eq!(error, "o.json: an observation of version 1, this program reads version 3: create it again");
}

/// Damaged descriptions are read or refused, without a panic. An error has a place within the text.
#[test]
fn damaged_descriptions_are_refused_in_place() {
    const SCRAPS: [&str; 12] =
        ["", ":", "\n", "  ", "- ", "{", "]", "\"", "99999999999s", "-1us", "9223372036854775807ns", "\u{fc}\t"];
    let (mut refused, mut read) = (0, 0);
    for seed in 0..3000 {
        let random = &mut Random(SplitMix64::new(seed));
        let mut text: Vec<char> = system(seed % 7).to_yaml().chars().collect();
        for _ in 0..=random.below(2) {
            let from = random.below(text.len() as u64) as usize;
            let to = (from + random.below(6) as usize).min(text.len());
            text.splice(from..to, SCRAPS[random.below(SCRAPS.len() as u64) as usize].chars());
        }
        let text: String = text.into_iter().collect();
        match System::parse(&text, "damaged.yaml") {
            Ok(_) => read += 1,
            Err(errors) => {
                refused += 1;
                let lines = text.lines().count() + 1;
                assert!(errors.iter().count() > 0 && !errors.to_string().is_empty());
                for error in errors.iter() {
                    assert!((1..=lines).contains(&error.at.line) && error.at.column >= 1, "{error:?} in:\n{text}");
                }
            }
        }
    }
    assert!(refused > 1000 && read > 20, "{refused} refused, {read} read");
}
