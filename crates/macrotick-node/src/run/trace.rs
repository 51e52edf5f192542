//! The thread on each CPU over time: `sched_switch` through tracefs. `sched_process_fork` also shows the threads that
//! joined a pool meanwhile. The text form has a resolution of microseconds.

use std::collections::BTreeMap;

use macrotick_host::sys::Tid;
use macrotick_host::trace::Instance;
use macrotick_model::{Duration, Instant, Segment};

use crate::error::NodeError;

/// The data about threads before the trace is read.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// The names of threads. The others have the kernel's names.
    pub names: BTreeMap<Tid, String>,
    /// The threads that are in pools at the start, with their pools.
    pub pools: BTreeMap<Tid, String>,
}

impl Known {
    /// Adds a child to its parent's pool. Removes a thread that had the child's number before.
    fn forked(&mut self, fork: Fork) {
        match self.pools.get(&fork.parent).cloned() {
            Some(pool) => drop(self.pools.insert(fork.child, pool)),
            None => drop(self.pools.remove(&fork.child)),
        }
    }
}

/// The data of a trace.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Traced {
    /// The segments, in the order of CPU and start.
    pub segments: Vec<Segment>,
    /// The number of events that did not fit into the buffer.
    pub dropped: u64,
}

/// Reads the events that an instance recorded in `[epoch, epoch + length)`.
pub fn read(instance: &Instance, known: Known, epoch: Instant, length: Duration) -> Result<Traced, NodeError> {
    let trace = |source| NodeError::Trace(source);
    let (text, dropped) = (instance.text().map_err(trace)?, instance.dropped().map_err(trace)?);
    // If events are lost, the last thread on a CPU is unknown.
    let until = (dropped == 0).then_some(length);
    let events = text.lines().filter_map(parse_event);
    Ok(Traced { segments: segments(events, known, epoch, length, until), dropped })
}

/// A thread as the trace names it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Thread {
    tid: Tid,
    comm: String,
}

/// One `sched_switch`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Switch {
    cpu: u32,
    at: Instant,
    previous: Thread,
    next: Thread,
}

/// One `sched_process_fork`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fork {
    parent: Tid,
    child: Tid,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Event {
    Switch(Switch),
    Fork(Fork),
}

fn parse_event(line: &str) -> Option<Event> {
    parse_switch(line).map(Event::Switch).or_else(|| parse_fork(line).map(Event::Fork))
}

/// Parses a line of the text form: `... sched_process_fork: comm=a pid=1 child_comm=b child_pid=2`.
fn parse_fork(line: &str) -> Option<Fork> {
    let (_, event) = line.split_once(": sched_process_fork: ")?;
    let (parent, child) = event.rsplit_once(" child_comm=")?;
    let tid = |text: &str, key: &str| text.rsplit_once(key)?.1.trim().parse().ok();
    Some(Fork { parent: tid(parent, " pid=")?, child: tid(child, " child_pid=")? })
}

/// Parses a line of the text form:
/// `  <idle>-0   [000] d..2.   12.345678: sched_switch: prev_comm=a prev_pid=1 ... ==> next_comm=b next_pid=2 ...`.
/// Names may contain spaces. Therefore the parser searches fields by their names.
fn parse_switch(line: &str) -> Option<Switch> {
    let (head, event) = line.split_once(": sched_switch: ")?;
    let (previous, next) = event.split_once(" ==> ")?;
    let mut words = head.split_whitespace().rev();
    let at = parse_instant(words.next()?)?;
    let cpu = words.find_map(|word| word.strip_prefix('[')?.strip_suffix(']')?.parse().ok())?;
    Some(Switch { cpu, at, previous: parse_thread(previous, "prev")?, next: parse_thread(next, "next")? })
}

fn parse_instant(text: &str) -> Option<Instant> {
    let (seconds, micros) = text.split_once('.')?;
    let (seconds, micros): (i64, i64) = (seconds.parse().ok()?, micros.parse().ok()?);
    Some(Instant::from_nanos(seconds * 1_000_000_000 + micros * 1_000))
}

fn parse_thread(text: &str, side: &str) -> Option<Thread> {
    let (comm, rest) = text.strip_prefix(&format!("{side}_comm="))?.rsplit_once(&format!(" {side}_pid="))?;
    Some(Thread { tid: rest.split_whitespace().next()?.parse().ok()?, comm: comm.to_string() })
}

