//! The record of the held settings, in a file that is valid until the next boot.

use std::fs;
use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::holder::Holder;
use super::setting::Setting;
use crate::error::HostFailure;
use crate::file::{read_number, read_own, replace};
use crate::lock::{runtime_path, Turn, ROOT};
use crate::proc;

const LEDGER: &str = "-settings.json";
const LOCK: &str = "-settings.lock";

/// A setting that is held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) path: PathBuf,
    pub(super) before: i64,
    pub(super) set: i64,
    pub(super) holders: Vec<Holder>,
}

impl Entry {
    /// Whether the setting has the value that it was set to.
    fn is_ours(&self) -> bool {
        read_number(&self.path).is_ok_and(|now| now == self.set)
    }

    fn give_back(&self) {
        if self.is_ours() {
            let _ = fs::write(&self.path, self.before.to_string());
        }
    }
}

/// The contents of the ledger.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Entries {
    boot: String,
    pub(super) settings: Vec<Entry>,
}

impl Entries {
    /// Removes the holders that are gone, and restores settings without a holder.
    pub(super) fn settle(&mut self) {
        for entry in &mut self.settings {
            entry.holders.retain(Holder::is_there);
        }
        self.settings.retain(|entry| {
            let is_held = !entry.holders.is_empty();
            if !is_held {
                entry.give_back();
            }
            is_held
        });
    }

    /// Returns the entry of a setting with the present value `now`, and creates it if it is missing. If another program
    /// has changed the value, `now` becomes the value to restore.
    fn entry(&mut self, setting: &Setting, now: i64) -> &mut Entry {
        let place = self.settings.iter().position(|entry| entry.path == setting.path);
        let place = place.unwrap_or_else(|| {
            let (path, holders) = (setting.path.clone(), Vec::new());
            self.settings.push(Entry { path, before: now, set: now, holders });
            self.settings.len() - 1
        });
        let entry = &mut self.settings[place];
        if entry.set != now {
            entry.before = now;
        }
        entry.set = setting.bound.nearest(now);
        entry
    }
}

/// The place of the record.
#[derive(Clone, Debug)]
pub(super) struct Ledger {
    pub(super) file: PathBuf,
    pub(super) lock: PathBuf,
}

impl Ledger {
    pub(super) fn of_host() -> Ledger {
        Ledger { file: runtime_path(ROOT, LEDGER), lock: runtime_path(ROOT, LOCK) }
    }

    /// Changes the ledger. The lock keeps other programs from it.
    pub(super) fn change(&self, change: impl FnOnce(&mut Entries)) -> Result<(), HostFailure> {
        let _turn = Turn::take(&self.lock)?;
        let mut entries = self.read();
        entries.settle();
        change(&mut entries);
        self.write(&entries).map_err(HostFailure::file("write", self.file.as_path()))
    }

    /// Reads the ledger. Ignores that of another boot, and a file of another user, which can be in a directory for
    /// temporary files.
    pub(super) fn read(&self) -> Entries {
        let boot = proc::boot();
        let read =
            || serde_json::from_str(&read_own(&self.file)?).ok().filter(|entries: &Entries| entries.boot == boot);
        read().unwrap_or_else(|| Entries { boot: boot.clone(), settings: Vec::new() })
    }

    /// Writes the whole ledger. If this fails, the old one stays.
    fn write(&self, entries: &Entries) -> io::Result<()> {
        let text = || serde_json::to_string_pretty(entries).expect("a ledger is always JSON") + "\n";
        replace(&self.file, (!entries.settings.is_empty()).then(text).as_deref())
    }

    /// Adds a holder to a setting. Returns `None` if another program has set a suitable value, which needs no
    /// restoration.
    pub(super) fn hold(
        &self,
        entries: &mut Entries,
        setting: &Setting,
        holder: &Holder,
    ) -> Result<Option<Was>, io::Error> {
        let now = read_number(&setting.path)?;
        let is_ours = entries.settings.iter().any(|entry| entry.path == setting.path && entry.set == now);
        if setting.bound.nearest(now) == now && !is_ours {
            entries.settings.retain(|entry| entry.path != setting.path);
            return Ok(None);
        }
        let entry = entries.entry(setting, now);
        entry.holders.push(holder.clone());
        let (before, set) = (entry.before, entry.set);
        if now == set {
            return Ok(Some(Was::Held));
        }
        let written = self.write(entries).and_then(|()| fs::write(&setting.path, set.to_string()));
        if written.is_err() {
            entries.entry(setting, now).holders.pop();
            entries.settings.retain(|entry| !entry.holders.is_empty());
        }
        written.map(|()| Some(Was::Set { before, set }))
    }

    /// Removes a holder from settings; the reverse of `hold`.
    pub(super) fn give_back(&self, paths: &[PathBuf], holder: &Holder) -> Result<(), HostFailure> {
        self.change(|entries| {
            for entry in entries.settings.iter_mut().filter(|entry| paths.contains(&entry.path)) {
                entry.holders.retain(|other| other != holder);
            }
            entries.settle();
        })
    }
}

/// The work that a new holder needed.
pub(super) enum Was {
    Held,
    Set { before: i64, set: i64 },
}
