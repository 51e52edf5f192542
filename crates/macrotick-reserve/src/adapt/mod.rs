//! Feedback for a reserved program, unmodified: it finds the period and the least runtime that keeps the jobs on time.
//!
//! Before its period is known, the program has most of a CPU, so that nothing disturbs its period. Then the thread with the most CPU time
//! of those that are periodic is followed. Each of its periods tells the CPU time, and whether a job was late. The
//! [`Controller`] makes the next runtime of it. Each change passes the same admission as a new reservation. A refused
//! change leaves the old runtime.
//!
//! | module | part |
//! |---|---|
//! | `controller` | from used time and late jobs to the next runtime; knows no host |
//! | `watch` | from the bursts of a thread to its periods |
//! | `find` | the thread to follow, and its period |
//! | `hold` | the reservation, and its changes |
//! | `run` | the feedback from the begin to the end of the program |
//! | `learned` | the result, for people and as a description |

mod controller;
mod find;
mod hold;
mod learned;
mod run;
mod watch;

pub use controller::{Bounds, Controller, Seen, ON_TIME};
pub use learned::Learned;
pub use run::{adapt, Adaptive};
