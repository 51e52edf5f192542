//! Mutations of good plans with gates: the judge must find each, and report the broken rule.

use macrotick_check::network::NetworkViolation as Broken;
use macrotick_check::{check, Violation};
use macrotick_model::{Duration, Flow, GateEntry, GroupThread, Network, Plan, Size, SplitMix64};
use macrotick_plan::{plan, Solver};

use crate::common::*;
use crate::random::random;

/// Applies `mutate` to many good plans, at random places. `mutate` returns whether it found a place. After each such
/// change, the judge must report a violation that `expected` accepts.
fn each(mutate: fn(&mut Plan, &mut Places) -> bool, expected: fn(&Broken) -> bool) {
    let mut applied = 0;
    for (seed, good) in good_plans().iter().enumerate() {
        for turn in 0..4 {
            let mut plan = good.clone();
            if !mutate(&mut plan, &mut Places(SplitMix64::new((seed * 4 + turn) as u64))) {
                continue;
            }
            applied += 1;
            let verdict = check(&plan);
            let caught = verdict.violations.iter().any(|violation| match violation {
                Violation::Network { violation } => expected(violation),
                _ => false,
            });
            let timeline = macrotick_model::timeline::timeline;
            assert!(
                caught,
                "plan {seed}, turn {turn} passed: {verdict}\n{}\nbefore:\n{}",
                timeline(&plan),
                timeline(good)
            );
        }
    }
    assert!(applied >= 20, "applied only {applied} times");
}

/// The first plans that the planner finds for random systems.
fn good_plans() -> &'static [Plan] {
    static PLANS: std::sync::OnceLock<Vec<Plan>> = std::sync::OnceLock::new();
    PLANS.get_or_init(|| {
        let plans = (0..).filter_map(|seed| plan(&described(&random(seed, false)), Solver::FoldedOccupancy).ok());
        let plans: Vec<Plan> = plans.take(24).collect();
        assert!(plans.iter().all(|plan| check(plan).is_feasible()));
        plans
    })
}

/// Choices of a mutation.
struct Places(SplitMix64);

impl Places {
    fn below(&mut self, limit: usize) -> usize {
        (self.0.bits() % limit as u64) as usize
    }

    /// Chooses an entry of some list that `fits` accepts with its list.
    fn entry(&mut self, plan: &Plan, fits: impl Fn(&Plan, usize, &GateEntry) -> bool) -> Option<(usize, usize)> {
        let all =
            plan.gates.iter().enumerate().flat_map(|(list, gates)| {
                gates.entries.iter().enumerate().map(move |(entry, gate)| (list, entry, gate))
            });
        let fitting: Vec<(usize, usize)> =
            all.filter(|(list, _, gate)| fits(plan, *list, gate)).map(|(list, entry, _)| (list, entry)).collect();
        (!fitting.is_empty()).then(|| fitting[self.below(fitting.len())])
    }
}

fn network(plan: &mut Plan) -> &mut Network {
    plan.system.network.as_mut().expect("a network")
}

/// Whether only the class of flows is open in the entry.
fn is_of_a_flow(_: &Plan, _: usize, entry: &GateEntry) -> bool {
    entry.open.len() == 1 && entry.open[0].starts_with('x')
}

/// Whether only the class of a slot is open. Only the first interface has slots.
fn is_of_a_slot(_: &Plan, list: usize, entry: &GateEntry) -> bool {
    list == 0 && entry.open.len() == 1 && ["a", "b"].contains(&entry.open[0].as_str())
}

fn is_shared(_: &Plan, _: usize, entry: &GateEntry) -> bool {
    entry.open.iter().any(|class| class == "rest")
}

/// Whether a frame of a flow, or all its frames from some cycle on, cannot leave in time.
fn is_about_a_frame(broken: &Broken) -> bool {
    use Broken::*;
    matches!(broken, Short { .. } | Unsent { .. } | AfterDeadline { .. } | AfterWindow { .. } | Unsteady { .. })
}

fn is_unusable(broken: &Broken) -> bool {
    matches!(broken, Broken::Gates { .. })
}

#[test]
fn entries_that_do_not_sum_up() {
    each(
        |plan, places| {
            let (list, entry) = places.entry(plan, |_, _, _| true).expect("an entry");
            plan.gates[list].entries[entry].length += ns(1);
            true
        },
        is_unusable,
    );
    each(
        |plan, places| {
            let (list, entry) = places.entry(plan, |_, _, _| true).expect("an entry");
            plan.gates[list].entries.remove(entry);
            true
        },
        is_unusable,
    );
    each(
        |plan, places| {
            let list = places.below(plan.gates.len());
            plan.gates[list].cycle = plan.gates[list].cycle * 2;
            true
        },
        is_unusable,
    );
}

