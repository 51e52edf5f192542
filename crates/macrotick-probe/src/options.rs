//! The options of a client and of a server.

use std::net::SocketAddr;

use macrotick_model::Duration;

use crate::client::Course;
use crate::error::ProbeError;
use crate::packet::{HEADER, LARGEST};
use crate::samples::MOST;
use crate::standing::Policy;
use crate::udp::SocketOptions;
use crate::xdp::Place;

/// The port of a server.
pub const PORT: u16 = 7600;

/// The options of a client.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// The server.
    pub destination: SocketAddr,
    /// The packets.
    pub course: Course,
    /// The cycle of the grid.
    pub interval: Duration,
    /// The phase of the grid: nominal instants are whole intervals of the clock plus this.
    pub offset: Duration,
    /// How the thread runs.
    pub policy: Policy,
    /// Its CPU.
    pub cpu: Option<u32>,
    /// The options of the socket.
    pub socket: SocketOptions,
    /// The express path instead of the socket.
    pub xdp: Option<Place>,
    /// The bins of the histogram: microseconds.
    pub bins: usize,
    /// The command line, for the results.
    pub cmdline: String,
}

/// The options of a server.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// The address to listen at.
    pub listen: SocketAddr,
    /// How the thread runs.
    pub policy: Policy,
    /// Its CPU.
    pub cpu: Option<u32>,
    /// How long a job of a task waits for packets; for other policies without effect.
    pub wait: Duration,
    /// The options of the socket.
    pub socket: SocketOptions,
    /// The express path instead of the socket.
    pub xdp: Option<Place>,
    /// The most answers in a second.
    pub rate: Option<u32>,
    /// The most records of a one-way run.
    pub records: usize,
}

impl RunOptions {
    /// Refuses what contradicts itself or exceeds a limit, before anything is opened.
    pub fn check(&self) -> Result<(), ProbeError> {
        let course = &self.course;
        let refuse = |text: String| Err(ProbeError::Options(text));
        if !(HEADER..=LARGEST).contains(&course.size) {
            return refuse(format!("`--size {}`: packets have {HEADER} to {LARGEST} bytes", course.size));
        }
        if self.interval <= Duration::ZERO {
            return refuse("`--interval` must be longer than zero".into());
        }
        if self.offset < Duration::ZERO || self.offset >= self.interval {
            return refuse("`--offset` must be within the interval".into());
        }
        if course.early < Duration::ZERO || course.early >= self.interval {
            return refuse("`--early` and `--txtime` must be shorter than the interval".into());
        }
        if course.burst == 0 || u64::from(course.burst) > MOST {
            return refuse(format!("`--burst` must be 1 to {MOST}"));
        }
        if course.packets.is_some_and(|packets| packets > MOST) {
            return refuse(format!("`--count`: a run has at most {MOST} packets, for each of which it keeps 48 bytes"));
        }
        if self.xdp.is_some() && !self.destination.is_ipv4() {
            return refuse("`--xdp` needs an IPv4 destination".into());
        }
        if let (true, Policy::Task(_)) = (course.early > Duration::ZERO, &self.policy) {
            return refuse(
                "`--early` and `--txtime` need a grid: a job of a task starts at its nominal instant".into(),
            );
        }
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::packet::ClockName;

    /// Returns options for a run of ten packets to the local host.
    pub(crate) fn options() -> RunOptions {
        RunOptions {
            destination: "127.0.0.1:7600".parse().unwrap(),
            course: Course {
                one_way: false,
                clock: ClockName::Monotonic,
                size: 500,
                trace: false,
                burst: 1,
                deadline: Duration::from_millis(1),
                linger: Duration::from_millis(500),
                early: Duration::ZERO,
                launch: false,
                packets: Some(10),
                duration: None,
                assume_common_clock: false,
            },
            interval: Duration::from_millis(1),
            offset: Duration::ZERO,
            policy: Policy::Unchanged,
            cpu: None,
            socket: SocketOptions::default(),
            xdp: None,
            bins: 1000,
            cmdline: "probe run".into(),
        }
    }

    #[test]
    fn contradictions_are_refused_with_their_option() {
        let refused = |change: fn(&mut RunOptions)| {
            let mut options = options();
            change(&mut options);
            options.check().map_err(|error| error.to_string())
        };
        assert_eq!(refused(|_| ()), Ok(()));
        let say = |text: &str| Err(text.to_owned());
        assert_eq!(refused(|o| o.course.size = 63), say("`--size 63`: packets have 64 to 65507 bytes"));
        assert_eq!(refused(|o| o.course.size = 65508), say("`--size 65508`: packets have 64 to 65507 bytes"));
        assert_eq!(refused(|o| o.interval = Duration::ZERO), say("`--interval` must be longer than zero"));
        assert_eq!(refused(|o| o.offset = o.interval), say("`--offset` must be within the interval"));
        let early = "`--early` and `--txtime` must be shorter than the interval";
        assert_eq!(refused(|o| o.course.early = o.interval), say(early));
        assert_eq!(refused(|o| o.course.burst = 0), say("`--burst` must be 1 to 16777216"));
        assert!(refused(|o| o.course.packets = Some(MOST + 1)).is_err());
        assert!(refused(|o| (o.policy, o.course.early) = (Policy::Task(None), Duration::from_nanos(1))).is_err());
    }
}
