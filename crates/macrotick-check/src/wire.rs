//! The judge of frames on a switched network. It lays out every frame of a hyperperiod, link by link.

use macrotick_model::wire::{Course, Wire, WireFlow};
use macrotick_model::Duration;

/// The most frames of one link that are laid out. With more, frames are compared in pairs of flows.
const LIMIT: i64 = 4_000_000;

/// A rule that the plan of a switched network breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireViolation {
    /// Not every flow has a course.
    #[error("{flows} flows have {courses} courses")]
    Number {
        /// The flows.
        flows: usize,
        /// The courses.
        courses: usize,
    },
    /// The links of a course do not lead from the sender to the receiver through nodes that forward. Or they are not those
    /// of the flow's route.
    #[error("flow `{flow}`: its links do not lead from `{from}` to `{to}`, or are not its route")]
    Route {
        /// The flow.
        flow: String,
        /// The sender.
        from: String,
        /// The receiver.
        to: String,
    },
    /// A frame starts before it is ready, or before the epoch.
    #[error("flow `{flow}`: its frame starts at {start}, before it is ready at {ready}")]
    Early {
        /// The flow.
        flow: String,
        /// The start at the sender.
        start: Duration,
        /// The ready instant.
        ready: Duration,
    },
    /// A sender starts a frame at no multiple of the tick.
    #[error("flow `{flow}`: its frame starts at {start}, which is no multiple of {tick}")]
    Tick {
        /// The flow.
        flow: String,
        /// The start at the sender.
        start: Duration,
        /// The time of which it has to be a multiple.
        tick: Duration,
    },
    /// A frame starts on a link before the node can forward it.
    #[error("flow `{flow}`: its frame starts at {start} on the link from `{from}` to `{to}`, but is there at {there}")]
    TooSoon {
        /// The flow.
        flow: String,
        /// The node that sends.
        from: String,
        /// The node that receives.
        to: String,
        /// The start on the link.
        start: Duration,
        /// The latest instant at which the node can forward the frame.
        there: Duration,
    },
    /// A frame arrives after its deadline.
    #[error("flow `{flow}`: its frame arrives at {arrival}, {} after its deadline", *.arrival - *.limit)]
    Late {
        /// The flow.
        flow: String,
        /// The arrival.
        arrival: Duration,
        /// The instant of the deadline.
        limit: Duration,
    },
    /// Two frames are on one link, or in the queue before it, at the same time. Both can be of one flow.
    #[error("flows `{flow}` and `{other}` meet on the link from `{from}` to `{to}` at {at}")]
    Meet {
        /// The flow of the frame that is there.
        flow: String,
        /// The flow of the frame that comes too soon.
        other: String,
        /// The node that sends.
        from: String,
        /// The node that receives.
        to: String,
        /// The instant at which the other frame comes, in the hyperperiod of the link.
        at: Duration,
    },
}

/// A frame at a link, from `there` until `left`.
#[derive(Clone, Copy)]
struct Visit {
    flow: usize,
    there: i64,
    left: i64,
    every: i64,
}

/// Judges the courses of flows. Returns all broken rules, by flow and then by link. For frames that meet on a link, only
/// neighbours are reported.
///
/// A frame is on one link at a time. A switch forwards it at the instant of its course, and holds no two planned frames of
/// one link at the same time. So the order in a queue cannot change, even if a frame is lost. At the sender, a course
/// says when the frame starts, and frames that are ready before are not judged.
pub fn judge_wire(wire: &Wire, flows: &[WireFlow], courses: &[Course]) -> Vec<WireViolation> {
    if flows.len() != courses.len() {
        return vec![WireViolation::Number { flows: flows.len(), courses: courses.len() }];
    }
    let mut violations = Vec::new();
    let mut visits: Vec<Vec<Visit>> = vec![Vec::new(); wire.links.len()];
    for (number, (flow, course)) in flows.iter().zip(courses).enumerate() {
        match leads(wire, flow, course) {
            true => follow(wire, (number, flow), course, &mut visits, &mut violations),
            false => {
                let name = |node: usize| wire.nodes[node].name.clone();
                let (flow, from, to) = (flow.name.clone(), name(flow.from), name(flow.to));
                violations.push(WireViolation::Route { flow, from, to });
            }
        }
    }
    for (number, visits) in visits.iter().enumerate() {
        for (one, other, at) in meetings(visits) {
            let link = &wire.links[number];
            violations.push(WireViolation::Meet {
                flow: flows[one].name.clone(),
                other: flows[other].name.clone(),
                from: wire.nodes[link.from].name.clone(),
                to: wire.nodes[link.to].name.clone(),
                at: Duration::from_nanos(at),
            });
        }
    }
    violations
}

