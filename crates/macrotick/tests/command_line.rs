//! `docs/reference/command-line.md` has the `--help` of every verb. `MACROTICK_BLESS=1` writes it again.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use macrotick_fixtures::{hold, sources};

const HEAD: &str = "# The command line\n\n\
    This page is the `--help` of every verb. `make man` writes the same texts as manual pages, and\n\
    `macrotick explain KEY` explains a key of a description.\n\n\
    ## Exit codes\n\n\
    | code | meaning |\n|---:|---|\n";

/// The output of `macrotick VERBS --help`, at most 100 columns wide.
fn help(verbs: &[String]) -> String {
    let output =
        Command::new(env!("CARGO_BIN_EXE_macrotick")).args(verbs).arg("--help").env("COLUMNS", "100").output().unwrap();
    assert!(output.status.success(), "{verbs:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

/// The lines of a part of the help, from its heading to the next empty line.
fn part<'a>(help: &'a str, heading: &'a str) -> impl Iterator<Item = &'a str> {
    help.lines().skip_while(move |line| *line != heading).skip(1).take_while(|line| !line.is_empty())
}

/// The verbs that a help lists, without `help` itself. Further lines of a verb's text are indented more.
fn verbs_of(help: &str) -> Vec<String> {
    let verbs = part(help, "Commands:").filter_map(|line| line.strip_prefix("  "));
    let verbs = verbs.filter(|line| !line.starts_with(' ')).filter_map(|line| line.split_whitespace().next());
    verbs.filter(|verb| *verb != "help").map(str::to_owned).collect()
}

fn write(page: &mut String, verbs: &[String]) {
    let text = help(verbs);
    let level = "#".repeat(2 + usize::from(verbs.len() > 1));
    let name = ["macrotick".to_owned()].iter().chain(verbs).cloned().collect::<Vec<_>>().join(" ");
    write!(page, "\n{level} {name}\n\n```text\n{}\n```\n", text.trim_end()).unwrap();
    for verb in verbs_of(&text) {
        write(page, &[verbs, &[verb]].concat());
    }
}

#[test]
fn the_reference_has_the_help_of_each_verb() {
    let mut page = HEAD.to_owned();
    for line in part(&help(&[]), "Exit codes:") {
        let (code, meaning) = line.trim().split_once(' ').unwrap();
        writeln!(page, "| {code} | {} |", meaning.trim()).unwrap();
    }
    write(&mut page, &[]);
    assert!(page.matches("\n## ").count() > 12, "{page}");
    hold("docs/reference/command-line.md", &page);
}

/// The other crates do the work: there is room for verbs to come, and none for work.
#[test]
fn the_command_line_is_thin() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/main.rs");
    let texts = sources(&root).into_iter().map(|source| std::fs::read_to_string(source.file).unwrap());
    let sum: usize = texts.map(|text| text.lines().take_while(|line| *line != "#[cfg(test)]").count()).sum();
    assert!((1000..=3000).contains(&sum), "{sum} lines without tests");
}
