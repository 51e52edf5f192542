//! The solver `folded`.
//!
//! It assigns tasks to CPUs ([`crate::assign`]). Tasks that must keep a phase are placed one after the other, with the
//! same windows in every period ([`crate::place`]). The others are filled into the free time ([`crate::edf`]).
//!
//! If this fails, the solver changes the draft:
//!
//! * A task that misses its deadline beside placed tasks is placed itself, before the slower ones.
//! * A task that cannot be placed is placed earlier, then moved to another CPU.
//!
//! Tasks of a chain are placed too, each after its predecessor. If a bound is exceeded, the solver tries other orders
//! and phases ([`Strategy`]).
//!
//! Pools get the free time of their CPU, in as many windows as necessary. If tasks that are filled in leave a period
//! too little, both are filled in together. A pool that still has too little is placed like a task. Windows of pools
//! have no flags.
//!
//! Here, a jitter bound is planned as zero: the starts of a placed task do not vary. If there is no table, a task that
//! may migrate is split over several CPUs ([`crate::split`]). Then the search follows ([`crate::search`]), which plans
//! jitter bounds as they are. For a system with chains, with `after` or without preemption, its first trial comes before
//! everything else.
//!
//! Sync windows are taken before anything else, on every CPU, and so are windows that must stay ([`crate::frozen`]).
//!
//! Before each start, the CPU is free for the lead. For placed tasks, the lead is taken together with the first window;
//! for the others, the simulation idles. All instants remain those of windows. Pools have no lead.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use macrotick_model::{CpuTable, Duration, SyncWindow, System};

use crate::assign::{capacity, Assignment};
use crate::budget;
use crate::chains::{self, Reached};
use crate::cut::Cut;
use crate::demand::{demands, lead, quantum, round_up, Demand};
use crate::draft::{Draft, Failure, Layout};
use crate::edf::jobs::Jobs;
use crate::edf::{Filling, Gap};
use crate::error::{Kind, PlanError};
use crate::exclusive::{Held, Resources};
use crate::frozen::{Frozen, Windows};
use crate::graph::Graph;
use crate::occupancy::Occupancy;
use crate::options::Clock;
use crate::pieces::{self, Place, SHORTEST_PIECE};
use crate::place::{Part, Search};
use crate::refute;
use crate::split::Splitting;
use crate::table::{self, Piece};

/// The largest number of tasks for which two ways to plan chains are compared.
const FEW: usize = 60;
/// The number of phases to try for the first task of a chain: it moves by eighths of its period.
const TURNS: i64 = 8;

/// The treatment of tasks in chains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// A chain is placed as a unit, at the turn of its slowest task. Faster tasks are placed before, because a long
    /// window of a slow task may leave no phase for them.
    Units,
    /// A chain is placed as a unit, at the turn of its fastest task.
    EarlyUnits,
    /// Chains are placed before all other tasks.
    ChainsFirst,
    /// Every task is placed at its own turn.
    ByPeriod,
    /// Tasks of chains are left to EDF, as if there were no chain.
    Unplaced,
}

/// One way to draft a table.
#[derive(Clone, Copy, Debug)]
struct Strategy {
    order: Order,
    turn: i64,
}

pub(crate) struct Problem<'a> {
    pub system: &'a System,
    pub cycle: Duration,
    /// The time to keep free before each job. The demand of each task also has it.
    pub lead: Duration,
    pub demands: Vec<Demand>,
    /// The tasks of each chain, by index.
    pub paths: Vec<Vec<usize>>,
    /// The position in a chain or among flows, which decides between equal deadlines under EDF.
    pub ranks: Vec<usize>,
    /// Whether each task is in a chain.
    pub chained: Vec<bool>,
    /// The order of the jobs of chains and flows, and of `after`.
    pub graph: Graph,
    /// The order of `after` alone.
    pub plain: Graph,
    pub splitting: Splitting,
    pub frozen: Frozen,
    pub resources: Resources,
}

