//! `macrotick man`: manual pages, generated from the definition of the command line.

use std::io;
use std::path::Path;

use clap::{Command, CommandFactory};
use clap_mangen::roff::{bold, roman, Roff};
use clap_mangen::Man;
use macrotick_cli::{Cli, ManArgs, EXIT_CODES};

use super::create;
use macrotick_report::output;

use crate::error::CliError;
use crate::Outcome;

/// The section of user commands.
const SECTION: &str = "1";

/// Files that a verb reads or writes at a fixed path, in addition to the files of its options.
const FILES: [(&str, &str, &str); 27] = [
    ("macrotick-run", "build/run/SYSTEM-BACKEND/plan.json", "The timetable."),
    ("macrotick-run", "build/run/SYSTEM-BACKEND/observation.json", "The raw records of every job."),
    ("macrotick-run", "build/run/SYSTEM-BACKEND/report.json", "The statistics and the verdict."),
    ("macrotick-run", "build/run/SYSTEM-BACKEND/report.html", "The report as a page."),
    ("macrotick-run", "build/run/SYSTEM-BACKEND/trace.json", "The jobs for a trace viewer, such as Perfetto."),
    ("macrotick-run", "/dev/macrotick", "The scheduling class, for the backend kernel on this host."),
    ("macrotick-run", "/run/macrotick.lock", "Prevents two runs at the same time."),
    ("macrotick-observe", "/run/macrotick.lock", "Prevents two runs at the same time."),
    ("macrotick-observe", "/dev/macrotick", "The scheduling class, for the backend kernel."),
    ("macrotick-apply", "/dev/macrotick", "The scheduling class."),
    ("macrotick-apply", "/run/macrotick.lock", "Prevents a deployment and a run at the same time."),
    ("macrotick-apply", "/run/macrotick/control.sock", "The socket on which the supervisor accepts changes; for root."),
    ("macrotick-apply", "/run/macrotick/deployment.json", "The state of the deployment."),
    ("macrotick-apply", "/run/macrotick/plan.json", "The plan of the deployment."),
    ("macrotick-status", "/run/macrotick/deployment.json", "The last state that a supervisor wrote."),
    ("macrotick-admit", "/sys/fs/cgroup", "The control groups and their budgets."),
    ("macrotick-admit", "/dev/macrotick", "The installed table."),
    ("macrotick-admit", "/run/macrotick/deployment.json", "The groups of a deployment, with their tasks."),
    ("macrotick-stop", "/dev/macrotick", "The scheduling class."),
    ("macrotick-doctor", "/run/macrotick-doctor.json", "The steps of --fix since the last boot, for --undo."),
    ("macrotick-hook-run", "/sys/fs/cgroup/", "The container's control group; all others, if it has tasks."),
    ("macrotick-hook-run", "/dev/macrotick", "The installed table."),
    ("macrotick-hook-run", "/run/macrotick/deployment.json", "The groups of a deployment, with their tasks."),
    ("macrotick-hook-install", "/usr/share/containers/oci/hooks.d/macrotick.json", "Makes podman call the hook."),
    ("macrotick-rt-lib", "/usr/local/lib/libmacrotick-rt.so", "The library, for LD_PRELOAD."),
    ("macrotick-compare", "build/compare/SYSTEM.html", "The page."),
    ("macrotick-lab-kernel", "build/kernel/bzImage", "The patched kernel; other flavors have a directory each."),
];

/// Writes one page per verb, and one for the command itself.
pub fn execute(args: &ManArgs) -> Result<Outcome, CliError> {
    create(&args.directory)?;
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    let mut pages = Vec::new();
    collect(&command, None, &mut pages);
    for page in &pages {
        page.write(&args.directory)?;
    }
    output::print_line(format_args!("{} pages in {}", pages.len(), args.directory.display()));
    Ok(Outcome::Done)
}

/// A page that is not written yet.
struct Page<'a> {
    command: &'a Command,
    /// The page of the command with this verb.
    parent: Option<&'a Command>,
}

/// Returns the pages of a command and of all verbs below it.
fn collect<'a>(command: &'a Command, parent: Option<&'a Command>, pages: &mut Vec<Page<'a>>) {
    pages.push(Page { command, parent });
    for verb in verbs(command) {
        collect(verb, Some(command), pages);
    }
}

fn verbs(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|verb| !verb.is_hide_set())
}

