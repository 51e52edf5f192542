//! The program to execute.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use crate::error::ReserveError;

/// Checks that there is such a program, before anything is reserved for it.
pub fn find(words: &[OsString]) -> Result<(), ReserveError> {
    let Some(program) = words.first().filter(|program| !program.is_empty()) else {
        return Err(ReserveError::NoProgram);
    };
    let found = match program.as_bytes().contains(&b'/') {
        true => is_executable(Path::new(program)),
        false => std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
            .any(|folder| is_executable(&folder.join(program))),
    };
    match found {
        true => Ok(()),
        false => Err(ReserveError::NotExecutable(shown(program))),
    }
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// Executes it in the place of this process; returns only an error.
pub fn execute(words: &[OsString]) -> ReserveError {
    let (program, arguments) = words.split_first().expect("find() has seen a program");
    let source = Command::new(program).args(arguments).exec();
    ReserveError::Execute { program: shown(program), source }
}

fn shown(program: &OsStr) -> String {
    macrotick_model::visible::shortened(&program.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_as_a_shell_finds_it() {
        let find = |word: &str| find(&[word.into()]).map_err(|error| error.to_string()).err();
        assert_eq!((find("sh"), find("/bin/sh")), (None, None));
        assert_eq!(find("no-such-program").as_deref(), Some("there is no program `no-such-program` to execute"));
        assert!(find("/etc/passwd").is_some() && find("/tmp").is_some() && find("").is_some());
        assert!(super::find(&[]).is_err());
    }
}
