//! Systems that certainly have a table, because they are cut out of one.

use macrotick_model::{Duration, System, Task};

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
