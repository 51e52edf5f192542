//! The simulator of gates, the judge of planned flows, and the judge of captures.

mod capture;
mod common;
mod damaged;
mod naive;
mod plan;
mod simulator;
mod slots;
mod text;
