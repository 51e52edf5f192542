//! Programs of the description: whether they are there, and how they begin.

use std::path::Path;
use std::process::Command;

use macrotick_model::Program;

use super::user::Owner;
use crate::error::NodeError;

/// Whether a program can be started, and who is to own it, if that is not us; `name` is whose it is.
pub fn decode(name: &str, program: &Program) -> Result<Option<Owner>, NodeError> {
    let file = file(program);
    if !is_there(file) {
        return Err(NodeError::NoProgram { name: name.into(), program: file.into() });
    }
    match &program.directory {
        Some(directory) if !Path::new(directory).is_dir() => {
            Err(NodeError::NoDirectory { name: name.into(), directory: directory.clone() })
        }
        _ => Owner::of(name, program),
    }
}

/// The command of a program, with its arguments and variables, in its directory. A relative path counts from ours, as where it
/// is looked up.
pub fn command(program: &Program) -> Command {
    let file = Path::new(file(program));
    let mut command = match file.components().count() {
        0 | 1 => Command::new(file),
        _ => Command::new(std::path::absolute(file).unwrap_or_else(|_| file.into())),
    };
    program.directory.iter().for_each(|directory| _ = command.current_dir(directory));
    command.args(program.command.get(1..).unwrap_or_default()).envs(program.variables());
    command
}

/// What is executed, as it was written.
pub fn file(program: &Program) -> &str {
    program.command.first().map_or("", String::as_str)
}

/// Looks a program up as execvp(3) will.
pub fn is_there(file: &str) -> bool {
    let executable = |path: &Path| {
        use std::os::unix::fs::PermissionsExt;
        std::fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
    match file {
        "" => false,
        _ if file.contains('/') => executable(Path::new(file)),
        _ => std::env::split_paths(&path).any(|directory| executable(&directory.join(file))),
    }
}
