//! Tasks that share no CPU (`apart`).
//!
//! Such tasks get their CPUs before all other decisions: each one CPU, so that no two that are apart have the same. This
//! is the coloring of a graph. The search takes the task with the fewest CPUs left first (Brelaz: New methods to color
//! the vertices of a graph. Communications of the ACM 22, 1979), and goes back where a task has none. If no coloring
//! leads to a table, others are tried, each with other draws.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use macrotick_model::{CpuSet, Duration, SplitMix64, System};

use crate::error::{Answer, Ended, PlanError};
use crate::folded::Problem;
use crate::frozen::Windows;
use crate::kept::Tables;
use crate::options::Clock;
use crate::refute::{self, Refutation};

/// The colorings that are tried.
const ATTEMPTS: u32 = 12;
/// The most steps of the search for a coloring.
const STEPS: usize = 200_000;

/// Returns the tables of a system in which tasks are apart. `solve` returns those of a system without such tasks, and
/// `former` the CPU that a task had in the former plan.
pub(crate) fn tables(
    system: &System,
    cycle: Duration,
    clock: &Clock,
    former: &dyn Fn(&str) -> Option<u32>,
    solve: &dyn Fn(&System, &Clock) -> Result<Tables, PlanError>,
) -> Result<Tables, PlanError> {
    let Some(coloring) = Coloring::new(system, former) else { return solve(system, clock) };
    if coloring.is_forced() {
        // There is one coloring at most: its answer is that of the system.
        match coloring.find(0, clock) {
            Found::Cpus(cpus) => return solve(&coloring.pinned(&cpus), clock),
            Found::Impossible => return Err(coloring.impossible()),
            Found::Unknown => {}
        }
    }
    let mut first: Option<PlanError> = None;
    let mut seen: Vec<Vec<u32>> = Vec::new();
    for attempt in 0..ATTEMPTS {
        let clock = clock.part(ATTEMPTS - attempt);
        let found = match coloring.find(attempt, &clock) {
            Found::Cpus(cpus) if seen.contains(&cpus) => continue,
            Found::Cpus(cpus) => cpus,
            Found::Impossible => return Err(coloring.impossible()),
            // Other draws would not end earlier.
            Found::Unknown => break,
        };
        match solve(&coloring.pinned(&found), &clock) {
            Ok(tables) => return Ok(tables),
            Err(error) if error.answer() == Answer::Unanswered => return Err(error),
            Err(error) => _ = first.get_or_insert(error),
        }
        seen.push(found);
        if clock.is_over() {
            break;
        }
    }
    // A proof for pinned tasks is none for the system. One without them is.
    refute::refute(&Problem::new(&coloring.free(), cycle, &Windows::new())?)?;
    Err(match first {
        Some(PlanError::NotFound { bottleneck, .. }) => PlanError::NotFound { ended: ended(&seen), bottleneck },
        Some(other) => PlanError::NotFound { ended: ended(&seen), bottleneck: Box::new(other) },
        None => PlanError::NotFound {
            ended: ended(&seen),
            bottleneck: Box::new(PlanError::NoColors { tasks: coloring.names(), cpus: system.cpus.len() }),
        },
    })
}

fn ended(seen: &[Vec<u32>]) -> Ended {
    Ended::Trials(seen.len() as u64)
}

/// The tasks that are apart from others, and their CPUs.
struct Coloring<'a> {
    system: &'a System,
    /// The indices of the tasks.
    tasks: Vec<usize>,
    /// The places in `tasks` that each of them is apart from.
    others: Vec<Vec<usize>>,
    allowed: Vec<CpuSet>,
    former: Vec<Option<u32>>,
    /// The load of the tasks that have their CPU, in parts of a million.
    pinned: BTreeMap<u32, i64>,
}

enum Found {
    Cpus(Vec<u32>),
    Impossible,
    Unknown,
}

