//! Random systems: their threads are scheduled by fixed priorities, and the events are measured.

use macrotick_generate::{drawn, Draw, Jitter, Periods, Random, Recipe, Size};
use macrotick_measure::{Bursts, Change, Profile};

/// A thread of a simulated system.
struct Thread {
    period: i64,
    /// The greatest execution times of a job before and after it sleeps, and the length of the sleep. The second part
    /// may be zero.
    parts: [i64; 2],
    sleep: i64,
    /// The greatest delay of a release.
    jitter: i64,
}

/// A job that is ready, or runs.
#[derive(Clone, Copy)]
struct Ready {
    thread: usize,
    part: usize,
    rest: i64,
}

/// Draws the execution time of a part: from a half of its greatest one, most often near the lower end.
fn execution(random: &mut Random, most: i64) -> i64 {
    let uniform = random.below(1 << 20) as f64 / f64::from(1 << 20);
    (most as f64 * (0.5 + 0.5 * uniform.powi(3))).max(1.0) as i64
}

/// Simulates preemptive fixed priorities on one CPU, the shortest period first. Returns the bursts of each thread.
fn simulate(random: &mut Random, threads: &[Thread], end: i64) -> Vec<Bursts> {
    let mut bursts: Vec<Bursts> = threads.iter().map(|_| Bursts::of_running()).collect();
    bursts.iter_mut().for_each(|bursts| bursts.take(-1, Change::Blocks));
    // Wake-ups in order of time: thread, and part of the job.
    let mut wakes = std::collections::BTreeSet::new();
    let mut next: Vec<i64> = threads.iter().map(|thread| random.below(thread.period as u64) as i64).collect();
    let release = |random: &mut Random, thread: usize, next: &mut [i64]| {
        let at = next[thread] + random.below(threads[thread].jitter as u64 + 1) as i64;
        next[thread] += threads[thread].period;
        at
    };
    for thread in 0..threads.len() {
        wakes.insert((release(random, thread, &mut next), thread, 0));
    }
    let mut ready: Vec<Ready> = Vec::new();
    let mut now = 0;
    while now < end {
        ready.sort_by_key(|job| job.thread);
        let until = wakes.first().map_or(end, |&(at, _, _)| at);
        match ready.first_mut() {
            Some(job) if now + job.rest <= until => {
                now += job.rest;
                let Ready { thread, part, .. } = *job;
                ready.remove(0);
                let Thread { parts, sleep, .. } = threads[thread];
                if part == 0 && parts[1] > 0 {
                    bursts[thread].take(now, Change::Blocks);
                    wakes.insert((now + sleep, thread, 1));
                } else {
                    let at = release(random, thread, &mut next);
                    if at <= now {
                        // The release is over: the thread does not block.
                        ready.push(Ready { thread, part: 0, rest: execution(random, parts[0]) });
                    } else {
                        bursts[thread].take(now, Change::Blocks);
                        wakes.insert((at, thread, 0));
                    }
                }
                if let Some(first) = ready.iter().min_by_key(|job| job.thread) {
                    bursts[first.thread].take(now, Change::Runs);
                }
                continue;
            }
            Some(job) => job.rest -= until - now,
            None => {}
        }
        let Some((at, thread, part)) = wakes.pop_first() else { break };
        now = at;
        bursts[thread].take(now, Change::Wakes);
        let running = ready.first().map(|job| job.thread);
        ready.push(Ready { thread, part, rest: execution(random, threads[thread].parts[part]) });
        if running.is_none_or(|running| thread < running) {
            if let Some(running) = running {
                bursts[running].take(now, Change::Preempted);
            }
            bursts[thread].take(now, Change::Runs);
        }
    }
    bursts
}

