//! Runs programs: finds them or names their package, keeps their output, and reports the end of it after a failure.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::error::LabError;

/// Directories that are searched in addition to `PATH`; an ordinary user's `PATH` lacks them.
const SYSTEM_DIRS: [&str; 2] = ["/usr/sbin", "/sbin"];

/// Returns the path of the program `name`, or an error with its Debian package.
pub fn find(name: &str, package: &'static str) -> Result<PathBuf, LabError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(SYSTEM_DIRS.iter().map(PathBuf::from))
        .map(|dir| dir.join(name))
        .find(|candidate| candidate.is_file())
        .ok_or_else(|| LabError::Missing { what: name.into(), package })
}

/// Runs a command to its end and returns its standard output.
pub fn output(command: &mut Command) -> Result<String, LabError> {
    let text = display(command);
    let Output { status, stdout, stderr } = command.output().map_err(|error| LabError::Command {
        command: text.clone(),
        status: error.to_string(),
        tail: String::new(),
    })?;
    if status.success() {
        return Ok(String::from_utf8_lossy(&stdout).into_owned());
    }
    let said = [stdout, stderr].concat();
    Err(LabError::Command {
        command: text,
        status: status.to_string(),
        tail: tail(&String::from_utf8_lossy(&said), 30),
    })
}

/// Returns the command as text for a shell, with the variables that it sets.
pub fn display(command: &Command) -> String {
    let set = command.get_envs().filter_map(|(name, value)| Some((name, value?)));
    let set = set.map(|(name, value)| format!("{}={}", name.to_string_lossy(), quote(&value.to_string_lossy())));
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    set.chain(words.map(|word| quote(&word.to_string_lossy()))).collect::<Vec<_>>().join(" ")
}

/// Returns one word, quoted if a shell would change it.
pub fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// Returns the last `lines` lines of a text.
pub fn tail(text: &str, lines: usize) -> String {
    let all: Vec<&str> = text.trim_end().lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}

/// Returns the text of a file that may not exist. Bytes that are not UTF-8 are replaced.
pub(crate) fn read_lossy(path: &Path) -> String {
    String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_only_what_a_shell_would_change() {
        assert_eq!(quote("shift=0,sleep=off"), "shift=0,sleep=off");
        assert_eq!(quote("console=ttyS0 panic=-1"), "'console=ttyS0 panic=-1'");
        assert_eq!(quote("it's"), r"'it'\''s'");
        assert_eq!(quote(""), "''");
    }

    #[test]
    fn the_tail_is_the_end() {
        assert_eq!(tail("a\nb\nc\n", 2), "b\nc");
        assert_eq!(tail("a", 2), "a");
    }

    #[test]
    fn a_missing_program_names_its_package() {
        let error = find("no-such-program-here", "some-package").unwrap_err();
        assert!(error.to_string().contains("some-package"), "{error}");
    }
}
