//! A thread beside the runner's that sees to it that the runner gets a CPU, whatever was started.
//!
//! Nothing under SCHED_FIFO gives way to its equals, so that a program that spins with the runner's own priority would keep the
//! runner from ending the run for ever, and signals from being handled. SCHED_DEADLINE comes before every priority, and the
//! kernel gives SCHED_OTHER a share of each CPU (5 % at first) whatever is real-time. The rescuer has one or the other, and
//! puts what keeps the runner from running under SCHED_OTHER. While jobs are measured it sleeps.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{mpsc, Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use macrotick_host::sys::{self, Standing, Tid};
use macrotick_model::{Duration, Instant};

use crate::deployment::standing::RUNNER_PRIORITY;
use crate::deployment::urgent;
use crate::process::descendants::{self, Below};
use crate::process::signals::{self, Blocked};

/// From one look to the next. The runner is rescued that was ready at two of them and did not run in between.
const LOOK: Duration = Duration::from_millis(100);
const STACK: usize = 256 << 10;
/// Before all of SCHED_OTHER. An ordinary user's has no nice value, which is ignored.
const ORDINARY: Standing = Standing::Other(-20);
/// To wake up in time: one part in a thousand of a CPU.
const ASLEEP: Standing = reservation(Duration::from_micros(100));
/// To work: `/proc` is read in some milliseconds.
const AT_WORK: Standing = reservation(Duration::from_millis(20));

const fn reservation(runtime: Duration) -> Standing {
    Standing::Deadline { runtime, deadline: LOOK, period: LOOK }
}

/// The thread. Dropping it ends it. The thread that made it must be the one that drops it.
pub struct Rescuer {
    shared: Arc<Shared>,
    tid: Tid,
    thread: Option<JoinHandle<()>>,
    _blocked: Blocked,
}

struct Shared {
    runner: Runner,
    below: Below,
    /// Written to when it is over.
    wake: OwnedFd,
    is_over: AtomicBool,
    /// Before this instant of `CLOCK_MONOTONIC`, in nanoseconds, it does not look, unless a signal comes.
    rests_until: AtomicI64,
    remarks: Mutex<Vec<String>>,
}

/// The runner's thread.
struct Runner {
    tid: Tid,
    clock: libc::clockid_t,
}

impl Rescuer {
    /// For the calling thread, which has the runner's priority by now. What comes below this process from now on may be put
    /// under SCHED_OTHER. From now on the new thread has the signals that end a run handled, which the runner could not.
    pub fn start() -> io::Result<Rescuer> {
        let shared = Arc::new(Shared {
            runner: Runner { tid: sys::own_tid(), clock: sys::cpu_clock()? },
            below: Below::from_now_on(),
            wake: event()?,
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

    /// Jobs are measured, and the runner sleeps until this instant: nothing is looked at before, unless a signal comes.
    pub fn rest_until(&self, end: Instant) {
        self.shared.rests_until.store((end + LOOK).as_nanos(), Ordering::Relaxed);
        // Refused, as where SCHED_DEADLINE is full or the runner may not use all CPUs, it has what SCHED_OTHER has.
        let _ = sys::set_standing(self.tid, ASLEEP);
    }

    /// The runner serves a deployment for as long as it likes: nothing is looked at before a signal comes.
    pub fn rest(&self) {
        self.shared.rests_until.store(i64::MAX, Ordering::Relaxed);
    }

    /// The runner ends what it has started.
    pub fn look(&self) {
        self.shared.rests_until.store(0, Ordering::Relaxed);
        let _ = sys::set_standing(self.tid, ORDINARY);
    }

    /// What it had to do.
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
        // The runner's processor time when it was found waiting for a CPU.
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
                "process {pid} (`{name}`) had priority {RUNNER_PRIORITY} and kept the runner from running: it was put under SCHED_OTHER"
            )
        };
        let mut remarks = self.remarks.lock().unwrap_or_else(PoisonError::into_inner);
        remarks.extend(descendants::shorten(calmed.into_iter().map(remark).collect(), "were put there, too"));
    }
}

impl Runner {
    /// Whether it wants a CPU, or waits for a process that may want one.
    fn waits(&self) -> bool {
        urgent::is_waiting() || macrotick_host::proc::state(self.tid) == Some('R')
    }

    fn time(&self) -> Duration {
        sys::time_of(self.clock)
    }
}

fn event() -> io::Result<OwnedFd> {
    // SAFETY: the descriptor is fresh and ours.
    unsafe {
        match libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) {
            -1 => Err(io::Error::last_os_error()),
            fd => Ok(OwnedFd::from_raw_fd(fd)),
        }
    }
}
