//! The recorded events.

use std::collections::BTreeMap;

use macrotick_host::sys::Tid;

/// An event of a CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its instant, in nanoseconds of `CLOCK_MONOTONIC`.
    pub at: i64,
    /// Its CPU.
    pub cpu: u32,
    /// The thread that the CPU was running.
    pub thread: Tid,
    /// The kind of event.
    pub what: What,
}

/// A kind of event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// The CPU changes from the event's thread to another one.
    Switch {
        /// The state of the event's thread.
        state: State,
        /// The thread that runs from now on.
        next: Tid,
        /// Its priority in the kernel: 0 in the class of windows.
        priority: i32,
    },
    /// The event's thread, or an interrupt on top of it, makes a thread ready.
    Wakes {
        /// The thread.
        thread: Tid,
        /// Its priority in the kernel: 0 in the class of windows.
        priority: i32,
    },
    /// An interrupt begins. It has the number of a device, or the name of an interrupt of the CPU itself.
    InterruptBegins(String),
    /// The innermost interrupt ends.
    InterruptEnds,
    /// The event's thread begins with the work of a softirq.
    SoftirqBegins(Softirq),
    /// The event's thread ends the work of a softirq.
    SoftirqEnds,
    /// The event's thread begins to wait for a lock of the kernel at this address.
    WaitsForLock(u64),
    /// The event's thread has waited for a lock.
    HasLock,
    /// The event's thread touches a page that it cannot use yet.
    PageFault,
    /// A thread ends.
    Exits(Tid),
    /// A window of an entity begins. Its instant is that of the table.
    WindowBegins {
        /// The entity.
        entity: String,
        /// The begin by the table, in nanoseconds of `CLOCK_MONOTONIC`.
        instant: i64,
    },
    /// A window of an entity had passed when its interrupt came.
    WindowSkipped {
        /// The entity.
        entity: String,
        /// The begin by the table, in nanoseconds of `CLOCK_MONOTONIC`.
        instant: i64,
    },
    /// The kernel counts a miss of an entity, at the end of a window with a deadline.
    Misses {
        /// The entity.
        entity: String,
        /// The deadline by the table, in nanoseconds of `CLOCK_MONOTONIC`.
        instant: i64,
    },
    /// The event's thread gets a job.
    JobBegins(JobOf),
    /// The event's thread has done a job.
    JobEnds(JobOf),
}

/// A job of an entity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobOf {
    /// The entity.
    pub entity: String,
    /// The number of the job since the epoch.
    pub job: u64,
    /// The release by the table, in nanoseconds of `CLOCK_MONOTONIC`.
    pub nominal: i64,
}

/// The state of a thread that leaves a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It could go on.
    Preempted,
    /// It sleeps, and a signal ends the sleep.
    Sleeps,
    /// It waits in the kernel, and no signal ends that.
    Waits,
    /// A signal such as `SIGSTOP` stopped it.
    Stopped,
    /// A debugger stopped it.
    Traced,
    /// It has ended.
    Dead,
}

impl State {
    /// Returns the state of the kernel's bits (`TASK_*` in `include/linux/sched.h`).
    pub(crate) fn of(bits: u32) -> State {
        const INTERRUPTIBLE: u32 = 0x1;
        const STOPPED: u32 = 0x4;
        const TRACED: u32 = 0x8;
        /// `EXIT_DEAD`, `EXIT_ZOMBIE` and `TASK_DEAD`.
        const DEAD: u32 = 0x10 | 0x20 | 0x80;
        /// A kernel thread without work: its wait does not count as load.
        const NO_LOAD: u32 = 0x400;
        match bits {
            0 => State::Preempted,
            _ if bits & STOPPED != 0 => State::Stopped,
            _ if bits & TRACED != 0 => State::Traced,
            _ if bits & DEAD != 0 => State::Dead,
            _ if bits & (INTERRUPTIBLE | NO_LOAD) != 0 => State::Sleeps,
            _ => State::Waits,
        }
    }
}

/// A kind of softirq (`include/linux/interrupt.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Softirq(pub u32);

impl Softirq {
    const NAMES: [&'static str; 10] = [
        "high-priority tasklets",
        "timers",
        "sending packets",
        "receiving packets",
        "block devices",
        "polling of block devices",
        "tasklets",
        "load balancing",
        "high-resolution timers",
        "RCU",
    ];

    /// Returns its purpose in words.
    pub fn name(self) -> &'static str {
        Softirq::NAMES.get(self.0 as usize).copied().unwrap_or("an unknown purpose")
    }
}

/// The events of all CPUs around a miss.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recording {
    /// The events in the order of their instants.
    pub events: Vec<Event>,
    /// The names of threads.
    pub names: BTreeMap<Tid, String>,
}

impl Recording {
    /// Leaves out the events before an instant, in nanoseconds of `CLOCK_MONOTONIC`.
    pub fn since(mut self, instant: i64) -> Recording {
        self.events.retain(|event| event.at >= instant);
        self
    }

    /// Returns the name of a thread with its number.
    pub fn name(&self, thread: Tid) -> String {
        match self.names.get(&thread) {
            Some(name) => format!("`{name}` ({thread})"),
            None => format!("thread {thread}"),
        }
    }
}
