//! The process that keeps a container of a run. It has an engine create the container, start it when the run starts,
//! and remove it at the end. The end is the end of the program, the end of the run, or the death of the runner, which a
//! signal reports.

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

/// The time that the runner gives the engine to remove a container.
pub const GRACE: Duration = Duration::from_secs(20);
/// The longest sleep.
const LOOK: Duration = Duration::from_secs(3600);

/// The place of a container, and the policy of its first process.
#[derive(Debug, Serialize, Deserialize)]
pub struct Place {
    /// Its control group and network.
    pub site: Site,
    /// The CPU. `None`: any CPU.
    pub cpu: Option<u32>,
    /// The policy. `None`: the pool decides.
    pub policy: Option<Policy>,
}

/// The reason why a container did not run until the end of the run.
#[derive(Debug, thiserror::Error)]
pub enum KeeperError {
    /// An error of the engine.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A failed system call.
    #[error("cannot {0}: {1}")]
    Call(&'static str, io::Error),
    /// The program of the container ended.
    #[error("the container's program has ended")]
    Ended,
}

/// Returns a function for `map_err` that names the action.
fn call(what: &'static str) -> impl Fn(io::Error) -> KeeperError {
    move |error| KeeperError::Call(what, error)
}

/// Keeps a container until a signal ends the keeper, which is no error.
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

/// Waits until the run starts. The call for this does not return for a signal. Therefore another thread makes it.
/// Returns `None` if a signal came.
fn await_release(signals: &Signals, end: &OwnedFd) -> Result<Option<Result<(), KeeperError>>, KeeperError> {
    let (reader, writer) = UnixStream::pair().map_err(call("make a pair of sockets"))?;
    let waiter = std::thread::spawn(move || {
        // The socket closes when the call returns.
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

/// Waits until the descriptor is readable. Returns `false` if a signal came.
fn await_readable(signals: &Signals, descriptor: RawFd) -> bool {
    while signals.caught().is_none() {
        if !crate::process::signals::readable_now(&[descriptor]).is_empty() {
            return true;
        }
        signals.sleep_until_readable(sys::now() + LOOK, &[descriptor]);
    }
    false
}

/// Sets CPU and policy of the container's first process, which has several threads under runc. Programs that it
/// executes and processes that it forks inherit both.
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
