//! The counts of a soak: a deployment that runs for days, with everything counted in constant memory.
//!
//! | module | part |
//! |---|---|
//! | `histogram` | how often each value occurred, with three significant digits |
//! | `counts` | the counts, which are also the document on disk |
//! | `tally` | adds the readings of a deployment to the counts |
//! | `state` | the directory of a soak: its plan and its counts, which survive a power cut |
//! | `recorder` | counts and saves beside the deployment, so that a slow disk delays nothing |
//! | `report` | the counts as text |

mod counts;
mod histogram;
mod recorder;
mod report;
mod state;
mod tally;

pub use counts::{Counts, GroupCounts, Memory, Pause, Pauses, TaskCounts, Worst};
pub use histogram::Histogram;
pub use recorder::Recorder;
pub use report::describe as report;
pub use state::{read, SoakError, State};
