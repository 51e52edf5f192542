//! The supervisor's own place: a directory with the socket that it listens on and the file that tells its state.
//!
//! Both are removed when a deployment ends. Where they are though nobody holds the lock, a supervisor was killed.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use macrotick_model::{Group, Task};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cgroup::Promised;
use crate::error::HostFailure;
use crate::lock::runtime_path;
use crate::sys;

/// A deployment as its supervisor tells it to whoever reads the file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Deployed {
    /// The supervisor's process.
    pub supervisor: u32,
    /// The system's name.
    pub system: String,
    /// The tasks and pools of the running table.
    pub entities: Vec<String>,
    /// The groups, with all that its description says of them.
    #[serde(default)]
    pub groups: Vec<Group>,
    /// The tasks of SCHED_DEADLINE, with their CPUs.
    #[serde(default)]
    pub reserved: Vec<Task>,
    /// How often the deployment was changed.
    pub changes: u32,
    /// The change that is under way.
    pub coming: Option<Coming>,
    /// What control groups were promised.
    #[serde(default)]
    pub promised: Vec<Promised>,
    /// What is odd about it, in words.
    pub remarks: Vec<String>,
}

/// A change whose table was handed to the kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Coming {
    /// The system's name.
    pub system: String,
    /// The tasks and pools of its table.
    pub entities: Vec<String>,
    /// The instant at which the tables change, on the table's clock, in nanoseconds.
    pub instant_ns: i64,
}

/// The directory of a supervisor that is alive. Dropping it removes it.
pub struct Directory {
    path: PathBuf,
}

impl Directory {
    /// Makes it, or takes over what a killed supervisor left.
    pub fn make() -> Result<Directory, HostFailure> {
        Directory::make_at(path(sys::user()))
    }

    fn make_at(path: PathBuf) -> Result<Directory, HostFailure> {
        let failed = |what: &'static str| {
            let path = path.clone();
            move |source| HostFailure::File { action: what, path, source }
        };
        match DirBuilder::new().mode(0o755).create(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                // Among temporary files it could be anybody's.
                let owned = fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_dir() && meta.uid() == sys::user());
                let foreign = || io::Error::other("it is somebody else's");
                owned.then_some(()).ok_or_else(foreign).map_err(failed("use"))?;
            }
            result => result.map_err(failed("make"))?,
        }
        Ok(Directory { path })
    }

    /// Where the socket is.
    pub fn socket(&self) -> PathBuf {
        self.path.join(SOCKET)
    }

    /// Listens at the socket, in place of whatever was there: the lock says that nobody else does. Nobody but the user may connect,
    /// from the first instant on. What is accepted is not waited for.
    pub fn listen(&self) -> io::Result<UnixListener> {
        let path = self.socket();
        let _ = fs::remove_file(&path);
        // SAFETY: no memory is passed. The supervisor has one thread, so that nobody else makes files meanwhile.
        let before = unsafe { libc::umask(0o177) };
        let listener = UnixListener::bind(&path);
        // SAFETY: as above.
        unsafe { libc::umask(before) };
        let listener = listener?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    }

    /// Tells the state, in place of the one before. It is for people and for the recovery from a kill: a failure stops
    /// nothing.
    pub fn tell(&self, state: &Deployed) {
        let partial = self.path.join(".partial");
        let text = serde_json::to_string_pretty(state).expect("a state is always JSON");
        let _ = fs::write(&partial, text + "\n").and_then(|()| fs::rename(&partial, self.path.join(STATE)));
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

const SOCKET: &str = "control.sock";
const STATE: &str = "deployment.json";

fn path(user: u32) -> PathBuf {
    runtime_path(user, "")
}

/// Where a user's supervisor listens.
pub fn socket(user: u32) -> PathBuf {
    path(user).join(SOCKET)
}

/// What a user's supervisor told last, alive or not. Among temporary files the directory could be anybody's.
pub fn read(user: u32) -> Option<Deployed> {
    let path = path(user);
    let is_own = fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_dir() && meta.uid() == user);
    is_own.then(|| read_from(&path)).flatten()
}

fn read_from(path: &Path) -> Option<Deployed> {
    serde_json::from_str(&fs::read_to_string(path.join(STATE)).ok()?).ok()
}

/// Removes what a killed supervisor left. The lock says that nobody uses it.
pub fn remove_left() {
    let path = path(sys::user());
    if path.join(STATE).exists() || path.join(SOCKET).exists() {
        remove(&path);
    }
}

/// Nothing can be done about a failure.
fn remove(path: &Path) {
    for file in [SOCKET, STATE, ".partial"] {
        let _ = fs::remove_file(path.join(file));
    }
    let _ = fs::remove_dir(path);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_read_until_the_end() {
        let path = std::env::temp_dir().join(format!("macrotick-directory-test-{}", std::process::id()));
        let directory = Directory::make_at(path.clone()).unwrap();
        assert_eq!(read_from(&path), None);
        let mut state = Deployed {
            supervisor: 7,
            system: "s".into(),
            entities: vec!["a".into()],
            groups: Vec::new(),
            reserved: Vec::new(),
            changes: 0,
            coming: None,
            promised: Vec::new(),
            remarks: Vec::new(),
        };
        directory.tell(&state);
        assert_eq!(read_from(&path).as_ref(), Some(&state));
        state.coming = Some(Coming { system: "t".into(), entities: vec!["b".into()], instant_ns: 1 });
        directory.tell(&state);
        assert_eq!(read_from(&path), Some(state));
        // Another one takes over what is there.
        drop(Directory::make_at(path.clone()).unwrap());
        drop(directory);
        assert!(!path.exists());
    }

    #[test]
    fn what_is_no_directory_is_not_used() {
        let path = std::env::temp_dir().join(format!("macrotick-directory-file-{}", std::process::id()));
        fs::write(&path, "").unwrap();
        let refused = Directory::make_at(path.clone()).map(drop).unwrap_err().to_string();
        assert_eq!(refused, format!("cannot use {}: it is somebody else's", path.display()));
        fs::remove_file(&path).unwrap();
    }
}
