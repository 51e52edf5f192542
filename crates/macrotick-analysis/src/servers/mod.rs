//! Feasibility of groups: response times under deferrable servers, budgets, priorities, and one more container.
//!
//! The model is that of M. Barletta, M. Cinque, L. De Simone, R. Della Corte: Achieving Isolation in Mixed-Criticality
//! Industrial Edge Systems with Real-Time Containers (ECRTS 2022), section 3.2. Here it is "the paper". It rests on
//! Davis and Burns (RTSS 2005, RTNS 2008); `docs/explanation/papers.md` has the titles. This crate adds windows.
//! `docs/explanation/feasibility.md` has the model, and lists the exact times and the upper bounds.
//!
//! * [`analyse`]: the worst response time of every task, and every sum;
//! * [`least_budgets`]: the smallest budgets with which no task misses;
//! * [`assign_tasks`], [`assign_groups`], [`by_criticality`]: priorities;
//! * [`complete`]: budgets and orders of tasks that a description leaves open, beside given ones;
//! * [`period_advice`]: a server period with which groups need less;
//! * [`admit`]: whether one more container fits, and with which parameters.
//!
//! These functions only compute. They do not change their arguments.

mod admit;
mod analysis;
mod budget;
mod complete;
mod host;
mod order;
mod period;
mod refusal;
mod reserved;
mod response;
mod sums;
mod supply;
mod taken;
mod validate;

pub use admit::{admit, Admission, Change, Container};
pub use analysis::{analyse, Accuracy, Analysis, GroupAnalysis, ServerAnalysis, TaskAnalysis, Why};
pub use budget::{least_budgets, TaskOrder};
pub use complete::{complete, Open, Unassigned};
pub use host::{
    Arrival, Bandwidth, Capacity, Domain, Group, GroupTask, Host, Permille, Phase, Refill, Reserved, Server, PRIORITIES,
};
pub use order::{assign_groups, assign_tasks, by_criticality};
pub use period::{period_advice, PeriodAdvice};
pub use refusal::{Refusal, Shared};
pub use sums::CpuSum;
pub use taken::Taken;
pub use validate::{HostError, LONGEST};

/// The reason why there is no answer of the requested kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServersError {
    /// The input is invalid.
    #[error(transparent)]
    Invalid(#[from] HostError),
    /// The input is valid but not feasible; at least one reason.
    #[error("{}", lines(.0))]
    Refused(Vec<Refusal>),
}

/// Returns the result if there are no refusals.
fn unless_refused<T>(found: T, refusals: Vec<Refusal>) -> Result<T, ServersError> {
    if refusals.is_empty() {
        Ok(found)
    } else {
        Err(ServersError::Refused(refusals))
    }
}

fn lines(refusals: &[Refusal]) -> String {
    refusals.iter().map(Refusal::to_string).collect::<Vec<_>>().join("\n")
}
