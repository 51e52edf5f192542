//! A measurement: of a program that it starts, or of a running process.

use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::os::unix::process::ExitStatusExt;
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
    let mut watch = Watch::start(target, || Ok(()))?;
    let end = limit.map(|limit| watch.began + limit);
    while !watch.round(ROUND)? {
        if end.is_some_and(|end| sys::now() >= end) {
            break;
        }
    }
    let measurement = watch.end()?;
    match measurement.threads.is_empty() {
        true => Err(MeasureError::Nothing(measurement.duration)),
        false => Ok(measurement),
    }
}

/// A program that is watched. A program that was started for it ends with it.
pub struct Watch {
    signals: SignalFd,
    record: Record,
    running: Running,
    began: Instant,
    rounds: u32,
    /// The status of the program, if it has ended: `None` inside if it was not started here.
    ended: Option<Option<ExitStatus>>,
}

impl Watch {
    /// Starts the program, or finds the process, and begins to record its events. `prepare` runs in the new process
    /// before the program.
    ///
    /// The calling process must have one thread.
    ///
    /// # Errors
    ///
    /// The reason why nothing can be watched.
    pub fn start(
        target: &Target,
        prepare: impl FnMut() -> io::Result<()> + Send + Sync + 'static,
    ) -> Result<Watch, MeasureError> {
        let signals = signals()?;
        let (record, running) = match target {
            Target::Program(words) => start(words, prepare)?,
            Target::Process(process) => attach(*process)?,
        };
        Ok(Watch { signals, record, running, began: sys::now(), rounds: 0, ended: None })
    }

    /// Returns the id of the process.
    pub fn process(&self) -> i32 {
        match &self.running {
            Running::Started(child) => child.id() as i32,
            Running::Found(process) => *process,
        }
    }

    /// Returns the events so far.
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// Returns how long it is watched.
    pub fn lasted(&self) -> Duration {
        sys::now() - self.began
    }

    /// Whether the process has ended, seen now.
    pub fn has_gone(&self) -> bool {
        proc::has_ended(self.process())
    }

    /// Whether the program has ended by itself.
    pub fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    /// Returns the exit code of a program that was started for it and has ended by itself. After a signal it is 128 and the
    /// signal's number, as in shells.
    pub fn exit_code(&self) -> Option<u8> {
        let status = self.ended.flatten()?;
        let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal))?;
        u8::try_from(code).ok()
    }

    /// Waits this many milliseconds, and reads the events. Returns whether this is the end: of the program, or by a
    /// signal.
    pub fn round(&mut self, wait: u16) -> Result<bool, MeasureError> {
        let asked = wait_for(&self.signals, wait);
        self.record.read()?;
        self.rounds += 1;
        if self.rounds == 1 || self.rounds % NAMES == 0 {
            self.record.name();
            self.record.look_for_losses()?;
        }
        self.ended = self.running.ended()?;
        Ok(asked || self.ended.is_some())
    }

    /// Ends a program that was started for it, and returns the measurement.
    pub fn end(mut self) -> Result<Measurement, MeasureError> {
        let status = match self.ended {
            Some(status) => status,
            None => self.running.stop()?,
        };
        self.record.read()?;
        self.record.look_for_losses()?;
        Ok(Measurement::new(&self.record, sys::now() - self.began, status))
    }
}

/// Blocks the signals that end a measurement.
fn signals() -> Result<SignalFd, MeasureError> {
    let set: SigSet = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP].into_iter().collect();
    let made = set.thread_block().and_then(|()| SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC));
    made.map_err(|errno| HostFailure::system("wait for signals")(errno.into()).into())
}

/// Waits until the next reading. Returns whether a signal came.
fn wait_for(signals: &SignalFd, wait: u16) -> bool {
    let mut files = [PollFd::new(signals.as_fd(), PollFlags::POLLIN)];
    poll(&mut files, PollTimeout::from(wait)).is_ok_and(|ready| ready > 0)
}

/// The measured process.
enum Running {
    Started(Child),
    Found(i32),
}

fn start(
    words: &[OsString],
    mut prepare: impl FnMut() -> io::Result<()> + Send + Sync + 'static,
) -> Result<(Record, Running), MeasureError> {
    let (program, arguments) = words.split_first().ok_or(MeasureError::NoProgram)?;
    let record = Record::of_children(&[std::process::id() as i32])?;
    let shown = || macrotick_model::visible::shortened(&program.to_string_lossy());
    let mut command = Command::new(program);
    command.args(arguments);
    // SAFETY: this process has one thread, so the new one may do everything.
    unsafe {
        command.pre_exec(move || {
            prepare()?;
            Ok(SigSet::all().thread_unblock()?)
        })
    };
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
            Running::Found(process) => Ok(proc::has_ended(*process).then_some(None)),
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