/// Draws the threads of a system with automotive periods, the shortest one first.
fn threads(random: &mut Random, seed: u64) -> Vec<Thread> {
    let size = Size { tasks: 5 + random.below(6) as usize, cpus: 1, load: 40 + random.below(31) as u32 };
    let recipe =
        Recipe { size, periods: Periods::Automotive, draw: Draw::UUniFast, jitter: Jitter::Free, chains: false };
    let system = drawn(seed, &recipe).unwrap();
    let thread = |task: &macrotick_model::Task| {
        let (period, wcet) = (task.period.as_nanos(), task.wcet.as_nanos());
        let sleeps = random.below(4) == 0;
        let parts = if sleeps { [wcet / 2, wcet - wcet / 2] } else { [wcet, 0] };
        let sleep = period / 20 + random.below(period as u64 / 10) as i64;
        let jitter = random.below(4) as i64 * period / 30;
        Thread { period, parts, sleep, jitter }
    };
    let mut threads: Vec<Thread> = system.tasks.iter().map(thread).collect();
    threads.sort_by_key(|thread| thread.period);
    threads
}

/// The number of periods of each thread in a simulation.
const PERIODS: i64 = 30;

#[test]
fn periods_of_a_thousand_automotive_systems_are_right() {
    let (mut all, mut wrong) = (0, Vec::new());
    for seed in 0..1000 {
        let random = &mut Random::new(seed);
        let threads = threads(random, seed);
        let end = PERIODS * threads.last().map_or(0, |thread| thread.period);
        let bursts = simulate(random, &threads, end);
        for (index, (thread, bursts)) in threads.iter().zip(&bursts).enumerate() {
            all += 1;
            let profile = Profile::of(index as i32, "", bursts.done(), end);
            let found = profile.period.map(|period| period.length.as_nanos());
            if found.is_none_or(|found| (found as f64 / thread.period as f64 - 1.0).abs() > 0.01) {
                wrong.push((seed, index, thread.period, thread.jitter, thread.sleep, found));
            }
        }
    }
    assert!(all > 5000, "{all}");
    assert!(wrong.is_empty(), "{} of {all} threads: {wrong:?}", wrong.len());
}

/// The distributions of execution times: greatest and least time, and the time of a uniform number.
fn time_of(kind: u64, random: &mut Random) -> i64 {
    let mut uniform = || (random.below(1 << 40) as f64 + 1.0) / (1u64 << 40) as f64;
    let time = match kind {
        0 => uniform(),
        1 => 0.5 + 0.1 * (-2.0 * uniform().ln()).sqrt() * (uniform() * std::f64::consts::TAU).cos(),
        2 => 0.3 - 0.05 * (-uniform().ln()).ln(),
        3 => (0.2 * (-2.0 * uniform().ln()).sqrt() * (uniform() * std::f64::consts::TAU).cos()).exp(),
        4 => 0.2 + if uniform() < 0.05 { 0.5 + 0.1 * uniform() } else { 0.1 * uniform() },
        _ => 0.1 - 0.1 * uniform().ln(),
    };
    (time.max(0.0) * 1e6) as i64
}

#[test]
fn a_thousandth_of_the_jobs_exceeds_the_suggestion() {
    const KINDS: u64 = 6;
    let (mut share, mut programs) = ([0.0; KINDS as usize], 0);
    for seed in 0..1000 {
        let random = &mut Random::new(seed);
        let kind = seed % KINDS;
        let jobs = 200 + random.below(4800) as i64;
        let bursts = |random: &mut Random, jobs: i64| {
            let mut bursts = Bursts::of_new();
            for job in 0..jobs {
                let at = job * 10_000_000;
                bursts.take(at, Change::Wakes);
                bursts.take(at, Change::Runs);
                bursts.take(at + time_of(kind, random), Change::Blocks);
            }
            bursts
        };
        let seen = bursts(random, jobs);
        let profile = Profile::of(1, "", seen.done(), jobs * 10_000_000);
        let suggested = profile.execution.expect("jobs").suggested.as_nanos();
        let later = 20_000;
        let beyond = (0..later).filter(|_| time_of(kind, random) > suggested).count();
        share[kind as usize] += beyond as f64 / f64::from(later);
        programs += 1;
    }
    let mean = share.iter().sum::<f64>() / f64::from(programs);
    assert!(mean <= 0.0015, "{mean}: {:?}", share.map(|share| share * KINDS as f64 / f64::from(programs)));
    assert!(mean > 0.0001, "the bounds are far too long: {mean}");
}
