//! Divides the windows of a missed job among what had them.

use std::collections::BTreeMap;

use macrotick_host::sys::Tid;

use crate::cause::{micros, Cause, Wait, Waker};
use crate::event::{Event, Recording, Softirq, State, What};

/// A window that begins later than this after its instant is late, in nanoseconds. The interrupt itself takes less.
const LATE: i64 = 10_000;
/// The longest time of a page fault without a wait, in nanoseconds: it clears a page.
const FAULT: i64 = 20_000;
/// The priority of threads in the class of windows (`MACROTICK_PRIO`).
const MEMBER: i32 = 0;
/// The number of the idle threads.
const IDLE: Tid = 0;

/// A window of the missed job, in nanoseconds of `CLOCK_MONOTONIC`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planned {
    /// Its CPU.
    pub cpu: u32,
    /// Its begin.
    pub from: i64,
    /// Its end.
    pub to: i64,
}

/// A missed job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missed {
    /// Its task.
    pub task: String,
    /// The thread of the task.
    pub thread: Tid,
    /// Its number since the epoch.
    pub job: u64,
    /// Its execution time by the plan, in nanoseconds.
    pub wcet: i64,
    /// Its windows, from its release to its deadline, in order.
    pub windows: Vec<Planned>,
}

/// The explanation of a miss.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explained {
    /// The causes, and how many nanoseconds of the windows each of them had. The largest is first.
    pub parts: Vec<(Cause, i64)>,
    /// A sentence for people.
    pub sentence: String,
}

impl Explained {
    /// Returns the largest cause.
    pub fn cause(&self) -> Option<&Cause> {
        self.parts.first().map(|(cause, _)| cause)
    }
}

/// Explains a miss by a recording.
pub fn explain(recording: &Recording, missed: &Missed) -> Explained {
    let mut walk = Walk::new(recording, missed);
    recording.events.iter().for_each(|event| walk.event(event));
    walk.settle(Waker::Nothing);
    let mut parts: Vec<(Cause, i64)> = std::mem::take(&mut walk.parts).into_iter().collect();
    let excess = walk.own - missed.wcet;
    if excess > 0 {
        let (faults, time) = walk.page_faults();
        let cause = if time * 2 >= excess { Cause::PageFaults(faults) } else { Cause::TooLong };
        parts.push((cause, excess));
    }
    parts.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
    let sentence = sentence(recording, missed, &parts, walk.own);
    Explained { parts, sentence }
}

fn sentence(recording: &Recording, missed: &Missed, parts: &[(Cause, i64)], own: i64) -> String {
    let head = format!("job {} of `{}` missed its deadline", missed.job, missed.task);
    let (Some(first), Some(event)) = (missed.windows.first(), recording.events.first()) else {
        return format!("{head}: nothing was recorded");
    };
    let begins_late = event.at - first.from;
    if begins_late > 0 {
        return format!("{head}: the recording begins {} after its first window", micros(begins_late));
    }
    match parts.first() {
        Some((cause, ns)) => format!("{head}: {}", cause.sentence(recording, *ns)),
        None => {
            let room: i64 = missed.windows.iter().map(|window| window.to - window.from).sum();
            format!("{head}: it computed {} in windows of {}, and nothing else had them", micros(own), micros(room))
        }
    }
}

/// The state of the task's thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Thread {
    Runs(u32),
    Ready,
    /// It waits; whether it is for a lock of the kernel.
    Off(State, bool),
    Ended,
}

/// The state of a CPU.
#[derive(Debug, Default)]
struct Cpu {
    /// The thread, if an event has told it.
    thread: Option<Tid>,
    /// The interrupts on top of each other, the innermost last.
    interrupts: Vec<String>,
}

/// The state at an instant of a recording.
struct Walk<'a> {
    missed: &'a Missed,
    /// The gaps between the instants of the entity's windows and their interrupts, within the windows of the job.
    late: Vec<Planned>,
    at: i64,
    cpus: BTreeMap<u32, Cpu>,
    thread: Thread,
    priority: i32,
    softirq: Option<Softirq>,
    waits_for_lock: bool,
    /// The job that the thread works on.
    job: Option<u64>,
    /// The time in windows since the thread went off.
    off: i64,
    /// The time that the job computed, also after its deadline, and its page faults.
    own: i64,
    faults: Vec<i64>,
    /// Whether the job has ended.
    is_done: bool,
    parts: BTreeMap<Cause, i64>,
}