/// Returns the name of the page, such as `macrotick-run`.
fn name(command: &Command) -> &str {
    command.get_display_name().unwrap_or_else(|| command.get_name())
}

impl Page<'_> {
    fn write(&self, directory: &Path) -> Result<(), CliError> {
        let path = directory.join(format!("{}.{SECTION}", name(self.command)));
        let mut text = Vec::new();
        self.render(&mut text)
            .and_then(|()| std::fs::write(&path, text))
            .map_err(|source| CliError::Write { path, source })
    }

    fn render(&self, text: &mut Vec<u8>) -> io::Result<()> {
        let source = concat!("Macrotick ", env!("CARGO_PKG_VERSION"));
        // Without a date the pages are the same in each build; an empty date would move the next fields.
        let man = Man::new(self.command.clone()).section(SECTION).date(" ").source(source).manual("Macrotick Manual");
        man.render_title(text)?;
        man.render_name_section(text)?;
        man.render_synopsis_section(text)?;
        man.render_description_section(text)?;
        man.render_options_section(text)?;
        if self.command.has_subcommands() {
            man.render_subcommands_section(text)?;
        }
        exit_status().to_writer(text)?;
        files(name(self.command)).to_writer(text)?;
        self.see_also().to_writer(text)
    }

    /// Refers to the page above, the pages beside it and those below it.
    fn see_also(&self) -> Roff {
        let beside = self.parent.into_iter().flat_map(verbs);
        let related = self.parent.into_iter().chain(beside).chain(verbs(self.command)).map(name);
        let mut references = Vec::new();
        for page in related.filter(|page| *page != name(self.command)) {
            if !references.is_empty() {
                references.push(roman(", "));
            }
            references.extend([bold(page), roman(format!("({SECTION})"))]);
        }
        section("SEE ALSO", |roff| {
            roff.text(references);
        })
    }
}

fn exit_status() -> Roff {
    section("EXIT STATUS", |roff| {
        for (code, meaning) in EXIT_CODES {
            entry(roff, &code.to_string(), meaning);
        }
    })
}

/// Writes no section if the verb has no fixed files.
fn files(page: &str) -> Roff {
    let mut own = FILES.iter().filter(|(owner, ..)| *owner == page).peekable();
    if own.peek().is_none() {
        return Roff::new();
    }
    section("FILES", |roff| own.for_each(|(_, path, meaning)| entry(roff, path, meaning)))
}

fn section(heading: &str, fill: impl FnOnce(&mut Roff)) -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", [heading]);
    fill(&mut roff);
    roff
}

fn entry(roff: &mut Roff, term: &str, meaning: &str) {
    roff.control("TP", []).text([bold(term)]).text([roman(meaning)]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command() -> Command {
        let mut command = Cli::command().disable_help_subcommand(true);
        command.build();
        command
    }

    fn render(page: &Page) -> String {
        let mut text = Vec::new();
        page.render(&mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn every_verb_that_is_shown_has_a_page() {
        let command = command();
        let mut pages = Vec::new();
        collect(&command, None, &mut pages);
        let names: Vec<&str> = pages.iter().map(|page| name(page.command)).collect();
        let below = |verb: &clap::Command| verbs(verb).count();
        let shown = below(&command) + verbs(&command).map(below).sum::<usize>();
        assert_eq!(names.len(), 1 + shown);
        assert!(names.contains(&"macrotick-run") && names.contains(&"macrotick-lab-exec"), "{names:?}");
        assert!(!names.contains(&"macrotick-man"));
    }

    #[test]
    fn files_belong_to_pages_that_exist() {
        let command = command();
        let mut pages = Vec::new();
        collect(&command, None, &mut pages);
        for (owner, ..) in FILES {
            assert!(pages.iter().any(|page| name(page.command) == owner), "{owner}");
        }
    }

    #[test]
    fn a_page_has_the_definition_and_what_goes_beyond() {
        let command = command();
        let text = render(&Page { command: command.find_subcommand("run").unwrap(), parent: Some(&command) });
        for heading in ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "\"EXIT STATUS\"", "FILES", "\"SEE ALSO\""] {
            assert!(text.contains(&format!(".SH {heading}\n")), "{heading}: {text}");
        }
        assert!(text.contains("\\-\\-lab") && text.contains("observation.json"), "{text}");
        assert!(text.contains("macrotick\\-plan") && text.contains("(1)"), "{text}");
    }
}
