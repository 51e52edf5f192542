//! An examination for people.

use std::fmt::Write as _;

use macrotick_model::visible::visible;

use crate::check::Verdict;
use crate::examination::{Examination, Examined};

impl Examination {
    /// Writes the findings with the steps that mend them; with `all`, also the other verdicts. `paint` marks the word of
    /// a verdict.
    pub fn text(&self, all: bool, paint: impl Fn(&Verdict, &str) -> String) -> String {
        let mut text = String::new();
        let needed = |wanted: bool| self.checks.iter().filter(move |examined| examined.needed == wanted);
        if let Some(system) = &self.system {
            part(&mut text, &format!("What the plan of {system} needs"), needed(true), all, &paint);
            part(&mut text, "Other checks", needed(false), all, &paint);
        } else {
            part(&mut text, "Findings, the greatest effect first", needed(false), all, &paint);
        }
        let _ = writeln!(text, "{}", self.summary());
        text
    }

    /// Returns the counts of the verdicts, as a sentence.
    pub fn summary(&self) -> String {
        let count = |is: fn(&Verdict) -> bool| self.checks.iter().filter(|examined| is(&examined.verdict)).count();
        let counts = [
            (count(Verdict::is_bad), "bad"),
            (count(|verdict| matches!(verdict, Verdict::Noted { .. })), "noted"),
            (count(|verdict| matches!(verdict, Verdict::Good { .. })), "good"),
            (count(|verdict| matches!(verdict, Verdict::Absent { .. })), "do not apply"),
            (count(|verdict| matches!(verdict, Verdict::Unknown { .. })), "unknown"),
        ];
        let shown = counts.iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}"));
        let kernel = line(&self.kernel);
        format!("{} checks of kernel {kernel}: {}", self.checks.len(), shown.collect::<Vec<_>>().join(", "))
    }
}

fn part<'a>(
    text: &mut String,
    title: &str,
    checks: impl Iterator<Item = &'a Examined>,
    all: bool,
    paint: &impl Fn(&Verdict, &str) -> String,
) {
    let is_shown = |examined: &&Examined| all || matches!(examined.verdict, Verdict::Bad(_) | Verdict::Noted { .. });
    let shown: Vec<&Examined> = checks.filter(is_shown).collect();
    if shown.is_empty() {
        return;
    }
    let _ = writeln!(text, "{title}\n");
    for examined in shown {
        one(text, examined, paint);
    }
    text.push('\n');
}

fn one(text: &mut String, examined: &Examined, paint: &impl Fn(&Verdict, &str) -> String) {
    let (word, state) = match &examined.verdict {
        Verdict::Good { observed } => ("good", observed),
        Verdict::Bad(finding) => ("bad", &finding.observed),
        Verdict::Noted { observed } => ("noted", observed),
        Verdict::Absent { reason } => ("-", reason),
        Verdict::Unknown { reason } => ("unknown", reason),
    };
    let word = paint(&examined.verdict, &format!("{word:<7}"));
    let _ = writeln!(text, "  {word} {}: {}", examined.name, line(state));
    let Some(finding) = examined.verdict.finding() else { return };
    let _ = writeln!(text, "          expected: {}", line(&finding.expected));
    let _ = writeln!(text, "          why:      {}", examined.why);
    for (index, mend) in finding.mend.iter().take(MENDS).enumerate() {
        let key = if index == 0 { "mend:" } else { "" };
        let _ = writeln!(text, "          {key:<9} {}", line(&mend.to_string()));
    }
    if finding.mend.len() > MENDS {
        let _ = writeln!(text, "          {:<9} {} more; --json lists all", "", finding.mend.len() - MENDS);
    }
}

/// Returns a text of the host in one line: it may have any characters.
fn line(text: &str) -> String {
    visible(&text.replace('\n', " "))
}

/// The most steps of a finding in the text.
const MENDS: usize = 6;
