//! Windows of a former plan that stay where they are.
//!
//! The solver treats them like sync windows: they are taken before anything else. A table of another cycle can have them
//! too, if they repeat with a common divisor of both cycles.

use std::collections::{BTreeMap, BTreeSet};

use macrotick_model::{CpuTable, Duration, Plan};

use crate::demand::Demand;
use crate::graph::Edge;
use crate::insert::Window;
use crate::occupancy::Occupancy;
use crate::table::Piece;

/// An interval of a CPU that repeats. It can extend over the end of what it repeats with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    start: Duration,
    cpu: u32,
    length: Duration,
    activate: bool,
    deadline: bool,
}

impl Place {
    fn end(&self) -> Duration {
        self.start + self.length
    }
}

/// The windows of a task or a pool, which repeat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Repeated {
    every: Duration,
    places: Vec<Place>,
}

/// The windows of tasks and pools, by name.
pub(crate) type Windows = BTreeMap<String, Repeated>;

/// Returns all windows of a plan.
pub(crate) fn windows(plan: &Plan) -> Windows {
    windows_of(&plan.tables, plan.cycle)
}

/// Returns all windows of tables.
pub(crate) fn windows_of(tables: &[CpuTable], cycle: Duration) -> Windows {
    let mut windows = Windows::new();
    for table in tables {
        for window in &table.windows {
            let place = Place {
                start: window.offset,
                cpu: table.cpu,
                length: window.length,
                activate: window.activate,
                deadline: window.deadline,
            };
            let empty = || Repeated { every: cycle, places: Vec::new() };
            windows.entry(window.task.clone()).or_insert_with(empty).places.push(place);
        }
    }
    windows.values_mut().for_each(Repeated::join_over_the_end);
    windows
}

impl Repeated {
    /// Joins windows that meet at the end of the cycle, and sorts all.
    fn join_over_the_end(&mut self) {
        self.places.sort_unstable();
        let first: Vec<usize> = (0..self.places.len()).filter(|&at| self.places[at].start == Duration::ZERO).collect();
        for at in first.into_iter().rev() {
            let Place { cpu, length, activate, deadline, .. } = self.places[at];
            let meets = |place: &Place| place.cpu == cpu && place.end() == self.every && !place.deadline && !activate;
            if let Some(last) = self.places.iter().rposition(meets).filter(|&last| last != at) {
                self.places[last].length += length;
                self.places[last].deadline = deadline;
                self.places.remove(at);
            }
        }
    }

    fn repeats_with(&self, every: Duration) -> bool {
        let times = (self.every / every) as usize;
        let count = self.places.len() / times.max(1);
        let next = |at: usize| self.places.get(at + count);
        let later = |place: &Place| Place { start: place.start + every, ..*place };
        self.every.is_multiple_of(every)
            && self.places.len() % times == 0
            && (0..self.places.len() - count).all(|at| next(at) == Some(&later(&self.places[at])))
    }

    /// Returns the same windows as they repeat in another cycle: with the period if possible, or else with the common
    /// divisor of the cycles.
    pub fn within(&self, cycle: Duration, period: Duration) -> Option<Repeated> {
        let common = self.every.gcd(cycle);
        let every =
            [period, common].into_iter().find(|&every| common.is_multiple_of(every) && self.repeats_with(every));
        let of = |every| self.places.iter().copied().filter(|place| place.start < every).collect();
        every.filter(|every| every.is_multiple_of(period)).map(|every| Repeated { every, places: of(every) })
    }

