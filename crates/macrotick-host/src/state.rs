//! The supervisor's own directory, with the socket that it listens on and the files of its state and its plan.
//!
//! The supervisor removes them when a deployment ends. If they exist while no process holds the lock, a supervisor was
//! killed.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use macrotick_model::{GatesInForce, Group, Plan, Slot, Task};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cgroup::Promised;
use crate::error::HostFailure;
use crate::lock::runtime_path;
use crate::sys;

/// A deployment, as its supervisor describes it in a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Deployed {
    /// The supervisor's process.
    pub supervisor: u32,
    /// The system's name.
    pub system: String,
    /// The tasks and pools of the running table.
    pub entities: Vec<String>,
    /// The groups, with all parameters of the description.
    #[serde(default)]
    pub groups: Vec<Group>,
    /// The slots of groups on interfaces.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slots: Vec<Slot>,
    /// The devices of these slots.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slot_devices: Vec<SlotDevice>,
    /// The tasks of SCHED_DEADLINE, with their CPUs.
    #[serde(default)]
    pub reserved: Vec<Task>,
    /// The number of changes of the deployment.
    pub changes: u32,
    /// The change that is in progress.
    pub coming: Option<Coming>,
    /// The gates of interfaces.
    #[serde(default)]
    pub gates: Vec<GatesInForce>,
    /// The supply that control groups were promised.
    #[serde(default)]
    pub promised: Vec<Promised>,
    /// The memory that tasks share with the supervisor.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<SharedBlock>,
    /// Unusual facts about the deployment, in words.
    pub remarks: Vec<String>,
}

/// The memory that a task shares with the supervisor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SharedBlock {
    /// The task.
    pub task: String,
    /// The supervisor's descriptor of it.
    pub descriptor: i32,
}

/// The device through which the frames of a slot leave.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SlotDevice {
    /// The group that has the slot.
    pub group: String,
    /// The name of the interface in the description.
    pub interface: String,
    /// The device.
    pub device: String,
    /// The network namespace of the device; absent: that of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The priority of the frames (`skb->priority`).
    pub priority: u8,
}

/// A change, after the kernel has received its table.
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
    /// Makes the directory, or takes over the one that a killed supervisor left.
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
                // In a directory for temporary files, another user could have made it.
                let owned = fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_dir() && meta.uid() == sys::user());
                let foreign = || io::Error::other("it is not a directory of this user");
                owned.then_some(()).ok_or_else(foreign).map_err(failed("use"))?;
            }
            result => result.map_err(failed("make"))?,
        }
        Ok(Directory { path })
    }

    /// Returns the path of the socket.
    pub fn socket(&self) -> PathBuf {
        self.path.join(SOCKET)
    }

    /// Listens at the socket, in place of any older one: the lock ensures that no other supervisor listens. Only the
    /// user may connect, from the first instant on. The listener does not block.
    pub fn listen(&self) -> io::Result<UnixListener> {
        let path = self.socket();
        let _ = fs::remove_file(&path);
        // SAFETY: no memory is passed. The supervisor has one thread, so no other thread makes files in the meantime.
        let before = unsafe { libc::umask(0o177) };
        let listener = UnixListener::bind(&path);
        // SAFETY: as above.
        unsafe { libc::umask(before) };
        let listener = listener?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    }

    /// Publishes the state, in place of the former one. People read it, and the recovery after a kill. A failure stops
    /// nothing.
    pub fn tell(&self, state: &Deployed) {
        let text = serde_json::to_string_pretty(state).expect("a state is always JSON");
        self.publish(STATE, &(text + "\n"));
    }

    /// Publishes the plan that runs, in place of the former one. Later plans start from it. A failure stops nothing.
    pub fn tell_plan(&self, plan: &Plan) {
        self.publish(PLAN, &plan.to_json());
    }

    fn publish(&self, file: &str, text: &str) {
        let partial = self.path.join(".partial");
        let _ = fs::write(&partial, text).and_then(|()| fs::rename(&partial, self.path.join(file)));
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

const SOCKET: &str = "control.sock";
const STATE: &str = "deployment.json";
const PLAN: &str = "plan.json";

fn path(user: u32) -> PathBuf {
    runtime_path(user, "")
}

/// Returns the path on which a user's supervisor listens.
pub fn socket(user: u32) -> PathBuf {
    path(user).join(SOCKET)
}

/// Returns the last published state of a user's supervisor, alive or not. In a directory for temporary files, another
/// user could have made the directory; it is ignored.
pub fn read(user: u32) -> Option<Deployed> {
    own_directory(user).and_then(|path| read_from(&path))
}

/// Returns the last published plan of a user's supervisor, as [`read`] returns its state.
pub fn plan(user: u32) -> Option<Plan> {
    Plan::load(&own_directory(user)?.join(PLAN)).ok()
}

fn own_directory(user: u32) -> Option<PathBuf> {
    let path = path(user);
    let is_own = fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_dir() && meta.uid() == user);
    is_own.then_some(path)
}

fn read_from(path: &Path) -> Option<Deployed> {
    serde_json::from_str(&fs::read_to_string(path.join(STATE)).ok()?).ok()
}

/// Removes the files that a killed supervisor left. The lock ensures that no other supervisor uses them.
pub fn remove_left() {
    let path = path(sys::user());
    if path.join(STATE).exists() || path.join(SOCKET).exists() {
        remove(&path);
    }
}

/// Ignores failures.
fn remove(path: &Path) {
    for file in [SOCKET, STATE, PLAN, ".partial"] {
        let _ = fs::remove_file(path.join(file));
    }
    let _ = fs::remove_dir(path);
}

#[cfg(test)]
mod tests {
    use macrotick_model::{Duration, System};

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
            slots: Vec::new(),
            slot_devices: Vec::new(),
            reserved: Vec::new(),
            changes: 0,
            coming: None,
            gates: Vec::new(),
            promised: Vec::new(),
            blocks: vec![SharedBlock { task: "a".into(), descriptor: 5 }],
            remarks: Vec::new(),
        };
        directory.tell(&state);
        assert_eq!(read_from(&path).as_ref(), Some(&state));
        state.coming = Some(Coming { system: "t".into(), entities: vec!["b".into()], instant_ns: 1 });
        directory.tell(&state);
        let text =
            "system: s\ncpus: [0]\ntasks:\n  - {name: d, period: 10ms, wcet: 1ms, supply: {deadline: {cpus: [0]}}}\n";
        let system = System::parse(text, "s.yaml").unwrap();
        directory.tell_plan(&Plan::new("null", Duration::from_millis(10), Vec::new(), system));
        assert!(Plan::load(&path.join(PLAN)).is_ok_and(|plan| plan.system.name == "s"));
        assert_eq!(read_from(&path), Some(state));
        // Another supervisor takes over the directory.
        drop(Directory::make_at(path.clone()).unwrap());
        drop(directory);
        assert!(!path.exists());
    }

    #[test]
    fn what_is_no_directory_is_not_used() {
        let path = std::env::temp_dir().join(format!("macrotick-directory-file-{}", std::process::id()));
        fs::write(&path, "").unwrap();
        let refused = Directory::make_at(path.clone()).map(drop).unwrap_err().to_string();
        assert_eq!(refused, format!("cannot use {}: it is not a directory of this user", path.display()));
        fs::remove_file(&path).unwrap();
    }
}
