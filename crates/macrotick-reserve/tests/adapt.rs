//! The feedback with simulated programs: how fast it settles, how near it is to the least runtime, and that it rests.

use std::collections::VecDeque;

use macrotick_model::{Duration, SplitMix64};
use macrotick_reserve::adapt::{Bounds, Controller, Seen, ON_TIME};

const PERIOD: i64 = 40_000_000;
/// The programs of each kind.
const SEEDS: u64 = 12;
/// The periods in which the runtime must settle.
const SOON: usize = 20;
const BOUNDS: Bounds = Bounds { least: Duration::from_micros(100), most: Duration::from_millis(36) };

/// The reservation of SCHED_DEADLINE: a constant bandwidth server that throttles.
struct Server {
    now: i64,
    budget: i64,
    deadline: i64,
    /// The runtime from the next replenishment on.
    runtime: i64,
    /// The remaining work of each job, the first one first.
    jobs: VecDeque<i64>,
    /// The instants at which jobs ended.
    ends: Vec<i64>,
}

impl Server {
    fn new(runtime: i64) -> Server {
        Server { now: 0, budget: 0, deadline: 0, runtime, jobs: VecDeque::new(), ends: Vec::new() }
    }

    fn release(&mut self, work: i64) {
        let laxity = self.deadline - self.now;
        if self.jobs.is_empty() && (laxity <= 0 || self.budget * PERIOD > laxity * self.runtime) {
            (self.deadline, self.budget) = (self.now + PERIOD, self.runtime);
        }
        self.jobs.push_back(work.max(1));
    }

    /// Runs until an instant; returns the CPU time.
    fn run(&mut self, until: i64) -> i64 {
        let mut used = 0;
        while self.now < until {
            let Some(rest) = self.jobs.front_mut() else { break };
            if self.budget <= 0 {
                if self.deadline > until {
                    break;
                }
                self.now = self.now.max(self.deadline);
                (self.deadline, self.budget) = (self.deadline + PERIOD, self.runtime);
                continue;
            }
            let part = (*rest).min(self.budget).min(until - self.now);
            *rest -= part;
            self.budget -= part;
            self.now += part;
            used += part;
            if *rest == 0 {
                self.jobs.pop_front();
                self.ends.push(self.now);
            }
        }
        self.now = until;
        used
    }
}

/// A run of a program: for each period the runtime and whether a job was late, and the ends of the jobs.
struct Run {
    runtimes: Vec<i64>,
    late: Vec<bool>,
    ends: Vec<i64>,
}

/// Runs a program with this work in each period, and with the feedback, if there is any.
fn run(works: &[i64], runtime: i64, jitter: i64, mut controller: Option<&mut Controller>) -> Run {
    let mut server = Server::new(runtime);
    let mut random = SplitMix64::new(7);
    let mut result = Run { runtimes: Vec::new(), late: Vec::new(), ends: Vec::new() };
    for (period, &work) in (0i64..).zip(works) {
        let release = period * PERIOD + if jitter > 0 { (random.bits() >> 1) as i64 % jitter } else { 0 };
        let used = server.run(release);
        server.release(work);
        let used = used + server.run((period + 1) * PERIOD);
        let late = !server.jobs.is_empty();
        result.runtimes.push(server.runtime);
        result.late.push(late);
        if let Some(controller) = controller.as_deref_mut() {
            server.runtime = controller.next(Seen { used: Duration::from_nanos(used), late }).as_nanos();
        }
    }
    result.ends = server.ends;
    result
}

/// Adapts from a runtime on.
fn adapt(works: &[i64], from: i64, jitter: i64) -> Run {
    let mut controller = Controller::new(Duration::from_nanos(from), BOUNDS);
    run(works, from, jitter, Some(&mut controller))
}

/// Returns the least constant runtime with which the jobs are on time, by search.
fn least(works: &[i64]) -> i64 {
    let (mut low, mut high) = (0, BOUNDS.most.as_nanos());
    while high - low > PERIOD / 10_000 {
        let middle = (low + high) / 2;
        let late = run(works, middle, 0, None).late.iter().filter(|late| **late).count();
        match late as f64 <= (1.0 - ON_TIME) * works.len() as f64 {
            true => high = middle,
            false => low = middle,
        }
    }
    high
}

/// Returns the 99 % quantile of the frame time: a frame is shown at its period's end, or when it is done.
fn frame_time(ends: &[i64], from: usize) -> i64 {
    let shown: Vec<i64> = (0i64..).zip(ends).map(|(period, &end)| end.max((period + 1) * PERIOD)).collect();
    let mut times: Vec<i64> = shown[from..].windows(2).map(|pair| pair[1] - pair[0]).collect();
    times.sort_unstable();
    times[(times.len() * 99).div_ceil(100) - 1]
}

