//! The search for phases: one start for each task that repeats in every period, with ejection.
//!
//! Tasks are placed one after the other: short periods first, then in the order of the chains, then long windows
//! first. Each goes to the first free phase after the tasks that it follows. After the first round, a task without
//! chains goes to the gap that it fills best. A task without a free phase ejects the cheapest tasks in its way
//! ([`crate::prices`]), and these are placed again. A task is dear if it takes much time, if it is in a chain, and if it
//! was ejected often. So the search does not turn in circles. A round that gives up is followed by another one with
//! another order, in which the tasks in the way come earlier.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use macrotick_model::{Duration, SplitMix64, SyncWindow};

use crate::demand::Demand;
use crate::exclusive::Resources;
use crate::frozen::Frozen;
use crate::graph::{Edge, Graph};
use crate::occupancy::Occupancy;
use crate::options::Clock;
use crate::place::behind_guard;
use crate::prices::Prices;

/// The price of a task in a chain, compared with another one.
const IN_CHAIN: i64 = 4;
/// The number of ejections from which on a task gets no dearer. It keeps sums of prices small enough.
const DEAREST: i64 = 10_000;

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
    /// The time to keep free before each job of a frozen task.
    pub lead: Duration,
    pub sync: Option<SyncWindow>,
    /// Windows that stay.
    pub frozen: &'a Frozen,
    pub resources: &'a Resources,
    /// The numbers of the CPUs.
    pub cpus: &'a [u32],
    /// The CPUs that each task may use. The first one has room for it.
    pub allowed: &'a [Vec<usize>],
    /// The time that each CPU has left in a cycle when each task is on its first one.
    pub room: &'a [Duration],
    pub cycle: Duration,
    /// The number of rounds.
    pub rounds: usize,
    /// Whether the first round has draws, too.
    pub drawn: bool,
    pub clock: &'a Clock<'a>,
}

/// The way in which a round differs from others.
#[derive(Clone, Copy)]
struct Round {
    /// Whether starts keep off the common grid if possible.
    guarded: bool,
    /// Whether tasks without chains go to the gap that they fill best.
    fits: bool,
    /// Whether the order is drawn.
    drawn: bool,
    /// Whether some tasks go to a drawn gap. Placed tasks then also move up to those that follow them, before tasks of a
    /// longer period are placed.
    scattered: bool,
}

struct State<'a> {
    search: &'a Phases<'a>,
    items: &'a [Item],
    round: Round,
    /// The phase of each item.
    found: Vec<Option<Phase>>,
    /// The CPU on which each item has its time: that of its phase, or else the last one.
    home: Vec<usize>,
    room: Vec<Duration>,
    /// The item of each task.
    of: &'a [Option<usize>],
    /// Those of the CPUs, then those of the resources.
    occupancies: Vec<Occupancy>,
    ejected: &'a mut [u64],
    random: SplitMix64,
}

impl Phases<'_> {
    /// Returns the phase of each item in the order of `items`. If the search gives up, returns the items that were in
    /// the way most often, which are worth to be placed differently.
    pub fn run(&self, items: &[Item], patience: usize, random: &mut SplitMix64) -> Result<Vec<Phase>, Vec<usize>> {
        let mut of = vec![None; self.demands.len()];
        items.iter().enumerate().for_each(|(index, item)| of[item.task] = Some(index));
        let mut ejected = vec![0; items.len()];
        let mut found = Err(Vec::new());
        for number in 0..self.rounds {
            let drawn = self.drawn || number >= 2;
            let scattered = self.drawn && number >= 2 && number % 2 == 0;
            let round = Round { guarded: number == 0, fits: number % 2 == 1, drawn, scattered };
            let mut state = State::new(self, items, round, &of, &mut ejected);
            if round.scattered {
                state.random = SplitMix64::new(random.bits());
            }
            found = state.run(patience, random);
            if found.is_ok() || self.clock.is_over() {
                break;
            }
            ejected.iter_mut().for_each(|ejected| *ejected /= 2);
        }
        found
    }

    fn empty(&self, items: &[Item], cpu: u32) -> Occupancy {
        let mut occupancy = Occupancy::new(items.iter().map(|item| self.demands[item.task].period));
        if let Some(SyncWindow { period, offset, length, .. }) = self.sync {
            occupancy.take(offset, length, period);
        }
        self.frozen.take(&mut occupancy, cpu, self.lead);
        occupancy
    }

    /// Returns the occupancy of a resource by jobs that stay.
    fn empty_resource(&self, items: &[Item], resource: usize) -> Occupancy {
        let with = items.iter().filter(|item| self.resources.of(item.task).contains(&resource));
        let mut occupancy = Occupancy::new(with.map(|item| self.demands[item.task].period));
        for &task in self.resources.tasks(resource) {
            self.frozen.spans(task).for_each(|(start, length, every)| occupancy.take(start, length, every));
        }
        occupancy
    }
}

