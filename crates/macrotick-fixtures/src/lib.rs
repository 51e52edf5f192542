//! Small systems, plans, observations and hosts for tests: each says what the test is about and takes the rest from here.
//!
//! Tests do not write the documents of `macrotick-model` in full, so that a key that a document gets later changes none of
//! them. What has defaults in a description has its constructor in the model: `System::named`, `Task::named`. Where a
//! test is about a whole description, [`described`] takes its text. `schema` holds the files that are made from types;
//! `source` tells what the tree's own sources name.

mod group;
mod host;
mod observation;
mod plan;
mod pool;
mod process;
mod schema;
mod source;
mod system;
mod task;
mod time;

pub use group::group;
pub use host::{present, present_group};
pub use observation::{
    counters, group_record, job, lab, measured_lead, observation, output, pool_record, records, segment,
    unsynchronised_clock,
};
pub use plan::{by_hand, table, tables, window};
pub use pool::pool;
pub use process::hog;
pub use schema::{hold, hold_schema, read_tree, refusals, repository, Side};
pub use source::{source, sources, Source};
pub use system::{described, namespace, sync, system};
pub use task::{reserved, spin, task};
pub use time::{ms, ns, us};
