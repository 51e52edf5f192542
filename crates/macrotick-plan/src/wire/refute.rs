//! Proofs that flows have no plan.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use macrotick_model::wire::{Wire, WireFlow};
use macrotick_model::Duration;

use super::fit::hops;
use super::routes::Routes;
use super::WireError;

/// Proves that no plan exists, if a proof is at hand:
///
/// * A flow has no route.
/// * A deadline is shorter than the way.
/// * Frames have no room on a link that they must cross: that of a given route, or the only one of an end.
pub(super) fn refute(wire: &Wire, flows: &[WireFlow], routes: &mut Routes) -> Result<(), WireError> {
    let mut only: BTreeMap<usize, Vec<&WireFlow>> = BTreeMap::new();
    for flow in flows {
        let names = || (flow.name.clone(), wire.nodes[flow.from].name.clone(), wire.nodes[flow.to].name.clone());
        let route = routes.of(flow, &|_| 0.0).filter(|route| !route.is_empty());
        let Some(route) = route else {
            let (flow, from, to) = names();
            return Err(WireError::NoRoute { flow, from, to });
        };
        // The route is the shortest for long frames. With one speed everywhere, it is so for all.
        let (_, least) = hops(wire, flow, &route);
        if least > flow.deadline && (flow.route.is_some() || is_uniform(wire)) {
            let ((name, from, to), deadline) = (names(), flow.deadline);
            return Err(WireError::TooFar { flow: name, from, to, least, deadline });
        }
        routes.only_links(flow).into_iter().for_each(|link| only.entry(link).or_default().push(flow));
    }
    only.into_iter().try_for_each(|(link, flows)| fits(wire, link, &flows))
}

/// Whether a shortest route is the same for all payloads.
fn is_uniform(wire: &Wire) -> bool {
    wire.links.windows(2).all(|pair| pair[0].speed == pair[1].speed)
}

/// Proves that the frames of these flows cannot share a link.
fn fits(wire: &Wire, number: usize, flows: &[&WireFlow]) -> Result<(), WireError> {
    let link = &wire.links[number];
    let (from, to) = (wire.nodes[link.from].name.clone(), wire.nodes[link.to].name.clone());
    let time = |flow: &WireFlow| flow.occupies(wire, number);
    if let Some(flow) = flows.iter().find(|flow| time(flow) > flow.period) {
        let (time, period) = (time(flow), flow.period);
        return Err(WireError::TooLong { flow: flow.name.clone(), from, to, time, period });
    }
    if let Some((flow, other)) = clash(&time, flows) {
        let (time, common) = (time(flow) + time(other), flow.period.gcd(other.period));
        return Err(WireError::Clash { flow: flow.name.clone(), other: other.name.clone(), from, to, time, common });
    }
    let share = |flow: &&WireFlow| time(flow).as_nanos() as f64 / flow.period.as_nanos() as f64;
    let load: f64 = flows.iter().map(share).sum();
    // The sum of quotients is not exact, and a proof must be.
    match load > 1.0 + 1e-9 {
        true => Err(WireError::Overload { from, to, flows: flows.len(), load }),
        false => Ok(()),
    }
}

/// Returns two flows that meet on the link in any plan.
fn clash<'a>(time: &dyn Fn(&WireFlow) -> Duration, flows: &[&'a WireFlow]) -> Option<(&'a WireFlow, &'a WireFlow)> {
    // Of all flows with one period, the two with the longest frames decide.
    let mut longest: BTreeMap<Duration, Vec<&WireFlow>> = BTreeMap::new();
    for flow in flows {
        longest.entry(flow.period).or_default().push(flow);
    }
    for of_period in longest.values_mut() {
        of_period.sort_by_key(|flow| (Reverse(time(flow)), &flow.name));
        of_period.truncate(2);
    }
    let meet = |one: &WireFlow, other: &WireFlow| time(one) + time(other) > one.period.gcd(other.period);
    let pairs = longest.values().enumerate().flat_map(|(index, of_period)| {
        let same = of_period.get(1).map(|second| (of_period[0], *second));
        same.into_iter().chain(longest.values().skip(index + 1).map(|slower| (of_period[0], slower[0])))
    });
    pairs.into_iter().find(|(one, other)| meet(one, other))
}