/// Converts switches to segments, cut to `[0, length)`. The last thread of each CPU runs until `until`, if given.
fn segments(
    events: impl Iterator<Item = Event>,
    mut known: Known,
    epoch: Instant,
    length: Duration,
    until: Option<Duration>,
) -> Vec<Segment> {
    let mut segments = Vec::new();
    let mut running: BTreeMap<u32, (Thread, Duration)> = BTreeMap::new();
    let mut close = |known: &Known, cpu: u32, thread: &Thread, from: Duration, to: Duration| {
        let (from, to) = (from.max(Duration::ZERO), to.min(length));
        if thread.tid == 0 || from >= to {
            return;
        }
        let who = known.names.get(&thread.tid).unwrap_or(&thread.comm).clone();
        let pool = known.pools.get(&thread.tid).cloned();
        segments.push(Segment { cpu, who, pool, start_ns: from.as_nanos(), end_ns: to.as_nanos() });
    };
    for event in events {
        let switch = match event {
            Event::Switch(switch) => switch,
            Event::Fork(fork) => {
                known.forked(fork);
                continue;
            }
        };
        let at = switch.at - epoch;
        let since = running.get(&switch.cpu).map_or(Duration::ZERO, |(_, since)| *since);
        close(&known, switch.cpu, &switch.previous, since, at);
        running.insert(switch.cpu, (switch.next, at));
    }
    for (cpu, (thread, since)) in &running {
        if let Some(until) = until {
            close(&known, *cpu, thread, *since, until);
        }
    }
    segments.sort_by_key(|segment| (segment.cpu, segment.start_ns));
    segments
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
# tracer: nop
#
          <idle>-0       [000] d..2.  1000.000090: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 \
prev_state=R ==> next_comm=control next_pid=41 next_prio=98
         control-41      [000] d..2.  1000.000110: sched_switch: prev_comm=control prev_pid=41 prev_prio=98 \
prev_state=S ==> next_comm=my [x] hog next_pid=77 next_prio=120
     my [x] hog-77       [000] d..2.  1000.000130: sched_switch: prev_comm=my [x] hog prev_pid=77 prev_prio=120 \
prev_state=R+ ==> next_comm=ktimers/0 next_pid=16 next_prio=98
";

    fn read(length: i64, until: Option<i64>) -> Vec<(String, i64, i64)> {
        let names = BTreeMap::from([(41, "controller".to_string())]);
        let epoch = Instant::from_nanos(1_000_000_100_000);
        let (length, until) = (Duration::from_micros(length), until.map(Duration::from_micros));
        let known = Known { names, ..Known::default() };
        segments(TEXT.lines().filter_map(parse_event), known, epoch, length, until)
            .into_iter()
            .map(|segment| (segment.who, segment.start_ns, segment.end_ns))
            .collect()
    }

    #[test]
    fn switches_become_stretches_since_the_epoch() {
        let named = |who: &str, start, end| (who.to_string(), start, end);
        assert_eq!(
            read(100, Some(100)),
            [named("controller", 0, 10_000), named("my [x] hog", 10_000, 30_000), named("ktimers/0", 30_000, 100_000)]
        );
    }

    #[test]
    fn the_end_is_cut_and_left_open_when_events_were_lost() {
        assert_eq!(read(20, None).last().map(|last| last.2), Some(20_000));
        assert_eq!(read(100, None).len(), 2);
    }

    #[test]
    fn other_lines_are_no_switches() {
        assert_eq!(parse_switch("CPU:0 [LOST 12 EVENTS]"), None);
        assert_eq!(TEXT.lines().filter_map(parse_event).count(), 3);
    }

    /// Process 77 is in the pool and forks 78, which forks 79. Process 80 is the child of another process, and has the
    /// number of a former member.
    #[test]
    fn children_are_in_the_pool_of_their_parents() {
        let fork = |parent, child| {
            let line = format!(
                "  my [x] hog-77  [000] .....  1000.000001: sched_process_fork: comm=a pid=3 b pid={parent} \
                 child_comm=a child_pid={child}"
            );
            parse_event(&line)
        };
        assert_eq!(fork(77, 78), Some(Event::Fork(Fork { parent: 77, child: 78 })));
        let pools = [77, 80].map(|tid| (tid, "pool".to_string())).into();
        let mut known = Known { pools, ..Known::default() };
        for (parent, child) in [(77, 78), (78, 79), (1, 80)] {
            known.forked(Fork { parent, child });
        }
        let members: Vec<Tid> = known.pools.keys().copied().collect();
        assert_eq!(members, [77, 78, 79]);
        let events = TEXT.lines().filter_map(parse_event);
        let length = Duration::from_micros(100);
        let segments = segments(events, known, Instant::from_nanos(1_000_000_100_000), length, None);
        let pools: Vec<Option<&str>> = segments.iter().map(|segment| segment.pool.as_deref()).collect();
        assert_eq!(pools, [None, Some("pool")]);
    }
}
