//! The counters of `macrotick status` as metrics of Prometheus.
//!
//! | module | part |
//! |---|---|
//! | `families` | the metrics: names, labels, units |
//! | `server` | the answers over HTTP |
//! | `textfile` | a file for the collector `textfile` of the node exporter |

mod families;
mod server;
mod textfile;

pub use families::text;
pub use server::{serve, ServeError};
pub use textfile::replace;
