//! The container's state, which the runtime passes to the hook (OCI runtime specification, "State").

use std::collections::BTreeMap;
use std::io::Read;

use serde::Deserialize;

use crate::error::HookError;

/// The keys of a container's state that the hook uses.
#[derive(Debug, Deserialize)]
pub struct State {
    /// The engine's name for the container.
    pub id: String,
    #[serde(default)]
    status: String,
    #[serde(default)]
    pid: i32,
    /// The annotations. Runtimes may leave out the key if there are none.
    #[serde(default)]
    pub annotations: BTreeMap<String, String>,
}

impl State {
    /// Decodes the whole input.
    pub fn decode(state: impl Read) -> Result<State, HookError> {
        serde_json::from_reader(state).map_err(HookError::State)
    }

    /// Whether the container's program has ended, as in the stage `poststop`.
    pub fn is_over(&self) -> bool {
        self.status == "stopped"
    }

    /// Returns the container's first process, as its number on the host.
    pub fn pid(&self) -> Result<i32, HookError> {
        match self.pid {
            1.. => Ok(self.pid),
            _ => Err(HookError::NoProcess),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_of_runtimes_are_understood() {
        let runc = r#"{"ociVersion":"1.0.2-dev","id":"one","status":"creating","pid":147,"bundle":"/tmp/b",
            "annotations":{"macrotick.budget":"1ms"}}"#;
        let crun =
            r#"{"ociVersion":"1.0","id":"five","pid":246,"root":"/srv/busybox","bundle":"/tmp/b","status":"created"}"#;
        let (runc, crun) = (State::decode(runc.as_bytes()).unwrap(), State::decode(crun.as_bytes()).unwrap());
        assert_eq!((runc.id.as_str(), runc.pid().unwrap()), ("one", 147));
        assert_eq!(runc.annotations["macrotick.budget"], "1ms");
        assert!(crun.annotations.is_empty() && !crun.is_over() && !runc.is_over());
    }

    #[test]
    fn what_is_no_state_is_refused() {
        assert!(matches!(State::decode(&b""[..]), Err(HookError::State(_))));
        assert!(matches!(State::decode(&b"{}"[..]), Err(HookError::State(_))));
        let stopped = State::decode(&br#"{"id":"x","status":"stopped"}"#[..]).unwrap();
        assert!(stopped.is_over() && matches!(stopped.pid(), Err(HookError::NoProcess)));
    }
}
