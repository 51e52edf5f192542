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
//! A task can also exchange Ethernet frames without the network stack: [`Express`], with [`frame`] for UDP.
//!
//! The same program runs under every backend. The calls are those of `include/macrotick.h`, which explains them;
//! `docs/reference/task-interface.md` says what belongs where.

mod calls;
pub mod express;
pub mod frame;

use std::ffi::CString;
use std::io;
use std::marker::PhantomData;
use std::time::Duration;

pub use express::Express;
pub use macrotick_uapi::Stats;

/// A job that [`Task::wait`] returns. Instants are nanoseconds of `CLOCK_MONOTONIC`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Job {
    /// The number of activations of this task since the epoch, from 0.
    pub number: u64,
    /// The instant of its ACTIVATE window in the table.
    pub nominal_ns: u64,
    /// The instant at which the wait returned.
    pub start_ns: u64,
    /// Activations lost since the last wait (backend `kernel`).
    pub lost: u64,
}

impl Job {
    /// Returns the time from the nominal instant to the start.
    pub fn lateness(&self) -> Duration {
        Duration::from_nanos(self.start_ns.saturating_sub(self.nominal_ns))
    }
}

/// The reason why a thread did not become a task.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// The process already has a task; there is one task per process.
    #[error("this process has already joined")]
    AlreadyJoined,
    /// Without a runner a name is necessary; with a runner it must be the runner's.
    #[error("the task's name is missing, or differs from the runner's")]
    Name,
    /// The runner was built with another version of the header.
    #[error("the runner and this program have different versions")]
    Version,
    /// There is no runner, and the kernel's table has no entity of the name.
    #[error("there is neither a runner nor a table with this task")]
    Nowhere,
    /// Opening the device or mapping the shared memory failed.
    #[error(transparent)]
    System(io::Error),
}

/// The membership of this process's one task. Dropping it completes the running job and ends the membership.
///
/// The calls belong to the thread that joined. Therefore it cannot be sent to another thread.
#[derive(Debug)]
pub struct Task {
    of_this_thread: PhantomData<*const ()>,
}

impl Task {
    /// Makes the calling thread the task `name`. Under a runner this must be the name in the description.
    pub fn join(name: &str) -> Result<Task, JoinError> {
        let name = CString::new(name).map_err(|_| JoinError::Name)?;
        // SAFETY: a terminated text, which is only read during the call.
        Task::joined(unsafe { calls::macrotick_join(name.as_ptr()) })
    }

    /// Makes the calling thread the task for which the runner started this process.
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

    /// Reports that the task is initialised, and returns when the run starts. If the run ended before, the first wait
    /// returns `None`.
    pub fn ready(&mut self) -> io::Result<()> {
        // SAFETY: takes nothing.
        match unsafe { calls::macrotick_ready() } {
            result if result == -libc::ESHUTDOWN => Ok(()),
            result => check(result),
        }
    }

    /// Completes the running job and waits for the next one; `None` when the run is over. After a handled signal it
    /// returns an error of the kind [`io::ErrorKind::Interrupted`]: wait again.
    pub fn wait(&mut self) -> io::Result<Option<Job>> {
        let mut job = Job::default();
        // SAFETY: `job` has the layout of the header (a test) and can be written.
        match unsafe { calls::macrotick_wait(&mut job) } {
            result if result == -libc::ESHUTDOWN => Ok(None),
            result => check(result).map(|()| Some(job)),
        }
    }

    /// Returns the kernel's counters of this task since the installation of the table. It fails with
    /// [`io::ErrorKind::Unsupported`] under another backend than `kernel`, and with [`io::ErrorKind::NotFound`] when
    /// the run has ended.
    pub fn stats(&self) -> io::Result<Stats> {
        let mut stats = Stats::default();
        // SAFETY: `stats` has the layout of the header (a test of macrotick-uapi) and can be written.
        check(unsafe { calls::macrotick_stats(&mut stats) }).map(|()| stats)
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        // SAFETY: takes nothing. It fails only if the process has not joined.
        unsafe { calls::macrotick_leave() };
    }
}

/// Locks the present and future memory of the process, and no job waits for a page.
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

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::path::Path;
    use std::process::{Command, Stdio};

    /// Compiles a text in C with the headers of a task; the error has the compiler's output.
    pub(crate) fn compiles(source: &str) -> Result<(), String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut compiler = Command::new("cc")
            .args(["-fsyntax-only", "-x", "c", "-", "-I"])
            .arg(root.join("include"))
            .arg("-I")
            .arg(root.join("kernel/overlay/include/uapi"))
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("cc");
        compiler.stdin.take().expect("a pipe").write_all(source.as_bytes()).expect("written");
        let output = compiler.wait_with_output().expect("an end");
        output.status.success().then_some(()).ok_or_else(|| String::from_utf8_lossy(&output.stderr).into_owned())
    }
}
