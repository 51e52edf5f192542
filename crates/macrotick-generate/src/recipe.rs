//! Random systems after a recipe.

use macrotick_model::{Duration, System, Task};

use crate::kinds::{automotive, chained, mixed, system, Jitter, Size};
use crate::shares::{fixed_sum, shares};
use crate::Random;

/// The periods of tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Periods {
    /// Those of the automotive benchmark (WATERS 2015), 1 ms to 1 s.
    Automotive,
    /// Periods that do not divide each other, 4 ms to 60 ms.
    Mixed,
}

/// The way to draw utilisations with a given sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Draw {
    /// RandFixedSum (Emberson, Stafford and Davis, WATERS 2010).
    RandFixedSum,
    /// UUniFast-discard (Davis and Burns, RTSS 2009).
    UUniFast,
}

/// A recipe.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Recipe {
    /// The size.
    pub size: Size,
    /// The periods.
    pub periods: Periods,
    /// The utilisations.
    pub draw: Draw,
    /// The jitter bounds.
    pub jitter: Jitter,
    /// Whether chains connect tasks of one period.
    pub chains: bool,
}

/// The reason why there is no system after a recipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecipeError {
    /// The tasks cannot have so much load together.
    #[error("{tasks} tasks cannot have a load of {load} % of {cpus} CPU(s): each has at most one CPU")]
    TooMuch {
        /// The tasks.
        tasks: usize,
        /// The CPUs.
        cpus: u32,
        /// The load of each CPU in percent.
        load: u32,
    },
    /// UUniFast-discard would discard most draws.
    #[error("UUniFast discards too many draws with a mean load of {0} % of a CPU: use RandFixedSum")]
    Discards(u32),
}

/// The most mean utilisation of UUniFast-discard, in percent.
const MOST_MEAN: u32 = 40;

/// Makes a system after a recipe. The same seed and recipe always give the same one.
///
/// # Errors
///
/// [`RecipeError`]
pub fn drawn(seed: u64, recipe: &Recipe) -> Result<System, RecipeError> {
    let Recipe { size, periods, draw, jitter, chains } = *recipe;
    let Size { tasks, cpus, load } = size;
    let sum = f64::from(load) / 100.0 * f64::from(cpus);
    if sum > tasks as f64 {
        return Err(RecipeError::TooMuch { tasks, cpus, load });
    }
    let mean = (sum * 100.0 / tasks as f64) as u32;
    let random = &mut Random::new(seed ^ 0x88);
    let utilisations = match draw {
        Draw::UUniFast if mean > MOST_MEAN => return Err(RecipeError::Discards(mean)),
        Draw::UUniFast => shares(random, tasks, sum, (10.0 * sum / tasks as f64).clamp(0.8, 1.0)),
        Draw::RandFixedSum => fixed_sum(random, tasks, sum, 1.0),
    };
    let period = match periods {
        Periods::Automotive => automotive,
        Periods::Mixed => mixed,
    };
    let task = |(index, share): (usize, f64)| {
        let period = Duration::from_millis(period(random));
        // The shortest job that a window serves.
        let wcet = Duration::from_micros(((share * period.as_nanos() as f64 / 1000.0) as i64).max(10));
        Task { jitter: jitter.of(period), ..Task::named(format!("task-{index}"), period, wcet) }
    };
    let mut made: Vec<Task> = utilisations.into_iter().enumerate().map(task).collect();
    let chains = if chains { chained(random, &mut made) } else { Vec::new() };
    Ok(System { chains, ..system("drawn", seed, size, made) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recipe(tasks: usize, cpus: u32, load: u32) -> Recipe {
        let size = Size { tasks, cpus, load };
        let (periods, draw, jitter) = (Periods::Automotive, Draw::RandFixedSum, Jitter::Free);
        Recipe { size, periods, draw, jitter, chains: true }
    }

    #[test]
    fn systems_are_valid_and_have_the_load() {
        for seed in 0..50 {
            let system = drawn(seed, &recipe(40, 2, 70)).unwrap();
            assert_eq!(system.problems(), Vec::<String>::new());
            assert!(!system.chains.is_empty());
            let of = |task: &Task| task.wcet.as_nanos() as f64 / task.period.as_nanos() as f64;
            let load: f64 = system.tasks.iter().map(of).sum();
            assert!((1.38..1.45).contains(&load), "{load}");
        }
        assert_eq!(drawn(7, &recipe(9, 1, 50)).unwrap(), drawn(7, &recipe(9, 1, 50)).unwrap());
    }

    #[test]
    fn what_cannot_be_drawn_is_refused() {
        assert_eq!(drawn(1, &recipe(2, 4, 90)), Err(RecipeError::TooMuch { tasks: 2, cpus: 4, load: 90 }));
        let discards = Recipe { draw: Draw::UUniFast, ..recipe(8, 8, 95) };
        assert_eq!(drawn(1, &discards), Err(RecipeError::Discards(95)));
        assert!(drawn(1, &recipe(8, 8, 95)).is_ok());
    }
}
