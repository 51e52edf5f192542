//! The programs of the description: checks that they exist, and starts them.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use macrotick_model::Program;

use super::user::Owner;
use crate::error::NodeError;

/// Checks that a program can be started. Returns its user, if that is another user. `name` is the task or process of
/// the program.
pub fn decode(name: &str, program: &Program) -> Result<Option<Owner>, NodeError> {
    let file = file(program);
    let path = program.variables().filter(|(variable, _)| *variable == "PATH").last().map(|(_, path)| path.into());
    let base = program.directory.as_deref().unwrap_or_default();
    if !is_in(file, path.or_else(|| std::env::var_os("PATH")), Path::new(base)) {
        return Err(NodeError::NoProgram { name: name.into(), program: file.into() });
    }
    match &program.directory {
        Some(directory) if !Path::new(directory).is_dir() => {
            Err(NodeError::NoDirectory { name: name.into(), directory: directory.clone() })
        }
        _ => Owner::of(name, program),
    }
}

/// Returns the command of a program, with its arguments and variables, in its directory. A relative path starts at the
/// runner's directory, as in [`decode`].
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

/// Returns the program's file as the description has it.
pub fn file(program: &Program) -> &str {
    program.command.first().map_or("", String::as_str)
}

/// Returns whether execvp(3) would find a program with this process's PATH.
pub fn is_there(file: &str) -> bool {
    is_in(file, std::env::var_os("PATH"), Path::new(""))
}

/// Returns whether execvp(3) would find a file with this PATH. Relative parts of PATH are below `base`.
fn is_in(file: &str, path: Option<OsString>, base: &Path) -> bool {
    let executable = |path: &Path| {
        use std::os::unix::fs::PermissionsExt;
        std::fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    let path = path.unwrap_or_else(|| "/bin:/usr/bin".into());
    match file {
        "" => false,
        _ if file.contains('/') => executable(Path::new(file)),
        _ => std::env::split_paths(&path).any(|directory| executable(&base.join(directory).join(file))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The program is searched in its own PATH: `command` must find the file that `decode` found.
    #[test]
    fn a_program_is_looked_up_in_its_own_path() {
        use std::os::unix::fs::PermissionsExt;
        let directory = std::env::temp_dir().join(format!("macrotick-path-{}", std::process::id()));
        std::fs::create_dir_all(directory.join("bin")).unwrap();
        let tool = directory.join("bin/macrotick-tool");
        std::fs::write(&tool, "#!/bin/sh\nexit 7\n").unwrap();
        std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o755)).unwrap();
        let program = |path: &str, below: Option<&Path>| Program {
            env: vec!["PATH=/nowhere".into(), format!("PATH={path}")],
            directory: below.map(|below| below.display().to_string()),
            ..Program::new(["macrotick-tool"])
        };
        let absolute = program(&format!("/nowhere:{}", directory.join("bin").display()), None);
        let relative = program("bin", Some(&directory));
        for program in [absolute, relative] {
            assert!(decode("a", &program).is_ok(), "{program:?}");
            let status = command(&program).status().unwrap();
            assert_eq!(status.code(), Some(7), "{program:?}");
        }
        let elsewhere = Program { env: vec!["PATH=/nowhere".into()], ..Program::new(["sh"]) };
        assert!(matches!(decode("a", &elsewhere), Err(NodeError::NoProgram { .. })));
        assert!(command(&elsewhere).status().is_err() && decode("a", &Program::new(["sh"])).is_ok());
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
