//! Insertion of tasks into a table, with ejection: as few windows as possible move.
//!
//! The table consists of units. A unit is one job, or all jobs of a task that start on one phase. A new unit goes where
//! time is free. If there is none, it ejects the cheapest units in its way ([`crate::prices`]), and these are inserted
//! again. A unit is dear if it has many windows, if it is where it was in the former plan, and if it was ejected often.
//!
//! Tasks of chains and flows, and tasks on several CPUs, are not ejected. Bounds of chains, budgets and reservations
//! are only checked at the end.

mod board;
mod units;

use std::cmp::Reverse;
use std::collections::BTreeSet;

use macrotick_model::{Duration, SplitMix64};

use crate::assign::capacity;
use crate::budget;
use crate::chains;
use crate::cut::{Cut, Missing};
use crate::demand::{round_up, Demand};
use crate::folded::Problem;
use crate::options::Clock;
use crate::place::{behind_guard, GUARD};
use crate::prices::Prices;
use crate::room::beside_windows;
use crate::table::{self, Piece};
use board::Board;
use units::{Unit, Units};

pub(crate) use units::Window;

/// The ejections for each unit that is inserted, and those for all together.
const PATIENCE: usize = 40;
const MORE_PATIENCE: usize = 1000;
/// The least price of a start with something in its way.
const OCCUPIED: i64 = 2;
/// The number of ejections from which on a unit gets no dearer.
const MOST_EJECTED: i64 = 1000;

struct Insertion<'a> {
    problem: &'a Problem<'a>,
    units: Units,
    boards: Vec<Board>,
    /// The time that windows and leads take on each CPU.
    load: Vec<Duration>,
    capacity: Duration,
    manner: Manner,
    ejections: usize,
    /// The number of former windows that are not where they were.
    away: i64,
}

/// The way in which an insertion differs from others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner {
    /// The price of a unit where it was in the former plan, compared with another one.
    loyalty: i64,
    /// The seed of the weights of units. Zero: all phases have the same. Jobs would then eject each other in turn.
    seed: u64,
}

impl Manner {
    pub fn of(number: u64) -> Manner {
        Manner { loyalty: [128, 16, 1024][(number % 3) as usize], seed: number }
    }

    fn weight(self, unit: usize, is_job: bool) -> i64 {
        match self.seed {
            0 if !is_job => 1,
            seed => 1 + (SplitMix64::new(seed << 32 ^ unit as u64).bits() % 8) as i64,
        }
    }
}

/// A table with all tasks.
pub(crate) struct Inserted {
    /// The pieces of each CPU.
    pub pieces: Vec<Vec<Piece>>,
    /// The tasks with other windows than before.
    pub moved: BTreeSet<usize>,
    /// The number of these windows.
    pub windows: i64,
    ejections: usize,
}

/// Inserts the tasks of a problem that have no frozen windows. Frozen windows move if they must, except those of tasks
/// that are `fixed`. `None` if the insertion gives up. It does when it has hardly a chance to be better than the `best` one
/// so far.
pub(crate) fn insert(
    problem: &Problem,
    fixed: &BTreeSet<usize>,
    manner: Manner,
    best: Option<&Inserted>,
    clock: &Clock,
) -> Option<Inserted> {
    let mut insertion = Insertion::new(problem, fixed, manner);
    // The order of two tasks without windows is unknown.
    let graph = &problem.graph.edges;
    if graph.iter().any(|edge| !problem.frozen.has(edge.from) && !problem.frozen.has(edge.to)) {
        return None;
    }
    let mut order: Vec<usize> = (0..problem.demands.len()).filter(|&task| !problem.frozen.has(task)).collect();
    order.sort_by_key(|&task| {
        let demand = &problem.demands[task];
        (demand.jitter.is_none(), demand.period, Reverse(demand.wcet), task)
    });
    let mut waiting = Vec::new();
    for task in order {
        insertion.begin(task, &mut waiting)?;
    }
    insertion.insert_all(waiting, best, clock)?;
    let pieces = insertion.finished()?;
    let moved = || insertion.units.all.iter().filter(|unit| !unit.home.is_empty() && unit.windows != unit.home);
    let windows = moved().map(|unit| unit.windows.len() as i64 * (problem.cycle / unit.every)).sum();
    let moved = moved().map(|unit| unit.task).collect();
    Some(Inserted { pieces, moved, windows, ejections: insertion.ejections })
}

