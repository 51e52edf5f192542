//! The judge of gates on whole plans.

mod common;
mod mutations;
mod random;
mod texts;
