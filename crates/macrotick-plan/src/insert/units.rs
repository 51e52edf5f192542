//! The units of a table: jobs, or tasks on a phase.

use std::collections::{BTreeMap, BTreeSet};

use macrotick_model::{Duration, SyncWindow};

use crate::folded::Problem;

/// A number that no task has: sync windows.
const NO_TASK: usize = usize::MAX;

/// Some windows that move together.
#[derive(Clone, Debug)]
pub(super) struct Unit {
    pub task: usize,
    /// The index of its CPU.
    pub cpu: usize,
    /// The CPUs of its windows, if it has several.
    pub cpus: Vec<usize>,
    /// The time with which its windows repeat: the cycle for a job, the period for a task on a phase.
    pub every: Duration,
    /// The release of the job, or of job 0.
    pub release: Duration,
    /// The earliest and the latest start.
    pub starts: (Duration, Duration),
    /// The end of the last window at the latest, beside the limits of its demand.
    pub until: Duration,
    pub lead: Duration,
    /// Start and length of its windows.
    pub windows: Vec<(Duration, Duration)>,
    pub is_movable: bool,
    /// The windows of the former plan.
    pub home: Vec<(Duration, Duration)>,
    /// Whether it has them.
    pub is_home: bool,
    /// How often it was ejected.
    pub ejected: u64,
}

/// All units.
pub(super) struct Units {
    pub all: Vec<Unit>,
}

impl Unit {
    /// Returns the unit of a task on a phase, without windows.
    pub fn phase(problem: &Problem, task: usize, cpu: usize) -> Unit {
        let demand = &problem.demands[task];
        let (earliest, latest) = demand.starts();
        let (head, last) = neighbours(problem, task);
        Unit {
            task,
            cpu,
            cpus: Vec::new(),
            every: demand.period,
            release: demand.release(),
            starts: (head.map_or(earliest, |head| earliest.max(head)), latest.min(last - demand.wcet)),
            until: last,
            lead: demand.lead,
            windows: Vec::new(),
            home: Vec::new(),
            is_movable: true,
            is_home: false,
            ejected: 0,
        }
    }

    /// Returns the jobs of a task, without windows.
    pub fn jobs(problem: &Problem, task: usize, cpu: usize) -> Vec<Unit> {
        let demand = &problem.demands[task];
        let (head, last) = neighbours(problem, task);
        let job = |number: i64| {
            let shift = demand.period * number;
            let release = demand.release() + shift;
            let latest = release + demand.deadline - demand.wcet;
            let latest = demand.jitter.map_or(latest, |jitter| latest.min(release + jitter));
            let until = last.checked_add(shift).unwrap_or(last);
            Unit {
                every: problem.cycle,
                release,
                starts: (head.map_or(release, |head| release.max(head + shift)), latest.min(until - demand.wcet)),
                until,
                ..Unit::phase(problem, task, cpu)
            }
        };
        (0..problem.cycle / demand.period).map(job).collect()
    }

    pub fn is_sync(&self) -> bool {
        self.task == NO_TASK
    }

    /// Returns the index of the CPU of a window.
    pub fn cpu_of(&self, window: usize) -> usize {
        self.cpus.get(window).copied().unwrap_or(self.cpu)
    }

    /// Calls `each` with CPU, start and length of each window in a cycle, the lead included.
    pub fn each(&self, cycle: Duration, each: &mut dyn FnMut(usize, Duration, Duration)) {
        for turn in 0..cycle / self.every {
            for (index, &(start, length)) in self.windows.iter().enumerate() {
                let lead = if index == 0 { self.lead } else { Duration::ZERO };
                each(self.cpu_of(index), start + self.every * turn - lead, length + lead);
            }
        }
    }
}

/// Returns the earliest start of job 0 behind the tasks before it, and the latest end before the tasks behind it. Only
/// those with frozen windows count.
fn neighbours(problem: &Problem, task: usize) -> (Option<Duration>, Duration) {
    let demand = &problem.demands[task];
    let graph = &problem.graph;
    let period = |task: usize| problem.demands[task].period;
    let ends = graph.into(task).iter().filter_map(|edge| {
        let end = problem.frozen.latest_end(edge, period(edge.from), problem.cycle)?;
        Some(end - demand.period * edge.to_lane)
    });
    let starts = graph.out(task).iter().filter_map(|edge| {
        let start = problem.frozen.earliest_start(edge, period(edge.to), problem.cycle)?;
        Some(start - demand.period * edge.from_lane)
    });
    (ends.max(), starts.min().unwrap_or(Duration::from_nanos(i64::MAX / 4)))
}