    /// Returns the CPUs.
    pub fn cpus(&self) -> impl Iterator<Item = u32> + '_ {
        self.places.iter().map(|place| place.cpu)
    }

    /// Returns the number of windows in a cycle.
    pub fn count(&self, cycle: Duration) -> i64 {
        self.places.len() as i64 * (cycle / self.every)
    }

    /// Returns the number of windows in a cycle that the former windows do not have. If the cycle is not a multiple of the
    /// former one, all count.
    pub fn others(&self, former: &Repeated) -> i64 {
        if !self.every.is_multiple_of(former.every) {
            return self.places.len() as i64;
        }
        let at = |place: &Place| (place.cpu, place.start % former.every, place.length);
        let known: BTreeSet<_> = former.places.iter().map(at).collect();
        self.places.iter().filter(|place| !known.contains(&at(place))).count() as i64
    }

    /// Whether all windows begin and end on a grid.
    pub fn is_on(&self, grid: Duration) -> bool {
        self.places.iter().all(|place| place.start.is_multiple_of(grid) && place.length.is_multiple_of(grid))
    }

    /// Returns start, end and CPU of the windows of each cycle with the leads before jobs, which can begin before it.
    pub fn busy(&self, cycle: Duration, lead: Duration) -> impl Iterator<Item = (Duration, Duration, u32)> + '_ {
        let turns = (0..cycle / self.every).map(|turn| self.every * turn);
        turns.flat_map(move |turn| {
            self.places.iter().map(move |place| {
                let lead = if place.activate { lead } else { Duration::ZERO };
                (place.start + turn - lead, place.end() + turn, place.cpu)
            })
        })
    }

    /// Returns the start and the end of each job of a cycle.
    pub fn spans(&self, cycle: Duration, demand: &Demand) -> impl Iterator<Item = (Duration, Duration)> {
        let (every, jobs) = (self.every, self.jobs(demand));
        let turns = (0..cycle / every).map(move |turn| every * turn);
        turns.flat_map(move |turn| jobs.clone().into_iter().map(move |(start, end)| (start + turn, end + turn)))
    }

    /// Returns the start and the end of each job, by its number from the first release on. Pools have none.
    pub fn jobs(&self, demand: &Demand) -> Vec<(Duration, Duration)> {
        let count = self.every / demand.period;
        let mut jobs = vec![None; count as usize];
        let first = self.places.iter().position(|place| place.activate);
        let mut order = self.places.clone();
        let Some(first) = first else { return Vec::new() };
        order.rotate_left(first);
        let behind = order.len() - first;
        order[behind..].iter_mut().for_each(|place| place.start += self.every);
        let mut present: Option<(usize, Duration)> = None;
        for place in order {
            if place.activate {
                let number = (place.start - demand.release()).as_nanos().div_euclid(demand.period.as_nanos());
                let turn = self.every * (-number.div_euclid(count));
                let number = number.rem_euclid(count) as usize;
                jobs[number] = Some((place.start + turn, place.end() + turn));
                present = Some((number, turn));
            } else if let Some((number, turn)) = present {
                jobs[number] = jobs[number].map(|(start, _)| (start, place.end() + turn));
            }
        }
        jobs.into_iter().collect::<Option<_>>().unwrap_or_default()
    }
}

/// The windows that stay, by the indices of a problem.
#[derive(Clone, Debug, Default)]
pub(crate) struct Frozen {
    tasks: Vec<Option<Held>>,
    /// The pieces of each CPU in one cycle, sorted.
    pieces: Vec<Vec<Piece>>,
}

#[derive(Clone, Debug)]
struct Held {
    windows: Repeated,
    jobs: Vec<(Duration, Duration)>,
}

impl Frozen {
    /// Selects the windows of these tasks and pools.
    pub fn new(windows: &Windows, demands: &[Demand], cpus: &[u32], cycle: Duration) -> Frozen {
        let mut frozen = Frozen { tasks: Vec::new(), pieces: vec![Vec::new(); cpus.len()] };
        for (task, demand) in demands.iter().enumerate() {
            let windows = windows.get(&demand.name).cloned();
            let held = windows.map(|windows| Held { jobs: windows.jobs(demand), windows });
            frozen.tasks.push(held);
            for Window { start, length, cpu, activate, deadline } in frozen.all_of(task, cpus, cycle) {
                let start = start % cycle;
                let here = length.min(cycle - start);
                let rest = length - here;
                let piece = |start, length, activate, deadline| Piece { start, length, task, activate, deadline };
                let whole = rest == Duration::ZERO;
                frozen.pieces[cpu].push(piece(start, here, activate, deadline && whole));
                if !whole {
                    frozen.pieces[cpu].push(piece(Duration::ZERO, rest, false, deadline));
                }
            }
        }
        frozen.pieces.iter_mut().for_each(|pieces| pieces.sort_by_key(|piece| piece.start));
        frozen
    }

    /// Whether the windows of a task stay.
    pub fn has(&self, task: usize) -> bool {
        self.tasks[task].is_some()
    }

    /// Returns the pieces of each CPU in one cycle, sorted.
    pub fn pieces(&self) -> &[Vec<Piece>] {
        &self.pieces
    }

