//! The state of one parse: the findings, the place of each value, and the values that cannot be read.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::str::FromStr;

use super::yaml::{Node, Value};
use crate::diagnostic::{Diagnostic, Span};
use crate::keys::{Forms, Kind, Object, Words};
use crate::time::Duration;
use crate::validate::Problem;

/// Findings and places. The path of a place has the form `tasks[2].period`.
#[derive(Default)]
pub(crate) struct Context {
    /// Each finding with its path.
    pub findings: Vec<(String, Diagnostic)>,
    places: BTreeMap<String, Span>,
    /// Values that cannot be read. A rule that depends on one of them is not applied.
    broken: BTreeSet<String>,
}

/// The entries of a mapping: known keys, each at most once.
pub(crate) struct Fields<'a> {
    path: String,
    at: Span,
    entries: Vec<(&'a str, &'a Node)>,
    /// Known keys that were probably meant by an unknown one. They are not reported as missing.
    misspelt: Vec<String>,
    /// Whether there were unknown keys.
    has_unknown: bool,
}

/// The form of a value.
pub(crate) enum Form<'a> {
    /// A word.
    Word(&'a str),
    /// A key with its value and the path of the value.
    Key(&'a str, &'a Node, String),
    /// A plain value.
    Plain,
    /// A value without a valid form. The error was reported.
    Broken,
}

impl Context {
    pub fn report(&mut self, path: &str, at: Span, message: impl Into<String>, hint: Option<String>) {
        self.findings.push((path.into(), Diagnostic { at, message: message.into(), hint }));
    }

    /// Reports an error of the value at `path` and marks the value as broken.
    pub fn refuse(&mut self, path: &str, at: Span, message: impl Into<String>, hint: Option<String>) {
        self.report(path, at, message, hint);
        self.mark_broken(path);
    }

    pub fn is_broken(&self, path: &str) -> bool {
        let around = path.rmatch_indices(['.', '[']).map(|(end, _)| &path[..end]);
        std::iter::once(path).chain(around).any(|outer| self.broken.contains(outer))
    }

    /// Whether the value at `path`, a part of it, or a mapping around it could not be read.
    pub fn holds_broken(&self, path: &str) -> bool {
        let inside = |mark: &str| {
            let first = format!("{path}{mark}");
            self.broken.range(first.clone()..).next().is_some_and(|found| found.starts_with(&first))
        };
        self.is_broken(path) || inside(".") || inside("[")
    }

    pub fn mark_broken(&mut self, path: &str) {
        self.broken.insert(path.into());
    }

    pub fn place(&mut self, path: &str, at: Span) {
        self.places.insert(path.into(), at);
    }

    /// Turns a broken rule into a finding at its place, unless the rule depends on a broken value.
    pub fn apply(&mut self, problem: Problem) {
        if self.holds_broken(&problem.at) || problem.needs.iter().any(|path| self.holds_broken(path)) {
            return;
        }
        let at = self.nearest(&problem.at);
        self.report(&problem.at, at, problem.message, problem.hint);
    }

    /// Does the same for the rule of a single value, if the value is present. A default follows from other values,
    /// which have rules of their own.
    pub fn apply_to_value(&mut self, problem: Problem) {
        if self.places.contains_key(&problem.at) {
            self.apply(problem);
        }
    }

    /// Returns the place of a path, or of the nearest path around it. A default has no place of its own.
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

