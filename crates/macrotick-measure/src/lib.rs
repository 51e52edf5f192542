//! Any program, measured from outside: the periods, jitters and execution times of its threads.
//!
//! The scheduler's events tell when a thread wakes up, runs, is preempted and blocks. No change of the program is
//! needed. [`measure`] collects the events of a program and returns a [`Measurement`] with a [`Profile`] of each thread.
//!
//! | module | part |
//! |---|---|
//! | `run` | the measurement: starts or finds the program, and reads its events until the end |
//! | `capture`, `layout`, `ring` | the events, through tracefs |
//! | `record` | the threads of the program, and their bursts |
//! | `event`, `burst` | from a wake-up to the next block: instants, and the CPU time |
//! | `period` | the period, from the wake-ups |
//! | `job` | the bursts of one period |
//! | `bound` | quantiles, and a bound that the number of samples supports |
//! | `profile` | the result for a thread |
//! | `measurement` | the result for a program, for people and for programs |
//! | `describe` | a description with the periodic threads as tasks |

mod bound;
mod burst;
mod capture;
mod describe;
mod error;
mod event;
mod job;
mod measurement;
mod period;
mod profile;
mod record;
mod run;

pub use burst::{Burst, Bursts};
pub use describe::{describe, rounded};
pub use error::MeasureError;
pub use event::{Change, Event};
pub use job::{jobs, Job};
pub use measurement::Measurement;
pub use period::{find, near, Grid};
pub use profile::{Execution, Period, Profile, Row};
pub use record::Record;
pub use run::{measure, Target, Watch};
