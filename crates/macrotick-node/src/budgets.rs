//! The server period of this host, and which control groups have budgets, whoever gave them.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use macrotick_model::{Duration, Group, Instant};

use crate::cgroup::ROOT;
use crate::error::NodeError;
use crate::lock::ROOT as ROOT_USER;
use crate::sys;

/// The file of the server period, in microseconds.
pub(crate) const PERIOD: &str = "/proc/sys/kernel/sched_ds_period_us";
/// The file of how far refills are behind the multiples of the server period, in nanoseconds.
const PHASE: &str = "/proc/sys/kernel/sched_ds_phase_ns";
/// A group's file of its budget.
pub(crate) const BUDGET: &str = "cpu.ds.budget";
/// Of a control group's directory, with what runs in it, as JSON: it goes with the group.
const DECLARATION: &std::ffi::CStr = c"user.macrotick";

/// The server period of this host.
pub fn server_period() -> Result<Duration, NodeError> {
    number_of(PERIOD, "reading kernel.sched_ds_period_us").map(Duration::from_micros)
}

/// How far the refills of this host are behind the multiples of the server period on `CLOCK_MONOTONIC`.
pub(crate) fn refill_phase() -> Result<Duration, NodeError> {
    number_of(PHASE, "reading kernel.sched_ds_phase_ns").map(Duration::from_nanos)
}

fn number_of(path: &'static str, reading: &'static str) -> Result<i64, NodeError> {
    let number = fs::read_to_string(path).and_then(|text| text.trim().parse().map_err(io::Error::other));
    number.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => NodeError::NoBudgets(path),
        _ => NodeError::system(reading)(error),
    })
}

/// The first refill of this host at or after an instant of `CLOCK_MONOTONIC`.
pub fn next_refill(at: Instant) -> Result<Instant, NodeError> {
    let wait = until_refill(Duration::from_nanos(at.as_nanos()), server_period()?, refill_phase()?);
    Ok(Instant::from_nanos(at.as_nanos() + wait.as_nanos()))
}

/// From an instant, as time since zero, to the first refill.
pub(crate) fn until_refill(at: Duration, period: Duration, phase: Duration) -> Duration {
    let since = (at.as_nanos() - phase.as_nanos()).rem_euclid(period.as_nanos());
    Duration::from_nanos((period.as_nanos() - since) % period.as_nanos())
}

/// The control groups with a budget, parents before children, with what their files say: `BUDGET`, or `CPULIST=BUDGET ...`, in
/// microseconds.
pub fn budgets() -> Result<Vec<(PathBuf, String)>, NodeError> {
    let mut budgets = Vec::new();
    let mut read = |path: &Path| {
        if let Some(text) = read_file(path, BUDGET)? {
            let text = text.trim();
            if !text.is_empty() && text != "0" {
                budgets.push((path.to_owned(), text.to_owned()));
            }
        }
        Ok(())
    };
    walk(Path::new(ROOT), &mut read).map_err(NodeError::system("reading the control groups"))?;
    Ok(budgets)
}

/// All control groups but the root, parents before children. One may vanish meanwhile.
fn walk(path: &Path, each: &mut dyn FnMut(&Path) -> io::Result<()>) -> io::Result<()> {
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            each(&entry.path())?;
            match walk(&entry.path(), each) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                result => result?,
            }
        }
    }
    Ok(())
}

/// A file of a control group. `None`: it is not there: without the controller a group has none of its files, and a group that
/// was just removed has no device.
pub(crate) fn read_file(group: &Path, file: &str) -> io::Result<Option<String>> {
    match fs::read_to_string(group.join(file)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ENODEV) => Ok(None),
        result => result.map(Some),
    }
}

/// Notes at a control group what runs in it, for whoever asks later whether something else fits beside it.
pub fn declare(path: &Path, group: &Group) -> io::Result<()> {
    let text = serde_json::to_vec(group).expect("a group is always JSON");
    sys::set_attribute(path, DECLARATION, &text)
}

/// What was noted at a control group; `None`: nothing that is understood, or maybe by somebody else: who owns a directory can
/// write its attributes.
pub fn declaration(path: &Path) -> Option<Group> {
    if fs::metadata(path).ok()?.uid() != ROOT_USER {
        return None;
    }
    serde_json::from_slice(&sys::attribute(path, DECLARATION)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refills_are_a_phase_behind_the_multiples_of_the_period() {
        let us = Duration::from_micros;
        let wait = |at| until_refill(us(at), us(2500), us(250));
        assert_eq!([0, 250, 251, 10_000, 11_000].map(wait), [250, 0, 2499, 250, 1750].map(us));
    }
}