#[test]
fn an_entry_that_is_shorter_than_a_frame() {
    each(
        |plan, places| {
            let (list, entry) = places.entry(plan, |_, _, _| true).expect("an entry");
            let gates = &mut plan.gates[list].entries;
            let cut = GateEntry { length: ns(50), ..gates[entry].clone() };
            gates[entry].length -= ns(50);
            gates.insert(entry, cut);
            true
        },
        is_unusable,
    );
}

#[test]
fn a_class_that_is_none() {
    each(
        |plan, places| {
            let (list, entry) = places.entry(plan, |_, _, _| true).expect("an entry");
            plan.gates[list].entries[entry].open.push("none".into());
            true
        },
        is_unusable,
    );
}

#[test]
fn lists_that_are_missing_or_too_many() {
    each(
        |plan, places| {
            plan.gates.remove(places.below(plan.gates.len()));
            true
        },
        |broken| matches!(broken, Broken::NoList { .. }),
    );
    each(
        |plan, places| {
            plan.gates.push(plan.gates[places.below(plan.gates.len())].clone());
            true
        },
        |broken| matches!(broken, Broken::TwoLists { .. }),
    );
    each(
        |plan, places| {
            let list = places.below(plan.gates.len());
            plan.gates[list].interface = "other".into();
            true
        },
        |broken| matches!(broken, Broken::UnknownList { .. }),
    );
    each(
        |plan, places| {
            let index = places.below(2);
            network(plan).interfaces[index].gates = None;
            true
        },
        |broken| matches!(broken, Broken::StrayList { .. }),
    );
}

#[test]
fn a_gate_that_stays_closed() {
    each(
        |plan, places| {
            let Some((list, entry)) = places.entry(plan, is_of_a_flow) else { return false };
            plan.gates[list].entries[entry].open.clear();
            true
        },
        is_about_a_frame,
    );
}

#[test]
fn a_gate_that_opens_for_a_wrong_class() {
    each(
        |plan, places| {
            let Some((list, entry)) = places.entry(plan, is_of_a_flow) else { return false };
            plan.gates[list].entries[entry].open = vec!["rest".into()];
            true
        },
        is_about_a_frame,
    );
    each(
        |plan, places| {
            let alone = |plan: &Plan, list, entry: &GateEntry| {
                is_of_a_flow(plan, list, entry) || is_of_a_slot(plan, list, entry)
            };
            let Some((list, entry)) = places.entry(plan, alone) else { return false };
            plan.gates[list].entries[entry].open.push("rest".into());
            true
        },
        |broken| matches!(broken, Broken::NotAlone { .. }),
    );
    each(
        |plan, places| {
            let Some((list, entry)) = places.entry(plan, is_shared) else { return false };
            plan.gates[list].entries[entry].open.push("x0".into());
            true
        },
        |broken| matches!(broken, Broken::NotAlone { .. }),
    );
}

/// Closes all gates in the second half of an entry.
fn close_at_half(gates: &mut Vec<GateEntry>, entry: usize) {
    let half = ns(gates[entry].length.as_nanos() / 2);
    gates[entry].length -= half;
    gates.insert(entry + 1, GateEntry { length: half, open: Vec::new() });
}

#[test]
fn a_gate_that_closes_too_early() {
    each(
        |plan, places| {
            let Some((list, entry)) = places.entry(plan, is_of_a_flow) else { return false };
            close_at_half(&mut plan.gates[list].entries, entry);
            true
        },
        |broken| is_about_a_frame(broken) || is_unusable(broken),
    );
    // Two nanoseconds are enough where the window is for one frame: one is the rounding of the frame's time. With
    // several frames in it, only the first one starts late.
    each(
        |plan, places| {
            let one_frame = |plan: &Plan, list: usize, entry: &GateEntry| {
                let network = plan.system.network.as_ref().expect("a network");
                let interface = network.interface(&plan.gates[list].interface).expect("an interface");
                let of = |flow: &&Flow| entry.open[..] == [flow.class.clone()];
                network.flows.iter().find(of).is_some_and(|flow| interface.sending_time(flow.size) == entry.length)
            };
            let Some((list, entry)) = places.entry(plan, one_frame) else { return false };
            let gates = &mut plan.gates[list].entries;
            let next = (entry + 1) % gates.len();
            if gates[next].open == gates[entry].open {
                return false;
            }
            gates[entry].length -= ns(2);
            gates[next].length += ns(2);
            true
        },
        |broken| is_about_a_frame(broken) || is_unusable(broken),
    );
}

