//! Solvers: from a system to the tables of a plan, and to the gate lists of its interfaces.
//!
//! [`Solver::FoldedOccupancy`] computes tables (`folded.rs` explains how), [`Solver::Null`] uses a table by hand.
//! Neither checks its own result: `macrotick-check` does, and shares no code with this crate.

mod apart;
mod assign;
mod budget;
mod canonical;
mod chains;
mod change;
mod conflict;
mod cut;
mod demand;
mod draft;
mod edf;
mod error;
mod exclusive;
mod fewest;
mod folded;
mod frozen;
mod gaps;
mod gates;
mod graph;
mod harmonic;
mod insert;
mod kept;
mod network;
mod null;
mod occupancy;
mod options;
mod packing;
mod phases;
mod pieces;
mod place;
mod prices;
mod refute;
mod reserve;
mod room;
mod search;
mod split;
mod table;
mod trial;
pub mod wire;

use std::fmt;
use std::str::FromStr;

use macrotick_model::{Duration, Plan, System};

pub use change::{Change, ChangeError, Moved};
pub use conflict::Conflict;
pub use cut::RESUMING;
pub use error::{Answer, Bound, Ended, Kind, PlanError};
pub use gates::{GateError, Late, LateFrame};
pub use network::{network_advice, NetworkAdvice};
pub use options::{Options, Progress, Unwatched, Watch};
pub use refute::Refutation;

/// The largest share of a CPU that windows can take, in thousandths. The kernel keeps the rest
/// (`MACROTICK_CAP_PERMILLE`).
pub const CAP_PERMILLE: i64 = 950;
/// The shortest useful window: in a shorter one, the job or the threads never run. They start some microseconds after
/// the start of the window. In the lab, this takes up to 5 us, and a lead saves a part. On a host, the runner measures
/// it. The limit also applies to windows of groups.
pub const LEAST_WINDOW: Duration = Duration::from_micros(6);
/// The shortest window that the kernel accepts (`MACROTICK_MIN_WINDOW_NS`).
pub const MIN_WINDOW: Duration = Duration::from_micros(1);

/// A way to make a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Solver {
    /// Folded occupancy for tasks that must start on a fixed phase, and EDF simulation for the others.
    FoldedOccupancy,
    /// The table by hand, without a change.
    Null,
}

impl Solver {
    /// All solvers.
    pub const ALL: [Solver; 2] = [Solver::FoldedOccupancy, Solver::Null];

    /// Returns the name on the command line and in plans.
    pub fn name(self) -> &'static str {
        match self {
            Solver::FoldedOccupancy => "folded",
            Solver::Null => "null",
        }
    }

    /// Returns the default solver for a system: `null` with a table by hand, else `folded`.
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

/// Makes a plan with the default [`Options`].
///
/// The system must keep the rules of a description. A system that was parsed or loaded does.
pub fn plan(system: &System, solver: Solver) -> Result<Plan, PlanError> {
    plan_within(system, solver, Options::default())
}

/// Makes a plan within these limits. The plan is the same for the same system, solver and seed, in whichever order the
/// system lists its parts. On a slow machine, the time limit can end a part of the search: the plan can then be
/// another one, or missing.
pub fn plan_within(system: &System, solver: Solver, options: Options) -> Result<Plan, PlanError> {
    plan_watched(system, solver, options, &options::Unwatched)
}

/// Makes a plan like [`plan_within`], while `watch` follows the search.
pub fn plan_watched(system: &System, solver: Solver, options: Options, watch: &dyn Watch) -> Result<Plan, PlanError> {
    let clock = options::Clock::start(options, watch);
    gates::with_gates(system, solver != Solver::Null, &clock, |system| windows(system, solver, &clock, None))
}

/// Makes a plan like [`plan_watched`] in at most so many trials of the search. A small number bounds it on any machine.
pub fn plan_in_trials(
    system: &System,
    solver: Solver,
    options: Options,
    trials: u64,
    watch: &dyn Watch,
) -> Result<Plan, PlanError> {
    let clock = options::Clock::start(options, watch).with_trials(trials);
    gates::with_gates(system, solver != Solver::Null, &clock, |system| windows(system, solver, &clock, None))
}

/// Makes a plan like [`plan_watched`] in which as few windows as possible differ from those of a former plan. A table by
/// hand stays as it is.
pub fn plan_changed(system: &System, change: &Change, options: Options, watch: &dyn Watch) -> Result<Plan, PlanError> {
    let clock = options::Clock::start(options, watch);
    let solver = Solver::default_for(system);
    gates::with_gates(system, solver != Solver::Null, &clock, |system| windows(system, solver, &clock, Some(change)))
}

/// Makes a plan without gate lists.
fn windows(
    system: &System,
    solver: Solver,
    clock: &options::Clock,
    change: Option<&Change>,
) -> Result<Plan, PlanError> {
    let cycle = system.cycle_of_plan().ok_or(PlanError::NoHyperperiod)?;
    let ordered = canonical::ordered(system);
    let kept::Tables { tables, system: reserved, .. } = match solver {
        Solver::FoldedOccupancy => {
            let solve = |system: &System, clock: &options::Clock| match change {
                Some(change) => change.tables(system, cycle, clock),
                None => kept::tables(system, cycle, clock, &frozen::Windows::new()),
            };
            let former = |name: &str| change.and_then(|change| change.former_cpu(name));
            apart::tables(&ordered, cycle, clock, &former, &solve)?
        }
        Solver::Null => {
            let tables = null::tables(system)?;
            let reserved = reserve::reserve(&ordered, &tables, cycle)?;
            kept::Tables { tables, system: reserved, is_enough: false }
        }
    };
    Ok(Plan::new(solver.name(), cycle, tables, canonical::with_reservations(system, &reserved)))
}
