//! The period of a thread, from its wake-ups.
//!
//! A candidate period is judged by the phases of all wake-ups. The phases of a periodic thread lie in an arc: its
//! release jitter, and the wake-ups inside its jobs. The rest of the circle is empty. With a fraction of the true
//! period the empty part is as large, but most periods have no wake-up. With a multiple, the empty part is smaller. So
//! the product of empty part and covered periods is greatest for the true one.

/// The grid of a periodic thread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grid {
    /// The period, in nanoseconds.
    pub period: f64,
    /// The standard error of the period, in nanoseconds.
    pub error: f64,
    /// An instant before the wake-ups of a job and after those of the job before.
    pub cut: f64,
}

impl Grid {
    /// Returns the number of the period that an instant is in.
    pub fn slot(&self, at: i64) -> i64 {
        ((at as f64 - self.cut) / self.period).floor() as i64
    }
}

/// The fewest periods that are enough evidence.
const FEWEST: usize = 8;
/// The wake-ups from which candidates are drawn, and over which they are compared.
const COMPARED: usize = 2000;
/// The greatest number of wake-ups from one to another one that may be a period apart.
const LAG: usize = 24;
/// The number of candidates that are frequent distances.
const CANDIDATES: usize = 24;
/// The greatest number of wake-ups of each job, for candidates that are multiples of the mean distance.
const INSIDE: u32 = 8;
/// The share of wake-ups that may lie anywhere.
const STRAY: f64 = 0.02;
/// The least share of periods with a wake-up.
const COVERED: f64 = 0.6;
/// The greatest difference from a known period.
const NEAR: f64 = 0.01;
/// The least share of periods of a known length with a wake-up. A period that is too short by a quarter has fewer.
const COVERED_OF_KNOWN: f64 = 0.85;
/// The least empty part of a period: with many wake-ups, and with few, where a gap can be chance.
const EMPTY: f64 = 0.25;
const EMPTY_OF_FEW: f64 = 0.5;
const FEW: usize = 40;

/// Finds the period of wake-ups, which are in order. `None`: there are too few, or they are not periodic.
pub fn find(wakes: &[i64]) -> Option<Grid> {
    let compared = &wakes[..wakes.len().min(COMPARED)];
    if compared.len() < FEWEST {
        return None;
    }
    let judged = candidates(compared).into_iter().filter_map(|period| judge(compared, period));
    let best = judged.max_by(|a, b| a.score().total_cmp(&b.score()))?;
    let least = if compared.len() < FEW { EMPTY_OF_FEW } else { EMPTY };
    if best.empty < least || best.covered < COVERED || best.slots < FEWEST {
        return None;
    }
    let grid = coarser(compared, &best.grid).unwrap_or(best.grid);
    Some(grow(wakes, compared.len(), grid))
}

/// Fits the grid of a known period to wake-ups, which are in order. `None`: there are too few, or their period differs
/// by more than a hundredth.
pub fn near(wakes: &[i64], period: f64) -> Option<Grid> {
    let compared = &wakes[wakes.len().saturating_sub(COMPARED)..];
    if compared.len() < FEWEST {
        return None;
    }
    let judged = judge(compared, period)?;
    let is_near = (judged.grid.period / period - 1.0).abs() < NEAR;
    (is_near && judged.covered >= COVERED_OF_KNOWN && judged.slots >= FEWEST).then_some(judged.grid)
}

/// A candidate, and how well it fits.
struct Judged {
    grid: Grid,
    /// The largest empty part of the period.
    empty: f64,
    /// The share of periods with a wake-up, and the number of periods.
    covered: f64,
    slots: usize,
}

impl Judged {
    fn score(&self) -> f64 {
        self.empty * self.covered
    }
}

/// Returns the most frequent distances between wake-ups that are near to each other, and multiples of the mean
/// distance. The distances suit jobs that are left out or have different numbers of wake-ups, the mean suits jitter.
fn candidates(wakes: &[i64]) -> Vec<f64> {
    // Distances in a bin differ by at most 2 %.
    let bin = |distance: i64| ((distance as f64).ln() / 0.02) as i64;
    let mut distances: Vec<i64> = (0..wakes.len())
        .flat_map(|first| {
            let later = &wakes[first + 1..wakes.len().min(first + 1 + LAG)];
            later.iter().map(move |at| at - wakes[first]).filter(|&distance| distance > 0)
        })
        .collect();
    distances.sort_unstable();
    let mut bins: Vec<&[i64]> = distances.chunk_by(|a, b| bin(*a) == bin(*b)).collect();
    // A distance over n wake-ups has a chance in n bins. The shorter one comes first where the counts are equal.
    bins.sort_by_key(|bin| std::cmp::Reverse(bin.len()));
    bins.truncate(CANDIDATES);
    let mean = (wakes[wakes.len() - 1] - wakes[0]) as f64 / (wakes.len() - 1) as f64;
    let frequent = bins.iter().map(|bin| bin[bin.len() / 2] as f64);
    frequent.chain((1..=INSIDE).map(|wakes| wakes as f64 * mean)).collect()
}

