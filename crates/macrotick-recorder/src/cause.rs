//! The causes of a miss.

use macrotick_host::sys::Tid;

use crate::event::{Recording, Softirq, State};

/// Something that had the windows of a job, or kept the job from them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// The job computed for longer than its execution time.
    TooLong,
    /// The same, with this many page faults.
    PageFaults(u64),
    /// An earlier job of the same task had not ended.
    EarlierJob(u64),
    /// An interrupt.
    Interrupt(String),
    /// The work of a softirq, inside the thread of the task.
    Softirq(Softirq),
    /// The CPU took no interrupt while this thread ran, so the window began late.
    NoInterrupts(Tid),
    /// Another thread ran although the job was ready.
    Thread(Tid),
    /// The CPU was idle although the job was ready.
    Idle,
    /// The thread of the task is not in the class of windows.
    NotMember,
    /// The thread waited until something made it ready.
    Waited {
        /// The way in which it waited.
        how: Wait,
        /// The thread or interrupt that made it ready.
        until: Waker,
    },
    /// The thread had ended.
    Ended,
}

/// A way in which a thread waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wait {
    /// It sleeps.
    Sleep,
    /// It waits in the kernel, and no signal ends that.
    Kernel,
    /// It waits for a lock of the kernel.
    KernelLock,
    /// A signal such as `SIGSTOP` stopped it.
    Stop,
    /// A debugger stopped it.
    Debugger,
}

impl Wait {
    pub(crate) fn of(state: State, for_lock: bool) -> Wait {
        match state {
            State::Stopped => Wait::Stop,
            State::Traced => Wait::Debugger,
            _ if for_lock => Wait::KernelLock,
            State::Waits => Wait::Kernel,
            _ => Wait::Sleep,
        }
    }
}

/// A thread or interrupt that makes a thread ready.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Waker {
    /// Another thread.
    Thread(Tid),
    /// An interrupt.
    Interrupt(String),
    /// Nothing, until the end of the recording.
    Nothing,
}

impl Cause {
    /// Returns the sentence about a cause that had `ns` nanoseconds of the windows.
    pub(crate) fn sentence(&self, recording: &Recording, ns: i64) -> String {
        let time = micros(ns);
        match self {
            Cause::TooLong => format!("it computed {time} longer than its execution time"),
            Cause::PageFaults(count) => {
                let faults = if *count == 1 { "page fault".to_owned() } else { format!("{count} page faults") };
                format!("it computed {time} longer than its execution time, with {faults}")
            }
            Cause::EarlierJob(job) => format!("job {job} of the same task had not ended, and took {time}"),
            Cause::Interrupt(name) => format!("interrupt {name} took {time}"),
            Cause::Softirq(softirq) => {
                format!("its thread did the work of a softirq for {}, which took {time}", softirq.name())
            }
            Cause::NoInterrupts(0) => format!(
                "its window began {time} late: the idle CPU took no interrupt, so firmware or a hypervisor had it"
            ),
            Cause::NoInterrupts(thread) => format!(
                "its window began {time} late: the CPU took no interrupt while {} ran. The kernel had switched them off, \
                 or firmware or a hypervisor had the CPU",
                recording.name(*thread)
            ),
            Cause::Thread(thread) => format!("{} ran for {time} in its windows", recording.name(*thread)),
            Cause::Idle => format!("the CPU was idle for {time} in its windows, although it was ready"),
            Cause::NotMember => {
                format!("its thread was ready for {time} in its windows, but it is not in SCHED_TT")
            }
            Cause::Waited { how, until } => {
                let how = match how {
                    Wait::Sleep => "it slept",
                    Wait::Kernel => "it waited in the kernel, without reaction to signals,",
                    Wait::KernelLock => "it waited for a lock of the kernel",
                    Wait::Stop => "a signal stopped it",
                    Wait::Debugger => "a debugger stopped it",
                };
                let until = match until {
                    Waker::Thread(thread) => format!(", until {} woke it", recording.name(*thread)),
                    Waker::Interrupt(name) => format!(", until interrupt {name} woke it"),
                    Waker::Nothing => ", and nothing has woken it".to_owned(),
                };
                format!("{how} for {time} in its windows{until}")
            }
            Cause::Ended => "its thread had ended".to_owned(),
        }
    }
}

/// Writes a time in microseconds, or in milliseconds if it is long.
pub(crate) fn micros(ns: i64) -> String {
    match ns {
        0..10_000_000 => format!("{} us", (ns + 500) / 1000),
        _ => format!("{:.1} ms", ns as f64 / 1e6),
    }
}