/// Returns the tables, in which the frozen windows are as they were.
pub(crate) fn tables(
    system: &System,
    cycle: Duration,
    clock: &Clock,
    frozen: &Windows,
) -> Result<Vec<CpuTable>, PlanError> {
    let problem = Problem::new(system, cycle, frozen)?;
    refute::refute(&problem)?;
    // The search gets a third of the time. It can succeed where there is some free time.
    if let Some(packed) = problem.packed(&clock.without_part(3)).and_then(|packed| problem.exclusive(packed).ok()) {
        return problem.finished(&packed);
    }
    let ordered = problem.ordered(clock);
    // Drafts place windows one after the other, as the search does, but eject nothing.
    let drafts = !problem.is_rigid() && problem.plain.edges.is_empty() && problem.resources.is_empty();
    let drafted = match drafts && (ordered.is_none() || problem.demands.len() <= FEW) {
        true => problem.drafts().map_err(Some),
        false => Err(None),
    };
    if let Some(ordered) = ordered {
        let drafted = drafted.ok().filter(|drafted| problem.latency(drafted) < problem.latency(&ordered));
        return problem.finished(&drafted.unwrap_or(ordered));
    }
    let reason = match drafted {
        Ok(drafted) => return problem.finished(&drafted),
        Err(Some(whole)) if problem.demands.iter().any(|demand| demand.migrate) => match problem.split(whole) {
            Ok(tables) => return Ok(tables),
            Err(split) => Some(split),
        },
        Err(reason) => reason,
    };
    let problem = Problem::new(system, cycle, frozen)?;
    if let Some(found) = problem.fewest(&clock.part(3)) {
        return problem.finished(&found?);
    }
    problem.finished(&problem.find(clock, reason)?)
}

impl<'a> Problem<'a> {
    /// Returns the tables, with the tasks split that `splitting` names.
    pub(crate) fn tables(&self) -> Result<Vec<CpuTable>, PlanError> {
        self.finished(&self.drafts()?)
    }

    pub(crate) fn finished(&self, pieces: &[Vec<Piece>]) -> Result<Vec<CpuTable>, PlanError> {
        table::tables(&self.system.cpus, pieces, &self.demands)
    }

    /// Returns the sum of the times of all chains, each in thousandths of the periods of its tasks. It does not depend
    /// on the bounds.
    pub(crate) fn latency(&self, pieces: &[Vec<Piece>]) -> i128 {
        let reached = chains::measure(&self.system.chains, &self.paths, pieces, self.cycle);
        reached.iter().map(|reached| self.part(reached)).sum()
    }

    /// Returns the time of a chain in thousandths of the periods of its tasks.
    pub(crate) fn part(&self, reached: &Reached) -> i128 {
        let periods: Duration = self.paths[reached.chain].iter().map(|&task| self.demands[task].period).sum();
        i128::from(reached.reached.as_nanos()) * 1000 / i128::from(periods.as_nanos())
    }

    /// Returns the pieces of the first draft that keeps everything.
    fn drafts(&self) -> Result<Vec<Vec<Piece>>, PlanError> {
        let chains = &self.system.chains;
        let (mut best, mut failure): (Option<Reached>, Option<PlanError>) = (None, None);
        for strategy in self.strategies() {
            // Another phase of a chain changes its times. It does not help if there is no table at all.
            if strategy.turn > 0 && best.is_none() {
                break;
            }
            let pieces = match self.solve(strategy).and_then(|pieces| self.exclusive(pieces)) {
                Ok(pieces) => pieces,
                Err(error) => {
                    failure.get_or_insert(error);
                    continue;
                }
            };
            let reached = chains::measure(chains, &self.paths, &pieces, self.cycle);
            let worst = reached.into_iter().filter(|reached| !reached.kept()).max_by_key(Reached::excess);
            let Some(worst) = worst else { return Ok(pieces) };
            if best.is_none_or(|best| worst.excess() < best.excess()) {
                best = Some(worst);
            }
        }
        Err(match (best, failure) {
            (Some(best), _) => self.exceeded(best),
            (None, Some(error)) => error,
            (None, None) => unreachable!("there is always a strategy"),
        })
    }

