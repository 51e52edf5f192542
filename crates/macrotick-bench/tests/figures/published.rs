//! The published figures of the benches.

use std::collections::BTreeMap;

use macrotick_fixtures::read_tree;
use serde_json::Value;

/// The figures of a bench: name, case and value.
pub struct Figures(Vec<(String, String, f64)>);

impl Figures {
    /// Reads the figures of a bench. A figure without a value is left out.
    pub fn of(bench: &str) -> Figures {
        let text = read_tree(&format!("docs/results/{bench}/figures.json"));
        let all: Vec<BTreeMap<String, Value>> = serde_json::from_str(&text).unwrap();
        let word = |one: &BTreeMap<String, Value>, key: &str| one[key].as_str().unwrap().to_owned();
        let read =
            |one: &BTreeMap<String, Value>| Some((word(one, "figure"), word(one, "case"), one["value"].as_f64()?));
        Figures(all.iter().filter_map(read).collect())
    }

    /// Returns the value of a case.
    pub fn one(&self, figure: &str, case: &str) -> f64 {
        let found = self.0.iter().find(|(name, of, _)| name == figure && of == case);
        found.unwrap_or_else(|| panic!("no figure `{figure}` of `{case}`")).2
    }

    /// Returns all selected cases with their values.
    pub fn all(&self, figure: &str, is_meant: impl Fn(&str) -> bool) -> Vec<(&str, f64)> {
        let selected = self.0.iter().filter(|(name, case, _)| name == figure && is_meant(case));
        let found: Vec<(&str, f64)> = selected.map(|(_, case, value)| (case.as_str(), *value)).collect();
        assert!(!found.is_empty(), "no figure `{figure}`");
        found
    }

    /// Returns the least value of the selected cases.
    pub fn least(&self, figure: &str, is_meant: impl Fn(&str) -> bool) -> f64 {
        self.all(figure, is_meant).into_iter().map(|(_, value)| value).fold(f64::INFINITY, f64::min)
    }

    /// Returns the greatest value of the selected cases.
    pub fn most(&self, figure: &str, is_meant: impl Fn(&str) -> bool) -> f64 {
        self.all(figure, is_meant).into_iter().map(|(_, value)| value).fold(f64::NEG_INFINITY, f64::max)
    }

    /// Returns the value that all cases have. A text gives it once for all of them.
    pub fn common(&self, figure: &str) -> f64 {
        let (least, most) = (self.least(figure, |_| true), self.most(figure, |_| true));
        assert!(least == most, "`{figure}` is {least} to {most}");
        most
    }
}
