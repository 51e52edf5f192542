//! The server period of this host, and all control groups with budgets, whichever program set them.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use macrotick_model::{Duration, Group, GroupObservation, Instant};

use crate::cgroup::{read_file, walk, ROOT};
use crate::error::HostFailure;
use crate::file;
use crate::lock::ROOT as ROOT_USER;
use crate::sys;

/// The file of the server period, in microseconds.
const PERIOD: &str = "/proc/sys/kernel/sched_ds_period_us";
/// The file of the delay of refills after the multiples of the server period, in nanoseconds.
const PHASE: &str = "/proc/sys/kernel/sched_ds_phase_ns";
/// A group's file of its budget.
pub const BUDGET: &str = "cpu.ds.budget";
/// A group's file of its priority.
pub const PRIORITY: &str = "cpu.ds.priority";
/// A group's file of the switch for SCHED_FIFO threads: 1 if the budget also serves them.
pub const FIFO: &str = "cpu.ds.fifo";
/// A group's file of its lead, in microseconds.
pub const LEAD: &str = "cpu.ds.lead";
/// A group's file of its counters.
pub const STAT: &str = "cpu.ds.stat";
/// The attribute of a control group's directory with its declared tasks, as JSON. It ends with the group.
const DECLARATION: &std::ffi::CStr = c"user.macrotick";
/// The attribute of the same directory for a binding to the CPUs of the budget.
const BOUND: &std::ffi::CStr = c"user.macrotick-bound";
/// The attribute of the same directory with the name of the group that has the container's slots.
const SLOTS: &std::ffi::CStr = c"user.macrotick-slots";

/// Returns the server period of this host.
pub fn server_period() -> Result<Duration, HostFailure> {
    number_of(PERIOD).map(Duration::from_micros)
}

/// Returns the delay of this host's refills after the multiples of the server period on `CLOCK_MONOTONIC`.
pub(crate) fn refill_phase() -> Result<Duration, HostFailure> {
    number_of(PHASE).map(Duration::from_nanos)
}

fn number_of(path: &'static str) -> Result<i64, HostFailure> {
    file::read_number(Path::new(path)).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => HostFailure::NoBudgets(path),
        _ => HostFailure::file("read", path)(error),
    })
}

/// Changes the server period of this host if it differs. It has no undo, because all groups share the period, and later
/// groups keep it. The kernel allows another change only while no group has a budget.
pub fn set_server_period(wanted: Duration) -> Result<(), HostFailure> {
    let now = server_period()?;
    if now == wanted {
        return Ok(());
    }
    match fs::write(PERIOD, microseconds(wanted)) {
        Err(error) if error.raw_os_error() == Some(libc::EBUSY) => Err(HostFailure::ServerPeriod { wanted, now }),
        other => other.map_err(HostFailure::file("write", PERIOD)),
    }
}

/// Returns a length in the unit of the groups' files.
pub fn microseconds(length: Duration) -> String {
    (length.as_nanos() / 1000).to_string()
}

/// Returns the first refill of this host at or after an instant of `CLOCK_MONOTONIC`.
pub fn next_refill(at: Instant) -> Result<Instant, HostFailure> {
    let wait = until_refill(Duration::from_nanos(at.as_nanos()), server_period()?, refill_phase()?);
    Ok(Instant::from_nanos(at.as_nanos() + wait.as_nanos()))
}

/// Returns the time from an instant, as time since zero, to the first refill at or after it.
pub(crate) fn until_refill(at: Duration, period: Duration, phase: Duration) -> Duration {
    let since = (at.as_nanos() - phase.as_nanos()).rem_euclid(period.as_nanos());
    Duration::from_nanos((period.as_nanos() - since) % period.as_nanos())
}

/// Returns the control groups with a budget, parents before children, with the contents of their files. These are
/// `BUDGET`, or `CPULIST=BUDGET ...`, in microseconds.
pub fn budgets() -> Result<Vec<(PathBuf, String)>, HostFailure> {
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
    walk(Path::new(ROOT), &mut read)?;
    Ok(budgets)
}

/// Decodes the file [`STAT`] of a group with this name, and sums over all CPUs. Its lines are `cpuN usage_usec=A
/// refills=B exhaustions=C throttled_usec=D`.
pub fn parse_stat(name: &str, text: &str) -> Option<GroupObservation> {
    let mut sum = GroupObservation { name: name.into(), ..Default::default() };
    for line in text.lines() {
        let value = |key: &str| -> Option<u64> {
            let word = line.split_whitespace().find_map(|word| word.strip_prefix(key)?.strip_prefix('='))?;
            word.parse().ok()
        };
        sum.usage_ns += value("usage_usec")? * 1000;
        sum.refills += value("refills")?;
        sum.exhaustions += value("exhaustions")?;
        sum.throttled_ns += value("throttled_usec")? * 1000;
    }
    Some(sum)
}

/// Stores the declaration of a control group, for the admission of later groups. It needs no undo, because it ends with
/// the group.
pub fn declare(path: &Path, group: &Group) -> Result<(), HostFailure> {
    let text = serde_json::to_vec(group).expect("a group is always JSON");
    sys::set_attribute(path, DECLARATION, &text).map_err(HostFailure::file("note the tasks at", path))
}

/// Returns the declaration of a control group. `None`: it has no valid one, or root does not own the directory. The
/// owner of a directory can write its attributes.
pub(crate) fn declaration(path: &Path) -> Option<Group> {
    serde_json::from_slice(&noted(path, DECLARATION)?).ok()
}

/// Stores that a control group's processes were bound to the CPUs of its budget. It needs no undo either.
pub fn note_bound(path: &Path) -> Result<(), HostFailure> {
    sys::set_attribute(path, BOUND, b"").map_err(HostFailure::file("note the binding at", path))
}

/// Whether the control group was bound.
pub(crate) fn is_bound(path: &Path) -> bool {
    noted(path, BOUND).is_some()
}

/// Stores that a control group's frames leave in the slots of a group of the deployment. It needs no undo either.
pub fn claim_slots(path: &Path, group: &str) -> Result<(), HostFailure> {
    sys::set_attribute(path, SLOTS, group.as_bytes()).map_err(HostFailure::file("note the slots at", path))
}

/// Returns the control groups with slots, and the names of the groups that have these slots.
pub fn slot_claims() -> Result<Vec<(PathBuf, String)>, HostFailure> {
    let mut claims = Vec::new();
    let mut read = |path: &Path| {
        let name = noted(path, SLOTS).and_then(|name| String::from_utf8(name).ok());
        claims.extend(name.map(|name| (path.to_owned(), name)));
        Ok(())
    };
    walk(Path::new(ROOT), &mut read)?;
    Ok(claims)
}

fn noted(path: &Path, name: &std::ffi::CStr) -> Option<Vec<u8>> {
    if fs::metadata(path).ok()?.uid() != ROOT_USER {
        return None;
    }
    sys::attribute(path, name)
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

    #[test]
    fn what_the_cpus_have_had_is_summed() {
        let text = "cpu0 usage_usec=10 refills=2 exhaustions=1 throttled_usec=7\n\
                    cpu2 usage_usec=5 refills=1 exhaustions=0 throttled_usec=0\n";
        let sum = parse_stat("g", text).unwrap();
        let expected =
            GroupObservation { name: "g".into(), usage_ns: 15_000, refills: 3, exhaustions: 1, throttled_ns: 7000 };
        assert_eq!(sum, expected);
        assert_eq!(parse_stat("g", "cpu0 usage_usec=x\n"), None);
    }
}
