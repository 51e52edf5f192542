//! The cost of cutting a job into pieces, and the length of the shortest piece.
//!
//! In the lab, the kernel takes 2.5 to 3 us from the start of a window until its thread runs. It takes some more from
//! the end of a window until another thread runs. For the first piece, the job's wcet contains this time, as for a job
//! in one piece.

use macrotick_model::Duration;

use crate::demand::{quantum, round_up, Demand};
use crate::LEAST_WINDOW;

/// The time that a job gets in addition for each piece except the first.
pub const RESUMING: Duration = Duration::from_micros(5);
/// The lengths of the shortest piece of a cut job. The solver tries them in this order until it finds a table. The
/// judge accepts no piece that is shorter than the last one.
const SHORTEST: [Duration; 3] = [Duration::from_micros(50), Duration::from_micros(20), Duration::from_micros(10)];
/// The shortest piece of a cut job that the judge accepts.
pub(crate) const SHORTEST_OF_ALL: Duration = SHORTEST[SHORTEST.len() - 1];

/// The way to cut jobs on a grid.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    /// The macrotick.
    grid: Duration,
    /// The shortest piece.
    shortest: Duration,
}

/// The missing time of a job or of a pool's budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Missing {
    /// The missing part of the wcet or budget.
    pub time: Duration,
    /// The cost of another piece. It is zero for the first piece, and for a pool, because its budget is window time.
    pub cost: Duration,
}

impl Missing {
    /// Makes the missing time of a job. `started` tells whether it has had a piece.
    pub fn of(demand: &Demand, time: Duration, started: bool) -> Missing {
        Missing { time, cost: if started && !demand.is_pool() { RESUMING } else { Duration::ZERO } }
    }
}

impl Cut {
    /// Returns the ways to cut jobs, the cheapest first.
    pub fn all(grid: Duration) -> impl Iterator<Item = Cut> {
        let mut all: Vec<Duration> =
            SHORTEST.iter().map(|shortest| round_up(*shortest, grid).max(quantum(grid))).collect();
        all.dedup();
        all.into_iter().map(move |shortest| Cut { grid, shortest })
    }

    /// Returns the way to cut with the longest pieces.
    pub fn coarsest(grid: Duration) -> Cut {
        Cut { grid, shortest: round_up(SHORTEST[0], grid).max(quantum(grid)) }
    }

    /// Returns the length of the shortest piece that does not complete its job.
    pub fn shortest(self) -> Duration {
        self.shortest
    }

    /// Returns the length of a piece that completes a job or a pool's budget.
    pub fn completing(self, missing: Missing) -> Duration {
        let least = if missing.cost > Duration::ZERO { SHORTEST_OF_ALL } else { LEAST_WINDOW };
        round_up((missing.time + missing.cost).max(least), self.grid).max(quantum(self.grid))
    }

    /// Returns the least length of a piece of a job or a pool's budget. A job without preemption has one piece.
    pub fn least(self, demand: &Demand, missing: Missing) -> Duration {
        let completing = self.completing(missing);
        if demand.preemptible {
            completing.min(self.shortest)
        } else {
            completing
        }
    }
}

impl Missing {
    /// Returns the missing time after a piece of this length, which does not complete the job.
    pub fn behind(self, length: Duration) -> Duration {
        self.time + self.cost - length
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_piece_but_the_first_costs() {
        let us = Duration::from_micros;
        let cut = Cut::all(us(1)).next().unwrap();
        let first = |time| Missing { time: us(time), cost: Duration::ZERO };
        let next = |time| Missing { time: us(time), cost: RESUMING };
        assert_eq!((cut.completing(first(100)), cut.completing(next(100))), (us(100), us(105)));
        assert_eq!((cut.completing(first(1)), cut.completing(next(1))), (us(6), us(10)));
        let demand = |preemptible| Demand { preemptible, ..crate::demand::tests::demand() };
        let least = |preemptible, missing| cut.least(&demand(preemptible), missing);
        assert_eq!((least(true, next(30)), least(true, next(100))), (us(35), us(50)));
        assert_eq!((least(false, first(30)), least(false, first(100))), (us(30), us(100)));
        let rest = first(100).behind(us(60));
        assert_eq!((rest, cut.completing(Missing { time: rest, ..next(0) })), (us(40), us(45)));
        assert_eq!(next(40).behind(us(25)), us(20));
    }

    #[test]
    fn on_a_coarse_grid_pieces_are_cells() {
        let all: Vec<Cut> = Cut::all(Duration::from_micros(500)).collect();
        assert_eq!(all.len(), 1);
        // The rounding to the grid covers the cost.
        assert_eq!(
            all[0].completing(Missing { time: Duration::from_micros(700), cost: RESUMING }),
            Duration::from_millis(1)
        );
    }
}
