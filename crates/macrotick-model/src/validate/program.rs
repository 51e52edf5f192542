//! Rules of programs that a run starts.

use super::Rules;
use crate::system::Program;

/// The prefix of the variables by which a process finds its run.
const OURS: &str = "MACROTICK_";

impl Rules<'_> {
    pub(super) fn program(&mut self, path: &str, program: &Program) {
        let at = format!("{path}.command");
        if program.command.first().is_none_or(String::is_empty) {
            self.add(&at, &[], "a program needs a command");
        }
        if program.command.iter().any(|word| word.contains('\0')) {
            self.add(&at, &[], "a command cannot contain a NUL character");
        }
        if let Some(directory) = program.directory.as_ref().filter(|path| !path.starts_with('/') || path.contains('\0'))
        {
            let text = format!("`{directory}` is not the absolute path of a directory");
            self.add(format!("{path}.directory"), &[], text);
        }
        if program.user.as_ref().is_some_and(|user| user.is_empty() || user.contains([':', '\0'])) {
            self.add(format!("{path}.user"), &[], "a user must be a name or a number").hint =
                Some("leave out the group".into());
        }
        for (index, variable) in program.env.iter().enumerate() {
            self.variable(&format!("{path}.env[{index}]"), variable);
        }
    }

    fn variable(&mut self, path: &str, variable: &str) {
        let name = variable.split_once('=').map(|(name, _)| name);
        if name.is_none_or(str::is_empty) || variable.contains('\0') {
            self.add(path, &[], format!("`{variable}` is not a variable")).hint = Some("write `NAME=VALUE`".into());
        } else if variable.starts_with(OURS) {
            self.add(path, &[], format!("variables that start with {OURS} are reserved for the runner"));
        }
    }
}
