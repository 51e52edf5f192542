//! `macrotick doctor`: is this host fit for real time, and the command that mends each finding.
//!
//! A [`Host`] is captured once: files of `/proc` and `/sys`, threads, network interfaces, measurements. Each [`Check`]
//! is a pure function from it, and from the [`Needs`] of a description, to a [`Verdict`]. So a captured host is examined
//! elsewhere as at home, and every check has fixtures in which it passes and fails.
//!
//! | module | part |
//! |---|---|
//! | [`host`] | the captured host |
//! | [`capture`] | takes it |
//! | [`needs`] | the needs of a description |
//! | [`check`] | one check, its verdict, and the steps that mend a finding |
//! | [`checks`] | all checks |
//! | [`examination`] | the verdicts of all checks, in the order of their effect |
//! | [`reference`] | the table of all checks for the documentation |
//! | [`mend`] | makes the steps, with a journal, and undoes them |

pub mod capture;
pub mod check;
pub mod checks;
pub mod examination;
pub mod host;
pub mod mend;
pub mod needs;
pub mod reference;
mod text;

pub use check::{Check, Finding, Mend, Verdict};
pub use examination::{examine, Examination, Examined};
pub use host::Host;
pub use needs::{Needs, Vlan};
