//! Diagnostics: the errors of a description, with place, reason and hint.

use std::fmt;

use crate::visible::{shortened, visible, visible_in_place};

/// A part of one line of a source text. Line and column count from 1, column and length in characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    pub line: usize,
    /// The column of the first character.
    pub column: usize,
    /// The number of marked characters. The rendering draws at least one caret.
    pub length: usize,
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The place.
    pub at: Span,
    /// The error and its reason.
    pub message: String,
    /// A way to correct it.
    pub hint: Option<String>,
}

/// All findings in one source text, in the order of their places. `Display` renders them without colours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostics {
    path: String,
    lines: Vec<String>,
    list: Vec<Diagnostic>,
}

/// The number of characters of a source line that are shown. Of a longer line, the part around the marked characters is
/// shown.
const MOST_SHOWN: usize = 160;

/// The number of findings that are shown. If there are more, the text has the first ones and the number of the others.
const MOST_FINDINGS: usize = 100;

/// The escape sequences of a rendering; all empty without colours.
struct Style {
    error: &'static str,
    strong: &'static str,
    frame: &'static str,
    hint: &'static str,
    off: &'static str,
}

const PLAIN: Style = Style { error: "", strong: "", frame: "", hint: "", off: "" };
const COLOURED: Style =
    Style { error: "\x1b[1;31m", strong: "\x1b[1m", frame: "\x1b[1;34m", hint: "\x1b[1;36m", off: "\x1b[0m" };

impl Diagnostics {
    pub(crate) fn new(path: &str, source: &str, mut list: Vec<Diagnostic>) -> Self {
        list.sort_by(|a, b| (a.at, &a.message).cmp(&(b.at, &b.message)));
        list.dedup();
        // One character for each character of the source, so a caret stands under the character that it marks.
        let lines = lines(source).map(visible_in_place).collect();
        Diagnostics { path: path.into(), lines, list }
    }

    /// Returns the findings; there is at least one.
    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.list.iter()
    }

    /// Renders all findings: for each one the place, the source line with a caret, the reason and a hint.
    pub fn render(&self, coloured: bool) -> String {
        let style = if coloured { &COLOURED } else { &PLAIN };
        let shown = self.list.iter().take(MOST_FINDINGS);
        let blocks: Vec<String> = shown.map(|diagnostic| self.render_one(diagnostic, style)).collect();
        let count = match self.list.len() {
            1 => "1 error".to_string(),
            n if n > MOST_FINDINGS => format!("{n} errors, of which {} are not shown,", n - MOST_FINDINGS),
            n => format!("{n} errors"),
        };
        format!("{}\n{}{count} in {}{}\n", blocks.join("\n"), style.strong, self.path, style.off)
    }

    fn render_one(&self, diagnostic: &Diagnostic, style: &Style) -> String {
        let Style { error, strong, frame, hint, off } = *style;
        let Span { line, column, length } = diagnostic.at;
        let number = line.to_string();
        let margin = " ".repeat(number.len());
        let whole = self.lines.get(line.saturating_sub(1)).map_or("", |line| line.trim_end());
        let (source, before, length) = excerpt(whole, column.saturating_sub(1), length.max(1));
        let carets = "^".repeat(length);
        let indent = " ".repeat(before);
        let mut text = format!(
            "{error}error{off}{strong}: {}{off}\n\
             {margin}{frame}-->{off} {}:{line}:{column}\n\
             {margin} {frame}|{off}\n\
             {frame}{number} |{off} {source}\n\
             {margin} {frame}|{off} {indent}{error}{carets}{off}\n",
            shortened(&visible(&diagnostic.message)),
            self.path,
        );
        if let Some(advice) = &diagnostic.hint {
            text += &format!("{margin} {frame}={off} {hint}hint{off}: {}\n", shortened(&visible(advice)));
        }
        text
    }
}

/// Splits a text into lines as YAML does: a line ends with LF, CR LF or CR.
fn lines(source: &str) -> impl Iterator<Item = &str> {
    source.lines().flat_map(|line| line.split('\r'))
}

