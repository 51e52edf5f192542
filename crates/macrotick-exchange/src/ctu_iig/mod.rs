//! The instances of CTU-IIG for solvers of time-triggered schedules (`CTU-IIG/CC_Scheduling_WithJitter`), after Minaeva
//! et al., "Time-Triggered Co-Scheduling of Computation and Communication with Jitter Requirements".
//!
//! An instance has runnables with periods, chains of runnables, and messages between them. All times are microseconds.
//! It does not say which runnable is on which CPU: that is the first part of the problem.
//!
//! | module | part |
//! |---|---|
//! | `entries` | the grammar: `name = number;` and `name = [nested list];` |
//! | `instance` | the entries of an instance, and the rules between them |
//! | `import` | the system of an instance |

mod entries;
mod import;
mod instance;

pub use import::{import, Factor, Options, ParseFactorError};
