//! Packing of CPUs that are almost full: a complete search for few tasks, and sums that meet in the middle for many.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use macrotick_model::SplitMix64;

/// The most steps of the complete search.
const STEPS: usize = 400_000;
/// The most tasks in each half of a sum.
const HALF: usize = 13;
/// The most draws of the tasks in a sum.
const DRAWS: usize = 60;

/// The result of packing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Packed {
    /// The CPU of each task.
    Found(Vec<usize>),
    /// No assignment fits.
    Impossible,
    /// None was found.
    Unknown,
}

/// Packs tasks of these sizes into CPUs with this room. `allowed` has the CPUs of each task, in ascending order.
pub(crate) fn pack(sizes: &[i64], allowed: &[Vec<usize>], room: &[i64], random: &mut SplitMix64) -> Packed {
    let Some(Begin { free, room, found, slack, sets }) = Begin::new(sizes, allowed, room) else {
        return Packed::Impossible;
    };
    let tasks = Tasks { sizes, allowed, free: &free };
    let (alike, accept) = (alike(&sets, room.len()), &mut |_: &[usize]| Some(true));
    let mut search = Complete { tasks, alike, room: room.clone(), found, steps: 0, used: None, accept };
    match search.run(0, slack) {
        Some(true) => Packed::Found(search.found),
        Some(false) => Packed::Impossible,
        None => (0..DRAWS)
            .find_map(|_| sums(tasks, &room, &mut search.found.clone(), random))
            .map_or(Packed::Unknown, Packed::Found),
    }
}

/// Whether a packing is accepted. `None` ends the search.
pub(crate) type Accept<'a> = dyn FnMut(&[usize]) -> Option<bool> + 'a;

/// Goes through all packings until one is accepted, or through some drawn ones if there are too many. The room is the
/// same on all CPUs.
pub(crate) fn each(
    sizes: &[i64],
    allowed: &[Vec<usize>],
    room: &[i64],
    random: &mut SplitMix64,
    accept: &mut Accept,
) -> Packed {
    let Some(Begin { free, room, found, slack, sets }) = Begin::new(sizes, allowed, room) else {
        return Packed::Impossible;
    };
    let mut used = vec![0; room.len()];
    allowed.iter().filter(|cpus| cpus.len() == 1).for_each(|cpus| used[cpus[0]] += 1);
    let tasks = Tasks { sizes, allowed, free: &free };
    let alike = alike(&sets, room.len());
    let mut search = Complete { tasks, alike, room: room.clone(), found, steps: 0, used: Some(used), accept };
    match search.run(0, slack) {
        Some(true) => Packed::Found(search.found),
        Some(false) => Packed::Impossible,
        None => {
            let Complete { found, accept, .. } = search;
            let mut drawn = (0..DRAWS).filter_map(|_| sums(tasks, &room, &mut found.clone(), random));
            drawn.find(|found| accept(found) == Some(true)).map_or(Packed::Unknown, Packed::Found)
        }
    }
}

/// The begin of a packing, with the pinned tasks on their CPUs.
struct Begin<'a> {
    /// The tasks with several CPUs, the largest first.
    free: Vec<usize>,
    room: Vec<i64>,
    found: Vec<usize>,
    /// The room that remains when all tasks have theirs.
    slack: i64,
    /// The sets of CPUs of these tasks.
    sets: BTreeSet<&'a Vec<usize>>,
}

