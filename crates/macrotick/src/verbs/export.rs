//! `macrotick export`: descriptions as files of other tools, and the counters of this host as metrics.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::{Duration as WallTime, Instant};

use macrotick_cli::{ExportArgs, ExportTool, OutputArgs};
use macrotick_exchange::rt_app;
use macrotick_report::output;
use signal_hook::consts::{SIGINT, SIGTERM};

use super::import::written;
use crate::error::CliError;
use crate::files::Files;
use crate::input::description_from;
use crate::Outcome;

/// Exports a description or the counters.
pub fn execute(args: &ExportArgs) -> Result<Outcome, CliError> {
    match &args.tool {
        ExportTool::RtApp { system, output } => to_rt_app(system, output),
        ExportTool::Metrics { listen: Some(address), .. } => {
            let is_over = ends()?;
            let ready = |address| output::tell(format_args!("metrics: http://{address}/metrics; SIGINT ends it"));
            macrotick_metrics::serve(*address, metrics, ready, || is_over.load(Ordering::Relaxed))?;
            Ok(Outcome::Done)
        }
        ExportTool::Metrics { textfile: Some(path), every, .. } => {
            let every = WallTime::from_nanos(every.as_nanos().unsigned_abs());
            to_textfile(path, every)
        }
        ExportTool::Metrics { .. } => {
            output::print(metrics());
            Ok(Outcome::Done)
        }
    }
}

/// Reads a description, and writes its tasks and load for rt-app. Remarks go to standard error.
fn to_rt_app(path: &PathBuf, output: &OutputArgs) -> Result<Outcome, CliError> {
    Files::default().reads([path]).writes(&output.output).check()?;
    let system = description_from(path)?;
    let (text, remarks) = rt_app::export(&system).map_err(|reason| CliError::Export { path: path.clone(), reason })?;
    written(&output.output, &text, &remarks)
}

/// Returns the present metrics.
fn metrics() -> String {
    macrotick_metrics::text(macrotick_node::status().ok())
}

/// The time after which a wait looks whether it must end.
const TURN: WallTime = WallTime::from_millis(200);

fn to_textfile(path: &Path, every: WallTime) -> Result<Outcome, CliError> {
    let is_over = ends()?;
    while !is_over.load(Ordering::Relaxed) {
        let next = Instant::now() + every;
        let failed = |source| CliError::Write { path: path.to_owned(), source };
        macrotick_metrics::replace(path, &metrics()).map_err(failed)?;
        while Instant::now() < next && !is_over.load(Ordering::Relaxed) {
            thread::sleep(TURN.min(next.saturating_duration_since(Instant::now())));
        }
    }
    Ok(Outcome::Done)
}

/// Returns a flag that SIGINT and SIGTERM set.
fn ends() -> Result<Arc<AtomicBool>, CliError> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, flag.clone()).map_err(CliError::Signals)?;
    }
    Ok(flag)
}
