//! This host: everything that touches its files, its device and its clocks, in one place.
//!
//! Each operation that changes the host gives back its undo: a guard whose drop takes it back, or a step of an [`Undo`]. Where
//! there is none, its documentation says why. What is refused is a [`HostFailure`], which names the file and the reason.
//!
//! | module | part |
//! |---|---|
//! | [`mod@file`], `undo` | any file: read, written, written back |
//! | [`cgroup`] | control groups: made, taken over, told what serves them, given back |
//! | [`budgets`] | the server period, and the groups that have budgets |
//! | [`kernel_threads`] | threads of the kernel, by name, and as members of groups |
//! | [`network`] | network namespaces |
//! | [`settings`] | settings of the whole host, and what needs them |
//! | [`lock`], [`state`] | who runs on this host, and what it told last |
//! | [`device`] | `/dev/macrotick` |
//! | [`present`] | what has been promised on this host, read and as the analysis has it |
//! | [`clock`], [`environment`], [`proc`] | `CLOCK_TAI`; the facts of a host; processes |
//! | [`trace`] | an instance of tracefs |
//! | [`limits`], [`sys`] | limits of processes; system calls |

pub mod budgets;
pub mod cgroup;
pub mod clock;
pub mod device;
pub mod environment;
mod error;
pub mod file;
pub mod kernel_threads;
pub mod limits;
pub mod lock;
pub mod network;
pub mod present;
pub mod proc;
pub mod settings;
pub mod state;
pub mod sys;
pub mod trace;
mod undo;

pub use error::HostFailure;
pub use undo::Undo;