/// Fits a grid to wake-ups, in steps: a period that is wrong by a little fits some wake-ups, and these make it better.
fn judge(wakes: &[i64], period: f64) -> Option<Judged> {
    let mut period = period;
    let mut count = wakes.len().min(FEWEST);
    loop {
        let part = &wakes[..count];
        let firsts = firsts(part, &Grid { period, error: 0.0, cut: largest_gap(part, period).0 });
        let (fitted, error) = fit(&firsts)?;
        if count == wakes.len() {
            let slots = firsts.last()?.0 - firsts.first()?.0 + 1;
            let covered = firsts.len() as f64 / slots as f64;
            let (cut, empty) = largest_gap(part, fitted);
            return Some(Judged { grid: Grid { period: fitted, error, cut }, empty, covered, slots: slots as usize });
        }
        period = fitted;
        count = wakes.len().min(2 * count);
    }
}

/// The greatest number of wake-ups of a job that can look like those of several jobs.
const ALIKE: i64 = 4;
/// The spread of the first wake-ups of jobs, as a share of that of the other ones.
const STEADIER: f64 = 0.1;
/// The least spread of the other ones, as a share of the period. Smaller ones are those of the kernel's paths.
const UNSTEADY: f64 = 0.01;
/// The share of wake-ups at each end that does not count for a spread: some are far too late on a busy host.
const OUTSIDE: f64 = 0.2;

/// Returns the grid of a multiple of the period, if every second wake-up (third, fourth) is far steadier than the others.
/// A job that sleeps for half of its period wakes up like two jobs. But only the first of the two wake-ups is at a
/// release, and the other one varies with the time that the job computed.
fn coarser(wakes: &[i64], grid: &Grid) -> Option<Grid> {
    let firsts = firsts(wakes, grid);
    // The wake-ups of a class have their own grid. Returns it, and the spread of the wake-ups.
    let class = |several: i64, class: i64| {
        let of_class = firsts.iter().filter(|(slot, _)| slot.rem_euclid(several) == class);
        let points: Vec<(i64, i64)> = of_class.map(|&(slot, at)| (slot.div_euclid(several), at)).collect();
        let (period, error) = if points.len() < FEWEST { None } else { fit(&points) }?;
        let mut rests: Vec<f64> = points.iter().map(|&(slot, at)| at as f64 - slot as f64 * period).collect();
        rests.sort_unstable_by(f64::total_cmp);
        let outside = (rests.len() as f64 * OUTSIDE) as usize;
        let cut = rests[rests.len() / 2] - grid.period / 2.0;
        Some((rests[rests.len() - 1 - outside] - rests[outside], Grid { period, error, cut }))
    };
    (2..=ALIKE).find_map(|several| {
        let mut classes = (0..several).map(|number| class(several, number)).collect::<Option<Vec<_>>>()?;
        classes.sort_by(|a, b| a.0.total_cmp(&b.0));
        let others = classes[1].0;
        (classes[0].0 < STEADIER * others && others > UNSTEADY * grid.period).then_some(classes[0].1)
    })
}

/// Extends a grid to all wake-ups.
fn grow(wakes: &[i64], from: usize, grid: Grid) -> Grid {
    let (mut grid, mut count) = (grid, from);
    while count < wakes.len() {
        count = wakes.len().min(2 * count);
        if let Some((period, error)) = fit(&firsts(&wakes[..count], &grid)) {
            // The cut keeps its distance to the first wake-up.
            let slots = ((wakes[0] as f64 - grid.cut) / grid.period).floor();
            grid = Grid { period, error, cut: grid.cut + slots * (grid.period - period) };
        }
    }
    grid
}

/// Returns an instant in the middle of the largest empty arc of the phases, and the arc's share of the period. A few
/// stray wake-ups may lie in it.
fn largest_gap(wakes: &[i64], period: f64) -> (f64, f64) {
    let begin = wakes[0];
    let mut phases: Vec<f64> = wakes.iter().map(|at| ((at - begin) as f64 / period).fract()).collect();
    phases.sort_unstable_by(f64::total_cmp);
    let count = phases.len();
    let stray = (count as f64 * STRAY) as usize;
    let arc = |first: usize| {
        let last = first + stray + 1;
        phases[last % count] + (last / count) as f64 - phases[first]
    };
    let first = (0..count).max_by(|&a, &b| arc(a).total_cmp(&arc(b))).unwrap_or(0);
    let empty = arc(first).min(1.0);
    (begin as f64 + (phases[first] + empty / 2.0) * period, empty)
}

/// Returns the first wake-up of each period, with the period's number.
fn firsts(wakes: &[i64], grid: &Grid) -> Vec<(i64, i64)> {
    let mut firsts: Vec<(i64, i64)> = wakes.iter().map(|&at| (grid.slot(at), at)).collect();
    firsts.dedup_by_key(|(slot, _)| *slot);
    firsts
}

