//! The work of the built-in processes.

pub mod calibration;
pub mod engine;
mod flood;
pub mod keeper;
pub mod processes;
mod random;
pub mod task;
