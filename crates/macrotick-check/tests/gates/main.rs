//! The judge of gates on whole plans.

mod capture;
mod common;
mod mutations;
mod random;
mod switches;
mod tdma;
mod texts;
