//! The state of one parse: what was found, where each value stands, and what could not be read.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use super::yaml::{Node, Value};
use crate::diagnostic::{Diagnostic, Span};
use crate::time::Duration;
use crate::validate::{out_of_range, Problem};

/// Findings and places. A place is a path such as `tasks[2].period`.
#[derive(Default)]
pub(super) struct Context {
    pub findings: Vec<Diagnostic>,
    places: BTreeMap<String, Span>,
    /// Values that could not be read; a rule that depends on one is not applied.
    broken: BTreeSet<String>,
}

/// The entries of a mapping whose keys are known ones, each at most once.
pub(super) struct Fields<'a> {
    pub path: String,
    at: Span,
    entries: Vec<(&'a str, &'a Node)>,
    /// Known keys that an unknown one was probably meant to be; they are not told to be missing as well.
    misspelt: Vec<String>,
}

impl Context {
    pub fn report(&mut self, at: Span, message: impl Into<String>, hint: Option<String>) {
        self.findings.push(Diagnostic { at, message: message.into(), hint });
    }

    /// Reports what is wrong with the value at `path` and remembers that it cannot be relied on.
    pub fn refuse(&mut self, path: &str, at: Span, message: impl Into<String>, hint: Option<String>) {
        self.report(at, message, hint);
        self.mark_broken(path);
    }

    pub fn is_broken(&self, path: &str) -> bool {
        self.broken.iter().any(|broken| covers(broken, path))
    }

    pub fn mark_broken(&mut self, path: &str) {
        self.broken.insert(path.into());
    }

    pub fn place(&mut self, path: &str, at: Span) {
        self.places.insert(path.into(), at);
    }

    /// Turns a broken rule into a finding at its place, unless it depends on what could not be read.
    pub fn apply(&mut self, problem: Problem) {
        let depends = |path: &String| self.broken.iter().any(|broken| covers(broken, path) || covers(path, broken));
        if depends(&problem.at) || problem.needs.iter().any(depends) {
            return;
        }
        let at = self.nearest(&problem.at);
        self.report(at, problem.message, problem.hint);
    }

    /// The place of a path, or of the nearest one around it (a default has no place of its own).
    fn nearest(&self, path: &str) -> Span {
        let mut path = path;
        loop {
            if let Some(&at) = self.places.get(path) {
                return at;
            }
            match path.rfind(['.', '[']) {
                Some(cut) => path = &path[..cut],
                None => return Span { line: 1, column: 1, length: 1 },
            }
        }
    }

