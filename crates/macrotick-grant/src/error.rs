//! The reasons why there is no grant.

use std::io;
use std::path::PathBuf;

use macrotick_host::HostFailure;
use macrotick_model::{CpuSet, Duration};
use macrotick_reserve::ReserveError;

/// The reason why the helper does not reserve, or why it cannot be asked.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // The message explains each field.
pub enum GrantError {
    /// The file of the limits cannot be read.
    #[error("cannot read {path}: {source}", path = path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    /// Others could raise their limits.
    #[error(
        "{path} must be a file of root that no other user can write: `chown root {path}; chmod 644 {path}`",
        path = path.display()
    )]
    NotOfRoot { path: PathBuf },
    /// The file of the limits is wrong.
    #[error("{path}:{reason}", path = path.display())]
    Limits { path: PathBuf, reason: String },
    /// The input is no connection.
    #[error("standard input is no Unix socket ({0}): macrotick-grant.socket starts this command for each connection")]
    NoConnection(io::Error),
    /// The peer sends no request.
    #[error("the request is not understood: {0}")]
    Request(String),
    /// The user has no limits.
    #[error("user {user} may not reserve: neither the user nor one of its groups is in {path}", path = path.display())]
    NoLimits { user: u32, path: PathBuf },
    /// The peer counts processes in another way.
    #[error("the command is in another PID namespace than macrotick-grant, so its thread cannot be found")]
    Namespace,
    /// The thread is not the user's.
    #[error("thread {thread} does not belong to user {user} alone")]
    Foreign { thread: i32, user: u32 },
    /// A limit is exceeded.
    #[error(
        "it would take {} % of a CPU by its deadline, and the limit of user {user} is {} %, of which {} % are taken",
        percent(*need), percent(*most), percent(*taken)
    )]
    Bandwidth { user: u32, need: u64, most: u64, taken: u64 },
    /// The period is too short for the user.
    #[error("--period {period} is shorter than {least}, the limit of user {user}")]
    Period { user: u32, period: Duration, least: Duration },
    /// The thread may run on CPUs that are not the user's.
    #[error("the reservation would be on {}, and user {user} may reserve on {}", .cpus.words(), .allowed.words())]
    Cpus { user: u32, cpus: CpuSet, allowed: CpuSet },
    /// The user may not reclaim.
    #[error("user {user} may not use --reclaim")]
    Reclaim { user: u32 },
    /// The user has too many.
    #[error("user {user} has {count} reservations already, the most that one user can have")]
    Many { user: u32, count: usize },
    /// There is no reservation.
    #[error(transparent)]
    Reserve(#[from] ReserveError),
    /// The host cannot be read or changed.
    #[error(transparent)]
    Host(#[from] HostFailure),
    /// The helper has refused, with its reason and exit code.
    #[error("macrotick-grant refuses: {text}")]
    Refused { text: String, code: u8 },
    /// The helper cannot be reached.
    #[error("cannot ask macrotick-grant at {path}: {source}", path = path.display())]
    Unreachable { path: PathBuf, source: io::Error },
    /// The helper has ended early.
    #[error("macrotick-grant has ended without a word: look at its journal. The reservation has ended with it")]
    Lost,
}

/// Returns millionths in percent, with one digit.
fn percent(ppm: u64) -> String {
    format!("{}.{}", ppm / 10_000, ppm / 1000 % 10)
}

impl GrantError {
    /// Returns the exit code: 1 for a refusal, 2 for wrong input, 3 for a host that failed.
    pub fn exit_code(&self) -> u8 {
        match self {
            GrantError::Refused { code, .. } => *code,
            GrantError::Limits { .. } | GrantError::Request(_) | GrantError::NoConnection(_) => 2,
            GrantError::NoLimits { .. }
            | GrantError::Foreign { .. }
            | GrantError::Bandwidth { .. }
            | GrantError::Period { .. }
            | GrantError::Cpus { .. }
            | GrantError::Reclaim { .. }
            | GrantError::Many { .. } => 1,
            GrantError::Reserve(error) if error.is_about_the_input() => 2,
            GrantError::Reserve(error) if error.is_a_refusal() => 1,
            _ => 3,
        }
    }
}
