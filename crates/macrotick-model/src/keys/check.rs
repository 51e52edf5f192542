//! The rules of single values, which depend on no other value. The table has their ranges.

use std::fmt::Display;

use super::Kind;
use crate::time::Duration;
use crate::validate::Problem;

/// The findings of a check.
#[derive(Default)]
pub(crate) struct Found(pub Vec<Problem>);

impl Found {
    pub fn add(&mut self, at: impl Into<String>, needs: &[&str], message: impl Into<String>) -> &mut Problem {
        let needs = needs.iter().map(|&path| path.to_string()).collect();
        self.0.push(Problem { at: at.into(), needs, message: message.into(), hint: None });
        self.0.last_mut().expect("just pushed")
    }

    pub fn time(&mut self, path: &str, key: &str, value: Duration, kind: &Kind) {
        let &Kind::Time { least, most } = kind else { return };
        if value <= Duration::ZERO && least > Duration::ZERO && most == Duration::from_nanos(i64::MAX) {
            self.add(path, &[], format!("{key} must be longer than zero, this is {value}"));
        } else if value < Duration::ZERO && least == Duration::ZERO {
            self.add(path, &[], format!("{key} {value} is negative"));
        } else if value < least || value > most {
            let text = match (least.as_nanos(), most.as_nanos()) {
                (_, i64::MAX) => format!("{key} {value} is shorter than {least}"),
                _ => format!("{key} {value} is out of range: {least} to {most}"),
            };
            self.add(path, &[], text);
        }
    }

    /// Checks that a quantity is within a range, both ends included.
    pub fn between<T: PartialOrd + Display>(&mut self, path: &str, key: &str, value: T, least: T, most: T) {
        if value < least || value > most {
            self.add(path, &[], format!("{key} {value} is out of range: {least} to {most}"));
        }
    }

    pub fn integer(&mut self, path: &str, key: &str, value: i64, kind: &Kind) {
        if let Some((least, most)) = kind.range() {
            if value < least || value > most {
                self.add(path, &[], out_of_range(key, value, least, most));
            }
        }
    }

    pub fn name(&mut self, path: &str, name: &str, most: usize) {
        let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c);
        if name.is_empty() {
            self.add(path, &[], "a name must not be empty");
        } else if name.len() > most {
            let text = format!("the name is {} bytes long, at most {most} are allowed", name.len());
            self.add(path, &[], text);
        } else if let Some(odd) = name.chars().find(|&c| !allowed(c)) {
            self.add(path, &[], format!("the name `{name}` contains {odd:?}")).hint =
                Some("names consist of a-z, 0-9, `-`, `_` and `.`".into());
        } else if name.starts_with(['-', '.']) {
            self.add(path, &[], format!("the name `{name}` does not start with a letter, a digit or `_`"));
        }
    }
}

pub(crate) fn out_of_range(key: &str, value: i64, least: i64, most: i64) -> String {
    format!("{key} {value} is out of range: {least} to {most}")
}