    /// Returns the error of a chain that exceeds its bound.
    pub(crate) fn exceeded(&self, reached: Reached) -> PlanError {
        let Reached { chain, kind, bound, reached } = reached;
        PlanError::Chain { chain: self.system.chains[chain].name.clone(), kind, bound, reached }
    }

    pub(crate) fn new(system: &'a System, cycle: Duration, frozen: &Windows) -> Result<Problem<'a>, PlanError> {
        let demands = demands(system)?;
        let names: BTreeMap<&str, usize> = system.windowed().map(|task| task.name.as_str()).zip(0..).collect();
        let index = |name: &String| *names.get(name.as_str()).expect("a validated chain names tasks with windows");
        let paths: Vec<Vec<usize>> = system.chains.iter().map(|chain| chain.path.iter().map(index).collect()).collect();
        let mut ranks = vec![usize::MAX; demands.len()];
        for path in &paths {
            for (position, &task) in path.iter().enumerate() {
                ranks[task] = ranks[task].min(position);
            }
        }
        let chained = ranks.iter().map(|&rank| rank != usize::MAX).collect();
        let values: Vec<Vec<usize>> = paths.iter().cloned().chain(messages(system)).collect();
        let (graph, plain) = (Graph::new(system, &demands, &values), Graph::new(system, &demands, &[]));
        for (task, rank) in ranks.iter_mut().enumerate().filter(|(task, _)| graph.has(*task)) {
            *rank = (*rank).min(graph.depth[task]);
        }
        let splitting = Splitting::none(demands.len());
        let frozen = Frozen::new(frozen, &demands, &system.cpus, cycle);
        let (lead, resources) = (lead(system), Resources::new(system, &demands));
        Ok(Problem { system, cycle, lead, demands, paths, ranks, chained, graph, plain, splitting, frozen, resources })
    }

    /// Whether the solver places a task on one CPU. It is not split, and has no windows that stay.
    pub(crate) fn is_open(&self, task: usize) -> bool {
        !self.splitting.has(task) && !self.frozen.has(task)
    }

    /// Whether all jobs start exactly periodically and have one window.
    fn is_rigid(&self) -> bool {
        self.demands.iter().all(|demand| !demand.preemptible && demand.jitter == Some(Duration::ZERO))
    }

    /// Returns the length of the shortest piece of a split job, on the grid.
    pub(crate) fn shortest_piece(&self) -> Duration {
        round_up(SHORTEST_PIECE, self.system.macrotick).max(quantum(self.system.macrotick))
    }

    fn strategies(&self) -> Vec<Strategy> {
        if self.paths.is_empty() {
            return vec![Strategy { order: Order::Unplaced, turn: 0 }];
        }
        let orders = [Order::Units, Order::EarlyUnits, Order::ByPeriod, Order::ChainsFirst, Order::Unplaced];
        let turned = (1..TURNS).map(|turn| Strategy { order: Order::EarlyUnits, turn });
        orders.into_iter().map(|order| Strategy { order, turn: 0 }).chain(turned).collect()
    }

    /// Drafts a table and changes it until it works or no change is left to try.
    fn solve(&self, strategy: Strategy) -> Result<Vec<Vec<Piece>>, PlanError> {
        let count = self.demands.len();
        let in_chain = |task: usize| strategy.order != Order::Unplaced && self.chained[task];
        let split = |task: usize| self.splitting.has(task);
        let whole = |task: usize| self.is_open(task) && (self.demands[task].needs_phase() || in_chain(task));
        let placed = |task: usize| whole(task) || (split(task) && self.splitting.is_placed());
        let mut draft = Draft {
            assignment: self.assign()?,
            placed: (0..count).map(placed).collect(),
            unplaceable: vec![false; count],
            urgency: vec![0; count],
            pushes: vec![0; count],
            left: vec![Vec::new(); count],
            rounds: 0,
            done: self.system.cpus.iter().map(|_| None).collect(),
        };
        loop {
            match self.lay_out(&mut draft, strategy) {
                Ok(pieces) => return Ok(pieces),
                Err(failure) => self.mend(&mut draft, failure)?,
            }
        }
    }

    fn assign(&self) -> Result<Assignment, PlanError> {
        let mut assignment = Assignment::new(self)?;
        for task in self.splitting.tasks().filter(|_| self.splitting.is_placed()) {
            let (demand, shortest) = (&self.demands[task], self.shortest_piece());
            if !assignment.share(task, demand, self.system.macrotick, shortest) {
                return Err(self.no_pieces(task));
            }
        }
        Ok(assignment)
    }

    /// Returns the pieces of each CPU.
    fn lay_out(&self, draft: &mut Draft, strategy: Strategy) -> Result<Vec<Vec<Piece>>, Failure> {
        let parts = self.place_all(draft, strategy)?;
        let mut taken = self.frozen.pieces().to_vec();
        for (task, places) in parts.iter().enumerate() {
            self.unroll(task, places, &mut taken);
        }
        let mut missed = Vec::new();
        for (cpu, taken) in taken.into_iter().enumerate() {
            let here = |&task: &usize| draft.assignment.of[task] == cpu && !draft.placed[task] && self.is_open(task);
            let tasks: Vec<usize> = (0..self.demands.len()).filter(here).collect();
            let taken = table::joined(taken);
            let same = |layout: &Layout| layout.tasks == tasks && layout.taken == taken;
            if !draft.done[cpu].as_ref().is_some_and(same) {
                let result = self.fill(cpu, &tasks, &taken);
                draft.done[cpu] = Some(Layout { taken, tasks, result });
            }
            if let Some(Layout { result: Err(tasks), .. }) = &draft.done[cpu] {
                missed.extend(tasks);
            }
        }
        if !missed.is_empty() {
            return Err(Failure::Miss(missed));
        }
        let whole = |layout: Layout| layout.taken.into_iter().chain(layout.result.unwrap_or_default()).collect();
        let pieces: Vec<Vec<Piece>> = draft.done.drain(..).flatten().map(whole).collect();
        let pieces = match self.splitting.is_placed() {
            true => pieces,
            false => self.fill_gaps_of_all(draft, pieces)?,
        };
        Ok(pieces.into_iter().map(table::joined).collect())
    }

    /// Returns the windows of job 0 of each placed task. Other tasks have none.
    fn place_all(&self, draft: &Draft, strategy: Strategy) -> Result<Vec<Vec<Place>>, Failure> {
        let order = self.order(draft, strategy.order);
        let mut parts: Vec<Vec<Place>> = vec![Vec::new(); self.demands.len()];
        let mut occupancies: Vec<Occupancy> =
            (0..draft.assignment.len()).map(|cpu| self.occupancy(draft, &order, cpu)).collect();
        let mut unplaced = Vec::new();
        for task in order {
            let found = match self.splitting.slot(task) {
                Some(slot) => self.place_split(draft, task, slot, &occupancies),
                None => self.place(draft, task, self.hint(task, strategy, &parts), &occupancies),
            };
            match found {
                Some(found) => parts[task] = found,
                None => unplaced.push(task),
            }
            let Demand { period, lead, .. } = self.demands[task];
            pieces::take(&mut occupancies, &parts[task], lead, period);
        }
        if unplaced.is_empty() {
            Ok(parts)
        } else {
            Err(Failure::Place(unplaced))
        }
    }

    /// Makes an empty CPU with the sync windows only, for the tasks that may be placed on it.
    fn occupancy(&self, draft: &Draft, tasks: &[usize], cpu: usize) -> Occupancy {
        let here = tasks.iter().filter(|&&task| self.splitting.has(task) || draft.assignment.of[task] == cpu);
        let mut occupancy = Occupancy::new(here.map(|&task| self.demands[task].period));
        if let Some(SyncWindow { period, offset, length, .. }) = self.system.sync() {
            occupancy.take(offset, length, period);
        }
        self.frozen.take(&mut occupancy, self.system.cpus[cpu], self.lead);
        occupancy
    }

    /// Returns the windows of job 0 of a task on its CPU.
    fn place(
        &self,
        draft: &Draft,
        task: usize,
        hint: Option<Duration>,
        occupancies: &[Occupancy],
    ) -> Option<Vec<Place>> {
        let cpu = draft.assignment.of[task];
        let search = |cut| Search {
            occupancy: &occupancies[cpu],
            demand: &self.demands[task],
            macrotick: self.system.macrotick,
            cut,
            hint: hint.unwrap_or(Duration::ZERO),
            rather_whole: hint.is_none(),
        };
        let place = |(start, length): Part| Place { cpu, start, length };
        let parts = Cut::all(self.system.macrotick).find_map(|cut| search(cut).run());
        parts.map(|parts| parts.into_iter().map(place).collect())
    }

    /// Returns the placed tasks in the order of placing: urgent ones and exact phases first, then split ones. Among the
    /// others, fast comes before slow, tight before loose, and long before short.
    fn order(&self, draft: &Draft, order: Order) -> Vec<usize> {
        let mut tasks: Vec<usize> = (0..self.demands.len()).filter(|&task| draft.placed[task]).collect();
        tasks.sort_by_key(|&task| {
            let demand = &self.demands[task];
            let exact = demand.offset.is_some() && demand.jitter.is_some();
            let own = (demand.deadline, Reverse(demand.wcet));
            let chain = self.paths.iter().position(|path| path.contains(&task));
            let periods = |chain: usize| self.paths[chain].iter().map(|&task| self.demands[task].period);
            let (turn, unit) = match (order, chain) {
                (Order::Units, Some(chain)) => (periods(chain).max(), Some(chain)),
                (Order::EarlyUnits, Some(chain)) => (periods(chain).min(), Some(chain)),
                (Order::ChainsFirst, Some(chain)) => (None, Some(chain)),
                _ => (Some(demand.period), None),
            };
            let position = unit.map(|chain| self.paths[chain].iter().position(|&other| other == task));
            let whole = !self.splitting.has(task);
            (Reverse(draft.urgency[task]), !exact, whole, turn, Reverse(unit.is_some()), unit, position, own, task)
        });
        tasks
    }

    /// Returns the desired start of a task in a chain: after its predecessor, or on the phase of the strategy.
    fn hint(&self, task: usize, strategy: Strategy, parts: &[Vec<Place>]) -> Option<Duration> {
        if strategy.order == Order::Unplaced {
            return None;
        }
        let path = self.paths.iter().find(|path| path.contains(&task))?;
        let position = path.iter().position(|&other| other == task)?;
        if position == 0 {
            let grid = self.system.macrotick;
            let eighth = Duration::from_nanos(self.demands[task].period.as_nanos() / TURNS);
            return Some((eighth - eighth % grid) * strategy.turn);
        }
        let end = |places: &Vec<Place>| places.last().map(Place::end);
        end(&parts[path[position - 1]]).or(Some(Duration::ZERO))
    }

    /// Repeats the windows of job 0 over the cycle. No place crosses a multiple of the period, so none crosses the end
    /// of the cycle.
    fn unroll(&self, task: usize, places: &[Place], pieces: &mut [Vec<Piece>]) {
        let period = self.demands[task].period;
        for job in 0..self.cycle / period {
            self.add_job(task, places, period * job, pieces);
        }
    }

    /// Adds the windows of a job that is `shift` later than its places.
    pub(crate) fn add_job(&self, task: usize, places: &[Place], shift: Duration, pieces: &mut [Vec<Piece>]) {
        let last = places.len().saturating_sub(1);
        for (index, &Place { cpu, start, length }) in places.iter().enumerate() {
            let start = (start + shift) % self.cycle;
            let piece = Piece { start, length, task, activate: index == 0, deadline: index == last };
            pieces[cpu].push(self.flagged(piece));
        }
    }

    /// Removes the flags from windows of pools, which have no jobs.
    pub(crate) fn flagged(&self, piece: Piece) -> Piece {
        let job = !self.demands[piece.task].is_pool();
        Piece { activate: piece.activate && job, deadline: piece.deadline && job, ..piece }
    }

    /// Fills in tasks first, and gives pools the rest. Only if that is too little, pools compete with tasks.
    fn fill(&self, cpu: usize, tasks: &[usize], taken: &[Piece]) -> Result<Vec<Piece>, Vec<usize>> {
        let (pools, jobs): (Vec<usize>, Vec<usize>) = tasks.iter().partition(|&&task| self.demands[task].is_pool());
        if pools.is_empty() {
            return self.fill_gaps(cpu, &jobs, taken);
        }
        self.fill_in_turn(cpu, &jobs, &pools, taken).or_else(|_| self.fill_gaps(cpu, tasks, taken))
    }

    fn fill_in_turn(
        &self,
        cpu: usize,
        jobs: &[usize],
        pools: &[usize],
        taken: &[Piece],
    ) -> Result<Vec<Piece>, Vec<usize>> {
        let pieces = self.fill_gaps(cpu, jobs, taken)?;
        let taken = table::joined(taken.iter().chain(&pieces).copied().collect());
        let rest = self.fill_gaps(cpu, pools, &taken)?;
        Ok(pieces.into_iter().chain(rest).collect())
    }

    pub(crate) fn fill_gaps(&self, cpu: usize, tasks: &[usize], taken: &[Piece]) -> Result<Vec<Piece>, Vec<usize>> {
        if tasks.is_empty() {
            return self.within_capacity(taken, Vec::new());
        }
        let mut jobs = Jobs::default();
        for &task in tasks {
            let demand = &self.demands[task];
            jobs.add(task, demand, 0, self.cycle, demand.release(), (Duration::ZERO, demand.deadline));
        }
        let gaps = [self.gaps(taken)];
        let found = self.simulate(&[cpu], &jobs, &gaps, &[taken.to_vec()])?;
        Ok(found.into_iter().flatten().collect())
    }

    /// Fills jobs into the gaps of some CPUs, and returns the pieces of each, without those that are taken. If a CPU has
    /// budgets, each of its server periods keeps time for them if possible.
    pub(crate) fn simulate(
        &self,
        cpus: &[usize],
        jobs: &Jobs,
        gaps: &[Vec<Gap>],
        taken: &[Vec<Piece>],
    ) -> Result<Vec<Vec<Piece>>, Vec<usize>> {
        let plain = self.run(&self.demands, &self.ranks, jobs, gaps, taken);
        let budgets = budget::budgets(self.system, self.cycle, cpus);
        match &plain {
            Ok(pieces) if !budget::kept(&budgets, self.cycle, taken, pieces) => {
                let (demands, ranks, jobs) = budget::beside(&budgets, &self.demands, &self.ranks, jobs, self.cycle);
                let spread = self.run(&demands, &ranks, &jobs, gaps, taken);
                let own =
                    |pieces: Vec<Piece>| pieces.into_iter().filter(|piece| piece.task < self.demands.len()).collect();
                spread.map(|pieces| pieces.into_iter().map(own).collect()).or(plain)
            }
            _ => plain,
        }
    }

    fn run(
        &self,
        demands: &[Demand],
        ranks: &[usize],
        jobs: &Jobs,
        gaps: &[Vec<Gap>],
        taken: &[Vec<Piece>],
    ) -> Result<Vec<Vec<Piece>>, Vec<usize>> {
        let mut found = Err(Vec::new());
        // Other CPUs also have the resources.
        let held =
            if gaps.len() == self.system.cpus.len() { self.resources.held(taken, self.cycle) } else { Held::new() };
        for cut in Cut::all(self.system.macrotick) {
            let (macrotick, quantum) = (self.system.macrotick, quantum(self.system.macrotick));
            let filling = Filling {
                demands,
                jobs,
                ranks,
                gaps,
                resources: &self.resources,
                held: &held,
                lead: self.lead,
                cycle: self.cycle,
                macrotick,
                quantum,
                cut,
            };
            let fits = |(pieces, taken): (Vec<Piece>, &Vec<Piece>)| {
                let own =
                    pieces
                        .into_iter()
                        .map(|piece| if piece.task < self.demands.len() { self.flagged(piece) } else { piece });
                self.within_capacity(taken, own.collect())
            };
            found = filling.run().and_then(|pieces| pieces.into_iter().zip(taken).map(fits).collect());
            if found.is_ok() {
                break;
            }
        }
        found
    }

    /// Returns the free intervals beside pieces, with their leads and the sync windows.
    pub(crate) fn gaps(&self, taken: &[Piece]) -> Vec<Gap> {
        let mut gaps = gaps(&self.busy(taken), self.cycle);
        let begun = taken.iter().filter(|piece| piece.activate && !piece.deadline);
        let begun: BTreeMap<Duration, usize> = begun.map(|piece| (piece.end(), piece.task)).collect();
        gaps.iter_mut().for_each(|gap| gap.behind = begun.get(&gap.start).copied());
        gaps
    }

    /// Returns the time that windows and leads can take on a CPU in a cycle.
    pub(crate) fn capacity(&self) -> Duration {
        capacity(self.system, self.cycle)
    }

    /// Returns the time of pieces and their leads.
    pub(crate) fn time_of<'p>(&self, pieces: impl Iterator<Item = &'p Piece>) -> Duration {
        let lead = |piece: &Piece| if piece.activate { self.demands[piece.task].lead } else { Duration::ZERO };
        // The capacity leaves out the reserve.
        let counts = |piece: &&Piece| self.demands.get(piece.task).is_some_and(|demand| demand.kind != Kind::Reserve);
        pieces.filter(counts).map(|piece| piece.length + lead(piece)).sum()
    }

