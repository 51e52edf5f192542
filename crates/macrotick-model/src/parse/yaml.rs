//! YAML as a tree of nodes with their places.
//!
//! The tree is built from the events of `saphyr-parser`. Scalars stay text, and their key decides their meaning. So
//! `cpu: 0` and `cpu: "0"` are the same, and no version string becomes a float. Anchors, aliases and tags are errors: a
//! description has no use for them.

use saphyr_parser::{Event, Parser, ScalarStyle, Span as Marks, StrInput};

use crate::diagnostic::{Diagnostic, Span};

/// The limit of the nesting, and so of the recursion. No description needs as much.
const MAX_DEPTH: usize = 16;

/// A node of the tree.
#[derive(Debug)]
pub(crate) struct Node {
    pub at: Span,
    pub value: Value,
}

#[derive(Debug)]
pub(crate) enum Value {
    /// An empty value, `~` or `null`.
    Null,
    Scalar(String),
    List(Vec<Node>),
    /// The entries in the order of the source. Duplicate keys are possible.
    Map(Vec<(Key, Node)>),
}

#[derive(Debug)]
pub(crate) struct Key {
    pub at: Span,
    pub text: String,
}

impl Node {
    /// Whether the node is `{}`.
    pub fn is_empty_map(&self) -> bool {
        matches!(&self.value, Value::Map(entries) if entries.is_empty())
    }

    pub fn is_list(&self) -> bool {
        matches!(&self.value, Value::List(_))
    }

    /// Returns the text of a plain value.
    pub fn scalar(&self) -> Option<&str> {
        match &self.value {
            Value::Scalar(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the kind of the node for messages.
    pub fn kind(&self) -> &'static str {
        match self.value {
            Value::Null => "nothing",
            Value::Scalar(_) => "a plain value",
            Value::List(_) => "a list",
            Value::Map(_) => "a mapping",
        }
    }
}

/// Reads the only document of `source`.
pub(super) fn load(source: &str) -> Result<Node, Diagnostic> {
    let mut loader = Loader { events: Parser::new_from_str(source), depth: 0 };
    let root = loader.document()?;
    Ok(root.unwrap_or(Node { at: Span { line: 1, column: 1, length: 1 }, value: Value::Null }))
}

struct Loader<'a> {
    events: Parser<'a, StrInput<'a>>,
    depth: usize,
}

impl<'a> Loader<'a> {
    fn next(&mut self) -> Result<(Event<'a>, Marks), Diagnostic> {
        match self.events.next() {
            Some(Ok(event)) => Ok(event),
            Some(Err(error)) => {
                let mark = error.marker();
                let at = Span { line: mark.line(), column: mark.col() + 1, length: 1 };
                Err(refuse(at, format!("not valid YAML: {}", error.info())))
            }
            None => Ok((Event::StreamEnd, Marks::default())),
        }
    }

    /// Returns the only document, or `None` if there is none. A second document is an error.
    fn document(&mut self) -> Result<Option<Node>, Diagnostic> {
        let mut root = None;
        loop {
            let (event, marks) = self.next()?;
            match event {
                Event::StreamEnd => return Ok(root),
                Event::DocumentStart(_) if root.is_some() => {
                    return Err(refuse(span(marks), "a second document: a description is one document".into()));
                }
                Event::DocumentStart(_) => {
                    let (event, marks) = self.next()?;
                    root = Some(self.node(event, marks)?);
                }
                _ => {}
            }
        }
    }

    fn node(&mut self, event: Event<'a>, marks: Marks) -> Result<Node, Diagnostic> {
        let at = span(marks);
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(refuse(at, format!("nested more than {MAX_DEPTH} levels deep")));
        }
        let value = match event {
            Event::Scalar(_, _, _, Some(_)) | Event::SequenceStart(_, Some(_)) | Event::MappingStart(_, Some(_)) => {
                return Err(refuse(at, "tags are not used in a description".into()));
            }
            Event::Alias(_) => return Err(refuse(at, "aliases are not used in a description".into())),
            Event::Scalar(_, _, 1.., _) | Event::SequenceStart(1.., _) | Event::MappingStart(1.., _) => {
                return Err(refuse(at, "anchors are not used in a description".into()));
            }
            Event::Scalar(text, style, ..) => match (style, &*text) {
                (ScalarStyle::Plain, "" | "~" | "null") => Value::Null,
                _ => Value::Scalar(text.into_owned()),
            },
            Event::SequenceStart(..) => Value::List(self.list()?),
            Event::MappingStart(..) => Value::Map(self.map()?),
            _ => return Err(refuse(at, "expected a value".into())),
        };
        self.depth -= 1;
        Ok(Node { at, value })
    }

    fn list(&mut self) -> Result<Vec<Node>, Diagnostic> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(items),
                (event, marks) => items.push(self.node(event, marks)?),
            }
        }
    }

    fn map(&mut self) -> Result<Vec<(Key, Node)>, Diagnostic> {
        let mut entries = Vec::new();
        loop {
            let (event, marks) = self.next()?;
            if event == Event::MappingEnd {
                return Ok(entries);
            }
            let key = self.node(event, marks)?;
            let (event, marks) = self.next()?;
            let mut value = self.node(event, marks)?;
            let Value::Scalar(text) = key.value else {
                return Err(refuse(key.at, format!("a key must be a plain value, this is {}", key.kind())));
            };
            // An empty value has no place that a caret can mark, so it gets the place of its key.
            if matches!(value.value, Value::Null) && value.at.length == 0 {
                value.at = key.at;
            }
            entries.push((Key { at: key.at, text }, value));
        }
    }
}

fn refuse(at: Span, message: String) -> Diagnostic {
    Diagnostic { at, message, hint: None }
}

/// Returns the place of a node. A node on several lines is marked at its first character.
fn span(marks: Marks) -> Span {
    let (start, end) = (marks.start, marks.end);
    let length = if start.line() == end.line() { end.col().saturating_sub(start.col()) } else { 1 };
    Span { line: start.line().max(1), column: start.col() + 1, length }
}
