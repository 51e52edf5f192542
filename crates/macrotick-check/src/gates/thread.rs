//! The windows of the kernel threads that open gates.

use std::collections::{BTreeMap, BTreeSet};

use macrotick_model::{Duration, Flow, Group, GroupThread, Plan, Windows};

use super::exclusive::alone;
use super::ports::Side;
use crate::jobs::Served;
use crate::network::NetworkViolation as Violation;

/// The time after the opening of a gate in which the thread sends the frames that wait. In the lab, a frame takes at
/// most 8 us from its gate to the stack of the receiver.
const SENDS: Duration = Duration::from_micros(10);

/// Checks the thread of an interface with a lead. A window from the lead until the frames are sent must surround each
/// instant at which a class with a flow or a slot opens. This is a rule of groups that serve nothing else. A group of
/// the description can serve the thread in its own way.
pub(super) fn check(plan: &Plan, side: &Side, served: &BTreeMap<&str, Served>, found: &mut Vec<Violation>) {
    let (Some(lead), Some(list)) = (side.interface.lead, side.list) else { return };
    let interface = || side.interface.name.clone();
    let kept: Vec<&str> = side
        .punctual
        .classes
        .iter()
        .zip(&side.kept)
        .filter(|(_, kept)| **kept)
        .map(|(one, _)| one.name.as_str())
        .collect();
    let openings = alone(&list.entries);
    let express = express(plan, side, list.cycle);
    let openings: Vec<_> =
        openings.iter().filter(|time| kept.contains(&time.class) && !express.contains(&time.start)).collect();
    if openings.is_empty() {
        return;
    }
    let serves = |group: &&Group| group.kernel_threads.contains(&GroupThread::Gate(interface()));
    let Some(group) = plan.system.groups.iter().find(serves) else {
        found.push(Violation::NoThread { interface: interface(), thread: side.interface.gate_thread(), lead });
        return;
    };
    if !serves_only_the_thread(plan, group) {
        return;
    }
    let windows = group.pool_name().and_then(|pool| served.get(pool.as_str())).map_or(&[][..], Vec::as_slice);
    if let (Some(cpu), Some((other, _))) =
        (side.interface.cpu, windows.first().filter(|(cpu, _)| side.interface.cpu != Some(*cpu)))
    {
        let (interface, group) = (interface(), group.name.clone());
        found.push(Violation::ThreadCpu { interface, group, cpu, other: *other });
    }
    let cycle = plan.cycle.as_nanos();
    let spans: Vec<(i64, i64)> =
        windows.iter().map(|(_, window)| (window.offset.as_nanos(), window.end().as_nanos())).collect();
    let repeats = cycle / list.cycle.as_nanos();
    for time in openings {
        let each = (0..repeats).map(|number| time.start + number * list.cycle.as_nanos());
        let mut spans_of = each.map(|opens| (opens, opens - lead.as_nanos(), opens + SENDS.as_nanos()));
        if let Some((opens, begin, end)) = spans_of.find(|(_, begin, end)| !covers(&spans, cycle, *begin, *end)) {
            let [opens, begin, end] = [opens, begin, end].map(Duration::from_nanos);
            let (interface, group, class) = (interface(), group.name.clone(), time.class.to_owned());
            found.push(Violation::ThreadWindow { interface, group, class, opens, begin, end });
        }
    }
}

/// Returns the instants within the list's cycle from which the link is free for an express socket. Its frames pass no gate,
/// so no thread has to open it on time.
fn express(plan: &Plan, side: &Side, cycle: Duration) -> BTreeSet<i64> {
    let network = plan.system.network.iter();
    let first = |flow: &&Flow| {
        let way = network.clone().flat_map(|network| plan.system.way(network, flow)).next();
        flow.express && way.is_some_and(|interface| interface.name == side.interface.name)
    };
    let flows = network.clone().flat_map(|network| &network.flows).filter(first);
    let starts = flows.flat_map(|flow| plan.jobs(&flow.from)).map(|job| job.nominal + side.interface.path);
    starts.map(|start| start.as_nanos().rem_euclid(cycle.as_nanos())).collect()
}

/// Whether the group has windows over the whole cycle for this thread alone, as the planner makes it.
fn serves_only_the_thread(plan: &Plan, group: &Group) -> bool {
    let whole = |windows: &Windows| windows.period == plan.cycle;
    group.kernel_threads.len() == 1
        && group.run.is_empty()
        && !group.has_budget()
        && group.windows.as_ref().is_some_and(whole)
}

/// Whether sorted spans of each cycle cover `[begin, end)` without a gap.
fn covers(spans: &[(i64, i64)], cycle: i64, begin: i64, end: i64) -> bool {
    let turn = begin.div_euclid(cycle);
    let turns = (turn - 1..=turn + (end - begin) / cycle + 1).map(|turn| turn * cycle);
    let around = turns.flat_map(|shift| spans.iter().map(move |(from, to)| (from + shift, to + shift)));
    let reached = around.fold(begin, |reached, (from, to)| if from <= reached { reached.max(to) } else { reached });
    reached >= end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_cover_a_time_around_the_cycle() {
        let spans = [(0, 10), (50, 60), (60, 70), (90, 100)];
        let covered = |begin, end| covers(&spans, 100, begin, end);
        assert!(covered(50, 70) && covered(90, 110) && covered(-10, 10) && covered(290, 310));
        assert!(!covered(49, 70) && !covered(50, 71) && !covered(90, 111) && !covered(20, 30));
        assert!(!covers(&[], 100, 0, 1));
    }
}
