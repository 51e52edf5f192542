//! A container's control group in the hierarchy of version 2. Either systemd's driver or the runtime's own driver made
//! it.

use std::io;
use std::path::Path;

use macrotick_host::cgroup::{below_root_of, Existing, ROOT};
use macrotick_host::{HostFailure, Undo};

use crate::error::HookError;

/// Returns the group of a container, given one of its processes.
pub fn of(pid: i32) -> Result<Existing, HookError> {
    let below = below_root_of(&pid.to_string())?.ok_or(HookError::NoHierarchy(pid))?;
    if below.is_empty() {
        return Err(HookError::Root);
    }
    let group = Existing::new(&below);
    // This process runs in the group of the runtime.
    let ours = below_root_of("self")?.unwrap_or_default();
    match Path::new(ROOT).join(ours).starts_with(group.path()) {
        true => Err(HookError::Shared(group.path().to_owned())),
        false => Ok(group),
    }
}

/// Writes a file of the group. If the group has no such file, the error is that the kernel lacks the class.
pub fn write(group: &Existing, file: &str, text: &str, undo: &mut Undo) -> Result<(), HookError> {
    group.write(file, text, undo).map_err(|failure| match failure {
        HostFailure::File { action: "read", path, source } if source.kind() == io::ErrorKind::NotFound => {
            HookError::NoClass(path)
        }
        failure => failure.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_not_there_is_one_of_the_class() {
        let lacking = write(&Existing::new("no/such"), "cpu.ds.budget", "7", &mut Undo::default()).unwrap_err();
        assert!(matches!(&lacking, HookError::NoClass(path) if path.ends_with("cpu.ds.budget")), "{lacking}");
    }
}