impl<'a> Begin<'a> {
    /// Returns `None` if it is obvious that no packing fits.
    fn new(sizes: &[i64], allowed: &'a [Vec<usize>], room: &[i64]) -> Option<Begin<'a>> {
        let (mut room, mut found, mut free) = (room.to_vec(), vec![0; sizes.len()], Vec::new());
        for (task, cpus) in allowed.iter().enumerate() {
            match cpus[..] {
                [] => return None,
                [cpu] => {
                    found[task] = cpu;
                    room[cpu] -= sizes[task];
                }
                _ => free.push(task),
            }
        }
        let sets: BTreeSet<&Vec<usize>> = free.iter().map(|&task| &allowed[task]).collect();
        if room.iter().any(|&room| room < 0) || sets.iter().any(|set| is_too_small(set, sizes, allowed, &room)) {
            return None;
        }
        free.sort_by_key(|&task| (Reverse(sizes[task]), task));
        let needed: i64 = free.iter().map(|&task| sizes[task]).sum();
        let slack = room.iter().sum::<i64>() - needed;
        (slack >= 0).then_some(Begin { free, room, found, slack, sets })
    }
}

/// Whether the tasks that can use only CPUs of this set need more than these have. `room` is without pinned tasks.
fn is_too_small(set: &[usize], sizes: &[i64], allowed: &[Vec<usize>], room: &[i64]) -> bool {
    let inside = |cpus: &&Vec<usize>| cpus.len() > 1 && cpus.iter().all(|cpu| set.binary_search(cpu).is_ok());
    let needed: i64 = allowed.iter().zip(sizes).filter(|(cpus, _)| inside(cpus)).map(|(_, size)| size).sum();
    needed > set.iter().map(|&cpu| room[cpu]).sum()
}

/// Returns a number for each CPU, the same for CPUs that are in the same sets.
fn alike(sets: &BTreeSet<&Vec<usize>>, cpus: usize) -> Vec<usize> {
    let of = |cpu: usize| sets.iter().map(|set| set.binary_search(&cpu).is_ok()).collect::<Vec<bool>>();
    let first = |cpu: usize| (0..cpu).find(|&other| of(other) == of(cpu)).unwrap_or(cpu);
    (0..cpus).map(first).collect()
}

/// The tasks to pack.
#[derive(Clone, Copy)]
struct Tasks<'a> {
    sizes: &'a [i64],
    allowed: &'a [Vec<usize>],
    /// Those with several CPUs, the largest first.
    free: &'a [usize],
}

impl Tasks<'_> {
    fn may(&self, task: usize, cpu: usize) -> bool {
        self.allowed[task].binary_search(&cpu).is_ok()
    }
}

/// A depth-first search, with the largest tasks first.
struct Complete<'a> {
    tasks: Tasks<'a>,
    /// See [`alike`].
    alike: Vec<usize>,
    room: Vec<i64>,
    found: Vec<usize>,
    steps: usize,
    /// The number of tasks on each CPU, if it matters which tasks share one.
    used: Option<Vec<usize>>,
    accept: &'a mut Accept<'a>,
}

impl Complete<'_> {
    /// Whether the tasks from `position` on fit. `None` if the search has taken too many steps. `slack` is the room
    /// that remains when all tasks have theirs.
    fn run(&mut self, position: usize, slack: i64) -> Option<bool> {
        let Tasks { sizes, allowed, free } = self.tasks;
        let Some(&task) = free.get(position) else {
            return (self.accept)(&self.found);
        };
        self.steps += 1;
        if self.steps > STEPS {
            return None;
        }
        let least = sizes[free[free.len() - 1]];
        // Room that is too small for every task is lost.
        let lost: i64 = self.room.iter().filter(|&&room| room < least).sum();
        if lost > slack {
            return Some(false);
        }
        let fits = |cpu: &usize| self.room[*cpu] >= sizes[task];
        let mut order: Vec<usize> = allowed[task].iter().copied().filter(fits).collect();
        order.sort_by_key(|&cpu| (self.room[cpu], self.alike[cpu], cpu));
        // CPUs with the same room are the same, if the same tasks can use them. If it matters which tasks share one, they
        // must have none.
        let filled = |cpu: usize| self.used.as_ref().filter(|used| used[cpu] > 0).map(|_| cpu);
        order.dedup_by_key(|cpu| (self.room[*cpu], self.alike[*cpu], filled(*cpu)));
        for cpu in order {
            self.put(task, cpu, -1);
            self.found[task] = cpu;
            let fits = self.run(position + 1, slack);
            self.put(task, cpu, 1);
            if fits != Some(false) {
                return fits;
            }
        }
        Some(false)
    }

    /// Adds the time of a task to the room of a CPU, or takes it.
    fn put(&mut self, task: usize, cpu: usize, sign: i64) {
        self.room[cpu] += sign * self.tasks.sizes[task];
        self.used.iter_mut().for_each(|used| used[cpu] = used[cpu].wrapping_add_signed(-sign as isize));
    }
}

/// Fills one CPU after the other as far as possible. Most tasks are drawn; the sum of the rest comes from two halves.
fn sums(tasks: Tasks, room: &[i64], found: &mut [usize], random: &mut SplitMix64) -> Option<Vec<usize>> {
    let Tasks { sizes, free, .. } = tasks;
    let mut others = free.to_vec();
    for cpu in 0..room.len() {
        let (mut left, elsewhere): (Vec<usize>, Vec<usize>) = others.iter().partition(|&&task| tasks.may(task, cpu));
        let rest: i64 = left.iter().map(|&task| sizes[task]).sum();
        if cpu + 1 == room.len() {
            left.iter().for_each(|&task| found[task] = cpu);
            return (rest <= room[cpu] && elsewhere.is_empty()).then(|| found.to_vec());
        }
        for index in (1..left.len()).rev() {
            left.swap(index, (random.bits() % (index as u64 + 1)) as usize);
        }
        let chosen = fullest(sizes, &left, room[cpu]);
        chosen.iter().for_each(|&task| found[task] = cpu);
        others.retain(|task| !chosen.contains(task));
    }
    None
}