fn leads(wire: &Wire, flow: &WireFlow, course: &Course) -> bool {
    let mut node = flow.from;
    for (index, (number, _)) in course.hops.iter().enumerate() {
        let Some(link) = wire.links.get(*number) else { return false };
        let passes = index == 0 || wire.nodes[node].forwards.is_some();
        if link.from != node || !passes {
            return false;
        }
        node = link.to;
    }
    let is_given = |route: &Vec<usize>| course.hops.iter().map(|(link, _)| link).eq(route);
    node == flow.to && !course.hops.is_empty() && flow.route.as_ref().is_none_or(is_given)
}

/// Checks the instants of one flow, and notes its visits.
fn follow(
    wire: &Wire,
    (number, flow): (usize, &WireFlow),
    course: &Course,
    visits: &mut [Vec<Visit>],
    violations: &mut Vec<WireViolation>,
) {
    let first = course.hops[0].1;
    let ready = flow.ready.unwrap_or(first);
    if first < ready || first < Duration::ZERO {
        violations.push(WireViolation::Early { flow: flow.name.clone(), start: first, ready });
    }
    if first.as_nanos() % wire.tick.as_nanos() != 0 {
        violations.push(WireViolation::Tick { flow: flow.name.clone(), start: first, tick: wire.tick });
    }
    let mut there = first;
    for &(hop, start) in &course.hops {
        let link = &wire.links[hop];
        if start < there {
            let (from, to) = (wire.nodes[link.from].name.clone(), wire.nodes[link.to].name.clone());
            violations.push(WireViolation::TooSoon { flow: flow.name.clone(), from, to, start, there });
        }
        let sent = start + flow.time(wire, hop);
        let visit = Visit {
            flow: number,
            there: there.min(start).as_nanos(),
            left: (sent + link.gap).as_nanos(),
            every: flow.period.as_nanos(),
        };
        visits[hop].push(visit);
        let at_node = sent + link.propagation;
        there = at_node + wire.nodes[link.to].forwards.unwrap_or(Duration::ZERO);
        let limit = ready + flow.deadline;
        if link.to == flow.to && at_node > limit {
            violations.push(WireViolation::Late { flow: flow.name.clone(), arrival: at_node, limit });
        }
    }
}

/// Returns flows that are at one link at the same time, and the instant at which the second one comes.
fn meetings(visits: &[Visit]) -> Vec<(usize, usize, i64)> {
    let Some(span) = hyperperiod(visits) else { return in_pairs(visits) };
    let mut all: Vec<(i64, i64, usize)> = Vec::new();
    for visit in visits {
        let first = visit.there.rem_euclid(visit.every);
        let length = visit.left - visit.there;
        all.extend((0..span / visit.every).map(|turn| {
            let there = first + turn * visit.every;
            (there, there + length, visit.flow)
        }));
    }
    all.sort_unstable();
    let mut found = Vec::new();
    // The last frames of the hyperperiod before can still be there.
    let mut last = all.iter().map(|(_, left, flow)| (left - span, *flow)).max();
    for (there, left, flow) in all {
        if let Some((until, other)) = last.filter(|(until, _)| *until > there) {
            found.push((other, flow, there));
            last = Some((until.max(left), if left > until { flow } else { other }));
            continue;
        }
        last = Some((left, flow));
    }
    found
}

/// Returns the time after which all frames of a link repeat. `None` if there are too many frames in it.
fn hyperperiod(visits: &[Visit]) -> Option<i64> {
    let periods = visits.iter().map(|visit| Duration::from_nanos(visit.every));
    let span = periods.clone().try_fold(Duration::from_nanos(1), Duration::lcm)?;
    let frames = periods.fold(0, |sum: i64, period| sum.saturating_add(span / period));
    (frames <= LIMIT).then_some(span.as_nanos())
}

