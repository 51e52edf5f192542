//! The kernel's events of some threads, through an own instance of tracefs.
//!
//! Each CPU has a ring buffer for switches, wake-ups and forks. A filter in the kernel lets only events of these threads
//! pass. Threads that they fork join them at the next reading.

use std::collections::BTreeSet;
use std::fs::File;

use macrotick_host::sys;
use macrotick_host::trace::{self, Field, Instance, Point};
use macrotick_host::HostFailure;

use crate::error::MeasureError;
use crate::event::{Change, Event};

const SWITCH: &str = "sched/sched_switch";
const WAKE: &str = "sched/sched_wakeup";
const FORK: &str = "sched/sched_process_fork";
/// The most threads in a filter. The text of a filter must fit a page of memory.
const FILTERED: usize = 80;
/// `TASK_REPORT_MAX`: the state of a thread that is preempted (include/linux/sched.h, include/trace/events/sched.h).
const PREEMPTED: i64 = 0x100;

/// The numbers and the fields of the events.
struct Points {
    switch: u16,
    prev: Field,
    prev_state: Field,
    next: Field,
    wake: u16,
    woken: Field,
    fork: u16,
    parent: Field,
    child: Field,
}

/// An event of a ring buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Switch { prev: i32, blocks: bool, next: i32 },
    Wake(i32),
    Fork { parent: i32, child: i32 },
}

/// News of the threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// An event of a thread.
    Event(Event),
    /// A new thread.
    New(i32),
}

/// A capture of events.
pub struct Capture {
    /// The ring buffer of each CPU. They are closed before the instance is removed.
    buffers: Vec<File>,
    instance: Instance,
    points: Points,
    threads: BTreeSet<i32>,
    /// Events that are later than the last reading began. Another CPU may have had an earlier one since.
    held: Vec<(i64, Told)>,
    /// The events without room that were told already.
    dropped: u64,
}

impl Capture {
    /// Starts the capture for these threads.
    ///
    /// # Errors
    ///
    /// The caller must not see the events, or the kernel has none.
    pub fn start(threads: &[i32]) -> Result<Capture, MeasureError> {
        if sys::user() != 0 {
            return Err(MeasureError::NotAllowed);
        }
        let made = Instance::of_process("macrotick-measure", &[SWITCH, WAKE, FORK]);
        let instance = made.map_err(|failure| match failure.errno() {
            Some(libc::ENOENT | libc::ENODEV) => MeasureError::NoTracePoints(failure),
            _ => failure.into(),
        })?;
        let points = Points::read(&instance)?;
        let buffers = sys::online_cpus()?.into_iter().map(|cpu| instance.open_raw(cpu));
        let buffers = buffers.collect::<Result<Vec<File>, HostFailure>>()?;
        let threads = threads.iter().copied().collect();
        let capture = Capture { buffers, instance, points, threads, held: Vec::new(), dropped: 0 };
        capture.filter()?;
        capture.instance.start()?;
        Ok(capture)
    }

    /// Sets the filters.
    fn filter(&self) -> Result<(), MeasureError> {
        self.instance.filter(SWITCH, &filter(&self.threads, &["prev_pid", "next_pid"]))?;
        Ok(self.instance.filter(WAKE, &filter(&self.threads, &["pid"]))?)
    }

    /// Returns what happened until now, in order.
    pub fn read(&mut self) -> Result<Vec<News>, MeasureError> {
        let until = sys::now().as_nanos();
        let (points, held) = (&self.points, &mut self.held);
        for buffer in &mut self.buffers {
            let read = trace::drain(buffer, |at, event| held.extend(points.parse(event).map(|told| (at, told))));
            read.map_err(HostFailure::system("read events of the scheduler"))?;
        }
        self.held.sort_by_key(|&(at, _)| at);
        let ready = self.held.partition_point(|&(at, _)| at <= until);
        let told: Vec<(i64, Told)> = self.held.drain(..ready).collect();
        let mut news = Vec::new();
        told.into_iter().for_each(|(at, told)| self.take(at, told, &mut news));
        if news.iter().any(|news| matches!(news, News::New(_))) {
            self.filter()?;
        }
        Ok(news)
    }

    fn take(&mut self, at: i64, told: Told, news: &mut Vec<News>) {
        let mut tell = |thread: i32, change| {
            if self.threads.contains(&thread) {
                news.push(News::Event(Event { at, thread, change }));
            }
        };
        match told {
            Told::Switch { prev, blocks, next } => {
                tell(prev, if blocks { Change::Blocks } else { Change::Preempted });
                tell(next, Change::Runs);
            }
            Told::Wake(thread) => tell(thread, Change::Wakes),
            Told::Fork { parent, child } => {
                if self.threads.contains(&parent) && self.threads.insert(child) {
                    news.push(News::New(child));
                }
            }
        }
    }

    /// Returns the number of events for which there was no room since the last call.
    pub fn lost(&mut self) -> Result<u64, MeasureError> {
        let dropped = self.instance.dropped()?;
        Ok(dropped - std::mem::replace(&mut self.dropped, dropped))
    }
}

/// Returns a filter for events with one of the threads in one of the fields. With too many threads all events pass.
fn filter(threads: &BTreeSet<i32>, fields: &[&str]) -> String {
    if threads.len() > FILTERED {
        return format!("{} >= 0", fields[0]);
    }
    let tests = threads.iter().flat_map(|thread| fields.iter().map(move |field| format!("{field}=={thread}")));
    tests.collect::<Vec<_>>().join("||")
}

impl Points {
    fn read(instance: &Instance) -> Result<Points, MeasureError> {
        let read = |name| Point::read(instance, name);
        let (switch, wake, fork) = (read(SWITCH)?, read(WAKE)?, read(FORK)?);
        Ok(Points {
            switch: switch.id,
            prev: switch.field("prev_pid")?,
            prev_state: switch.field("prev_state")?,
            next: switch.field("next_pid")?,
            wake: wake.id,
            woken: wake.field("pid")?,
            fork: fork.id,
            parent: fork.field("parent_pid")?,
            child: fork.field("child_pid")?,
        })
    }

    /// Parses an event, which begins with the number of its trace point.
    fn parse(&self, event: &[u8]) -> Option<Told> {
        let id = |field: Field| field.of(event) as i32;
        match u16::from_ne_bytes(event.get(..2)?.try_into().ok()?) {
            point if point == self.switch => {
                let state = self.prev_state.of(event);
                let blocks = state != 0 && state & PREEMPTED == 0;
                Some(Told::Switch { prev: id(self.prev), blocks, next: id(self.next) })
            }
            point if point == self.wake => Some(Told::Wake(id(self.woken))),
            point if point == self.fork => Some(Told::Fork { parent: id(self.parent), child: id(self.child) }),
            _ => None,
        }
    }
}
