//! A measurement: of a program that it starts, or of a running process.

use std::ffi::OsString;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};

use macrotick_host::{proc, sys, HostFailure};
use macrotick_model::{Duration, Instant};
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use crate::error::MeasureError;
use crate::measurement::Measurement;
use crate::record::Record;

/// The measured program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A program to start, with its arguments.
    Program(Vec<OsString>),
    /// A running process.
    Process(i32),
}

/// The time between two readings of the events, in milliseconds.
const ROUND: u16 = 50;
/// The readings between two looks at the names of threads.
const NAMES: u32 = 10;
/// The time in which a started program must end after SIGTERM.
const PATIENCE: Duration = Duration::from_secs(1);

/// Measures until the program ends, for at most `limit`, or until SIGINT, SIGTERM or SIGHUP. Then a program that it has
/// started gets SIGTERM, and SIGKILL a second later.
///
/// The calling process must have one thread.
///
/// # Errors
///
/// The reason why nothing is measured.
pub fn measure(target: &Target, limit: Option<Duration>) -> Result<Measurement, MeasureError> {
    let signals = signals()?;
    let (mut record, mut running) = match target {
        Target::Program(words) => start(words)?,
        Target::Process(process) => attach(*process)?,
    };
    let began = sys::now();
    let end = limit.map(|limit| Instant::from_nanos(began.as_nanos() + limit.as_nanos()));
    let mut round = 0u32;
    let status = loop {
        let asked = wait(&signals);
        record.read()?;
        round += 1;
        if round == 1 || round % NAMES == 0 {
            record.name();
            record.look_for_losses()?;
        }
        if let Some(status) = running.ended()? {
            break status;
        }
        if asked || end.is_some_and(|end| sys::now() >= end) {
            break running.stop()?;
        }
    };
    record.read()?;
    record.look_for_losses()?;
    let measurement = Measurement::new(&record, sys::now() - began, status);
    match measurement.threads.is_empty() {
        true => Err(MeasureError::Nothing(measurement.duration)),
        false => Ok(measurement),
    }
}

/// Blocks the signals that end a measurement.
fn signals() -> Result<SignalFd, MeasureError> {
    let set: SigSet = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP].into_iter().collect();
    let made = set.thread_block().and_then(|()| SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC));
    made.map_err(|errno| HostFailure::system("wait for signals")(errno.into()).into())
}

/// Waits until the next reading. Returns whether a signal came.
fn wait(signals: &SignalFd) -> bool {
    let mut files = [PollFd::new(signals.as_fd(), PollFlags::POLLIN)];
    poll(&mut files, PollTimeout::from(ROUND)).is_ok_and(|ready| ready > 0)
}

/// The measured process.
enum Running {
    Started(Child),
    Found(i32),
}

fn start(words: &[OsString]) -> Result<(Record, Running), MeasureError> {
    let (program, arguments) = words.split_first().ok_or(MeasureError::NoProgram)?;
    let record = Record::of_children(&[std::process::id() as i32])?;
    let shown = || macrotick_model::visible::shortened(&program.to_string_lossy());
    let mut command = Command::new(program);
    command.args(arguments);
    // SAFETY: only changes the signal mask of the new process, by a system call.
    unsafe { command.pre_exec(|| Ok(SigSet::all().thread_unblock()?)) };
    let child = command.spawn().map_err(|source| MeasureError::Execute { program: shown(), source })?;
    Ok((record, Running::Started(child)))
}

fn attach(process: i32) -> Result<(Record, Running), MeasureError> {
    let threads: Vec<i32> = proc::threads(process).collect();
    match threads.is_empty() {
        true => Err(MeasureError::NoProcess(process)),
        false => Ok((Record::of_threads(&threads)?, Running::Found(process))),
    }
}

impl Running {
    /// Returns the status of a process that has ended, if this program has started it.
    fn ended(&mut self) -> Result<Option<Option<ExitStatus>>, MeasureError> {
        match self {
            Running::Started(child) => {
                let status = child.try_wait().map_err(HostFailure::system("wait for the program"))?;
                Ok(status.map(Some))
            }
            Running::Found(process) => {
                Ok(proc::state(*process).is_none_or(|state| matches!(state, 'Z' | 'X')).then_some(None))
            }
        }
    }

    /// Ends a program that this one has started. Its status tells nothing then.
    fn stop(&mut self) -> Result<Option<ExitStatus>, MeasureError> {
        let Running::Started(child) = self else { return Ok(None) };
        sys::signal(child.id() as i32, libc::SIGTERM);
        let give_up = Instant::from_nanos(sys::now().as_nanos() + PATIENCE.as_nanos());
        loop {
            if child.try_wait().map_err(HostFailure::system("wait for the program"))?.is_some() {
                return Ok(None);
            }
            if sys::now() >= give_up {
                sys::signal(child.id() as i32, libc::SIGKILL);
                child.wait().map_err(HostFailure::system("wait for the program"))?;
                return Ok(None);
            }
            sys::sleep(Duration::from_millis(10));
        }
    }
}

/// A program that was started for a measurement ends with it, also if the measurement fails.
impl Drop for Running {
    fn drop(&mut self) {
        if let Running::Started(child) = self {
            if matches!(child.try_wait(), Ok(None)) {
                let _ = child.kill();
                let _ = child.wait();
            }
        }
    }
}
