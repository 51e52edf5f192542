//! The work of jobs.

use super::program::Program;
use crate::keys::{forms, object, Kind};
use crate::time::Duration;

forms! {
    /// The work of a job of a task.
    pub enum Workload: "a job" {
        key "spin" Spin: ExecutionTime = "Computes for this time.";
        key "udp-send" UdpSend: UdpSend = "Computes, then sends one UDP datagram.";
        key "udp-receive" UdpReceive: UdpReceive = "Waits for one UDP datagram, then computes.";
        key "program" Program: Program
            = "Runs a program with the [task interface](task-interface.md) (`include/macrotick.h`).";
    }
}

object! {
    /// A job that sends.
    pub struct UdpSend: "`udp-send`" {
        "spin" spin: ExecutionTime, or "less than the wcet, see [What runs](#what-runs)" { ExecutionTime::UNSAID } = "Computing time before the datagram is sent.";
        "to" to: String [Kind::Text("address:port")], required = "Destination of the datagram.";
    }
}

object! {
    /// A job that receives.
    pub struct UdpReceive: "`udp-receive`" {
        "spin" spin: ExecutionTime, or "less than the wcet, see [What runs](#what-runs)" { ExecutionTime::UNSAID } = "Computing time after the datagram arrives.";
        "at" at: String [Kind::Text("address:port")], required = "Address and port at which the job waits.";
    }
}

forms! {
    /// The execution time of a job.
    pub enum ExecutionTime: "an execution time" {
        plain Fixed: Duration = "The same time for every job.";
        key "uniform" Uniform: Uniform = "Uniformly distributed between two times.";
        key "gumbel" Gumbel: Gumbel
            = "Near the mode for most jobs, with an exponential tail (the SCHED_TT paper, section 4.1.3).";
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
        "max" max: Duration, required = "The longest time. A longer sample is drawn again.";
    }
}

impl ExecutionTime {
    /// The placeholder for an execution time that follows from the wcet. No text has this value.
    const UNSAID: ExecutionTime = ExecutionTime::Fixed(Duration::from_nanos(i64::MIN));

    /// Returns the computing time of a job where the description gives none.
    ///
    /// It is the wcet less a tenth, or less 20 us if that is more. The rest is for the dispatch and for the work after
    /// the computation. Of a short wcet, the rest is at most a half, or 5 us if that is more. A dispatch takes 4.5 us
    /// in the lab. At least a fifth of the wcet remains for the computation.
    pub fn within(wcet: Duration) -> ExecutionTime {
        let (part, us) = (|of| Duration::from_nanos(wcet.as_nanos() / of), Duration::from_micros);
        let room = part(10).max(us(20)).min(part(2).max(us(5))).min(wcet - part(5));
        ExecutionTime::Fixed((wcet - room).max(Duration::from_nanos(1)))
    }

    /// Returns the longest execution time of a job.
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
