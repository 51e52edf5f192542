//! The search for phases: one start for each task that repeats in every period, with ejection.
//!
//! Tasks are placed one after the other: short periods first, then in the order of the chains, then long windows
//! first. Each goes to the first free phase after the tasks that it follows. A task without a free phase ejects the
//! cheapest tasks in its way, and these are placed again. A task is dear if it takes much time, if it is in a chain,
//! and if it was ejected often. So the search does not turn in circles.

use std::collections::BTreeSet;

use macrotick_model::{Duration, SplitMix64, SyncWindow};

use crate::demand::Demand;
use crate::graph::{Edge, Graph};
use crate::occupancy::Occupancy;
use crate::options::Clock;
use crate::place::behind_guard;

/// The most starts that are compared on each CPU for an ejection.
const STARTS: usize = 96;
/// The price of a task in a chain, compared with another one.
const IN_CHAIN: u64 = 4;

/// A window to place: the whole job, or its first piece.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Item {
    pub task: usize,
    pub length: Duration,
    /// The earliest and the latest start.
    pub starts: (Duration, Duration),
    /// The time from its start to the end of the job: the length of a whole job, an expectation for a first piece.
    pub takes: Duration,
    /// Whether it is the whole job.
    pub whole: bool,
}

/// A phase of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Phase {
    pub cpu: usize,
    pub start: Duration,
    pub length: Duration,
    /// The time from the start to the end of the job, or an expectation.
    pub takes: Duration,
    pub whole: bool,
}

impl Phase {
    /// Returns the end of the window.
    pub fn end(&self) -> Duration {
        self.start + self.length
    }

    /// Returns the end of the job, as far as it is known.
    fn done(&self) -> Duration {
        self.start + self.takes
    }
}

/// One search.
pub(crate) struct Phases<'a> {
    pub demands: &'a [Demand],
    pub graph: &'a Graph,
    pub macrotick: Duration,
    pub sync: Option<SyncWindow>,
    /// The CPUs that each task may use, the best one first.
    pub allowed: &'a [Vec<usize>],
    pub cpus: usize,
    pub clock: &'a Clock<'a>,
}

struct State<'a> {
    search: &'a Phases<'a>,
    items: &'a [Item],
    /// The phase of each item.
    found: Vec<Option<Phase>>,
    /// The item of each task.
    of: Vec<Option<usize>>,
    occupancies: Vec<Occupancy>,
    ejected: Vec<u64>,
    random: &'a mut SplitMix64,
}

impl Phases<'_> {
    /// Returns the phase of each item in the order of `items`. If the search gives up, returns the items that were in
    /// the way most often, which are worth to be placed differently.
    pub fn run(&self, items: &[Item], patience: usize, random: &mut SplitMix64) -> Result<Vec<Phase>, Vec<usize>> {
        let mut of = vec![None; self.demands.len()];
        items.iter().enumerate().for_each(|(index, item)| of[item.task] = Some(index));
        let periods = || items.iter().map(|item| self.demands[item.task].period);
        let occupancies = (0..self.cpus).map(|_| self.empty(periods())).collect();
        let (found, ejected) = (vec![None; items.len()], vec![0; items.len()]);
        State { search: self, items, found, of, occupancies, ejected, random }.run(patience)
    }

    fn empty(&self, periods: impl Iterator<Item = Duration>) -> Occupancy {
        let mut occupancy = Occupancy::new(periods);
        if let Some(SyncWindow { period, offset, length, .. }) = self.sync {
            occupancy.take(offset, length, period);
        }
        occupancy
    }
}

