//! The planner of switched networks and its judge against each other.

use std::time::Duration as WallTime;

use macrotick_check::{judge_wire, WireViolation};
use macrotick_generate::{switched, Topology, Traffic};
use macrotick_model::wire::{Course, Link, Node, Wire, WireFlow};
use macrotick_model::{Duration, Size, Speed, SplitMix64};
use macrotick_plan::wire::{add_to_wire, plan_wire, WireError};
use macrotick_plan::{Options, Unwatched};

const TOPOLOGIES: [Topology; 4] = [Topology::Line(5), Topology::Ring(6), Topology::Mesh(3, 3), Topology::FatTree(4)];

fn plan(wire: &Wire, flows: &[WireFlow]) -> Result<Vec<Course>, WireError> {
    let options = Options { time_limit: WallTime::from_millis(500), ..Options::default() };
    plan_wire(wire, flows, options, &Unwatched)
}

#[test]
fn the_judge_accepts_every_plan() {
    let mut planned = 0;
    for (seed, topology) in (0..5).flat_map(|seed| TOPOLOGIES.map(|topology| (seed, topology))) {
        for flows in [10, 60, 200] {
            let (wire, flows) = switched(seed, topology, Traffic { flows, hosts: 2 });
            let Ok(courses) = plan(&wire, &flows) else { continue };
            planned += 1;
            assert_eq!(judge_wire(&wire, &flows, &courses), [], "{topology:?}, {} flows, seed {seed}", flows.len());
        }
    }
    assert!(planned > 50, "{planned}");
}

#[test]
fn one_more_flow_moves_no_other() {
    for (seed, topology) in TOPOLOGIES.into_iter().enumerate() {
        let (wire, all) = switched(seed as u64, topology, Traffic { flows: 61, hosts: 2 });
        let (flows, more) = all.split_at(60);
        let mut courses = plan(&wire, flows).unwrap();
        courses.extend(add_to_wire(&wire, (flows, &courses), more).unwrap());
        assert_eq!(judge_wire(&wire, &all, &courses), [], "{topology:?}");
    }
}

#[test]
fn a_frame_that_starts_a_nanosecond_too_soon_is_refused() {
    let (wire, flows) = switched(3, Topology::Line(5), Traffic { flows: 150, hosts: 2 });
    let courses = plan(&wire, &flows).unwrap();
    for (number, flow) in flows.iter().enumerate() {
        let mut moved = courses.clone();
        moved[number].hops.last_mut().unwrap().1 -= Duration::from_nanos(1);
        let is_told = |violation: &WireViolation| matches!(violation, WireViolation::TooSoon { flow: of, .. } if *of == flow.name);
        assert!(judge_wire(&wire, &flows, &moved).iter().any(is_told), "{}", flow.name);
    }
}

/// The star has one route for each flow, so its plans are the starts of the flows at their senders.
#[test]
fn nothing_that_has_a_plan_is_proved_impossible() {
    let wire = star();
    let mut proofs = 0;
    for seed in 0..400u64 {
        let mut random = SplitMix64::new(seed);
        let mut draw = |limit: u64| (random.bits() % limit) as i64;
        let flows: Vec<WireFlow> = (0..3)
            .map(|number| {
                let period = [20, 25, 30, 40][draw(4) as usize];
                let deadline = Duration::from_micros(15 + draw(30));
                let frame = Size::from_bytes(242 + 300 * draw(6) as u32);
                WireFlow { deadline, frame, ..flow(&format!("f{number}"), (draw(2) as usize, 2), period) }
            })
            .collect();
        match plan(&wire, &flows) {
            Ok(courses) => assert_eq!(judge_wire(&wire, &flows, &courses), [], "{seed}"),
            Err(error) => {
                let has_plan = starts(&wire, &flows).is_some();
                assert!(!has_plan, "{seed}: {error}, but there is a plan");
                proofs += usize::from(error.is_proof());
            }
        }
    }
    assert!(proofs > 20, "{proofs}");
}

/// Tries all starts of three flows in steps of a microsecond.
fn starts(wire: &Wire, flows: &[WireFlow]) -> Option<Vec<Course>> {
    let course = |flow: &WireFlow, start: i64| {
        let first = Duration::from_micros(start);
        Course { hops: vec![(flow.from, first), (2, first + wire.hop(flow.from, flow.frame))] }
    };
    let range = |flow: &WireFlow| 0..flow.period.as_nanos() / 1000;
    for one in range(&flows[0]) {
        for two in range(&flows[1]) {
            let pair = [course(&flows[0], one), course(&flows[1], two)];
            if !judge_wire(wire, &flows[..2], &pair).is_empty() {
                continue;
            }
            for three in range(&flows[2]) {
                let all: Vec<Course> = pair.iter().cloned().chain([course(&flows[2], three)]).collect();
                if judge_wire(wire, flows, &all).is_empty() {
                    return Some(all);
                }
            }
        }
    }
    None
}

