//! The supply that a control group was promised, and the check that it is still in place. The owner of a group may
//! create it again, as a service manager does at every restart of a service. And root may write its files.

use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use macrotick_model::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::group::{Group, Kind};
use crate::budgets::BUDGET;
use crate::error::HostFailure;

/// The supply that a control group was promised.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Promised {
    /// The owner of the group, such as "group `web`".
    pub owner: String,
    /// Its directory.
    pub path: PathBuf,
    /// The inode number of its directory. A later directory of the same path has another one.
    directory: u64,
    /// The files that select its supply, with their contents at the promise.
    pub files: Vec<(String, String)>,
}

/// The way in which a promise is broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Broken {
    /// The control group is gone.
    Gone(PathBuf),
    /// Another group has taken its place.
    MadeAnew(PathBuf),
    /// A file has other contents.
    Says {
        /// The file.
        file: PathBuf,
        /// The present contents.
        now: String,
        /// The promised contents.
        promised: String,
    },
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Broken::Gone(path) => write!(f, "the control group {} is gone", path.display()),
            Broken::MadeAnew(path) => write!(f, "the control group {} was created again", path.display()),
            Broken::Says { file, now, promised } => {
                write!(f, "{} contains `{now}` instead of `{promised}`", file.display())
            }
        }
    }
}

impl Promised {
    /// Returns the way in which the promise is broken; `None`: it is in place.
    pub fn broken(&self) -> Option<Broken> {
        let Ok(directory) = fs::metadata(&self.path) else { return Some(Broken::Gone(self.path.clone())) };
        let differs = |(name, promised): &(String, String)| {
            let file = self.path.join(name);
            let now = fs::read_to_string(&file).unwrap_or_default().trim().to_owned();
            (now != *promised).then(|| Broken::Says { file, now, promised: promised.clone() })
        };
        match self.files.iter().find_map(differs) {
            Some(_) if directory.ino() != self.directory => Some(Broken::MadeAnew(self.path.clone())),
            broken => broken,
        }
    }
}

/// Returns the budget in `CPULIST=BUDGET`, in microseconds.
fn budget_of(text: &str) -> Duration {
    let budget = text.rsplit('=').next().and_then(|budget| budget.parse().ok());
    Duration::from_micros(budget.unwrap_or_default())
}

impl Group {
    /// Writes the files that select the supply, and stores their contents.
    pub fn promise(&mut self, writes: Vec<(&'static str, String)>) -> Result<(), HostFailure> {
        self.writes = writes;
        self.tell()?;
        self.promised = Some(self.read_promise()?);
        Ok(())
    }

    /// Returns the promise; `None`: there is none yet.
    pub fn promised(&self) -> Option<&Promised> {
        self.promised.as_ref()
    }

    /// Writes the files again. For a group that was created again, the later restoration uses the contents that it has
    /// at this time.
    pub fn keep_promise(&mut self) -> Result<(), HostFailure> {
        let now = self.read_promise()?;
        let anew = self.promised.as_ref().is_some_and(|promised| promised.directory != now.directory);
        if let (true, Kind::Given(before)) = (anew, &mut self.kind) {
            *before = now.files.into_iter().map(|(_, text)| text).collect();
        }
        self.tell()?;
        self.promised = Some(self.read_promise()?);
        Ok(())
    }

    fn tell(&self) -> Result<(), HostFailure> {
        self.writes.iter().try_for_each(|(file, text)| match self.write(file, text) {
            Err(HostFailure::GroupFile { source, .. })
                if *file == BUDGET && source.raw_os_error() == Some(libc::EBUSY) =>
            {
                Err(HostFailure::NoRoom { owner: self.owner.clone(), budget: budget_of(text) })
            }
            written => written,
        })
    }

    fn read_promise(&self) -> Result<Promised, HostFailure> {
        let directory = fs::metadata(&self.path).map_err(self.failed("look at", ""))?.ino();
        let read = |file: &&'static str| Ok((file.to_string(), self.read(file)?.trim().to_owned()));
        let files = self.owner.files().iter().map(read).collect::<Result<_, HostFailure>>()?;
        Ok(Promised { owner: self.owner.to_string(), path: self.path.clone(), directory, files })
    }
}