/// Cuts out the part of a line around a marked stretch. `before` is the number of characters before the stretch.
///
/// Returns the part, the number of characters before the stretch in it, and the length of the stretch in it.
fn excerpt(line: &str, before: usize, length: usize) -> (String, usize, usize) {
    let characters = line.chars().count();
    if characters <= MOST_SHOWN {
        return (line.into(), before, length.min(MOST_SHOWN));
    }
    let from = before.saturating_sub(MOST_SHOWN / 4).min(characters);
    let (mut part, mut shift) = (String::new(), 0);
    if from > 0 {
        part += "...";
        shift = 3;
    }
    part.extend(line.chars().skip(from).take(MOST_SHOWN));
    if from + MOST_SHOWN < characters {
        part += "...";
    }
    let before = before - from;
    (part, before + shift, length.min(MOST_SHOWN.saturating_sub(before)).max(1))
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for Diagnostics {}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Diagnostics {
        let at = Span { line: 2, column: 4, length: 3 };
        let finding = Diagnostic { at, message: "too odd".into(), hint: Some("be even".into()) };
        Diagnostics::new("x.yaml", "a: 1\nb: odd # why\n", vec![finding])
    }

    #[test]
    fn renders_place_line_caret_and_hint() {
        let expected = "error: too odd\n --> x.yaml:2:4\n  |\n2 | b: odd # why\n  |    ^^^\n  = hint: be even\n\n\
                        1 error in x.yaml\n";
        assert_eq!(sample().to_string(), expected);
    }

    #[test]
    fn long_lines_are_cut_around_what_is_marked() {
        let line = format!("{}odd{}", "a".repeat(50_000), "b".repeat(50_000));
        let at = Span { line: 1, column: 50_001, length: 3 };
        let finding = Diagnostic { at, message: format!("`{}` is odd", "x".repeat(50_000)), hint: None };
        let text = Diagnostics::new("x.yaml", &line, vec![finding]).to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert!(text.len() < 1500 && text.contains("xxx...xxx") && text.contains("` is odd"), "{text}");
        let place = lines[3].find("odd").unwrap();
        assert_eq!(lines[4].find("^^^"), Some(place));
        assert!(lines[3].ends_with("b..."), "{text}");
    }

    /// YAML knows three ends of lines.
    #[test]
    fn lines_end_as_in_yaml() {
        let at = Span { line: 3, column: 1, length: 1 };
        let finding = || Diagnostic { at, message: "odd".into(), hint: None };
        for source in ["a: 1\nb: 2\nc: 3\n", "a: 1\r\nb: 2\r\nc: 3\r\n", "a: 1\rb: 2\rc: 3\r", "a: 1\r\nb: 2\rc: 3\n"] {
            let text = Diagnostics::new("x.yaml", source, vec![finding()]).to_string();
            assert!(text.contains("\n3 | c: 3\n"), "{source:?}: {text}");
        }
    }

    #[test]
    fn of_many_findings_the_first_are_shown() {
        let finding = |line| Diagnostic { at: Span { line, column: 1, length: 1 }, message: "odd".into(), hint: None };
        let text = |count| Diagnostics::new("x.yaml", "", (1..=count).map(finding).collect()).to_string();
        assert!(text(100).ends_with("\n100 errors in x.yaml\n"));
        let many = text(20_000);
        assert_eq!(many.matches("error: odd\n").count(), 100);
        assert!(many.ends_with("\n20000 errors, of which 19900 are not shown, in x.yaml\n"));
    }

    #[test]
    fn what_would_steer_the_terminal_is_shown() {
        let at = Span { line: 1, column: 4, length: 1 };
        let finding = Diagnostic { at, message: "`\u{1b}[2J\u{202e}`".into(), hint: None };
        let text = Diagnostics::new("x.yaml", "a: \u{1b}\u{202e}b\tc", vec![finding]).to_string();
        assert!(text.starts_with("error: `\\u{1b}[2J\\u{202e}`\n"), "{text}");
        assert!(text.contains("1 | a: \u{fffd}\u{fffd}b c\n"), "{text}");
    }

    #[test]
    fn colours_change_nothing_but_colours() {
        let coloured = sample().render(true);
        assert!(coloured.contains("\x1b[1;31m"));
        let mut plain = coloured;
        for code in ["\x1b[1;31m", "\x1b[1m", "\x1b[1;34m", "\x1b[1;36m", "\x1b[0m"] {
            plain = plain.replace(code, "");
        }
        assert_eq!(plain, sample().to_string());
    }
}
