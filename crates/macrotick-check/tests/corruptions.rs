//! Corruptions of good plans, one after the other: the judge must name the broken rule of each.
//!
//! `mutations.rs` breaks random windows of random plans. Here each kind has a name, and each rule of [`Violation`] has a
//! kind that breaks it.

use std::collections::BTreeSet;

use macrotick_check::{against, check, Verdict};
use macrotick_fixtures::{described, ms, us};
use macrotick_model::{
    Clock, CpuSet, CpuTable, Duration, Gates, Lead, Plan, Reservation, Supply, SyncWindow, System, Window,
};
use macrotick_plan::{plan, Solver};

/// A description, a corruption of its plan, and the rule that the corruption breaks.
struct Kind {
    name: &'static str,
    base: fn() -> System,
    corrupt: fn(&mut Plan),
    rule: &'static str,
}

/// Shows a kind in a table in one or two lines.
fn kind(name: &'static str, base: fn() -> System, rule: &'static str, corrupt: fn(&mut Plan)) -> Kind {
    Kind { name, base, corrupt, rule }
}

/// Tasks on two CPUs with chains, and groups with windows.
fn windows() -> System {
    described(
        "system: windows
cpus: [0, 1]
tasks:
  - {name: fast, period: 1ms, wcet: 100us, jitter: 0us, cpu: 0}
  - {name: slow, period: 4ms, wcet: 2ms, cpu: 0}
  - {name: whole, period: 4ms, wcet: 600us, preemptible: false, cpu: 1}
  - {name: last, period: 4ms, wcet: 100us, after: [whole], cpu: 1}
  - {name: free, period: 2ms, wcet: 100us}
chains:
  - {name: chain, path: [fast, last], reaction: 12ms, age: 12ms}
groups:
  - {name: pinned, windows: {period: 4ms, length: 200us}, cpus: [1]}
  - {name: anywhere, windows: {period: 2ms, length: 100us}}
",
    )
}

/// Windows with leads and sync windows.
fn timed() -> System {
    described(
        "system: timed
cpus: [0]
lead: 20us
clock: {tai: {period: 4ms, length: 200us, bound: 100us}}
tasks:
  - {name: one, period: 2ms, wcet: 300us}
  - {name: two, period: 4ms, wcet: 300us}
",
    )
}

/// Two tasks that share no CPU.
fn separate() -> System {
    described(
        "system: separate
cpus: [0, 1]
tasks:
  - {name: left, period: 10ms, wcet: 1ms, apart: [right]}
  - {name: right, period: 10ms, wcet: 1ms}
",
    )
}

/// Two tasks on different CPUs that share a resource.
fn shared() -> System {
    described(
        "system: shared
cpus: [0, 1]
tasks:
  - {name: fast, period: 5ms, wcet: 1ms, cpu: 0}
  - {name: left, period: 20ms, wcet: 8ms, cpu: 0, exclusive: [bus]}
  - {name: right, period: 20ms, wcet: 5ms, cpu: 1, exclusive: [bus]}
  - {name: idle, period: 20ms, wcet: 1ms, cpu: 1}
",
    )
}

/// Moves the only window of `right` to an instant of the job of `left`.
fn right_within_left(plan: &mut Plan, at: fn(&[Window]) -> Duration) {
    let own: Vec<Window> = plan.tables[0].windows.iter().filter(|window| window.task == "left").cloned().collect();
    let offset = at(&own);
    plan.tables[1].windows.retain(|window| window.task == "right");
    plan.tables[1].windows[0].offset = offset;
}

/// Tasks beside a reserve.
fn reserved() -> System {
    described(
        "system: reserved
cpus: [0]
lead: 20us
reserve: {period: 1ms, length: 300us}
tasks:
  - {name: one, period: 1ms, wcet: 200us}
  - {name: two, period: 4ms, wcet: 1ms}
",
    )
}

