//! Processes: started, watched, and ended with all that they left behind.

pub mod child;
pub mod descendants;
pub mod output;
pub mod rescuer;
pub mod signals;
pub mod stray;
