//! The process that keeps a container of the run: it has an engine make it, start it when the run begins, and remove it,
//! whoever ends first: the program, the run, or the runner itself, which a signal tells.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;

use macrotick_host::proc;
use macrotick_host::sys::{self, Tid};
use macrotick_model::{ContainerLoad, Duration, Policy};
use serde::{Deserialize, Serialize};

use crate::deployment::standing::process_standing;
use crate::process::signals::Signals;
use crate::workload::engine::{Container, EngineError, Site};
use crate::workload::task::join_run;

/// How long the runner gives the engine to remove a container.
pub const GRACE: Duration = Duration::from_secs(20);
/// How long nothing may happen before it is looked again.
const LOOK: Duration = Duration::from_secs(3600);

/// Where a container is to be, and how its first process is to run.
#[derive(Debug, Serialize, Deserialize)]
pub struct Place {
    /// Its control group and network.
    pub site: Site,
    /// The CPU; `None`: any.
    pub cpu: Option<u32>,
    /// `None`: its pool's.
    pub policy: Option<Policy>,
}

/// Why a container did not run to the end of the run.
#[derive(Debug, thiserror::Error)]
pub enum KeeperError {
    /// The engine.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The system.
    #[error("cannot {0}: {1}")]
    Call(&'static str, io::Error),
    /// Its program.
    #[error("the container's program has ended")]
    Ended,
}

/// For `map_err`.
fn call(what: &'static str) -> impl Fn(io::Error) -> KeeperError {
    move |error| KeeperError::Call(what, error)
}

/// Keeps a container until it is told to end; that is no error.
pub fn keep(name: &str, load: &ContainerLoad, place: &Place) -> Result<(), KeeperError> {
    let signals = Signals::catch().map_err(call("catch signals"))?;
    sys::signal_on_parent_death(libc::SIGTERM).map_err(call("learn of the runner's end"))?;
    let (container, process) = Container::create(name, load, &place.site)?;
    let end = sys::pidfd_open(process, process).map_err(call("watch the container"))?;
    let Some(released) = await_release(&signals, &end)? else { return Ok(()) };
    released?;
    put(process, place)?;
    container.start()?;
    match await_readable(&signals, end.as_raw_fd()) {
        true => Err(KeeperError::Ended),
        false => Ok(()),
    }
}

/// The call that waits for the run does not return for a signal, so that another thread makes it. `None`: a signal came.
fn await_release(signals: &Signals, end: &OwnedFd) -> Result<Option<Result<(), KeeperError>>, KeeperError> {
    let (reader, writer) = UnixStream::pair().map_err(call("make a pair of sockets"))?;
    let waiter = std::thread::spawn(move || {
        // It is closed when the call returns.
        let _writer = writer;
        join_run().map_err(|(what, error)| KeeperError::Call(what, error))
    });
    loop {
        signals.sleep_until_readable(sys::now() + LOOK, &[reader.as_raw_fd(), end.as_raw_fd()]);
        if signals.caught().is_some() {
            return Ok(None);
        }
        match crate::process::signals::readable_now(&[reader.as_raw_fd(), end.as_raw_fd()])[..] {
            [0, ..] => return Ok(Some(waiter.join().expect("it does not panic"))),
            [1] => return Err(KeeperError::Ended),
            _ => {}
        }
    }
}

/// Until something can be read; `false`: a signal came.
fn await_readable(signals: &Signals, descriptor: RawFd) -> bool {
    while signals.caught().is_none() {
        if !crate::process::signals::readable_now(&[descriptor]).is_empty() {
            return true;
        }
        signals.sleep_until_readable(sys::now() + LOOK, &[descriptor]);
    }
    false
}

/// How the container's first process is to run, which has several threads under runc; what it executes and forks is likewise.
fn put(process: Tid, place: &Place) -> Result<(), KeeperError> {
    for thread in proc::threads(process) {
        if let Some(cpu) = place.cpu {
            sys::pin(thread, &[cpu]).map_err(call("pin the container"))?;
        }
        if let Some(policy) = place.policy {
            sys::set_standing(thread, process_standing(policy)).map_err(call("set the container's policy"))?;
        }
    }
    Ok(())
}