    /// Returns all windows of a task in a cycle, sorted.
    pub fn all_of(&self, task: usize, cpus: &[u32], cycle: Duration) -> Vec<Window> {
        let Some(Held { windows, .. }) = &self.tasks[task] else { return Vec::new() };
        let index = |place: &Place| cpus.iter().position(|&cpu| cpu == place.cpu).unwrap_or(0);
        let turns = (0..cycle / windows.every).map(|turn| windows.every * turn);
        let all = turns.flat_map(|turn| {
            windows.places.iter().map(move |place| {
                let (start, cpu) = (place.start + turn, index(place));
                Window { start, length: place.length, cpu, activate: place.activate, deadline: place.deadline }
            })
        });
        all.collect()
    }

    /// Returns the index of the first CPU of a task.
    pub fn cpu(&self, task: usize, cpus: &[u32]) -> Option<usize> {
        let first = self.tasks[task].as_ref()?.windows.places.first()?.cpu;
        cpus.iter().position(|&cpu| cpu == first)
    }

    /// Returns the time of the windows on each CPU in one cycle, with the leads before jobs.
    pub fn time(&self, demands: &[Demand]) -> Vec<Duration> {
        let lead = |piece: &Piece| if piece.activate { demands[piece.task].lead } else { Duration::ZERO };
        let time = |pieces: &Vec<Piece>| pieces.iter().map(|piece| piece.length + lead(piece)).sum();
        self.pieces.iter().map(time).collect()
    }

    /// Returns the windows on a CPU, as start with lead, length with lead, and the time with which they repeat.
    pub fn on(&self, cpu: u32, lead: Duration) -> impl Iterator<Item = (Duration, Duration, Duration)> + '_ {
        self.tasks.iter().flatten().flat_map(move |held| {
            let here = held.windows.places.iter().filter(move |place| place.cpu == cpu);
            here.map(move |place| {
                let lead = if place.activate { lead } else { Duration::ZERO };
                (place.start + held.windows.every - lead, place.length + lead, held.windows.every)
            })
        })
    }

    /// Returns the jobs of a task, as start, length and the time with which they repeat.
    pub fn spans(&self, task: usize) -> impl Iterator<Item = (Duration, Duration, Duration)> + '_ {
        self.tasks[task].iter().flat_map(|held| {
            let every = held.windows.every;
            // The start counts from a release, which can be far from the start of the cycle.
            let within = move |start: Duration| start - every * start.as_nanos().div_euclid(every.as_nanos());
            held.jobs.iter().map(move |&(start, end)| (within(start), end - start, every))
        })
    }

    /// Takes the windows on a CPU.
    pub fn take(&self, occupancy: &mut Occupancy, cpu: u32, lead: Duration) {
        self.on(cpu, lead).for_each(|(start, length, every)| occupancy.take(start, length, every));
    }

    /// Returns start and end of a job of a task, by its number from the first release on.
    pub fn job(&self, task: usize, number: i64) -> Option<(Duration, Duration)> {
        let held = self.tasks[task].as_ref()?;
        let count = held.jobs.len() as i64;
        if count == 0 {
            return None;
        }
        let (start, end) = held.jobs[number.rem_euclid(count) as usize];
        let turn = held.windows.every * number.div_euclid(count);
        Some((start + turn, end + turn))
    }

    /// Returns the latest end of the first job of an edge in its windows, counted from the start of the window.
    pub fn latest_end(&self, edge: &Edge, period: Duration, cycle: Duration) -> Option<Duration> {
        self.jobs_of(edge.from, edge.from_lane, edge, period, cycle).map(|(_, end)| end).max()
    }

    /// Returns the earliest start of the second job of an edge in its windows, counted from the start of the window.
    pub fn earliest_start(&self, edge: &Edge, period: Duration, cycle: Duration) -> Option<Duration> {
        self.jobs_of(edge.to, edge.to_lane, edge, period, cycle).map(|(start, _)| start).min()
    }

    fn jobs_of<'f>(
        &'f self,
        task: usize,
        lane: i64,
        edge: &Edge,
        period: Duration,
        cycle: Duration,
    ) -> impl Iterator<Item = (Duration, Duration)> + 'f {
        let (window, lanes) = (edge.window, edge.window / period);
        (0..cycle / window).filter_map(move |number| {
            let (start, end) = self.job(task, number * lanes + lane)?;
            Some((start - window * number, end - window * number))
        })
    }
}
