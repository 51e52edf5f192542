//! The versions of Linux that Macrotick has hooks for.

use std::path::{Path, PathBuf};

use crate::error::LabError;

/// The variable that chooses the version: `6.12`, `7.2` or `7.3`.
const VARIABLE: &str = "MACROTICK_LINUX";

/// A version of Linux.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Linux {
    /// The long-term version of Debian 13, and of Debian 12's security archive.
    #[default]
    V6_12,
    /// From Debian 13's backports.
    V7_2,
    /// From Debian 13's backports.
    V7_3,
}

impl Linux {
    /// All versions, the oldest first.
    pub const ALL: [Linux; 3] = [Linux::V6_12, Linux::V7_2, Linux::V7_3];

    /// Returns the version that the variable `MACROTICK_LINUX` names, otherwise the default.
    pub fn from_environment() -> Result<Linux, LabError> {
        match std::env::var(VARIABLE) {
            Ok(name) => Linux::from_name(&name).ok_or(LabError::Version { name }),
            Err(_) => Ok(Linux::default()),
        }
    }

    /// Returns the name, which is also that of the directory of its hooks.
    pub fn name(self) -> &'static str {
        match self {
            Linux::V6_12 => "6.12",
            Linux::V7_2 => "7.2",
            Linux::V7_3 => "7.3",
        }
    }

    /// Returns the version of that name.
    pub fn from_name(name: &str) -> Option<Linux> {
        Linux::ALL.into_iter().find(|linux| linux.name() == name)
    }

    /// Returns the tarball of Debian's package: installed, or taken from the package by `setup`.
    pub(crate) fn tarball(self, build: &Path) -> Result<PathBuf, LabError> {
        let name = format!("linux-source-{}.tar.xz", self.name());
        [Path::new("/usr/src").join(&name), build.join("linux").join(&name)]
            .into_iter()
            .find(|path| path.is_file())
            .ok_or(LabError::NoSource { version: self.name() })
    }
}
