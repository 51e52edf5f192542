//! What theory says of whatever has no instants of its own: response times, demand, least budgets, admission.
//!
//! [`servers`] answers for groups under deferrable servers beside windows, [`deadline`] for tasks under EDF, and [`kernel`]
//! counts what the kernel promises of a CPU. What a description leaves open of its groups, [`assign`] finds with that. The
//! judge relies on it where there is no plan to replay; none of it knows how a timetable is made.

mod assign;
pub mod deadline;
mod description;
pub mod kernel;
pub mod servers;

pub use assign::{assign, AssignError};
