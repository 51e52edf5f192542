//! The normal form as a tree. There are two ways to write it: `system.yaml`, and JSON inside a plan.

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};

/// A value, ready to be written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Text {
    /// A text.
    Word(String),
    /// A number.
    Number(i64),
    /// `true` or `false`.
    Flag(bool),
    /// A list.
    List(Vec<Text>),
    /// A mapping.
    Map(Vec<(&'static str, Text)>),
}

/// The columns of a line. A longer text takes several lines.
const WIDTH: usize = 110;

impl Text {
    /// Writes the tree as YAML. Mappings and lists take as many lines as they need; an item of a list takes one line if
    /// it fits.
    pub fn to_yaml(&self) -> String {
        let mut text = String::new();
        self.block(&mut text, 0);
        text
    }

    /// Writes the value as an item of a list, two columns in and always over several lines.
    pub fn to_item(&self) -> String {
        let mut text = String::new();
        self.block(&mut text, 4);
        text.replacen("    ", "  - ", 1)
    }

    fn block(&self, text: &mut String, indent: usize) {
        let margin = " ".repeat(indent);
        match self {
            Text::Map(entries) if !entries.is_empty() => {
                for (key, value) in entries {
                    *text += &format!("{margin}{key}:");
                    value.after_key(text, indent, key.len() + 1);
                }
            }
            Text::List(items) if !items.is_empty() => {
                for item in items {
                    let line = item.line();
                    *text += &format!("{margin}- ");
                    if indent + 2 + line.len() <= WIDTH || !item.is_deep() {
                        *text += &(line + "\n");
                    } else {
                        let mut inner = String::new();
                        item.block(&mut inner, indent + 2);
                        *text += inner.trim_start_matches(' ');
                    }
                }
            }
            _ => *text += &format!("{margin}{}\n", self.line()),
        }
    }

    /// Whether the value is a mapping or a list that is not empty.
    fn is_deep(&self) -> bool {
        match self {
            Text::List(items) => !items.is_empty(),
            Text::Map(entries) => !entries.is_empty(),
            _ => false,
        }
    }

    /// Writes the value of a key: a list of mappings below the key, any other value beside the key if it fits.
    fn after_key(&self, text: &mut String, indent: usize, before: usize) {
        let line = self.line();
        let mappings = matches!(self, Text::List(items) if matches!(items.first(), Some(Text::Map(_))));
        if !mappings && (indent + before + 1 + line.len() <= WIDTH || !self.is_deep()) {
            *text += &format!(" {line}\n");
        } else {
            *text += "\n";
            self.block(text, indent + 2);
        }
    }

    /// Returns the value on one line.
    fn line(&self) -> String {
        match self {
            Text::Word(text) => scalar(text),
            Text::Number(number) => number.to_string(),
            Text::Flag(flag) => flag.to_string(),
            Text::List(items) => format!("[{}]", items.iter().map(Text::line).collect::<Vec<_>>().join(", ")),
            Text::Map(entries) => {
                let entries = entries.iter().map(|(key, value)| format!("{key}: {}", value.line()));
                format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
            }
        }
    }
}

/// Writes a text without quotes if YAML reads it as this text, otherwise in double quotes. YAML has the escapes of
/// JSON.
fn scalar(text: &str) -> String {
    let begins = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let plain = text.starts_with(begins)
        && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c))
        && (text.starts_with(|c: char| c.is_ascii_lowercase()) || text.parse::<crate::Duration>().is_ok())
        && !["null", "true", "false", "yes", "no", "on", "off"].contains(&text);
    let is_quantity = text.parse::<crate::Size>().is_ok() || text.parse::<crate::Speed>().is_ok();
    if plain || (is_quantity && text.chars().all(|c| c.is_ascii_alphanumeric() || "./".contains(c))) {
        text.into()
    } else {
        serde_json::Value::from(text).to_string()
    }
}

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Text::Word(text) => serializer.serialize_str(text),
            Text::Number(number) => serializer.serialize_i64(*number),
            Text::Flag(flag) => serializer.serialize_bool(*flag),
            Text::List(items) => {
                let mut list = serializer.serialize_seq(Some(items.len()))?;
                items.iter().try_for_each(|item| list.serialize_element(item))?;
                list.end()
            }
            Text::Map(entries) => {
                let mut map = serializer.serialize_map(Some(entries.len()))?;
                entries.iter().try_for_each(|(key, value)| map.serialize_entry(key, value))?;
                map.end()
            }
        }
    }
}
