//! Aligned text tables with coloured cells, for the terminal and for markdown.

use macrotick_model::visible::visible_in_place;

/// The meaning of a cell's or a text's colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// Without colour.
    #[default]
    Plain,
    /// A good result.
    Good,
    /// A bad result.
    Bad,
    /// Text of low importance.
    Faint,
    /// Text of high importance.
    Strong,
}

impl Tone {
    fn escape(self) -> &'static str {
        match self {
            Tone::Plain => "",
            Tone::Good => "\x1b[32m",
            Tone::Bad => "\x1b[1;31m",
            Tone::Faint => "\x1b[2m",
            Tone::Strong => "\x1b[1m",
        }
    }

    /// Returns the text in this tone. Escape sequences in the text become visible characters, and its width stays the
    /// same.
    pub fn paint(self, text: &str, colour: bool) -> String {
        let text = text.split('\n').map(visible_in_place).collect::<Vec<_>>().join("\n");
        if !colour || self == Tone::Plain || text.trim().is_empty() {
            return text;
        }
        format!("{}{text}\x1b[0m", self.escape())
    }
}

/// A cell.
#[derive(Clone, Debug, Default)]
pub struct Cell {
    /// The text.
    pub text: String,
    /// The tone of the text.
    pub tone: Tone,
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell { text, tone: Tone::Plain }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        text.to_string().into()
    }
}

/// Returns a cell in a tone.
pub fn toned(text: impl Into<String>, tone: Tone) -> Cell {
    Cell { text: text.into(), tone }
}

/// A table: the first `left` columns are aligned to the left, the others to the right.
#[derive(Clone, Debug)]
pub struct Table {
    /// The number of columns that are aligned to the left.
    pub left: usize,
    /// Common names above several columns, from left to right: the first column, the number of columns, and the text.
    pub above: Vec<(usize, usize, String)>,
    /// The columns' names.
    pub head: Vec<String>,
    /// The rows, with a cell per column.
    pub rows: Vec<Vec<Cell>>,
}

impl Table {
    /// Returns a table without rows.
    pub fn new(left: usize, head: &[&str]) -> Table {
        Table { left, above: Vec::new(), head: head.iter().map(|text| text.to_string()).collect(), rows: Vec::new() }
    }

    fn widths(&self) -> Vec<usize> {
        let cells =
            |column: usize| self.rows.iter().filter_map(move |row| row.get(column)).map(|cell| width(&cell.text));
        (0..self.head.len()).map(|column| cells(column).max().unwrap_or(0).max(width(&self.head[column]))).collect()
    }

    /// Returns the table as text. Columns are two spaces apart, or one if the table would be wider than `most` columns.
    pub fn text(&self, colour: bool, most: usize) -> String {
        let widths = self.widths();
        let roomy = widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1) <= most;
        let gap = if roomy { "  " } else { " " };
        let head: Vec<Cell> = self.head.iter().map(|text| toned(text.as_str(), Tone::Faint)).collect();
        let mut text = self.line_above(&widths, gap.len(), colour);
        for row in std::iter::once(&head).chain(&self.rows) {
            let cells: Vec<String> = row
                .iter()
                .enumerate()
                .map(|(column, cell)| cell.tone.paint(&pad(&cell.text, widths[column], column < self.left), colour))
                .collect();
            text.push_str(cells.join(gap).trim_end());
            text.push('\n');
        }
        text
    }

    /// Returns the line of common names, each in the middle of its columns; an empty text without such names.
    fn line_above(&self, widths: &[usize], gap: usize, colour: bool) -> String {
        let mut line = String::new();
        for (first, count, text) in &self.above {
            let from: usize = widths[..*first].iter().map(|width| width + gap).sum();
            let span = widths[*first..first + count].iter().sum::<usize>() + gap * (count - 1);
            line = pad(&line, from + span.saturating_sub(width(text)) / 2, true) + text;
        }
        if line.is_empty() {
            return line;
        }
        Tone::Faint.paint(&line, colour) + "\n"
    }

    /// Returns a markdown table, without common names.
    pub fn markdown(&self) -> String {
        let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        let rule = (0..self.head.len()).map(|column| if column < self.left { "---" } else { "---:" }.into());
        let mut text = line(self.head.clone());
        text.push_str(&line(rule.collect()));
        for row in &self.rows {
            text.push_str(&line(row.iter().map(|cell| cell.text.replace('|', "\\|")).collect()));
        }
        text
    }
}

/// Returns the columns of a text, one per character: reports contain no wide characters.
pub(crate) fn width(text: &str) -> usize {
    text.chars().count()
}

/// Fills a text with spaces up to a width.
pub(crate) fn pad(text: &str, to: usize, left: bool) -> String {
    let space = " ".repeat(to.saturating_sub(width(text)));
    if left {
        format!("{text}{space}")
    } else {
        format!("{space}{text}")
    }
}

/// Cuts a text to a width, with an ellipsis for a lost end.
pub(crate) fn cut(text: &str, to: usize) -> String {
    if width(text) <= to {
        return text.to_string();
    }
    text.chars().take(to.saturating_sub(1)).chain(['…']).collect()
}

/// Breaks a text into lines of at most `to` columns at spaces.
pub(crate) fn wrap(text: &str, to: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if width(line) + 1 + width(word) <= to => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_string()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(1, &["name", "us"]);
        table.rows.push(vec!["a|b".into(), toned("12.500", Tone::Bad)]);
        table
    }

    #[test]
    fn columns_are_aligned_and_move_together_where_room_is_short() {
        assert_eq!(table().text(false, 12), "name      us\na|b   12.500\n");
        assert_eq!(table().text(false, 11), "name     us\na|b  12.500\n");
        assert!(table().text(true, 80).contains("\x1b[1;31m12.500\x1b[0m"));
        let mut foreign = table();
        foreign.rows.push(vec!["\x1b[2J".into(), "1".into()]);
        assert_eq!(foreign.text(false, 80).lines().last(), Some("\u{fffd}[2J       1"));
    }

    #[test]
    fn columns_may_have_a_name_together() {
        let mut table = Table::new(1, &["name", "mean", "max", "mean", "max"]);
        table.above = vec![(1, 2, "one".into()), (3, 2, "the other".into())];
        assert_eq!(table.text(false, 80), "         one     the other\nname  mean  max  mean  max\n");
    }

    #[test]
    fn markdown_escapes_its_bars() {
        assert_eq!(table().markdown(), "| name | us |\n| --- | ---: |\n| a\\|b | 12.500 |\n");
    }

    #[test]
    fn long_texts_are_cut_and_wrapped() {
        assert_eq!([cut("abcdef", 6), cut("abcdef", 4)], ["abcdef", "abc…"]);
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
    }
}
