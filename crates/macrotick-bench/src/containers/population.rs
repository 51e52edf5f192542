//! The groups and threads of the picks and refills that are measured (figure 5 of the paper).

use macrotick_model::SplitMix64;

use crate::kit::process;

/// The number of threads of each group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Population {
    /// The name in tables.
    pub title: String,
    /// The threads of each group.
    pub threads: Vec<u32>,
}

/// A thread of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thread {
    /// The priority within its group.
    pub priority: u32,
    /// The period; `None` if the thread never sleeps.
    pub period_us: Option<u64>,
}

/// Threads of each group that never sleep. They exhaust its budget in every period.
const HOGS: u32 = 2;
/// The least and the greatest number of groups of a mixed population.
const GROUPS: (u64, u64) = (2, 6);
const THREADS: (u64, u64) = (2, 7);
const MIXED: u64 = 5;
/// The share of all budgets together, in thousandths of a CPU.
const SHARE: u32 = 850;
/// Shortest and longest period of a thread that sleeps.
const PERIODS_US: (f64, f64) = (2_000.0, 20_000.0);

impl Population {
    /// Returns the paper's populations: two groups of three threads, four of six, six of nine, and mixed ones.
    pub fn all() -> Vec<Population> {
        let even = |groups: u32, threads: u32| Population {
            title: format!("{groups} x {threads}"),
            threads: vec![threads; groups as usize],
        };
        let mixed = |seed: u64| {
            let mut random = SplitMix64::new(seed);
            let groups = between(&mut random, GROUPS);
            let threads: Vec<u32> = (0..groups).map(|_| between(&mut random, THREADS) as u32).collect();
            Population { title: format!("mixed {seed}"), threads }
        };
        [even(2, 3), even(4, 6), even(6, 9)].into_iter().chain((1..=MIXED).map(mixed)).collect()
    }

    /// Returns the word of the guest's command line for this population.
    pub fn word(&self) -> String {
        self.threads.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
    }

    /// Parses a word of [`Population::word`].
    pub fn from_word(word: &str) -> Result<Population, String> {
        let threads = word.split(',').map(process::number).collect::<Result<_, _>>()?;
        Ok(Population { title: word.into(), threads })
    }

    /// Returns the budget of each group, in microseconds.
    pub fn budget_us(&self, period_us: u32) -> u32 {
        period_us * SHARE / 1000 / self.threads.len() as u32
    }

    /// Returns the threads of a group.
    pub fn threads_of(&self, group: usize) -> Vec<Thread> {
        let mut random = SplitMix64::new(group as u64 + 1);
        let thread = |i: u32| match i < HOGS {
            true => Thread { priority: 1, period_us: None },
            false => Thread { priority: 1 + i, period_us: Some(log_uniform(&mut random, PERIODS_US)) },
        };
        (0..self.threads[group]).map(thread).collect()
    }
}

/// Returns a random number of a range, both ends included.
fn between(random: &mut SplitMix64, (least, most): (u64, u64)) -> u64 {
    least + random.bits() % (most - least + 1)
}

fn log_uniform(random: &mut SplitMix64, (least, most): (f64, f64)) -> u64 {
    let part = random.bits() as f64 / u64::MAX as f64;
    (least * (most / least).powf(part)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn populations_survive_the_command_line() {
        for population in Population::all() {
            assert_eq!(Population::from_word(&population.word()).unwrap().threads, population.threads);
        }
        assert!(Population::from_word("2,x").is_err());
    }

    #[test]
    fn budgets_fit_and_threads_are_as_wanted() {
        let all = Population::all();
        assert_eq!(all[2].threads, [9; 6]);
        for population in &all {
            let budget = population.budget_us(2500);
            assert!(budget * population.threads.len() as u32 <= 2375 && budget >= 300);
            for (group, &count) in population.threads.iter().enumerate() {
                let threads = population.threads_of(group);
                assert_eq!(threads.len(), count as usize);
                assert_eq!(threads.iter().filter(|thread| thread.period_us.is_none()).count(), 2);
                assert!(threads.iter().filter_map(|thread| thread.period_us).all(|us| (2000..=20_000).contains(&us)));
            }
        }
        assert!(all.iter().skip(3).any(|one| one.threads.len() != all[3].threads.len()));
    }
}