impl State<'_> {
    fn run(mut self, patience: usize) -> Result<Vec<Phase>, Vec<usize>> {
        let mut queue: BTreeSet<(usize, usize)> = self.order().into_iter().enumerate().collect();
        let mut rank = vec![0; self.items.len()];
        queue.iter().for_each(|&(position, index)| rank[index] = position);
        let mut ejections = 0;
        while let Some((_, index)) = queue.pop_first() {
            if let Some(phase) = self.free(index) {
                self.put(index, phase);
                continue;
            }
            let Some((phase, victims)) =
                self.cheapest(index).filter(|_| ejections < patience && !self.search.clock.is_over())
            else {
                return Err(self.obstacles(index));
            };
            ejections += victims.len();
            for victim in victims {
                self.ejected[victim] += 1;
                self.found[victim] = None;
                queue.insert((rank[victim], victim));
            }
            // An item that ejects others was itself hard to place.
            self.ejected[index] += 1;
            self.rebuild();
            self.put(index, phase);
        }
        Ok(self.found.into_iter().map(|phase| phase.expect("the queue is empty")).collect())
    }

    /// Returns the items in the order of placing.
    fn order(&mut self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.items.len()).collect();
        let key = |index: usize| {
            let item = &self.items[index];
            let demand = &self.search.demands[item.task];
            let exact = item.starts.0 == item.starts.1;
            (!exact, demand.period, self.search.graph.depth[item.task], std::cmp::Reverse(item.length), item.task)
        };
        order.sort_by_key(|&index| key(index));
        order
    }

    /// Returns the item, with itself as the last one, that were ejected or refused most often.
    fn obstacles(&self, index: usize) -> Vec<usize> {
        let mut worst: Vec<usize> =
            (0..self.items.len()).filter(|&other| self.ejected[other] > 0 && other != index).collect();
        worst.sort_by_key(|&other| (std::cmp::Reverse(self.ejected[other]), other));
        std::iter::once(index).chain(worst).collect()
    }

    fn demand(&self, index: usize) -> &Demand {
        &self.search.demands[self.items[index].task]
    }

    fn put(&mut self, index: usize, phase: Phase) {
        let demand = &self.search.demands[self.items[index].task];
        let (period, lead) = (demand.period, demand.lead);
        self.occupancies[phase.cpu].take(phase.start + period - lead, phase.length + lead, period);
        self.found[index] = Some(phase);
    }

    fn rebuild(&mut self) {
        let periods = || self.items.iter().map(|item| self.search.demands[item.task].period);
        self.occupancies = (0..self.search.cpus).map(|_| self.search.empty(periods())).collect();
        for index in 0..self.items.len() {
            if let Some(phase) = self.found[index] {
                self.put(index, phase);
            }
        }
    }

    /// Returns the earliest and the latest start beside the placed tasks of its chains. `None` if the latest one comes
    /// first.
    fn range(&self, index: usize) -> (Duration, Duration) {
        let item = &self.items[index];
        let (mut from, mut to) = item.starts;
        let phase = |task: usize| self.of[task].and_then(|other| self.found[other]);
        for edge in self.search.graph.into(item.task) {
            if let Some(before) = phase(edge.from) {
                from = from.max(before.done() + self.shift(edge));
            }
        }
        for edge in self.search.graph.out(item.task) {
            if let Some(then) = phase(edge.to) {
                to = to.min(then.start - item.takes - self.shift(edge));
            }
        }
        (from, to)
    }

    /// Returns the instant of the first task's job in the window, less that of the second one's.
    fn shift(&self, edge: &Edge) -> Duration {
        let release = |task: usize, lane: i64| self.search.demands[task].period * lane;
        release(edge.from, edge.from_lane) - release(edge.to, edge.to_lane)
    }

    /// Returns the first free phase, off the common grid if possible.
    fn free(&self, index: usize) -> Option<Phase> {
        let (from, to) = self.range(index);
        let cpus = &self.search.allowed[self.items[index].task];
        let on = |guarded: bool| cpus.iter().find_map(|&cpu| self.free_on(index, cpu, (from, to), guarded));
        on(true).or_else(|| on(false))
    }

    fn free_on(&self, index: usize, cpu: usize, (from, to): (Duration, Duration), guarded: bool) -> Option<Phase> {
        let (item, demand) = (&self.items[index], self.demand(index));
        let occupancy = &self.occupancies[cpu];
        let mut from = from;
        while from <= to {
            let (free, end) = occupancy.next_free(demand.period, from)?;
            let start = free + demand.lead - occupancy.free_before(demand.period, free, demand.lead);
            let start = if guarded { behind_guard(start, demand, self.search.macrotick)? } else { start };
            if start > to {
                return None;
            }
            if start + item.length <= end {
                return Some(Phase { cpu, start, length: item.length, takes: item.takes, whole: item.whole });
            }
            from = end.max(start);
        }
        None
    }

    /// Returns the phase with the cheapest conflicts to eject, and these items.
    fn cheapest(&mut self, index: usize) -> Option<(Phase, Vec<usize>)> {
        let item = self.items[index];
        // The chain does not bind an ejection: tasks in the wrong order are ejected as well.
        let (from, to) = (self.range(index).0.min(item.starts.1), item.starts.1);
        let mut best: Option<(u64, Phase, Vec<usize>)> = None;
        for &cpu in &self.search.allowed[item.task] {
            for start in self.starts(index, cpu, from, to) {
                let phase = Phase { cpu, start, length: item.length, takes: item.takes, whole: item.whole };
                let Some(victims) = self.conflicts(index, &phase) else { continue };
                let price = victims.iter().map(|&victim| self.price(victim)).sum();
                if best.as_ref().is_none_or(|(least, ..)| price < *least) {
                    best = Some((price, phase, victims));
                }
            }
        }
        best.map(|(_, phase, victims)| (phase, victims))
    }

    /// Returns starts to compare: the first one, and those directly behind or before other windows.
    fn starts(&mut self, index: usize, cpu: usize, from: Duration, to: Duration) -> Vec<Duration> {
        let (period, lead, length) = (self.demand(index).period, self.demand(index).lead, self.items[index].length);
        let mut starts = vec![from, to];
        for (other, phase) in self.found.iter().enumerate() {
            let Some(phase) = phase.filter(|phase| phase.cpu == cpu && other != index) else { continue };
            let step = period.gcd(self.demand(other).period);
            for instant in [phase.end() + lead, phase.start - self.demand(other).lead - length] {
                // The first image in the range. Its other images conflict with the same window.
                let first = from + Duration::from_nanos((instant - from).as_nanos().rem_euclid(step.as_nanos()));
                if first <= to {
                    starts.push(first);
                }
            }
        }
        starts.sort_unstable();
        starts.dedup();
        while starts.len() > STARTS {
            let drop = (self.random.bits() % starts.len() as u64) as usize;
            starts.swap_remove(drop);
        }
        starts
    }

    /// Returns the items in the way of a phase; `None` if a sync window is.
    fn conflicts(&self, index: usize, phase: &Phase) -> Option<Vec<usize>> {
        let demand = self.demand(index);
        let window = (phase.start - demand.lead, phase.length + demand.lead, demand.period);
        if self.search.sync.is_some_and(|sync| overlap(window, (sync.offset, sync.length, sync.period))) {
            return None;
        }
        let in_way = |other: &usize| {
            let Some(found) = self.found[*other].filter(|_| *other != index) else { return false };
            let against = self.demand(*other);
            let theirs = (found.start - against.lead, found.length + against.lead, against.period);
            found.cpu == phase.cpu && overlap(window, theirs) || self.wrong_order(index, phase, *other, &found)
        };
        Some((0..self.items.len()).filter(in_way).collect())
    }

    fn wrong_order(&self, index: usize, phase: &Phase, other: usize, found: &Phase) -> bool {
        let (task, against) = (self.items[index].task, self.items[other].task);
        let late = |edge: &Edge, first: &Phase, then: &Phase| first.done() + self.shift(edge) > then.start;
        self.search.graph.out(task).iter().any(|edge| edge.to == against && late(edge, phase, found))
            || self.search.graph.into(task).iter().any(|edge| edge.from == against && late(edge, found, phase))
    }

    fn price(&self, index: usize) -> u64 {
        let demand = self.demand(index);
        let share = (i128::from(demand.wcet.as_nanos()) * 10_000 / i128::from(demand.period.as_nanos())) as u64;
        let graph = self.search.graph;
        let chained = graph.has(self.items[index].task);
        (10 + share) * (1 + self.ejected[index] * self.ejected[index]) * if chained { IN_CHAIN } else { 1 }
    }
}

/// Whether two periodic intervals overlap: start, length and period.
fn overlap(one: (Duration, Duration, Duration), other: (Duration, Duration, Duration)) -> bool {
    let step = one.2.gcd(other.2).as_nanos();
    let behind = |from: Duration, to: Duration| (to - from).as_nanos().rem_euclid(step);
    behind(one.0, other.0) < one.1.as_nanos() || behind(other.0, one.0) < other.1.as_nanos()
}
