//! The door to this host: all code that touches its files, its device and its clocks.
//!
//! Each operation that changes the host returns its undo: a guard that reverts the change when it is dropped, or a step
//! of an [`Undo`]. The documentation of an operation without an undo says why. A refusal is a [`HostFailure`] with the
//! file and the reason.
//!
//! | module | part |
//! |---|---|
//! | [`mod@file`], `undo` | reads, writes and restores any file |
//! | [`cgroup`] | control groups: making them, taking them over, their supply, giving them back |
//! | [`budgets`] | the server period, and the groups that have budgets |
//! | [`kernel_threads`] | threads of the kernel, by name, and as members of groups |
//! | [`network`] | network namespaces |
//! | [`net`] | gates, traffic classes, classifiers and queues of network devices |
//! | [`settings`] | settings of the whole host, and their holders |
//! | [`profile`] | the set-up of the host for a plan: interrupts, kernel threads, CPUs |
//! | [`lock`], [`state`] | the run or deployment on this host, and its last published state |
//! | [`device`] | `/dev/macrotick` |
//! | [`present`] | the promises on this host, as read and as input of the analysis |
//! | [`clock`], [`environment`], [`proc`] | `CLOCK_TAI`; the facts of a host; processes |
//! | [`trace`] | an instance of tracefs |
//! | [`deadline`] | the limits of SCHED_DEADLINE, and the CPUs of its domains |
//! | [`limits`], [`sys`] | limits of processes; system calls |

pub mod budgets;
pub mod cgroup;
pub mod clock;
pub mod deadline;
pub mod device;
pub mod environment;
mod error;
pub mod file;
pub mod grants;
pub mod kernel_threads;
pub mod limits;
pub mod lock;
pub mod net;
pub mod network;
pub mod present;
pub mod proc;
pub mod profile;
pub mod settings;
pub mod state;
pub mod sys;
pub mod trace;
mod undo;

pub use error::HostFailure;
pub use undo::Undo;
