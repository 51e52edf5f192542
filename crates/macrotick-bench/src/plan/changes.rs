//! Changes of plans: new tasks for a system that has a plan.

use std::time::{Duration as WallTime, Instant};

use macrotick_generate::{with_jitter, zero_jitter, Jitter, Size};
use macrotick_model::{Duration, System, Task};
use macrotick_plan::{plan_changed, plan_within, Change, Moved, Options, Solver, Unwatched};
use macrotick_report::Figure;

use crate::error::BenchError;
use crate::kit::scale::Scale;

/// Systems of one kind and size, and the number of tasks that are new.
pub struct Cell {
    name: String,
    count: u64,
    new: usize,
    system: Systems,
}

/// Makes the system of a seed.
type Systems = Box<dyn Fn(u64) -> System>;

/// The outcome of a row.
#[derive(Default)]
pub struct Outcome {
    systems: u64,
    planned: u64,
    /// The plans in which no window moved.
    unmoved: u64,
    /// For each plan, the share of the former windows that moved, in percent.
    moved: Vec<f64>,
    /// The time of each change.
    times: Vec<WallTime>,
}

/// The time limit of a plan and of a change.
const LIMIT: WallTime = WallTime::from_secs(10);

/// Returns all rows.
pub fn cells(scale: Scale) -> Vec<Cell> {
    let sizes = [
        (Size { tasks: 100, cpus: 2, load: 60 }, 1, scale.of(40, 1), "one new task"),
        (Size { tasks: 1000, cpus: 4, load: 72 }, 100, scale.of(10, 1), "100 new tasks"),
    ];
    let cell = |(size, new, count, what): (Size, usize, u64, &str)| {
        let kinds: [(&str, Systems); 3] = [
            ("free", Box::new(move |seed| with_jitter(seed, size, Jitter::Free))),
            ("jitter p/5", Box::new(move |seed| with_jitter(seed, size, Jitter::Part(5)))),
            ("zero jitter", Box::new(move |seed| zero_jitter(seed, size))),
        ];
        let Size { tasks, cpus, load } = size;
        kinds.map(|(kind, system)| {
            let name = format!("{what}, {kind}, {tasks} tasks, {cpus} CPUs, {load} %");
            Cell { name, count, new, system }
        })
    };
    sizes.into_iter().flat_map(cell).collect()
}

impl Cell {
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    /// Plans all systems of the row, adds the tasks, and plans the changes.
    pub fn measure(&self) -> Result<Outcome, BenchError> {
        let mut outcome = Outcome { systems: self.count, ..Outcome::default() };
        let options = Options { time_limit: LIMIT, ..Options::default() };
        for seed in 0..self.count {
            let system = (self.system)(seed);
            let Ok(from) = plan_within(&system, Solver::FoldedOccupancy, options) else { continue };
            let system = with_more(system, self.new);
            let begin = Instant::now();
            let change = Change::new(&from, &system, [], []).expect("no name is given");
            let changed = plan_changed(&system, &change, options, &Unwatched);
            outcome.times.push(begin.elapsed());
            let Ok(plan) = changed else { continue };
            let verdict = macrotick_check::check(&plan);
            if !verdict.is_feasible() {
                return Err(BenchError::Refused { system: system.name, verdict: verdict.to_string() });
            }
            let moved: i64 = Moved::between(&from, &plan).moved.iter().map(|(_, windows)| windows).sum();
            let all: usize = from.tables.iter().map(|table| table.windows.len()).sum();
            outcome.planned += 1;
            outcome.unmoved += u64::from(moved == 0);
            outcome.moved.push(moved as f64 * 100.0 / all as f64);
        }
        outcome.times.sort_unstable();
        outcome.moved.sort_unstable_by(f64::total_cmp);
        Ok(outcome)
    }
}

/// Adds tasks with the periods and jitter of others, and nine tenths of their wcets.
fn with_more(mut system: System, new: usize) -> System {
    let count = system.tasks.len();
    for number in 0..new {
        let like = system.tasks[number * 7 % count].clone();
        let wcet = Duration::from_micros((like.wcet.as_nanos() / 1000 * 9 / 10).max(10));
        system.tasks.push(Task { jitter: like.jitter, ..Task::named(format!("new-{number}"), like.period, wcet) });
    }
    system
}

impl Outcome {
    fn median<T: Copy + Default>(sorted: &[T]) -> T {
        sorted.get(sorted.len() / 2).copied().unwrap_or_default()
    }

    /// Returns the row of the table.
    pub fn row(&self, name: &str) -> String {
        let ms = |time: WallTime| time.as_secs_f64() * 1e3;
        let (median, longest) = (ms(Self::median(&self.times)), ms(self.times.last().copied().unwrap_or_default()));
        let (moved, most) = (Self::median(&self.moved), self.moved.last().copied().unwrap_or_default());
        format!(
            "| {name} | {} | {} | {} | {moved:.1} | {most:.1} | {median:.1} | {longest:.1} |\n",
            self.systems, self.planned, self.unmoved
        )
    }

    /// Returns the numbers of the row.
    pub fn figures(&self, case: &str) -> Vec<Figure> {
        let figure = |figure: &str, value: f64, unit: &str| Figure::new(figure, case, value, unit);
        vec![
            figure("change planned", self.planned as f64, "systems"),
            figure("change without a moved window", self.unmoved as f64, "systems"),
            figure("moved windows.median", Self::median(&self.moved), "%"),
            figure("change time.median", Self::median(&self.times).as_secs_f64() * 1e3, "ms"),
            figure("change time.longest", self.times.last().copied().unwrap_or_default().as_secs_f64() * 1e3, "ms"),
        ]
    }
}

/// The head of the table.
pub const HEAD: &str = "| changes | number | planned | nothing moved | moved [%] | most moved [%] | median [ms] | \
                        longest [ms] |\n|---|---:|---:|---:|---:|---:|---:|---:|\n";
