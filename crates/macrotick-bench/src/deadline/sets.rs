//! Random task sets (section 4.2 of the paper), and their analysis.

use macrotick_analysis::deadline::{demand, density_test, tardiness_bounds, Processor, Task as Reserved};
use macrotick_model::{Duration, SplitMix64};

use crate::kit::draw::{bounded_shares, log_uniform};

/// Shortest and longest period.
const PERIODS_US: (f64, f64) = (10_000.0, 100_000.0);
/// The unit of periods: all are multiples.
const GRID_US: f64 = 100.0;
/// The shortest execution time. It is several times the time in which a task notices that its job is complete.
const LEAST_US: u32 = 300;
/// The greatest share of a CPU for a task. The remainder leaves room for its larger runtime.
const MOST_SHARE: f64 = 0.95;
/// The number of tasks for each CPU, if tasks stay on a CPU.
const PER_CPU: usize = 5;
/// The number of tasks for each CPU, if tasks may migrate. With fewer tasks, each one is larger.
const PER_CPU_GLOBAL: f64 = 2.5;

/// The CPUs on which tasks may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Placement {
    /// Each task on one CPU; the load is that of each CPU.
    Partitioned,
    /// Tasks on all CPUs; the load is that of all CPUs together.
    Global,
}

/// The common properties of the sets of one row of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kind {
    /// The CPUs on which the tasks may run.
    pub placement: Placement,
    /// The number of CPUs.
    pub cpus: u32,
    /// The load in percent of a CPU.
    pub load: u32,
}

/// Tasks that are released together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskSet {
    /// The kind of the set.
    pub kind: Kind,
    /// The number of the set within its kind.
    pub index: u32,
    /// The tasks.
    pub tasks: Vec<Task>,
}

/// A task: a job in each period, due at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// The task's CPU, if it stays on one.
    pub cpu: Option<u32>,
    /// The period.
    pub period_us: u32,
    /// The processor time of a job.
    pub wcet_us: u32,
}

impl Task {
    /// Returns a runtime that is slightly larger than the execution time, as in the paper: by 1 % and 50 us.
    pub fn runtime_us(&self) -> u32 {
        self.wcet_us + self.wcet_us / 100 + 50
    }

    fn reserved(&self) -> Reserved {
        let us = |us: u32| Duration::from_micros(us.into());
        Reserved::implicit(us(self.runtime_us()), us(self.period_us))
    }
}

impl TaskSet {
    /// Draws sets until the runtimes of one fit, and returns it. The same arguments always give the same set.
    pub fn draw(kind: Kind, index: u32) -> TaskSet {
        let Kind { placement, cpus, load } = kind;
        let seed = u64::from(cpus) << 48 | u64::from(load) << 32 | u64::from(index);
        let random = &mut SplitMix64::new(seed << 1 | u64::from(placement == Placement::Global));
        let load = f64::from(load) / 100.0;
        loop {
            let tasks = match placement {
                Placement::Partitioned => {
                    (0..cpus).flat_map(|cpu| draw_tasks(random, load, PER_CPU, Some(cpu))).collect()
                }
                Placement::Global => draw_tasks(random, load, (PER_CPU_GLOBAL * f64::from(cpus)) as usize, None),
            };
            let set = TaskSet { kind, index, tasks };
            if set.fits() {
                return set;
            }
        }
    }

    /// Whether the runtimes fit: on each CPU, or on all together.
    fn fits(&self) -> bool {
        let share = |task: &Task| f64::from(task.runtime_us()) / f64::from(task.period_us);
        let bandwidth = |cpu: Option<u32>| self.tasks.iter().filter(|task| task.cpu == cpu).map(share).sum::<f64>();
        match self.kind.placement {
            Placement::Partitioned => (0..self.kind.cpus).all(|cpu| bandwidth(Some(cpu)) <= 1.0),
            Placement::Global => bandwidth(None) <= f64::from(self.kind.cpus),
        }
    }

    /// Returns the result of the analysis of the reservations.
    pub fn theory(&self) -> Theory {
        let all: Vec<Reserved> = self.tasks.iter().map(Task::reserved).collect();
        let cpus = self.kind.cpus;
        let (passes, bounds) = match self.kind.placement {
            Placement::Partitioned => ((0..cpus).all(|cpu| self.meets_demand(cpu)), None),
            Placement::Global => (
                density_test(&all, cpus).expect("tasks that were made here"),
                tardiness_bounds(&all, cpus).expect("deadlines are periods"),
            ),
        };
        let ns = |bounds: Vec<Duration>| bounds.iter().map(|bound| bound.as_nanos() as u64).collect();
        Theory { passes, bounds_ns: bounds.map(ns) }
    }

    fn meets_demand(&self, cpu: u32) -> bool {
        let here: Vec<Reserved> = self.tasks.iter().filter(|task| task.cpu == Some(cpu)).map(Task::reserved).collect();
        demand(&here, &Processor).is_ok()
    }

