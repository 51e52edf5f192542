//! One trial of the search: CPUs, phases, and the simulation of all other jobs, with repairs.
//!
//! * Tasks without jitter get a phase ([`crate::phases`]). If there is none for a whole job, only its first piece gets
//!   one, and the rest is filled in.
//! * All other jobs are filled in by one simulation ([`crate::edf`]), in the order of the graph of chains. A job with a
//!   jitter bound has its latest start as a deadline.
//! * A task that misses moves to another CPU or phase. If a chain exceeds its bound, one of its tasks gets an earlier
//!   end, or its first task a later start.

use std::cmp::Reverse;

use macrotick_model::{Duration, SplitMix64};

use crate::assign::Assignment;
use crate::chains::{self, Reached};
use crate::cut::Cut;
use crate::demand::Demand;
use crate::edf::jobs::{Jobs, Wait};
use crate::edf::Gap;
use crate::error::{Bound, PlanError};
use crate::exclusive::Held;
use crate::folded::Problem;
use crate::graph::{Edge, Graph};
use crate::options::Clock;
use crate::phases::{Item, Phase, Phases};
use crate::table::{self, Piece};

/// The most repairs of a trial.
const REPAIRS: usize = 40;
/// The most repairs after which a trial without any success ends.
const MISSES: usize = 24;
/// The longest expected time to the end of a cut job, in percent of its wcet.
const MOST_STRETCH: i64 = 1000;
/// The most attempts to shorten chains, and the most jobs that all attempts lay out. It bounds their time without a
/// clock, so the plan is the same on every machine.
const SHORTER: i64 = 24;
const SHORTENED_JOBS: i64 = 60_000;
/// The number of ejections for each task with a phase.
const PATIENCE: usize = 12;
/// The rounds of the search for phases, before tasks are cut and if none can be cut.
const CUTTING_ROUNDS: usize = 2;
const ROUNDS: usize = 12;

/// The way in which a trial differs from others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner {
    /// Whether CPUs are drawn.
    drawn: bool,
    /// Whether chains order the jobs. Otherwise only `after` does.
    chained: bool,
    /// Whether tasks of chains get a phase, too.
    phased: bool,
    /// Whether tasks without preemption get a phase, too.
    firm: bool,
    /// Jitter bounds below this part of the period are planned as zero.
    part: i64,
    /// Whether all tasks with a phase are cut from the beginning. Phases for all first pieces are then easy to find.
    cut: bool,
}

impl Manner {
    pub fn of(number: u64) -> Manner {
        Manner {
            drawn: number >= 4,
            chained: number % 4 != 3,
            phased: number % 4 == 1,
            firm: number % 2 == 1,
            part: [i64::MAX, 15, 4, 8][(number % 4) as usize],
            cut: number % 4 == 2,
        }
    }
}

/// Why a trial failed.
pub(crate) enum Failed {
    /// A chain exceeds its bound.
    Chain(Reached),
    Other(PlanError),
}

/// The input and the result of the simulation of some CPUs.
#[derive(Clone)]
struct Filled {
    jobs: Jobs,
    gaps: Vec<Vec<Gap>>,
    /// The times at which other jobs have resources.
    held: Held,
    result: Result<Vec<Vec<Piece>>, Vec<usize>>,
}

#[derive(Clone)]
pub(crate) struct Trial<'a> {
    problem: &'a Problem<'a>,
    manner: Manner,
    random: SplitMix64,
    assignment: Assignment,
    /// The latest end of each job after its release.
    limits: Vec<Duration>,
    /// The earliest start of each job after its release.
    delays: Vec<Duration>,
    /// The release of tasks with a jitter bound and without an offset.
    releases: Vec<Duration>,
    /// Whether a task without preemption gets a phase because it missed.
    firm: Vec<bool>,
    /// Whether only the first piece of a task gets a phase.
    cut: Vec<bool>,
    /// The expected time to the end of such a task's job, in percent of its wcet.
    stretch: Vec<i64>,
    phases: Vec<Option<Phase>>,
    /// Whether the phases are those of the present limits and CPUs.
    is_placed: bool,
    /// The last simulations: of each CPU, or of all together.
    done: Vec<Option<Filled>>,
}