impl Units {
    /// Returns the units of all frozen windows.
    pub fn of(problem: &Problem, fixed: &BTreeSet<usize>) -> Units {
        let mut units = Units { all: Vec::new() };
        for task in (0..problem.demands.len()).filter(|&task| problem.frozen.has(task)) {
            let windows = problem.frozen.all_of(task, &problem.system.cpus, problem.cycle);
            let cpus: BTreeSet<usize> = windows.iter().map(|window| window.cpu).collect();
            let is_movable = cpus.len() == 1 && !fixed.contains(&task) && !problem.graph.has(task);
            units.add_task(problem, task, &windows, is_movable);
        }
        units
    }

    pub fn add(&mut self, unit: Unit) -> usize {
        self.all.push(unit);
        self.all.len() - 1
    }

    /// Adds the sync windows of a CPU.
    pub fn add_sync(&mut self, cpu: usize, sync: &SyncWindow) -> usize {
        self.add(Unit {
            task: NO_TASK,
            cpu,
            cpus: Vec::new(),
            every: sync.period,
            release: Duration::ZERO,
            starts: (Duration::ZERO, Duration::ZERO),
            until: sync.period,
            lead: Duration::ZERO,
            windows: vec![(sync.offset, sync.length)],
            home: Vec::new(),
            is_movable: false,
            is_home: true,
            ejected: 0,
        })
    }

    /// Adds the units of a task with these windows, which are sorted.
    fn add_task(&mut self, problem: &Problem, task: usize, windows: &[Window], is_movable: bool) {
        let demand = &problem.demands[task];
        let cpu = windows.first().map_or(0, |window| window.cpu);
        let jobs = by_job(problem, task, windows);
        let mut home = |unit: Unit, windows: &[Window], is_movable: bool| {
            let cpus = if is_movable { Vec::new() } else { windows.iter().map(|window| window.cpu).collect() };
            let windows: Vec<_> = windows.iter().map(|window| (window.start, window.length)).collect();
            self.all.push(Unit { home: windows.clone(), windows, cpus, is_movable, is_home: true, ..unit });
        };
        let alike = |jobs: &BTreeMap<i64, Vec<Window>>| {
            let first = jobs.get(&0).filter(|first| first.len() == 1).map(|first| first[0]);
            first.filter(|first| {
                let at = |number: i64| Window { start: first.start + demand.period * number, ..*first };
                jobs.iter().all(|(&number, windows)| windows[..] == [at(number)])
            })
        };
        let on_phase = demand.jitter.is_some_and(|jitter| jitter == Duration::ZERO || demand.offset.is_none());
        match (on_phase, alike(&jobs)) {
            (true, Some(first)) => home(Unit::phase(problem, task, cpu), &[first], is_movable),
            (true, None) => jobs.values().for_each(|windows| {
                home(Unit { every: problem.cycle, ..Unit::phase(problem, task, cpu) }, windows, false)
            }),
            (false, _) => {
                let units = Unit::jobs(problem, task, cpu);
                for (number, windows) in &jobs {
                    home(units[*number as usize].clone(), windows, is_movable);
                }
            }
        }
    }
}

/// A window of a cycle, on a CPU by its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub start: Duration,
    pub length: Duration,
    pub cpu: usize,
    pub activate: bool,
    pub deadline: bool,
}

/// Returns the windows of each job of a task, or of each period of a pool.
fn by_job(problem: &Problem, task: usize, windows: &[Window]) -> BTreeMap<i64, Vec<Window>> {
    let demand = &problem.demands[task];
    let count = problem.cycle / demand.period;
    let mut jobs: BTreeMap<i64, Vec<Window>> = BTreeMap::new();
    let number = |start: Duration| (start - demand.release()).as_nanos().div_euclid(demand.period.as_nanos());
    if demand.is_pool() {
        for window in windows {
            let (mut start, end) = (window.start, window.start + window.length);
            while start < end {
                let until = end.min(demand.period * (number(start) + 1));
                let turn = problem.cycle * number(start).div_euclid(count);
                let part = Window { start: start - turn, length: until - start, ..*window };
                jobs.entry(number(start).rem_euclid(count)).or_default().push(part);
                start = until;
            }
        }
        jobs.values_mut().for_each(|windows| windows.sort_by_key(|window| window.start));
        return jobs;
    }
    let first = windows.iter().position(|window| window.activate).unwrap_or(0);
    let mut present = (0, Duration::ZERO);
    for (at, window) in windows[first..].iter().chain(&windows[..first]).enumerate() {
        let start = if at < windows.len() - first { window.start } else { window.start + problem.cycle };
        if window.activate {
            present = (number(start).rem_euclid(count), problem.cycle * number(start).div_euclid(count));
        }
        jobs.entry(present.0).or_default().push(Window { start: start - present.1, ..*window });
    }
    jobs
}
