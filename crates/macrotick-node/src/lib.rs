//! One host: deploys a plan, dispatches it for a while, and returns the raw records; or keeps it running.
//!
//! [`run`] does the former, [`supervise`] with [`change`](change()), [`status`](status()) and [`stop`] the latter. Every task and every
//! process of the description is a process of its own. Built-in ones execute this very binary again with a hidden verb, so a program that
//! calls [`run`] or [`supervise`] must hand over to [`task::main`] and [`processes::main`] when its first argument is
//! [`task::VERB`] or [`processes::VERB`].
//!
//! The folders, each of which uses those above it and none below (`tests/modules.rs` holds that); what touches the host's files
//! is in `macrotick-host`:
//!
//! | folder | part |
//! |---|---|
//! | `error` | why a run failed, a table was refused, a deployment does not become another one |
//! | `block` | the memory that a task's process shares with the runner |
//! | `deployment` | decodes a plan: everything that can be refused before anything is touched |
//! | `process` | processes: started, watched, asked why they do no jobs, ended with all that they left behind |
//! | `workload` | what the built-in ones do: [`task`], [`processes`] with its floods, and the keeper of a container |
//! | `backend` | who dispatches: the kernel class with its pools, groups and domains, or the `user` dispatcher |
//! | `run` | one run: the start protocol, the sleep, tasks begun anew, what is collected |
//! | `live` | a run without an end, which can be changed and asked how it is: a deployment |

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
pub use live::event::Event;
pub use live::group_status::GroupStatus;
pub use live::status::{cpus_of_entities, status, EntityStatus, GridStatus, Status, TableStatus};
pub use live::{change, stop, supervise, Stopped};
pub use run::run;
pub use workload::{processes, task};
