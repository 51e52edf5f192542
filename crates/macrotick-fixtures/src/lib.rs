//! Small systems, plans, observations and hosts for tests. A test states only its own subject and takes the rest from
//! here.
//!
//! Tests do not write the documents of `macrotick-model` in full. Otherwise each new key of a document would change all
//! of them. Things with defaults in a description have their constructors in the model: `System::named`, `Task::named`.
//! For a test of a whole description, [`described`] parses its text. `schema` checks the files that are made from
//! types; `source` lists the names that the tree's own sources use; `pages` lists the documentation.

mod group;
mod host;
mod observation;
mod pages;
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
    counters, exact_gates, group_record, job, lab, measured_lead, observation, output, pool_record, records, segment,
    unsynchronised_clock,
};
pub use pages::pages;
pub use plan::{by_hand, table, tables, window};
pub use pool::pool;
pub use process::hog;
pub use schema::{hold, hold_schema, read_tree, refusals, repository, Side};
pub use source::{source, sources, Source};
pub use system::{described, namespace, sync, system};
pub use task::{reserved, spin, task};
pub use time::{ms, ns, us};
