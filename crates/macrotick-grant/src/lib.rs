//! Reservations of SCHED_DEADLINE for ordinary users, within the limits of the administrator.
//!
//! The kernel gives SCHED_DEADLINE only to processes with CAP_SYS_NICE. A helper with this privilege serves one connection
//! on a Unix socket. The kernel names the user at its other end, and a file of the administrator has the limits of this
//! user. The helper reserves for one thread of the user, and keeps the reservation until the connection closes or the
//! thread ends.
//!
//! | module | part |
//! |---|---|
//! | `message` | the request and the answers, and their way through a socket |
//! | `limits` | the file of the administrator, and the limits of a user |
//! | `accounts` | the numbers of users and groups |
//! | `serve` | the helper: one connection |
//! | `ask` | the user's side |
//! | `error` | the reasons why there is no grant |

mod accounts;
mod ask;
mod error;
mod limits;
mod message;
mod serve;

pub use ask::{ask, Granted, SOCKET};
pub use error::GrantError;
pub use limits::{Limit, Limits, FILE};
pub use serve::serve;
