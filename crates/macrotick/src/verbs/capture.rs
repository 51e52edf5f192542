//! `macrotick check --capture`

use std::path::Path;

use macrotick_check::network::capture::{Capture, CaptureVerdict, Fit, PlannedPort, Settings};
use macrotick_cli::{CaptureArgs, Epoch};
use macrotick_host::{clock, network};
use macrotick_model::files::FileError;
use macrotick_model::{Clock, Duration, Instant, Interface, Plan};
use macrotick_report::output;
use serde::Serialize;

use crate::error::CliError;
use crate::Outcome;

/// Judges the frames of a capture against the gates of a plan.
pub fn judge(plan: &Plan, path: &Path, args: &CaptureArgs, json: bool) -> Result<Outcome, CliError> {
    let port = PlannedPort::new(plan, args.interface.as_deref(), &args.classes)?;
    let unread = |source| FileError::Read { path: path.display().to_string(), source };
    let bytes = std::fs::read(path).map_err(unread)?;
    let unreadable = |source| CliError::Capture { path: path.into(), source };
    let capture = || Capture::new(&bytes).map_err(unreadable);
    let interface = interface(plan, &port, path, capture()?)?;
    let epoch = match args.epoch {
        Some(epoch) => Some(given(plan, epoch, args.clock_offset)?),
        None => port.fit(capture()?, interface, args.path).map_err(unreadable)?.map(Known::Fitted),
    };
    let at = epoch.as_ref().map_or(Instant::default(), Known::epoch);
    let settings = Settings { epoch: at, interface, path: args.path, tolerance: args.tolerance };
    let verdict = port.judge(capture()?, settings).map_err(unreadable)?;
    let clean = verdict.is_clean();
    if json {
        let rules = port.rules.iter().map(ToString::to_string).collect();
        let told = Told { epoch: epoch.as_ref().map(told), rules, verdict };
        output::print_json(&format!("{}\n", serde_json::to_string_pretty(&told).expect("a verdict is always JSON")));
    } else {
        output::print(verdict);
        output::print(describe(epoch.as_ref(), &port));
    }
    Ok(if clean { Outcome::Done } else { Outcome::DoesNotHold })
}

/// Returns the number of the plan's interface in the capture.
fn interface(plan: &Plan, port: &PlannedPort, path: &Path, capture: Capture) -> Result<Option<u32>, CliError> {
    let network = plan.system.network.as_ref();
    let interface: Option<&Interface> = network.and_then(|network| network.interface(&port.port.name));
    let (_, device) =
        interface.map_or((None, port.port.name.clone()), |one| network::device_of(&plan.system, &one.end));
    PlannedPort::interface_of(capture, &device).map_err(|others| {
        let others = others.into_iter().map(|name| format!("`{name}`")).collect();
        CliError::CaptureInterface { path: path.into(), device, others }
    })
}

/// The epoch on the clock of the capture, and its origin.
enum Known {
    /// It follows from the frames.
    Fitted(Fit),
    /// It is given on the clock of the table.
    Given { epoch: Instant, offset: Duration, measured: Option<Duration> },
}

impl Known {
    fn epoch(&self) -> Instant {
        match self {
            Known::Fitted(fit) => fit.epoch,
            Known::Given { epoch, offset, .. } => *epoch - *offset,
        }
    }
}

/// Returns an epoch on the table's clock.
fn given(plan: &Plan, epoch: Epoch, offset: Option<Duration>) -> Result<Known, CliError> {
    let epoch = match epoch {
        Epoch::At(time) => Instant::default() + time,
        Epoch::Deployed => deployed(plan)?,
    };
    Ok(match offset {
        Some(offset) => Known::Given { epoch, offset, measured: None },
        None => {
            let distance = clock::from_realtime(&plan.system.clock);
            Known::Given { epoch, offset: distance.offset, measured: Some(distance.error) }
        }
    })
}

/// Returns the epoch of the table that runs on this host.
fn deployed(plan: &Plan) -> Result<Instant, CliError> {
    let table = macrotick_node::status()?.table.filter(|table| table.running).ok_or(CliError::NoTable)?;
    let running = Duration::from_nanos(table.cycle_ns as i64);
    if running != plan.cycle || table.clock != clock_name(&plan.system.clock) {
        return Err(CliError::OtherTable { running, clock: table.clock.into(), planned: plan.cycle });
    }
    Ok(Instant::from_nanos(table.epoch_ns as i64))
}

fn clock_name(clock: &Clock) -> &'static str {
    match clock {
        Clock::Monotonic => "CLOCK_MONOTONIC",
        Clock::Tai(_) => "CLOCK_TAI",
    }
}

/// The answer for programs.
#[derive(Serialize)]
struct Told {
    epoch: Option<ToldEpoch>,
    /// The rules that gave frames their class.
    rules: Vec<String>,
    verdict: CaptureVerdict,
}

/// The epoch on the clock of the capture.
#[derive(Serialize)]
struct ToldEpoch {
    epoch_ns: i64,
    /// `frames`: it follows from the frames. `given`: with the distance of the clocks from the command line. `host`: with
    /// that of this host.
    from: &'static str,
    /// The time by which the true epoch can differ. It is earlier at most, if it follows from the frames.
    within: Duration,
}

fn told(known: &Known) -> ToldEpoch {
    let (from, within) = match known {
        Known::Fitted(fit) => ("frames", fit.range),
        Known::Given { measured: None, .. } => ("given", Duration::ZERO),
        Known::Given { measured: Some(error), .. } => ("host", *error),
    };
    ToldEpoch { epoch_ns: known.epoch().as_nanos(), from, within }
}

/// Explains the epoch, and the classes of frames.
fn describe(known: Option<&Known>, port: &PlannedPort) -> String {
    let epoch = match known {
        None => "epoch: none: no frame has a class that opens and closes".into(),
        Some(known @ Known::Fitted(Fit { range, inside, frames, .. })) => format!(
            "epoch: {} on the clock of the capture, at most {range} later than the true one: with it, {inside} of \
             {frames} frames are in their windows. A constant delay of all frames does not show. Give the epoch to \
             see it (`--epoch`)",
            seconds(known.epoch())
        ),
        Some(known @ Known::Given { offset, measured, .. }) => {
            let origin = match measured {
                None => "as given".into(),
                Some(error) => format!(
                    "as on this host now, within {error}; this holds for a capture since the last boot of this host, \
                     if nothing has set its clock since then"
                ),
            };
            let at = seconds(known.epoch());
            format!("epoch: {at} on the clock of the capture, {offset} before that of the table, {origin}")
        }
    };
    let rules: Vec<String> = port.rules.iter().map(ToString::to_string).collect();
    format!("{epoch}\nclasses: {}\n", rules.join("; "))
}

/// Formats an instant as `tcpdump -tt` does.
fn seconds(at: Instant) -> String {
    let nanos = at.as_nanos();
    format!("{}.{:09}", nanos.div_euclid(1_000_000_000), nanos.rem_euclid(1_000_000_000))
}
