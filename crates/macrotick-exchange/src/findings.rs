//! Collects remarks and refusals, each with the path of its value.

use macrotick_model::visible::visible;

/// The most paths in one remark.
const MOST_PATHS: usize = 4;
/// The most characters of a foreign name in a path.
const MOST_CHARACTERS: usize = 40;

/// The remarks and refusals of one import or export.
#[derive(Default)]
pub struct Findings {
    /// Each text with the paths that it is about.
    remarks: Vec<(String, Vec<String>)>,
    refusals: Vec<String>,
}

impl Findings {
    /// Adds a remark. Remarks with the same text become one, with all paths.
    pub fn remark(&mut self, path: impl Into<String>, text: impl Into<String>) {
        let text = text.into();
        // Equal remarks come in a row, or belong to one of the few texts that many values share.
        let known = self.remarks.iter_mut().take(MOST_SEARCHED).find(|(other, _)| *other == text);
        match known {
            Some((_, paths)) => paths.push(path.into()),
            None => self.remarks.push((text, vec![path.into()])),
        }
    }

    /// Adds the reason why there is no system.
    pub fn refuse(&mut self, path: &str, text: impl AsRef<str>) {
        self.refusals.push(format!("{path}: {}", text.as_ref()));
    }

    /// Returns the number of refusals.
    pub fn refused(&self) -> usize {
        self.refusals.len()
    }

    /// Whether anything was refused.
    pub fn has_refusals(&self) -> bool {
        !self.refusals.is_empty()
    }

    /// Returns the remarks, or the refusals if there are any.
    pub fn finish(self) -> Result<Vec<String>, Vec<String>> {
        if self.has_refusals() {
            return Err(self.refusals);
        }
        Ok(self.remarks.into_iter().map(|(text, paths)| format!("{}: {text}", joined(&paths))).collect())
    }
}

/// The most remarks that are compared with a new one.
const MOST_SEARCHED: usize = 64;

fn joined(paths: &[String]) -> String {
    let shown = paths.iter().take(MOST_PATHS).map(String::as_str).collect::<Vec<_>>().join(", ");
    match paths.len().saturating_sub(MOST_PATHS) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Returns a foreign name in one line, cut if it is long, and without characters that control a terminal.
pub fn cut(name: &str) -> String {
    let (shown, dots) = match name.char_indices().nth(MOST_CHARACTERS) {
        None => (name, ""),
        Some((end, _)) => (&name[..end], "..."),
    };
    visible(shown).replace('\n', "\\n") + dots
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_remarks_become_one() {
        let mut findings = Findings::default();
        for index in 0..6 {
            findings.remark(format!("tasks.t{index}"), "same");
        }
        findings.remark("global", "other");
        let remarks = findings.finish().unwrap();
        assert_eq!(remarks, ["tasks.t0, tasks.t1, tasks.t2, tasks.t3 and 2 more: same", "global: other"]);
    }

    #[test]
    fn a_refusal_replaces_the_remarks() {
        let mut findings = Findings::default();
        findings.remark("a", "lost");
        findings.refuse("b", "wrong");
        assert_eq!(findings.finish(), Err(vec!["b: wrong".into()]));
    }

    #[test]
    fn long_names_are_cut_between_characters() {
        assert_eq!(cut(&"\u{e9}".repeat(41)), "\u{e9}".repeat(40) + "...");
        assert_eq!(cut("short"), "short");
        assert_eq!(cut("a\n\u{1b}b"), "a\\n\\u{1b}b");
    }
}
