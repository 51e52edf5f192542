//! The search: flows are placed one after the other, and one without room takes the place of others.

use std::cmp::Reverse;
use std::collections::{BTreeSet, VecDeque};

use macrotick_model::wire::{Course, Wire, WireFlow};
use macrotick_model::{Duration, SplitMix64};

use super::fit::{earliest, hops, range, Hop};
use super::line::{Line, Taken};
use super::routes::Routes;
use super::WireError;
use crate::demand::round_up;
use crate::options::Clock;

/// The other routes that a flow tries.
const DETOURS: usize = 6;
/// The starts on each route that are compared, if a flow must take the place of others.
const STARTS: usize = 32;
/// The most flows that take the place of others before the search begins again, for each flow of the network.
const ROUNDS: usize = 40;

/// The state of the search.
pub(super) struct Search<'a> {
    wire: &'a Wire,
    flows: &'a [WireFlow],
    routes: Routes<'a>,
    lines: Vec<Line>,
    courses: Vec<Option<Course>>,
    /// How often each flow was ejected. A flow that was ejected often is not ejected again so soon.
    ejected: Vec<u32>,
    random: SplitMix64,
}

/// A route of a flow.
struct Way {
    hops: Vec<Hop>,
    range: (Duration, Duration),
}

impl<'a> Search<'a> {
    pub fn new(wire: &'a Wire, flows: &'a [WireFlow], routes: Routes<'a>, seed: u64) -> Search<'a> {
        Search {
            wire,
            flows,
            routes,
            lines: wire.links.iter().map(|_| Line::default()).collect(),
            courses: vec![None; flows.len()],
            ejected: vec![0; flows.len()],
            random: SplitMix64::new(seed),
        }
    }

    /// Returns the courses of all placed flows, in the order of the flows.
    pub fn courses(self) -> Vec<Course> {
        self.courses.into_iter().flatten().collect()
    }

    /// Places all flows. The search begins again until the clock is over. Flows that were ejected often come sooner then.
    pub fn place_all(&mut self, clock: &Clock) -> Result<(), WireError> {
        loop {
            let Err(failed) = self.attempt(clock) else { return Ok(()) };
            if clock.is_over() {
                return Err(self.not_found(failed));
            }
            (0..self.flows.len()).for_each(|number| self.release(number));
        }
    }

    /// Places all flows. The error is a flow without room.
    fn attempt(&mut self, clock: &Clock) -> Result<(), usize> {
        let mut order: Vec<usize> = (0..self.flows.len()).collect();
        let key = |number: &usize| {
            let flow = &self.flows[*number];
            let route = self.routes.of(flow, &|_| 0.0).unwrap_or_default();
            let (_, arrived) = hops(self.wire, flow, &route);
            let choices = range(flow, arrived, self.wire.tick).map_or(Duration::ZERO, |(first, last)| last - first);
            (choices, Reverse(self.ejected[*number]), Reverse(arrived))
        };
        order.sort_by_cached_key(key);
        let mut waiting = VecDeque::from(order);
        let mut rounds = ROUNDS * self.flows.len();
        while let Some(number) = waiting.pop_front() {
            if self.is_placed(number) {
                continue;
            }
            let ejected = if rounds == 0 || clock.is_over() { None } else { self.eject_for(number) };
            waiting.extend(ejected.ok_or(number)?);
            rounds -= 1;
        }
        Ok(())
    }

    /// Places a flow where all links are free.
    pub fn place(&mut self, number: usize) -> Result<(), WireError> {
        match self.is_placed(number) {
            true => Ok(()),
            false => Err(self.not_found(number)),
        }
    }

    fn is_placed(&mut self, number: usize) -> bool {
        let Some(shortest) = self.shortest(number) else { return false };
        self.fits(number, &shortest) || self.detours(number, &shortest).iter().any(|route| self.fits(number, route))
    }

    /// Places a flow on a route, if all links are free.
    fn fits(&mut self, number: usize, route: &[usize]) -> bool {
        let Some(way) = self.way(number, route) else { return false };
        let start = earliest(&self.lines, self.flows[number].period, &way.hops, way.range, self.wire.tick);
        start.inspect(|start| self.take(number, *start, &way.hops)).is_some()
    }

    /// Returns the route of a flow, or else a shortest one.
    fn shortest(&mut self, number: usize) -> Option<Vec<usize>> {
        let (flow, lines) = (&self.flows[number], &self.lines);
        self.routes.of(flow, &|link| lines[link].load())
    }

    fn detours(&mut self, number: usize, shortest: &[usize]) -> Vec<Vec<usize>> {
        let (flow, lines) = (&self.flows[number], &self.lines);
        match &flow.route {
            Some(_) => Vec::new(),
            None => self.routes.detours(shortest, flow.to, DETOURS, &|link| lines[link].load()),
        }
    }

    /// Returns a route with its instants, if the deadline allows it. Its links have the fold of the period then.
    fn way(&mut self, number: usize, route: &[usize]) -> Option<Way> {
        let flow = &self.flows[number];
        let (hops, arrived) = hops(self.wire, flow, route);
        let range = range(flow, arrived, self.wire.tick)?;
        hops.iter().for_each(|hop| self.lines[hop.link].fold(flow.period));
        Some(Way { hops, range })
    }

    fn not_found(&mut self, number: usize) -> WireError {
        let flow = &self.flows[number];
        let load = |link: &usize| self.lines[*link].load();
        let route = self.routes.of(flow, &|_| 0.0).unwrap_or_default();
        let fullest = route.iter().max_by(|one, other| load(one).total_cmp(&load(other))).copied().unwrap_or(0);
        let name = |node: usize| self.wire.nodes[node].name.clone();
        let link = &self.wire.links[fullest];
        WireError::NotFound { flow: flow.name.clone(), from: name(link.from), to: name(link.to), load: load(&fullest) }
    }

    /// Places a flow on a planned course, which is free.
    pub fn keep(&mut self, number: usize, course: Course) {
        let flow = &self.flows[number];
        let (start, route): (_, Vec<usize>) = (course.hops[0].1, course.hops.iter().map(|(link, _)| *link).collect());
        let (hops, _) = hops(self.wire, flow, &route);
        self.take(number, start, &hops);
    }

    fn take(&mut self, number: usize, start: Duration, hops: &[Hop]) {
        let every = self.flows[number].period;
        for hop in hops {
            let taken = Taken { flow: number, start: start + hop.since, length: hop.length, every };
            self.lines[hop.link].take(taken);
        }
        let hops = hops.iter().map(|hop| (hop.link, start + hop.since)).collect();
        self.courses[number] = Some(Course { hops });
    }

    /// Places a flow where the flows in the way were ejected least often, and returns those. `None` without a route.
    fn eject_for(&mut self, number: usize) -> Option<BTreeSet<usize>> {
        let every = self.flows[number].period;
        let mut best: Option<(u64, Duration, usize, BTreeSet<usize>)> = None;
        let shortest = self.shortest(number)?;
        let others = self.detours(number, &shortest);
        let routes = std::iter::once(&shortest).chain(&others);
        let ways: Vec<Way> = routes.filter_map(|route| self.way(number, route)).collect();
        for (index, way) in ways.iter().enumerate() {
            let (first, last) = way.range;
            let ticks = ((last - first) / self.wire.tick) as u64 + 1;
            for turn in 0..STARTS {
                let start = first + self.wire.tick * (self.random.bits() % ticks) as i64;
                // Without gaps between frames, less time is lost. So half of the starts follow on another frame.
                let start = match turn % 2 {
                    0 => start,
                    _ => self.behind(way, every, start).filter(|start| *start <= last).unwrap_or(start),
                };
                let in_the_way = |hop: &Hop| self.lines[hop.link].in_the_way(every, start + hop.since, hop.length);
                let others: BTreeSet<usize> = way.hops.iter().flat_map(in_the_way).collect();
                let price = others.iter().map(|other| u64::from(self.ejected[*other]).pow(2) + 1).sum();
                if best.as_ref().is_none_or(|(least, ..)| price < *least) {
                    best = Some((price, start, index, others));
                }
            }
        }
        let (_, start, index, others) = best?;
        for &other in &others {
            self.ejected[other] += 1;
            self.release(other);
        }
        self.take(number, start, &ways[index].hops);
        Some(others)
    }

    /// Returns the first start from an instant on with which the frame follows directly on another one, on some link.
    fn behind(&self, way: &Way, every: Duration, from: Duration) -> Option<Duration> {
        let of_hop = |hop: &Hop| Some(self.lines[hop.link].next_end(every, from + hop.since)? - hop.since);
        way.hops.iter().filter_map(of_hop).min().map(|start| round_up(start, self.wire.tick))
    }

    /// Takes a flow out, if it is placed.
    fn release(&mut self, number: usize) {
        let hops = self.courses[number].take().map(|course| course.hops);
        hops.into_iter().flatten().for_each(|(link, _)| self.lines[link].release(number));
    }
}
