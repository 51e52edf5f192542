//! The experiments: those of the papers, and our own. Each runs in the lab, writes `figures.json`, tables and plots,
//! and provides its page of `docs/results`.
//!
//! Each experiment is a module of its own. The kit has the common parts; an experiment imports the kit and never
//! another experiment. Modules called `*_guest` run in the lab's guest, in the program of [`guest_main`].

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
mod network;
mod overhead;
mod overrun;
mod plan;
pub mod publication;
mod published;
mod response;
mod timershield;
mod tsnkit;
mod udp;
mod wall;

pub use error::BenchError;
pub use experiment::Experiment;
pub use guest_program::main as guest_main;
pub use kit::scale::Scale;