    /// Reads a mapping: refuses what is none, unknown keys and duplicate ones.
    pub fn fields<'a>(&mut self, node: &'a Node, path: &str, what: &str, known: &[&str]) -> Option<Fields<'a>> {
        let Value::Map(entries) = &node.value else {
            let hint = Some(format!("its keys are {}", quoted(known)));
            self.refuse(path, node.at, format!("{what} must be a mapping, this is {}", node.kind()), hint);
            return None;
        };
        let mut fields = Fields { path: path.into(), at: node.at, entries: Vec::new(), misspelt: Vec::new() };
        for (key, value) in entries {
            let name = key.text.as_str();
            if !known.contains(&name) {
                self.report(key.at, format!("unknown key `{name}` in {what}"), Some(similar(name, known)));
                fields.misspelt.extend(nearest_name(name, known.iter().copied()).map(String::from));
            } else if let Some(first) = fields.entries.iter().find(|(other, _)| *other == name) {
                let line = first.1.at.line;
                self.report(key.at, format!("duplicate key `{name}`: it stands already in line {line}"), None);
            } else {
                self.place(&join(path, name), value.at);
                fields.entries.push((name, value));
            }
        }
        Some(fields)
    }

    pub fn require<'a>(&mut self, fields: &Fields<'a>, key: &str, what: &str) -> Option<&'a Node> {
        let found = fields.get(key);
        if found.is_none() && fields.misspelt.iter().any(|meant| meant == key) {
            self.mark_broken(&fields.path_of(key));
        } else if found.is_none() {
            self.refuse(&fields.path_of(key), fields.at, format!("{what} has no `{key}`"), None);
        }
        found
    }

    /// A key that was probably misspelt is not told to be missing as well.
    pub fn excuse(&mut self, fields: &Fields, key: &str) {
        if fields.get(key).is_none() && fields.misspelt.iter().any(|meant| meant == key) {
            self.mark_broken(&fields.path_of(key));
        }
    }

    pub fn list<'a>(&mut self, node: &'a Node, path: &str, what: &str) -> Option<&'a [Node]> {
        match &node.value {
            Value::List(items) => Some(items),
            _ => {
                self.refuse(path, node.at, format!("{what} must be a list, this is {}", node.kind()), None);
                None
            }
        }
    }

    pub fn text<'a>(&mut self, node: &'a Node, path: &str) -> Option<&'a str> {
        match &node.value {
            Value::Scalar(text) => Some(text),
            _ => {
                let key = path.rsplit('.').next().unwrap_or(path);
                self.refuse(path, node.at, format!("`{key}` must be a plain value, this is {}", node.kind()), None);
                None
            }
        }
    }

    pub fn duration(&mut self, node: &Node, path: &str) -> Option<Duration> {
        let text = self.text(node, path)?;
        match text.parse() {
            Ok(length) => Some(length),
            Err(error) => {
                self.refuse(path, node.at, error.to_string(), None);
                None
            }
        }
    }

    pub fn integer<T: TryFrom<i64>>(&mut self, node: &Node, path: &str, range: RangeInclusive<i64>) -> Option<T> {
        let text = self.text(node, path)?;
        let key = path.rsplit('.').next().unwrap_or(path);
        let Ok(number) = text.parse::<i64>() else {
            self.refuse(path, node.at, format!("`{key}` must be a whole number, this is `{text}`"), None);
            return None;
        };
        match T::try_from(number) {
            Ok(value) if range.contains(&number) => Some(value),
            _ => {
                self.refuse(path, node.at, out_of_range(key, number, &range), None);
                None
            }
        }
    }

    pub fn boolean(&mut self, node: &Node, path: &str) -> Option<bool> {
        match self.text(node, path)? {
            "true" => Some(true),
            "false" => Some(false),
            other => {
                let key = path.rsplit('.').next().unwrap_or(path);
                self.refuse(path, node.at, format!("`{key}` must be true or false, this is `{other}`"), None);
                None
            }
        }
    }
}

impl<'a> Fields<'a> {
    pub fn get(&self, key: &str) -> Option<&'a Node> {
        self.entries.iter().find(|(name, _)| *name == key).map(|(_, node)| *node)
    }

    pub fn path_of(&self, key: &str) -> String {
        join(&self.path, key)
    }

    /// Whether a key was probably misspelt.
    pub fn has_misspelt(&self) -> bool {
        !self.misspelt.is_empty()
    }

    /// The place of the mapping.
    pub fn at(&self) -> Span {
        self.at
    }

    /// The keys present, in the order of the source.
    pub fn entries(&self) -> &[(&'a str, &'a Node)] {
        &self.entries
    }
}

/// Whether `outer` is `inner` or something around it. `tasks[*].name` covers the name of every task.
fn covers(outer: &str, inner: &str) -> bool {
    inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.into()
    } else {
        format!("{path}.{key}")
    }
}

fn quoted(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// "did you mean": the known name nearest to `name`, or all of them where none is near.
pub(super) fn similar(name: &str, known: &[&str]) -> String {
    match nearest_name(name, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("one of {}", quoted(known)),
    }
}

/// The name with the fewest edits from `name`, at most a third of its length.
pub(crate) fn nearest_name<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let limit = name.chars().count().max(3) / 3;
    known
        .map(|candidate| (strsim::damerau_levenshtein(name, candidate), candidate))
        .filter(|&(distance, _)| distance <= limit)
        .min()
        .map(|(_, candidate)| candidate)
}
