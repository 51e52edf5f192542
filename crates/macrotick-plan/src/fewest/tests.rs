//! Tests of the search for the fewest pieces, against one that goes through all tables.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration as WallTime;

use macrotick_model::{Duration, SplitMix64};

use super::amounts;
use super::search::{fewest, Fewest};
use super::slots::Slots;
use crate::cut::RESUMING;
use crate::demand::tests::demand;
use crate::demand::Demand;
use crate::options::{Clock, Options, Unwatched, Watch};
use crate::table::Piece;

/// The most pieces beyond one for each job in these tests.
const MOST: usize = 6;
const CYCLE: Duration = Duration::from_micros(200);

/// The jobs as release, deadline and time, in units of the cost of a piece.
type Jobs = Vec<(i64, i64, i64)>;

/// Returns the least number of pieces beyond one for each job. It goes through all tables, one unit after the other.
fn least(jobs: &Jobs, end: i64) -> Option<i64> {
    // The time that each job still needs, and the job that ran last.
    let first = (jobs.iter().map(|job| job.2).collect::<Vec<i64>>(), None);
    let mut states = HashMap::from([(first, 0)]);
    for now in 0..end {
        let mut next = HashMap::new();
        for ((rests, last), extra) in states {
            let mut add = |rests: Vec<i64>, last: Option<usize>, extra: i64| {
                let late = jobs.iter().zip(&rests).any(|(job, &rest)| rest > 0 && job.1 <= now + 1);
                let best = next.entry((rests, last)).or_insert(extra);
                *best = extra.min(*best);
                late
            };
            let mut late = Vec::new();
            if add(rests.clone(), None, extra) {
                late.push((rests.clone(), None));
            }
            for (job, &(release, _, needed)) in jobs.iter().enumerate() {
                if now < release || rests[job] == 0 {
                    continue;
                }
                let again = i64::from(last != Some(job) && rests[job] < needed);
                let mut rests = rests.clone();
                rests[job] += again - 1;
                if extra + again <= MOST as i64 && add(rests.clone(), Some(job), extra + again) {
                    late.push((rests, Some(job)));
                }
            }
            late.iter().for_each(|state| _ = next.remove(state));
        }
        states = next;
    }
    states.into_values().min()
}

/// Draws tasks in units of the cost of a piece. Without the cost of pieces, they have at most 38 of
/// the 40 in a cycle.
fn drawn(random: &mut SplitMix64) -> Vec<Demand> {
    loop {
        let mut below = |limit: u64| (random.bits() % limit) as i64;
        let count = 3 + below(2);
        let task = |index: i64| {
            // Some tasks have long jobs, which the others cut.
            let (periods, shortest, wcets) = if index % 2 == 0 { ([20, 40], 5, 13) } else { ([8, 10], 1, 3) };
            let period = periods[below(2) as usize];
            let offset = below(3) * i64::from(below(4) == 0);
            let deadline = period - offset - below(2) * below(3);
            let wcet = (shortest + below(wcets)).min(deadline);
            let [period, offset, deadline, wcet] = [period, offset, deadline, wcet].map(|units| RESUMING * units);
            Demand { period, wcet, needed: wcet, deadline, offset: Some(offset), ..demand() }
        };
        let demands: Vec<Demand> = (0..count).map(task).collect();
        let load: Duration = demands.iter().map(|demand| demand.per_cycle(CYCLE)).sum();
        if (RESUMING * 33..RESUMING * 39).contains(&load) {
            return demands;
        }
    }
}

/// Ends a search after some questions.
struct Ends(AtomicU64);

impl Watch for Ends {
    fn is_over(&self) -> bool {
        self.0.fetch_sub(1, Ordering::Relaxed) == 0 || self.0.load(Ordering::Relaxed) > u64::MAX / 2
    }
}

#[test]
fn a_search_that_is_ended_proves_nothing() {
    let mut random = SplitMix64::new(5);
    let mut found = 0;
    for _ in 0..12 {
        let demands = drawn(&mut random);
        let tasks: Vec<usize> = (0..demands.len()).collect();
        let slots = Slots::new(&demands, &tasks, CYCLE);
        let options = Options { time_limit: WallTime::from_secs(60), ..Options::default() };
        let answer = |watch: &dyn Watch| fewest(&slots, MOST, 4000, &Clock::start(options, watch));
        if !matches!(answer(&Unwatched), Fewest::Found(_)) {
            continue;
        }
        found += 1;
        for questions in 0..60 {
            let watch = Ends(AtomicU64::new(questions));
            assert!(!matches!(answer(&watch), Fewest::Never), "{questions}: {demands:?}");
        }
    }
    assert!(found > 3, "{found}");
}

/// Checks that each job has its time in at most as many pieces as it may have, and that no two pieces overlap.
fn keeps(pieces: &[Piece], demands: &[Demand]) {
    assert!(pieces.windows(2).all(|two| two[0].end() <= two[1].start));
    for (task, demand) in demands.iter().enumerate() {
        for number in 0..CYCLE / demand.period {
            let release = demand.release() + demand.period * number;
            let own = |piece: &&Piece| {
                piece.task == task && piece.start >= release && piece.end() <= release + demand.deadline
            };
            let own: Vec<&Piece> = pieces.iter().filter(own).collect();
            let time: Duration = own.iter().map(|piece| piece.length).sum();
            assert_eq!(time, demand.wcet + RESUMING * (own.len() as i64 - 1));
            assert!(own[0].activate && own[own.len() - 1].deadline);
        }
    }
}

#[test]
fn the_fewest_pieces_are_those_of_the_best_table() {
    let random = &mut SplitMix64::new(1);
    let time_limit = WallTime::from_secs(3600);
    let clock = Clock::start(Options { time_limit, ..Options::default() }, &Unwatched);
    let mut seen = [0; MOST + 2];
    for _ in 0..150 {
        let demands = drawn(random);
        let tasks: Vec<usize> = (0..demands.len()).collect();
        let slots = Slots::new(&demands, &tasks, CYCLE);
        let jobs: Jobs = slots
            .jobs
            .iter()
            .map(|job| {
                (slots.bounds[job.first] / RESUMING, slots.bounds[job.last + 1] / RESUMING, job.needed / RESUMING)
            })
            .collect();
        let least = least(&jobs, CYCLE / RESUMING);
        let found = (0..=MOST).find_map(|most| match fewest(&slots, most, usize::MAX, &clock) {
            Fewest::Found(contents) => Some((most, contents)),
            Fewest::Never => None,
            Fewest::Unknown => panic!("the search is complete"),
        });
        assert_eq!(found.as_ref().map(|(most, _)| *most as i64), least, "{demands:?}");
        seen[least.map_or(MOST + 1, |least| least as usize)] += 1;
        // A piece can be too short.
        if let Some(pieces) = found.and_then(|(_, contents)| amounts::pieces(&slots, &contents)) {
            keeps(&pieces, &demands);
        }
    }
    assert!(seen[..3].iter().all(|&count| count > 4) && seen[MOST + 1] > 0, "{seen:?}");
}
