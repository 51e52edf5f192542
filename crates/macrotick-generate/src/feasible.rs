//! Systems that certainly have a table, because they are cut out of one.

use macrotick_model::{Clock, Duration, SyncWindow, System, Task};

use crate::kinds::{system, Size};
use crate::Random;

/// The periods of a system in milliseconds. Each divides the next.
const PERIODS: [i64; 4] = [5, 10, 20, 40];

/// Makes harmonic tasks without jitter that fill one CPU to `load` percent with one window each.
///
/// The tasks of the shortest period take a part of each slot of that period. Those of longer periods take the rest of
/// every second, fourth or eighth slot.
pub fn harmonic(seed: u64, count: usize, load: u32) -> System {
    let random = &mut Random::new(seed ^ 0x66);
    let slots = (PERIODS[3] / PERIODS[0]) as usize;
    let slot = PERIODS[0] * 1000 * i64::from(load.min(95)) / 100;
    // The windows of each slot: the period and the length in microseconds.
    let mut tasks: Vec<(i64, i64)> = Vec::new();
    let each = slot * random.between(20, 50) / 100;
    cut(random, each, count / slots, PERIODS[0], &mut tasks);
    let mut left = vec![slot - each; slots];
    for (turn, &period) in PERIODS.iter().enumerate().skip(1) {
        let phases = 1usize << turn;
        for phase in 0..phases.min(slots) {
            let free = (phase..slots).step_by(phases).map(|slot| left[slot]).min().unwrap_or(0);
            let taken = if turn + 1 == PERIODS.len() { free } else { free * random.between(10, 50) / 100 };
            (phase..slots).step_by(phases).for_each(|slot| left[slot] -= taken);
            cut(random, taken, count / 20 + 1, period, &mut tasks);
        }
    }
    random.shuffle(&mut tasks);
    let task = |(index, &(period, length)): (usize, &(i64, i64))| Task {
        jitter: Some(Duration::ZERO),
        ..Task::named(format!("task-{index}"), Duration::from_millis(period), Duration::from_micros(length))
    };
    let tasks: Vec<Task> = tasks.iter().enumerate().map(task).collect();
    system("harmonic", seed, Size { tasks: tasks.len(), cpus: 1, load }, tasks)
}

/// Cuts a length into at most `count` windows of at least 20 us.
fn cut(random: &mut Random, length: i64, count: usize, period: i64, tasks: &mut Vec<(i64, i64)>) {
    let mut left = length;
    for index in 0..count {
        let rest = (count - index) as i64;
        let most = left - 20 * (rest - 1);
        if most < 40 {
            break;
        }
        let own = if rest == 1 { left } else { random.between(20, (2 * left / rest).clamp(20, most)) };
        left -= own;
        tasks.push((period, own));
    }
    if left >= 20 {
        tasks.push((period, left));
    }
}

/// Four kinds of harmonic periods that are hard to pack: the number of periods, and the factor from each to the next.
/// They are those of Grus, Hanen, Hanzalek: Packing-inspired algorithms for periodic scheduling problems with harmonic
/// periods, 2024.
pub const HARD: [(u32, i64); 4] = [(6, 2), (6, 3), (6, 5), (3, 20)];
/// The shortest period of such a system, and the part of it that its sync window takes, in microseconds. The rest is all
/// that the kernel gives to windows.
const SHORTEST_PERIOD: i64 = 1000;
const SYNC: i64 = 52;
/// The shortest window in microseconds. Shorter ones would make a full table easy.
const SHORTEST_WINDOW: i64 = 40;

/// Makes tasks without jitter and without preemption that fill one CPU to `permille` thousandths of the time beside its
/// sync windows. With 1000, the windows leave no gap.
pub fn full(seed: u64, (periods, factor): (u32, i64), permille: u32) -> System {
    let random = &mut Random::new(seed ^ 0x88);
    let mut tasks: Vec<(i64, i64)> = Vec::new();
    divide(random, SHORTEST_PERIOD, SHORTEST_PERIOD - SYNC, periods - 1, factor, &mut tasks);
    random.shuffle(&mut tasks);
    shrink(random, permille, &mut tasks);
    let task = |(index, &(period, length)): (usize, &(i64, i64))| Task {
        jitter: Some(Duration::ZERO),
        ..Task::named(format!("task-{index}"), Duration::from_micros(period), Duration::from_micros(length))
    };
    let tasks: Vec<Task> = tasks.iter().enumerate().map(task).collect();
    let us = Duration::from_micros;
    let sync = SyncWindow { period: us(SHORTEST_PERIOD), offset: us(0), length: us(SYNC), bound: us(2) };
    let size = Size { tasks: tasks.len(), cpus: 1, load: permille / 10 };
    System { clock: Clock::Tai(sync), preemptible: Some(false), ..system("full", seed, size, tasks) }
}

/// Divides a length in every period into windows. One of them is left to tasks of the next longer period, each with its
/// own windows in it.
fn divide(random: &mut Random, period: i64, length: i64, deeper: u32, factor: i64, tasks: &mut Vec<(i64, i64)>) {
    if length < 2 * SHORTEST_WINDOW {
        tasks.push((period, length));
        return;
    }
    let left = if deeper > 0 { random.between(length / 2, length - SHORTEST_WINDOW) } else { 0 };
    let mut own = length - left;
    while own >= 2 * SHORTEST_WINDOW && random.chance(60) {
        let cut = random.between(SHORTEST_WINDOW, own - SHORTEST_WINDOW);
        tasks.push((period, cut));
        own -= cut;
    }
    tasks.push((period, own));
    let parts = if left > 0 { factor } else { 0 };
    for _ in 0..parts {
        // About two parts of each length go on.
        let goes_on = random.below(factor as u64) < 2;
        divide(random, period * factor, left, if goes_on { deeper - 1 } else { 0 }, factor, tasks);
    }
}

/// Shortens drawn tasks by at most a fifth, until their load is as wanted.
fn shrink(random: &mut Random, permille: u32, tasks: &mut [(i64, i64)]) {
    let longest = tasks.iter().map(|task| task.0).max().unwrap_or(1);
    let mut excess = longest / SHORTEST_PERIOD * (SHORTEST_PERIOD - SYNC) * i64::from(1000 - permille) / 1000;
    for turn in 0..tasks.len() * 4 {
        let (period, length) = &mut tasks[turn % tasks.len()];
        let times = longest / *period;
        let most = (*length / 5).min(excess / times);
        if most > 0 && *length - most >= SHORTEST_WINDOW / 2 {
            let cut = random.between(1, most);
            *length -= cut;
            excess -= cut * times;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_system_has_its_load() {
        for kind in HARD {
            for (permille, seed) in [1000, 990, 986].into_iter().flat_map(|load| (0..20).map(move |seed| (load, seed)))
            {
                let system = full(seed, kind, permille);
                assert_eq!(system.problems(), [""; 0]);
                let share = |task: &Task| task.wcet.as_nanos() as f64 / task.period.as_nanos() as f64;
                let load = system.tasks.iter().map(share).sum::<f64>() * 1000.0 / (SHORTEST_PERIOD - SYNC) as f64;
                assert!((load - f64::from(permille) / 1000.0).abs() < 0.002, "{kind:?}, {seed}: {load}");
                assert!((6..=800).contains(&system.tasks.len()), "{kind:?}: {} tasks", system.tasks.len());
            }
        }
    }
}
