//! The errors of the lab, in one enum.

use std::fmt;
use std::path::{Path, PathBuf};

use macrotick_model::files::FileError;
use macrotick_model::Duration;

use crate::console::Finding;
use crate::guest_files::FileFault;

/// The errors of the lab. A message states the remedy if there is a known one.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The repository's `kernel/` directory was not found.
    #[error("{start} is not inside a Macrotick checkout (no kernel/apply above it)", start = start.display())]
    NoCheckout {
        /// The start of the search.
        start: PathBuf,
    },
    /// `MACROTICK_LINUX` names no version with hooks.
    #[error("MACROTICK_LINUX is {name}: there are hooks for Linux 6.12, 7.2 and 7.3")]
    Version {
        /// The value.
        name: String,
    },
    /// The source of a version of Linux is missing.
    #[error("the source of Linux {version} is missing: run `./setup linux-{version}`")]
    NoSource {
        /// The version.
        version: &'static str,
    },
    /// A program or file that the set-up installs is missing.
    #[error("{what} is missing: run `make setup` (Debian package {package})")]
    Missing {
        /// The program or file.
        what: String,
        /// The Debian package that has it.
        package: &'static str,
    },
    /// A file operation of the lab itself failed.
    #[error("cannot {action} {path}: {source}", path = path.display())]
    Io {
        /// The action, as a verb.
        action: &'static str,
        /// The path.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// A program that the lab called failed.
    #[error("`{command}` failed ({status}):\n{tail}")]
    Command {
        /// The command.
        command: String,
        /// Its exit status.
        status: String,
        /// The last lines of its output.
        tail: String,
    },
    /// apt knows no repository of Debian.
    #[error("apt lists no repository of Debian (see `apt-get indextargets`): run `apt-get update`, or add one")]
    Sources,
    /// A program needs a shared library that the host does not have in a place where a guest would look.
    #[error(
        "{program} needs the shared library {library}, which this host's loader does not find (LD_LIBRARY_PATH \
         does not count in a guest; link with -Wl,-rpath,DIRECTORY or with -static)",
        program = program.display()
    )]
    Library {
        /// The program.
        program: PathBuf,
        /// The library's name.
        library: String,
    },
    /// Requested kernel options that do not hold in the resulting configuration.
    #[error("the kernel's configuration refuses: {}", missing.join(", "))]
    Config {
        /// The requested lines.
        missing: Vec<String>,
    },
    /// A fragment of the user takes away what Macrotick needs.
    #[error("the fragments contradict what Macrotick needs: {}", contradicted.join(", "))]
    Fragment {
        /// The options, with the value that each must have.
        contradicted: Vec<String>,
    },
    /// The configuration of the running kernel is nowhere.
    #[error("the running kernel's configuration is not in {places}: name a file")]
    NoRunningConfig {
        /// The places.
        places: String,
    },
    /// A configuration is that of another architecture.
    #[error("{base} is a configuration for {other}, not for {wanted}")]
    ConfigOf {
        /// The configuration.
        base: String,
        /// Its architecture.
        other: &'static str,
        /// The architecture of the kernel.
        wanted: &'static str,
    },
    /// A file is no configuration of a kernel.
    #[error("{path} is no kernel configuration: no line begins with CONFIG_", path = path.display())]
    NotAConfig {
        /// The file.
        path: PathBuf,
    },
    /// The kernel's build failed.
    #[error("the {flavor} kernel does not build (log: {log}):\n{tail}", log = log.display())]
    Build {
        /// The flavour.
        flavor: &'static str,
        /// The last lines of the log, errors first.
        tail: String,
        /// The whole log.
        log: PathBuf,
    },
    /// A patch of the series does not build, or builds with a warning.
    #[error("{patch} does not build, {options} (log: {log}):\n{tail}", log = log.display())]
    Series {
        /// The patch's file.
        patch: String,
        /// The options that were off.
        options: String,
        /// The last lines of the log, errors first.
        tail: String,
        /// The whole log.
        log: PathBuf,
    },
    /// The job is not valid.
    #[error("the job is not valid: {0}")]
    Job(String),
    /// The installed QEMU has no network card of the model that the job asks for.
    #[error("the installed QEMU has no network card of the model {model}: install a newer QEMU")]
    NoNic {
        /// The model.
        model: &'static str,
    },
    /// The guest was still running at its limit of wall time, and was stopped.
    #[error(
        "the guest was stopped after {limit} of wall time (files: {}); its console ended with:\n{tail}",
        dir.display()
    )]
    WallLimit {
        /// The limit.
        limit: Duration,
        /// The console's last lines.
        tail: String,
        /// The run's files, kept.
        dir: PathBuf,
    },
    /// The guest ended without reporting success.
    #[error("the guest died: {death} (files: {}); its console ended with:\n{tail}", dir.display())]
    Died {
        /// The kind of the end.
        death: Death,
        /// The console's last lines.
        tail: String,
        /// The run's files, kept.
        dir: PathBuf,
    },
    /// The job ran, but the kernel complained on the console.
    #[error("the kernel complained on the console (files: {}):\n{}", dir.display(), excerpts(findings))]
    Console {
        /// The complaints in order.
        findings: Vec<Finding>,
        /// The run's files, kept.
        dir: PathBuf,
    },
    /// A program of the description cannot run in the lab.
    #[error("{owner}: the program `{program}` cannot run in the lab: {reason}")]
    Program {
        /// The task or process, in words.
        owner: String,
        /// The program, as the description names it.
        program: String,
        /// Why not.
        reason: Box<FileFault>,
    },
    /// A file of the description cannot be taken into the lab.
    #[error("files: `{pattern}` cannot be taken into the lab: {reason}")]
    GuestFile {
        /// The file, directory or pattern, as the description names it.
        pattern: String,
        /// Why not.
        reason: Box<FileFault>,
    },
    /// A command in the lab failed.
    #[error("in the lab, `{command}` ended with {status}\n{output}")]
    Guest {
        /// The command.
        command: String,
        /// Its exit status.
        status: String,
        /// Its output.
        output: String,
    },
    /// A command in the lab printed something that could not be understood.
    #[error("in the lab, `{command}` printed no {expected}:\n{output}")]
    GuestOutput {
        /// The command.
        command: String,
        /// The expected output, in words.
        expected: &'static str,
        /// Its output.
        output: String,
    },
    /// The observation from the lab cannot be read.
    #[error(transparent)]
    Observation(#[from] FileError),
    /// The guest's agent could not run the job.
    #[error("the guest's agent reports: {0}")]
    Agent(String),
}

