//! The XML of a file, within limits that keep the parser's time and memory linear.

use macrotick_model::visible::visible;
use roxmltree::{Document, ParsingOptions};

use crate::error::ImportError;

/// A file of a model.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// The name of the file, for errors.
    pub name: &'a str,
    /// Its content.
    pub text: &'a str,
}

/// A file after parsing.
pub struct Parsed<'a> {
    /// The position among the files.
    pub index: usize,
    /// The name of the file.
    pub name: &'a str,
    /// The elements.
    pub document: Document<'a>,
    /// The position of each end of a line.
    ends: Vec<usize>,
}

/// The most nodes of a file.
const MOST_NODES: u32 = 1 << 20;
/// The most attributes of an element. The parser compares each with each.
const MOST_ATTRIBUTES: usize = 128;
/// The most declarations of a namespace. The parser copies those of outer elements to each inner one with its own.
const MOST_NAMESPACES: usize = 256;
/// The longest message of the parser, which can quote the file.
const MOST_CHARACTERS: usize = 200;

impl<'a> Parsed<'a> {
    /// Parses a file.
    ///
    /// # Errors
    ///
    /// If the text is no XML within the limits, or has a document type definition: entities can grow without a bound.
    pub fn new(index: usize, source: Source<'a>) -> Result<Parsed<'a>, ImportError> {
        let text = source.text.trim_start_matches('\u{feff}');
        let fault = |at: usize, message: String| syntax(source.name, place(text, at), message);
        if let Some(at) = beyond(text.match_indices("xmlns"), MOST_NAMESPACES) {
            return Err(fault(at, format!("more than {MOST_NAMESPACES} namespaces are declared")));
        }
        if let Some(at) = crowded(text) {
            return Err(fault(at, format!("an element has more than {MOST_ATTRIBUTES} attributes")));
        }
        let options = ParsingOptions { nodes_limit: MOST_NODES, ..ParsingOptions::default() };
        let document = Document::parse_with_options(text, options).map_err(|error| {
            let at = error.pos();
            let shown = error.to_string();
            // The message ends with the position, which stands before it here.
            let message = shown.trim_end_matches(&format!(" at {at}")).to_owned();
            syntax(source.name, (at.row as usize, at.col as usize), message)
        })?;
        let ends = text.match_indices('\n').map(|(at, _)| at).collect();
        Ok(Parsed { index, name: source.name, document, ends })
    }

    /// Returns the line of a position, from 1.
    pub fn line(&self, position: usize) -> usize {
        self.ends.partition_point(|end| *end < position) + 1
    }
}

fn syntax(file: &str, (line, column): (usize, usize), message: String) -> ImportError {
    let message = visible(&message).replace('\n', "\\n").chars().take(MOST_CHARACTERS).collect();
    ImportError::Syntax { file: file.into(), line, column, message }
}

/// Returns line and column of a position, from 1.
fn place(text: &str, at: usize) -> (usize, usize) {
    let before = &text[..at];
    let start = before.rfind('\n').map_or(0, |end| end + 1);
    (before.matches('\n').count() + 1, before[start..].chars().count() + 1)
}

/// Returns the position of the first match beyond a number of them.
fn beyond<'a>(mut matches: impl Iterator<Item = (usize, &'a str)>, most: usize) -> Option<usize> {
    matches.nth(most).map(|(at, _)| at)
}

/// Returns the position of a tag with too many attributes. No `<` stands within a tag, so each begins a new count.
fn crowded(text: &str) -> Option<usize> {
    let (mut tag, mut count, mut after_equals) = (0, 0, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'<' => (tag, count, after_equals) = (at, 0, false),
            b'=' => after_equals = true,
            b'"' | b'\'' if after_equals => {
                count += 1;
                after_equals = false;
                if count > MOST_ATTRIBUTES {
                    return Some(tag);
                }
            }
            _ if byte.is_ascii_whitespace() => {}
            _ => after_equals = false,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        Parsed::new(0, Source { name: "f", text }).err().expect("a refusal").to_string()
    }

    #[test]
    fn places_are_named() {
        assert_eq!(refused("<a>\n <b></a>"), "f:2:5: expected 'b' tag, not 'a'");
        assert_eq!(refused("<!DOCTYPE a [<!ENTITY b \"c\">]><a>&b;</a>"), "f:1:1: XML with DTD detected");
        assert!(refused("").starts_with("f:1:1: "));
        assert!(refused("\u{feff}<a>&b;</a>").starts_with("f:1:4: "), "{}", refused("\u{feff}<a>&b;</a>"));
    }

    #[test]
    fn limits_are_named() {
        let many: String = (0..=MOST_ATTRIBUTES).map(|index| format!(" a{index} = '1'")).collect();
        assert_eq!(refused(&format!("<a>\n<b{many}/></a>")), "f:2:1: an element has more than 128 attributes");
        let many: String = (0..=MOST_NAMESPACES).map(|index| format!("<a xmlns:a{index}='u'>")).collect();
        assert!(refused(&many).ends_with("more than 256 namespaces are declared"));
        let many = format!("<a>{}</a>", "<b/>".repeat(MOST_NODES as usize));
        assert!(refused(&many).contains("nodes limit"), "{}", refused(&many));
    }

    #[test]
    fn lines_count_from_one() {
        let parsed = Parsed::new(0, Source { name: "f", text: "<a>\n<b/>\n</a>" }).expect("a document");
        assert_eq!([0, 3, 4, 9].map(|position| parsed.line(position)), [1, 1, 2, 3]);
    }

    #[test]
    fn depth_is_no_recursion() {
        let levels = 400_000;
        let text = "<a>".repeat(levels) + &"</a>".repeat(levels);
        assert!(Parsed::new(0, Source { name: "f", text: &text }).is_ok());
    }
}
