//! The search over the whole time limit: one trial after the other, each with other draws.
//!
//! A trial ([`crate::trial`]) assigns CPUs, finds phases, and fills in the other jobs. The first trial has no draws. The
//! search ends with the first table that keeps everything. Several trials can run at the same time: the one with the
//! least number wins, as if they ran one after the other.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use macrotick_model::SplitMix64;

use crate::chains::Reached;
use crate::error::{Ended, PlanError};
use crate::folded::Problem;
use crate::options::{Clock, Progress};
use crate::table::Piece;
use crate::trial::{Failed, Manner, Trial};

/// The results of trials.
#[derive(Default)]
struct Results {
    failed: u64,
    /// The pieces of a trial, and its number.
    won: Option<(u64, Vec<Vec<Piece>>)>,
    /// The chain that is the closest to its bound, and the number of its trial.
    closest: Option<(Reached, u64)>,
    /// Another reason, and the number of its trial. Zero is that of the drafts before all trials.
    reason: Option<(PlanError, u64)>,
}

impl Results {
    fn add(&mut self, failed: Failed, number: u64) {
        self.failed += 1;
        match failed {
            Failed::Chain(reached) => {
                let order = |(reached, number): &(Reached, u64)| (reached.excess(), *number);
                let this = (reached, number);
                if self.closest.as_ref().is_none_or(|best| order(&this) < order(best)) {
                    self.closest = Some(this);
                }
            }
            Failed::Other(error) => {
                if self.reason.as_ref().is_none_or(|(_, first)| number + 1 < *first) {
                    self.reason = Some((error, number + 1));
                }
            }
        }
    }

    /// Returns why there is no table.
    fn bottleneck(&self, problem: &Problem) -> Option<PlanError> {
        let chain = self.closest.map(|(reached, _)| problem.exceeded(reached));
        chain.or_else(|| self.reason.as_ref().map(|(reason, _)| reason.clone()))
    }
}

impl Problem<'_> {
    /// Returns the pieces of the trial without draws, for a system with chains, `after`, resources, or without preemption.
    pub(crate) fn ordered(&self, clock: &Clock) -> Option<Vec<Vec<Piece>>> {
        let has_rules = !self.graph.edges.is_empty() || !self.resources.is_empty();
        if !has_rules && self.demands.iter().all(|demand| demand.preemptible) {
            return None;
        }
        let random = SplitMix64::new(clock.options.seed);
        let trial = Trial::new(self, Manner::of(0), random).ok()?;
        // Without regard to the bounds first: bounds that are as short as the times of a plan then have this plan.
        let shortest = trial.clone().shortest(clock).filter(|pieces| trial.worst(pieces).is_none());
        shortest.or_else(|| trial.clone().bounded().run(clock).ok())
    }

    /// Returns the pieces of a table. `reason` is why there is none so far.
    pub(crate) fn find(&self, clock: &Clock, reason: Option<PlanError>) -> Result<Vec<Vec<Piece>>, PlanError> {
        let results = Mutex::new(Results { reason: reason.map(|reason| (reason, 0)), ..Results::default() });
        let (next, winner) = (AtomicU64::new(0), AtomicU64::new(u64::MAX));
        thread::scope(|scope| {
            for _ in 1..clock.options.jobs.max(1) {
                scope.spawn(|| self.try_on(clock, &next, &winner, &results));
            }
            self.try_on(clock, &next, &winner, &results);
        });
        let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
        let bottleneck = results.bottleneck(self);
        match (results.won, bottleneck) {
            (Some((_, pieces)), _) => Ok(pieces),
            (None, Some(bottleneck)) => {
                let ended = match results.failed {
                    failed if failed == clock.trials => Ended::Trials(failed),
                    _ if clock.watch.is_over() => Ended::Interrupted,
                    _ => Ended::Time(clock.options.time_limit),
                };
                Err(PlanError::NotFound { ended, bottleneck: Box::new(bottleneck) })
            }
            (None, None) => unreachable!("a trial fails for a reason"),
        }
    }

    /// Runs trials until one has succeeded, or the time is over. There is at least one.
    fn try_on(&self, clock: &Clock, next: &AtomicU64, winner: &AtomicU64, results: &Mutex<Results>) {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= clock.trials || number > winner.load(Ordering::Relaxed) || (number > 0 && clock.is_over()) {
                return;
            }
            let result = self.try_once(&clock.of_trial(number, winner), number);
            let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
            match result {
                Ok(pieces) if results.won.as_ref().is_none_or(|(first, _)| number < *first) => {
                    winner.fetch_min(number, Ordering::Relaxed);
                    results.won = Some((number, pieces));
                }
                Ok(_) => {}
                Err(failed) => {
                    results.add(failed, number);
                    // Tasks that stand for something else have names that begin with a control character.
                    let is_known = |error: &_| !PlanError::to_string(error).contains(|one: char| one < '\u{8}');
                    let bottleneck = results.bottleneck(self).filter(is_known);
                    let (elapsed, trials) = (clock.elapsed(), results.failed);
                    clock.watch.tell(&Progress { elapsed, trials, bottleneck: bottleneck.as_ref() });
                }
            }
        }
    }

    fn try_once(&self, clock: &Clock, number: u64) -> Result<Vec<Vec<Piece>>, Failed> {
        let random = SplitMix64::new(clock.options.seed.wrapping_mul(0x9e37_79b9).wrapping_add(number));
        let trial = Trial::new(self, Manner::of(number), random).map_err(Failed::Other)?;
        trial.bounded().run(clock)
    }
}
