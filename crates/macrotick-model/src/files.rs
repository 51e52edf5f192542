//! Plans and observations as versioned JSON files. An error has a place and a reason.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::container::Container;
use crate::diagnostic::Diagnostics;
use crate::gates::GateList;
use crate::observation::Observation;
use crate::parse::{Finding, SYSTEM};
use crate::plan::Plan;
use crate::system::{Experiment, System};
use crate::time::Duration;
use crate::validate;
use crate::visible::shortened;
use crate::whole;

/// An error of reading or writing a document.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// A file that cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: String,
        /// The reason.
        source: io::Error,
    },
    /// A file that cannot be written.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The file.
        path: String,
        /// The reason.
        source: io::Error,
    },
    /// A text that is not JSON, or does not have the shape of the document.
    #[error("{path}:{line}:{column}: {message}")]
    Syntax {
        /// The file.
        path: String,
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// The error.
        message: String,
    },
    /// A document of another version.
    #[error("{path}: {what} of version {found}, this program reads version {expected}: create it again")]
    Version {
        /// The file.
        path: String,
        /// `a plan` or `an observation`.
        what: &'static str,
        /// The version in the file.
        found: u32,
        /// The version of this code.
        expected: u32,
    },
    /// A well-formed document with a system that breaks rules.
    #[error("{path}: {}", first(.problems))]
    Invalid {
        /// The file.
        path: String,
        /// Each broken rule with the path of the value.
        problems: Vec<String>,
    },
}

/// An error of loading a description.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A file that cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// A wrong description. The caller can render the findings with colours.
    #[error("{0}")]
    Description(Diagnostics),
}

impl System {
    /// Reads and checks a description.
    pub fn load(path: &Path) -> Result<System, LoadError> {
        let source = read(path)?;
        System::parse(&source, &shown(path)).map_err(LoadError::Description)
    }

    /// Shows findings about a description, which was loaded before, at their places in the file.
    pub fn refuse_file(path: &Path, findings: Vec<Finding>) -> LoadError {
        refused(path, findings, System::refuse)
    }
}

impl Container {
    /// Reads and checks a description of a container.
    pub fn load(path: &Path) -> Result<Container, LoadError> {
        let source = read(path)?;
        Container::parse(&source, &shown(path)).map_err(LoadError::Description)
    }

    /// Shows findings about a description, which was loaded before, at their places in the file.
    pub fn refuse_file(path: &Path, findings: Vec<Finding>) -> LoadError {
        refused(path, findings, Container::refuse)
    }
}

/// Reads the text again. If the file changed since it was loaded, findings can appear at wrong places.
fn refused(path: &Path, findings: Vec<Finding>, place: fn(&str, &str, Vec<Finding>) -> Diagnostics) -> LoadError {
    match read(path) {
        Ok(source) => LoadError::Description(place(&source, &shown(path), findings)),
        Err(error) => LoadError::File(error),
    }
}

impl Plan {
    /// Reads a plan and checks its system against the rules of a description. The judge checks the tables.
    pub fn load(path: &Path) -> Result<Plan, FileError> {
        Plan::from_json(&read(path)?, &shown(path))
    }

    /// Reads a plan from text. `path` only names the place of an error.
    pub fn from_json(text: &str, path: &str) -> Result<Plan, FileError> {
        let plan: Plan = decode(text, path, "a plan", Plan::VERSION)?;
        valid(&plan, "", path)?;
        Ok(plan)
    }

    /// Writes the plan, whole or not at all.
    pub fn save(&self, path: &Path) -> Result<(), FileError> {
        write(path, &self.to_json())
    }

    /// Returns the plan as JSON with one window or gate per line, for reading and for `diff`.
    pub fn to_json(&self) -> String {
        let mut text = format!(
            "{{\n\"version\": {},\n\"solver\": {},\n\"cycle\": {},\n\"tables\": [",
            self.version,
            json(&self.solver),
            json(&self.cycle)
        );
        for (index, table) in self.tables.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            let windows: Vec<String> = table.windows.iter().map(|window| format!("\n  {}", json(window))).collect();
            let _ = write!(text, "{comma}\n {{\"cpu\": {}, \"windows\": [{}]}}", table.cpu, windows.join(","));
        }
        text += "],\n";
        if !self.gates.is_empty() {
            let lists: Vec<String> = self.gates.iter().map(gate_list).collect();
            text += &format!("\"gates\": [{}],\n", lists.join(","));
        }
        let system = serde_json::to_string_pretty(&self.system).expect("a system is always JSON");
        text + &format!("\"system\": {system}\n}}\n")
    }
}

impl Observation {
    /// Reads an observation.
    pub fn load(path: &Path) -> Result<Observation, FileError> {
        Observation::from_json(&read(path)?, &shown(path))
    }

    /// Reads an observation from text. `path` only names the place of an error.
    pub fn from_json(text: &str, path: &str) -> Result<Observation, FileError> {
        let observation: Observation = decode(text, path, "an observation", Observation::VERSION)?;
        valid(&observation.plan, "plan.", path)?;
        if !(Duration::ZERO..=Experiment::MAX_DURATION).contains(&observation.duration) {
            let (found, most) = (observation.duration, Experiment::MAX_DURATION);
            let problems = vec![format!("duration: {found} is out of range: 0us to {most}")];
            return Err(FileError::Invalid { path: path.into(), problems });
        }
        Ok(observation)
    }

    /// Writes the observation, whole or not at all.
    pub fn save(&self, path: &Path) -> Result<(), FileError> {
        write(path, &self.to_json())
    }

    /// Returns the observation as compact JSON, because it has many records.
    pub fn to_json(&self) -> String {
        json(self) + "\n"
    }
}

