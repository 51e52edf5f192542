//! Feasibility of groups: response times under deferrable servers, budgets, priorities, and one more container.
//!
//! After M. Barletta, M. Cinque, L. De Simone, R. Della Corte: Achieving Isolation in Mixed-Criticality Industrial Edge
//! Systems with Real-Time Containers (ECRTS 2022), section 3.2, "the paper" here, and what it rests on:
//! R. I. Davis, A. Burns: Hierarchical fixed priority pre-emptive scheduling (RTSS 2005), and An investigation into
//! server parameter selection for hierarchical fixed priority pre-emptive systems (RTNS 2008). Windows are added.
//! `docs/feasibility.md` has the model, and says what is exact and what an upper bound.
//!
//! * [`analyse`]: the worst response time of every task, and every sum;
//! * [`least_budgets`]: the smallest budgets with which no task misses;
//! * [`assign_tasks`], [`assign_groups`], [`by_criticality`]: priorities;
//! * [`complete`]: what a description leaves open, budgets and orders of tasks beside given ones;
//! * [`period_advice`]: a server period with which groups need less;
//! * [`admit`]: whether one more container fits, and with which parameters.
//!
//! All of this is arithmetic on its arguments, which stay as they are.

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

/// Why there is no answer of the kind that was asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServersError {
    /// What was given makes no sense.
    #[error(transparent)]
    Invalid(#[from] HostError),
    /// It makes sense and is not feasible; at least one reason.
    #[error("{}", lines(.0))]
    Refused(Vec<Refusal>),
}

/// What was found, if nothing speaks against it.
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
