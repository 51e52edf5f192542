//! A deployment on the terminal.
//!
//! | module | part |
//! |---|---|
//! | `status` | the status as text |
//! | `changes` | a change of the deployment as text |
//! | [`top`] | the live view |

mod changes;
mod status;
pub mod top;

pub use changes::describe as changes;
pub use status::describe as status;

/// Returns nanoseconds as seconds, exactly.
pub fn seconds(ns: i64) -> String {
    format!("{}.{:09}", ns.div_euclid(1_000_000_000), ns.rem_euclid(1_000_000_000))
}