    /// Reads a mapping. Reports unknown keys, duplicate keys, and a value that is not a mapping.
    pub fn fields<'a>(&mut self, node: &'a Node, path: &str, object: &Object) -> Option<Fields<'a>> {
        let is_word = object.short.is_some_and(|short| matches!(object.key(short).kind, Kind::Words(_)));
        if let (Some(short), Value::List(_), false) | (Some(short), Value::Scalar(_), true) =
            (object.short, &node.value, is_word)
        {
            let mut fields = Fields::new(node, path);
            self.place(&join(path, short), node.at);
            fields.entries.push((short, node));
            return Some(fields);
        }
        let known: Vec<&str> = object.names().collect();
        match (object.short, &node.value) {
            (Some(short), _) if is_word && !matches!(node.value, Value::Map(_)) => {
                let text = format!("{} must be a word or a mapping, this is {}", object.what, node.kind());
                let hint =
                    format!("write a word, which is its `{short}`, or a mapping with the keys {}", quoted(&known));
                self.refuse(path, node.at, text, Some(hint));
                None
            }
            (Some(short), Value::Scalar(_) | Value::Null) => {
                let text = format!("{} must be a list or a mapping, this is {}", object.what, node.kind());
                let hint =
                    format!("write `[...]`, which is its `{short}`, or a mapping with the keys {}", quoted(&known));
                self.refuse(path, node.at, text, Some(hint));
                None
            }
            _ => self.mapping(node, path, object.what, &known),
        }
    }

    fn mapping<'a>(&mut self, node: &'a Node, path: &str, what: &str, known: &[&str]) -> Option<Fields<'a>> {
        let Value::Map(entries) = &node.value else {
            let hint = Some(format!("its keys are {}", quoted(known)));
            self.refuse(path, node.at, format!("{what} must be a mapping, this is {}", node.kind()), hint);
            return None;
        };
        let mut fields = Fields::new(node, path);
        for (key, value) in entries {
            let name = key.text.as_str();
            if !known.contains(&name) {
                let hint = super::old::now(object_noun(what), name).unwrap_or_else(|| similar(name, known));
                self.report(path, key.at, format!("unknown key `{name}` in {what}"), Some(hint));
                fields.has_unknown = true;
                fields.misspelt.extend(nearest_name(name, known.iter().copied()).map(String::from));
            } else if let Some(first) = fields.entries.iter().find(|(other, _)| *other == name) {
                let text = match first.1.at.line {
                    0 => format!("duplicate key `{name}`"),
                    line => format!("duplicate key `{name}`: it is already in line {line}"),
                };
                self.report(path, key.at, text, None);
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

    /// Marks a key as broken if it was probably misspelt, so it is not reported as missing too.
    pub fn excuse(&mut self, fields: &Fields, key: &str) {
        if fields.misspelt.iter().any(|meant| meant == key) {
            self.mark_broken(&fields.path_of(key));
        }
    }

    pub fn list<'a>(&mut self, node: &'a Node, path: &str) -> Option<&'a [Node]> {
        match &node.value {
            Value::List(items) => Some(items),
            _ => {
                let text = format!("`{}` must be a list, this is {}", self.key_of(path), node.kind());
                self.refuse(path, node.at, text, None);
                None
            }
        }
    }

    pub fn text<'a>(&mut self, node: &'a Node, path: &str) -> Option<&'a str> {
        match &node.value {
            Value::Scalar(text) => Some(text),
            _ => {
                let text = format!("`{}` must be a plain value, this is {}", self.key_of(path), node.kind());
                self.refuse(path, node.at, text, None);
                None
            }
        }
    }

    pub fn duration(&mut self, node: &Node, path: &str) -> Option<Duration> {
        let text = self.text(node, path)?;
        match text.parse() {
            Ok(length) => Some(length),
            Err(error) => {
                let error: crate::time::ParseDurationError = error;
                self.refuse(path, node.at, error.to_string(), None);
                None
            }
        }
    }

    /// Reads a quantity with a unit.
    pub fn quantity<T: FromStr<Err: Display>>(&mut self, node: &Node, path: &str) -> Option<T> {
        let text = self.text(node, path)?;
        text.parse().map_err(|error: T::Err| self.refuse(path, node.at, error.to_string(), None)).ok()
    }

    pub fn integer(&mut self, node: &Node, path: &str) -> Option<i64> {
        let text = self.text(node, path)?;
        let number = text.parse::<i64>().ok();
        if number.is_none() {
            let text = format!("`{}` must be a whole number, this is `{text}`", self.key_of(path));
            self.refuse(path, node.at, text, None);
        }
        number
    }

    pub fn boolean(&mut self, node: &Node, path: &str) -> Option<bool> {
        match self.text(node, path)? {
            "true" => Some(true),
            "false" => Some(false),
            other => {
                let text = format!("`{}` must be true or false, this is `{other}`", self.key_of(path));
                self.refuse(path, node.at, text, None);
                None
            }
        }
    }

    /// Returns the index of the word at `path`.
    pub fn word(&mut self, node: &Node, path: &str, words: &Words) -> Option<usize> {
        let text = self.text(node, path)?;
        let found = words.words.iter().position(|(word, _)| *word == text);
        if found.is_none() {
            self.unknown(node, path, object_noun(words.what), words.words.iter().map(|(word, _)| *word).collect());
        }
        found
    }

    /// Reports an unknown word, with the nearest known one as a hint.
    pub fn unknown(&mut self, node: &Node, path: &str, noun: &str, known: Vec<&str>) {
        let word = self.scalar(node);
        let mut all: Vec<&str> = Vec::new();
        known.into_iter().for_each(|word| all.extend((!all.contains(&word)).then_some(word)));
        self.refuse(path, node.at, format!("unknown {noun} `{word}`"), Some(similar(word, &all)));
    }

    fn scalar<'a>(&self, node: &'a Node) -> &'a str {
        match &node.value {
            Value::Scalar(text) => text,
            _ => "",
        }
    }

    /// Returns the form of the value at `path`.
    pub fn form<'a>(&mut self, node: &'a Node, path: &str, forms: &Forms) -> Form<'a> {
        let word = forms.words.iter().find(|(word, _)| *word == self.scalar(node));
        if let (Some(_), Value::Scalar(text)) = (word, &node.value) {
            return Form::Word(text);
        }
        let is_map = matches!(node.value, Value::Map(_));
        if let (Some((kind, _)), false) = (&forms.plain, is_map) {
            return self.plain(node, path, kind, forms);
        }
        let keys: Vec<&str> = forms.keys.iter().map(|(key, ..)| *key).collect();
        if let (Value::Scalar(_), false) = (&node.value, forms.words.is_empty()) {
            if let Some(key) = keys.iter().find(|key| **key == self.scalar(node)) {
                let hint = Some(format!("write `{{{key}: ...}}`"));
                self.refuse(path, node.at, format!("`{key}` is a key and needs a value"), hint);
                return Form::Broken;
            }
            let known = forms.words.iter().map(|(word, _)| *word).chain(keys).collect();
            self.unknown(node, path, object_noun(forms.what), known);
            return Form::Broken;
        }
        match self.one_of(node, path, forms.what, &keys) {
            Some((key, node, path)) => Form::Key(key, node, path),
            None => Form::Broken,
        }
    }

    /// Reads a plain value. If it is not a valid time or number, the hint also names a word.
    fn plain<'a>(&mut self, node: &Node, path: &str, kind: &Kind, forms: &Forms) -> Form<'a> {
        let error = match (kind, &node.value) {
            (Kind::Time { .. }, Value::Scalar(text)) => {
                text.parse::<Duration>().err().map(|error| (error.to_string(), "a time such as `6us`"))
            }
            (Kind::Integer { .. }, Value::Scalar(text)) if text.parse::<i64>().is_err() => {
                Some((format!("`{}` must be a whole number, this is `{text}`", self.key_of(path)), "a number"))
            }
            _ => None,
        };
        let [(word, _), ..] = forms.words else { return Form::Plain };
        match error {
            Some((error, such)) => {
                self.refuse(path, node.at, error, Some(format!("write {such}, or `{word}`")));
                Form::Broken
            }
            None => Form::Plain,
        }
    }

    /// Returns the form in a mapping that has other keys too, if there is one. `whose` is the mapping in messages.
    pub fn flat<'a>(&mut self, fields: &Fields<'a>, forms: &Forms, whose: &str) -> Option<Form<'a>> {
        let is_form = |key: &&str| forms.keys.iter().any(|(form, ..)| form == key);
        let mut there = fields.entries.iter().filter(|(key, _)| is_form(key));
        let (key, node) = there.next()?;
        if let Some((second, extra)) = there.next() {
            let path = fields.path_of(second);
            self.report(
                &path,
                extra.at,
                format!("{whose} has both `{key}` and `{second}`"),
                Some("keep one of them".into()),
            );
        }
        Some(Form::Key(key, node, fields.path_of(key)))
    }

    /// Reports that a mapping has no key of a required form.
    pub fn no_form(&mut self, fields: &Fields, forms: &Forms, whose: &str) {
        let keys: Vec<&str> = forms.keys.iter().map(|(key, ..)| *key).collect();
        if !fields.has_unknown {
            let text = format!("{whose} has none of the keys {}", quoted(&keys));
            self.report(&fields.path, fields.at, text, None);
        }
        keys.iter().for_each(|key| self.mark_broken(&fields.path_of(key)));
    }

    /// Reads a mapping with exactly one key, and returns the key, the value and the path of the value.
    fn one_of<'a>(
        &mut self,
        node: &'a Node,
        path: &str,
        what: &str,
        keys: &[&str],
    ) -> Option<(&'a str, &'a Node, String)> {
        let fields = self.mapping(node, path, what, keys)?;
        match fields.entries[..] {
            [(key, value)] => Some((key, value, fields.path_of(key))),
            [] if fields.has_unknown => {
                self.mark_broken(path);
                None
            }
            [] => {
                let hint = Some(format!("write one of {}", keys.join(", ")));
                self.refuse(path, node.at, format!("{what} has no key"), hint);
                None
            }
            [(first, _), (second, extra), ..] => {
                let text = format!("{what} has two forms at once: `{first}` and `{second}`");
                self.refuse(path, extra.at, text, Some("keep one of them".into()));
                None
            }
        }
    }

    /// Returns the name of a path in messages: its last key.
    pub fn key_of<'a>(&self, path: &'a str) -> &'a str {
        let key = path.rsplit('.').next().unwrap_or(path);
        key.split('[').next().unwrap_or(key)
    }
}

