//! The commands in the pages: each call of `macrotick` has verbs, options and values that the command line knows.

use clap::error::ErrorKind;
use clap::Parser as _;
use macrotick_cli::Cli;
use macrotick_fixtures::{pages, read_tree};

use crate::page::{steps, Step};

/// Returns the commands of a page.
fn commands(page: &str) -> impl Iterator<Item = String> {
    steps(page).into_iter().flat_map(|step| match step {
        Step::Run(run) => run.commands,
        Step::Save { .. } | Step::Other { .. } => Vec::new(),
    })
}

/// Returns the words of the call of `macrotick` in a command, without redirections, comments and other commands.
fn call(command: &str) -> Option<Vec<String>> {
    let mut words: Vec<String> = Vec::new();
    let (mut word, mut quote, mut is_word) = (String::new(), None, false);
    for letter in command.chars().chain([' ']) {
        match (quote, letter) {
            (Some(open), letter) if open == letter => quote = None,
            (None, '\'' | '"') => (quote, is_word) = (Some(letter), true),
            (None, ' ' | '\t' | '|' | ';' | '&' | '>' | '<') => {
                // The number of a redirection, as in `2>/dev/null`.
                if is_word && !(letter == '>' && ["1", "2"].contains(&word.as_str())) {
                    words.push(word.clone());
                }
                (word, is_word) = (String::new(), false);
                if letter.is_whitespace() {
                    continue;
                }
                if words.iter().any(|word| word == "macrotick") {
                    break;
                }
                words.clear();
            }
            (None, '#') if !is_word => break,
            (_, letter) => {
                word.push(letter);
                is_word = true;
            }
        }
    }
    let at = words.iter().position(|word| word == "macrotick")?;
    let is_prefix = |word: &String| word == "sudo" || word.contains('=');
    words[..at].iter().all(is_prefix).then(|| words[at..].to_vec())
}

#[test]
fn the_command_line_knows_each_command_of_the_pages() {
    let (mut count, mut wrong) = (0, Vec::new());
    for path in pages() {
        let page = path.to_str().expect("a name of ours");
        for command in commands(&read_tree(page)) {
            let Some(mut words) = call(&command) else { continue };
            // A pattern stands for several files.
            words.extend(words.iter().filter(|word| word.contains('*')).cloned().collect::<Vec<_>>());
            count += 1;
            match Cli::try_parse_from(&words) {
                Err(error) if !matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) => {
                    wrong.push(format!("{page}: {command}\n{error}"));
                }
                _ => {}
            }
        }
    }
    assert!(count > 80, "only {count} commands");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn calls_are_found_in_commands() {
    let of = |command: &str| call(command).map(|words| words.join(" "));
    let is = |command: &str, expected: &str| assert_eq!(of(command).as_deref(), Some(expected), "{command}");
    is("macrotick plan a.yaml | head -1", "macrotick plan a.yaml");
    is("sudo macrotick stop && reboot", "macrotick stop");
    is("cd x; A=b macrotick check 'a b' # the judge", "macrotick check a b");
    is("macrotick status 2>/dev/null", "macrotick status");
    is("macrotick plan x > y", "macrotick plan x");
    assert_eq!((of("make macrotick"), of("systemctl start macrotick")), (None, None));
}
