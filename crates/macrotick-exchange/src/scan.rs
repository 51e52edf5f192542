//! The characters of a text, with line and column for errors. Comments of C count as white space.

use crate::error::ImportError;

/// A place in a text.
pub struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

/// An error at a place.
#[derive(Debug)]
pub struct Fault {
    line: usize,
    column: usize,
    message: String,
}

impl Fault {
    /// Returns the error with the name of the file.
    pub fn within(self, file: &str) -> ImportError {
        let Fault { line, column, message } = self;
        ImportError::Syntax { file: file.into(), line, column, message }
    }
}

impl<'a> Scanner<'a> {
    /// Begins at the first character after a byte order mark.
    pub fn new(text: &'a str) -> Self {
        Scanner { text, at: if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 } }
    }

    /// Returns the rest of the text.
    pub fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// Returns the next character.
    pub fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Takes the next character.
    pub fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    /// Takes characters as long as they fulfil a condition.
    pub fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c| !wanted(c)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    /// Takes this character if it is the next one.
    pub fn eat(&mut self, wanted: char) -> bool {
        let is_next = self.peek() == Some(wanted);
        if is_next {
            self.at += wanted.len_utf8();
        }
        is_next
    }

    /// Takes white space and comments.
    pub fn skip(&mut self) -> Result<(), Fault> {
        loop {
            self.take_while(char::is_whitespace);
            let rest = self.rest();
            if rest.starts_with("//") {
                self.take_while(|c| c != '\n');
            } else if let Some(comment) = rest.strip_prefix("/*") {
                let Some(end) = comment.find("*/") else { return Err(self.fault("the comment has no end")) };
                self.at += end + "/**/".len();
            } else {
                return Ok(());
            }
        }
    }

    /// Takes this character, which must be the next one.
    pub fn expect(&mut self, wanted: char) -> Result<(), Fault> {
        match self.eat(wanted) {
            true => Ok(()),
            false => Err(self.unexpected(&format!("`{wanted}`"))),
        }
    }

    /// Returns this place, for an error that is known later.
    pub fn place(&self) -> usize {
        self.at
    }

    /// Returns the error that another character stands here.
    pub fn unexpected(&self, wanted: &str) -> Fault {
        self.unexpected_at(self.at, wanted)
    }

    /// Returns the error that another character stands at an earlier place.
    pub fn unexpected_at(&self, place: usize, wanted: &str) -> Fault {
        let found = match self.text[place..].chars().next() {
            None => "the end of the file".into(),
            Some(quote @ ('"' | '\'')) => format!("`{quote}`"),
            Some(other) => format!("`{}`", other.escape_debug()),
        };
        self.fault_at(place, format!("expected {wanted}, found {found}"))
    }

    /// Returns an error at this place.
    pub fn fault(&self, message: impl Into<String>) -> Fault {
        self.fault_at(self.at, message)
    }

    /// Returns an error at an earlier place. It counts all lines before, so only a text with an error pays for it.
    pub fn fault_at(&self, place: usize, message: impl Into<String>) -> Fault {
        let before = &self.text[..place];
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        let line = before.matches('\n').count() + 1;
        let column = before[line_start..].trim_start_matches('\u{feff}').chars().count() + 1;
        Fault { line, column, message: message.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_white_space() {
        let mut scanner = Scanner::new("\u{feff} /* a * b */ // c\n\t/**/x");
        scanner.skip().unwrap();
        assert_eq!(scanner.next(), Some('x'));
        let fault = scanner.unexpected("`}`");
        assert_eq!((fault.line, fault.column), (2, 7));
        assert_eq!(fault.message, "expected `}`, found the end of the file");
        assert!(Scanner::new("/* a").skip().is_err() && Scanner::new("/*/").skip().is_err());
    }
}