    /// Returns unique priorities for SCHED_FIFO, in the order of the tasks. They follow `D - k C`: the least value has
    /// the highest priority (Davis and Burns, RTSS 2009, equation 15). On one CPU `k` is 0, and the priorities are rate
    /// monotonic.
    pub fn priorities(&self) -> Vec<u32> {
        let m = match self.kind.placement {
            Placement::Partitioned => 1.0,
            Placement::Global => f64::from(self.kind.cpus),
        };
        let k = (m - 1.0 + (5.0 * m * m - 6.0 * m + 1.0).sqrt()) / (2.0 * m);
        let key = |task: &Task| f64::from(task.period_us) - k * f64::from(task.wcet_us);
        let mut order: Vec<usize> = (0..self.tasks.len()).collect();
        order.sort_by(|&a, &b| key(&self.tasks[a]).total_cmp(&key(&self.tasks[b])));
        let mut priorities = vec![0; self.tasks.len()];
        for (index, priority) in order.into_iter().zip((1..=90).rev()) {
            priorities[index] = priority;
        }
        priorities
    }
}

/// The result of the analysis of a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Theory {
    /// Whether a test excludes missed deadlines: by the processor demand of each CPU, or by the density test of global
    /// EDF.
    pub passes: bool,
    /// The greatest tardiness of each task's jobs under global EDF, if it is bounded.
    pub bounds_ns: Option<Vec<u64>>,
}

fn draw_tasks(random: &mut SplitMix64, load: f64, n: usize, cpu: Option<u32>) -> Vec<Task> {
    let shares = bounded_shares(random, load, n, MOST_SHARE);
    let task = |share: f64| {
        let period = (log_uniform(random, PERIODS_US.0, PERIODS_US.1) / GRID_US).round() * GRID_US;
        Task { cpu, period_us: period as u32, wcet_us: ((share * period) as u32).max(LEAST_US) }
    };
    shares.into_iter().map(task).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARTITIONED: Kind = Kind { placement: Placement::Partitioned, cpus: 4, load: 90 };
    const GLOBAL: Kind = Kind { placement: Placement::Global, cpus: 6, load: 590 };

    fn load(tasks: &[Task], of: impl Fn(&Task) -> u32) -> f64 {
        tasks.iter().map(|task| f64::from(of(task)) / f64::from(task.period_us)).sum()
    }

    #[test]
    fn a_set_has_the_load_that_was_asked_for() {
        for index in 0..20 {
            let set = TaskSet::draw(PARTITIONED, index);
            assert_eq!(set, TaskSet::draw(PARTITIONED, index), "drawn twice");
            for cpu in 0..4 {
                let here: Vec<Task> = set.tasks.iter().filter(|task| task.cpu == Some(cpu)).copied().collect();
                assert!(here.len() == 5 && (load(&here, |task| task.wcet_us) - 0.9).abs() < 0.03);
            }
            let set = TaskSet::draw(GLOBAL, index);
            assert!(set.tasks.len() == 15 && set.tasks.iter().all(|task| task.cpu.is_none()));
            assert!((load(&set.tasks, |task| task.wcet_us) - 5.9).abs() < 0.03);
            let periods = set.tasks.iter().map(|task| task.period_us);
            assert!(periods.clone().all(|us| (10_000..=100_000).contains(&us) && us % 100 == 0), "{periods:?}");
        }
        assert_ne!(TaskSet::draw(GLOBAL, 0).tasks, TaskSet::draw(GLOBAL, 1).tasks);
    }

    #[test]
    fn reservations_are_slightly_larger_and_fit() {
        for index in 0..20 {
            let set = TaskSet::draw(GLOBAL, index);
            assert!(set
                .tasks
                .iter()
                .all(|task| task.wcet_us < task.runtime_us() && task.runtime_us() < task.period_us));
            assert!(load(&set.tasks, Task::runtime_us) <= 6.0);
            let theory = set.theory();
            assert!(!theory.passes, "no set of that load does");
            assert!(theory.bounds_ns.unwrap().iter().all(|&bound| bound > 0));
            assert!(TaskSet::draw(PARTITIONED, index).theory().passes);
        }
    }

    #[test]
    fn long_tasks_come_first_on_many_cpus() {
        let kind = Kind { placement: Placement::Global, cpus: 4, load: 200 };
        let task = |period_us, wcet_us| Task { cpu: None, period_us, wcet_us };
        let tasks = vec![task(10_000, 1000), task(12_000, 8000), task(30_000, 1000)];
        let set = TaskSet { kind, index: 0, tasks: tasks.clone() };
        assert_eq!(set.priorities(), [89, 90, 88], "k is about 1.3");
        let kind = Kind { placement: Placement::Partitioned, ..kind };
        assert_eq!(TaskSet { kind, index: 0, tasks }.priorities(), [90, 89, 88], "rate monotonic");
    }
}