/// A task that fits on no single CPU.
fn moving() -> System {
    described(
        "system: moving
cpus: [0, 1]
tasks:
  - {name: left, period: 20ms, wcet: 12ms, cpu: 0}
  - {name: right, period: 20ms, wcet: 12ms, cpu: 1}
  - {name: moves, period: 20ms, wcet: 12ms, migrate: true}
",
    )
}

/// Groups with budgets and tasks of SCHED_DEADLINE beside windows.
fn budgets() -> System {
    described(
        "system: budgets
cpus: [0, 1]
tasks:
  - {name: fast, period: 5ms, wcet: 500us, cpu: 0}
  - {name: deadline, period: 20ms, wcet: 2ms, supply: {deadline: {runtime: 3ms, cpus: [1]}}}
groups:
  - {name: vendor, budget: 800us, priority: 20, cpus: [0], tasks: [{name: loop, period: 20ms, wcet: 2ms, priority: 10}]}
",
    )
}

/// A message through planned gates, with a gate thread, a slot and sync windows.
fn gates() -> System {
    described(
        "system: gates
cpus: [0]
clock: {tai: {period: 4ms, length: 200us, bound: 100us}}
namespaces:
  - {name: left, address: 10.0.0.1/24}
  - {name: right, address: 10.0.0.2/24}
tasks:
  - {name: sender, period: 4ms, wcet: 200us, namespace: left}
  - {name: receiver, period: 4ms, wcet: 200us, namespace: right}
groups:
  - {name: vendor, priority: 10, budget: 300us}
network:
  classes: [{name: control, priority: 6}, {name: vendor, priority: 5}, {name: rest}]
  interfaces:
    - {name: port, namespace: left, speed: 100Mb/s, gates: planned, lead: 50us, cpu: 0}
    - {name: free, port: right, speed: 1Gb/s}
  flows:
    - {name: setpoint, from: sender, to: receiver, size: 200B, class: control, deadline: 400us}
    - {name: log, from: sender, size: 200B, class: control, deadline: 500us}
  slots:
    - {group: vendor, interface: port, period: 4ms, length: 300us}
",
    )
}

/// Gates by hand.
fn given() -> System {
    described(
        "system: given
cpus: [0]
namespaces:
  - {name: left, address: 10.0.0.1/24}
tasks:
  - {name: sender, period: 4ms, wcet: 200us, namespace: left}
network:
  classes: [{name: control, priority: 6}, {name: rest}]
  interfaces:
    - name: port
      namespace: left
      speed: 100Mb/s
      gates: [{length: 1ms, open: [rest]}, {length: 1ms, open: [control]}]
  flows:
    - {name: log, from: sender, size: 200B, class: control, deadline: 3ms}
",
    )
}

fn windows_of<'a>(plan: &'a mut Plan, name: &'a str) -> impl Iterator<Item = &'a mut Window> {
    plan.tables.iter_mut().flat_map(|table| &mut table.windows).filter(move |window| window.task == name)
}

fn first<'a>(plan: &'a mut Plan, name: &'a str) -> &'a mut Window {
    windows_of(plan, name).next().expect("a window")
}

fn last<'a>(plan: &'a mut Plan, name: &'a str) -> &'a mut Window {
    windows_of(plan, name).last().expect("a window")
}

fn drop_windows(plan: &mut Plan, name: &str) {
    plan.tables.iter_mut().for_each(|table| table.windows.retain(|window| window.task != name));
}

/// Moves the first window of a task or group to another CPU.
fn to_other_cpu(plan: &mut Plan, name: &str) {
    let from = plan.tables.iter().position(|table| table.windows.iter().any(|window| window.task == name)).unwrap();
    let at = plan.tables[from].windows.iter().position(|window| window.task == name).unwrap();
    let window = plan.tables[from].windows.remove(at);
    let windows = &mut plan.tables[1 - from].windows;
    windows.push(window);
    windows.sort_by_key(|window| window.offset);
}

fn sync(plan: &mut Plan) -> &mut SyncWindow {
    match &mut plan.system.clock {
        Clock::Tai(sync) => sync,
        Clock::Monotonic => panic!("no sync windows"),
    }
}