#[test]
fn a_gate_that_moved() {
    // The shared entry after a gate comes before it now, without the time for its longest frame.
    each(
        |plan, places| {
            let Some((list, entry)) = places.entry(plan, is_of_a_flow) else { return false };
            let next = (entry + 1) % plan.gates[list].entries.len();
            if !is_shared(plan, list, &plan.gates[list].entries[next]) {
                return false;
            }
            plan.gates[list].entries.swap(entry, next);
            true
        },
        |broken| matches!(broken, Broken::GuardBand { .. }),
    );
    // The gate comes after the shared entry, with a guard band, and later than the deadline.
    each(
        |plan, places| {
            let later = |plan: &Plan, list: usize, entry: &GateEntry| {
                let gates = &plan.gates[list].entries;
                let place = gates.iter().position(|other| std::ptr::eq(other, entry)).expect("an entry of the list");
                let flows = &plan.system.network.as_ref().expect("a network").flows;
                let flow = flows.iter().find(|flow| entry.open[..] == [flow.class.clone()]);
                let next = gates.get(place + 1).filter(|next| is_shared(plan, list, next));
                let is_later = |(flow, next): (&Flow, &GateEntry)| next.length > flow.deadline + guard(plan, list);
                is_of_a_flow(plan, list, entry) && flow.zip(next).is_some_and(is_later)
            };
            // Shorter deadlines leave fewer places without one.
            let verdict = check(plan);
            for flow in &mut network(plan).flows {
                let judged = verdict.flows.iter().find(|judged| judged.name == flow.name);
                flow.deadline = judged.and_then(|judged| judged.latency).expect("a latency");
            }
            let Some((list, entry)) = places.entry(plan, later) else { return false };
            let guard = guard(plan, list);
            let gates = &mut plan.gates[list].entries;
            gates[entry + 1].length -= guard;
            gates.insert(entry + 2, GateEntry { length: guard, open: Vec::new() });
            gates[entry..entry + 3].rotate_left(1);
            true
        },
        is_about_a_frame,
    );
}

/// The time of the longest frame on the interface of a list.
fn guard(plan: &Plan, list: usize) -> Duration {
    let network = plan.system.network.as_ref().expect("a network");
    let interface = network.interface(&plan.gates[list].interface).expect("an interface");
    interface.longest_frame_time(Size::from_bytes(1500))
}

#[test]
fn guard_bands_that_are_open() {
    each(
        |plan, places| {
            let closed = |_: &Plan, _: usize, entry: &GateEntry| entry.open.is_empty();
            let Some((list, entry)) = places.entry(plan, closed) else { return false };
            let gates = &mut plan.gates[list].entries;
            // A closed time that is only there because nothing else fits does not end at a guarded gate.
            let (before, after) = ((entry + gates.len() - 1) % gates.len(), (entry + 1) % gates.len());
            let guards = gates[after].open.len() == 1 && gates[after].open[0] != "rest";
            if !guards || !gates[before].open.contains(&"rest".to_owned()) {
                return false;
            }
            gates[entry].open = vec!["rest".into()];
            true
        },
        |broken| matches!(broken, Broken::GuardBand { .. }),
    );
}

#[test]
fn slots_that_are_shorter_or_not_there() {
    each(
        |plan, places| {
            let Some((list, entry)) = places.entry(plan, is_of_a_slot) else { return false };
            close_at_half(&mut plan.gates[list].entries, entry);
            true
        },
        |broken| matches!(broken, Broken::SlotUnplaced { .. }),
    );
    each(
        |plan, places| {
            let Some((list, entry)) = places.entry(plan, is_of_a_slot) else { return false };
            plan.gates[list].entries[entry].open.clear();
            true
        },
        |broken| matches!(broken, Broken::SlotUnplaced { .. }),
    );
}

#[test]
fn slots_that_overlap_or_are_elsewhere() {
    each(
        |plan, _| {
            for slot in &mut network(plan).slots {
                slot.offset = Some(Duration::ZERO);
            }
            true
        },
        |broken| matches!(broken, Broken::SlotOverlap { .. }),
    );
    each(
        |plan, places| {
            let offset = us(1 + places.below(2_000) as i64);
            network(plan).slots[0].offset = Some(offset);
            true
        },
        |broken| matches!(broken, Broken::SlotClosed { .. }),
    );
    each(
        |plan, places| {
            let long = |plan: &Plan, list: usize, entry: &GateEntry| {
                list == 0 && is_shared(plan, list, entry) && entry.length > us(200)
            };
            let Some((list, entry)) = places.entry(plan, long) else { return false };
            plan.gates[list].entries[entry].open = vec!["a".into()];
            true
        },
        |broken| matches!(broken, Broken::SlotOutside { .. }),
    );
    each(
        |plan, _| {
            let cycle = plan.cycle;
            for slot in &mut network(plan).slots {
                (slot.period, slot.length) = (cycle, ns(cycle.as_nanos() / 5 * 3));
            }
            true
        },
        |broken| matches!(broken, Broken::SlotUnplaced { .. }),
    );
}

