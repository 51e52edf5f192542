//! What the built-in processes do.

pub mod background;
pub mod calibration;
pub mod engine;
mod flood;
pub mod keeper;
mod random;
pub mod task;
