//! The reasons why there is no plan or no answer.

use macrotick_analysis::servers::HostError;
use macrotick_model::LoadError;

/// The reason why there is no plan or no answer.
#[derive(Debug, thiserror::Error)]
pub enum AdmitError {
    /// The description of the system or of the container is wrong.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// There is no plan for what the description says.
    #[error(transparent)]
    Infeasible(LoadError),
    /// A name that a change of a plan cannot have.
    #[error(transparent)]
    Change(#[from] macrotick_plan::ChangeError),
    /// The analysis does not cover the description.
    #[error("the system cannot be analysed: {0}")]
    DescribedHost(HostError),
    /// The analysis does not cover a group or table of this host.
    #[error(transparent)]
    PresentHost(#[from] macrotick_host::present::Unanalysable),
    /// This host could not be read.
    #[error(transparent)]
    Here(#[from] macrotick_host::HostFailure),
}
