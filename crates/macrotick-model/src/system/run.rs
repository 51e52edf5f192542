//! What jobs do.

use super::program::Program;
use crate::keys::{forms, object, Kind};
use crate::time::Duration;

forms! {
    /// What a job of a task does.
    pub enum Workload: "a job" {
        key "spin" Spin: ExecutionTime = "Computes for that time.";
        key "udp-send" UdpSend: UdpSend = "Computes, then sends one UDP datagram.";
        key "udp-receive" UdpReceive: UdpReceive = "Waits for one UDP datagram, then computes.";
        key "program" Program: Program
            = "Whatever the program does: it uses `include/macrotick.h` ([how](write-a-task.md)).";
    }
}

object! {
    /// A job that sends.
    pub struct UdpSend: "`udp-send`" {
        "spin" spin: ExecutionTime, or "with [room](#what-runs) in the wcet" { ExecutionTime::UNSAID } = "Time computed before sending.";
        "to" to: String [Kind::Text("address:port")], required = "Where it goes.";
    }
}

object! {
    /// A job that receives.
    pub struct UdpReceive: "`udp-receive`" {
        "spin" spin: ExecutionTime, or "with [room](#what-runs) in the wcet" { ExecutionTime::UNSAID } = "Time computed after receiving.";
        "at" at: String [Kind::Text("address:port")], required = "Where it comes in.";
    }
}

forms! {
    /// The execution time of a job.
    pub enum ExecutionTime: "an execution time" {
        plain Fixed: Duration = "Always the same.";
        key "uniform" Uniform: Uniform = "Anything between two times, all equally likely.";
        key "gumbel" Gumbel: Gumbel
            = "Mostly near the mode, with an exponential tail (the SCHED_TT paper, section 4.1.3).";
    }
}

object! {
    /// Uniform over `[min, max]`.
    pub struct Uniform: "`uniform`" {
        "min" min: Duration, required = "The shortest time.";
        "max" max: Duration, required = "The longest time.";
    }
}

object! {
    /// Gumbel, with an exponential tail cut off at `max` (SCHED_TT paper, section 4.1.3).
    pub struct Gumbel: "`gumbel`" {
        "mode" mode: Duration, required = "The most likely time.";
        "scale" scale: Duration, required = "The scale of the tail.";
        "max" max: Duration, required = "The longest time: samples beyond are drawn again.";
    }
}

impl ExecutionTime {
    /// Stands for one that follows from the wcet, until that is known. No text says it.
    const UNSAID: ExecutionTime = ExecutionTime::Fixed(Duration::from_nanos(i64::MIN));

    /// What a job computes whose description does not say: the wcet less a tenth, and less 20 us where that is more. A window
    /// has the dispatch in it, and what comes after the computation. Of a short one a half is left, where that leaves room for the
    /// dispatch (4.5 us in the lab); else what does, and at least a fifth.
    pub fn within(wcet: Duration) -> ExecutionTime {
        let (part, us) = (|of| Duration::from_nanos(wcet.as_nanos() / of), Duration::from_micros);
        let room = part(10).max(us(20)).min(part(2).max(us(5))).min(wcet - part(5));
        ExecutionTime::Fixed((wcet - room).max(Duration::from_nanos(1)))
    }

    /// The longest time a job may take.
    pub fn max(&self) -> Duration {
        match *self {
            ExecutionTime::Fixed(time) => time,
            ExecutionTime::Uniform(Uniform { max, .. }) | ExecutionTime::Gumbel(Gumbel { max, .. }) => max,
        }
    }
}

impl Workload {
    pub(super) fn complete(&mut self, wcet: Duration) {
        match self {
            Workload::UdpSend(UdpSend { spin, .. }) | Workload::UdpReceive(UdpReceive { spin, .. })
                if *spin == ExecutionTime::UNSAID =>
            {
                *spin = ExecutionTime::within(wcet);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_said_leaves_room_for_the_dispatch() {
        let us = Duration::from_micros;
        for (wcet, computed) in [(1000, 900), (100, 80), (40, 20), (20, 10), (10, 5), (8, 3), (7, 2), (5, 1)] {
            assert_eq!(ExecutionTime::within(us(wcet)), ExecutionTime::Fixed(us(computed)), "{wcet} us");
        }
        assert_eq!(ExecutionTime::within(Duration::from_nanos(1)), ExecutionTime::Fixed(Duration::from_nanos(1)));
    }
}