impl<'a> Coloring<'a> {
    /// Returns `None` if no task is apart from another one.
    fn new(system: &'a System, former: &dyn Fn(&str) -> Option<u32>) -> Option<Coloring<'a>> {
        let index: BTreeMap<&str, usize> = system.tasks.iter().map(|task| task.name.as_str()).zip(0..).collect();
        let mut edges: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
        for (one, task) in system.tasks.iter().enumerate() {
            for other in task.apart.iter().filter_map(|name| index.get(name.as_str()).copied()) {
                edges.entry(one).or_default().insert(other);
                edges.entry(other).or_default().insert(one);
            }
        }
        if edges.is_empty() {
            return None;
        }
        let tasks: Vec<usize> = edges.keys().copied().collect();
        let place = |task: &usize| tasks.binary_search(task).expect("both ends of an edge have edges");
        let mut pinned = BTreeMap::new();
        for (index, task) in system.tasks.iter().enumerate().filter(|(index, _)| !edges.contains_key(index)) {
            task.cpu.iter().for_each(|cpu| *pinned.entry(*cpu).or_insert(0) += load(system, index));
        }
        Some(Coloring {
            system,
            others: edges.values().map(|others| others.iter().map(place).collect()).collect(),
            allowed: tasks.iter().map(|&task| system.cpus_of(&system.tasks[task])).collect(),
            former: tasks.iter().map(|&task| former(&system.tasks[task].name)).collect(),
            pinned,
            tasks,
        })
    }

    fn names(&self) -> Vec<String> {
        self.tasks.iter().map(|&task| self.system.tasks[task].name.clone()).collect()
    }

    /// Whether each task has just one CPU.
    fn is_forced(&self) -> bool {
        self.allowed.iter().all(|cpus| !cpus.is_several())
    }

    /// Returns the proof that there is no coloring.
    fn impossible(&self) -> PlanError {
        let cpus: CpuSet = self.allowed.iter().flat_map(|cpus| cpus.as_slice()).copied().collect();
        PlanError::Impossible(Refutation::Apart { tasks: self.names(), cpus })
    }

    /// Searches for a coloring. The first attempt has no draws.
    fn find(&self, attempt: u32, clock: &Clock) -> Found {
        let mut search = Search {
            coloring: self,
            found: vec![None; self.tasks.len()],
            load: self.pinned.clone(),
            random: SplitMix64::new(attempt.into()),
            is_drawn: attempt > 0,
            steps: 0,
            clock,
        };
        match search.run() {
            true => Found::Cpus(search.found.into_iter().flatten().collect()),
            false if search.is_over() => Found::Unknown,
            false => Found::Impossible,
        }
    }

    /// Returns the system with these CPUs.
    fn pinned(&self, cpus: &[u32]) -> System {
        let mut system = self.free();
        for (&task, &cpu) in self.tasks.iter().zip(cpus) {
            let task = &mut system.tasks[task];
            (task.cpu, task.migrate) = (Some(cpu), false);
        }
        system
    }

    /// Returns the system without tasks that are apart.
    fn free(&self) -> System {
        let mut system = self.system.clone();
        system.tasks.iter_mut().for_each(|task| task.apart.clear());
        system
    }
}

struct Search<'a> {
    coloring: &'a Coloring<'a>,
    clock: &'a Clock<'a>,
    found: Vec<Option<u32>>,
    load: BTreeMap<u32, i64>,
    random: SplitMix64,
    is_drawn: bool,
    steps: usize,
}

impl Search<'_> {
    /// Colors the tasks that have no CPU yet. Returns whether it did.
    fn run(&mut self) -> bool {
        let open = (0..self.found.len()).filter(|&place| self.found[place].is_none());
        let system = self.coloring.system;
        let key = |&place: &usize| {
            let task = self.coloring.tasks[place];
            let degree = self.coloring.others[place].len();
            // Tasks with a former CPU come first, so that they keep it.
            let is_new = self.coloring.former[place].is_none();
            (is_new, self.left(place).len(), Reverse(degree), Reverse(load(system, task)), place)
        };
        let Some(place) = open.min_by_key(key) else { return true };
        let needed = load(system, self.coloring.tasks[place]);
        let mut cpus: Vec<(bool, i64, u32)> = Vec::new();
        for cpu in self.left(place) {
            let noise = if self.is_drawn { (self.random.bits() % 400_000) as i64 } else { 0 };
            let load = self.load.get(&cpu).copied().unwrap_or(0) + noise;
            cpus.push((self.coloring.former[place] != Some(cpu), load, cpu));
        }
        cpus.sort_unstable();
        for (.., cpu) in cpus {
            self.steps += 1;
            if self.is_over() {
                return false;
            }
            self.found[place] = Some(cpu);
            *self.load.entry(cpu).or_insert(0) += needed;
            if self.run() {
                return true;
            }
            self.found[place] = None;
            *self.load.entry(cpu).or_insert(0) -= needed;
        }
        false
    }

    fn is_over(&self) -> bool {
        self.steps >= STEPS || self.clock.is_over()
    }

    /// Returns the CPUs that no task has that is apart from this one.
    fn left(&self, place: usize) -> Vec<u32> {
        let taken = |cpu: u32| self.coloring.others[place].iter().any(|&other| self.found[other] == Some(cpu));
        self.coloring.allowed[place].as_slice().iter().copied().filter(|&cpu| !taken(cpu)).collect()
    }
}

/// Returns the share of a CPU that a task needs, in parts of a million.
fn load(system: &System, task: usize) -> i64 {
    let task = &system.tasks[task];
    (i128::from(task.wcet.as_nanos()) * 1_000_000 / i128::from(task.period.as_nanos().max(1))) as i64
}
