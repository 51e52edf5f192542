//! The values of an object, with their paths and ranges.

use super::json::Value;
use super::MOST_MICROS;
use crate::findings::{cut, Findings};

/// A value with its path in the file.
#[derive(Clone, Debug)]
pub struct Field<'a> {
    /// The path, such as `tasks.thread0.run`.
    pub path: String,
    /// The value.
    pub value: &'a Value,
}

impl<'a> Field<'a> {
    /// Returns a value below this one.
    pub fn below(&self, key: &str, value: &'a Value) -> Field<'a> {
        let path = if self.path.is_empty() { cut(key) } else { format!("{}.{}", self.path, cut(key)) };
        Field { path, value }
    }

    /// Returns the entries of an object. Any other value is refused, and has none.
    pub fn entries(&self, findings: &mut Findings) -> Vec<(&'a str, Field<'a>)> {
        match self.value {
            Value::Object(entries) => {
                entries.iter().map(|(key, value)| (key.as_str(), self.below(key, value))).collect()
            }
            other => {
                findings.refuse(&self.path, format!("must be an object, this is {}", other.kind()));
                Vec::new()
            }
        }
    }

    /// Returns a whole number within a range, both ends included. Any other value is refused.
    pub fn whole(&self, (least, most): (i64, i64), findings: &mut Findings) -> Option<i64> {
        match self.value {
            Value::Whole(number) if (least..=most).contains(number) => Some(*number),
            Value::Whole(number) => {
                findings.refuse(&self.path, format!("{number} is out of range: {least} to {most}"));
                None
            }
            other => {
                findings.refuse(&self.path, format!("must be a whole number, this is {}", other.kind()));
                None
            }
        }
    }

    /// Returns a time in microseconds. Zero is allowed.
    pub fn micros(&self, findings: &mut Findings) -> Option<i64> {
        self.whole((0, MOST_MICROS), findings)
    }

    /// Returns `true` or `false`. Any other value is refused.
    pub fn flag(&self, findings: &mut Findings) -> Option<bool> {
        match self.value {
            Value::Flag(flag) => Some(*flag),
            other => {
                findings.refuse(&self.path, format!("must be `true` or `false`, this is {}", other.kind()));
                None
            }
        }
    }

    /// Returns a text. Any other value is refused.
    pub fn text(&self, findings: &mut Findings) -> Option<&'a str> {
        match self.value {
            Value::Text(text) => Some(text),
            other => {
                findings.refuse(&self.path, format!("must be a text, this is {}", other.kind()));
                None
            }
        }
    }

    /// Returns the CPUs of a list, at most those that rt-app can name (`CPU_SETSIZE`).
    pub fn cpus(&self, findings: &mut Findings) -> Option<Vec<u32>> {
        let Value::List(items) = self.value else {
            findings.refuse(&self.path, format!("must be a list of CPUs, this is {}", self.value.kind()));
            return None;
        };
        let mut cpus = Vec::new();
        for (index, value) in items.iter().enumerate() {
            let item = Field { path: format!("{}[{index}]", self.path), value };
            cpus.push(item.whole((0, LAST_CPU), findings)? as u32);
        }
        if cpus.is_empty() {
            findings.refuse(&self.path, "lists no CPU");
            return None;
        }
        Some(cpus)
    }
}

/// The last CPU of a `cpu_set_t`.
const LAST_CPU: i64 = 1023;
