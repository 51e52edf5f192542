//! Systems that certainly have no table, each because of one conflict in an otherwise easy system.

use macrotick_model::{Chain, Duration, System, Task};

use crate::kinds::{automotive, system, tasks, Jitter, Size};
use crate::Random;

/// The kind of a conflict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conflict {
    /// All tasks together need more than all CPUs have.
    Overload,
    /// The tasks that are pinned to one CPU need more than it has.
    Pinned,
    /// Three tasks need more than half of one of two CPUs each.
    Packing,
    /// Two tasks with the same release need more than their deadlines allow.
    Deadline,
    /// The bound of a chain is shorter than the slowest period and the work.
    Chain,
    /// Two tasks must start at the same instant on one CPU.
    Starts,
    /// A job without preemption is longer than the time between two jobs of another task on its CPU.
    Whole,
}

impl Conflict {
    /// All kinds.
    pub const ALL: [Conflict; 7] = [
        Conflict::Overload,
        Conflict::Pinned,
        Conflict::Packing,
        Conflict::Deadline,
        Conflict::Chain,
        Conflict::Starts,
        Conflict::Whole,
    ];
}

/// Makes a system with this conflict.
pub fn infeasible(seed: u64, conflict: Conflict) -> System {
    let random = &mut Random::new(seed ^ 0x55);
    let size = Size { tasks: random.between(10, 60) as usize, cpus: 2, load: 30 };
    let mut base = system("infeasible", seed, size, tasks(random, size, Jitter::Free, automotive));
    let ms = Duration::from_millis;
    let period = random.one(&[10, 20, 50]);
    let task = |name: &str, wcet: Duration| Task::named(name, ms(period), wcet);
    let part = |percent: i64| Duration::from_micros(period * 10 * percent);
    match conflict {
        Conflict::Overload => {
            let share = random.between(81, 85);
            base.tasks.extend(["x", "y"].map(|name| task(name, part(share))));
        }
        Conflict::Pinned => {
            let share = random.between(33, 40);
            base.tasks.extend(["x", "y", "z"].map(|name| Task { cpu: Some(1), ..task(name, part(share)) }));
        }
        Conflict::Packing => {
            // The load of both CPUs is less than 95 %.
            base.tasks.truncate(5);
            base.tasks.iter_mut().for_each(|task| task.wcet = Duration::from_micros(10));
            let share = random.between(48, 60);
            base.tasks.extend(["x", "y", "z"].map(|name| task(name, part(share))));
        }
        Conflict::Deadline => {
            let share = random.between(15, 24);
            let urgent = |name: &str| Task { cpu: Some(0), deadline: part(share * 2 - 1), ..task(name, part(share)) };
            base.tasks.extend(["x", "y"].map(urgent));
        }
        Conflict::Chain => {
            base.tasks.extend(["x", "y", "z"].map(|name| task(name, part(5))));
            let path = ["x", "y", "z"].map(String::from).to_vec();
            let bound = ms(period) + part(random.between(1, 14));
            base.chains.push(Chain { reaction: Some(bound), ..Chain::named("chain", path) });
        }
        Conflict::Whole => {
            // Two jobs of the fast task are at most 1.4 of its periods apart.
            let fast = Task { cpu: Some(0), deadline: part(60), ..task("fast", part(10)) };
            let long = Duration::from_micros(period * random.between(1405, 1500));
            let whole = Task { cpu: Some(0), preemptible: Some(false), ..Task::named("whole", ms(period * 4), long) };
            base.tasks.extend([fast, whole]);
        }
        Conflict::Starts => {
            let offset = Duration::from_micros(random.between(0, period * 500));
            let fixed = |name: &str| Task {
                cpu: Some(0),
                offset: Some(offset),
                jitter: Some(Duration::ZERO),
                ..task(name, part(10))
            };
            base.tasks.extend(["x", "y"].map(fixed));
        }
    }
    random.shuffle(&mut base.tasks);
    base
}
