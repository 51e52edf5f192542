//! `macrotick completions`: completions of shells, generated from the definition of the command line.

use clap::{Command, CommandFactory};
use clap_complete::{generate_to, Shell};
use macrotick_cli::{Cli, CompletionsArgs};
use macrotick_report::output;

use super::create;
use crate::error::CliError;
use crate::Outcome;

/// The name of the program, and of the completions that shells look for.
const PROGRAM: &str = "macrotick";
/// The shells.
const SHELLS: [Shell; 3] = [Shell::Bash, Shell::Zsh, Shell::Fish];

/// Writes one file per shell, under the name that the shell looks for.
pub fn execute(args: &CompletionsArgs) -> Result<Outcome, CliError> {
    create(&args.directory)?;
    for shell in SHELLS {
        let written = generate_to(shell, &mut shown(Cli::command()), PROGRAM, &args.directory);
        let path = written.map_err(|source| CliError::Write { path: args.directory.clone(), source })?;
        output::print_line(path.display());
    }
    Ok(Outcome::Done)
}

/// Returns the command without its hidden verbs, which the completions of bash and fish would offer. clap cannot remove a
/// verb.
fn shown(command: Command) -> Command {
    let verbs: Vec<Command> = command.get_subcommands().filter(|verb| !verb.is_hide_set()).cloned().collect();
    let about = command.get_about().cloned().unwrap_or_default();
    let rest = Command::new(PROGRAM).about(about).version(env!("CARGO_PKG_VERSION")).propagate_version(true);
    rest.args(command.get_arguments().cloned()).subcommands(verbs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(shell: Shell) -> String {
        let mut text = Vec::new();
        clap_complete::generate(shell, &mut shown(Cli::command()), PROGRAM, &mut text);
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn hidden_verbs_are_not_offered() {
        let hidden = Cli::command().get_subcommands().filter(|verb| verb.is_hide_set()).count();
        assert_eq!(hidden, 2);
        for shell in SHELLS {
            let text = text(shell);
            for verb in ["completions", "man"] {
                let offered = [format!("-a \"{verb}\""), format!("macrotick,{verb})"), format!("\n'{verb}:")];
                assert!(offered.iter().all(|line| !text.contains(line.as_str())), "{shell}: {verb}");
            }
        }
    }
}