/// The end of a guest that did not report success.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Death {
    /// The kernel panicked.
    Panic(String),
    /// QEMU itself failed.
    Qemu(String),
    /// The results end in the middle.
    Truncated(String),
    /// The results are damaged.
    Damaged(String),
    /// It sent no result.
    Silent,
}

impl fmt::Display for Death {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Death::Panic(line) => write!(f, "kernel panic ({line})"),
            Death::Qemu(text) => write!(f, "QEMU failed ({text})"),
            Death::Truncated(what) => write!(f, "its results are cut short ({what})"),
            Death::Damaged(what) => write!(f, "its results are damaged ({what})"),
            Death::Silent => f.write_str("it sent no result"),
        }
    }
}

fn excerpts(findings: &[Finding]) -> String {
    findings.iter().map(|finding| finding.excerpt.as_str()).collect::<Vec<_>>().join("\n--\n")
}

/// Adds an action and a path to an I/O error.
pub(crate) trait Context<T> {
    /// Makes `Err` a [`LabError::Io`].
    fn context(self, action: &'static str, path: &Path) -> Result<T, LabError>;
}

impl<T> Context<T> for std::io::Result<T> {
    fn context(self, action: &'static str, path: &Path) -> Result<T, LabError> {
        self.map_err(|source| LabError::Io { action, path: path.to_owned(), source })
    }
}