/// Returns the slope of a line through the points (least squares), and its standard error.
fn fit(points: &[(i64, i64)]) -> Option<(f64, f64)> {
    let count = points.len() as f64;
    if points.len() < 3 {
        return None;
    }
    let (x0, y0) = points[0];
    let points = || points.iter().map(|&(x, y)| ((x - x0) as f64, (y - y0) as f64));
    let (sum_x, sum_y) = points().fold((0.0, 0.0), |(xs, ys), (x, y)| (xs + x, ys + y));
    let (mean_x, mean_y) = (sum_x / count, sum_y / count);
    let spread: f64 = points().map(|(x, _)| (x - mean_x).powi(2)).sum();
    let slope = points().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum::<f64>() / spread;
    let rest: f64 = points().map(|(x, y)| (y - mean_y - slope * (x - mean_x)).powi(2)).sum();
    (slope > 0.0).then(|| (slope, (rest / (count - 2.0) / spread).sqrt()))
}

#[cfg(test)]
mod tests {
    use macrotick_model::SplitMix64 as Random;

    use super::*;

    /// Wake-ups of jobs: each has a jitter up to `jitter`, and wake-ups at these distances from its first.
    fn wakes(seed: u64, jobs: i64, period: i64, jitter: i64, inside: &[i64]) -> Vec<i64> {
        let mut random = Random::new(seed);
        let mut wakes: Vec<i64> = (0..jobs)
            .flat_map(|job| {
                let release = 1_000_000_000 + job * period + below(&mut random, jitter);
                [0].iter().chain(inside).map(move |at| release + at).collect::<Vec<_>>()
            })
            .collect();
        wakes.sort_unstable();
        wakes
    }

    fn below(random: &mut Random, most: i64) -> i64 {
        (random.bits() % (most as u64 + 1)) as i64
    }

    #[track_caller]
    fn ensure(wakes: &[i64], period: i64) {
        let grid = find(wakes).expect("a period");
        let off = (grid.period / period as f64 - 1.0).abs();
        assert!(off < 1e-2 && off * period as f64 <= 6.0 * grid.error + 1.0, "{grid:?} instead of {period}");
    }

    #[test]
    fn periods_are_found_with_jitter_and_with_wake_ups_inside_jobs() {
        for seed in 0..20 {
            let jobs = 30 + 50 * seed as i64;
            ensure(&wakes(seed, jobs, 10_000_000, 0, &[]), 10_000_000);
            ensure(&wakes(seed, jobs, 10_000_000, 3_000_000, &[]), 10_000_000);
            ensure(&wakes(seed, jobs, 41_708_333, 100_000, &[1_000_000, 3_000_000]), 41_708_333);
            ensure(&wakes(seed, jobs, 1_000_000, 200_000, &[100_000, 350_000]), 1_000_000);
        }
    }

    #[test]
    fn a_known_period_is_fitted_and_no_other_one() {
        let wakes = wakes(1, 60, 41_708_333, 100_000, &[1_000_000, 3_000_000]);
        let grid = near(&wakes, 41_700_000.0).expect("a grid");
        assert!((grid.period - 41_708_333.0).abs() < 10_000.0, "{grid:?}");
        assert!(wakes.chunks(3).all(|job| job.iter().all(|&at| grid.slot(at) == grid.slot(job[0]))), "{grid:?}");
        for wrong in [50_000_000.0, 31_281_250.0, 20_854_166.0, 83_416_666.0] {
            assert_eq!(near(&wakes, wrong), None, "{wrong}");
        }
        assert_eq!(near(&wakes[..5], 41_700_000.0), None);
    }

    #[test]
    fn a_job_that_sleeps_for_half_of_its_period_is_one_job() {
        for seed in 0..20 {
            let mut random = Random::new(seed);
            let releases = (0..60).map(|job| job * 100_000_000);
            let wakes: Vec<i64> =
                releases.flat_map(|at| [at, at + 49_000_000 + below(&mut random, 2_000_000)]).collect();
            ensure(&wakes, 100_000_000);
        }
    }

    #[test]
    fn wake_ups_that_are_exact_to_the_microsecond_have_their_own_period() {
        for seed in 0..20 {
            let mut random = Random::new(seed);
            let wakes: Vec<i64> = (0..400).map(|job| job * 5_000_000 + job % 2 * below(&mut random, 3000)).collect();
            ensure(&wakes, 5_000_000);
        }
    }

    #[test]
    fn jobs_may_be_left_out_and_strangers_may_come() {
        for seed in 0..20 {
            let mut random = Random::new(seed);
            let mut all = wakes(seed, 600, 5_000_000, 50_000, &[400_000]);
            all.retain(|_| random.bits() % 10 != 0);
            all.extend((0..10).map(|_| 1_000_000_000 + below(&mut random, 3_000_000_000)));
            all.sort_unstable();
            ensure(&all, 5_000_000);
        }
    }

    #[test]
    fn what_is_not_periodic_has_no_period() {
        for seed in 0..200 {
            let mut random = Random::new(seed);
            let (mut at, count) = (0, 8 + below(&mut random, 400));
            let wakes: Vec<i64> = (0..count)
                .map(|_| {
                    let uniform = (random.bits() >> 11) as f64 / (1u64 << 53) as f64;
                    at += 1000 + (-uniform.max(1e-12).ln() * 5e6) as i64;
                    at
                })
                .collect();
            assert_eq!(find(&wakes), None, "seed {seed}");
        }
    }
}
