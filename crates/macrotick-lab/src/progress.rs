//! Telling how far something long has come.

use std::io::{IsTerminal, Write};
use std::time::Instant;

/// Seconds between two lines where a line cannot be redrawn.
const PLAIN_INTERVAL_S: u64 = 20;
/// Milliseconds between two redraws of a line.
const REDRAW_INTERVAL_MS: u128 = 100;

/// Receives how far a piece of work has come.
pub trait Progress {
    /// A piece of work begins.
    fn begin(&mut self, what: &str);
    /// `done` of about `total` units are done; a `total` of 0 is unknown.
    fn advance(&mut self, done: u64, total: u64);
    /// The piece of work is complete.
    fn end(&mut self);
}

/// Says nothing.
pub struct Quiet;

impl Progress for Quiet {
    fn begin(&mut self, _what: &str) {}
    fn advance(&mut self, _done: u64, _total: u64) {}
    fn end(&mut self) {}
}

/// Writes to standard error: one moving line on a terminal, else a plain line now and then.
pub struct Terminal {
    what: String,
    started: Instant,
    told: Instant,
    moving: bool,
}

impl Terminal {
    /// Looks once whether standard error is a terminal.
    pub fn new() -> Terminal {
        let now = Instant::now();
        Terminal { what: String::new(), started: now, told: now, moving: std::io::stderr().is_terminal() }
    }

    fn write(&self, text: &str) {
        // Progress that cannot be shown is no reason to stop the work.
        let mut stderr = std::io::stderr().lock();
        let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
    }
}

impl Default for Terminal {
    fn default() -> Terminal {
        Terminal::new()
    }
}

impl Progress for Terminal {
    fn begin(&mut self, what: &str) {
        self.what = what.to_owned();
        self.started = Instant::now();
        self.told = self.started;
        self.write(&if self.moving { format!("\r\x1b[K{what} ...") } else { format!("{what} ...\n") });
    }

    fn advance(&mut self, done: u64, total: u64) {
        let since = self.told.elapsed();
        if self.moving && since.as_millis() >= REDRAW_INTERVAL_MS {
            self.write(&format!("\r\x1b[K{}", line(&self.what, done, total, self.started.elapsed().as_secs())));
        } else if !self.moving && since.as_secs() >= PLAIN_INTERVAL_S {
            self.write(&format!("{}\n", line(&self.what, done, total, self.started.elapsed().as_secs())));
        } else {
            return;
        }
        self.told = Instant::now();
    }

    fn end(&mut self) {
        let start = if self.moving { "\r\x1b[K" } else { "" };
        self.write(&format!("{start}{}: done in {}\n", self.what, clock(self.started.elapsed().as_secs())));
    }
}

/// What a progress line says. An estimate never claims to be complete.
fn line(what: &str, done: u64, total: u64, seconds: u64) -> String {
    match (done * 100).checked_div(total) {
        Some(percent) => format!("{what}: {:3} %  {done}/~{total}  {}", percent.min(99), clock(seconds)),
        None => format!("{what}: {done}  {}", clock(seconds)),
    }
}

fn clock(seconds: u64) -> String {
    format!("{}:{:02}", seconds / 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_work_share_and_time() {
        assert_eq!(line("kernel", 300, 1200, 65), "kernel:  25 %  300/~1200  1:05");
        assert_eq!(line("kernel", 1300, 1200, 0), "kernel:  99 %  1300/~1200  0:00");
        assert_eq!(line("unpack", 7, 0, 1), "unpack: 7  0:01");
    }
}
