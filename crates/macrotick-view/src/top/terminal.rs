//! The loop: reads, draws, waits for a key.

use std::io;
use std::time::{Duration as WallTime, Instant};

use macrotick_node::Status;
use ratatui::crossterm::event::{self, Event, KeyEventKind};

use crate::top::draw::draw;
use crate::top::view::View;

/// Shows the view until the user ends it. `read` returns the present status, or why there is none. The terminal is as it
/// was afterwards, even after a panic.
///
/// # Errors
///
/// Those of the terminal.
pub fn run(
    mut read: impl FnMut() -> Result<Status, String>,
    every: WallTime,
    server_period: macrotick_model::Duration,
) -> io::Result<()> {
    let mut terminal = ratatui::try_init()?;
    let mut view = View::new(server_period.as_nanos().unsigned_abs());
    let mut last = Instant::now();
    view.update(read(), WallTime::ZERO);
    let result = loop {
        if let Err(error) = terminal.draw(|frame| draw(frame, &view)) {
            break Err(error);
        }
        match pressed(&mut view, (last + every).saturating_duration_since(Instant::now())) {
            Ok(true) => break Ok(()),
            Ok(false) => {}
            Err(error) => break Err(error),
        }
        if last.elapsed() >= every {
            let elapsed = last.elapsed();
            last = Instant::now();
            view.update(read(), elapsed);
        }
    };
    ratatui::try_restore()?;
    result
}

/// Waits for a key at most this long. Returns whether it ends the view.
fn pressed(view: &mut View, wait: WallTime) -> io::Result<bool> {
    if !event::poll(wait)? {
        return Ok(false);
    }
    match event::read()? {
        Event::Key(key) if key.kind != KeyEventKind::Release => Ok(view.press(key)),
        _ => Ok(false),
    }
}
