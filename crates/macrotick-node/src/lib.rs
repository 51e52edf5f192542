//! One host: deploys a plan, dispatches it for a while, and returns the raw records; or keeps it running.
//!
//! [`run`] does the former, [`supervise`] with [`change`], [`status`](status()) and [`stop`] the latter. Every task and every background load is a process of its own. Built-in ones execute this
//! very binary again with a hidden verb, so a program that calls [`run`] or [`supervise`] must hand over to [`task::main`] and
//! [`background::main`] when its first argument is [`task::VERB`] or [`background::VERB`].
//!
//! Which module does what, in the order of a run:
//!
//! | module | part |
//! |---|---|
//! | `deployment` | decodes a plan: everything that can be refused before anything is touched |
//! | `lock`, `signals`, `calibration` | the runner's own preparation |
//! | `kernel` | the backend `kernel`: the table and the threads in `/dev/macrotick` |
//! | `cgroup`, `kernel_threads`, `pools` | the control groups of pools, and the kernel threads in them |
//! | `domains` | the partitions of tasks of SCHED_DEADLINE |
//! | `network` | network namespaces |
//! | `block`, `child` | processes and the memory they share with the runner |
//! | [`task`], [`background`], `flood` | what those processes do |
//! | `keeper`, `engine` | containers that are background load |
//! | `dispatcher` | the backend `user` |
//! | `trace`, `environment`, `records` | what is observed |
//! | `stray` | why a task that is there does no jobs |
//! | `supervisor` | tasks whose processes are begun anew |
//! | `live` | a run without an end, which can be changed: a deployment |
//! | `budgets` | which control groups have budgets, whoever gave them |
//! | [`settings`] | settings of the whole host, and what needs them |
//! | `status`, `group_status`, `present` | what runs on this host, and what has been promised there |
//! | `run`, `collect` | the start protocol and the sleep; the end |
//! | `abi`, `sys` | the block that tasks in C share, and system calls |

mod abi;
pub mod background;
mod block;
mod calibration;
mod child;
mod collect;
mod deployment;
mod descendants;
mod dispatcher;
mod domains;
mod engine;
mod error;
mod flood;
mod group_status;
mod groups;
mod keeper;
mod kernel;
mod lead;
mod live;
mod options;
mod output;
mod pools;
mod random;
mod records;
mod run;
mod signals;
mod status;
mod stray;
mod supervisor;
pub mod task;
mod trace;

pub use error::NodeError;
pub use group_status::GroupStatus;
pub use kernel::Refusal;
pub use live::{change, stop, supervise, ChangeFault, Changes, Event, Fate, Item, Kind, Service, Stopped, Switch};
pub use options::{HostSettings, Output, Progress, RunOptions};
pub use run::run;
pub use status::{cpus_of_entities, status, EntityStatus, GridStatus, Status, TableStatus};