impl<'a> Fields<'a> {
    fn new(node: &Node, path: &str) -> Self {
        Fields { path: path.into(), at: node.at, entries: Vec::new(), misspelt: Vec::new(), has_unknown: false }
    }

    pub fn get(&self, key: &str) -> Option<&'a Node> {
        self.entries.iter().find(|(name, _)| *name == key).map(|(_, node)| *node)
    }

    pub fn path_of(&self, key: &str) -> String {
        join(&self.path, key)
    }

    /// Returns the value of the key `name`.
    pub fn name(&self) -> Option<&'a str> {
        match &self.get("name")?.value {
            Value::Scalar(text) => Some(text),
            _ => None,
        }
    }
}

/// Appends a key to a path.
pub(crate) fn join(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.into()
    } else {
        format!("{path}.{key}")
    }
}

fn object_noun(what: &str) -> &str {
    what.strip_prefix("a ").or(what.strip_prefix("an ")).unwrap_or(what)
}

fn quoted(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// Returns the hint for an unknown name: "did you mean" with the nearest known name, or all known names if none is
/// near.
fn similar(name: &str, known: &[&str]) -> String {
    match nearest_name(name, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("one of {}", quoted(known)),
    }
}

/// Returns the name with the fewest edits from `name`. The limit is a third of its length.
pub(crate) fn nearest_name<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let limit = name.chars().count().max(3) / 3;
    known
        .map(|candidate| (strsim::damerau_levenshtein(name, candidate), candidate))
        .filter(|&(distance, _)| distance <= limit)
        .min()
        .map(|(_, candidate)| candidate)
}
