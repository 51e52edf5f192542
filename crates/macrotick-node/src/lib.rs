//! Runs a plan on one host: deploys it, dispatches it for a fixed time, and returns the raw records. Or keeps it
//! running without a fixed end.
//!
//! [`run`] has a fixed end. [`supervise`], with [`change`](change()), [`status`](status()) and [`stop`], has none. Each
//! task and each process of the description is a process of its own. The built-in workloads execute this binary again
//! with a hidden verb. Therefore a program that calls [`run`] or [`supervise`] must call [`task::main`] or
//! [`processes::main`] when its first argument is [`task::VERB`] or [`processes::VERB`].
//!
//! A folder of this table uses only the folders above it (`tests/modules.rs` checks this). Code that touches the host's
//! files is in `macrotick-host`.
//!
//! | folder | part |
//! |---|---|
//! | `error` | errors: of a run, of a table that the kernel refused, of a change of a deployment |
//! | `block` | the memory that a task's process shares with the runner |
//! | `deployment` | decodes a plan, and reports its errors before anything on the host changes |
//! | `process` | processes: starts them, watches them, finds out why they do no jobs, ends them and their descendants |
//! | `workload` | the built-in workloads: [`task`], [`processes`] with the floods, and the keeper of a container |
//! | `backend` | dispatch: the kernel class with its pools, groups and domains, or the `user` dispatcher |
//! | `run` | one run: the start protocol, the runner's sleep, the restart of tasks, the collection of records |
//! | `live` | a deployment: a run without a fixed end, with changes and a status |

mod backend;
mod block;
mod deployment;
mod error;
mod live;
mod process;
mod run;
mod workload;

pub use deployment::options::{HostSettings, Output, Progress, RunOptions};
pub use error::{ChangeFault, NodeError, Refusal};
pub use live::changes::{Changes, Switch};
pub use live::difference::{Fate, Item, Kind, Service};
pub use live::event::{Event, Recorded};
pub use live::group_status::GroupStatus;
pub use live::reading::{Reading, TaskReading};
pub use live::status::{status, EntityStatus, GridStatus, LatenessStatus, Status, TableStatus};
pub use live::{change, soak, stop, supervise, Stopped};
pub use run::profile::set_up_commands;
pub use run::run;
pub use workload::{processes, task};
