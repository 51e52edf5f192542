//! A thread beside the runner's thread. It makes sure that the runner gets a CPU, whatever programs run.
//!
//! A thread under SCHED_FIFO does not give way to threads with the same priority. A program that spins with the
//! runner's own priority would keep the runner from ending the run, and from handling signals. SCHED_DEADLINE comes
//! before every priority. The kernel also keeps a share of each CPU for SCHED_OTHER (5 % by default) beside real-time
//! threads. The rescuer has one or the other policy. It puts threads that keep the runner from running under
//! SCHED_OTHER. While jobs are measured, it sleeps.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{mpsc, Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use macrotick_host::sys::{self, Standing, Tid};
use macrotick_model::{Duration, Instant};

use crate::deployment::standing::RUNNER_PRIORITY;
use crate::deployment::urgent;
use crate::process::descendants::{self, Below};
use crate::process::signals::{self, Blocked};

/// The interval between two checks. The rescuer acts if the runner was ready at two checks and did not run in between.
const LOOK: Duration = Duration::from_millis(100);
const STACK: usize = 256 << 10;
/// The policy before all other threads of SCHED_OTHER. Under an unprivileged user the kernel refuses it, and the nice
/// value stays.
const ORDINARY: Standing = Standing::Other(-20);
/// The policy to wake up in time: one part in a thousand of a CPU.
const ASLEEP: Standing = reservation(Duration::from_micros(100));
/// The policy during the work: reading `/proc` takes some milliseconds.
const AT_WORK: Standing = reservation(Duration::from_millis(20));

const fn reservation(runtime: Duration) -> Standing {
    Standing::Deadline { runtime, deadline: LOOK, period: LOOK }
}

/// The rescuer's thread. Dropping it ends it. The thread that made it must also drop it.
pub struct Rescuer {
    shared: Arc<Shared>,
    tid: Tid,
    thread: Option<JoinHandle<()>>,
    _blocked: Blocked,
}

struct Shared {
    runner: Runner,
    below: Below,
    /// An eventfd that becomes readable when the thread must end.
    wake: OwnedFd,
    is_over: AtomicBool,
    /// The end of the rest on `CLOCK_MONOTONIC`, in nanoseconds. Before it the thread makes no check, unless a signal
    /// comes.
    rests_until: AtomicI64,
    remarks: Mutex<Vec<String>>,
}

/// The runner's thread.
struct Runner {
    tid: Tid,
    clock: libc::clockid_t,
}

impl Rescuer {
    /// Starts the rescuer for the calling thread, which has the runner's priority already. It may put processes that
    /// start below this process after the call under SCHED_OTHER. The new thread handles the signals that end a run,
    /// because the runner may not get a CPU for it.
    pub fn start() -> io::Result<Rescuer> {
        let shared = Arc::new(Shared {
            runner: Runner { tid: sys::own_tid(), clock: sys::cpu_clock()? },
            below: Below::from_now_on(),
            wake: signals::event()?,
            is_over: AtomicBool::new(false),
            rests_until: AtomicI64::new(0),
            remarks: Mutex::new(Vec::new()),
        });
        let (tell, told) = mpsc::channel();
        let of_thread = Arc::clone(&shared);
        let look = move || {
            let _ = sys::set_standing(0, ORDINARY);
            let _ = tell.send(sys::own_tid());
            of_thread.look_on();
        };
        let thread = std::thread::Builder::new().name("rescuer".into()).stack_size(STACK).spawn(look)?;
        let tid = told.recv().map_err(io::Error::other)?;
        Ok(Rescuer { shared, tid, thread: Some(thread), _blocked: signals::block()? })
    }

    /// Rests while jobs are measured and the runner sleeps until this instant. The thread makes no check before it,
    /// unless a signal comes.
    pub fn rest_until(&self, end: Instant) {
        self.shared.rests_until.store((end + LOOK).as_nanos(), Ordering::Relaxed);
        // The kernel may refuse it: SCHED_DEADLINE is full, or the runner may not use all CPUs. Then the thread keeps
        // SCHED_OTHER.
        let _ = sys::set_standing(self.tid, ASLEEP);
    }

    /// Rests while the runner serves a deployment without a fixed end. The thread makes no check before a signal comes.
    pub fn rest(&self) {
        self.shared.rests_until.store(i64::MAX, Ordering::Relaxed);
    }

    /// Checks again: the runner ends the processes that it started.
    pub fn look(&self) {
        self.shared.rests_until.store(0, Ordering::Relaxed);
        let _ = sys::set_standing(self.tid, ORDINARY);
    }

    /// Returns a remark for each rescue.
    pub fn remarks(&self) -> Vec<String> {
        self.shared.remarks.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Rescuer {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        let one = 1u64;
        // SAFETY: reads eight bytes.
        unsafe { libc::write(self.shared.wake.as_raw_fd(), std::ptr::addr_of!(one).cast(), 8) };
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl Shared {
    fn look_on(&self) {
        // The runner's processor time at the last check, if it was waiting for a CPU then.
        let mut waited = None;
        loop {
            let rest = if signals::has_caught() { 0 } else { self.rests_until.load(Ordering::Relaxed) };
            signals::wait(&self.wake, (sys::now() + LOOK).as_nanos().max(rest));
            if self.is_over.load(Ordering::Relaxed) {
                return;
            }
            if sys::now().as_nanos() < self.rests_until.load(Ordering::Relaxed) && !signals::has_caught() {
                waited = None;
                continue;
            }
            let waits = self.runner.waits().then(|| self.runner.time());
            let starves = waits.is_some() && waits == waited;
            waited = if starves { None } else { waits };
            if starves {
                self.rescue();
            }
        }
    }

    fn rescue(&self) {
        if sys::set_standing(0, AT_WORK).is_err() {
            let _ = sys::set_standing(0, ORDINARY);
        }
        let calmed = self.below.calm(|attr| attr.is_beside(RUNNER_PRIORITY));
        let _ = sys::set_standing(0, ORDINARY);
        let remark = |(pid, name)| {
            format!(
                "process {pid} (`{name}`) had priority {RUNNER_PRIORITY} and kept the runner from running: it has SCHED_OTHER now"
            )
        };
        let mut remarks = self.remarks.lock().unwrap_or_else(PoisonError::into_inner);
        remarks.extend(descendants::shorten(calmed.into_iter().map(remark).collect(), "have SCHED_OTHER now"));
    }
}

impl Runner {
    /// Returns whether the runner waits for a CPU, or for a process that may wait for one.
    fn waits(&self) -> bool {
        urgent::is_waiting() || macrotick_host::proc::state(self.tid) == Some('R')
    }

    fn time(&self) -> Duration {
        sys::time_of(self.clock)
    }
}
