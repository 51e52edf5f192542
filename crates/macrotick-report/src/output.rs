//! The output of programs. Its reader may exit, and a file system may be full. Neither stops the program; it reports
//! the second one at its end.

use std::fmt::Display;
use std::io::{self, ErrorKind, IsTerminal, StdoutLock, Write};
use std::sync::OnceLock;

use macrotick_model::visible::visible;

use crate::terminal::colour_wanted;

/// Escape sequences that are allowed on a terminal: the tones of tables, and the colours of diagnostics.
const PAINT: [&str; 7] = ["\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[32m", "\x1b[1;31m", "\x1b[1;34m", "\x1b[1;36m"];

/// The error of standard output.
static FAULT: OnceLock<io::Error> = OnceLock::new();

fn attempt(write: impl FnOnce(&mut StdoutLock) -> io::Result<()>) {
    if FAULT.get().is_some() {
        return;
    }
    let mut output = io::stdout().lock();
    if let Err(fault) = write(&mut output).and_then(|()| output.flush()) {
        let _ = FAULT.set(fault);
    }
}

/// Prints to standard output, unless that has failed. Text of other origin, such as the name of a process, cannot
/// control the terminal.
pub fn print(text: impl Display) {
    let text = shown(&text.to_string(), colour_wanted(io::stdout().is_terminal()));
    attempt(|output| output.write_all(text.as_bytes()));
}

/// Prints JSON to standard output, and preserves its meaning.
pub fn print_json(text: &str) {
    let text = escaped(text);
    attempt(|output| output.write_all(text.as_bytes()));
}

/// Prints the output of other programs unchanged.
pub fn print_bytes(bytes: &[u8]) {
    attempt(|output| output.write_all(bytes));
}

/// Prints a line to standard output.
pub fn print_line(text: impl Display) {
    print(format_args!("{text}\n"));
}

/// Prints a line for people to standard error. There is no place to report a failure.
pub fn tell(text: impl Display) {
    let text = shown(&text.to_string(), colour_wanted(io::stderr().is_terminal()));
    let _ = writeln!(io::stderr(), "{text}");
}

/// Returns a text that is safe for a terminal. If colours are wanted, paint stays.
fn shown(text: &str, painted: bool) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\x1b').filter(|_| painted) {
        let (before, from) = rest.split_at(at);
        let paint = PAINT.into_iter().find(|paint| from.starts_with(paint));
        shown += &visible(before);
        shown += &paint.map_or_else(|| visible("\x1b"), str::to_owned);
        rest = &from[paint.map_or(1, str::len)..];
    }
    shown + &visible(rest)
}

/// Returns JSON without characters that control a terminal. They occur in strings only, where JSON has escapes for
/// them.
fn escaped(json: &str) -> String {
    let escape = |character: char| {
        let text = character.to_string();
        if visible(&text) == text {
            text
        } else {
            character.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect()
        }
    };
    json.chars().map(escape).collect()
}

/// Returns the error that a program must report at its end, if not all of its output could be written. A reader that
/// exited is no error.
pub fn fault() -> Option<io::Error> {
    let fault = FAULT.get().filter(|fault| fault.kind() != ErrorKind::BrokenPipe)?;
    Some(fault.raw_os_error().map_or_else(|| io::Error::from(fault.kind()), io::Error::from_raw_os_error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Tone;

    #[test]
    fn only_paint_steers_a_terminal() {
        let tones = [Tone::Good, Tone::Bad, Tone::Faint, Tone::Strong];
        let painted: String = tones.iter().map(|tone| tone.paint("x", true)).collect();
        assert_eq!(shown(&painted, true), painted);
        let text = "a\x1b[2J\x1b[1mb\u{9b}c\n";
        assert_eq!(shown(text, true), "a\\u{1b}[2J\x1b[1mb\\u{9b}c\n");
        assert_eq!(shown(text, false), "a\\u{1b}[2J\\u{1b}[1mb\\u{9b}c\n");
    }

    #[test]
    fn json_stays_what_it_is() {
        let value = serde_json::json!({"name": "a\x1b[2J\u{9b}\u{202e}\nü"});
        let text = escaped(&serde_json::to_string_pretty(&value).unwrap());
        assert_eq!(text.matches("\\u001b[2J\\u009b\\u202e").count(), 1, "{text}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }
}
