//! Whole plans of descriptions, and containers admitted to a plan or to this host.
//!
//! The solver (`macrotick-plan`) finds windows, the analysis (`macrotick-analysis`) the values of groups that depend on
//! them, and the judge (`macrotick-check`) decides. This crate makes one answer of the three.
//!
//! | module | part |
//! |---|---|
//! | `planned` | a description to its whole plan, if wanted as a change of a former plan |
//! | `base` | where containers are admitted: this host, a plan, or a description |
//! | `described` | a description, and the plan with the containers admitted so far |
//! | `answer` | the answer for one container |
//! | `text` | the answers as text, with the commands for this host |
//! | `error` | the reasons why there is no answer |

mod answer;
mod base;
mod described;
mod error;
mod nearest;
mod planned;
mod text;

pub use answer::Answer;
pub use base::Base;
pub use error::AdmitError;
pub use planned::{planned, planned_from};
pub use text::describe;