impl<'a> Insertion<'a> {
    fn new(problem: &'a Problem<'a>, fixed: &BTreeSet<usize>, manner: Manner) -> Insertion<'a> {
        let mut units = Units::of(problem, fixed);
        let mut boards: Vec<Board> = problem.system.cpus.iter().map(|_| Board::new(problem.cycle)).collect();
        for (index, unit) in units.all.iter().enumerate() {
            unit.each(problem.cycle, &mut |cpu, start, length| boards[cpu].put(start, length, index));
        }
        if let Some(sync) = problem.system.sync() {
            for (cpu, board) in boards.iter_mut().enumerate() {
                let index = units.add_sync(cpu, &sync);
                sync.starts(problem.cycle).for_each(|start| board.put(start, sync.length, index));
            }
        }
        let load = problem.frozen.time(&problem.demands);
        let beside = beside_windows(problem.system, problem.cycle);
        let load = load.into_iter().zip(beside).map(|(load, beside)| load + beside).collect();
        let capacity = capacity(problem.system, problem.cycle);
        Insertion { problem, units, boards, load, capacity, manner, ejections: 0, away: 0 }
    }

    fn demand(&self, unit: usize) -> &'a Demand {
        &self.problem.demands[self.units.all[unit].task]
    }

    /// Begins with a task: it gets a phase if one is free, or else waits with its phase or its jobs for the others.
    fn begin(&mut self, task: usize, waiting: &mut Vec<usize>) -> Option<()> {
        let demand = &self.problem.demands[task];
        let needed = demand.per_cycle(self.problem.cycle);
        let cpus = &self.problem.system.cpus;
        let room = |&cpu: &usize| self.load[cpu] + needed <= self.capacity;
        let mut allowed: Vec<usize> = demand.places(cpus).filter(room).collect();
        allowed.sort_by_key(|&cpu| (self.load[cpu], cpu));
        let emptiest = *allowed.first()?;
        let phase = self.units.add(Unit::phase(self.problem, task, emptiest));
        for cpu in allowed {
            self.units.all[phase].cpu = cpu;
            if let Some(windows) = self.free(phase) {
                self.load[cpu] += needed;
                self.put(phase, windows);
                return Some(());
            }
        }
        self.load[emptiest] += needed;
        self.units.all[phase].cpu = emptiest;
        if demand.jitter.is_some() {
            waiting.push(phase);
        } else {
            let jobs = Unit::jobs(self.problem, task, emptiest);
            waiting.extend(jobs.into_iter().map(|job| self.units.add(job)));
        }
        Some(())
    }

    /// Inserts units, and those that they eject.
    fn insert_all(&mut self, waiting: Vec<usize>, best: Option<&Inserted>, clock: &Clock) -> Option<()> {
        let patience = best.map_or(PATIENCE * waiting.len() + MORE_PATIENCE, |best| best.ejections);
        // Some windows come back to their place at the end.
        let most = best.map_or(i64::MAX, |best| best.windows + best.windows / 2);
        let mut queue: BTreeSet<_> = waiting.into_iter().map(|unit| self.key(unit)).collect();
        while let Some((.., unit)) = queue.pop_first() {
            let free = self.home(unit).or_else(|| self.free(unit));
            if let Some(windows) = free {
                self.put(unit, windows);
                continue;
            }
            if self.ejections >= patience || self.away > most || clock.is_over() {
                return None;
            }
            let start = self.prices(unit).cheapest()?.1;
            let windows = vec![(start, self.demand(unit).wcet)];
            for victim in self.in_the_way(unit, start) {
                self.ejections += 1;
                self.lift(victim);
                queue.insert(self.key(victim));
            }
            // A unit that ejects others was itself hard to insert.
            self.units.all[unit].ejected += 1;
            self.put(unit, windows);
        }
        Some(())
    }

    /// Returns the place of a unit in the order of insertion: phases before jobs, and short periods first.
    fn key(&self, unit: usize) -> (bool, Duration, Duration, usize) {
        let Unit { every, starts, .. } = self.units.all[unit];
        (every == self.problem.cycle, every, starts.0, unit)
    }

    fn put(&mut self, unit: usize, windows: Vec<(Duration, Duration)>) {
        self.units.all[unit].windows = windows;
        self.away -= self.at_home(unit);
        let Insertion { units, boards, problem, .. } = self;
        units.all[unit].each(problem.cycle, &mut |cpu, start, length| boards[cpu].put(start, length, unit));
    }

    fn lift(&mut self, unit: usize) {
        self.away += self.at_home(unit);
        let Insertion { units, boards, problem, .. } = self;
        units.all[unit].each(problem.cycle, &mut |cpu, start, _| boards[cpu].remove(start));
        let lifted = &mut units.all[unit];
        (lifted.windows, lifted.is_home) = (Vec::new(), false);
        lifted.ejected += 1;
    }

    /// Returns the number of windows that are those of the former plan.
    fn at_home(&self, unit: usize) -> i64 {
        let Unit { ref windows, ref home, every, .. } = self.units.all[unit];
        let count = if windows == home { home.len() } else { 0 };
        count as i64 * (self.problem.cycle / every)
    }

    /// Returns the windows of the former plan, if they are free.
    fn home(&self, unit: usize) -> Option<Vec<(Duration, Duration)>> {
        let Unit { ref home, cpu, every, lead, .. } = self.units.all[unit];
        let turns = 0..self.problem.cycle / every;
        let is_free = |turn: i64, at: usize, (start, length): (Duration, Duration)| {
            let lead = if at == 0 { lead } else { Duration::ZERO };
            self.boards[cpu].meeting(start + every * turn - lead, length + lead).next().is_none()
        };
        let all_free =
            || turns.clone().all(|turn| home.iter().enumerate().all(|(at, &window)| is_free(turn, at, window)));
        (!home.is_empty() && all_free()).then(|| home.clone())
    }

    /// Returns free windows: one if possible, or else several if it is a job.
    fn free(&self, unit: usize) -> Option<Vec<(Duration, Duration)>> {
        let demand = self.demand(unit);
        if self.is_job(unit) {
            return self.whole(unit, true).or_else(|| self.whole(unit, false)).or_else(|| self.in_pieces(unit));
        }
        let (_, start) = self.prices(unit).cheapest().filter(|&(price, _)| price < OCCUPIED)?;
        Some(vec![(start, demand.wcet)])
    }

    fn is_job(&self, unit: usize) -> bool {
        self.units.all[unit].every == self.problem.cycle
    }

    /// Returns one free window of a job, off the common grid if wanted.
    fn whole(&self, unit: usize, guarded: bool) -> Option<Vec<(Duration, Duration)>> {
        let demand = self.demand(unit);
        let Unit { cpu, starts: (first, last), lead, .. } = self.units.all[unit];
        let grid = self.problem.system.macrotick;
        let mut from = first - lead;
        loop {
            let (free, end) = self.boards[cpu].free(from)?;
            let start = round_up(free + lead, grid);
            let start = if guarded { behind_guard(start, demand, grid)? } else { start };
            if start > last {
                return None;
            }
            let is_cut = !demand.preemptible && start % self.problem.cycle + demand.wcet > self.problem.cycle;
            if !is_cut && start + demand.wcet <= end.min(self.limit(unit)) {
                return Some(vec![(start, demand.wcet)]);
            }
            // A window over the end of the cycle is cut in two.
            from = if is_cut { end.min(self.problem.cycle * (start / self.problem.cycle + 1)) } else { end };
        }
    }

    /// Returns the instant by which the windows of a job must end.
    fn limit(&self, unit: usize) -> Duration {
        let Unit { release, until, .. } = self.units.all[unit];
        until.min(release + self.demand(unit).deadline)
    }

    /// Returns free time of a job in pieces.
    fn in_pieces(&self, unit: usize) -> Option<Vec<(Duration, Duration)>> {
        let demand = self.demand(unit);
        if !demand.preemptible {
            return None;
        }
        Cut::all(self.problem.system.macrotick).find_map(|cut| self.pieces(unit, demand, cut))
    }

    fn pieces(&self, unit: usize, demand: &Demand, cut: Cut) -> Option<Vec<(Duration, Duration)>> {
        let Unit { cpu, starts: (first, last), lead, .. } = self.units.all[unit];
        let limit = self.limit(unit);
        let (mut windows, mut time, mut from) = (Vec::new(), demand.needed, first - lead);
        loop {
            let (free, end) = self.boards[cpu].free(from)?;
            let end = end.min(limit);
            let start = if windows.is_empty() { free + lead } else { free };
            let start = round_up(start, self.problem.system.macrotick);
            if free >= limit || (windows.is_empty() && start > last) {
                return None;
            }
            from = end;
            let missing = Missing::of(demand, time, !windows.is_empty());
            if start >= end || end - start < cut.least(demand, missing) {
                continue;
            }
            let needed = cut.completing(missing);
            let room = (end - start) - (end - start) % self.problem.system.macrotick;
            let length = needed.min(room);
            if length < cut.least(demand, missing) {
                continue;
            }
            windows.push((start, length));
            if length == needed {
                return Some(windows);
            }
            time = missing.behind(length);
        }
    }

    /// Returns the prices of all starts of a unit in one window. Below [`OCCUPIED`], nothing is in the way.
    fn prices(&self, unit: usize) -> Prices {
        let Unit { cpu, starts: (first, last), every, lead, until, .. } = self.units.all[unit];
        let (demand, grid) = (self.demand(unit), self.problem.system.macrotick);
        let last =
            if self.is_job(unit) { last.min(self.limit(unit) - demand.wcet) } else { last.min(until - demand.wcet) };
        let mut prices = Prices::new((first, last.max(first)), grid);
        if last < first {
            prices.block_every(first - grid, first + grid, every);
            return prices;
        }
        if !demand.preemptible || (!self.is_job(unit) && demand.offset.is_none()) {
            prices.block_every(every - demand.wcet, every, every);
        }
        if self.is_job(unit) {
            let range = (last - first + demand.wcet + lead).min(every);
            let near = self.boards[cpu].meeting(first - lead, range);
            near.for_each(|taken| self.price(&mut prices, unit, taken.unit, (taken.start, taken.end), every));
            return prices;
        }
        // At this price, a start on the common grid is worse than another free one.
        if every.is_multiple_of(demand.common_grid) {
            prices.add_every(1, Duration::ZERO - grid, round_up(GUARD + lead, grid), demand.common_grid);
        }
        for (other, at) in self.units.all.iter().enumerate().filter(|(_, at)| at.cpu == cpu || !at.cpus.is_empty()) {
            // The cycle is a multiple of each period.
            let step = if self.is_job(other) { every } else { every.gcd(at.every) };
            at.windows.iter().enumerate().filter(|(index, _)| at.cpu_of(*index) == cpu).for_each(
                |(index, &(start, length))| {
                    let lead = if index == 0 { at.lead } else { Duration::ZERO };
                    self.price(&mut prices, unit, other, (start - lead, start + length), step);
                },
            );
        }
        prices
    }

    /// Adds the price of the starts with which a window meets an interval of another unit.
    fn price(&self, prices: &mut Prices, unit: usize, other: usize, taken: (Duration, Duration), step: Duration) {
        let Unit { is_movable, is_home, ejected, every, .. } = self.units.all[other];
        let (after, before) = (taken.0 - self.demand(unit).wcet, taken.1 + self.units.all[unit].lead);
        if is_movable {
            let ejected = (ejected as i64).min(MOST_EJECTED);
            let windows = self.problem.cycle / every;
            let price = OCCUPIED
                * windows
                * self.manner.weight(other, self.is_job(other))
                * (1 + ejected * ejected)
                * if is_home { self.manner.loyalty } else { 1 };
            prices.add_every(price, after, before, step);
        } else {
            prices.block_every(after, before, step);
        }
    }

    /// Returns the units in the way of a window.
    fn in_the_way(&self, unit: usize, start: Duration) -> BTreeSet<usize> {
        let Unit { cpu, every, lead, .. } = self.units.all[unit];
        let length = self.demand(unit).wcet + lead;
        let turns = 0..self.problem.cycle / every;
        turns
            .flat_map(|turn| self.boards[cpu].meeting(start + every * turn - lead, length))
            .map(|taken| taken.unit)
            .collect()
    }

    /// Returns the pieces, if they keep everything that is not a rule of a single window.
    fn finished(&self) -> Option<Vec<Vec<Piece>>> {
        let mut pieces = vec![Vec::new(); self.boards.len()];
        for unit in &self.units.all {
            self.add_pieces(unit, &mut pieces);
        }
        let pieces: Vec<Vec<Piece>> = pieces.into_iter().map(table::joined).collect();
        let problem = self.problem;
        let fits = |pieces: &Vec<Piece>| problem.time_of(pieces.iter()) <= self.capacity;
        let chains = chains::measure(&problem.system.chains, &problem.paths, &pieces, problem.cycle);
        let is_kept = pieces.iter().all(fits)
            && chains.iter().all(chains::Reached::kept)
            && budget::leave_enough(problem.system, problem.cycle, &pieces)
            && problem.resources.clash(&pieces, problem.cycle).is_none();
        is_kept.then_some(pieces)
    }

    fn add_pieces(&self, unit: &Unit, pieces: &mut [Vec<Piece>]) {
        let cycle = self.problem.cycle;
        let last = unit.windows.len().saturating_sub(1);
        let Some(task) = (!unit.is_sync()).then_some(unit.task) else { return };
        for turn in 0..cycle / unit.every {
            for (index, &(start, length)) in unit.windows.iter().enumerate() {
                let start = start + unit.every * turn;
                let start = start - cycle * start.as_nanos().div_euclid(cycle.as_nanos());
                let here = length.min(cycle - start);
                let piece = |start, length, activate, deadline| {
                    self.problem.flagged(Piece { start, length, task, activate, deadline })
                };
                let cpu = unit.cpu_of(index);
                pieces[cpu].push(piece(start, here, index == 0, index == last && here == length));
                if here < length {
                    pieces[cpu].push(piece(Duration::ZERO, length - here, false, index == last));
                }
            }
        }
    }
}
