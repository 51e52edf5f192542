//! The synthesis as a whole.

use macrotick_model::timeline::timeline;
use macrotick_model::{Duration, GateList, Plan, SplitMix64, System};

use crate::{plan, PlanError, Solver};

fn described(text: &str) -> System {
    System::parse(text, "gates.yaml").unwrap_or_else(|errors| panic!("{errors}"))
}

fn planned(text: &str) -> Plan {
    let system = described(text);
    let plan = plan(&system, Solver::default_for(&system)).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(Plan::from_json(&plan.to_json(), "x").unwrap_or_else(|error| panic!("{error}")), plan);
    plan
}

fn refused(text: &str) -> (String, String) {
    let system = described(text);
    let error = plan(&system, Solver::default_for(&system)).expect_err("refused");
    assert!(error.is_infeasible());
    (error.finding(&system).at, error.to_string())
}

/// The lines of the timeline about an interface.
fn gates(plan: &Plan, interface: &str) -> Vec<String> {
    let text = timeline(plan);
    let from = text.lines().skip_while(|line| !line.starts_with(&format!("interface {interface}: ")));
    let own = from.skip(1).take_while(|line| line.starts_with(' '));
    own.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

/// Two tasks in two namespaces. The receiver starts 300 us after the sender.
fn pair(interfaces: &str, rest: &str) -> String {
    format!(
        "system: s
tasks:
  - {{name: s, period: 1ms, wcet: 100us, offset: 100us, jitter: 0us, namespace: left}}
  - {{name: r, period: 1ms, wcet: 100us, offset: 400us, jitter: 0us, namespace: right}}
namespaces:
  - {{name: left, address: 10.0.0.1/24}}
  - {{name: right, address: 10.0.0.2/24}}
network:
  classes:
    - {{name: high, priority: 6}}
    - {{name: rest}}
  interfaces:
{interfaces}{rest}"
    )
}

const LEFT: &str = "    - {name: left, namespace: left, speed: 100Mb/s, gates: planned}\n";

fn flow(keys: &str) -> String {
    format!("  flows:\n    - {{name: f, from: s, to: r, size: 64B, class: high, {keys}}}\n")
}

#[test]
fn a_gate_opens_when_the_sender_ends() {
    let plan = planned(&pair(LEFT, &flow("deadline: 50us")));
    // 64 + 18 + 20 bytes take 8160 ns, the opening 2 us, and 1542 bytes of the others 123360 ns.
    let expected = [
        "0ns .. 76640ns 76640ns rest",
        "76640ns .. 200us 123360ns -",
        "200us .. 210160ns 10160ns high",
        "210160ns .. 1ms 789840ns rest",
    ];
    assert_eq!(gates(&plan, "left"), expected);
    assert_eq!(plan.gates[0].cycle, Duration::from_millis(1));
}

#[test]
fn path_and_after_move_the_gate() {
    let left = LEFT.replace("gates", "path: 3us, gates");
    let plan = planned(&pair(&left, &flow("deadline: 50us, after: 20us")));
    assert!(gates(&plan, "left").contains(&"123us .. 133160ns 10160ns high".to_owned()), "{plan:?}");
}

#[test]
fn a_frame_crosses_its_interfaces_one_after_the_other() {
    let both = format!("{LEFT}    - {{name: port, port: right, speed: 1Gb/s, path: 2us, gates: planned}}\n");
    let plan = planned(&pair(&both, &flow("deadline: 50us")));
    assert!(gates(&plan, "port").contains(&"212160ns .. 214976ns 2816ns high".to_owned()), "{plan:?}");
}

#[test]
fn a_tag_makes_a_frame_longer_and_a_short_one_is_filled_up() {
    let vlan = LEFT.replace("gates", "vlan: 5, gates");
    let of = |text: String| gates(&planned(&text), "left");
    assert!(of(pair(&vlan, &flow("deadline: 50us"))).contains(&"200us .. 210480ns 10480ns high".to_owned()));
    let small = flow("deadline: 50us").replace("64B", "1B");
    assert!(of(pair(LEFT, &small)).contains(&"200us .. 208720ns 8720ns high".to_owned()));
}

#[test]
fn frames_that_are_ready_together_follow_each_other() {
    let two = "  flows:\n    - {name: f, from: s, to: r, size: 64B, class: high, deadline: 50us}\n    \
               - {name: g, from: s, to: r, size: 1000B, class: low, deadline: 150us}\n";
    let text = pair(LEFT, two).replace("    - {name: rest}", "    - {name: low, priority: 5}\n    - {name: rest}");
    let own = gates(&planned(&text), "left");
    assert_eq!(own[2..4], ["200us .. 210160ns 10160ns high", "210160ns .. 295200ns 85040ns low"]);
}

#[test]
fn an_opening_makes_the_time_of_a_gate_longer() {
    let left = LEFT.replace("gates", "opening: 500ns, gates");
    let own = gates(&planned(&pair(&left, &flow("deadline: 50us"))), "left");
    assert!(own.contains(&"200us .. 208660ns 8660ns high".to_owned()), "{own:?}");
}

/// Two senders on two CPUs, with frames in one class. Each of them can be the first in its queue.
#[test]
fn an_interval_has_time_for_all_frames_that_can_be_in_the_queue() {
    let planned_with = |deadline: &str| {
        let flows = format!(
            "  flows:\n    - {{name: f, from: s, to: r, size: 64B, class: high, deadline: {deadline}}}\n    \
             - {{name: g, from: t, size: 1000B, class: high, deadline: 500us, via: [left]}}\n"
        );
        let more =
            "  - {name: t, period: 1ms, wcet: 100us, offset: 99us, jitter: 0us, namespace: left, cpu: 1}\nnamespaces:";
        pair(LEFT, &flows).replace("namespaces:", more).replace("system: s", "system: s\ncpus: [0, 1]")
    };
    let (at, text) = refused(&planned_with("50us"));
    assert_eq!(at, "network.flows[0].deadline");
    assert!(text.contains("ready at 200us has crossed interface `left` at 293200ns"), "{text}");
    // The interval begins when both are ready: the opening, 83040 ns and 8160 ns.
    let own = gates(&planned(&planned_with("94us")), "left");
    assert!(own.contains(&"200us .. 293200ns 93200ns high".to_owned()), "{own:?}");
}

#[test]
fn the_time_before_a_gate_is_that_of_the_longest_frame_of_the_others() {
    let text = pair(LEFT, &flow("deadline: 50us")).replace("{name: rest}", "{name: rest, max-size: 200B}");
    assert!(gates(&planned(&text), "left").contains(&"180640ns .. 200us 19360ns -".to_owned()));
}

#[test]
fn a_list_by_hand_is_taken_as_it_is_and_frames_wait_for_it() {
    let list = |open: &str| {
        format!(
            "    - {{name: left, namespace: left, speed: 100Mb/s, gates: [{{length: 220us, open: [rest]}}, \
             {{length: 30us, open: [{open}]}}]}}\n"
        )
    };
    let plan = planned(&pair(&list("high"), &flow("deadline: 50us")));
    assert_eq!(plan.gates[0].cycle, Duration::from_micros(250));
    assert_eq!(gates(&plan, "left"), ["0ns .. 220us 220us rest", "220us .. 250us 30us high"]);
    let (at, text) = refused(&pair(&list("high"), &flow("deadline: 20us")));
    assert_eq!(at, "network.flows[0].deadline");
    assert_eq!(
        text,
        "flow `f` of `s`: the frame that is ready at 200us has crossed interface `left` at 230160ns, 10160ns after its \
         deadline of 20us"
    );
    let (at, text) = refused(&pair(&list("rest"), &flow("deadline: 50us")));
    assert_eq!(at, "network.flows[0].name");
    assert!(text.contains("no free 10160ns for the frame that is ready at 200us, in a whole cycle of 250us"), "{text}");
}

#[test]
fn a_receiver_with_a_fixed_start_must_start_after_the_frame() {
    let text = pair(LEFT, &flow("deadline: 300us")).replace("offset: 400us", "offset: 205us");
    let (at, text) = refused(&text);
    assert_eq!(at, "network.flows[0].to");
    assert_eq!(
        text,
        "flow `f` of `s`: the frame that is ready at 200us has crossed interface `left` at 210160ns, 5160ns after the \
         start of the receiver's next window, that of task `r`"
    );
}

#[test]
fn a_receiver_without_a_fixed_start_is_put_off() {
    let loose = pair(LEFT, &flow("deadline: 300us")).replace(", offset: 400us, jitter: 0us", "");
    let plan = planned(&loose.replace(", offset: 100us, jitter: 0us", ""));
    let offset = |name: &str| plan.jobs(name)[0].nominal;
    let (sent, start) = (plan.jobs("s")[0].deadline + Duration::from_nanos(10160), offset("r"));
    assert!(start >= sent && start < sent + Duration::from_micros(30), "{start} after {sent}");
    // The plan has the system of the description.
    assert_eq!(plan.system.tasks[1].offset, None);
    assert_eq!(plan.system.tasks[1].deadline, Duration::from_millis(1));
}

#[test]
fn a_sender_with_several_jobs_in_the_cycle_has_a_short_list() {
    let more = "  - {name: slow, period: 10ms, wcet: 100us}\nnamespaces:";
    let plan = planned(&pair(LEFT, &flow("deadline: 50us")).replace("namespaces:", more));
    assert_eq!((plan.cycle, plan.gates[0].cycle), (Duration::from_millis(10), Duration::from_millis(1)));
}

#[test]
fn the_class_sync_has_its_slot() {
    let clock = "clock: {tai: {period: 1ms, length: 200us, bound: 100us}}\nnetwork:";
    let plan = planned(&pair(LEFT, &flow("deadline: 50us")).replace("network:", clock));
    let own = gates(&plan, "left");
    // Eight frames of 128 bytes, 170 bytes on the link each, and the opening.
    assert!(own.contains(&"800us .. 910800ns 110800ns sync".to_owned()), "{own:?}");
    assert!(own.contains(&"210160ns .. 676640ns 466480ns sync, rest".to_owned()), "{own:?}");
    let tight = clock.replace("length: 200us, bound: 100us", "length: 10us, bound: 1us");
    let (at, text) = refused(&pair(LEFT, &flow("deadline: 50us")).replace("network:", &tight));
    assert_eq!(at, "network.interfaces[0].gates");
    assert_eq!(text, "interface `left`: a slot of the class `sync` needs 15600ns, but a sync window has 10us");
}

const SLOTS: &str = "system: s
groups:
  - {name: a, budget: 500us, priority: 2}
  - {name: b, budget: 500us, priority: 1}
network:
  classes: [{name: a, priority: 6}, {name: b, priority: 5}, {name: rest}]
  interfaces:
    - {name: wire, device: eth1, speed: 100Mb/s, gates: planned}
  slots:
    - {group: a, period: 6ms, length: 1ms}
    - {group: b, period: 6ms, length: 1ms, offset: 3ms}
";

#[test]
fn slots_need_no_windows() {
    let plan = planned(SLOTS);
    assert_eq!((plan.cycle, plan.tables.len()), (Duration::from_millis(6), 0));
    let expected = [
        "0ns .. 1ms 1ms a",
        "1ms .. 2876640ns 1876640ns rest",
        "2876640ns .. 3ms 123360ns -",
        "3ms .. 4ms 1ms b",
        "4ms .. 5876640ns 1876640ns rest",
        "5876640ns .. 6ms 123360ns -",
    ];
    assert_eq!(gates(&plan, "wire"), expected);
}

#[test]
fn frames_of_a_group_leave_in_its_slots() {
    let flows = |deadline: &str| {
        format!(
            "{SLOTS}  flows:\n    - {{name: f, from: b, via: [wire], size: 64B, class: b, period: 6ms, after: 2ms, \
             deadline: {deadline}}}\n    - {{name: g, from: b, via: [wire], size: 64B, class: b, period: 6ms, after: \
             2ms, deadline: 2ms}}\n"
        )
    };
    // Either frame can be behind the other one: the opening, and twice 8160 ns.
    assert_eq!(gates(&planned(&flows("1019us")), "wire"), gates(&planned(SLOTS), "wire"));
    let (at, text) = refused(&flows("1005us"));
    assert_eq!(at, "network.flows[0].deadline");
    assert!(text.ends_with("at 3018320ns, 13320ns after its deadline of 1005us"), "{text}");
}

#[test]
fn slots_that_fit_nowhere_are_named() {
    let text =
        SLOTS.replace("length: 1ms, offset: 3ms", "length: 3ms, offset: 3ms").replace("length: 1ms}", "length: 3ms}");
    assert_eq!(planned(&text).gates[0].entries.len(), 2);
    let (at, text) =
        refused(&text.replace("offset: 3ms", "offset: 1ms").replace("6ms, length: 3ms}", "3ms, length: 1ms}"));
    assert_eq!(at, "network.slots[0]");
    assert_eq!(
        text,
        "the slots of group `a` on interface `wire`, 1ms of every 3ms, fit at no offset beside other slots and frames"
    );
}

#[test]
fn a_gate_thread_has_windows_around_its_gates() {
    let left = LEFT.replace("gates", "lead: 20us, gates");
    let plan = planned(&pair(&left, &flow("deadline: 100us")));
    // The sender has the CPU until 200 us, so the thread begins then, and the gate opens a lead later.
    assert!(gates(&plan, "left").contains(&"220us .. 230160ns 10160ns high".to_owned()), "{plan:?}");
    let windows = &plan.tables[0].windows;
    let of: Vec<_> = windows.iter().map(|window| (window.task.as_str(), window.offset, window.length)).collect();
    let us = Duration::from_micros;
    assert_eq!(of, [("s", us(100), us(100)), ("gate-left", us(200), us(30)), ("r", us(400), us(100))]);
    let group = plan.system.groups.last().expect("the group of the thread");
    assert_eq!((group.name.as_str(), group.kernel_threads[0].name().as_str()), ("gate-left", "gate/left"));
    assert_eq!(plan.system.problems(), [""; 0]);
    // A group of the description can serve the thread.
    let own =
        "groups:\n  - {name: net, windows: {period: 1ms, length: 50us}, kernel-threads: [ksoftirqd, gate/left]}\n";
    let plan = planned(&format!("{own}{}", pair(&left, &flow("deadline: 100us"))));
    assert!(gates(&plan, "left").contains(&"200us .. 210160ns 10160ns high".to_owned()), "{plan:?}");
    assert_eq!(plan.system.groups.len(), 1);
}

/// The system of a plan has the group that the planner has added.
#[test]
fn a_plan_that_is_planned_again_is_the_same() {
    let left = LEFT.replace("gates", "lead: 20us, gates");
    let text = pair(&left, &flow("deadline: 100us"));
    let given = "table:\n  - {task: s, cpu: 0, offset: 100us, length: 100us, activate: true, deadline: true}\n  \
                 - {task: r, cpu: 0, offset: 400us, length: 100us, activate: true, deadline: true}\n";
    for text in [text.clone(), format!("{given}{text}")] {
        let first = planned(&text);
        assert_eq!(first.system.groups.len(), 1);
        let again = plan(&first.system, Solver::default_for(&first.system)).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(again, first);
    }
    // A group of the description is not one of them.
    let own = "groups:\n  - {name: gate-left, windows: {period: 1ms, length: 50us}, kernel-threads: [gate/left]}\n";
    let first = planned(&format!("{own}{text}"));
    assert_eq!(first.system.groups[0].windows.as_ref().map(|own| own.length), Some(Duration::from_micros(50)));
    assert_eq!(
        plan(&first.system, Solver::default_for(&first.system)).unwrap_or_else(|error| panic!("{error}")),
        first
    );
}

/// Each of two hosts has the threads of its own gates, in the plan as it is made and as it is read.
#[test]
fn a_gate_thread_is_on_the_host_of_its_cpu() {
    let text = "system: s\nmacrotick: 10us\nclock: {tai: {period: 10ms, length: 200us, bound: 100us}}\n\
                hosts: [{name: one, cpus: [0]}, {name: two, cpus: [1]}]\n\
                tasks:\n  - {name: a, period: 10ms, wcet: 100us, cpu: 0}\n  - {name: b, period: 10ms, wcet: 100us, cpu: 1}\n\
                network:\n  classes: [{name: high, priority: 6}, {name: rest}]\n  interfaces:\n    \
                - {name: x, device: eth1, host: one, speed: 1Gb/s, gates: planned, lead: 20us}\n    \
                - {name: y, device: eth1, host: two, speed: 1Gb/s, gates: planned, lead: 20us}\n  flows:\n    \
                - {name: f, from: a, via: [x], size: 64B, class: high, deadline: 1ms}\n    \
                - {name: g, from: b, via: [y], size: 64B, class: high, deadline: 1ms}\n";
    let made = planned(text);
    let read = Plan::from_json(&made.to_json(), "plan.json").expect("a valid plan");
    assert_eq!(made, read);
    for (host, thread) in [("one", "gate-x"), ("two", "gate-y")] {
        let part = made.part(Some(host)).expect("a part").system;
        assert_eq!(part.groups.iter().map(|group| group.name.as_str()).collect::<Vec<_>>(), [thread]);
    }
    assert_eq!(plan(&read.system, Solver::default_for(&read.system)).unwrap_or_else(|error| panic!("{error}")), made);
}

#[test]
fn an_express_socket_has_the_link_while_its_sender_runs() {
    let plan = planned(&pair(LEFT, &flow("deadline: 50us, express: true")));
    // The sender has the CPU from 100 us to 200 us, and the frame takes 8160 ns.
    let own = gates(&plan, "left");
    assert!(own.contains(&"100us .. 210160ns 110160ns high".to_owned()), "{own:?}");
    // Two such senders cannot run at the same time.
    let meets = "    - {name: g, from: r, to: s, size: 1000B, class: low, deadline: 900us, via: [left]}\n";
    let both = format!("{}{}", flow("deadline: 50us, express: true"), meets.replace("via", "express: true, via"));
    let text = pair(LEFT, &both)
        .replace("    - {name: rest}", "    - {name: low, priority: 5}\n    - {name: rest}")
        .replace("offset: 400us", "offset: 150us")
        .replace("jitter: 0us, namespace: right", "jitter: 0us, cpu: 1, namespace: right");
    let (at, said) = refused(&text.replace("system: s", "system: s\ncpus: [0, 1]"));
    assert_eq!(at, "network.flows[1].name");
    assert!(
        said.contains("`g` of `r`: its express socket passes no gate, and interface `left` is not free for"),
        "{said}"
    );
}

/// A random system of senders, receivers, slots and links.
fn random(seed: u64) -> String {
    let mut random = SplitMix64::new(seed);
    let mut below = move |limit: u64| random.bits() % limit;
    let speed = ["10Mb/s", "100Mb/s", "1Gb/s", "10Gb/s"][below(4) as usize];
    let mut text = String::from("system: s\ncpus: [0, 1]\ntasks:\n");
    let senders = 1 + below(6);
    for index in 0..senders {
        let period = [1, 2, 4, 5][below(4) as usize];
        text += &format!("  - {{name: s{index}, period: {period}ms, wcet: {}us, namespace: left", 20 + below(60));
        text += [", jitter: 0us}\n", "}\n"][below(2) as usize];
        text += &format!("  - {{name: r{index}, period: {period}ms, wcet: {}us, namespace: right}}\n", 20 + below(60));
    }
    text += "groups:\n  - {name: a, budget: 100us, priority: 2}\n  - {name: b, budget: 100us, priority: 1}\n";
    text += "namespaces:\n  - {name: left, address: 10.0.0.1/24}\n  - {name: right, address: 10.0.0.2/24}\n";
    if below(2) == 0 {
        text += "clock: {tai: {period: 20ms, length: 200us, bound: 100us}}\n";
    }
    text += "network:\n  classes:\n";
    for (priority, name) in ["x", "y", "a", "b"].iter().enumerate() {
        let size = if priority < 2 { 1500 } else { 100 };
        text += &format!("    - {{name: {name}, priority: {}, max-size: {size}B}}\n", 9 + priority);
    }
    let lead = ["", ", lead: 15us"][below(2) as usize];
    text += &format!(
        "    - {{name: rest}}\n  interfaces:\n    - {{name: left, namespace: left, speed: {speed}, gates: planned{lead}}}\n    \
         - {{name: port, port: right, speed: {speed}, path: {}us, gates: planned}}\n  flows:\n",
        below(9)
    );
    for index in 0..senders {
        let (size, class) = (1 + below(1400), ["x", "y"][below(2) as usize]);
        text += &format!(
            "    - {{name: f{index}, from: s{index}, to: r{index}, size: {size}B, class: {class}, deadline: {}us}}\n",
            3000 + below(2000)
        );
    }
    text += "  slots:\n";
    for group in ["a", "b"] {
        let (period, length) = (1 + below(4), 120 + below(300));
        text += &format!(
            "    - {{group: {group}, period: {}us, length: {length}us, interface: left}}\n",
            period * 5000 / 2
        );
    }
    text
}

/// The intervals of a list over one cycle of the plan, each with its open classes.
fn unrolled(plan: &Plan, list: &GateList) -> Vec<(Duration, Duration, Vec<String>)> {
    let mut all = Vec::new();
    let mut start = Duration::ZERO;
    while start < plan.cycle {
        for entry in &list.entries {
            all.push((start, start + entry.length, entry.open.clone()));
            start += entry.length;
        }
    }
    all
}

/// Whether only this class is open in some part of `[from, to)` that is as long as the frame.
fn fits(
    all: &[(Duration, Duration, Vec<String>)],
    cycle: Duration,
    class: &str,
    from: Duration,
    to: Duration,
    length: Duration,
) -> bool {
    let mut run: Option<Duration> = None;
    for turn in 0..3 {
        for (start, end, open) in all {
            let (start, end) = (*start + cycle * turn, *end + cycle * turn);
            if open.iter().any(|open| open != class) || open.is_empty() {
                run = None;
                continue;
            }
            let begin = (*run.get_or_insert(start)).max(from);
            if end.min(to) - begin >= length {
                return true;
            }
        }
    }
    false
}

#[test]
fn random_systems_have_sound_gates() {
    let (mut made, mut not) = (0, 0);
    for seed in 0..150 {
        let text = random(seed);
        let system = System::parse(&text, "r.yaml").unwrap_or_else(|errors| panic!("{seed}: {text}\n{errors}"));
        let plan = match plan(&system, Solver::FoldedOccupancy) {
            Ok(plan) => plan,
            Err(PlanError::Gates(_)) => {
                not += 1;
                continue;
            }
            Err(error) => panic!("{seed}: {error}\n{text}"),
        };
        made += 1;
        let network = plan.system.network.as_ref().expect("a network");
        assert_eq!(plan.system.problems(), [""; 0], "{seed}");
        for list in &plan.gates {
            assert_eq!(list.problems(&plan), [""; 0], "{seed}: {text}");
            let own = |name: &str| name != "rest" && name != "sync";
            let several = |open: &Vec<String>| {
                open.len() > 1 && open.iter().any(|name| own(name) && uses(&plan, &list.interface, name))
            };
            assert!(!list.entries.iter().any(|entry| several(&entry.open)), "{seed}: {list:?}");
            assert!(list.entries.windows(2).all(|pair| pair[0].open != pair[1].open), "{seed}: {list:?}");
            let all = unrolled(&plan, list);
            let interface = network.interface(&list.interface).expect("an interface");
            guarded(&plan, interface.longest_frame_time(macrotick_model::Size::from_bytes(1500)), &all, seed);
            for flow in &network.flows {
                let receiver = plan.jobs(flow.to.as_ref().expect("a receiver"));
                for job in plan.jobs(&flow.from) {
                    let ready = job.deadline;
                    let starts = receiver.iter().flat_map(|job| (0..3).map(|turn| job.nominal + plan.cycle * turn));
                    let start = starts.filter(|start| *start >= ready).min().expect("a job");
                    let to = start.min(ready + flow.deadline);
                    let length = interface.frame_time(flow.size);
                    assert!(fits(&all, plan.cycle, &flow.class, ready, to, length), "{seed}: {}: {text}", flow.name);
                }
            }
        }
        let slots = &network.slots;
        let left = unrolled(&plan, &plan.gates[0]);
        for slot in slots {
            let open = left.iter().filter(|(.., open)| open[..] == [slot.class.clone()]);
            let sum: Duration = open.map(|(start, end, _)| *end - *start).sum();
            let least = slot.length * (plan.cycle / slot.period);
            assert!(sum >= least && sum < least + Duration::from_micros(100) * (plan.cycle / slot.period), "{seed}");
        }
    }
    assert!(made > 75 && not > 2, "{made} made, {not} not");
}

/// Whether a flow or a slot uses the class on the interface.
fn uses(plan: &Plan, interface: &str, class: &str) -> bool {
    let network = plan.system.network.as_ref().expect("a network");
    network.flows.iter().any(|flow| flow.class == class)
        || (interface == "left" && network.slots.iter().any(|slot| slot.class == class))
}

/// Before an interval of one class, the classes that share the rest are closed for the time of their longest frame.
fn guarded(plan: &Plan, longest: Duration, all: &[(Duration, Duration, Vec<String>)], seed: u64) {
    let is_shared = |open: &[String]| open.iter().any(|class| class == "rest");
    let ends = all.iter().filter(|(.., open)| is_shared(open)).flat_map(|(_, end, _)| [*end, *end - plan.cycle]);
    let ends: Vec<Duration> = ends.collect();
    for (start, _, open) in all.iter().filter(|(.., open)| !open.is_empty() && !is_shared(open)) {
        let after_own = |end: &&Duration| **end <= *start && *start - **end < longest;
        assert_eq!(ends.iter().find(after_own), None, "{seed}: {open:?} at {start}");
    }
}

#[test]
fn gate_threads_leave_the_kernel_its_time() {
    let text = |lead: &str| {
        format!(
            "system: s
macrotick: 50us
tasks:
  - {{name: s, period: 2ms, wcet: 1800us, namespace: left}}
namespaces:
  - {{name: left, address: 10.0.0.1/24}}
network:
  classes:
    - {{name: high, priority: 6}}
    - {{name: rest}}
  interfaces:
    - {{name: left, namespace: left, speed: 1Gb/s, gates: planned, lead: {lead}}}
  flows:
    - {{name: f, from: s, via: [left], size: 64B, class: high, deadline: 1ms}}
"
        )
    };
    planned(&text("40us"));
    let told =
        "interface `left`: the threads that open gates on CPU 0 need 150us of every 2ms beside 1800us of windows \
                and leads, but together they can have at most 1900us";
    assert_eq!(refused(&text("95us")), ("network.interfaces[0].lead".into(), told.into()));
}

/// Other tasks of the CPU come later than the thread where the frame has no time for them.
#[test]
fn windows_leave_room_for_the_gate_thread() {
    let text = |deadline: &str| {
        format!(
            "system: s
cpus: [0, 1]
tasks:
  - {{name: ask, period: 1ms, wcet: 200us, cpu: 0, namespace: left}}
  - {{name: hear, period: 1ms, wcet: 200us, cpu: 0, namespace: left}}
  - {{name: answer, period: 1ms, wcet: 200us, cpu: 1, namespace: right}}
  - {{name: read, period: 1ms, wcet: 200us, cpu: 1, namespace: right}}
namespaces:
  - {{name: left, address: 10.0.0.1/24}}
  - {{name: right, address: 10.0.0.2/24}}
network:
  classes: [{{name: high, priority: 6}}, {{name: rest}}]
  interfaces:
    - {{name: left, namespace: left, speed: 1Gb/s, gates: planned, lead: 100us}}
    - {{name: right, namespace: right, speed: 1Gb/s, gates: planned, lead: 100us}}
  flows:
    - {{name: question, from: ask, to: read, size: 64B, class: high, deadline: {deadline}}}
    - {{name: reply, from: answer, to: hear, size: 64B, class: high, deadline: {deadline}}}
"
        )
    };
    let us = Duration::from_micros;
    for deadline in [700, 300, 120, 105] {
        let plan = planned(&text(&format!("{deadline}us")));
        assert_eq!((plan.system.tasks.len(), plan.system.problems()), (4, Vec::new()));
        for (sender, receiver, interface) in [("ask", "read", "left"), ("answer", "hear", "right")] {
            let list = plan.gates.iter().find(|list| list.interface == interface).expect("a list");
            let gate = list.entries.iter().position(|entry| entry.open == ["high"]).expect("a gate");
            let opens: Duration = list.entries[..gate].iter().map(|entry| entry.length).sum();
            let closes = opens + list.entries[gate].length;
            let (ready, starts) = (plan.jobs(sender)[0].deadline, plan.jobs(receiver)[0].nominal);
            let thread = format!("gate-{interface}");
            let window = plan.tables.iter().flat_map(|table| &table.windows).find(|window| window.task == thread);
            // With 120 us, no window of 200 us is between the sender and the thread.
            assert!(deadline > 300 || window.expect("a window").offset == ready, "{deadline}: {window:?}");
            assert!(opens >= ready + us(100) && closes <= ready + us(deadline), "{deadline}: {ready}, {opens}");
            assert!(closes <= starts || starts < ready, "{deadline}: {closes}, {starts}");
        }
    }
    assert_eq!(refused(&text("101us")).0, "network.flows[0].deadline");
    // Each of the two tasks sends to the other one. A room after one of them cannot be before both.
    let two = text("120us").replace("from: ask, to: read", "from: ask, to: answer");
    let plan = planned(&two.replace("from: answer, to: hear", "from: answer, to: ask"));
    assert_eq!(plan.system.tasks.iter().map(|task| task.after.len()).sum::<usize>(), 0);
    // A receiver reads in the next period: it has ended before the frame of its own period is ready.
    let next = text("120us").replace("name: ask, period: 1ms", "name: ask, period: 1ms, offset: 600us");
    planned(&next.replace("name: read, period: 1ms", "name: read, period: 1ms, deadline: 300us"));
    // One window serves two frames of one sender.
    let more = "    - {name: more, from: ask, to: read, size: 64B, class: high, deadline: 120us}\n";
    planned(&format!("{}{more}", text("120us")));
    // The lead of jobs is no part of the room.
    let lead = text("130us").replace("cpus: [0, 1]", "cpus: [0, 1]\nlead: 30us");
    planned(&lead);
}
