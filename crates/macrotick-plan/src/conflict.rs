//! The parts of a description that an error is about.

use crate::error::{Bound, PlanError};
use crate::refute::Refutation;

/// The parts of a description that conflict, by their names. All are empty if the error names none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conflict {
    /// Tasks and pools, the first one that the error names first.
    pub tasks: Vec<String>,
    /// A bound of a chain.
    pub chain: Option<(String, Bound)>,
}

impl Conflict {
    fn of<'n>(tasks: impl IntoIterator<Item = &'n String>) -> Conflict {
        Conflict { tasks: tasks.into_iter().cloned().collect(), chain: None }
    }

    fn of_chain(chain: &str, kind: Bound) -> Conflict {
        Conflict { tasks: Vec::new(), chain: Some((chain.into(), kind)) }
    }
}

impl PlanError {
    /// Returns the parts of the description that conflict.
    pub fn conflict(&self) -> Conflict {
        match self {
            PlanError::Impossible(refutation) => refutation.conflict(),
            PlanError::NotFound { bottleneck, .. } => bottleneck.conflict(),
            PlanError::Split { whole, .. } => whole.conflict(),
            PlanError::Chain { chain, kind, .. } => Conflict::of_chain(chain, *kind),
            PlanError::NoPhase { task, others, .. } | PlanError::Deadline { task, others, .. } => {
                Conflict::of([task].into_iter().chain(others))
            }
            PlanError::Exclusive { task, other, .. } => Conflict::of([task, other]),
            PlanError::NoColors { tasks, .. } => Conflict::of(tasks),
            PlanError::Grid { task, .. }
            | PlanError::NoRoom { task, .. }
            | PlanError::Pieces { task, .. }
            | PlanError::NoBandwidth { task, .. }
            | PlanError::NoStart { task, .. }
            | PlanError::Frozen { task } => Conflict::of([task]),
            PlanError::NoHyperperiod
            | PlanError::NoTable
            | PlanError::Overload { .. }
            | PlanError::TooManyWindows { .. }
            | PlanError::Gates(_) => Conflict::default(),
        }
    }
}

impl Refutation {
    fn conflict(&self) -> Conflict {
        match self {
            Refutation::Pinned { tasks, .. }
            | Refutation::Packing { tasks, .. }
            | Refutation::Demand { tasks, .. }
            | Refutation::Pieces { tasks, .. }
            | Refutation::Apart { tasks, .. }
            | Refutation::Exclusive { tasks, .. }
            | Refutation::Reserved { tasks, .. } => Conflict::of(tasks),
            Refutation::Starts { first, second, .. } => Conflict::of([first, second]),
            Refutation::Whole { task, other, .. } | Refutation::Between { task, other, .. } => {
                Conflict::of([task, other])
            }
            Refutation::Budgets { .. } => Conflict::default(),
            Refutation::Chain { chain, kind, .. } => Conflict::of_chain(chain, *kind),
        }
    }
}