    /// Returns the pieces if they fit on the CPU together with the cost of cutting. Otherwise returns the tasks that
    /// are cut.
    fn within_capacity(&self, taken: &[Piece], pieces: Vec<Piece>) -> Result<Vec<Piece>, Vec<usize>> {
        if self.time_of(taken.iter().chain(&pieces)) <= self.capacity() {
            return Ok(pieces);
        }
        let each = taken.iter().chain(&pieces);
        let mut cut: Vec<usize> = each.filter(|piece| !piece.activate).map(|piece| piece.task).collect();
        cut.sort_unstable();
        cut.dedup();
        Err(cut)
    }

    /// Returns the busy intervals as start and end: the pieces, with the leads of the activating ones, and the sync
    /// windows.
    fn busy(&self, taken: &[Piece]) -> Vec<(Duration, Duration)> {
        let lead = |piece: &Piece| if piece.activate { self.lead } else { Duration::ZERO };
        let pieces = taken.iter().map(|piece| (piece.start - lead(piece), piece.end()));
        let syncs = self.system.sync().into_iter();
        let syncs = syncs.flat_map(|sync| sync.starts(self.cycle).map(move |start| (start, start + sync.length)));
        let mut busy: Vec<_> = pieces.chain(syncs).collect();
        busy.sort_unstable();
        busy
    }
}

/// Returns the sender and the receiver of each flow between tasks with windows.
fn messages(system: &System) -> Vec<Vec<usize>> {
    let flows = system.network.iter().flat_map(|network| &network.flows);
    let task = |name: &String| system.windowed().position(|task| task.name == *name);
    let ends = flows.filter_map(|flow| Some(vec![task(&flow.from)?, task(flow.to.as_ref()?)?]));
    ends.filter(|ends| ends[0] != ends[1]).collect()
}

/// Returns the free intervals between busy ones, which are sorted.
fn gaps(busy: &[(Duration, Duration)], cycle: Duration) -> Vec<Gap> {
    let mut gaps = Vec::with_capacity(busy.len() + 1);
    let mut from = Duration::ZERO;
    for &(begin, end) in busy {
        if begin > from {
            gaps.push(Gap { start: from, end: begin, behind: None });
        }
        from = end;
    }
    // The lead of the first piece may start before the start of the cycle.
    let until = cycle + busy.first().map_or(Duration::ZERO, |&(begin, _)| begin).min(Duration::ZERO);
    if until > from {
        gaps.push(Gap { start: from, end: until, behind: None });
    }
    gaps
}