fn gate_list(list: &GateList) -> String {
    let entries: Vec<String> = list.entries.iter().map(|entry| format!("\n  {}", json(entry))).collect();
    let (interface, cycle) = (json(&list.interface), json(&list.cycle));
    format!("\n {{\"interface\": {interface}, \"cycle\": {cycle}, \"entries\": [{}]}}", entries.join(","))
}

fn json<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("the model's types are always JSON")
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

fn read(path: &Path) -> Result<String, FileError> {
    let bytes = fs::read(path).map_err(|source| FileError::Read { path: shown(path), source })?;
    text(bytes, path)
}

/// Decodes UTF-8, and removes the byte order mark that some editors write at the start.
fn text(bytes: Vec<u8>, path: &Path) -> Result<String, FileError> {
    let text = String::from_utf8(bytes).map(|text| match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.into(),
        None => text,
    });
    text.map_err(|error| {
        let bytes = error.as_bytes();
        let before = String::from_utf8_lossy(&bytes[..error.utf8_error().valid_up_to()]);
        let message = match bytes {
            [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => "the file is in UTF-16: write it in UTF-8",
            _ => "the file is not in UTF-8: write it in UTF-8",
        };
        let column = before.rsplit('\n').next().map_or(0, |line| line.chars().count()) + 1;
        let line = before.matches('\n').count() + 1;
        FileError::Syntax { path: shown(path), line, column, message: message.into() }
    })
}

fn write(path: &Path, text: &str) -> Result<(), FileError> {
    whole::write(path, text.as_bytes()).map_err(|source| FileError::Write { path: shown(path), source })
}

/// Reads the version before the rest: an old document gets an error about its version, not about its shape.
fn decode<T: DeserializeOwned>(text: &str, path: &str, what: &'static str, expected: u32) -> Result<T, FileError> {
    #[derive(Deserialize)]
    #[serde(expecting = "an object with a `version`")]
    struct Head {
        version: u32,
    }
    let syntax = |error: serde_json::Error| {
        let (line, column) = (error.line(), error.column());
        let text = error.to_string();
        let place = format!(" at line {line} column {column}");
        let message = in_words(text.strip_suffix(&place).unwrap_or(&text));
        // An error in a system names its key. The position would be wrong: it is the end of the whole system.
        if message.starts_with(SYSTEM) {
            return FileError::Invalid { path: path.into(), problems: vec![message] };
        }
        FileError::Syntax { path: path.into(), line, column, message: shortened(&message) }
    };
    let head: Head = serde_json::from_str(text).map_err(syntax)?;
    if head.version != expected {
        return Err(FileError::Version { path: path.into(), what, found: head.version, expected });
    }
    serde_json::from_str(text).map_err(syntax)
}

/// Removes the names of this program's types.
fn in_words(message: &str) -> String {
    const TYPE: &str = "expected struct ";
    match message.split_once(TYPE) {
        Some((before, rest)) => {
            let after = rest.find(|c: char| !c.is_alphanumeric()).map_or("", |end| &rest[end..]);
            format!("{before}expected an object{after}")
        }
        None => message.into(),
    }
}

/// Joins the first problems, and counts the others.
fn first(problems: &[String]) -> String {
    const MOST: usize = 100;
    match problems.len().saturating_sub(MOST) {
        0 => problems.join("; "),
        more => format!("{}; and {more} more", problems[..MOST].join("; ")),
    }
}

fn valid(plan: &Plan, prefix: &str, path: &str) -> Result<(), FileError> {
    let mut problems: Vec<String> =
        plan.system.problems().iter().map(|problem| shortened(&format!("{prefix}{problem}"))).collect();
    if plan.cycle.as_nanos() <= 0 || plan.cycle > validate::MAX_CYCLE {
        problems.push(format!("{prefix}cycle: {} is not within (0, {}]", plan.cycle, validate::MAX_CYCLE));
    }
    let of_gates = plan.gates.iter().enumerate().flat_map(|(index, list)| {
        list.problems(plan).into_iter().map(move |problem| format!("gates[{index}]: {problem}"))
    });
    problems.extend(of_gates.map(|problem| shortened(&format!("{prefix}{problem}"))));
    let open = plan.system.left_open().into_iter();
    problems.extend(open.map(|path| format!("{prefix}system.{path}: a plan needs this value")));
    if problems.is_empty() {
        Ok(())
    } else {
        Err(FileError::Invalid { path: path.into(), problems })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_refused_in_words_and_short_ones() {
        let told = |text: &str| Plan::from_json(text, "p.json").unwrap_err().to_string();
        assert_eq!(told("null"), "p.json:1:4: invalid type: null, expected an object with a `version`");
        let plan = |tables: &str| {
            let tables = format!("\"version\": {}, \"solver\": \"s\", \"cycle\": \"1ms\", {tables}", Plan::VERSION);
            told(&format!("{{{tables}}}"))
        };
        assert!(
            plan("\"tables\": [null]").ends_with("invalid type: null, expected an object"),
            "{}",
            plan("\"tables\": [null]")
        );
        let long = plan(&format!("\"{}\": 1", "x".repeat(200_000)));
        assert!(long.len() < 1000 && long.contains("unknown field `xxx"), "{long}");
    }

    #[test]
    fn other_encodings_are_named_with_their_place() {
        let told = |bytes: &[u8]| text(bytes.to_vec(), Path::new("a.yaml")).unwrap_err().to_string();
        assert_eq!(told(b"\xff\xfes\0"), "a.yaml:1:1: the file is in UTF-16: write it in UTF-8");
        assert_eq!(text(b"\xef\xbb\xbfa: b".to_vec(), Path::new("a.yaml")).unwrap(), "a: b");
        assert_eq!(told(b"a: b\n# f\xfcr"), "a.yaml:2:4: the file is not in UTF-8: write it in UTF-8");
    }
}
