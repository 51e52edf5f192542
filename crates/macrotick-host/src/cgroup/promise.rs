//! What the kernel was told of who serves a control group, and whether it still stands: who made a group may make it anew, as
//! a service manager does at every restart of a service, and root may write its files.

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

/// What a control group was promised.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Promised {
    /// Whose group it is, such as "group `web`".
    pub owner: String,
    /// Its directory.
    pub path: PathBuf,
    /// Which one of that path it was: the number of its inode.
    directory: u64,
    /// Its files that tell the kernel what serves it, with what they said when it was promised.
    pub files: Vec<(String, String)>,
}

/// How a promise does not stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Broken {
    /// The control group is gone.
    Gone(PathBuf),
    /// Another one has taken its place.
    MadeAnew(PathBuf),
    /// A file of it says something else.
    Says {
        /// The file.
        file: PathBuf,
        /// What it says.
        now: String,
        /// What it said.
        promised: String,
    },
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Broken::Gone(path) => write!(f, "the control group {} is gone", path.display()),
            Broken::MadeAnew(path) => write!(f, "the control group {} was made anew", path.display()),
            Broken::Says { file, now, promised } => {
                write!(f, "{} says `{now}` where `{promised}` was promised", file.display())
            }
        }
    }
}

impl Promised {
    /// How it does not stand; `None`: it does.
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

/// The budget in `CPULIST=BUDGET`, in microseconds.
fn budget_of(text: &str) -> Duration {
    let budget = text.rsplit('=').next().and_then(|budget| budget.parse().ok());
    Duration::from_micros(budget.unwrap_or_default())
}

impl Group {
    /// Tells the kernel what serves it, and notes what its files say then.
    pub fn promise(&mut self, writes: Vec<(&'static str, String)>) -> Result<(), HostFailure> {
        self.writes = writes;
        self.tell()?;
        self.promised = Some(self.read_promise()?);
        Ok(())
    }

    /// What it was promised; `None`: nothing yet.
    pub fn promised(&self) -> Option<&Promised> {
        self.promised.as_ref()
    }

    /// Tells the kernel again what serves it. One that was made anew is given back as it is found now.
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
