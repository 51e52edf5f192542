//! What it costs that a job is cut into pieces, and how short a piece may be.
//!
//! From the beginning of a window until its thread runs the kernel takes 2.5 to 3 us of the lab's instructions, and some more
//! from its end until another one does. The first piece's part in that is in the job's wcet, as in that of a job in one piece.

use macrotick_model::Duration;

use crate::demand::{quantum, round_up, Demand};
use crate::LEAST_WINDOW;

/// What a job gets in addition for each piece but the first.
pub const RESUMING: Duration = Duration::from_micros(5);
/// The shortest piece of a job that is cut: the first of these with which there is a table. The judge takes none that is
/// shorter than the last.
const SHORTEST: [Duration; 3] = [Duration::from_micros(50), Duration::from_micros(20), Duration::from_micros(10)];

/// How jobs are cut on a grid.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    /// The macrotick.
    grid: Duration,
    /// The shortest piece.
    shortest: Duration,
}

/// What is missing of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Missing {
    /// So much of its wcet, or of a pool's budget.
    pub time: Duration,
    /// What another piece costs: nothing where it is the first, or a pool's, whose budget is window time.
    pub cost: Duration,
}

impl Missing {
    /// Of a job that has had a piece or has not.
    pub fn of(demand: &Demand, time: Duration, started: bool) -> Missing {
        Missing { time, cost: if started && !demand.is_pool() { RESUMING } else { Duration::ZERO } }
    }
}

impl Cut {
    /// The ways to cut them, from the one that costs least.
    pub fn all(grid: Duration) -> impl Iterator<Item = Cut> {
        let mut all: Vec<Duration> =
            SHORTEST.iter().map(|shortest| round_up(*shortest, grid).max(quantum(grid))).collect();
        all.dedup();
        all.into_iter().map(move |shortest| Cut { grid, shortest })
    }

    /// How long a piece has to be that completes a job or a pool's budget.
    pub fn completing(self, missing: Missing) -> Duration {
        let least = if missing.cost > Duration::ZERO { SHORTEST[SHORTEST.len() - 1] } else { LEAST_WINDOW };
        round_up((missing.time + missing.cost).max(least), self.grid).max(quantum(self.grid))
    }

    /// How long a piece has to be at least.
    pub fn least(self, missing: Missing) -> Duration {
        self.completing(missing).min(self.shortest)
    }
}

impl Missing {
    /// What is missing behind a piece of this length, which does not complete the job.
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
        assert_eq!((cut.least(next(30)), cut.least(next(100))), (us(35), us(50)));
        let rest = first(100).behind(us(60));
        assert_eq!((rest, cut.completing(Missing { time: rest, ..next(0) })), (us(40), us(45)));
        assert_eq!(next(40).behind(us(25)), us(20));
    }

    #[test]
    fn on_a_coarse_grid_pieces_are_cells() {
        let all: Vec<Cut> = Cut::all(Duration::from_micros(500)).collect();
        assert_eq!(all.len(), 1);
        // The cost is in what the grid adds.
        assert_eq!(
            all[0].completing(Missing { time: Duration::from_micros(700), cost: RESUMING }),
            Duration::from_millis(1)
        );
    }
}
