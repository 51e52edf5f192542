//! The search over the whole time limit: one trial after the other, each with other draws.
//!
//! A trial ([`crate::trial`]) assigns CPUs, finds phases, and fills in the other jobs. The first trial has no draws. The
//! search ends with the first table that keeps everything.

use macrotick_model::SplitMix64;

use crate::chains::Reached;
use crate::error::PlanError;
use crate::folded::Problem;
use crate::options::Clock;
use crate::table::Piece;
use crate::trial::{Failed, Manner, Trial};

/// The most trials. A larger number finds nothing more.
const TRIALS: u64 = 4000;

impl Problem<'_> {
    /// Returns the pieces of the trial without draws, for a system with chains, with `after`, or without preemption.
    pub(crate) fn ordered(&self, clock: &Clock) -> Option<Vec<Vec<Piece>>> {
        if self.graph.edges.is_empty() && self.demands.iter().all(|demand| demand.preemptible) {
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
        let mut closest: Option<Reached> = None;
        let mut reason = reason;
        for number in 0..TRIALS {
            let random = SplitMix64::new(clock.options.seed.wrapping_mul(0x9e37_79b9).wrapping_add(number));
            let failed = match Trial::new(self, Manner::of(number), random) {
                Ok(trial) => match trial.bounded().run(clock) {
                    Ok(pieces) => return Ok(pieces),
                    Err(failed) => failed,
                },
                Err(error) => Failed::Other(error),
            };
            match failed {
                Failed::Chain(reached) if closest.is_none_or(|best| reached.excess() < best.excess()) => {
                    closest = Some(reached)
                }
                Failed::Chain(_) => {}
                Failed::Other(error) => drop(reason.get_or_insert(error)),
            }
            if clock.is_over() {
                break;
            }
        }
        Err(match (closest, reason) {
            (Some(reached), _) => self.exceeded(reached),
            (None, Some(error)) => error,
            (None, None) => unreachable!("a trial fails for a reason"),
        })
    }
}
