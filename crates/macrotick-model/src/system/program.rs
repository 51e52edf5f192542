//! Programs that a run starts.

use crate::keys::{object, Kind};

/// A command and its arguments.
const COMMAND: Kind = Kind::List(&Kind::Text("words"));

object! {
    /// A program and its environment. The command alone is a short form.
    #[derive(Eq)]
    pub struct Program: "`program`" short "command" {
        "command" command: Vec<String> [COMMAND], required = "The command and its arguments.";
        "env" env: Vec<String> [Kind::List(&Kind::Text("`NAME=VALUE`"))], optional "none"
            = "Environment variables to add to those of the runner.";
        "directory" directory: Option<String> [Kind::Text("directory")], optional "the runner's"
            = "The absolute path of its working directory.";
        "user" user: Option<String> [Kind::Text("user")], optional "the runner's"
            = "The user of the process, by name or number, with the groups of that user. Only root can set a user other than its own.";
    }
}

impl Program {
    /// Returns the variables as names and values, without the invalid ones. The rules report those.
    pub fn variables(&self) -> impl Iterator<Item = (&str, &str)> {
        self.env.iter().filter_map(|variable| variable.split_once('='))
    }
}
