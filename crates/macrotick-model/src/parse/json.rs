//! A system inside a plan, read from JSON by the same decoder.

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};

use super::yaml::{Key, Node, Value};
use super::Context;
use crate::diagnostic::Span;
use crate::keys::{Field, Text};
use crate::system::{ExecutionTime, Group, GroupTask, Load, OnMiss, Policy, Process, Slot, System, Task, Workload};
use crate::visible::shortened;

/// Writes the normal form, as [`System::to_yaml`] does.
impl Serialize for System {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.write().serialize(serializer)
    }
}

/// Reads the syntax only. [`System::problems`] checks the rules.
impl<'de> Deserialize<'de> for System {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let root = Node::deserialize(deserializer)?;
        let mut cx = Context::default();
        let system = cx.system(&root);
        match (system, &cx.findings[..]) {
            (Some(system), []) => Ok(system),
            (_, findings) => {
                let texts = findings.iter().map(|(path, finding)| told(path, &finding.message)).collect();
                Err(D::Error::custom(joined(texts)))
            }
        }
    }
}

/// Joins the first findings in one line, and counts the others.
fn joined(mut texts: Vec<String>) -> String {
    const MOST: usize = 100;
    let more = texts.len().saturating_sub(MOST);
    texts.truncate(MOST);
    texts.iter_mut().for_each(|text| *text = shortened(text));
    texts.extend((more > 0).then(|| format!("and {more} more")));
    texts.join("; ")
}

/// Types of the description that other documents contain by themselves.
macro_rules! parts {
    ($($type:ident),*) => {
        $(impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                self.write().serialize(serializer)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let node = Node::deserialize(deserializer)?;
                let mut cx = Context::default();
                let part = $type::read(&mut cx, &node, "", &$type::KIND);
                match &cx.findings[..] {
                    [] => Ok(part),
                    findings => {
                        Err(D::Error::custom(joined(findings.iter().map(|(_, finding)| finding.message.clone()).collect())))
                    }
                }
            }
        })*
    };
}

parts!(Task, OnMiss, Workload, ExecutionTime, Group, GroupTask, Process, Load, Policy, Slot);

/// The start of the path of an error of a system in a document.
pub(crate) const SYSTEM: &str = "system";

fn told(path: &str, message: &str) -> String {
    match path {
        "" => format!("{SYSTEM}: {message}"),
        path => format!("{SYSTEM}.{path}: {message}"),
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Tree)
    }
}

/// Turns a written value into a node to read.
impl From<Text> for Node {
    fn from(text: Text) -> Node {
        let at = Span::default();
        let value = match text {
            Text::Word(text) => Value::Scalar(text),
            Text::Number(number) => Value::Scalar(number.to_string()),
            Text::Flag(flag) => Value::Scalar(flag.to_string()),
            Text::List(items) => Value::List(items.into_iter().map(Node::from).collect()),
            Text::Map(entries) => {
                let entry = |(key, value): (&str, Text)| (Key { at, text: key.into() }, Node::from(value));
                Value::Map(entries.into_iter().map(entry).collect())
            }
        };
        Node { at, value }
    }
}

struct Tree;

/// Makes a node without a place.
fn node<E>(value: Value) -> Result<Node, E> {
    Ok(Node { at: Span::default(), value })
}

impl<'de> Visitor<'de> for Tree {
    type Value = Node;

    fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str("a value of a description")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        node(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        node(Value::Scalar(value.to_string()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        node(Value::Scalar(value.to_string()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
        node(Value::Scalar(value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Node, E> {
        node(Value::Scalar(value.to_string()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Node, E> {
        node(Value::Scalar(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Node, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        node(Value::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let mut entries = Vec::new();
        while let Some((text, value)) = map.next_entry::<String, Node>()? {
            entries.push((Key { at: Span::default(), text }, value));
        }
        node(Value::Map(entries))
    }
}
