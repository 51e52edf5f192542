//! Single changes of the host that outlive the program that makes them. A file that is valid until the next boot lists
//! them with the values before, and [`Journal::undo`] reverts them in the opposite order.
//!
//! A change is written to the file before it is made: after a crash the undo knows it.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use serde::{Deserialize, Serialize};

use super::access::{Access, ThisHost, PROFILE};
use super::change::{is_missing, Change, Format, Restored, Target, Value};
use super::fault::ProfileFault;
use super::record;
use crate::error::HostFailure;
use crate::lock::{runtime_path, Turn, ROOT};
use crate::proc;
use crate::sys::{SchedAttr, Standing, Tid};

/// The suffix of the file.
const SUFFIX: &str = "-doctor.json";
const LOCK: &str = "-doctor.lock";

/// A change that is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A value in a file of `/proc` or `/sys`.
    Write {
        /// The file.
        path: PathBuf,
        /// The value.
        value: String,
    },
    /// The policy of a kernel thread.
    Policy {
        /// The number of the thread.
        thread: Tid,
        /// Its name.
        name: String,
        /// The policy.
        standing: Standing,
    },
}

/// A change that was made, or reverted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Made {
    /// The object: the name of a sysctl, a path, or a thread.
    pub name: String,
    /// The value before.
    pub before: String,
    /// The value after.
    pub after: String,
    /// The reason why nothing changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

impl fmt::Display for Made {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Made { name, before, after, failure } = self;
        match failure {
            // Numbers of one file are separated by tabs.
            None => write!(f, "{name}: {} -> {}", before.replace('\t', " "), after.replace('\t', " ")),
            Some(reason) => write!(f, "{name}: {reason}"),
        }
    }
}

/// The contents of the file.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    boot: String,
    changes: Vec<Change>,
}

/// The changes of this boot. One program at a time has it.
pub struct Journal {
    access: Rc<dyn Access>,
    changes: Vec<Change>,
    _turn: Option<Turn>,
}

impl Journal {
    /// Opens the journal, and waits for another program that has it. Needs root.
    pub fn open() -> Result<Journal, HostFailure> {
        let access = Rc::new(ThisHost(SUFFIX));
        if !access.is_root() {
            let source = io::Error::from_raw_os_error(libc::EPERM);
            return Err(HostFailure::System { what: "changing this host", source });
        }
        // Each would take the other's values for those before.
        if let Some(holder) = record::holder(&ThisHost(PROFILE)) {
            return Err(HostFailure::profile(ProfileFault::Held(holder)));
        }
        let turn = Turn::take(&runtime_path(ROOT, LOCK))?;
        Ok(Journal { _turn: Some(turn), ..Journal::of(access)? })
    }

    /// Reads the changes. A file that is damaged stays: it may be the only place with the values before.
    pub(super) fn of(access: Rc<dyn Access>) -> Result<Journal, HostFailure> {
        let read = |text: String| {
            let damaged = |error: serde_json::Error| io::Error::new(io::ErrorKind::InvalidData, error);
            serde_json::from_str::<Record>(&text).map_err(damaged)
        };
        let record = access.record().map(read).transpose();
        let record = record.map_err(HostFailure::file("read", runtime_path(ROOT, SUFFIX)))?;
        // Without this boot's changes the host has the values that it starts with.
        let changes = record.filter(|record| record.boot == proc::boot()).map_or(Vec::new(), |record| record.changes);
        Ok(Journal { access, changes, _turn: None })
    }

    /// Makes a change, and reads it back. A refusal of the kernel changes nothing, and is in the result.
    pub fn make(&mut self, step: &Step) -> Result<Made, HostFailure> {
        let (target, after) = self.decode(step);
        let name = target.name();
        let told = |before: &Value, failure| Made {
            name: name.clone(),
            before: before.to_string(),
            after: after.to_string(),
            failure,
        };
        let before = match target.get(&*self.access) {
            Ok(before) => before,
            Err(error) => {
                let reason = if is_missing(&error) { "this host does not have it".into() } else { error.to_string() };
                return Ok(told(&Value::Text(String::new()), Some(reason)));
            }
        };
        if target.same(&before, &after) {
            return Ok(told(&before, None));
        }
        self.changes.push(Change { target: target.clone(), before: before.clone(), after: after.clone(), seen: None });
        self.write()?;
        if let Err(error) = target.set(&*self.access, &after) {
            self.changes.pop();
            self.write()?;
            return Ok(told(&before, Some(format!("the kernel refused {after}: {error}"))));
        }
        let seen = target.get(&*self.access).ok();
        if let Some(change) = self.changes.last_mut() {
            change.seen = seen.clone();
        }
        self.write()?;
        // The kernel may have taken another value than the one that was written.
        let after = seen.as_ref().filter(|seen| !target.same(seen, &after));
        Ok(Made { after: after.map_or(told(&before, None).after, Value::to_string), ..told(&before, None) })
    }

    /// Reverts all changes, the last one first. A value that another program has set since stays. Such a change stays in
    /// the journal, and so does one that the kernel refuses to revert.
    pub fn undo(&mut self) -> Result<Vec<Made>, HostFailure> {
        let mut told = Vec::new();
        let mut left = Vec::new();
        for change in std::mem::take(&mut self.changes).into_iter().rev() {
            let (failure, is_left) = match change.restore(&*self.access) {
                Restored::Done => (None, false),
                Restored::Gone => (Some("it is gone".into()), false),
                Restored::Changed(now) => (Some(format!("another program has set {now}, which stays")), true),
                Restored::Failed(error) => (Some(format!("the kernel refused {}: {error}", change.before)), true),
            };
            let (before, after) = (change.after.to_string(), change.before.to_string());
            told.push(Made { name: change.target.name(), before, after, failure });
            if is_left {
                left.insert(0, change);
            }
        }
        self.changes = left;
        self.write()?;
        Ok(told)
    }

    /// Returns the number of changes.
    pub fn len(&self) -> usize {
        self.changes.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    fn decode(&self, step: &Step) -> (Target, Value) {
        match step {
            Step::Write { path, value } => {
                let text = self.access.read(path).unwrap_or_default();
                let is_choice = text.split_whitespace().any(|word| word.starts_with('[') && word.ends_with(']'));
                let format = if is_choice { Format::Choice } else { Format::Plain };
                (Target::file(Path::new(path), format), Value::Text(value.clone()))
            }
            Step::Policy { thread, name, standing } => (
                Target::Policy { thread: *thread, name: name.clone() },
                Value::Policy(SchedAttr::new(*standing, false)),
            ),
        }
    }

    fn write(&self) -> Result<(), HostFailure> {
        let record = || Record { boot: proc::boot(), changes: self.changes.clone() };
        let text = || serde_json::to_string_pretty(&record()).expect("a record is always JSON") + "\n";
        let text = (!self.changes.is_empty()).then(text);
        let path = runtime_path(ROOT, SUFFIX);
        self.access.set_record(text.as_deref()).map_err(HostFailure::file("write", &path))
    }
}
