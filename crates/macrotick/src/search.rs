//! Follows the search for a plan: shows it on a terminal, and lets SIGINT end it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use macrotick_model::visible::visible;
use macrotick_plan::{Progress, Watch};
use signal_hook::consts::SIGINT;
use signal_hook::flag::{register, register_conditional_default};

/// A search that takes longer is shown.
const PATIENCE: Duration = Duration::from_secs(1);

/// A search for a plan. The first SIGINT ends it, and the next one ends the process.
pub struct Search {
    bar: ProgressBar,
    limit: Duration,
}

/// The number of searches in this process.
static SEARCHES: Mutex<usize> = Mutex::new(0);

fn searches() -> MutexGuard<'static, usize> {
    SEARCHES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the flag that SIGINT sets. If it is set already, SIGINT ends the process. It is set while no search runs.
fn interrupted() -> &'static AtomicBool {
    static FLAG: OnceLock<Arc<AtomicBool>> = OnceLock::new();
    FLAG.get_or_init(|| {
        let flag = Arc::new(AtomicBool::new(true));
        // Without a handler, SIGINT ends the process. The order is that of the actions.
        if register_conditional_default(SIGINT, flag.clone()).is_ok() {
            let _ = register(SIGINT, flag.clone());
        }
        flag
    })
}

impl Search {
    /// Starts a search of at most `limit`.
    pub fn start(limit: Duration) -> Search {
        let mut searches = searches();
        if *searches == 0 {
            interrupted().store(false, Ordering::Relaxed);
        }
        *searches += 1;
        let style = ProgressStyle::with_template("{wide_msg}").expect("a constant template");
        Search { bar: ProgressBar::new_spinner().with_style(style), limit }
    }
}

impl Drop for Search {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
        let mut searches = searches();
        *searches -= 1;
        if *searches == 0 {
            interrupted().store(true, Ordering::Relaxed);
        }
    }
}

impl Watch for Search {
    fn is_over(&self) -> bool {
        interrupted().load(Ordering::Relaxed)
    }

    fn tell(&self, progress: &Progress) {
        if progress.elapsed >= PATIENCE {
            let bottleneck = progress.bottleneck.map(|error| format!(": {error}")).unwrap_or_default();
            let (elapsed, limit, trials) = (progress.elapsed.as_secs(), self.limit.as_secs(), progress.trials);
            let trials = if trials == 1 { "1 trial".to_owned() } else { format!("{trials} trials") };
            self.bar.set_message(visible(&format!("searching, {elapsed} s of {limit} s, {trials}{bottleneck}")));
        }
    }
}
