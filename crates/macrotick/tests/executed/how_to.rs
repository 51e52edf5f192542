//! A page as a script, and the comparison of its outputs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use macrotick_fixtures::read_tree;

use crate::folder::folder;
use crate::output::difference;
use crate::page::{steps, Run, Step};
use crate::script::{Ended, Place, Script};

/// A page to execute, with the assumptions that it makes about the reader's machine.
pub struct Page {
    path: &'static str,
    place: Place,
    rules: Vec<(Rule, &'static str)>,
    has_used: BTreeSet<usize>,
    first: String,
    program: Option<(&'static str, &'static str)>,
}

/// A rule for commands or blocks that begin with a text, or contain it.
enum Rule {
    /// The command contains a text that stands for something of the reader's.
    Replaced(&'static str),
    /// The command goes on until it is ended.
    Stays,
    /// The command ends with this code.
    Ends(i32),
    /// The reader does something before the command.
    After(&'static str),
    /// The command does not run, with the reason.
    NotHere(&'static str),
    /// The block of text is no output.
    NoOutput,
    /// The numbers of the output depend on more than the tree.
    Depends,
}

/// A command as it ran.
struct Ran {
    place: Place,
    numbers: Vec<usize>,
    codes: Vec<Option<i32>>,
    run: Run,
    are_numbers_same: bool,
}

impl Page {
    /// A page of `docs`, without the ending.
    pub fn of(path: &'static str) -> Self {
        Page {
            path,
            place: Place::Host,
            rules: Vec::new(),
            has_used: BTreeSet::new(),
            first: String::new(),
            program: None,
        }
    }

    /// The commands run in the lab, except those that start a lab of their own.
    pub fn in_guest(mut self, options: &'static [&'static str]) -> Self {
        self.place = Place::Guest(options);
        self
    }

    /// A script before the first command.
    pub fn first(mut self, script: &str) -> Self {
        self.first.push_str(script);
        self
    }

    /// A program of the reader's in the folder, and its source in C.
    pub fn with_program(mut self, name: &'static str, source: &'static str) -> Self {
        self.program = Some((name, source));
        self
    }

    pub fn replaced(self, text: &'static str, by: &'static str) -> Self {
        self.rule(Rule::Replaced(by), text)
    }

    pub fn stays(self, command: &'static str) -> Self {
        self.rule(Rule::Stays, command)
    }

    pub fn ends(self, command: &'static str, code: i32) -> Self {
        self.rule(Rule::Ends(code), command)
    }

    pub fn after(self, script: &'static str, command: &'static str) -> Self {
        self.rule(Rule::After(script), command)
    }

    pub fn not_here(self, command: &'static str, reason: &'static str) -> Self {
        self.rule(Rule::NotHere(reason), command)
    }

    pub fn no_output(self, block: &'static str) -> Self {
        self.rule(Rule::NoOutput, block)
    }

    /// The numbers in the output of the command may be others than those of the page, for a reason.
    pub fn depends(self, command: &'static str, _reason: &str) -> Self {
        self.rule(Rule::Depends, command)
    }

    fn rule(mut self, rule: Rule, text: &'static str) -> Self {
        self.rules.push((rule, text));
        self
    }

    /// Whether one of the rules of a kind is for a text; marks it as used.
    fn find<T>(&mut self, text: &str, kind: impl Fn(&Rule) -> Option<T>) -> Option<T> {
        let rules = self.rules.iter().enumerate();
        let mut fitting = rules.filter(|(_, (_, of))| text.starts_with(of));
        let (at, found) = fitting.find_map(|(at, (rule, _))| Some((at, kind(rule)?)))?;
        self.has_used.insert(at);
        Some(found)
    }

    fn replace(&mut self, command: &str) -> String {
        let mut command = command.to_owned();
        for (at, (rule, text)) in self.rules.iter().enumerate() {
            if let (Rule::Replaced(by), true) = (rule, command.contains(text)) {
                command = command.replace(text, by);
                self.has_used.insert(at);
            }
        }
        command
    }

    /// Executes the page. The number of outputs that were compared is at least the given one.
    pub fn execute(mut self, outputs: usize) {
        let page = read_tree(&format!("docs/{}.md", self.path));
        let folder = folder("pages", self.path);
        let (mut host, mut guest) = (Script::default(), Script::default());
        let mut all: Vec<Ran> = Vec::new();
        if let Some((name, source)) = self.program {
            compile(&folder.join(name), source);
        }
        let first = std::mem::take(&mut self.first);
        match self.place {
            Place::Host => host.prepare(&first),
            Place::Guest(_) => guest.prepare(&first),
        }
        for step in steps(&page) {
            match step {
                Step::Save { name, text } => {
                    // Only a guest's system may change. On the host, files stay in the folder of the page.
                    if Path::new(&name).is_relative() {
                        host.save(&name, &text);
                    }
                    if self.place != Place::Host {
                        guest.save(&name, &text);
                    }
                }
                Step::Other { .. } => {}
                Step::Run(run) => {
                    let place = if is_of_host(&run.commands[0]) { Place::Host } else { self.place };
                    let script = if place == Place::Host { &mut host } else { &mut guest };
                    all.extend(self.add(run, place, script));
                }
            }
        }
        let mut ends = BTreeMap::new();
        for (is_host, place, script) in [(true, Place::Host, host), (false, self.place, guest)] {
            if all.iter().any(|ran| (ran.place == Place::Host) == is_host) {
                ends.insert(is_host, script.execute(place, &folder));
            }
        }
        let mut wrong = Vec::new();
        for ran in &all {
            let (ends, rest) = &ends[&(ran.place == Place::Host)];
            self.judge(ran, ends, rest, &mut wrong);
        }
        for (at, (_, text)) in self.rules.iter().enumerate() {
            if !self.has_used.contains(&at) {
                wrong.push(format!("the page has no more `{text}`"));
            }
        }
        let compared = all.iter().filter(|ran| ran.run.output.is_some()).count();
        assert!(wrong.is_empty(), "{}:\n{}", self.path, wrong.join("\n\n"));
        assert!(compared >= outputs, "{}: only {compared} outputs", self.path);
    }

    /// Adds a block's commands to the script.
    fn add(&mut self, mut run: Run, place: Place, script: &mut Script) -> Option<Ran> {
        let not_output =
            run.output.as_deref().and_then(|text| self.find(text, |rule| matches!(rule, Rule::NoOutput).then_some(())));
        if not_output.is_some() {
            run.output = None;
        }
        let (mut numbers, mut codes, mut are_numbers_same) = (Vec::new(), Vec::new(), true);
        for command in &run.commands {
            let reason = |rule: &Rule| match rule {
                Rule::NotHere(reason) => Some(*reason),
                _ => None,
            };
            if is_preparation(command) || self.find(command, reason).is_some() {
                continue;
            }
            let before = self.find(command, |rule| match rule {
                Rule::After(before) => Some(*before),
                _ => None,
            });
            before.into_iter().for_each(|before| script.prepare(before));
            if self.find(command, |rule| matches!(rule, Rule::Depends).then_some(())).is_some() {
                are_numbers_same = false;
            }
            let stays = self.find(command, |rule| matches!(rule, Rule::Stays).then_some(())).is_some();
            let code = self.find(command, |rule| match rule {
                Rule::Ends(code) => Some(*code),
                _ => None,
            });
            // An output on the page shows how the command ends.
            let unless_shown = (!stays && run.output.is_none()).then_some(0);
            codes.push(code.or(unless_shown));
            numbers.push(script.run(&self.replace(command), stays));
        }
        assert!(run.output.is_none() || !numbers.is_empty(), "{:?} has an output, and does not run", run.commands);
        (!numbers.is_empty()).then_some(Ran { place, numbers, codes, run, are_numbers_same })
    }

    fn judge(&self, ran: &Ran, ends: &BTreeMap<usize, Ended>, rest: &str, wrong: &mut Vec<String>) {
        let commands = ran.run.commands.join("\n");
        let (mut output, mut errors) = (String::new(), String::new());
        for (number, expected) in ran.numbers.iter().zip(&ran.codes) {
            let Some(ended) = ends.get(number) else {
                return wrong.push(format!("{commands}\nhas not run:\n{rest}"));
            };
            output += &ended.output;
            errors += &ended.errors;
            if expected.is_some() && ended.code != *expected {
                wrong.push(format!("{commands}\nends with {:?}\n{}{}{rest}", ended.code, ended.output, ended.errors));
            }
        }
        // A command that fails prints its error on standard error; other commands show their progress there.
        let seen = if output.is_empty() { &errors } else { &output };
        if let Some(page) = &ran.run.output {
            if let Some((line, of_page)) = difference(seen, page, ran.are_numbers_same) {
                wrong.push(format!("{commands}\nhas  {line}\npage {of_page}\n{output}{errors}"));
            }
        }
    }
}

fn compile(program: &Path, source: &str) {
    let path = program.with_extension("c");
    std::fs::write(&path, source).unwrap();
    let status = Command::new("cc").args(["-O2", "-static", "-pthread", "-o"]).args([program, &path]).status().unwrap();
    assert!(status.success(), "{} does not compile", path.display());
}

/// Whether a command prepares the machine. Then the user of the test has executed it.
fn is_preparation(command: &str) -> bool {
    let starts = ["sudo ", "export PATH=", "make product", "make kernel", "macrotick lab kernel "];
    starts.iter().any(|start| command.starts_with(start))
}

/// Whether a command starts a lab of its own.
fn is_of_host(command: &str) -> bool {
    command.contains("macrotick lab ") || command.split_whitespace().any(|word| word == "--lab")
}
