//! `macrotick import` and `macrotick export`: systems in the files of other tools.
//!
//! An import reads a text and returns a valid [`System`](macrotick_model::System) with remarks. A remark names each
//! part of the file that has no counterpart. If the system would mean something else without that part, the import
//! fails. A text may come from anywhere: no text makes an import panic, or recurse or grow without a bound.
//!
//! | module | part |
//! |---|---|
//! | [`rt_app`] | the JSON files of rt-app, in both directions |
//! | [`amalthea`] | the models of AMALTHEA (Eclipse APP4MC) |
//! | [`ctu_iig`] | the instances of CTU-IIG, which test solvers |
//! | [`error`] | the reasons why an import or an export fails |
//! | `findings` | collects remarks and refusals, each with its path |
//! | `names` | valid and unique names |
//! | `scan` | the characters of a text, with line and column |

pub mod amalthea;
pub mod ctu_iig;
pub mod error;
mod findings;
mod names;
pub mod rt_app;
mod scan;

pub use error::{ExportError, ImportError};

/// The longest text that an import reads, in bytes.
pub const MAX_BYTES: usize = 4 << 20;
