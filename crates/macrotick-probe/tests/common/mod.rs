//! The options of runs in tests against a real server.

use std::net::SocketAddr;

use macrotick_model::Duration;
use macrotick_probe::{ClockName, Course, Policy, RunOptions, SocketOptions};

/// Returns the options of a run over ordinary sockets, with limits for a busy machine.
pub fn options(destination: SocketAddr, packets: Option<u64>) -> RunOptions {
    RunOptions {
        destination,
        course: Course {
            one_way: false,
            clock: ClockName::Monotonic,
            size: 500,
            trace: false,
            burst: 1,
            deadline: Duration::from_secs(1),
            linger: Duration::from_secs(2),
            early: Duration::ZERO,
            launch: false,
            packets,
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
        cmdline: String::new(),
    }
}