impl<'a> State<'a> {
    fn new(
        search: &'a Phases<'a>,
        items: &'a [Item],
        round: Round,
        of: &'a [Option<usize>],
        ejected: &'a mut [u64],
    ) -> State<'a> {
        State {
            search,
            items,
            round,
            found: vec![None; items.len()],
            home: items.iter().map(|item| search.allowed[item.task][0]).collect(),
            room: search.room.to_vec(),
            of,
            occupancies: search
                .cpus
                .iter()
                .map(|&cpu| search.empty(items, cpu))
                .chain((0..search.resources.names.len()).map(|resource| search.empty_resource(items, resource)))
                .collect(),
            ejected,
            random: SplitMix64::new(0),
        }
    }

    fn run(mut self, patience: usize, random: &mut SplitMix64) -> Result<Vec<Phase>, Vec<usize>> {
        let mut queue: BTreeSet<(usize, usize)> = self.order(random).into_iter().enumerate().collect();
        let mut rank = vec![0; self.items.len()];
        queue.iter().for_each(|&(position, index)| rank[index] = position);
        let mut ejections = 0;
        let mut longest = Duration::ZERO;
        while let Some((_, index)) = queue.pop_first() {
            if self.round.scattered && self.demand(index).period > longest {
                longest = self.demand(index).period;
                self.move_up();
            }
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
                self.lift(victim);
                queue.insert((rank[victim], victim));
            }
            // An item that ejects others was itself hard to place.
            self.ejected[index] += 1;
            self.put(index, phase);
        }
        Ok(self.found.into_iter().map(|phase| phase.expect("the queue is empty")).collect())
    }

    /// Returns the items in the order of placing.
    fn order(&self, random: &mut SplitMix64) -> Vec<usize> {
        let mut keyed: Vec<_> = (0..self.items.len())
            .map(|index| {
                let item = &self.items[index];
                let demand = &self.search.demands[item.task];
                let exact = item.starts.0 == item.starts.1;
                let trouble = Reverse(self.ejected[index].checked_ilog2());
                let percent = if self.round.drawn { 80 + (random.bits() % 41) as i64 } else { 100 };
                let length = Reverse(item.length * percent);
                (!exact, demand.period, self.search.graph.depth[item.task], trouble, length, item.task, index)
            })
            .collect();
        keyed.sort_unstable();
        keyed.into_iter().map(|(.., index)| index).collect()
    }

    /// Returns the item, then the items that were ejected or refused most often.
    fn obstacles(&self, index: usize) -> Vec<usize> {
        let mut worst: Vec<usize> =
            (0..self.items.len()).filter(|&other| self.ejected[other] > 0 && other != index).collect();
        worst.sort_by_key(|&other| (Reverse(self.ejected[other]), other));
        std::iter::once(index).chain(worst).collect()
    }

    /// Moves each placed item as late as the placed ones behind it allow. Otherwise the gap between a task and the one that
    /// follows it can be too short for others.
    fn move_up(&mut self) {
        let depth = |index: usize| self.search.graph.depth[self.items[index].task];
        let mut order: Vec<(usize, Duration, usize)> =
            (0..self.items.len()).filter_map(|index| Some((depth(index), self.found[index]?.start, index))).collect();
        order.sort_unstable();
        for (.., index) in order.into_iter().rev() {
            // A later phase can meet other jobs with a resource.
            let is_free = !self.search.resources.has(self.items[index].task) && self.behind(index).next().is_some();
            let Some(phase) = self.found[index].filter(|_| is_free) else { continue };
            self.lift(index);
            let start = self.latest(index, phase.cpu, (phase.start, self.range(index).1));
            self.put(index, Phase { start: start.unwrap_or(phase.start), ..phase });
        }
    }

    /// Returns the latest start of a phase in a range on a CPU.
    fn latest(&self, index: usize, cpu: usize, (from, to): (Duration, Duration)) -> Option<Duration> {
        let (item, demand) = (&self.items[index], self.demand(index));
        let (occupancy, grid) = (&self.occupancies[cpu], self.search.macrotick);
        let (mut at, mut latest) = (from, None);
        while at <= to {
            let Some((free, end)) = occupancy.next_free(demand.period, at).filter(|(free, _)| *free <= to) else {
                break;
            };
            let first = free + demand.lead - occupancy.free_before(demand.period, free, demand.lead);
            let last = (end - item.length).min(to);
            let last = last - last % grid;
            latest = if first <= last { Some(last) } else { latest };
            at = end.max(at + grid);
        }
        latest
    }

    fn demand(&self, index: usize) -> &'a Demand {
        &self.search.demands[self.items[index].task]
    }

    fn put(&mut self, index: usize, phase: Phase) {
        let Demand { period, lead, .. } = *self.demand(index);
        self.occupancies[phase.cpu].take(phase.start + period - lead, phase.length + lead, period);
        for occupancy in self.resources_of(index) {
            self.occupancies[occupancy].take(phase.start, phase.takes, period);
        }
        let needed = self.demand(index).per_cycle(self.search.cycle);
        self.room[self.home[index]] += needed;
        self.room[phase.cpu] -= needed;
        self.home[index] = phase.cpu;
        self.found[index] = Some(phase);
    }

    fn lift(&mut self, index: usize) {
        let Demand { period, lead, .. } = *self.demand(index);
        if let Some(phase) = self.found[index].take() {
            self.occupancies[phase.cpu].release(phase.start + period - lead, phase.length + lead, period);
            for occupancy in self.resources_of(index) {
                self.occupancies[occupancy].release(phase.start, phase.takes, period);
            }
        }
    }

    /// Returns the occupancies of the resources of an item.
    fn resources_of(&self, index: usize) -> impl Iterator<Item = usize> + 'a {
        let cpus = self.search.cpus.len();
        self.search.resources.of(self.items[index].task).iter().map(move |resource| cpus + resource)
    }

    /// Returns the first instant from a start on at which all resources of an item are free for its job. `None`
    /// if there is none up to the end of its range.
    fn behind_resources(&self, index: usize, start: Duration, to: Duration) -> Option<Duration> {
        let (item, period) = (&self.items[index], self.demand(index).period);
        let mut at = start;
        // Each turn passes something that has a resource.
        'turn: while at <= to {
            for occupancy in self.resources_of(index) {
                let (free, end) = self.occupancies[occupancy].next_free(period, at)?;
                let fits = free + item.takes <= end || !item.whole && free < end;
                if free > at || !fits {
                    at = if fits { free } else { end };
                    continue 'turn;
                }
            }
            return Some(at);
        }
        None
    }

    /// Returns the CPUs with room for an item.
    fn cpus(&self, index: usize) -> Vec<usize> {
        let needed = self.demand(index).per_cycle(self.search.cycle);
        let fits = |&cpu: &usize| cpu == self.home[index] || self.room[cpu] >= needed;
        self.search.allowed[self.items[index].task].iter().copied().filter(fits).collect()
    }

    /// Returns the earliest and the latest start beside the placed tasks of its chains. The latest one can come first.
    fn range(&self, index: usize) -> (Duration, Duration) {
        let item = &self.items[index];
        let (mut from, mut to) = item.starts;
        for (edge, before) in self.before(index) {
            from = from.max(before.done() + self.shift(edge));
        }
        for (edge, then) in self.behind(index) {
            to = to.min(then.start - item.takes - self.shift(edge));
        }
        (from, to)
    }

    /// Returns the edges into an item from placed ones, and their phases.
    fn before(&self, index: usize) -> impl Iterator<Item = (&'a Edge, Phase)> + '_ {
        let edges = self.search.graph.into(self.items[index].task).iter();
        edges.filter_map(move |edge| Some((edge, self.found[self.of[edge.from]?]?)))
    }

    /// Returns the edges out of an item to placed ones, and their phases.
    fn behind(&self, index: usize) -> impl Iterator<Item = (&'a Edge, Phase)> + '_ {
        let edges = self.search.graph.out(self.items[index].task).iter();
        edges.filter_map(move |edge| Some((edge, self.found[self.of[edge.to]?]?)))
    }

    /// Returns the instant of the first task's job in the window, less that of the second one's.
    fn shift(&self, edge: &Edge) -> Duration {
        let release = |task: usize, lane: i64| self.search.demands[task].period * lane;
        release(edge.from, edge.from_lane) - release(edge.to, edge.to_lane)
    }

    /// Returns a free phase, off the common grid if possible.
    fn free(&mut self, index: usize) -> Option<Phase> {
        let range = self.range(index);
        let cpus = self.cpus(index);
        if self.round.scattered && self.random.bits() % 2 == 0 {
            let drawn = cpus.iter().find_map(|&cpu| self.scattered_on(index, cpu, range));
            if drawn.is_some() {
                return drawn;
            }
        }
        let on = |guarded: bool| cpus.iter().find_map(|&cpu| self.free_on(index, cpu, range, guarded));
        self.round.guarded.then(|| on(true)).flatten().or_else(|| on(false))
    }

    /// Returns the first free phase on a CPU, or the one that leaves least of its gap.
    fn free_on(&self, index: usize, cpu: usize, (from, to): (Duration, Duration), guarded: bool) -> Option<Phase> {
        let (item, demand) = (&self.items[index], self.demand(index));
        let occupancy = &self.occupancies[cpu];
        let fits = self.round.fits && !self.search.graph.has(item.task);
        let mut best: Option<(Duration, Duration)> = None;
        let mut from = from;
        while from <= to {
            let Some((free, end)) = occupancy.next_free(demand.period, from) else { break };
            let start = free + demand.lead - occupancy.free_before(demand.period, free, demand.lead);
            let start = if guarded { behind_guard(start, demand, self.search.macrotick) } else { Some(start) };
            let Some(start) = start.filter(|&start| start <= to) else { break };
            let Some(behind) = self.behind_resources(index, start, to) else { break };
            if behind > start {
                from = behind;
                continue;
            }
            if start + item.length <= end {
                let left = end - free - item.length;
                if best.is_none_or(|(least, _)| left < least) {
                    best = Some((left, start));
                }
                if !fits || left == Duration::ZERO {
                    break;
                }
            }
            from = end.max(start);
        }
        best.map(|(_, start)| self.phase(index, cpu, start))
    }

    /// Returns the first or the last phase in a drawn gap on a CPU. The first gap of all is often too long for a task, and
    /// then leaves too little for another one.
    fn scattered_on(&mut self, index: usize, cpu: usize, (from, to): (Duration, Duration)) -> Option<Phase> {
        let (item, demand) = (&self.items[index], self.demand(index));
        let (occupancy, grid) = (&self.occupancies[cpu], self.search.macrotick);
        let steps = (to - from).as_nanos() / grid.as_nanos() + 1;
        if from > to {
            return None;
        }
        let at = from + grid * (self.random.bits() % steps as u64) as i64;
        let (free, end) = occupancy.next_free(demand.period, at)?;
        let first = free - occupancy.free_before(demand.period, free, free - from);
        let start = first + demand.lead - occupancy.free_before(demand.period, first, demand.lead);
        let last = (end - item.length).min(to);
        let last = last - last % grid;
        let start = if self.random.bits() % 4 == 0 { last.max(start) } else { start };
        let is_free = start <= last && self.behind_resources(index, start, start) == Some(start);
        is_free.then(|| self.phase(index, cpu, start))
    }

    fn phase(&self, index: usize, cpu: usize, start: Duration) -> Phase {
        let Item { length, takes, whole, .. } = self.items[index];
        Phase { cpu, start, length, takes, whole }
    }

    /// Returns the phase with the cheapest conflicts to eject, and these items.
    fn cheapest(&self, index: usize) -> Option<(Phase, Vec<usize>)> {
        let mut best: Option<(i64, Phase)> = None;
        for cpu in self.cpus(index) {
            let Some((price, start)) = self.prices(index, cpu).cheapest() else { continue };
            if best.as_ref().is_none_or(|&(least, _)| price < least) {
                best = Some((price, self.phase(index, cpu, start)));
            }
        }
        best.map(|(_, phase)| (phase, self.conflicts(index, &phase)))
    }

    /// Returns the prices of all starts on a CPU. Tasks in the wrong order are ejected as well as those in the way.
    fn prices(&self, index: usize, cpu: usize) -> Prices {
        let (item, demand) = (&self.items[index], self.demand(index));
        let mut prices = Prices::new(item.starts, self.search.macrotick);
        // No window crosses a multiple of its period, so none crosses the end of the cycle.
        prices.block_every(demand.period - item.length, demand.period, demand.period);
        if let Some(sync) = self.search.sync {
            let step = demand.period.gcd(sync.period);
            prices.block_every(sync.offset - item.length, sync.offset + sync.length + demand.lead, step);
        }
        let frozen = self.search.frozen.on(self.search.cpus[cpu], self.search.lead);
        for (start, length, every) in frozen {
            prices.block_every(start - item.length, start + length + demand.lead, demand.period.gcd(every));
        }
        for resource in self.search.resources.of(item.task) {
            for &task in self.search.resources.tasks(*resource) {
                for (start, length, every) in self.search.frozen.spans(task) {
                    prices.block_every(start - item.takes, start + length, demand.period.gcd(every));
                }
            }
        }
        for (other, phase) in self.found.iter().enumerate() {
            let Some(phase) = phase else { continue };
            let against = self.demand(other);
            let on_cpu =
                (phase.cpu == cpu).then(|| (phase.start - against.lead - item.length, phase.end() + demand.lead));
            let shared = self.search.resources.share(item.task, self.items[other].task);
            let with_resource = shared.then(|| (phase.start - item.takes, phase.done()));
            let ways = [on_cpu, with_resource].into_iter().flatten();
            let way = ways.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)));
            if let Some((after, before)) = way {
                prices.add_every(self.price(other), after, before, demand.period.gcd(against.period));
            }
        }
        let (first, last) = (item.starts.0, item.starts.1 + self.search.macrotick);
        for (edge, before) in self.before(index) {
            prices.add(self.price_of(edge.from), first, before.done() + self.shift(edge));
        }
        for (edge, then) in self.behind(index) {
            let latest = then.start - item.takes - self.shift(edge);
            prices.add(self.price_of(edge.to), latest + self.search.macrotick, last);
        }
        prices
    }

    /// Returns the items in the way of a phase.
    fn conflicts(&self, index: usize, phase: &Phase) -> Vec<usize> {
        let demand = self.demand(index);
        let window = (phase.start - demand.lead, phase.length + demand.lead, demand.period);
        let in_way = |&other: &usize| {
            let Some(found) = self.found[other] else { return false };
            let against = self.demand(other);
            let share = self.search.resources.share(self.items[index].task, self.items[other].task);
            let span = |phase: &Phase, demand: &Demand| (phase.start, phase.takes, demand.period);
            if share && overlap(span(phase, demand), span(&found, against)) {
                return true;
            }
            found.cpu == phase.cpu
                && overlap(window, (found.start - against.lead, found.length + against.lead, against.period))
        };
        let mut conflicts: BTreeSet<usize> = (0..self.items.len()).filter(in_way).collect();
        let late = |edge: &Edge, first: &Phase, then: &Phase| first.done() + self.shift(edge) > then.start;
        let before = self.before(index).filter(|(edge, before)| late(edge, before, phase)).map(|(edge, _)| edge.from);
        let behind = self.behind(index).filter(|(edge, then)| late(edge, phase, then)).map(|(edge, _)| edge.to);
        conflicts.extend(before.chain(behind).filter_map(|task| self.of[task]));
        conflicts.into_iter().collect()
    }

    fn price_of(&self, task: usize) -> i64 {
        self.of[task].map_or(0, |index| self.price(index))
    }

    fn price(&self, index: usize) -> i64 {
        let demand = self.demand(index);
        let share = (i128::from(demand.wcet.as_nanos()) * 10_000 / i128::from(demand.period.as_nanos())) as i64;
        let chained = self.search.graph.has(self.items[index].task);
        let ejected = (self.ejected[index] as i64).min(DEAREST);
        (10 + share) * (1 + ejected * ejected) * if chained { IN_CHAIN } else { 1 }
    }
}

/// Whether two periodic intervals overlap: start, length and period.
fn overlap(one: (Duration, Duration, Duration), other: (Duration, Duration, Duration)) -> bool {
    let step = one.2.gcd(other.2).as_nanos();
    let behind = |from: Duration, to: Duration| (to - from).as_nanos().rem_euclid(step);
    behind(one.0, other.0) < one.1.as_nanos() || behind(other.0, one.0) < other.1.as_nanos()
}