impl<'a> Trial<'a> {
    pub fn new(problem: &'a Problem<'a>, manner: Manner, mut random: SplitMix64) -> Result<Trial<'a>, PlanError> {
        let demands = &problem.demands;
        let assignment = match manner.drawn {
            true => Assignment::drawn(problem, &mut random)?,
            false => Assignment::new(problem)?,
        };
        let count = demands.len();
        let stretch = if manner.drawn { 110 + (random.bits() % 200) as i64 } else { 150 };
        let mut trial = Trial {
            problem,
            manner,
            random,
            done: (0..assignment.len()).map(|_| None).collect(),
            assignment,
            limits: demands.iter().map(first_limit).collect(),
            delays: vec![Duration::ZERO; count],
            releases: vec![Duration::ZERO; count],
            firm: vec![false; count],
            cut: vec![false; count],
            stretch: vec![stretch; count],
            phases: vec![None; count],
            is_placed: false,
        };
        if manner.cut {
            trial.cut = (0..count).map(|task| trial.has_phase(task) && trial.can_be_cut(task)).collect();
        }
        Ok(trial)
    }

    /// Returns the pieces of each CPU.
    pub fn run(&mut self, clock: &Clock) -> Result<Vec<Vec<Piece>>, Failed> {
        let (mut best, mut misses): (Option<Reached>, usize) = (None, 0);
        let mut last = None;
        for _ in 0..REPAIRS {
            if let Err(error) = self.place(clock) {
                last = Some(error);
                break;
            }
            match self.fill() {
                Ok(pieces) => {
                    let Some(worst) = self.worst(&pieces) else { return Ok(pieces) };
                    if best.is_none_or(|best| worst.excess() < best.excess()) {
                        best = Some(worst);
                    }
                    self.tighten(worst, &pieces);
                }
                Err(missed) => {
                    last = Some(self.missed(missed[0]));
                    misses += 1;
                    if misses > MISSES || !self.mend(&missed) {
                        break;
                    }
                }
            }
            if clock.is_over() {
                break;
            }
        }
        Err(match (best, last) {
            (Some(best), _) => Failed::Chain(best),
            (None, Some(error)) => Failed::Other(error),
            (None, None) => unreachable!("a trial tries at least once"),
        })
    }

    /// Returns the pieces with the shortest times of the chains that a few attempts find, whatever the bounds are.
    pub fn shortest(mut self, clock: &Clock) -> Option<Vec<Vec<Piece>>> {
        self.place(clock).ok()?;
        let mut best = self.fill().ok()?;
        let jobs: i64 = self.problem.demands.iter().map(|demand| self.problem.cycle / demand.period).sum();
        let phased = (0..self.problem.demands.len()).any(|task| self.problem.chained[task] && self.has_phase(task));
        // Chains with phases keep theirs.
        let attempts = if phased { 0 } else { (SHORTENED_JOBS / jobs).min(SHORTER) };
        let mut least = self.problem.latency(&best);
        for _ in 0..attempts {
            let reached = chains::measure(&self.problem.system.chains, &self.problem.paths, &best, self.problem.cycle);
            let longest = reached.into_iter().max_by_key(|reached| self.problem.part(reached));
            let Some(longest) = longest.filter(|_| !clock.is_over()) else { break };
            let before = (self.limits.clone(), self.delays.clone(), self.phases.clone(), self.assignment.clone());
            let bound = Duration::from_nanos(longest.reached.as_nanos() / 16 * 15);
            self.tighten(Reached { bound, ..longest }, &best);
            let found = self.place(clock).ok().and_then(|()| self.fill().ok());
            match found.map(|found| (self.problem.latency(&found), found)) {
                Some((latency, found)) if latency < least => (least, best) = (latency, found),
                _ => {
                    (self.limits, self.delays, self.phases, self.assignment) = before;
                    self.is_placed = true;
                }
            }
        }
        Some(best)
    }

    fn graph(&self) -> &'a Graph {
        if self.manner.chained {
            &self.problem.graph
        } else {
            &self.problem.plain
        }
    }

    fn demand(&self, task: usize) -> &'a Demand {
        &self.problem.demands[task]
    }

    /// Returns the trial with limits from the bounds of the chains.
    pub fn bounded(mut self) -> Self {
        self.limit_chains();
        self
    }

    /// Gives the last task of each chain the latest end with which its bounds certainly hold.
    ///
    /// The values then pass within one window of the slowest period, and the next input waits for one window.
    fn limit_chains(&mut self) {
        for (chain, path) in self.problem.system.chains.iter().zip(&self.problem.paths) {
            let periods = || path.iter().map(|&task| self.demand(task).period);
            let Some(window) = periods().max().filter(|window| periods().all(|period| window.is_multiple_of(period)))
            else {
                continue;
            };
            let last = path[path.len() - 1];
            let Demand { wcet, period, .. } = *self.demand(last);
            let slowest = periods().position(|period| period == window);
            let release =
                if slowest.is_some_and(|slowest| slowest + 1 < path.len()) { window - period } else { Duration::ZERO };
            let reaction = chain.reaction.map(|bound| bound - window);
            let age = chain.age.filter(|_| period == window);
            let Some(limit) = reaction.into_iter().chain(age).min().map(|limit| limit - release) else { continue };
            let own: Duration = path.iter().map(|&task| self.demand(task).wcet).sum();
            if limit >= own.min(wcet * 2) {
                self.limits[last] = self.limits[last].min(limit);
            }
        }
    }

    /// Whether a task gets a phase.
    fn has_phase(&self, task: usize) -> bool {
        let demand = self.demand(task);
        match demand.jitter {
            _ if self.problem.frozen.has(task) => false,
            _ if self.manner.phased && self.problem.chained[task] => true,
            _ if self.is_often_firm(task) && (self.manner.firm || self.firm[task]) => true,
            None => false,
            Some(Duration::ZERO) => true,
            Some(jitter) => demand.period > jitter.checked_mul(self.manner.part).unwrap_or(demand.period),
        }
    }

    /// Whether a phase can help a task that needs none: its jobs do not fit everywhere.
    fn is_often_firm(&self, task: usize) -> bool {
        !self.demand(task).preemptible || self.problem.resources.has(task)
    }

    /// Finds the phases, if something has changed.
    fn place(&mut self, clock: &Clock) -> Result<(), PlanError> {
        if self.is_placed {
            return Ok(());
        }
        let tasks: Vec<usize> = (0..self.problem.demands.len()).filter(|&task| self.has_phase(task)).collect();
        if let Some(&task) = tasks.iter().find(|&&task| self.is_shut_out(task)) {
            return Err(self.no_phase(task));
        }
        loop {
            let (heads, lasts) = (self.heads(), self.lasts());
            let items: Vec<Item> = tasks.iter().map(|&task| self.item(task, heads[task], lasts[task])).collect();
            let allowed: Vec<Vec<usize>> = (0..self.problem.demands.len()).map(|task| self.allowed(task)).collect();
            let can_be_cut = tasks.iter().any(|&task| self.can_be_cut(task));
            let search = Phases {
                demands: &self.problem.demands,
                graph: self.graph(),
                macrotick: self.problem.system.macrotick,
                lead: self.problem.lead,
                sync: self.problem.system.sync(),
                frozen: &self.problem.frozen,
                resources: &self.problem.resources,
                cpus: &self.problem.system.cpus,
                allowed: &allowed,
                room: &self.assignment.free(),
                cycle: self.problem.cycle,
                rounds: if can_be_cut { CUTTING_ROUNDS } else { ROUNDS },
                drawn: self.manner.drawn,
                clock,
            };
            match search.run(&items, PATIENCE * items.len(), &mut self.random) {
                Ok(found) => {
                    for (&task, phase) in tasks.iter().zip(found) {
                        self.assignment.put(task, self.demand(task), phase.cpu);
                        self.phases[task] = Some(phase);
                    }
                    self.is_placed = true;
                    return Ok(());
                }
                Err(obstacles) => {
                    // Longer windows are the larger obstacles. Each turn cuts a tenth of the tasks, at least one.
                    let mut open: Vec<usize> = obstacles.iter().map(|&index| tasks[index]).collect();
                    let mut others = tasks.clone();
                    others.sort_by_key(|&task| (Reverse(self.demand(task).wcet), task));
                    open.retain(|&task| self.can_be_cut(task));
                    if open.is_empty() {
                        open.extend(others.into_iter().filter(|&task| self.can_be_cut(task)));
                    }
                    open.truncate(tasks.len() / 10 + 1);
                    if open.is_empty() || clock.is_over() {
                        return Err(self.no_phase(tasks[obstacles[0]]));
                    }
                    open.into_iter().for_each(|task| self.cut[task] = true);
                }
            }
        }
    }

    /// Whether windows that stay leave no start to a task before or behind them.
    fn is_shut_out(&self, task: usize) -> bool {
        let demand = self.demand(task);
        let (mut earliest, mut latest) = demand.starts();
        for edge in self.graph().into(task) {
            let end = self.problem.frozen.latest_end(edge, self.demand(edge.from).period, self.problem.cycle);
            earliest = end.map_or(earliest, |end| earliest.max(end - demand.period * edge.to_lane));
        }
        for edge in self.graph().out(task) {
            let start = self.problem.frozen.earliest_start(edge, self.demand(edge.to).period, self.problem.cycle);
            latest = start.map_or(latest, |start| latest.min(start - demand.period * edge.from_lane - demand.wcet));
        }
        earliest > latest
    }

    fn can_be_cut(&self, task: usize) -> bool {
        let demand = self.demand(task);
        demand.preemptible && !self.cut[task] && demand.needed > self.first_piece() * 2
    }

    /// Returns the length of a first piece that is laid out alone.
    fn first_piece(&self) -> Duration {
        Cut::all(self.problem.system.macrotick)
            .nth(1)
            .unwrap_or(Cut::coarsest(self.problem.system.macrotick))
            .shortest()
    }

    /// Returns the expected earliest start of each task behind the tasks before it, counted from its release.
    fn heads(&self) -> Vec<Duration> {
        let mut heads = self.delays.clone();
        for edge in &self.graph().edges {
            let (from, to) = (self.demand(edge.from), self.demand(edge.to));
            let shift = from.period * edge.from_lane + from.release() - to.period * edge.to_lane - to.release();
            if let Some(end) = self.problem.frozen.latest_end(edge, from.period, self.problem.cycle) {
                let release = to.period * edge.to_lane + to.release();
                heads[edge.to] = heads[edge.to].max(end - release);
                continue;
            }
            let takes =
                if self.has_phase(edge.from) && !self.cut[edge.from] { from.wcet } else { self.takes(edge.from) };
            heads[edge.to] = heads[edge.to].max(heads[edge.from] + takes + shift);
        }
        heads
    }

    /// Returns the latest start of each task's job 0 from which the tasks behind it can still be in time.
    fn lasts(&self) -> Vec<Duration> {
        let latest = |task: usize| {
            let demand = self.demand(task);
            demand.starts().1.min(demand.release() + self.limits[task] - demand.wcet)
        };
        let mut lasts: Vec<Duration> = (0..self.problem.demands.len()).map(latest).collect();
        for edge in self.graph().edges.iter().rev() {
            let (from, to) = (self.demand(edge.from), self.demand(edge.to));
            let shift = from.period * edge.from_lane - to.period * edge.to_lane;
            if let Some(start) = self.problem.frozen.earliest_start(edge, to.period, self.problem.cycle) {
                let latest = start - from.period * edge.from_lane - from.wcet;
                lasts[edge.from] = lasts[edge.from].min(latest);
                continue;
            }
            lasts[edge.from] = lasts[edge.from].min(lasts[edge.to] - from.wcet - shift);
        }
        lasts
    }

    /// Returns the expected time from the start to the end of a job that may be cut.
    fn takes(&self, task: usize) -> Duration {
        let grid = self.problem.system.macrotick;
        let takes = Duration::from_nanos(self.demand(task).wcet.as_nanos() / 100 * self.stretch[task]);
        takes - takes % grid
    }

    fn item(&self, task: usize, head: Duration, last: Duration) -> Item {
        let demand = self.demand(task);
        let (earliest, latest) = demand.starts();
        let earliest = (earliest + head).min(latest);
        if !self.cut[task] {
            let latest = last.max(earliest);
            return Item { task, length: demand.wcet, starts: (earliest, latest), takes: demand.wcet, whole: true };
        }
        let length = self.first_piece();
        let takes = self.takes(task);
        let latest = match (demand.offset, demand.jitter) {
            // The rest of the job may reach into the next period, but it begins in this one.
            (None, Some(_)) => demand.period - length - self.problem.system.macrotick,
            _ => latest,
        };
        let latest = latest.min(demand.release() + self.limits[task] - takes);
        Item { task, length, starts: (earliest, latest.max(earliest)), takes, whole: false }
    }

    /// Returns the CPUs that a task with a phase may use: its own, then the others, the emptiest first.
    fn allowed(&self, task: usize) -> Vec<usize> {
        let own = self.assignment.of[task];
        let mut others: Vec<usize> = self.assignment.allowed(self.demand(task)).filter(|&cpu| cpu != own).collect();
        let free = self.assignment.free();
        others.sort_by_key(|&cpu| (Reverse(free[cpu]), cpu));
        std::iter::once(own).chain(others).collect()
    }

    /// Fills in all jobs without a phase.
    fn fill(&mut self) -> Result<Vec<Vec<Piece>>, Vec<usize>> {
        let taken = self.taken();
        let gaps: Vec<Vec<Gap>> = taken.iter().map(|taken| self.problem.gaps(taken)).collect();
        let (jobs, waits) = self.jobs();
        let mut missed = Vec::new();
        let mut pieces: Vec<Vec<Piece>> = Vec::new();
        if waits.is_empty() && self.problem.resources.is_empty() {
            for cpu in 0..taken.len() {
                let own = jobs_of(&jobs, cpu);
                match self.simulate(&[cpu], own, &gaps[cpu..=cpu], &taken[cpu..=cpu]) {
                    Ok(found) => pieces.extend(found),
                    Err(tasks) => missed.extend(tasks),
                }
            }
        } else {
            let (mut jobs, all) = (jobs, (0..taken.len()).collect::<Vec<_>>());
            jobs.order(&waits);
            if let Some(late) = jobs.hopeless() {
                return Err(vec![late]);
            }
            match self.simulate(&all, jobs, &gaps, &taken) {
                Ok(found) => pieces = found,
                Err(tasks) => missed = tasks,
            }
        }
        if !missed.is_empty() {
            return Err(missed);
        }
        let pieces: Vec<Vec<Piece>> =
            taken.into_iter().zip(pieces).map(|(taken, more)| table::joined([taken, more].concat())).collect();
        match self.problem.resources.clash(&pieces, self.problem.cycle) {
            Some((_, task, _)) => Err(vec![task]),
            None => Ok(pieces),
        }
    }

    /// Simulates some CPUs, unless their last simulation was the same.
    fn simulate(
        &mut self,
        cpus: &[usize],
        jobs: Jobs,
        gaps: &[Vec<Gap>],
        taken: &[Vec<Piece>],
    ) -> Result<Vec<Vec<Piece>>, Vec<usize>> {
        let held = self.problem.resources.held(taken, self.problem.cycle);
        let same = |done: &&Filled| done.jobs == jobs && done.gaps == gaps && done.held == held;
        if let Some(done) = self.done[cpus[0]].as_ref().filter(same) {
            return done.result.clone();
        }
        let result = self.problem.simulate(cpus, &jobs, gaps, taken);
        self.done[cpus[0]] = Some(Filled { jobs, gaps: gaps.to_vec(), held, result: result.clone() });
        result
    }

    /// Returns the pieces of the tasks with a phase, sorted, on each CPU.
    fn taken(&self) -> Vec<Vec<Piece>> {
        let mut taken = self.problem.frozen.pieces().to_vec();
        for (task, phase) in self.phases.iter().enumerate() {
            let Some(phase) = phase else { continue };
            let period = self.demand(task).period;
            for job in 0..self.problem.cycle / period {
                // With an offset, the last job can start in the next cycle, or extend into it.
                let start = (phase.start + period * job) % self.problem.cycle;
                let here = phase.length.min(self.problem.cycle - start);
                let piece = |start, length, activate, deadline| Piece { start, length, task, activate, deadline };
                let is_whole = here == phase.length;
                taken[phase.cpu].push(self.problem.flagged(piece(start, here, true, is_whole && phase.whole)));
                if !is_whole {
                    let rest = piece(Duration::ZERO, phase.length - here, false, phase.whole);
                    taken[phase.cpu].push(self.problem.flagged(rest));
                }
            }
        }
        taken.iter_mut().for_each(|pieces| pieces.sort_by_key(|piece| piece.start));
        taken
    }

    /// Returns the jobs to fill in, and the order among them.
    fn jobs(&self) -> (Jobs, Vec<Wait>) {
        let mut jobs = Jobs::default();
        let mut first: Vec<Option<usize>> = vec![None; self.phases.len()];
        for (task, demand) in self.problem.demands.iter().enumerate() {
            let cpu = self.assignment.of[task];
            match self.phases[task] {
                Some(Phase { whole: true, .. }) => continue,
                Some(phase) => {
                    jobs.add_rest(task, demand, cpu, self.problem.cycle, &phase, demand.release() + self.limits[task])
                }
                None if self.problem.frozen.has(task) => continue,
                None => {
                    let release = demand.offset.unwrap_or(self.releases[task]);
                    let limits = (self.delays[task], self.limits[task].min(demand.deadline));
                    jobs.add(task, demand, cpu, self.problem.cycle, release, limits);
                }
            }
            first[task] = jobs.sources.last().map(|source| source.first);
        }
        let mut waits = Vec::new();
        for edge in &self.graph().edges {
            for window in 0..self.problem.cycle / edge.window {
                self.wait(edge, window, &first, &mut jobs, &mut waits);
            }
        }
        (jobs, waits)
    }

    /// Orders the two jobs of an edge in one window. The instants of a phase are limits for the other job.
    fn wait(&self, edge: &Edge, window: i64, first: &[Option<usize>], jobs: &mut Jobs, waits: &mut Vec<Wait>) {
        let number = |task: usize, lane: i64| window * (edge.window / self.demand(task).period) + lane;
        let (before, then) = (number(edge.from, edge.from_lane), number(edge.to, edge.to_lane));
        let at = |task: usize, number: i64| first[task].map(|first| first + number as usize);
        let (from, to) = (at(edge.from, before), at(edge.to, then));
        let (fixed_from, fixed_to) =
            (self.problem.frozen.job(edge.from, before), self.problem.frozen.job(edge.to, then));
        if let (Some((_, end)), Some(to)) = (fixed_from, to) {
            jobs.all[to].earliest = jobs.all[to].earliest.max(end);
        }
        if let (Some((start, _)), Some(from)) = (fixed_to, from) {
            jobs.all[from].deadline = jobs.all[from].deadline.min(start);
        }
        if fixed_from.is_some() || fixed_to.is_some() {
            return;
        }
        match (self.phases[edge.from], self.phases[edge.to]) {
            (Some(phase), None) if phase.whole => {
                let end = phase.end() + self.demand(edge.from).period * before;
                let job = &mut jobs.all[to.expect("a job without a phase")];
                job.earliest = job.earliest.max(end);
            }
            (_, Some(phase)) => {
                let start = phase.start + self.demand(edge.to).period * then;
                if let Some(from) = from {
                    let job = &mut jobs.all[from];
                    job.deadline = job.deadline.min(start);
                }
            }
            _ => waits.extend(from.zip(to)),
        }
    }

    /// Returns the bound that is exceeded most.
    pub fn worst(&self, pieces: &[Vec<Piece>]) -> Option<Reached> {
        let reached = chains::measure(&self.problem.system.chains, &self.problem.paths, pieces, self.problem.cycle);
        reached.into_iter().filter(|reached| !reached.kept()).max_by_key(Reached::excess)
    }

    /// Gives a task of the chain an earlier end, or the first one a later start.
    fn tighten(&mut self, worst: Reached, pieces: &[Vec<Piece>]) {
        let path = self.problem.paths[worst.chain].clone();
        let excess = worst.reached - worst.bound;
        let draw = self.draw(4);
        let delays = worst.kind == Bound::Age && draw == 0 || draw == 1;
        self.is_placed = !path.iter().any(|&task| self.has_phase(task));
        if delays {
            let task = path[0];
            let most = self.limits[task].min(self.demand(task).deadline) - self.demand(task).wcet;
            let grid = self.problem.system.macrotick;
            let delay = (self.delays[task] + excess).min(most);
            self.delays[task] = (delay - delay % grid).max(self.delays[task]);
            return;
        }
        let task = if draw == 2 { path[self.draw(path.len() as u64) as usize] } else { path[path.len() - 1] };
        let demand = self.demand(task);
        let response = self.response(task, pieces);
        let least = self.delays[task] + demand.wcet;
        self.limits[task] = (self.limits[task].min(response) - excess).max(least).min(self.limits[task]);
    }

    /// Returns the longest time from a release to the end of a job.
    fn response(&self, task: usize, pieces: &[Vec<Piece>]) -> Duration {
        let period = self.demand(task).period.as_nanos();
        let release = self.demand(task).offset.unwrap_or(self.releases[task]);
        let ends = pieces.iter().flatten().filter(|piece| piece.task == task && piece.deadline);
        let after = |end: Duration| Duration::from_nanos((end - release).as_nanos().rem_euclid(period));
        let after =
            |end: Duration| if after(end) == Duration::ZERO { Duration::from_nanos(period) } else { after(end) };
        ends.map(|piece| after(piece.end())).max().unwrap_or(self.limits[task])
    }

    /// Changes something about a task that misses, or about one beside it. Returns false if there is nothing to change.
    fn mend(&mut self, missed: &[usize]) -> bool {
        let task = missed[self.draw(missed.len() as u64) as usize];
        let demand = self.demand(task);
        if self.limits[task] < demand.deadline && self.draw(2) == 0 {
            let half = (demand.deadline - self.limits[task]).as_nanos() / 2 + 1;
            self.limits[task] += Duration::from_nanos(half);
            return true;
        }
        if self.is_often_firm(task) && !self.has_phase(task) && self.draw(4) > 0 {
            self.firm[task] = true;
            self.is_placed = false;
            return true;
        }
        let chosen = demand.jitter.is_some() && demand.offset.is_none() && self.phases[task].is_none();
        // Tasks that wait for each other count their jobs from the same instant.
        if chosen && !self.problem.graph.has(task) && self.draw(3) > 0 {
            let grid = self.problem.system.macrotick;
            let steps = (demand.period / grid) as u64;
            self.releases[task] = grid * self.draw(steps) as i64;
            return true;
        }
        // A job that others follow needs more time before them.
        let follows = |edge: &Edge| self.phases[edge.to].is_some();
        let whole = self.phases[task].is_some_and(|phase| phase.whole);
        if !whole && self.graph().out(task).iter().any(follows) && self.stretch[task] < MOST_STRETCH && self.draw(4) > 0
        {
            self.stretch[task] = self.stretch[task] * 3 / 2;
            self.is_placed = false;
            return true;
        }
        self.relocate(task) || self.relieve(self.assignment.of[task]) || self.manner.phased
    }

    /// Moves a task to a drawn CPU with room.
    fn relocate(&mut self, task: usize) -> bool {
        let own = self.assignment.of[task];
        let others: Vec<usize> = self.assignment.with_room(task, self.demand(task)).filter(|&cpu| cpu != own).collect();
        if others.is_empty() {
            return false;
        }
        let cpu = others[self.draw(others.len() as u64) as usize];
        self.assignment.put(task, self.demand(task), cpu);
        if self.has_phase(task) {
            self.is_placed = false;
        }
        true
    }

    /// Moves some other task away from a CPU. Small tasks are enough often, and find room.
    fn relieve(&mut self, cpu: usize) -> bool {
        let mut here: Vec<usize> = (0..self.phases.len())
            .filter(|&task| {
                self.assignment.of[task] == cpu && self.demand(task).cpus.is_several() && self.problem.is_open(task)
            })
            .collect();
        here.sort_by_key(|&task| (Reverse(self.demand(task).per_cycle(self.problem.cycle)), task));
        for _ in 0..here.len().min(4) {
            let task = here[self.draw(here.len() as u64) as usize];
            if self.relocate(task) {
                return true;
            }
        }
        false
    }

    fn draw(&mut self, limit: u64) -> u64 {
        self.random.bits() % limit
    }

    fn others(&self, task: usize) -> Vec<String> {
        let cpu = self.assignment.of[task];
        let mut others: Vec<usize> =
            (0..self.phases.len()).filter(|&other| other != task && self.assignment.of[other] == cpu).collect();
        others.sort_by_key(|&other| (Reverse(self.demand(other).per_cycle(self.problem.cycle)), other));
        others.into_iter().map(|other| self.demand(other).name.clone()).collect()
    }

    fn no_phase(&self, task: usize) -> PlanError {
        let Demand { ref name, wcet, period, lead, preemptible, .. } = *self.demand(task);
        let (cpu, others) = (self.assignment.cpu(task), self.others(task));
        PlanError::NoPhase { task: name.clone(), cpu, wcet, period, lead, whole: !preemptible, others }
    }

    fn missed(&self, task: usize) -> PlanError {
        let Demand { kind, ref name, wcet, deadline, lead, preemptible, .. } = *self.demand(task);
        let (cpu, others) = (self.assignment.cpu(task), self.others(task));
        PlanError::Deadline { kind, task: name.clone(), cpu, wcet, deadline, lead, whole: !preemptible, others }
    }
}

/// Returns the limit without chains. Where the solver chooses the release, the deadline counts from there, and the limit
/// is beyond it.
fn first_limit(demand: &Demand) -> Duration {
    match (demand.offset, demand.jitter) {
        (None, Some(_)) => demand.period + demand.deadline,
        _ => demand.deadline,
    }
}

/// Returns the jobs of one CPU, which is the only one then.
fn jobs_of(jobs: &Jobs, cpu: usize) -> Jobs {
    let mut own = Jobs::default();
    for source in jobs.sources.iter().filter(|source| source.cpu == cpu) {
        let all = &jobs.all[source.first..source.first + source.count];
        own.sources.push(crate::edf::jobs::Source { first: own.all.len(), cpu: 0, ..source.clone() });
        own.all.extend_from_slice(all);
    }
    own
}
