//! The record of the changes of a profile, in a file that is valid until the next boot.

use std::io;

use serde::{Deserialize, Serialize};

use super::access::Access;
use super::change::{Change, Restored};
use crate::proc;
use crate::settings::Holder;

/// The changes of a profile.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Record {
    boot: String,
    /// The holder; `None`: it has ended, and could not restore all changes.
    holder: Option<Holder>,
    /// The changes in the order in which they are made.
    pub changes: Vec<Change>,
}

impl Record {
    pub fn new(holder: Holder) -> Record {
        Record { boot: proc::boot(), holder: Some(holder), changes: Vec::new() }
    }

    /// Writes the record. Without changes, there is none.
    pub fn write(&self, access: &dyn Access) -> io::Result<()> {
        let text = || serde_json::to_string_pretty(self).expect("a record is always JSON") + "\n";
        access.set_record((!self.changes.is_empty()).then(text).as_deref())
    }

    /// Reverts the changes, the last one first. Those that fail remain in the record for the next start.
    pub fn restore(&mut self, access: &dyn Access) {
        if self.changes.is_empty() {
            return;
        }
        let is_left = |change: &Change| matches!(change.restore(access), Restored::Failed(_));
        let mut left: Vec<Change> = self.changes.drain(..).rev().filter(is_left).collect();
        left.reverse();
        self.changes = left;
        self.holder = None;
        // The next start repairs a failure.
        let _ = self.write(access);
    }
}

/// Returns the record of this boot.
fn read(access: &dyn Access) -> Option<Record> {
    let record: Record = serde_json::from_str(&access.record()?).ok()?;
    (record.boot == proc::boot()).then_some(record)
}

/// Reverts the changes of a holder that is gone. Returns whether there was one. Removes a record of another boot.
pub(super) fn settle(access: &dyn Access) -> bool {
    match read(access).filter(|_| access.is_root()) {
        Some(record) if record.holder.as_ref().is_some_and(Holder::is_there) => false,
        Some(mut record) => {
            record.restore(access);
            true
        }
        None => {
            if access.is_root() && access.record().is_some() {
                let _ = access.set_record(None);
            }
            false
        }
    }
}

/// Returns the living holder of a profile.
pub(super) fn holder(access: &dyn Access) -> Option<String> {
    read(access)?.holder.filter(Holder::is_there).map(|holder| holder.to_string())
}

/// Returns the holder of a profile that is gone.
pub(super) fn left(access: &dyn Access) -> Option<String> {
    match read(access)?.holder {
        Some(holder) if holder.is_there() => None,
        Some(holder) => Some(holder.to_string()),
        None => Some("its holder".into()),
    }
}
