//! Reports the progress of long work.

use std::io::{IsTerminal, Write};
use std::time::Instant;

/// Seconds between two lines if a line cannot be redrawn.
const PLAIN_INTERVAL_S: u64 = 20;
/// Milliseconds between two redraws of a line.
const REDRAW_INTERVAL_MS: u128 = 100;
/// Clears the line of the cursor.
const WIPE: &str = "\r\x1b[K";

/// Receives the progress of a piece of work.
pub trait Progress {
    /// Starts a piece of work.
    fn begin(&mut self, what: &str);
    /// Reports `done` of about `total` units; a `total` of 0 is unknown.
    fn advance(&mut self, done: u64, total: u64);
    /// Reports that the piece of work continues, without a known progress. Between two pieces it has no effect.
    fn tick(&mut self);
    /// Completes the piece of work.
    fn end(&mut self);
}

/// Prints nothing.
pub struct Quiet;

impl Progress for Quiet {
    fn begin(&mut self, _what: &str) {}
    fn advance(&mut self, _done: u64, _total: u64) {}
    fn tick(&mut self) {}
    fn end(&mut self) {}
}

/// Writes to standard error: on a terminal one moving line, otherwise a plain line from time to time. The line of
/// unfinished work is cleared at the drop.
pub struct Terminal {
    /// The present piece of work, if there is one.
    what: Option<String>,
    started: Instant,
    told: Instant,
    moving: bool,
}

impl Terminal {
    /// Determines whether standard error is a terminal.
    pub fn new() -> Terminal {
        let now = Instant::now();
        Terminal { what: None, started: now, told: now, moving: std::io::stderr().is_terminal() }
    }

    /// Draws the moving line again, unless it was drawn just before.
    fn redraw(&mut self, text: impl FnOnce(&str, u64) -> String) {
        let Some(what) = &self.what else { return };
        if self.told.elapsed().as_millis() >= REDRAW_INTERVAL_MS {
            self.write(&format!("{WIPE}{}", text(what, self.started.elapsed().as_secs())));
            self.told = Instant::now();
        }
    }

    /// Writes a line, unless one was written shortly before.
    fn repeat(&mut self, text: impl FnOnce(&str, u64) -> String) {
        let Some(what) = &self.what else { return };
        if self.told.elapsed().as_secs() >= PLAIN_INTERVAL_S {
            self.write(&format!("{}\n", text(what, self.started.elapsed().as_secs())));
            self.told = Instant::now();
        }
    }

    fn write(&self, text: &str) {
        // If progress cannot be written, the work continues.
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

/// Returns the text of a progress line. An estimate never claims to be complete.
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