fn reservation(plan: &mut Plan) -> &mut Reservation {
    let supply = plan.system.tasks.iter_mut().find_map(|task| match &mut task.supply {
        Supply::Deadline(reservation) => Some(reservation),
        _ => None,
    });
    supply.expect("a reservation")
}

/// Changes the length of the entry in which only this class is open, and gives the time to the entry after it.
fn reopen(plan: &mut Plan, class: &str, by: Duration) {
    let entries = &mut plan.gates[0].entries;
    let at = entries.iter().position(|entry| entry.open == [class]).expect("an entry");
    entries[at].length += by;
    let next = (at + 1) % entries.len();
    entries[next].length -= by;
}

fn kinds() -> Vec<Kind> {
    vec![
        // The time base.
        kind("cycle of no multiple", windows, "cycle", |plan| plan.cycle += us(1)),
        kind("cycle of half", windows, "cycle", |plan| plan.cycle = ms(2)),
        kind("cycle of zero", windows, "cycle", |plan| plan.cycle = Duration::ZERO),
        kind("macrotick of zero", windows, "macrotick", |plan| plan.system.macrotick = Duration::ZERO),
        kind("negative macrotick", windows, "macrotick", |plan| plan.system.macrotick = us(-1)),
        // Tables and windows.
        kind("too many windows", windows, "too-many-windows", |plan| {
            let window = plan.tables[0].windows[0].clone();
            plan.tables[0].windows = vec![window; 1_048_577];
        }),
        kind("table of a CPU that is not there", windows, "unknown-cpu", |plan| plan.tables[1].cpu = 7),
        kind("CPU taken out of the system", windows, "unknown-cpu", |plan| plan.system.cpus = vec![0]),
        kind("tables in the wrong order", windows, "table-order", |plan| plan.tables.reverse()),
        kind("two tables of one CPU", windows, "table-order", |plan| plan.tables[1].cpu = 0),
        kind("window of a stranger", windows, "unknown-task", |plan| first(plan, "free").task = "stranger".into()),
        kind("task taken out of the system", windows, "unknown-task", |plan| drop(plan.system.tasks.remove(1))),
        kind("group taken out of the system", windows, "unknown-task", |plan| drop(plan.system.groups.remove(0))),
        kind("start off the grid", windows, "off-grid", |plan| first(plan, "free").offset += Duration::from_nanos(1)),
        kind("length off the grid", windows, "off-grid", |plan| first(plan, "free").length -= Duration::from_nanos(1)),
        kind("coarser macrotick", windows, "off-grid", |plan| plan.system.macrotick = us(7)),
        kind("window of 999 ns", windows, "too-short", |plan| {
            plan.system.macrotick = Duration::from_nanos(1);
            first(plan, "slow").length = Duration::from_nanos(999);
        }),
        kind("window of no length", windows, "too-short", |plan| first(plan, "free").length = Duration::ZERO),
        kind("negative length", windows, "too-short", |plan| first(plan, "free").length = us(-100)),
        kind("window beyond the cycle", windows, "outside-cycle", |plan| last(plan, "fast").offset = ms(4) - us(50)),
        kind("negative start", windows, "outside-cycle", |plan| first(plan, "fast").offset = us(-10)),
        kind("windows out of order", windows, "not-sorted", |plan| plan.tables[0].windows.swap(0, 1)),
        kind("window over the next one", windows, "overlap", |plan| {
            let next = plan.tables[0].windows[1].offset;
            let window = &mut plan.tables[0].windows[0];
            window.length = next - window.offset + us(1);
        }),
        kind("window twice", windows, "overlap", |plan| {
            let window = plan.tables[0].windows[0].clone();
            plan.tables[0].windows.insert(0, window);
        }),
        kind("windows over all of a CPU", windows, "capacity", |plan| {
            plan.tables[1] = CpuTable::new(1, vec![Window::new("pinned", Duration::ZERO, ms(4))]);
        }),
        // Leads and sync windows.
        kind("no room for a lead", timed, "lead", |plan| {
            let windows = &mut plan.tables[0].windows;
            let window = (1..windows.len()).find(|&window| windows[window].activate).expect("a second job");
            let end = windows[window - 1].end();
            windows[window].offset = end + us(10);
        }),
        kind("longer lead", timed, "lead", |plan| plan.system.lead = Some(Lead::Fixed(ms(1)))),
        kind("lead of all time", timed, "capacity", |plan| plan.system.lead = Some(Lead::Auto(ms(2)))),
        kind("sync windows of another cycle", timed, "sync-cycle", |plan| sync(plan).period = ms(3)),
        kind("sync window after its period", timed, "sync-range", |plan| sync(plan).offset = ms(4)),
        kind("sync window of no length", timed, "sync-range", |plan| sync(plan).length = Duration::ZERO),
        kind("bound of a sync window as long as it", timed, "sync-bound", |plan| sync(plan).bound = us(200)),
        kind("no bound of a sync window", timed, "sync-bound", |plan| sync(plan).bound = Duration::ZERO),
        kind("sync window at a window", timed, "sync", |plan| {
            let at = first(plan, "one").offset;
            sync(plan).offset = at;
        }),
        kind("longer sync window", timed, "sync", |plan| {
            sync(plan).offset = Duration::ZERO;
            sync(plan).length = ms(4);
        }),
        // Tasks apart.
        kind("task on the CPU of one that it is apart from", separate, "together", |plan| to_other_cpu(plan, "left")),
        kind("CPUs of two tasks that become apart", windows, "together", |plan| {
            plan.system.tasks[0].apart = vec!["slow".into()];
        }),
        // Resources.
        kind("job while another one has the resource", shared, "exclusive", |plan| {
            right_within_left(plan, |left| left[0].offset + us(1000));
        }),
        kind("job between two windows of one that has the resource", shared, "exclusive", |plan| {
            let window = first(plan, "right");
            window.length = us(500);
            right_within_left(plan, |left| left[0].offset + left[0].length);
        }),
        kind("job that has the resource over the end of the cycle", shared, "exclusive", |plan| {
            let cycle = plan.cycle;
            right_within_left(plan, |_| Duration::ZERO);
            plan.system.tasks[1].offset = Some(ms(15));
            plan.tables[0].windows.retain(|window| window.task != "left");
            let half = |offset, activate, deadline| Window { activate, deadline, ..Window::new("left", offset, ms(3)) };
            plan.tables[0].windows.extend([half(ms(1), false, true), half(cycle - ms(3), true, false)]);
            plan.tables[0].windows.sort_by_key(|window| window.offset);
        }),
        kind("tasks that get a resource", windows, "exclusive", |plan| {
            plan.system.tasks.iter_mut().for_each(|task| task.exclusive = vec!["bus".into()]);
        }),
        // The reserve.
        kind("reserve of another cycle", reserved, "reserve-cycle", |plan| {
            plan.system.reserve.as_mut().expect("a reserve").period = ms(3);
        }),
        kind("longer reserve", reserved, "reserve", |plan| {
            plan.system.reserve.as_mut().expect("a reserve").length = us(800);
        }),
        kind("leads in the time of the reserve", reserved, "reserve", |plan| {
            plan.system.lead = Some(Lead::Fixed(us(600)));
        }),
        // CPUs of tasks.
        kind("task without windows", windows, "no-window", |plan| drop_windows(plan, "free")),
        kind("no tables", windows, "no-window", |plan| plan.tables.clear()),
        kind("job on another CPU", windows, "migrates", |plan| to_other_cpu(plan, "free")),
        kind("task on a CPU of another pin", windows, "wrong-cpu", |plan| plan.system.tasks[0].cpu = Some(1)),
        kind("two CPUs at the same time", moving, "parallel", |plan| {
            let window = first(plan, "moves").clone();
            plan.tables[1].windows.retain(|other| other.end() <= window.offset || window.end() <= other.offset);
            plan.tables[1].windows.push(window);
            plan.tables[1].windows.sort_by_key(|window| window.offset);
        }),
        kind("task that may not migrate any more", moving, "migrates", |plan| plan.system.tasks[2].migrate = false),
        kind("job without preemption in two parts", windows, "preempted", |plan| {
            let table = plan.tables.iter_mut().find(|table| table.cpu == 1).expect("a table");
            let at = table.windows.iter().position(|window| window.task == "whole").expect("a window");
            let half = us(300);
            let rest = Window {
                offset: table.windows[at].offset + half,
                length: table.windows[at].length - half,
                activate: false,
                ..table.windows[at].clone()
            };
            table.windows[at].length = half;
            table.windows[at].deadline = false;
            table.windows.insert(at + 1, rest);
        }),
        kind("no preemption of a job in parts", windows, "preempted", |plan| {
            plan.system.tasks[1].preemptible = Some(false)
        }),
        // Jobs.
        kind("no job begins", windows, "no-job", |plan| {
            windows_of(plan, "free").for_each(|window| window.activate = false)
        }),
        kind("window after the end of a job", windows, "no-job", |plan| {
            windows_of(plan, "slow").for_each(|window| window.deadline = window.activate)
        }),
        kind("no job ends", windows, "no-deadline", |plan| first(plan, "free").deadline = false),
        kind("one job more", windows, "job-count", |plan| plan.system.tasks[4].period = ms(4)),
        kind("one job less", windows, "job-count", |plan| {
            let offset = last(plan, "free").offset;
            plan.tables
                .iter_mut()
                .for_each(|table| table.windows.retain(|window| window.task != "free" || window.offset != offset));
        }),
        kind("job in the period of the next one", windows, "slot", |plan| {
            plan.system.tasks[0].jitter = Some(ms(1));
            plan.system.tasks[0].offset = Some(Duration::ZERO);
            let at = last(plan, "fast").offset;
            first(plan, "fast").offset = at + us(200);
            plan.tables.iter_mut().for_each(|table| table.windows.sort_by_key(|window| window.offset));
        }),
        kind("window shorter than the wcet", windows, "starved", |plan| first(plan, "free").length -= us(1)),
        kind("longer wcet", windows, "starved", |plan| plan.system.tasks[3].wcet += us(1)),
        kind("wcet of all parts, without their cost", windows, "starved", |plan| {
            let parts = windows_of(plan, "slow").count() as i64;
            assert!(parts > 1);
            last(plan, "slow").length -= us(1);
        }),
        kind("window that ends before the job runs", windows, "no-start", |plan| {
            plan.system.tasks[4].wcet = us(5);
            windows_of(plan, "free").for_each(|window| window.length = us(5));
        }),
        kind("part hardly longer than its cost", windows, "short-piece", |plan| last(plan, "slow").length = us(6)),
        kind("shorter deadline", windows, "late", |plan| plan.system.tasks[1].deadline = ms(1)),
        kind("deadline of a late period", windows, "late", |plan| {
            plan.system.tasks[2].deadline = us(100);
        }),
        kind("start off its phase", windows, "jitter", |plan| {
            let windows: Vec<&mut Window> = windows_of(plan, "fast").collect();
            windows.into_iter().nth(1).expect("a second job").offset += us(1);
        }),
        kind("job before the one that it follows", windows, "too-early", |plan| {
            let start = first(plan, "whole").offset;
            first(plan, "last").offset = start + us(1);
        }),
        // Groups with windows.
        kind("group without windows", windows, "pool-no-window", |plan| drop_windows(plan, "pinned")),
        kind("group on two CPUs", windows, "pool-migrates", |plan| to_other_cpu(plan, "anywhere")),
        kind("group on another CPU", windows, "pool-wrong-cpu", |plan| to_other_cpu(plan, "pinned")),
        kind("job of a group", windows, "pool-flags", |plan| first(plan, "pinned").activate = true),
        kind("deadline of a group", windows, "pool-flags", |plan| first(plan, "anywhere").deadline = true),
        kind("window that ends before threads run", windows, "pool-short", |plan| {
            first(plan, "anywhere").length = us(5)
        }),
        kind("shorter window of a group", windows, "pool-budget", |plan| first(plan, "pinned").length -= us(1)),
        kind("period of a group without a window", windows, "pool-budget", |plan| {
            let offset = first(plan, "anywhere").offset;
            last(plan, "anywhere").offset = offset + us(110);
            plan.tables.iter_mut().for_each(|table| table.windows.sort_by_key(|window| window.offset));
        }),
        // Chains.
        kind("shorter reaction", windows, "reaction", |plan| plan.system.chains[0].reaction = Some(us(10))),
        kind("shorter age", windows, "age", |plan| plan.system.chains[0].age = Some(us(10))),
        kind("chain through a stranger", windows, "chain-broken", |plan| {
            plan.system.chains[0].path[0] = "stranger".into();
        }),
        kind("chain through a task without windows", windows, "chain-broken", |plan| drop_windows(plan, "fast")),
        // Budgets and reservations.
        kind("budget below the demand", budgets, "groups", |plan| plan.system.groups[0].budget = Some(us(100))),
        kind("budget of all time", budgets, "groups", |plan| plan.system.groups[0].budget = Some(us(2500))),
        kind("task of a group with a short deadline", budgets, "groups", |plan| {
            plan.system.groups[0].tasks[0].deadline = us(100);
        }),
        kind("group without a priority", budgets, "groups-unknown", |plan| plan.system.groups[0].priority = None),
        kind("reservation without a CPU", budgets, "no-cpu", |plan| reservation(plan).cpus = CpuSet::default()),
        kind("reservation of all time", budgets, "promised", |plan| reservation(plan).runtime = ms(20)),
        kind("reservation on the CPU of others", budgets, "promised", |plan| {
            reservation(plan).runtime = ms(12);
            reservation(plan).cpus = CpuSet::from_iter([0]);
        }),
        kind("reservation with a short deadline", budgets, "demand", |plan| {
            plan.system.tasks[1].deadline = us(100);
        }),
        kind("reservation on another host", budgets, "wrong-reservation", |plan| {
            let cpus = reservation(plan).cpus.as_slice().to_vec();
            let host =
                |name: &str, cpus: Vec<u32>| macrotick_model::Host { name: name.into(), own: cpus.clone(), cpus };
            plan.system.hosts = vec![host("here", cpus), host("there", vec![99])];
            plan.system.tasks[1].host = Some("there".into());
        }),
        kind("windows in and beside a domain", moving, "straddles", |plan| {
            let task = plan.system.tasks[0].clone();
            let supply = Supply::Deadline(Reservation { runtime: us(10), cpus: CpuSet::from_iter([1]) });
            plan.system.tasks.push(macrotick_model::Task { name: "reserved".into(), supply, cpu: None, ..task });
        }),
        // Gates, flows and slots.
        kind("gates of no length", gates, "network/gates", |plan| plan.gates[0].cycle = Duration::ZERO),
        kind("class that is not there", gates, "network/gates", |plan| {
            plan.gates[0].entries[0].open = vec!["stranger".into()];
        }),
        kind("list of a stranger", gates, "network/unknown-list", |plan| {
            let list = plan.gates[0].clone();
            plan.gates.push(macrotick_model::GateList { interface: "stranger".into(), ..list });
        }),
        kind("no network", gates, "network/unknown-list", |plan| plan.system.network = None),
        kind("list of an interface without gates", gates, "network/stray-list", |plan| {
            let list = plan.gates[0].clone();
            plan.gates.push(macrotick_model::GateList { interface: "free".into(), ..list });
        }),
        kind("no list", gates, "network/no-list", |plan| plan.gates.clear()),
        kind("two lists", gates, "network/two-lists", |plan| {
            let list = plan.gates[0].clone();
            plan.gates.push(list);
        }),
        kind("other list than by hand", given, "network/other-list", |plan| {
            plan.gates[0].entries[0].length += us(1);
            plan.gates[0].entries[1].length -= us(1);
        }),
        kind("gate too short for a frame", given, "network/short", |plan| {
            let interface = &mut plan.system.network.as_mut().expect("a network").interfaces[0];
            let Some(Gates::Given(entries)) = &mut interface.gates else { panic!("gates by hand") };
            entries[0].length = ms(2) - us(10);
            entries[1].length = us(10);
            plan.gates[0].entries = entries.clone();
        }),
        kind("gate that never opens", gates, "network/short", |plan| {
            plan.gates[0].entries.iter_mut().for_each(|entry| entry.open.retain(|class| class != "control"));
        }),
        kind("shorter deadline of a flow", gates, "network/after-deadline", |plan| {
            plan.system.network.as_mut().expect("a network").flows[1].deadline = us(20);
        }),
        kind("receiver before the frame", gates, "network/after-window", |plan| {
            plan.system.network.as_mut().expect("a network").flows[0].deadline = ms(4);
            let end = first(plan, "sender").end();
            first(plan, "receiver").offset = end;
        }),
        kind("another class beside a flow", gates, "network/not-alone", |plan| {
            let entry = plan.gates[0].entries.iter_mut().find(|entry| entry.open == ["control"]);
            entry.expect("an entry").open.push("rest".into());
        }),
        kind("no time for the longest frame before a gate", gates, "network/guard-band", |plan| {
            let entries = &mut plan.gates[0].entries;
            let closed = (0..entries.len() - 1)
                .find(|&entry| entries[entry].open.is_empty() && entries[entry + 1].open == ["control"]);
            entries[closed.expect("a guard band")].open = vec!["rest".into()];
        }),
        kind("no time for clock synchronisation", gates, "network/sync-time", |plan| {
            let entries = &mut plan.gates[0].entries;
            entries.iter_mut().filter(|entry| entry.open == ["sync"]).for_each(|entry| entry.open.clear());
        }),
        kind("slot without a place", gates, "network/slot-unplaced", |plan| {
            plan.system.network.as_mut().expect("a network").slots[0].length += us(100);
        }),
        kind("slot at another place", gates, "network/slot-closed", |plan| {
            plan.system.network.as_mut().expect("a network").slots[0].offset = Some(us(1234));
        }),
        kind("class of a slot open at other times", gates, "network/slot-outside", |plan| {
            reopen(plan, "vendor", us(50))
        }),
        kind("gate thread without a group", gates, "network/no-thread", |plan| {
            plan.system.groups.retain(|group| group.kernel_threads.is_empty());
        }),
        kind("gate thread on another CPU", gates, "network/thread-cpu", |plan| {
            plan.system.cpus = vec![0, 1];
            plan.system.network.as_mut().expect("a network").interfaces[0].cpu = Some(1);
        }),
        kind("gate before its thread", gates, "network/thread-window", |plan| {
            let interface = &mut plan.system.network.as_mut().expect("a network").interfaces[0];
            interface.lead = Some(us(60));
        }),
        kind("gate that closes within a slot", gates, "network/slot-unplaced", |plan| reopen(plan, "vendor", us(-10))),
    ]
}

