//! Routes through the network.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use macrotick_model::wire::{Wire, WireFlow};
use macrotick_model::{Duration, Size};

/// The frame for which links are compared: the longest one of Ethernet, with its tag, preamble and gap.
const FRAME: Size = Size::from_bytes(1542);

/// The routes of a network. Distances to a receiver are computed once.
pub(super) struct Routes<'a> {
    wire: &'a Wire,
    /// The links that leave each node.
    leaving: Vec<Vec<usize>>,
    /// The links that arrive at each node.
    arriving: Vec<Vec<usize>>,
    /// The distance from each node to a receiver. `None` for a node without a way to it.
    distances: BTreeMap<usize, Vec<Option<Duration>>>,
}

impl<'a> Routes<'a> {
    pub fn new(wire: &'a Wire) -> Routes<'a> {
        let mut leaving = vec![Vec::new(); wire.nodes.len()];
        let mut arriving = leaving.clone();
        for (number, link) in wire.links.iter().enumerate() {
            leaving[link.from].push(number);
            arriving[link.to].push(number);
        }
        Routes { wire, leaving, arriving, distances: BTreeMap::new() }
    }

    /// Returns links that the frames of a flow must cross: those of its route. Without one, the only link of the sender,
    /// and the only one of the receiver.
    pub fn only_links(&self, flow: &WireFlow) -> Vec<usize> {
        let only = |links: &[usize]| match links {
            [link] => Some(*link),
            _ => None,
        };
        let ends = || [only(&self.leaving[flow.from]), only(&self.arriving[flow.to])].into_iter().flatten().collect();
        flow.route.clone().unwrap_or_else(ends)
    }

    /// Whether frames can pass through a node.
    fn forwards(&self, node: usize) -> bool {
        self.wire.nodes[node].forwards.is_some()
    }

    /// Returns the distance from each node to a receiver, by the time of a long frame.
    fn distances(&mut self, to: usize) -> &[Option<Duration>] {
        let known = self.distances.remove(&to).unwrap_or_else(|| self.distances_to(to));
        self.distances.entry(to).or_insert(known)
    }

    /// Finds them by Dijkstra's method, from the receiver on.
    fn distances_to(&self, to: usize) -> Vec<Option<Duration>> {
        let mut distances: Vec<Option<Duration>> = vec![None; self.wire.nodes.len()];
        let mut near = BinaryHeap::from([Reverse((Duration::ZERO, to))]);
        while let Some(Reverse((distance, node))) = near.pop() {
            if distances[node].is_some() {
                continue;
            }
            distances[node] = Some(distance);
            if node != to && !self.forwards(node) {
                continue;
            }
            for &link in &self.arriving[node] {
                let before = self.wire.links[link].from;
                if distances[before].is_none() {
                    near.push(Reverse((distance + self.wire.hop(link, FRAME), before)));
                }
            }
        }
        distances
    }

    /// Returns the route of a flow if it has one, or else a shortest one. `None` if no links lead to the receiver.
    pub fn of(&mut self, flow: &WireFlow, load: &dyn Fn(usize) -> f64) -> Option<Vec<usize>> {
        match &flow.route {
            Some(route) => self.leads(flow, route).then(|| route.clone()),
            None => self.shortest(flow.from, flow.to, load),
        }
    }

    /// Whether these links lead from the sender of a flow to its receiver.
    fn leads(&self, flow: &WireFlow, route: &[usize]) -> bool {
        let mut node = flow.from;
        for (index, number) in route.iter().enumerate() {
            let Some(link) = self.wire.links.get(*number) else { return false };
            if link.from != node || (index > 0 && !self.forwards(node)) {
                return false;
            }
            node = link.to;
        }
        node == flow.to
    }

    /// Returns a shortest route. Where several links lead on equally well, it takes the one with the least `load`.
    pub fn shortest(&mut self, from: usize, to: usize, load: &dyn Fn(usize) -> f64) -> Option<Vec<usize>> {
        self.distances(to);
        self.onwards(from, to, load)
    }

    fn onwards(&self, from: usize, to: usize, load: &dyn Fn(usize) -> f64) -> Option<Vec<usize>> {
        let distances = &self.distances[&to];
        let mut node = from;
        let mut route = Vec::new();
        while node != to {
            let left = distances[node]?;
            let leads_on = |link: &&usize| {
                let hop = self.wire.hop(**link, FRAME);
                let next = self.wire.links[**link].to;
                distances[next].is_some_and(|rest| rest + hop == left) && (next == to || self.forwards(next))
            };
            let best =
                self.leaving[node].iter().filter(leads_on).min_by(|one, other| load(**one).total_cmp(&load(**other)));
            let link = *best?;
            route.push(link);
            node = self.wire.links[link].to;
        }
        Some(route)
    }

    /// Returns routes that leave a shortest one at one node each, the shortest first, at most `most`.
    pub fn detours(&mut self, route: &[usize], to: usize, most: usize, load: &dyn Fn(usize) -> f64) -> Vec<Vec<usize>> {
        self.distances(to);
        let mut found: Vec<(Duration, Vec<usize>)> = Vec::new();
        let mut passed = Vec::new();
        for (index, &link) in route.iter().enumerate() {
            let node = self.wire.links[link].from;
            passed.push(node);
            for &other in self.leaving[node].iter().filter(|other| **other != link) {
                let next = self.wire.links[other].to;
                let Some(rest) = self.onwards(next, to, load) else { continue };
                let is_new = |link: &usize| !passed.contains(&self.wire.links[*link].to);
                if (next != to && !self.forwards(next)) || passed.contains(&next) || !rest.iter().all(is_new) {
                    continue;
                }
                let whole: Vec<usize> = route[..index].iter().chain([&other]).chain(&rest).copied().collect();
                let time = whole.iter().map(|link| self.wire.hop(*link, FRAME)).sum();
                found.push((time, whole));
            }
        }
        found.sort();
        found.dedup();
        found.into_iter().take(most).map(|(_, route)| route).collect()
    }
}