fn uniform(random: &mut SplitMix64) -> f64 {
    ((random.bits() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
}

/// The kinds of programs.
const KINDS: [&str; 6] = ["constant", "uniform", "gumbel", "film", "normal", "rare"];

/// Draws the work of a job with this mean, about.
fn work(kind: &str, job: usize, mean: f64, random: &mut SplitMix64) -> i64 {
    let part = match kind {
        "constant" => 1.0,
        "uniform" => 0.9 + 0.2 * uniform(random),
        "gumbel" => 1.0 - 0.02 * (-uniform(random).ln()).ln(),
        // Groups of twelve frames: one I, three P, eight B.
        "film" => {
            let frame = if job % 12 == 0 {
                1.8
            } else if job % 3 == 0 {
                1.2
            } else {
                0.85
            };
            frame * (0.97 + 0.03 * uniform(random))
        }
        "normal" => 1.0 + 0.02 * (-2.0 * uniform(random).ln()).sqrt() * (uniform(random) * std::f64::consts::TAU).cos(),
        // A long job in 250, less than a hundredth.
        _ => {
            if job % 250 == 100 {
                1.6
            } else {
                0.98 + 0.02 * uniform(random)
            }
        }
    };
    (mean * part) as i64
}

fn works(kind: &str, seed: u64, jobs: usize, mean: f64) -> Vec<i64> {
    let random = &mut SplitMix64::new(seed);
    (0..jobs).map(|job| work(kind, job, mean, random)).collect()
}

/// The share of the period of a program of a seed, and the runtime from which the feedback begins.
fn drawn(seed: u64) -> (f64, i64) {
    let random = &mut SplitMix64::new(seed ^ 0x5eed);
    let mean = PERIOD as f64 * (0.05 + 0.35 * uniform(random));
    (mean, (mean * (0.5 + 2.0 * uniform(random))) as i64)
}

#[test]
fn the_runtime_is_near_the_least_one_and_frames_are_on_time() {
    for kind in KINDS {
        for seed in 0..SEEDS {
            let (mean, from) = drawn(seed);
            let works = works(kind, seed, 2000, mean);
            let least = least(&works) as f64;
            let run = adapt(&works, from, 0);
            let last = *run.runtimes.last().unwrap() as f64;
            // With a rare long job, less is enough than a constant runtime: the feedback gives more just for this job.
            let low = if kind == "rare" { 0.8 } else { 0.96 };
            assert!((low..=1.05).contains(&(last / least)), "{kind} {seed}: {last} for {least}");
            let frame = frame_time(&run.ends, SOON) as f64 / PERIOD as f64;
            assert!(frame <= 1.05, "{kind} {seed}: {frame}");
        }
    }
}

/// The share of periods that one long job or a late one may change the runtime for.
const SHORT: usize = 20;

/// Returns the first period from which the runtime stays within a share of one that is right, apart from short times.
fn settles(runtimes: &[i64], right: i64, share: f64) -> usize {
    let far = |runtime: &i64| (*runtime as f64 / right as f64 - 1.0).abs() > share;
    let is_settled = |from: &usize| {
        runtimes[*from..].iter().filter(|runtime| far(runtime)).count() * SHORT <= runtimes.len() - from
            && !far(&runtimes[*from])
    };
    (0..runtimes.len()).find(is_settled).unwrap_or(runtimes.len())
}

#[test]
fn the_runtime_settles_within_twenty_periods_and_after_steps() {
    for kind in ["constant", "uniform", "gumbel", "film", "normal"] {
        for seed in 0..SEEDS {
            let (mean, from) = drawn(seed);
            for factor in [1.0, 1.3, 2.0, 0.5, 0.75] {
                let first = works(kind, seed, 300, mean);
                let second = works(kind, seed + 1000, 300, mean * factor);
                let both = [&first[..], &second[..]].concat();
                let runtimes = adapt(&both, from, 0).runtimes;
                for (part, works) in [(&runtimes[..300], &first), (&runtimes[300..], &second)] {
                    // Twelve jobs tell little about the hundredth that needs most.
                    let share = match kind {
                        "constant" | "film" => 0.05,
                        "gumbel" => 0.15,
                        _ => 0.1,
                    };
                    let when = settles(part, least(works), share);
                    assert!(when <= SOON, "{kind} {seed} {factor}: after {when} periods, {:?}", &part[..60]);
                }
            }
        }
    }
}

#[test]
fn the_runtime_rests_under_stationary_load() {
    for kind in KINDS {
        for seed in 0..SEEDS {
            let (mean, from) = drawn(seed);
            let runtimes = adapt(&works(kind, seed, 4000, mean), from, 0).runtimes;
            let changes = runtimes[1000..].windows(2).filter(|pair| pair[0] != pair[1]).count();
            let mut sorted = runtimes[1000..].to_vec();
            sorted.sort_unstable();
            // Apart from the few periods after a long job.
            // After a rare one, these are about sixteen of 250.
            let apart = if kind == "rare" { 300 } else { 90 };
            let (low, high) = (sorted[apart], sorted[sorted.len() - 1 - apart]);
            let most = if kind == "rare" { 4 * 3000 / 250 + 2 } else { 15 };
            assert!(changes <= most && high as f64 <= low as f64 * 1.05, "{kind} {seed}: {changes}, {low} to {high}");
        }
    }
}
