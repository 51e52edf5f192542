//! Processes: starts them, watches them, and ends them with all their descendants.

pub mod child;
pub mod descendants;
pub mod output;
pub mod rescuer;
pub mod signals;
pub mod stray;
