//! Progress of a run on a terminal; `observe` creates a bar only there.

use indicatif::{ProgressBar, ProgressStyle};
use macrotick_node::Progress;

/// The bar of a run on this host.
pub struct RunBar(ProgressBar);

impl RunBar {
    /// Creates a bar on standard error.
    pub fn new() -> Self {
        let bar = ProgressBar::new(1);
        let style = ProgressStyle::with_template("{msg:<10} [{bar:40}] {percent:>3} %").expect("a constant template");
        bar.set_style(style.progress_chars("=> "));
        RunBar(bar)
    }

    /// Shows the progress of the run.
    pub fn update(&mut self, progress: Progress) {
        match progress {
            Progress::Preparing => self.0.set_message("preparing"),
            Progress::Starting => self.0.set_message("starting"),
            Progress::Running { elapsed, total } => {
                self.0.set_message("running");
                self.0.set_length(total.as_nanos().unsigned_abs());
                self.0.set_position(elapsed.as_nanos().unsigned_abs());
            }
            Progress::Collecting => self.0.finish_and_clear(),
        }
    }
}