#[test]
fn a_receiver_that_starts_before_the_frame_arrives() {
    each(
        |plan, places| {
            let flows = &plan.system.network.as_ref().expect("a network").flows;
            let flow = &flows[places.below(flows.len())];
            let (from, to) = (flow.from.clone(), flow.to.clone().expect("a receiver"));
            let ready = plan.jobs(&from)[0].deadline;
            let mut windows = plan.tables.iter_mut().flat_map(|table| &mut table.windows);
            let Some(window) = windows.find(|window| window.task == to && window.activate) else { return false };
            window.offset = ready;
            true
        },
        |broken| matches!(broken, Broken::AfterWindow { .. }),
    );
}

#[test]
fn a_description_that_the_gates_are_not_for() {
    each(
        |plan, places| {
            let flows = &mut network(plan).flows;
            let flow = places.below(flows.len());
            flows[flow].deadline = us(1);
            true
        },
        |broken| matches!(broken, Broken::AfterDeadline { .. }),
    );
    each(
        |plan, _| {
            network(plan).interfaces[1].path = Duration::from_millis(5);
            true
        },
        |broken| matches!(broken, Broken::AfterDeadline { .. } | Broken::AfterWindow { .. }),
    );
    each(
        |plan, _| {
            network(plan).interfaces[0].speed = Some("1Mb/s".parse().expect("a speed"));
            true
        },
        |broken| is_about_a_frame(broken) || is_unusable(broken),
    );
    each(
        |plan, _| {
            network(plan).interfaces[0].opening = Duration::from_millis(1);
            true
        },
        is_about_a_frame,
    );
    each(
        |plan, places| {
            let flows = &mut network(plan).flows;
            let flow = places.below(flows.len());
            flows[flow].size = Size::from_bytes(60_000);
            true
        },
        is_about_a_frame,
    );
}

#[test]
fn sync_windows_without_time_for_their_class() {
    each(
        |plan, _| {
            let mut any = false;
            for entry in plan.gates.iter_mut().flat_map(|list| &mut list.entries) {
                if entry.open == ["sync"] {
                    entry.open.clear();
                    any = true;
                }
            }
            any
        },
        |broken| matches!(broken, Broken::SyncTime { .. }),
    );
    each(
        |plan, _| {
            let mut any = false;
            for entry in plan.gates.iter_mut().flat_map(|list| &mut list.entries) {
                if entry.open == ["sync"] {
                    entry.open.push("rest".into());
                    any = true;
                }
            }
            any
        },
        |broken| matches!(broken, Broken::SyncTime { .. }),
    );
}

/// The name of the group that serves a gate thread.
fn gate_group(plan: &Plan) -> Option<String> {
    let serves = |group: &&macrotick_model::Group| matches!(group.kernel_threads[..], [GroupThread::Gate(_)]);
    plan.system.groups.iter().find(serves).map(|group| group.name.clone())
}

#[test]
fn gate_threads_without_their_windows() {
    each(
        |plan, _| {
            let Some(name) = gate_group(plan) else { return false };
            plan.system.groups.retain(|group| group.name != name);
            plan.tables.iter_mut().for_each(|table| table.windows.retain(|window| window.task != name));
            true
        },
        |broken| matches!(broken, Broken::NoThread { .. }),
    );
    each(
        |plan, places| {
            let Some(name) = gate_group(plan) else { return false };
            let windows = plan.tables.iter_mut().flat_map(|table| &mut table.windows);
            let mut windows: Vec<_> = windows.filter(|window| window.task == name).collect();
            let place = places.below(windows.len());
            // The lead is shorter by more than the grid.
            windows[place].offset += us(2);
            windows[place].length -= us(2);
            true
        },
        |broken| matches!(broken, Broken::ThreadWindow { .. }),
    );
    each(
        |plan, places| {
            let Some(name) = gate_group(plan) else { return false };
            let windows = plan.tables.iter_mut().flat_map(|table| &mut table.windows);
            let mut windows: Vec<_> = windows.filter(|window| window.task == name).collect();
            let place = places.below(windows.len());
            windows[place].length = us(10);
            true
        },
        |broken| matches!(broken, Broken::ThreadWindow { .. }),
    );
    each(
        |plan, _| {
            let Some(name) = gate_group(plan) else { return false };
            let cpu = plan.cpus(&name).first();
            network(plan).interfaces[0].cpu = cpu.map(|cpu| 1 - cpu);
            true
        },
        |broken| matches!(broken, Broken::ThreadCpu { .. }),
    );
}
