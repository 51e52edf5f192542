//! Solvers: from a system to the tables of a plan.
//!
//! [`Solver::FoldedOccupancy`] is the real one (`folded.rs` says how it works), [`Solver::Null`] takes a table that
//! was given by hand. Neither judges its own work: `macrotick-check` does, and shares no code with this crate.

mod assign;
mod chains;
mod cut;
mod demand;
mod draft;
mod edf;
mod error;
mod folded;
mod gaps;
mod network;
mod null;
mod occupancy;
mod pieces;
mod place;
mod reserve;
mod split;
mod table;

use std::fmt;
use std::str::FromStr;

use macrotick_model::{Duration, Plan, System};

pub use cut::RESUMING;
pub use error::{Bound, Kind, PlanError};
pub use network::{network_advice, NetworkAdvice};

/// Most of a CPU that windows may take, in thousandths: the kernel keeps the rest (`MACROTICK_CAP_PERMILLE`).
pub const CAP_PERMILLE: i64 = 950;
/// What runs in a window begins some microseconds behind the window's beginning: in a shorter window it never does. In the lab
/// that takes up to 5 us, of which a lead saves a part; on a host the runner measures it. Nor is a group's window shorter.
pub const LEAST_WINDOW: Duration = Duration::from_micros(6);
/// Shortest window that the kernel takes (`MACROTICK_MIN_WINDOW_NS`).
pub const MIN_WINDOW: Duration = Duration::from_micros(1);

/// A way to make a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Solver {
    /// Folded occupancy for what must start on a fixed phase, EDF simulation for the rest.
    FoldedOccupancy,
    /// The table given by hand, as it is.
    Null,
}

impl Solver {
    /// All solvers.
    pub const ALL: [Solver; 2] = [Solver::FoldedOccupancy, Solver::Null];

    /// The name used on the command line and in plans.
    pub fn name(self) -> &'static str {
        match self {
            Solver::FoldedOccupancy => "folded",
            Solver::Null => "null",
        }
    }

    /// The solver for a system when none is asked for: `null` where a table is given, else `folded`.
    pub fn default_for(system: &System) -> Solver {
        match system.table {
            Some(_) => Solver::Null,
            None => Solver::FoldedOccupancy,
        }
    }
}

impl fmt::Display for Solver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A name that no solver has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown solver `{0}`: use folded or null")]
pub struct UnknownSolver(String);

impl FromStr for Solver {
    type Err = UnknownSolver;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Solver::ALL.into_iter().find(|solver| solver.name() == name).ok_or_else(|| UnknownSolver(name.into()))
    }
}

/// Makes a plan. The same system and solver always give the same plan.
///
/// The system must keep the rules of a description, as every one that was parsed or loaded does.
pub fn plan(system: &System, solver: Solver) -> Result<Plan, PlanError> {
    let cycle = system.cycle_of_plan().ok_or(PlanError::NoHyperperiod)?;
    let tables = match solver {
        Solver::FoldedOccupancy => folded::tables(system, cycle)?,
        Solver::Null => null::tables(system)?,
    };
    let system = reserve::reserve(system, &tables, cycle)?;
    Ok(Plan::new(solver.name(), cycle, tables, system))
}
