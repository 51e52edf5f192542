//! Theory for work without instants of its own: response times, demand, least budgets, admission.
//!
//! [`servers`] covers groups under deferrable servers beside windows, [`deadline`] covers tasks under EDF, and
//! [`kernel`] has the kernel's own accounts of a CPU. With these, [`assign`] finds the values that a description leaves
//! open in its groups. The judge uses this crate where there is no plan to replay. The crate does not know how a
//! timetable is made.

mod assign;
pub mod deadline;
mod description;
pub mod kernel;
pub mod servers;

pub use assign::{assign, AssignError};
