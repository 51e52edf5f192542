//! The experiments: those of the papers, and promises of ours. Each runs in the lab, writes `figures.json`, tables and plots,
//! and says what `docs/results` should tell of it.
//!
//! An experiment is a module of its own. What several share is in the kit; an experiment imports the kit and never another
//! one. Modules called `*_guest` run in the lab's guest, in the program that [`guest_main`] is.

mod containers;
mod cost;
mod deadline;
mod e2e;
mod error;
mod experiment;
mod guest_program;
mod isolation;
mod jitter;
mod kit;
mod lead;
mod overhead;
mod overrun;
mod response;
mod timershield;
mod wall;

pub use error::BenchError;
pub use experiment::Experiment;
pub use guest_program::main as guest_main;
pub use kit::scale::Scale;