fn in_pairs(visits: &[Visit]) -> Vec<(usize, usize, i64)> {
    let mut found = Vec::new();
    for (index, one) in visits.iter().enumerate() {
        if one.left - one.there > one.every {
            found.push((one.flow, one.flow, one.there + one.every));
        }
        for other in &visits[index + 1..] {
            let common = Duration::from_nanos(one.every).gcd(Duration::from_nanos(other.every)).as_nanos();
            let distance = (other.there - one.there).rem_euclid(common);
            if distance < one.left - one.there || distance + (other.left - other.there) > common {
                found.push((one.flow, other.flow, other.there));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use macrotick_model::wire::{Link, Node};
    use macrotick_model::{Size, Speed};

    use super::*;

    const US: fn(i64) -> Duration = Duration::from_micros;

    /// `a` and `b` send to `c` through the switch `s`, at 1 Gb/s.
    fn star() -> Wire {
        let node = |name: &str| Node { name: name.into(), forwards: (name == "s").then_some(US(2)) };
        let speed = Speed::from_bits(1_000_000_000);
        let link = |from, to| Link { from, to, speed, opening: US(0), gap: US(0), propagation: US(1) };
        Wire {
            nodes: ["a", "b", "c", "s"].map(node).into(),
            links: vec![link(0, 3), link(1, 3), link(3, 2)],
            ..Wire::default()
        }
    }

    fn flow(name: &str, from: usize, period: i64) -> WireFlow {
        let (period, deadline) = (US(period), US(60));
        // 9.92 us at 1 Gb/s.
        WireFlow {
            name: name.into(),
            from,
            to: 2,
            route: None,
            job: None,
            frame: Size::from_bytes(1240),
            period,
            ready: None,
            deadline,
        }
    }

    fn course(first: i64, link: usize) -> Course {
        Course { hops: vec![(link, US(first)), (2, US(first) + US(13) - Duration::from_nanos(80))] }
    }

    fn told(flows: &[WireFlow], courses: &[Course]) -> Vec<String> {
        judge_wire(&star(), flows, courses).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_plan_that_keeps_all_rules_has_no_violation() {
        let flows = [flow("x", 0, 100), flow("y", 1, 200)];
        assert_eq!(told(&flows, &[course(0, 0), course(10, 1)]), [""; 0]);
        // The end of the hyperperiod is no obstacle.
        assert_eq!(told(&flows, &[course(90, 0), course(180, 1)]), [""; 0]);
    }

    #[test]
    fn frames_on_one_link_meet() {
        let flows = [flow("x", 0, 100), flow("y", 1, 200)];
        let meet = |at: &str| [format!("flows `x` and `y` meet on the link from `s` to `c` at {at}")];
        assert_eq!(told(&flows, &[course(0, 0), course(9, 1)]), meet("21920ns"));
        // Also in the second period of the faster one, and around the hyperperiod.
        assert_eq!(told(&flows, &[course(0, 0), course(109, 1)]), meet("121920ns"));
        let around =
            [format!("flows `y` and `x` meet on the link from `s` to `c` at {}", US(12) + Duration::from_nanos(920))];
        assert_eq!(told(&flows, &[course(0, 0), course(191, 1)]), around);
    }

    #[test]
    fn a_course_has_a_way_and_instants_in_order() {
        let flows = [flow("x", 0, 100)];
        let wrong = ["flow `x`: its links do not lead from `a` to `c`, or are not its route"];
        for hops in [vec![], vec![(0, US(0))], vec![(2, US(0))], vec![(1, US(0)), (2, US(20))], vec![(7, US(0))]] {
            assert_eq!(told(&flows, &[Course { hops }]), wrong);
        }
        let soon = Course { hops: vec![(0, US(0)), (2, US(12))] };
        let told_soon = "flow `x`: its frame starts at 12us on the link from `s` to `c`, but is there at 12920ns";
        assert_eq!(told(&flows, &[soon]), [told_soon]);
        assert_eq!(told(&flows, &[]), ["1 flows have 0 courses"]);
        let given = |route: &[usize]| [WireFlow { route: Some(route.to_vec()), ..flow("x", 0, 100) }];
        assert_eq!(told(&given(&[0, 2]), &[course(0, 0)]), [""; 0]);
        assert_eq!(told(&given(&[1, 2]), &[course(0, 0)]), wrong);
    }

    #[test]
    fn a_sender_starts_frames_at_multiples_of_the_tick() {
        let wire = Wire { tick: US(4), ..star() };
        let judge = |first| judge_wire(&wire, &[flow("x", 0, 100)], &[course(first, 0)]);
        assert_eq!(judge(8), []);
        assert_eq!(judge(9), [WireViolation::Tick { flow: "x".into(), start: US(9), tick: US(4) }]);
    }

    #[test]
    fn a_frame_keeps_its_ready_instant_and_its_deadline() {
        let flows = [WireFlow { ready: Some(US(30)), deadline: US(24), ..flow("x", 0, 100) }];
        assert_eq!(told(&flows, &[course(30, 0)]), [""; 0]);
        assert_eq!(told(&flows, &[course(29, 0)]), ["flow `x`: its frame starts at 29us, before it is ready at 30us"]);
        let late = "flow `x`: its frame arrives at 54840ns, 840ns after its deadline";
        assert_eq!(told(&flows, &[course(31, 0)]), [late]);
    }

    #[test]
    fn too_many_frames_are_compared_in_pairs() {
        let flows = [flow("x", 0, 10_007), flow("y", 1, 999_983), flow("z", 1, 1_000_003)];
        let courses = [course(0, 0), course(11, 1), course(22, 1)];
        assert!(meetings(&[]).is_empty());
        // Periods without a common divisor meet sooner or later.
        assert!(!told(&flows, &courses).is_empty());
    }
}
