//! The models of AMALTHEA (Eclipse APP4MC), version 0.8 to 3, in one or several `.amxmi` files.
//!
//! A model has tasks, which stimuli activate and which call runnables. Runnables need ticks of a processing unit. A task
//! becomes one task with windows: its period is that of its stimulus, its WCET the longest path of its activity graph.
//!
//! | module | part |
//! |---|---|
//! | `document` | the XML of a file, within limits |
//! | `element` | an element, its attributes, and its place |
//! | `model` | all files as one model; references between elements |
//! | `units` | numbers, times and frequencies |
//! | `bounds` | the upper bound of a deviation |
//! | `hardware` | processing units: CPUs, frequencies, features |
//! | `cost` | ticks for each kind of CPU |
//! | `activity` | the ticks and the calls of activity graphs |
//! | `stimuli` | the releases of tasks |
//! | `mapping` | the CPUs of tasks |
//! | `requirements` | the deadlines of tasks |
//! | `events` | the task of an event |
//! | `chains` | event chains and their latency constraints |
//! | `import` | the system of a model |

mod activity;
mod bounds;
mod chains;
mod cost;
mod document;
mod element;
mod events;
mod hardware;
mod import;
mod mapping;
mod model;
mod requirements;
mod stimuli;
mod units;

pub use document::Source;
pub use import::{import, Options};

/// The longest model that an import reads, in bytes of all files together. Models of whole engine control units have a
/// few MiB.
pub const MAX_BYTES: usize = 16 << 20;
