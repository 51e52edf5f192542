//! Programs that are started.

use crate::keys::{object, Kind};

/// A command and its arguments.
const COMMAND: Kind = Kind::List(&Kind::Text("words"));

object! {
    /// A program, and what it finds when it begins. The command alone may stand for it.
    #[derive(Eq)]
    pub struct Program: "`program`" short "command" {
        "command" command: Vec<String> [COMMAND], required = "The command and its arguments.";
        "env" env: Vec<String> [Kind::List(&Kind::Text("`NAME=VALUE`"))], optional "none more"
            = "Variables of its environment, beside those of the runner.";
        "directory" directory: Option<String> [Kind::Text("directory")], optional "the runner's"
            = "The absolute path of the directory that it begins in.";
        "user" user: Option<String> [Kind::Text("user")], optional "the runner's"
            = "The user that it belongs to, by name or number, with that user's groups; others than the runner's own only root can give.";
    }
}

impl Program {
    /// The variables, as names and values; what is no such pair the rules refuse.
    pub fn variables(&self) -> impl Iterator<Item = (&str, &str)> {
        self.env.iter().filter_map(|variable| variable.split_once('='))
    }
}
