//! Telling how far something long has come.

use std::io::{IsTerminal, Write};
use std::time::Instant;

/// Seconds between two lines where a line cannot be redrawn.
const PLAIN_INTERVAL_S: u64 = 20;
/// Milliseconds between two redraws of a line.
const REDRAW_INTERVAL_MS: u128 = 100;
/// Empties the line of the cursor.
const WIPE: &str = "\r\x1b[K";

/// Receives how far a piece of work has come.
pub trait Progress {
    /// A piece of work begins.
    fn begin(&mut self, what: &str);
    /// `done` of about `total` units are done; a `total` of 0 is unknown.
    fn advance(&mut self, done: u64, total: u64);
    /// The piece of work goes on, and nobody knows how far it has come. Between two pieces it means nothing.
    fn tick(&mut self);
    /// The piece of work is complete.
    fn end(&mut self);
}

/// Says nothing.
pub struct Quiet;

impl Progress for Quiet {
    fn begin(&mut self, _what: &str) {}
    fn advance(&mut self, _done: u64, _total: u64) {}
    fn tick(&mut self) {}
    fn end(&mut self) {}
}

/// Writes to standard error: one moving line on a terminal, else a plain line now and then. A line of work that was
/// never completed is wiped when it is dropped.
pub struct Terminal {
    /// The piece of work that is under way, if any.
    what: Option<String>,
    started: Instant,
    told: Instant,
    moving: bool,
}

impl Terminal {
    /// Looks once whether standard error is a terminal.
    pub fn new() -> Terminal {
        let now = Instant::now();
        Terminal { what: None, started: now, told: now, moving: std::io::stderr().is_terminal() }
    }

    /// Draws the moving line anew, unless that was done just now.
    fn redraw(&mut self, text: impl FnOnce(&str, u64) -> String) {
        let Some(what) = &self.what else { return };
        if self.told.elapsed().as_millis() >= REDRAW_INTERVAL_MS {
            self.write(&format!("{WIPE}{}", text(what, self.started.elapsed().as_secs())));
            self.told = Instant::now();
        }
    }

    /// Writes a line, unless one was written not long ago.
    fn repeat(&mut self, text: impl FnOnce(&str, u64) -> String) {
        let Some(what) = &self.what else { return };
        if self.told.elapsed().as_secs() >= PLAIN_INTERVAL_S {
            self.write(&format!("{}\n", text(what, self.started.elapsed().as_secs())));
            self.told = Instant::now();
        }
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

impl Drop for Terminal {
    fn drop(&mut self) {
        if self.moving && self.what.is_some() {
            self.write(WIPE);
        }
    }
}

impl Progress for Terminal {
    fn begin(&mut self, what: &str) {
        self.what = Some(what.to_owned());
        self.started = Instant::now();
        self.told = self.started;
        self.write(&if self.moving { format!("{WIPE}{what} ...") } else { format!("{what} ...\n") });
    }

    fn advance(&mut self, done: u64, total: u64) {
        let text = |what: &str, seconds| line(what, done, total, seconds);
        if self.moving {
            self.redraw(text);
        } else {
            self.repeat(text);
        }
    }

    fn tick(&mut self) {
        if self.moving {
            self.redraw(|what, seconds| format!("{what}: {}", clock(seconds)));
        }
    }

    fn end(&mut self) {
        let Some(what) = self.what.take() else { return };
        let start = if self.moving { WIPE } else { "" };
        self.write(&format!("{start}{what}: done in {}\n", clock(self.started.elapsed().as_secs())));
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
