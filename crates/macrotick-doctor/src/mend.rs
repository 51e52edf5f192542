//! Makes the steps of an examination, with the journal of the host.

use std::path::PathBuf;

use macrotick_host::profile::journal::{Journal, Made, Step};
use macrotick_host::HostFailure;
use serde::Serialize;

use crate::check::Mend;
use crate::examination::Examination;

/// A step that was made, or the reason why it was not.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Mended {
    /// The name of the check.
    pub check: &'static str,
    /// The change.
    #[serde(flatten)]
    pub made: Made,
}

/// Makes all steps that a program can make and undo. The kernel's refusals are in the result.
///
/// # Errors
///
/// Without root, beside a deployment with a profile, or if the journal cannot be read or written. A step that was made
/// is in the journal.
pub fn make(examination: &Examination) -> Result<Vec<Mended>, HostFailure> {
    let mut journal = Journal::open()?;
    let steps = examination.steps().filter_map(|(check, mend)| Some((check, step(mend)?)));
    steps.map(|(check, step)| Ok(Mended { check, made: journal.make(&step)? })).collect()
}

/// Reverts all steps of this boot, the last one first. Returns also how many are left in the journal.
///
/// # Errors
///
/// Those of [`make`].
pub fn undo() -> Result<(Vec<Made>, usize), HostFailure> {
    let mut journal = Journal::open()?;
    let undone = journal.undo()?;
    Ok((undone, journal.len()))
}

fn step(mend: &Mend) -> Option<Step> {
    match mend {
        Mend::Write { path, value } => Some(Step::Write { path: PathBuf::from(path), value: value.clone() }),
        Mend::Policy { tid, name, standing } => {
            Some(Step::Policy { thread: *tid, name: name.clone(), standing: *standing })
        }
        Mend::Boot(_) | Mend::Run(_) | Mend::Change(_) => None,
    }
}