impl<'a> Walk<'a> {
    fn new(recording: &Recording, missed: &'a Missed) -> Walk<'a> {
        let late = |event: &Event| match &event.what {
            What::WindowBegins { entity, instant } | What::WindowSkipped { entity, instant }
                if *entity == missed.task && event.at > instant + LATE =>
            {
                let gap = Planned { cpu: event.cpu, from: *instant, to: event.at };
                missed.windows.iter().any(|window| window.from < gap.to && gap.from < window.to).then_some(gap)
            }
            _ => None,
        };
        Walk {
            missed,
            late: recording.events.iter().filter_map(late).collect(),
            at: recording.events.first().map_or(0, |event| event.at),
            cpus: BTreeMap::new(),
            // Until an event tells otherwise. A thread that waits for its next job stays on the run queue.
            thread: Thread::Ready,
            priority: MEMBER,
            softirq: None,
            waits_for_lock: false,
            job: None,
            off: 0,
            own: 0,
            faults: Vec::new(),
            is_done: false,
            parts: BTreeMap::new(),
        }
    }

    fn event(&mut self, event: &Event) {
        self.pass(event.at);
        let cpu = self.cpus.entry(event.cpu).or_default();
        cpu.thread = Some(event.thread);
        let is_ours = event.thread == self.missed.thread;
        if is_ours && cpu.interrupts.is_empty() && !matches!(event.what, What::Switch { .. }) {
            self.settle(Waker::Nothing);
            self.thread = Thread::Runs(event.cpu);
        }
        let cpu = self.cpus.entry(event.cpu).or_default();
        match &event.what {
            What::Switch { state, next, priority } => {
                cpu.thread = Some(*next);
                // A switch is not inside an interrupt. Its end may be missing.
                cpu.interrupts.clear();
                if is_ours {
                    self.thread = match state {
                        State::Preempted => Thread::Ready,
                        State::Dead => Thread::Ended,
                        state => Thread::Off(*state, self.waits_for_lock),
                    };
                } else if *next == self.missed.thread {
                    self.settle(Waker::Nothing);
                    (self.thread, self.priority) = (Thread::Runs(event.cpu), *priority);
                }
            }
            What::Wakes { thread, priority } if *thread == self.missed.thread => {
                let waker = match cpu.interrupts.last() {
                    Some(name) => Waker::Interrupt(name.clone()),
                    None => Waker::Thread(event.thread),
                };
                if matches!(self.thread, Thread::Off(..)) {
                    self.settle(waker);
                    (self.thread, self.priority) = (Thread::Ready, *priority);
                }
            }
            What::InterruptBegins(name) => cpu.interrupts.push(name.clone()),
            What::InterruptEnds => drop(cpu.interrupts.pop()),
            What::SoftirqBegins(softirq) if is_ours => self.softirq = Some(*softirq),
            What::SoftirqEnds if is_ours => self.softirq = None,
            What::WaitsForLock(_) if is_ours => self.waits_for_lock = true,
            What::HasLock if is_ours => self.waits_for_lock = false,
            What::PageFault if is_ours && self.is_of_job(event.at) => self.faults.push(event.at),
            What::Exits(thread) if *thread == self.missed.thread => self.thread = Thread::Ended,
            What::JobBegins(job) if job.entity == self.missed.task => self.job = Some(job.job),
            What::JobEnds(job) if job.entity == self.missed.task => {
                self.job = None;
                self.is_done |= job.job >= self.missed.job;
            }
            _ => {}
        }
    }

    /// Returns the number of page faults, and the time that they took at most. The shortest time from one to the next
    /// has a whole page fault.
    fn page_faults(&self) -> (u64, i64) {
        let shortest = self.faults.windows(2).map(|pair| pair[1] - pair[0]).min();
        let time = shortest.map_or(0, |shortest| shortest.min(FAULT));
        (self.faults.len() as u64, self.faults.len() as i64 * time)
    }

    /// Whether the thread works on the missed job at an instant. A job that waited for an earlier one begins without an
    /// event.
    fn is_of_job(&self, at: i64) -> bool {
        let has_begun = self.missed.windows.first().is_some_and(|window| window.from <= at);
        has_begun && !self.is_done && self.job.is_none_or(|job| job == self.missed.job)
    }

    /// Divides the time up to an instant.
    fn pass(&mut self, to: i64) {
        let from = std::mem::replace(&mut self.at, to);
        if let Thread::Runs(on) = self.thread {
            let begin = self.missed.windows.first().map_or(from, |window| window.from.max(from));
            let is_free = self.softirq.is_none() && self.cpus.get(&on).is_none_or(|cpu| cpu.interrupts.is_empty());
            if is_free && self.is_of_job(begin) {
                self.own += (to - begin).max(0);
            }
        }
        for index in 0..self.missed.windows.len() {
            let window = self.missed.windows[index];
            let (begin, end) = (from.max(window.from), to.min(window.to));
            // A late begin is another part.
            let cut = self.late.iter().flat_map(|gap| [gap.from, gap.to]).filter(|at| (begin..end).contains(at));
            let mut cuts: Vec<i64> = cut.chain([end]).collect();
            cuts.sort_unstable();
            let mut begin = begin;
            for cut in cuts {
                if cut > begin {
                    self.add(window.cpu, begin, cut - begin);
                    begin = cut;
                }
            }
        }
    }

    /// Adds a part of a window to what has it.
    fn add(&mut self, cpu: u32, at: i64, ns: i64) {
        let on = if let Thread::Runs(on) = self.thread { on } else { cpu };
        let state = self.cpus.get(&on);
        let interrupt = state.and_then(|cpu| cpu.interrupts.last()).map(|name| Cause::Interrupt(name.clone()));
        let cause = match (self.thread, interrupt) {
            (Thread::Off(..), _) => {
                self.off += ns;
                return;
            }
            (Thread::Ended, _) => Cause::Ended,
            (_, Some(cause)) => cause,
            (Thread::Ready, None) => {
                let current = state.and_then(|cpu| cpu.thread).unwrap_or(IDLE);
                let is_late = self.late.iter().any(|gap| gap.cpu == cpu && (gap.from..gap.to).contains(&at));
                match current {
                    current if is_late => Cause::NoInterrupts(current),
                    _ if self.priority != MEMBER => Cause::NotMember,
                    IDLE => Cause::Idle,
                    current => Cause::Thread(current),
                }
            }
            (Thread::Runs(_), None) => match (self.softirq, self.job) {
                (Some(softirq), _) => Cause::Softirq(softirq),
                (None, Some(job)) if job < self.missed.job => Cause::EarlierJob(job),
                _ => return,
            },
        };
        *self.parts.entry(cause).or_default() += ns;
    }

    /// The thread waited for something, if it was off.
    fn settle(&mut self, until: Waker) {
        let ns = std::mem::take(&mut self.off);
        if let (Thread::Off(state, for_lock), true) = (self.thread, ns > 0) {
            *self.parts.entry(Cause::Waited { how: Wait::of(state, for_lock), until }).or_default() += ns;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::JobOf;

    const TASK: Tid = 10;
    const OTHER: Tid = 20;
    const US: i64 = 1000;

    /// A recording of CPU 0, with instants in microseconds. The window of the task is that from 100 to 200.
    struct Story(Recording);

    impl Story {
        fn new() -> Story {
            let names = [(TASK, "control"), (OTHER, "logger")].map(|(thread, name)| (thread, name.to_owned()));
            Story(Recording { events: Vec::new(), names: names.into() }).at(50, OTHER, What::HasLock)
        }

        fn at(mut self, us: i64, thread: Tid, what: What) -> Story {
            self.0.events.push(Event { at: us * US, cpu: 0, thread, what });
            self
        }

        fn switch(self, us: i64, from: Tid, state: State, to: Tid) -> Story {
            self.at(us, from, What::Switch { state, next: to, priority: MEMBER })
        }

        fn wakes(self, us: i64, by: Tid) -> Story {
            self.at(us, by, What::Wakes { thread: TASK, priority: MEMBER })
        }

        /// The window opens, and the task gets its job.
        fn opens(self) -> Story {
            self.opens_at(101)
        }

        fn opens_at(self, us: i64) -> Story {
            let window = What::WindowBegins { entity: "control".into(), instant: 100 * US };
            self.begins_job(us, 7).at(us, OTHER, window).switch(us + 1, OTHER, State::Preempted, TASK)
        }

        fn begins_job(self, us: i64, job: u64) -> Story {
            self.at(us, OTHER, What::JobBegins(JobOf { entity: "control".into(), job, nominal: 100 * US }))
        }

        fn explained(self) -> Explained {
            let story = self.at(300, OTHER, What::HasLock);
            let windows = vec![Planned { cpu: 0, from: 100 * US, to: 200 * US }];
            let missed = Missed { task: "control".into(), thread: TASK, job: 7, wcet: 60 * US, windows };
            explain(&story.0, &missed)
        }

        fn cause(self) -> (Cause, i64) {
            let explained = self.explained();
            let (cause, ns) = explained.parts.first().cloned().unwrap_or_else(|| panic!("{explained:?}"));
            (cause, ns / US)
        }
    }

    #[test]
    fn a_job_that_computes_for_too_long_is_named_with_its_page_faults() {
        assert_eq!(Story::new().opens().cause(), (Cause::TooLong, 138));
        let faults = (0..90).fold(Story::new().opens(), |story, at| story.at(110 + at, TASK, What::PageFault));
        assert_eq!(faults.cause(), (Cause::PageFaults(90), 138));
        let few = Story::new().opens().at(110, TASK, What::PageFault);
        assert_eq!(few.cause(), (Cause::TooLong, 138));
    }

    #[test]
    fn waits_are_named_with_what_ends_them() {
        let sleeps = |state| Story::new().opens().switch(110, TASK, state, OTHER);
        let waited = |how, until| Cause::Waited { how, until };
        assert_eq!(sleeps(State::Sleeps).cause(), (waited(Wait::Sleep, Waker::Nothing), 90));
        let woken = sleeps(State::Sleeps).wakes(250, OTHER);
        assert_eq!(woken.cause(), (waited(Wait::Sleep, Waker::Thread(OTHER)), 90));
        let timer = || "timer".to_owned();
        let by_timer = sleeps(State::Waits)
            .at(180, OTHER, What::InterruptBegins(timer()))
            .wakes(181, OTHER)
            .at(182, OTHER, What::InterruptEnds)
            .switch(183, OTHER, State::Preempted, TASK);
        assert_eq!(by_timer.cause(), (waited(Wait::Kernel, Waker::Interrupt(timer())), 71));
        for (state, how) in [(State::Stopped, Wait::Stop), (State::Traced, Wait::Debugger)] {
            assert_eq!(sleeps(state).wakes(190, OTHER).cause(), (waited(how, Waker::Thread(OTHER)), 80));
        }
        let lock = Story::new().opens().at(109, TASK, What::WaitsForLock(16)).switch(110, TASK, State::Waits, OTHER);
        assert_eq!(lock.wakes(250, OTHER).cause(), (waited(Wait::KernelLock, Waker::Thread(OTHER)), 90));
    }

    #[test]
    fn what_runs_instead_is_named() {
        let preempted = Story::new().opens().switch(110, TASK, State::Preempted, OTHER);
        assert_eq!(preempted.cause(), (Cause::Thread(OTHER), 92));
        let interrupt = Story::new().opens().at(110, TASK, What::InterruptBegins("24 (eth0)".into())).at(
            190,
            TASK,
            What::InterruptEnds,
        );
        assert_eq!(interrupt.cause(), (Cause::Interrupt("24 (eth0)".into()), 80));
        let softirq =
            Story::new().opens().at(110, TASK, What::SoftirqBegins(Softirq(3))).at(190, TASK, What::SoftirqEnds);
        assert_eq!(softirq.cause(), (Cause::Softirq(Softirq(3)), 80));
        let job = JobOf { entity: "control".into(), job: 7, nominal: 100 * US };
        let idle = Story::new().switch(60, OTHER, State::Sleeps, 0).at(101, 0, What::JobBegins(job));
        assert_eq!(idle.cause(), (Cause::Idle, 100));
    }

    #[test]
    fn late_windows_and_strangers_are_named() {
        assert_eq!(Story::new().opens_at(180).cause(), (Cause::NoInterrupts(OTHER), 80));
        let left = Story::new().switch(60, TASK, State::Sleeps, OTHER);
        let left = left.at(70, OTHER, What::Wakes { thread: TASK, priority: 120 }).begins_job(101, 7);
        assert_eq!(left.cause(), (Cause::NotMember, 100));
        let ended = Story::new().opens().at(120, TASK, What::Exits(TASK)).switch(121, TASK, State::Dead, OTHER);
        assert_eq!(ended.cause(), (Cause::Ended, 80));
    }

    #[test]
    fn an_earlier_job_is_named() {
        let late = Story::new().begins_job(60, 6).switch(101, OTHER, State::Preempted, TASK);
        let end = What::JobEnds(JobOf { entity: "control".into(), job: 6, nominal: 60 * US });
        assert_eq!(late.at(171, TASK, end).cause(), (Cause::EarlierJob(6), 70));
    }

    #[test]
    fn sentences_have_names_and_times() {
        let told = |story: Story| story.explained().sentence;
        assert_eq!(
            told(Story::new().opens().switch(110, TASK, State::Preempted, OTHER)),
            "job 7 of `control` missed its deadline: `logger` (20) ran for 92 us in its windows"
        );
        let short = Story(Recording::default()).at(150, TASK, What::HasLock);
        assert_eq!(
            told(short),
            "job 7 of `control` missed its deadline: the recording begins 50 us after its first window"
        );
    }
}
