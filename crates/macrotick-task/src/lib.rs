//! A task of a Macrotick system: one thread that runs one job after the other.
//!
//! ```no_run
//! use macrotick_task::Task;
//!
//! let mut task = Task::join("controller")?;
//! // Initialise: allocate, open, connect.
//! macrotick_task::lock_memory()?;
//! task.ready()?;
//! while let Some(job) = task.wait()? {
//!     // One job.
//!     # let _ = job;
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The same program runs under every backend. The calls are those of `include/macrotick.h`, which explains them;
//! `docs/write-a-task.md` says what belongs where.

mod calls;

use std::ffi::CString;
use std::io;
use std::marker::PhantomData;
use std::time::Duration;

pub use macrotick_uapi::Stats;

/// A job, as [`Task::wait`] tells it. Instants are nanoseconds of `CLOCK_MONOTONIC`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Job {
    /// Activations of this task since the epoch, from 0.
    pub number: u64,
    /// The instant of its ACTIVATE in the table.
    pub nominal_ns: u64,
    /// When the wait returned.
    pub start_ns: u64,
    /// Activations lost since the last wait (backend `kernel`).
    pub lost: u64,
}

impl Job {
    /// From the nominal instant to the start.
    pub fn lateness(&self) -> Duration {
        Duration::from_nanos(self.start_ns.saturating_sub(self.nominal_ns))
    }
}

/// Why a thread did not become a task.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// There is one task per process.
    #[error("this process has joined already")]
    AlreadyJoined,
    /// Without a runner a name is needed; with one it must be the runner's.
    #[error("no name of a task, or not the one that the runner gave")]
    Name,
    /// The runner was built with another version of the header.
    #[error("the runner is of another version than this program")]
    Version,
    /// There is neither a runner nor, in the kernel's table, an entity of the name.
    #[error("there is neither a runner nor a table with this task")]
    Nowhere,
    /// Opening the device or mapping the shared memory failed.
    #[error(transparent)]
    System(io::Error),
}

/// The membership of this process's one task. Dropping it completes the running job and ends it.
///
/// The calls belong to the thread that joined, so that it cannot be sent to another one.
#[derive(Debug)]
pub struct Task {
    of_this_thread: PhantomData<*const ()>,
}

impl Task {
    /// Makes the calling thread the task `name`. Under a runner it must be the name that the description gives.
    pub fn join(name: &str) -> Result<Task, JoinError> {
        let name = CString::new(name).map_err(|_| JoinError::Name)?;
        // SAFETY: a terminated text, which is only read during the call.
        Task::joined(unsafe { calls::macrotick_join(name.as_ptr()) })
    }

    /// Makes the calling thread the task for which the runner started this process, whatever its name.
    pub fn join_as_named() -> Result<Task, JoinError> {
        // SAFETY: the call takes NULL for a name.
        Task::joined(unsafe { calls::macrotick_join(std::ptr::null()) })
    }

    fn joined(result: i32) -> Result<Task, JoinError> {
        match -result {
            0 => Ok(Task { of_this_thread: PhantomData }),
            libc::EALREADY => Err(JoinError::AlreadyJoined),
            libc::EINVAL => Err(JoinError::Name),
            libc::EPROTO => Err(JoinError::Version),
            libc::ENOENT => Err(JoinError::Nowhere),
            errno => Err(JoinError::System(io::Error::from_raw_os_error(errno))),
        }
    }

    /// Tells that the task is initialised, and returns when the run begins. If it ended before, the first wait tells.
    pub fn ready(&mut self) -> io::Result<()> {
        // SAFETY: takes nothing.
        match unsafe { calls::macrotick_ready() } {
            result if result == -libc::ESHUTDOWN => Ok(()),
            result => check(result),
        }
    }

    /// Completes the running job and waits for the next one; `None` when the run is over. A signal that was handled is
    /// an error of the kind [`io::ErrorKind::Interrupted`]: wait again.
    pub fn wait(&mut self) -> io::Result<Option<Job>> {
        let mut job = Job::default();
        // SAFETY: `job` has the layout of the header (a test) and can be written.
        match unsafe { calls::macrotick_wait(&mut job) } {
            result if result == -libc::ESHUTDOWN => Ok(None),
            result => check(result).map(|()| Some(job)),
        }
    }

    /// What the kernel has counted of this task since the table was installed. [`io::ErrorKind::Unsupported`] under
    /// another backend than `kernel`, [`io::ErrorKind::NotFound`] when the run has ended.
    pub fn stats(&self) -> io::Result<Stats> {
        let mut stats = Stats::default();
        // SAFETY: `stats` has the layout of the header (a test of macrotick-uapi) and can be written.
        check(unsafe { calls::macrotick_stats(&mut stats) }).map(|()| stats)
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        // SAFETY: takes nothing. It fails only for who has not joined.
        unsafe { calls::macrotick_leave() };
    }
}

/// Locks the memory that the process has and will have, so that no job waits for a page.
pub fn lock_memory() -> io::Result<()> {
    // SAFETY: changes no content.
    match unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn check(result: i32) -> io::Result<()> {
    match result {
        0.. => Ok(()),
        error => Err(io::Error::from_raw_os_error(-error)),
    }
}
