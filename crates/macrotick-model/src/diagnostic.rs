//! Diagnostics: what is wrong with a description, where, and what would mend it.

use std::fmt;

/// A stretch of one line of a source text. Line and column count from 1, column and length in characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// The line.
    pub line: usize,
    /// The column of the first character.
    pub column: usize,
    /// How many characters are marked; at least one caret is drawn.
    pub length: usize,
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Where.
    pub at: Span,
    /// What is wrong, and why.
    pub message: String,
    /// What would mend it.
    pub hint: Option<String>,
}

/// All findings in one source text, in the order of their places. `Display` renders them without colours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostics {
    path: String,
    lines: Vec<String>,
    list: Vec<Diagnostic>,
}

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
        // Tabs become one space each, so that a caret stands under its character.
        let lines = source.lines().map(|line| line.replace('\t', " ")).collect();
        Diagnostics { path: path.into(), lines, list }
    }

    /// The findings, never none.
    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.list.iter()
    }

    /// The text to show: for each finding the place, the source line with a caret, the reason and a hint.
    pub fn render(&self, coloured: bool) -> String {
        let style = if coloured { &COLOURED } else { &PLAIN };
        let blocks: Vec<String> = self.list.iter().map(|diagnostic| self.render_one(diagnostic, style)).collect();
        let count = match self.list.len() {
            1 => "1 error".to_string(),
            n => format!("{n} errors"),
        };
        format!("{}\n{}{count} in {}{}\n", blocks.join("\n"), style.strong, self.path, style.off)
    }

    fn render_one(&self, diagnostic: &Diagnostic, style: &Style) -> String {
        let Style { error, strong, frame, hint, off } = *style;
        let Span { line, column, length } = diagnostic.at;
        let number = line.to_string();
        let margin = " ".repeat(number.len());
        let source = self.lines.get(line.saturating_sub(1)).map_or("", |line| line.trim_end());
        let carets = "^".repeat(length.max(1));
        let indent = " ".repeat(column.saturating_sub(1));
        let mut text = format!(
            "{error}error{off}{strong}: {}{off}\n\
             {margin}{frame}-->{off} {}:{line}:{column}\n\
             {margin} {frame}|{off}\n\
             {frame}{number} |{off} {source}\n\
             {margin} {frame}|{off} {indent}{error}{carets}{off}\n",
            diagnostic.message, self.path,
        );
        if let Some(advice) = &diagnostic.hint {
            text += &format!("{margin} {frame}={off} {hint}hint{off}: {advice}\n");
        }
        text
    }
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
