//! Programs of the description: whether they are there, and how they begin.

use std::path::Path;
use std::process::Command;

use macrotick_model::Program;

use crate::error::NodeError;

/// Whether a program can be started; `name` is whose it is.
pub fn decode(name: &str, program: &Program) -> Result<(), NodeError> {
    let file = file(program);
    match is_there(file) {
        true => Ok(()),
        false => Err(NodeError::NoProgram { name: name.into(), program: file.into() }),
    }
}

/// The command of a program, with its arguments and variables.
pub fn command(program: &Program) -> Command {
    let mut command = Command::new(file(program));
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
