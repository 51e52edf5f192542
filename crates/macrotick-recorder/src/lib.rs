//! The flight recorder.
//!
//! The kernel keeps the latest events of each CPU in a ring that is mapped ([`Recorder`]). After a miss they become a
//! [`Recording`]. [`explain`](explain()) divides the windows of the missed job among what had them, and names the largest part as the
//! [`Cause`]. [`trace_json`] writes the recording for Perfetto.

#![warn(missing_docs)]

mod cause;
mod decode;
mod event;
mod explain;
mod ring;
mod trace;

pub use cause::Cause;
pub use event::{Event, JobOf, Recording, Softirq, State, What};
pub use explain::{explain, Explained, Missed, Planned};
pub use ring::Recorder;
pub use trace::trace_json;