/// Returns tasks with the largest sum that fits, among those that the order allows.
fn fullest(sizes: &[i64], order: &[usize], room: i64) -> Vec<usize> {
    let varied = order.len().min(2 * HALF);
    let (varied, drawn) = order.split_at(varied);
    let half: i64 = varied.iter().map(|&task| sizes[task]).sum::<i64>() / 2;
    let (mut chosen, mut left) = (Vec::new(), room);
    for &task in drawn.iter().filter(|&&task| sizes[task] > 0) {
        if left - sizes[task] >= half {
            left -= sizes[task];
            chosen.push(task);
        }
    }
    let (one, other) = varied.split_at(varied.len() / 2);
    let sums = |tasks: &[usize]| {
        let sum = |set: usize| (0..tasks.len()).filter(|bit| set >> bit & 1 == 1).map(|bit| sizes[tasks[bit]]).sum();
        let mut sums: Vec<(i64, usize)> = (0..1usize << tasks.len()).map(|set| (sum(set), set)).collect();
        sums.sort_unstable();
        sums
    };
    let (low, high) = (sums(one), sums(other));
    let mut best = (-1, 0, 0);
    let mut upper = high.len();
    for &(sum, set) in &low {
        while upper > 0 && sum + high[upper - 1].0 > left {
            upper -= 1;
        }
        if upper > 0 && sum + high[upper - 1].0 > best.0 {
            best = (sum + high[upper - 1].0, set, high[upper - 1].1);
        }
    }
    let of = |tasks: &[usize], set: usize| -> Vec<usize> {
        (0..tasks.len()).filter(|bit| set >> bit & 1 == 1).map(|bit| tasks[bit]).collect()
    };
    chosen.extend(of(one, best.1));
    chosen.extend(of(other, best.2));
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_are_packed_to_the_last_unit() {
        let random = &mut SplitMix64::new(1);
        for count in [8, 20, 50] {
            // Two CPUs, each with exactly the sum of half of the tasks.
            let sizes: Vec<i64> = (0..count).map(|_| 1000 + (random.bits() % 100_000) as i64).collect();
            let (one, other) = sizes.split_at(count / 3);
            let room = [one.iter().sum(), other.iter().sum()];
            let Packed::Found(found) = pack(&sizes, &vec![vec![0, 1]; count], &room, random) else {
                panic!("{count} tasks are not packed");
            };
            for (cpu, &room) in room.iter().enumerate() {
                let load: i64 = (0..count).filter(|&task| found[task] == cpu).map(|task| sizes[task]).sum();
                assert_eq!(load, room);
            }
        }
    }

    #[test]
    fn what_cannot_be_packed_is_proved() {
        let random = &mut SplitMix64::new(1);
        let (one, both) = (vec![0], vec![0, 1]);
        let mut pack = |sizes: &[i64], allowed: &[&Vec<usize>], room: &[i64]| {
            super::pack(sizes, &allowed.iter().map(|cpus| (*cpus).clone()).collect::<Vec<_>>(), room, random)
        };
        assert_eq!(pack(&[6, 6, 6], &[&both; 3], &[10, 10]), Packed::Impossible);
        assert_eq!(pack(&[6, 4, 4, 6], &[&one, &both, &both, &one], &[10, 10]), Packed::Impossible);
        assert_eq!(pack(&[6, 4, 4, 6], &[&one, &both, &both, &both], &[10, 10]), Packed::Found(vec![0, 0, 1, 1]));
        // The tasks of a set can be too much for it, or fit only one way.
        let (low, high, all) = (vec![0, 1], vec![1, 2], vec![0, 1, 2]);
        assert_eq!(pack(&[7, 7, 7], &[&low, &low, &low], &[10, 10, 90]), Packed::Impossible);
        assert_eq!(pack(&[7, 7, 7], &[&low, &low, &high], &[10, 10, 9]), Packed::Found(vec![0, 1, 2]));
        assert_eq!(pack(&[9, 8, 7], &[&all, &low, &low], &[9, 9, 9]), Packed::Found(vec![2, 0, 1]));
    }
}
