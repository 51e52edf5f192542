//! The promises of a long-lived deployment's control groups: whoever made a group may make it anew, and root may write its
//! files. What was promised is then promised again.
//!
//! The supervisor is woken by the kernel when such a file is written, and when something comes or goes beside a group. It
//! looks once per [`REST`] at most, so that nobody who makes groups by the thousand keeps it busy.

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

/// From one look to the next, at least.
const REST: Duration = Duration::from_millis(20);
/// At most, as long as something is amiss, or where the kernel tells nothing.
const PATIENCE: Duration = Duration::from_secs(1);

/// Looks after them.
pub struct Guard {
    /// Readable when there may be something to do. `None`: the kernel tells nothing.
    watch: Option<Inotify>,
    /// Before that nothing is looked at.
    rested: Instant,
    /// At the latest then.
    look_by: Option<Instant>,
    /// From a look that found something amiss to the next.
    wait: Duration,
    /// What is amiss, by its owner.
    amiss: BTreeMap<String, String>,
    /// How often something was promised again, by its owner.
    again: BTreeMap<String, u64>,
}

impl Guard {
    /// For a run whose groups have what they are promised.
    pub fn new(run: &Run) -> Guard {
        let (rested, look_by, wait) = (sys::now(), None, REST);
        let mut guard = Guard { watch: None, rested, look_by, wait, amiss: BTreeMap::new(), again: BTreeMap::new() };
        guard.renew(run);
        guard
    }

    /// The run has other groups now.
    pub fn renew(&mut self, run: &Run) {
        let groups = groups(run);
        self.watch = if groups.is_empty() { None } else { watch(&groups).ok() };
        self.look_by = (self.watch.is_none() && !groups.is_empty()).then(|| sys::now() + PATIENCE);
    }

    /// What becomes readable when there is something to do.
    pub fn descriptor(&self) -> Option<RawFd> {
        self.watch.as_ref().filter(|_| sys::now() >= self.rested).map(AsRawFd::as_raw_fd)
    }

    /// When to look at the latest, though nothing became readable.
    pub fn next_look(&self) -> Option<Instant> {
        let resting = Some(self.rested).filter(|rested| sys::now() < *rested && self.watch.is_some());
        [resting, self.look_by].into_iter().flatten().min()
    }

    /// Does what there is to do; returns what there is to tell.
    pub fn look(&mut self, run: &mut Run) -> Vec<String> {
        let now = sys::now();
        let told = self.watch.as_ref().is_some_and(|watch| !readable_now(&[watch.as_raw_fd()]).is_empty());
        if now < self.rested || !told && self.look_by.is_none_or(|by| now < by) {
            return Vec::new();
        }
        self.attend(run)
    }

    /// Looks, whether something became readable or not.
    pub fn attend(&mut self, run: &mut Run) -> Vec<String> {
        // What happens from here on is looked at the next time, this look's own writes among it.
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

    /// Whether it was promised again.
    fn keep(&mut self, group: &mut Group, amiss: &mut BTreeMap<String, String>, told: &mut Vec<String>) -> bool {
        let Some(broken) = group.promised().and_then(Promised::broken) else { return false };
        let owner = group.owner().to_string();
        match group.keep_promise() {
            Ok(()) => {
                let times = self.again.entry(owner.clone()).and_modify(|times| *times += 1).or_insert(1);
                // Somebody may do so for ever.
                if times.is_power_of_two() {
                    let often = if *times == 1 { String::new() } else { format!(", {times} times by now") };
                    told.push(format!("{owner}: {broken}: it was promised again{often}"));
                }
                true
            }
            Err(error) if group.path().is_dir() => {
                amiss.insert(
                    owner.clone(),
                    format!("{owner}: {broken}, and cannot be promised: {}", NodeError::from(error).with_reason()),
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

/// What was promised to the control groups of a run.
pub fn groups<'a>(run: &'a Run) -> Vec<&'a Promised> {
    let pools = run.pools.iter().flat_map(|pools| pools.control_groups());
    let groups = run.groups.iter().flat_map(|groups| groups.control_groups());
    pools.chain(groups).filter_map(Group::promised).collect()
}

/// What the kernel is to tell: writes of their files, and what comes and goes beside them.
fn watch(groups: &[&Promised]) -> std::io::Result<Inotify> {
    let inotify = Inotify::init()?;
    let mut watches = inotify.watches();
    let beside = WatchMask::CREATE | WatchMask::DELETE | WatchMask::MOVE | WatchMask::DELETE_SELF | WatchMask::ONLYDIR;
    for group in groups {
        // Of one that is gone there are none.
        for (file, _) in &group.files {
            let _ = watches.add(group.path.join(file), WatchMask::MODIFY);
        }
        let above = group.path.ancestors().skip(1);
        let mut watched = above.filter(|directory: &&Path| watches.add(directory, beside).is_ok());
        watched.next();
    }
    Ok(inotify)
}
