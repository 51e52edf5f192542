//! The guard of a deployment's control groups. The owner of a group may remove it and make it again, and root may write
//! its files. The supervisor then sets the budget and the other values again.
//!
//! The kernel wakes the supervisor when such a file is written, and when an entry appears or disappears beside a group.
//! The supervisor checks at most once per [`REST`]. Therefore a program that makes thousands of groups cannot keep it
//! busy.

use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, RawFd};
use std::path::Path;

use inotify::{Inotify, WatchMask};
use macrotick_host::cgroup::{Group, Promised};
use macrotick_host::sys;
use macrotick_model::{Duration, Instant};

use crate::error::NodeError;
use crate::process::signals::readable_now;
use crate::run::resources::Run;

/// The least time between two checks.
const REST: Duration = Duration::from_millis(20);
/// The longest time between two checks while a value is wrong, or while the kernel cannot report events.
const PATIENCE: Duration = Duration::from_secs(1);

/// The guard.
pub struct Guard {
    /// Readable when there may be work. `None`: the kernel cannot report events.
    watch: Option<Inotify>,
    /// The instant before which there is no check.
    rested: Instant,
    /// The instant of the next check at the latest.
    look_by: Option<Instant>,
    /// The time from a check that found a problem to the next check.
    wait: Duration,
    /// The problems, by owner.
    amiss: BTreeMap<String, String>,
    /// The number of times that values were set again, by owner.
    again: BTreeMap<String, u64>,
}

impl Guard {
    /// Makes a guard for a run with groups that have their values.
    pub fn new(run: &Run) -> Guard {
        let (rested, look_by, wait) = (sys::now(), None, REST);
        let mut guard = Guard { watch: None, rested, look_by, wait, amiss: BTreeMap::new(), again: BTreeMap::new() };
        guard.renew(run);
        guard
    }

    /// Updates the watches after the groups of the run changed.
    pub fn renew(&mut self, run: &Run) {
        let groups = groups(run);
        self.watch = if groups.is_empty() { None } else { watch(&groups).ok() };
        self.look_by = (self.watch.is_none() && !groups.is_empty()).then(|| sys::now() + PATIENCE);
    }

    /// Returns the descriptor that becomes readable when there is work.
    pub fn descriptor(&self) -> Option<RawFd> {
        self.watch.as_ref().filter(|_| sys::now() >= self.rested).map(AsRawFd::as_raw_fd)
    }

    /// Returns the latest instant of the next check, if the descriptor does not become readable before.
    pub fn next_look(&self) -> Option<Instant> {
        let resting = Some(self.rested).filter(|rested| sys::now() < *rested && self.watch.is_some());
        [resting, self.look_by].into_iter().flatten().min()
    }

    /// Does the pending work. Returns messages for the user.
    pub fn look(&mut self, run: &mut Run) -> Vec<String> {
        let now = sys::now();
        let told = self.watch.as_ref().is_some_and(|watch| !readable_now(&[watch.as_raw_fd()]).is_empty());
        if now < self.rested || !told && self.look_by.is_none_or(|by| now < by) {
            return Vec::new();
        }
        self.attend(run)
    }

    /// Checks at once, whether or not the descriptor is readable.
    pub fn attend(&mut self, run: &mut Run) -> Vec<String> {
        // Events from here on, also those of this check's own writes, cause the next check.
        self.renew(run);
        let (mut amiss, mut told) = (BTreeMap::new(), Vec::new());
        run.look_after_promises(&mut |group| self.keep(group, &mut amiss, &mut told));
        told.extend(
            amiss.iter().filter(|(owner, text)| self.amiss.get(*owner) != Some(text)).map(|(_, text)| text.clone()),
        );
        self.wait = if amiss.is_empty() { REST } else { (self.wait * 2).min(PATIENCE) };
        self.rested = sys::now() + REST;
        if !amiss.is_empty() {
            self.look_by = Some(sys::now() + self.wait);
        }
        self.amiss = amiss;
        told
    }

    /// Returns whether the values of a group were set again.
    fn keep(&mut self, group: &mut Group, amiss: &mut BTreeMap<String, String>, told: &mut Vec<String>) -> bool {
        let Some(broken) = group.promised().and_then(Promised::broken) else { return false };
        let owner = group.owner().to_string();
        match group.keep_promise() {
            Ok(()) => {
                let times = self.again.entry(owner.clone()).and_modify(|times| *times += 1).or_insert(1);
                // This may happen without end. The message comes for counts that are powers of two.
                if times.is_power_of_two() {
                    let often = if *times == 1 { String::new() } else { format!(", {times} times so far") };
                    told.push(format!("{owner}: {broken}: it was set again{often}"));
                }
                true
            }
            Err(error) if group.path().is_dir() => {
                amiss.insert(
                    owner.clone(),
                    format!("{owner}: {broken}, and cannot be set again: {}", NodeError::from(error).with_reason()),
                );
                false
            }
            Err(_) => {
                amiss.insert(owner.clone(), format!("{owner}: {broken}"));
                false
            }
        }
    }
}

/// Returns the promises to the control groups of a run.
pub fn groups<'a>(run: &'a Run) -> Vec<&'a Promised> {
    let pools = run.pools.iter().flat_map(|pools| pools.control_groups());
    let groups = run.groups.iter().flat_map(|groups| groups.control_groups());
    pools.chain(groups).filter_map(Group::promised).collect()
}

/// Watches the groups: writes of their files, and entries that appear or disappear beside them.
fn watch(groups: &[&Promised]) -> std::io::Result<Inotify> {
    let inotify = Inotify::init()?;
    let mut watches = inotify.watches();
    let beside = WatchMask::CREATE | WatchMask::DELETE | WatchMask::MOVE | WatchMask::DELETE_SELF | WatchMask::ONLYDIR;
    for group in groups {
        // A removed group has no files.
        for (file, _) in &group.files {
            let _ = watches.add(group.path.join(file), WatchMask::MODIFY);
        }
        let above = group.path.ancestors().skip(1);
        let mut watched = above.filter(|directory: &&Path| watches.add(directory, beside).is_ok());
        watched.next();
    }
    Ok(inotify)
}