/// Returns the rules that a verdict names, those of the network after `network/`.
fn rules(verdict: &Verdict) -> BTreeSet<String> {
    let rule = |violation: &serde_json::Value| violation["rule"].as_str().expect("a rule").to_owned();
    let each = verdict.violations.iter().map(|violation| serde_json::to_value(violation).expect("JSON"));
    each.map(|violation| match rule(&violation).as_str() {
        "network" => format!("network/{}", rule(&violation["violation"])),
        rule => rule.to_owned(),
    })
    .collect()
}

fn good(base: fn() -> System) -> Plan {
    let system = base();
    let good = plan(&system, Solver::FoldedOccupancy).unwrap_or_else(|error| panic!("{}: {error}", system.name));
    let verdict = check(&good);
    assert!(verdict.is_feasible(), "{}: {verdict}", system.name);
    good
}

#[test]
fn the_judge_names_the_rule_that_each_kind_of_corruption_breaks() {
    let kinds = kinds();
    let names: BTreeSet<&str> = kinds.iter().map(|kind| kind.name).collect();
    assert_eq!(names.len(), kinds.len(), "two kinds have one name");
    assert!(kinds.len() >= 60, "{} kinds", kinds.len());
    let missed: Vec<String> = kinds
        .iter()
        .filter_map(|kind| {
            let mut plan = good(kind.base);
            (kind.corrupt)(&mut plan);
            let verdict = check(&plan);
            let found = rules(&verdict);
            (!found.contains(kind.rule)).then(|| format!("{}: {found:?} without {}", kind.name, kind.rule))
        })
        .collect();
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

/// Returns the names of the variants of an enum, as serde writes them.
fn variants(source: &str, name: &str) -> Vec<String> {
    let body = source.split(&format!("pub enum {name} {{\n")).nth(1).and_then(|rest| rest.split("\n}\n").next());
    let lines = body.expect("an enum").lines().filter_map(|line| line.strip_prefix("    "));
    let names = lines.filter(|line| line.starts_with(|first: char| first.is_ascii_uppercase()));
    let kebab = |line: &str| {
        let word: String = line.chars().take_while(char::is_ascii_alphanumeric).collect();
        let parts = word.chars().enumerate().map(|(at, letter)| match letter.is_ascii_uppercase() {
            true if at > 0 => format!("-{}", letter.to_ascii_lowercase()),
            _ => letter.to_ascii_lowercase().to_string(),
        });
        parts.collect::<String>()
    };
    names.map(kebab).collect()
}

/// A rule without a corruption would be a rule that the judge may have lost.
#[test]
fn each_rule_has_a_kind_of_corruption() {
    let used: BTreeSet<&str> = kinds().iter().map(|kind| kind.rule).collect();
    let all = variants(include_str!("../src/violation.rs"), "Violation");
    assert!(all.len() > 40, "{all:?}");
    // `network` has rules of its own. The last rule compares two descriptions.
    let others = ["network", "other-system"];
    let left: Vec<&String> =
        all.iter().filter(|rule| !used.contains(rule.as_str()) && !others.contains(&rule.as_str())).collect();
    assert!(left.is_empty(), "{left:?}");
    let plan = good(windows);
    assert_eq!(against(&plan, &windows()), []);
    assert!(!against(&plan, &timed()).is_empty());
}

/// Returns the paths of all numbers and times in a document.
fn values(value: &serde_json::Value, path: &str, found: &mut Vec<String>) {
    let mut inside = |key: String, value| values(value, &format!("{path}/{key}"), found);
    match value {
        serde_json::Value::Array(values) => {
            (0..).zip(values).for_each(|(at, value): (u32, _)| inside(at.to_string(), value))
        }
        serde_json::Value::Object(keys) => keys.iter().for_each(|(key, value)| inside(key.clone(), value)),
        serde_json::Value::Number(_) => found.push(path.to_owned()),
        serde_json::Value::String(text) if text.parse::<Duration>().is_ok() => found.push(path.to_owned()),
        _ => {}
    }
}

/// The judge answers for every plan that can be read. It must not panic at a value that no solver gives.
#[test]
fn no_value_makes_the_judge_panic() {
    const WRONG: [i64; 8] = [0, -1, 1, 1000, i64::MAX, i64::MIN + 1, u32::MAX as i64, 1_000_000_000_000_000_000];
    let mut judged = 0;
    for base in [windows, timed, moving, budgets, gates, given, shared] {
        let document = serde_json::to_value(good(base)).expect("JSON");
        let mut paths = Vec::new();
        values(&document, "", &mut paths);
        for path in &paths {
            for wrong in WRONG {
                let mut changed = document.clone();
                let value = changed.pointer_mut(path).expect("a value");
                *value = match value.is_number() {
                    true => wrong.into(),
                    false => format!("{wrong}ns").into(),
                };
                let Ok(plan) = Plan::from_json(&changed.to_string(), "plan.json") else { continue };
                let answer = std::panic::catch_unwind(|| check(&plan).to_string());
                assert!(answer.is_ok(), "{}: {path} = {wrong}", plan.system.name);
                judged += 1;
            }
        }
    }
    assert!(judged > 500, "{judged}");
}
