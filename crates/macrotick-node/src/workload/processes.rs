//! A process of the description, in a group or as load.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::AtomicU32;

use macrotick_host::sys;
use macrotick_model::{Duration, Instant, Load, Periodic, PingFlood, Program};
use serde::{Deserialize, Serialize};

use crate::block::abi;
use crate::deployment::program;
use crate::deployment::user::Owner;
use crate::workload::calibration::{spin, Calibration};
use crate::workload::flood::Flood;
use crate::workload::keeper::{self, KeeperError, Place};
use crate::workload::random::Random;
use crate::workload::task::{decode_arguments, join_run};

/// The hidden verb that leads to [`main`].
pub const VERB: &str = "process";

/// The specification that the runner passes to the process, as JSON in the argument after the verb.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ProcessSpec {
    pub name: String,
    pub load: Load,
    /// The owner of a program that does not run as the runner's user.
    pub owner: Option<Owner>,
    pub calibration: Calibration,
    pub seed: u64,
    /// The place of a container.
    pub place: Option<Place>,
}

#[derive(Debug, thiserror::Error)]
enum ProcessError {
    #[error("this verb is for macrotick's own use")]
    Arguments,
    #[error("cannot {0}: {1}")]
    Call(&'static str, io::Error),
    #[error("cannot execute {0}: {1}")]
    Execute(String, io::Error),
    #[error("container `{0}`: {1}")]
    Container(String, KeeperError),
}

/// Runs a process of the description. Call it when the first argument of the program is [`VERB`].
pub fn main() -> ExitCode {
    let result = decode_arguments().ok_or(ProcessError::Arguments).and_then(|spec: ProcessSpec| run(&spec));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Prepares, waits until the run starts, and loads the host until it is killed.
fn run(spec: &ProcessSpec) -> Result<(), ProcessError> {
    sys::set_thread_name(&spec.name);
    let call = |(what, error)| ProcessError::Call(what, error);
    match &spec.load {
        Load::Hog => {
            join_run().map_err(call)?;
            loop {
                spin(u64::MAX);
            }
        }
        Load::Syscalls => {
            let mut calls = Calls::new(spec).map_err(|error| ProcessError::Call("prepare", error))?;
            join_run().map_err(call)?;
            loop {
                calls.step().map_err(|error| ProcessError::Call("load the host", error))?;
            }
        }
        Load::Periodic(Periodic { period, run }) => {
            let rounds = spec.calibration.rounds(*run);
            join_run().map_err(call)?;
            compute_periodically(*period, rounds)
        }
        Load::PingFlood(PingFlood { to, bytes }) => {
            let address =
                to.parse().map_err(|_| ProcessError::Call("use the address", io::ErrorKind::InvalidInput.into()))?;
            let mut flood =
                Flood::new(address, *bytes as usize).map_err(|error| ProcessError::Call("prepare", error))?;
            join_run().map_err(call)?;
            loop {
                flood.ping().map_err(|error| ProcessError::Call("ping", error))?;
            }
        }
        Load::Program(program) => {
            join_run().map_err(call)?;
            Err(execute(spec.owner.as_ref(), program))
        }
        Load::Container(load) => {
            let place = spec.place.as_ref().ok_or(ProcessError::Arguments)?;
            let failed = |error| ProcessError::Container(spec.name.clone(), error);
            keeper::keep(&spec.name, load, place).map_err(failed)
        }
    }
}

/// Computes in periods. Activation k is at `epoch + k * period`. Activations that have passed are skipped, as in
/// cyclictest.
fn compute_periodically(period: Duration, rounds: u64) -> ! {
    // SAFETY: no memory is passed.
    let mut next = Instant::from_nanos(unsafe { abi::macrotick_node_epoch() } as i64);
    loop {
        sys::sleep_until(next);
        spin(rounds);
        next = next + period;
        let late = sys::now() - next;
        if late > Duration::ZERO {
            next = next + period * (late / period);
        }
    }
}

/// Executes the program, and returns only if that fails. The program then belongs to its owner, but still ends with the
/// runner.
fn execute(owner: Option<&Owner>, program: &Program) -> ProcessError {
    use std::os::unix::process::CommandExt;
    if let Some(Err(error)) = owner.map(Owner::become_it) {
        return ProcessError::Execute(program::file(program).into(), error);
    }
    let error = program::command(program).env_remove(abi::ENV_SHM).env_remove(abi::ENV_TASK).exec();
    ProcessError::Execute(program::file(program).into(), error)
}

/// System calls of several kinds, in a seeded order: pipe, process id, memory mapping, file in memory, futex.
struct Calls {
    random: Random,
    reader: File,
    writer: File,
    path: PathBuf,
    word: AtomicU32,
}

/// The maximum number of bytes that one step moves.
const MOST_BYTES: usize = 4096;

impl Calls {
    fn new(spec: &ProcessSpec) -> io::Result<Calls> {
        let mut ends = [0; 2];
        // SAFETY: two descriptors are written, and are ours.
        let (reader, writer) = unsafe {
            if libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) < 0 {
                return Err(io::Error::last_os_error());
            }
            (OwnedFd::from_raw_fd(ends[0]).into(), OwnedFd::from_raw_fd(ends[1]).into())
        };
        let memory = Path::new("/dev/shm");
        let directory = if memory.is_dir() { memory.to_path_buf() } else { std::env::temp_dir() };
        let path = directory.join(format!("macrotick-{}", std::process::id()));
        // A killed process may have left its file.
        let _ = fs::remove_file(&path);
        let word = AtomicU32::new(0);
        Ok(Calls { random: Random::new(spec.seed, &spec.name), reader, writer, path, word })
    }

    fn step(&mut self) -> io::Result<()> {
        let bytes = 1 + self.random.below(MOST_BYTES as u64) as usize;
        match self.random.below(5) {
            0 => self.pipe(bytes),
            1 => {
                // SAFETY: no memory is passed. syscall(2) is used, because the C library may cache the process id.
                unsafe { libc::syscall(libc::SYS_getpid) };
                Ok(())
            }
            2 => map(bytes),
            3 => self.file(bytes),
            _ => {
                sys::futex_wake(&self.word);
                Ok(())
            }
        }
    }

    fn pipe(&mut self, bytes: usize) -> io::Result<()> {
        let mut buffer = [0; MOST_BYTES];
        self.writer.write_all(&buffer[..bytes])?;
        self.reader.read_exact(&mut buffer[..bytes])
    }

    /// Makes, unlinks and writes a file. It is unlinked while open, and a process that is killed later leaves no file.
    /// A symbolic link at this path is not followed.
    fn file(&mut self, bytes: usize) -> io::Result<()> {
        let mut file = File::create_new(&self.path)?;
        fs::remove_file(&self.path)?;
        file.write_all(&[1; MOST_BYTES][..bytes])
    }
}

/// Maps anonymous memory, touches it, and unmaps it.
fn map(bytes: usize) -> io::Result<()> {
    let length = bytes * 16;
    // SAFETY: a fresh private mapping of that length, written within, unmapped once.
    unsafe {
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        let at = libc::mmap(std::ptr::null_mut(), length, access, kind, -1, 0);
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        at.cast::<u8>().write_volatile(1);
        libc::munmap(at, length);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_call_works() {
        let calibration = Calibration::measure();
        let spec =
            ProcessSpec { name: "x".into(), load: Load::Syscalls, owner: None, calibration, seed: 1, place: None };
        let mut calls = Calls::new(&spec).unwrap();
        for _ in 0..200 {
            calls.step().unwrap();
        }
        assert!(!calls.path.exists());
    }
}
