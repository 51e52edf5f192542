//! The threads that ran, with their instants: `sched_switch` from tracefs.

use std::fs;

use crate::check::Check;

const TRACEFS: &str = "/sys/kernel/tracing";

fn set(file: &str, value: &str) -> Check {
    let path = format!("{TRACEFS}/{file}");
    fs::write(&path, value).map_err(|error| format!("{path}: {error}"))
}

/// A switch to another thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switch {
    /// The instant, in nanoseconds of `CLOCK_MONOTONIC`, with a resolution of 1 us.
    pub at_ns: u64,
    /// The CPU.
    pub cpu: usize,
    /// The name of the thread that runs from this instant on.
    pub next: String,
}

/// Starts to record.
pub fn start() -> Check {
    set("tracing_on", "0")?;
    set("trace_clock", "mono")?;
    set("buffer_size_kb", "2048")?;
    set("trace", "")?;
    set("events/sched/sched_switch/enable", "1")?;
    set("tracing_on", "1")
}

/// Stops recording, and returns the switches.
pub fn stop() -> Check<Vec<Switch>> {
    set("tracing_on", "0")?;
    set("events/sched/sched_switch/enable", "0")?;
    let text = fs::read_to_string(format!("{TRACEFS}/trace")).map_err(|error| error.to_string())?;
    Ok(text.lines().filter_map(parse).collect())
}

/// Returns the events of one of the class's tracepoints while something happens: the fields, one line for each event.
pub fn said(event: &str, happens: impl FnOnce() -> Check) -> Check<Vec<String>> {
    let enable = format!("events/macrotick/{event}/enable");
    set("trace", "")?;
    set(&enable, "1")?;
    set("tracing_on", "1")?;
    let happened = happens();
    set(&enable, "0")?;
    let text = fs::read_to_string(format!("{TRACEFS}/trace")).map_err(|error| error.to_string())?;
    happened?;
    let head = format!(": {event}: ");
    Ok(text.lines().filter_map(|line| Some(line.split_once(&head)?.1.to_owned())).collect())
}

/// Parses `comm-pid [001] d..2. 12.345678: sched_switch: ... ==> next_comm=NAME next_pid=...`.
fn parse(line: &str) -> Option<Switch> {
    let (head, event) = line.split_once(": sched_switch: ")?;
    let (seconds, micros) = head.rsplit_once(' ')?.1.split_once('.')?;
    let at_ns = seconds.parse::<u64>().ok()? * 1_000_000_000 + micros.parse::<u64>().ok()? * 1000;
    let cpu = head.rsplit_once('[')?.1.split_once(']')?.0.parse().ok()?;
    let next = event.split_once("next_comm=")?.1.split_once(" next_pid=")?.0.to_owned();
    Some(Switch { at_ns, cpu, next })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str =
        "          <idle>-0       [001] d..2.     3.000120: sched_switch: prev_comm=swapper/1 prev_pid=0 \
                        prev_prio=120 prev_state=R ==> next_comm=gt-a next_pid=55 next_prio=0";

    #[test]
    fn lines_are_read() {
        assert_eq!(parse(LINE), Some(Switch { at_ns: 3_000_120_000, cpu: 1, next: "gt-a".into() }));
        assert_eq!(parse("# tracer: nop"), None);
    }
}
