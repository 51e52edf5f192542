//! The system description, the plan and the observation: the three documents that Macrotick's stages exchange.
//!
//! Every stage reads one document and writes the next (`docs/flow.md`); their types live here and nowhere else.

pub mod diagnostic;
mod emit;
pub mod files;
pub mod observation;
mod parse;
pub mod plan;
pub mod system;
pub mod time;
pub mod timeline;
pub mod validate;

pub use diagnostic::{Diagnostic, Diagnostics};
pub use files::{FileError, LoadError};
pub use observation::{Backend, EntityCounters, Environment, Job, Observation, Segment, TaskObservation, Tier};
pub use plan::{CpuTable, Plan, Window};
pub use system::{Background, Chain, ExecutionTime, GivenWindow, Load, Policy, System, Task, Workload};
pub use time::{Duration, Instant};
