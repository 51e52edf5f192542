//! The errors of the verbs, and their output.

use std::error::Error;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use macrotick_admit::AdmitError;
use macrotick_doctor::capture::DocumentError;
use macrotick_hook::HookError;
use macrotick_measure::MeasureError;
use macrotick_model::files::{FileError, LoadError};
use macrotick_model::visible::{shortened, visible};
use macrotick_model::Duration;
use macrotick_node::NodeError;
use macrotick_report::output;

/// The reason why a verb failed.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// The description or document is wrong.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// There is no plan for what the description says.
    #[error(transparent)]
    Infeasible(LoadError),
    /// A plan or observation could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// No plan exists, or none was found.
    #[error(transparent)]
    Plan(#[from] macrotick_plan::PlanError),
    /// There is no other plan than the table by hand.
    #[error("{path} has a table by hand: `--from` has nothing to plan", path = path.display())]
    TableByHand {
        /// The description.
        path: PathBuf,
    },
    /// A written file is named `-`, which stands for standard output in other programs.
    #[error("`-` is no file here: `--json` prints to standard output, and `./-` is a file of this name")]
    Dash,
    /// Two files of a call are the same one, and the later would replace the earlier.
    #[error("{path} is given twice: each file that is read or written needs a path of its own", path = path.display())]
    SameFile {
        /// The file.
        path: PathBuf,
    },
    /// There is no plan, or no answer for a container.
    #[error(transparent)]
    Admit(AdmitError),
    /// This host could not be read.
    #[error(transparent)]
    Here(#[from] macrotick_host::HostFailure),
    /// The host could not run the plan.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// A container is refused, or the hook could not be installed.
    #[error(transparent)]
    Hook(#[from] macrotick_hook::HookError),
    /// A description with several hosts, or without them, and no name or another one.
    #[error("{path}: name one of its hosts by `--host`: {}", if .hosts.is_empty() { "it has none".into() } else { .hosts.join(", ") }, path = path.display())]
    WhichHost {
        /// The description.
        path: PathBuf,
        /// Its hosts.
        hosts: Vec<String>,
    },
    /// The live view needs a terminal.
    #[error("`macrotick top` needs a terminal; `macrotick status --json` is for programs, and `macrotick export metrics` for monitoring")]
    NoTerminal,
    /// The terminal failed.
    #[error("the terminal failed: {0}")]
    Terminal(std::io::Error),
    /// The metrics cannot be served.
    #[error(transparent)]
    Metrics(#[from] macrotick_metrics::ServeError),
    /// The handlers of signals cannot be set.
    #[error("cannot handle signals: {0}")]
    Signals(std::io::Error),
    /// There is no system after these options.
    #[error(transparent)]
    Recipe(#[from] macrotick_generate::RecipeError),
    /// A captured host could not be read or written.
    #[error(transparent)]
    Captured(#[from] DocumentError),
    /// A file of another tool does not become a system.
    #[error(transparent)]
    Import(#[from] macrotick_exchange::ImportError),
    /// A system cannot be written for another tool.
    #[error("{}", refused(.path, .reason))]
    Export {
        /// The description.
        path: PathBuf,
        /// The reason.
        reason: macrotick_exchange::ExportError,
    },
    /// The probe failed.
    #[error(transparent)]
    Probe(#[from] macrotick_probe::ProbeError),
    /// There is no reservation.
    #[error(transparent)]
    Reserve(#[from] macrotick_reserve::ReserveError),
    /// The helper for ordinary users does not reserve.
    #[error(transparent)]
    Grant(#[from] macrotick_grant::GrantError),
    /// A soak does not start, or its counts are not saved.
    #[error(transparent)]
    Soak(#[from] macrotick_soak::SoakError),
    /// Nothing is measured.
    #[error(transparent)]
    Measure(#[from] macrotick_measure::MeasureError),
    /// A server of the probe has no known address.
    #[error("no address of `{}`: {source}", shortened(.name))]
    NoServer {
        /// The name.
        name: String,
        /// The reason.
        source: std::io::Error,
    },
    /// The lab failed.
    #[error(transparent)]
    Lab(#[from] macrotick_lab::LabError),
    /// A page, or a file that belongs to it, could not be written.
    #[error(transparent)]
    Report(#[from] macrotick_report::figures::WriteError),
    /// A file to compare is not a result.
    #[error(
        "{path} is not a result of `macrotick run`: it is neither an observation nor a report",
        path = path.display()
    )]
    NotAResult {
        /// The file.
        path: PathBuf,
    },
    /// A document of another stage, in the place of a description or a plan.
    #[error("{path} is {kind}", path = path.display())]
    OtherDocument {
        /// The file.
        path: PathBuf,
        /// Its kind, in words.
        kind: &'static str,
    },
    /// A key that no description has.
    #[error("no description has a key `{}`{}", shortened(.key), .near.as_ref().map_or(String::new(), |near| format!(": {near}")))]
    NoKey {
        /// The key.
        key: String,
        /// The keys with a similar name, in words.
        near: Option<String>,
    },
    /// A report without its records.
    #[error(
        "{report} has no records, and there is no {observation} beside it",
        report = report.display(),
        observation = observation.display()
    )]
    NoRecords {
        /// The report.
        report: PathBuf,
        /// The expected file with its records.
        observation: PathBuf,
    },
    /// Runs of different systems.
    #[error(transparent)]
    Mismatch(#[from] macrotick_report::Mismatch),
    /// A capture cannot be judged against the plan.
    #[error(transparent)]
    Gates(#[from] macrotick_check::network::capture::PlanRefusal),
    /// A capture cannot be read.
    #[error("{path}: {source}", path = path.display())]
    Capture {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: macrotick_check::network::capture::CaptureError,
    },
    /// A capture has several interfaces, and not that of the plan.
    #[error(
        "{path} has no interface `{device}`, but {}: capture on this device alone",
        .others.join(", "),
        path = path.display()
    )]
    CaptureInterface {
        /// The file.
        path: PathBuf,
        /// The device of the plan's interface.
        device: String,
        /// The interfaces in the file.
        others: Vec<String>,
    },
    /// A plan has no part for the host.
    #[error("{path}: {source}", path = path.display())]
    Part {
        /// The plan or the description.
        path: PathBuf,
        /// The reason.
        source: macrotick_model::PartError,
    },
    /// A description of several hosts cannot be deployed without its plan.
    #[error(
        "{path} has several hosts, and all must deploy the same plan: run `macrotick plan {path} -o PLAN.json` once, \
         and apply PLAN.json on each host",
        path = path.display()
    )]
    HostsWithoutPlan {
        /// The description.
        path: PathBuf,
    },
    /// No table is deployed on this host.
    #[error("no table runs on this host: give the epoch as a time, or leave out `--epoch`")]
    NoTable,
    /// The running table has another clock or cycle than the plan.
    #[error(
        "the running table is not that of the plan: it repeats after {running} on {clock}, the plan after {planned}"
    )]
    OtherTable {
        /// The cycle of the table.
        running: Duration,
        /// Its clock.
        clock: String,
        /// The cycle of the plan.
        planned: Duration,
    },
    /// A file could not be written.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// A file could not be read.
    #[error("cannot read {path}: {source}", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
}

impl From<AdmitError> for CliError {
    fn from(error: AdmitError) -> CliError {
        match error {
            AdmitError::Load(error) => CliError::Load(error),
            AdmitError::Infeasible(error) => CliError::Infeasible(error),
            error => CliError::Admit(error),
        }
    }
}

impl CliError {
    /// Returns 2 for wrong input, 3 for a host or lab that failed.
    pub fn exit_code(&self) -> u8 {
        match self {
            CliError::File(FileError::Write { .. }) | CliError::Captured(DocumentError::Write { .. }) => 3,
            CliError::Hook(HookError::Config(_)) => 2,
            CliError::Hook(HookError::Refused { .. }) | CliError::Infeasible(LoadError::Description(_)) => 1,
            CliError::Load(_)
            | CliError::Infeasible(_)
            | CliError::File(_)
            | CliError::Plan(_)
            | CliError::Admit(AdmitError::Change(_) | AdmitError::DescribedHost(_))
            | CliError::TableByHand { .. }
            | CliError::SameFile { .. }
            | CliError::Dash
            | CliError::NotAResult { .. }
            | CliError::OtherDocument { .. }
            | CliError::NoKey { .. }
            | CliError::NoRecords { .. }
            | CliError::NoServer { .. }
            | CliError::Recipe(_)
            | CliError::NoTerminal
            | CliError::WhichHost { .. }
            | CliError::Captured(_)
            | CliError::Import(_)
            | CliError::Export { .. }
            | CliError::Gates(_)
            | CliError::Capture { .. }
            | CliError::CaptureInterface { .. }
            | CliError::Part { .. }
            | CliError::HostsWithoutPlan { .. }
            | CliError::NoTable
            | CliError::OtherTable { .. }
            | CliError::Mismatch(_) => 2,
            CliError::Node(error) if error.is_about_the_plan() => 2,
            CliError::Soak(error) if error.is_about_the_input() => 2,
            CliError::Probe(error) if error.is_about_the_input() => 2,
            CliError::Grant(error) => error.exit_code(),
            CliError::Reserve(error) if error.is_about_the_input() => 2,
            CliError::Reserve(error) if error.is_a_refusal() => 1,
            CliError::Measure(error) if error.is_about_the_input() => 2,
            CliError::Measure(MeasureError::Nothing(_) | MeasureError::NoPeriod) => 1,
            _ => 3,
        }
    }

    /// Writes the error to standard error. Diagnostics of a description are coloured if standard error is a terminal.
    pub fn print(&self) {
        let colour = macrotick_report::colour_wanted(std::io::stderr().is_terminal());
        match self {
            CliError::Hook(refused @ HookError::Refused { .. }) => macrotick_hook::report::refusal(refused),
            CliError::Load(LoadError::Description(diagnostics))
            | CliError::Infeasible(LoadError::Description(diagnostics)) => {
                output::tell(diagnostics.render(colour).trim_end_matches('\n'))
            }
            error if colour => output::tell(format_args!("\x1b[1;31merror\x1b[0m: {}", visible(&error.with_reasons()))),
            error => output::tell(format_args!("error: {}", visible(&error.with_reasons()))),
        }
    }

    /// Returns the error with its causes, unless the error's text has them already.
    pub fn with_reasons(&self) -> String {
        if let CliError::Node(error) = self {
            return error.with_reason();
        }
        let (mut text, mut reason) = (self.to_string(), self.source());
        while let Some(source) = reason {
            let told = source.to_string();
            if !text.contains(&told) {
                text += &format!(": {told}");
            }
            reason = source.source();
        }
        text
    }
}

/// Writes the file in front of each reason.
fn refused(path: &Path, reason: &macrotick_exchange::ExportError) -> String {
    let reasons = reason.to_string();
    reasons.lines().map(|reason| format!("{}: {reason}", path.display())).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use macrotick_model::Backend;

    use super::*;

    #[test]
    fn what_no_host_could_run_is_wrong_input() {
        let code = |error: NodeError| CliError::Node(error).exit_code();
        assert_eq!(code(NodeError::NotPositive { what: "duration", value: Duration::ZERO }), 2);
        assert_eq!(code(NodeError::PoolBackend { pool: "p".into(), backend: Backend::User }), 2);
        let refused = |wrong_input| NodeError::ChangeRefused { text: "no".into(), wrong_input };
        assert_eq!([code(refused(true)), code(refused(false)), code(NodeError::NoAnswer)], [2, 3, 3]);
    }
}