#[test]
fn frames_keep_to_the_tick_and_to_a_given_route() {
    let tick = Duration::from_micros(7);
    for seed in 0..8 {
        let (wire, mut flows) = switched(seed, Topology::Ring(6), Traffic { flows: 80, hosts: 2 });
        let wire = Wire { tick, ..wire };
        let free = plan(&wire, &flows).unwrap();
        assert_eq!(judge_wire(&wire, &flows, &free), [], "{seed}");
        assert!(free.iter().all(|course| course.hops[0].1 % tick == Duration::ZERO), "{seed}");
        // Every second flow goes the other way around.
        let others = |flow: &WireFlow, course: &Course| -> Option<Vec<usize>> {
            let links = |nodes: &[usize]| -> Option<Vec<usize>> {
                let link = |pair: &[usize]| wire.links.iter().position(|link| [link.from, link.to] == pair);
                nodes.windows(2).map(link).collect()
            };
            let first = wire.links[course.hops[0].0].to;
            let last = wire.links[course.hops.last()?.0].from;
            let second = wire.links[course.hops[1].0].to;
            let step = if second == (first + 1) % 6 { 5 } else { 1 };
            let mut nodes = vec![flow.from, first];
            while *nodes.last()? != last {
                nodes.push((nodes.last()? + step) % 6);
            }
            nodes.push(flow.to);
            links(&nodes)
        };
        for (flow, course) in flows.iter_mut().zip(&free).step_by(2).filter(|(_, course)| course.hops.len() > 2) {
            flow.route = Some(others(flow, course).expect("the ring has another way"));
        }
        let around = plan(&wire, &flows).unwrap();
        assert_eq!(judge_wire(&wire, &flows, &around), [], "{seed}");
    }
}

#[test]
fn the_plan_is_the_same_in_every_order() {
    let (wire, flows) = switched(5, Topology::Mesh(3, 3), Traffic { flows: 80, hosts: 2 });
    let courses = plan(&wire, &flows).unwrap();
    let turned: Vec<WireFlow> = flows.iter().rev().cloned().collect();
    let mut again = plan(&wire, &turned).unwrap();
    again.reverse();
    assert_eq!(again, courses);
}

fn flow(name: &str, (from, to): (usize, usize), period: i64) -> WireFlow {
    let period = Duration::from_micros(period);
    WireFlow {
        name: name.into(),
        from,
        to,
        route: None,
        job: None,
        frame: Size::from_bytes(1240),
        period,
        ready: None,
        deadline: period,
    }
}

/// `a` and `b` send to `c` through a switch at 1 Gb/s. A frame of 1240 bytes takes 9.92 us on a link.
fn star() -> Wire {
    let node = |name: &str| Node { name: name.into(), forwards: (name == "s").then_some(Duration::from_micros(2)) };
    let link = |from, to| Link {
        from,
        to,
        speed: Speed::from_bits(1_000_000_000),
        opening: Duration::ZERO,
        gap: Duration::ZERO,
        propagation: Duration::ZERO,
    };
    Wire {
        nodes: ["a", "b", "c", "s"].map(node).into(),
        links: vec![link(0, 3), link(1, 3), link(3, 2)],
        ..Wire::default()
    }
}

#[test]
fn what_is_impossible_is_proved() {
    let refused = |flows: &[WireFlow]| {
        let error = plan(&star(), flows).unwrap_err();
        assert!(error.is_proof(), "{error}");
        error.to_string()
    };
    assert_eq!(refused(&[flow("x", (2, 0), 100)]), "flow `x`: no links lead from `c` to `a`");
    let late = WireFlow { deadline: Duration::from_micros(21), ..flow("x", (0, 2), 100) };
    let told = "flow `x`: on an empty network, its frame takes 21840ns from `a` to `c`, and the deadline is 21us";
    assert_eq!(refused(&[late]), told);
    let many = [flow("x", (0, 2), 25), flow("y", (1, 2), 25), flow("z", (1, 2), 25)];
    let told = "the 3 flows that must cross the link from `s` to `c` take 119.0 % of its time";
    assert_eq!(refused(&many), told);
    let fast = |period| WireFlow { deadline: Duration::from_micros(50), ..flow("fast", (1, 2), period) };
    let told = "flow `fast`: its frame takes 9920ns on the link from `b` to `s`, and its period is 9us";
    assert_eq!(refused(&[flow("x", (0, 2), 100), fast(9)]), told);
    let told = "flows `fast` and `x` meet on the link from `s` to `c` at some time: their frames take 19840ns there, \
                and the greatest common divisor of their periods is 10us";
    assert_eq!(refused(&[flow("x", (0, 2), 100), fast(30)]), told);
}

/// On the last link, `y` has one place and `x` takes the first free one. Both gaps are then too short for `long`, so `x`
/// has to leave.
#[test]
fn a_flow_takes_the_place_of_others() {
    let wire = star();
    let at = |name: &str, ready, deadline| WireFlow {
        ready: Some(Duration::from_micros(ready)),
        deadline: Duration::from_micros(deadline),
        ..flow(name, (1, 2), 46)
    };
    let long =
        WireFlow { frame: Size::from_bytes(2492), deadline: Duration::from_micros(90), ..flow("long", (0, 2), 46) };
    let flows = [at("y", 20, 22), at("x", 0, 60), long];
    let courses = plan(&wire, &flows).unwrap();
    assert_eq!(judge_wire(&wire, &flows, &courses), []);
}
