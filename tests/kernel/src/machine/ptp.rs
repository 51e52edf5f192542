//! linuxptp on one of two machines, over the wire between them.

use std::path::Path;
use std::process::{Child, Command};

use macrotick_lab::wire::port;

use crate::check::Check;
use crate::ensure;
use crate::process::fork;
use crate::sys::{self, SchedAttr};

/// The programs of linuxptp.
pub const PROGRAMS: [&str; 2] = [PTP4L, PMC];
/// The interface of linuxptp, and of all else that the machines tell each other.
pub const INTERFACE: &str = "ptp0";
/// The other end of [`INTERFACE`], where the wire takes its frames.
pub const WIRE: &str = "wire";

const PTP4L: &str = "/usr/sbin/ptp4l";
const PMC: &str = "/usr/sbin/pmc";
/// The socket on which linuxptp takes commands.
const ORDERS: &str = "/tmp/ptp4l";
/// The configuration of linuxptp on both machines: software time stamps, eight messages a second, and clock steps only
/// at the beginning. The integral's scale makes it measure the other clock's rate for 9 s before it sets its own,
/// instead of 37 s. The proportional scale is the usual one. The priority is that of the class `sync` of a description.
const SETTINGS: &str = "[global]\ntime_stamping software\nnetwork_transport L2\nlogAnnounceInterval -1\n\
    logSyncInterval -3\nlogMinDelayReqInterval -3\nfirst_step_threshold 0.00002\npi_proportional_scale 0.1\n\
    pi_integral_scale 0.004\nsocket_priority 7\nuds_address /tmp/ptp4l\n";
/// The description of its clock that a leading machine sends to the other one, with the seconds by which `CLOCK_TAI` is
/// ahead.
const CLOCK: &str = "SET GRANDMASTER_SETTINGS_NP clockClass 13 clockAccuracy 0x2f offsetScaledLogVariance 0xffff \
    currentUtcOffset 37 leap61 0 leap59 0 currentUtcOffsetValid 1 ptpTimescale 0 timeTraceable 1 frequencyTraceable 0 \
    timeSource 0x60";

/// Starts linuxptp on one end of a pair of interfaces, which have this many queues. The other end is the wire. Its
/// program runs under this policy.
pub fn synchronise(leads: bool, queues: u32, wire: SchedAttr) -> Check<Child> {
    let queues = queues.to_string();
    let queues = ["numtxqueues", &queues, "numrxqueues", &queues];
    let [link, peer] = [["link", "add", INTERFACE].as_slice(), &["type", "veth", "peer", "name", WIRE]];
    ip(&[link, &queues, peer, &queues].concat())?;
    ip(&["link", "set", WIRE, "up"])?;
    ip(&["link", "set", INTERFACE, "up"])?;
    fork(|| serve_the_wire(wire));
    let role = if leads { "priority1 100\n" } else { "slaveOnly 1\n" };
    std::fs::write("/tmp/settings", format!("{SETTINGS}{role}")).map_err(|error| error.to_string())?;
    let arguments = ["-f", "50", PTP4L, "-f", "/tmp/settings", "-i", INTERFACE, "-m"];
    let ptp = Command::new("/usr/bin/chrt").args(arguments).spawn().map_err(|error| error.to_string())?;
    if leads {
        ensure!(sys::eventually(1_000_000_000, || Path::new(ORDERS).exists()), "ptp4l takes no orders");
        succeed(PMC, &["-u", "-b", "0", "-i", "/tmp/pmc", "-s", ORDERS, CLOCK])?;
    }
    Ok(ptp)
}

/// Runs `ip` of iproute2.
pub fn ip(words: &[&str]) -> Check {
    succeed("/sbin/ip", words)
}

/// Runs a program that must succeed.
pub fn succeed(program: &str, arguments: &[&str]) -> Check {
    let status = Command::new(program).args(arguments).status().map_err(|error| format!("{program}: {error}"))?;
    ensure!(status.success(), "{program} {arguments:?} ends with {status}");
    Ok(())
}

fn serve_the_wire(policy: SchedAttr) -> i32 {
    match sys::set_sched(0, policy) {
        Ok(()) => {
            sys::prefault();
            eprintln!("{:?}", port::serve(WIRE));
            1
        }
        Err(errno) => errno,
    }
}
