//! Seeded random systems of several kinds, for benches and tests of solvers.
//!
//! The same kind, seed and parameters always give the same system. A generator knows nothing of the solvers. For some
//! kinds it builds a table first, so that a system certainly has one ([`feasible`]), or a conflict, so that it certainly
//! has none ([`infeasible`]).

mod anything;
mod draw;
mod ecu;
pub mod feasible;
pub mod infeasible;
mod kinds;
mod recipe;
mod shares;
mod wires;

pub use anything::anything;
pub use draw::Random;
pub use ecu::{ecu, Unit};
pub use kinds::{at_the_cap, independent, shared_chains, with_jitter, zero_jitter, Jitter, Size};
pub use recipe::{drawn, Draw, Periods, Recipe, RecipeError};
pub use wires::{switched, Topology, Traffic};
