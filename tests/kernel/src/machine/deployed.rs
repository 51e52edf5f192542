//! One of two machines that run their parts of one plan: tables and gates on the clock that linuxptp keeps.

use std::os::fd::AsRawFd;
use std::process::{Command, Stdio};

use macrotick_lab::wire::port::{self, virtual_ns};

use super::{ptp, TAI_S};
use crate::check::{Check, Explain};
use crate::ensure;
use crate::process::fork;
use crate::sys::{self, SchedAttr};

/// The product's program on a machine.
pub const RUNNER: &str = "/bin/macrotick-runner";
/// The machine's part of the plan.
pub const PLAN: &str = "/tmp/part.json";
/// The results of the runner.
pub const OBSERVATION: &str = "/tmp/observation.json";
/// The time in which linuxptp settles, in seconds of virtual time.
const SETTLING_S: u64 = 24;
/// The length of the run, in seconds.
pub const RUN_S: u64 = 5;
/// The time of the wire's program in each period of twice as long, in nanoseconds. The runner measures the CPU under
/// SCHED_FIFO 99 before it starts the table, for longer than the wire can wait.
const WIRE_NS: u64 = 500_000;
/// The queues of the interface: one for each traffic class.
const QUEUES: u32 = 3;
/// The place of the protocol in an Ethernet frame with IPv4.
const PROTOCOL_AT: usize = 14 + 9;

/// The parameters of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deployed {
    /// Whether the other machine follows this machine's clock.
    pub leads: bool,
    /// The initial error of `CLOCK_REALTIME`, in nanoseconds.
    pub wrong_ns: i64,
}

/// A frame with a message, when it left the machine's interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// The instant on the machine's `CLOCK_TAI`, in nanoseconds.
    pub tai_ns: i64,
    /// The same in virtual time, which both machines share.
    pub virtual_ns: i64,
}

impl Departure {
    /// Reads a line of the machine's output.
    pub fn from_line(line: &str) -> Option<Departure> {
        let (tai_ns, virtual_ns) = line.split_once(' ')?;
        Some(Departure { tai_ns: tai_ns.parse().ok()?, virtual_ns: virtual_ns.parse().ok()? })
    }
}

impl Deployed {
    /// Returns the address of the machine, and that of the other one.
    pub fn addresses(leads: bool) -> [&'static str; 2] {
        let both = ["10.0.0.1", "10.0.0.2"];
        if leads {
            both
        } else {
            [both[1], both[0]]
        }
    }

    /// Returns the parameters as words of a command line.
    pub fn words(&self) -> Vec<String> {
        let role = if self.leads { "leads" } else { "follows" };
        vec!["deployed".into(), role.into(), self.wrong_ns.to_string()]
    }

    /// Reads the words of [`Deployed::words`], without the first one.
    pub fn from_words(words: &[&str]) -> Option<Deployed> {
        let &[role, wrong_ns] = words else { return None };
        Some(Deployed { leads: role == "leads", wrong_ns: wrong_ns.parse().ok()? })
    }

    /// Runs the part. Prints a line for each departure of a message.
    pub fn run(&self) -> Check {
        sys::set_sched(0, SchedAttr { flags: sys::RESET_ON_FORK, ..SchedAttr::fifo(90) }).explain("SCHED_FIFO")?;
        sys::step_clock(self.wrong_ns).explain("step")?;
        if self.leads {
            sys::set_tai(TAI_S).explain("ADJ_TAI")?;
        }
        let start = virtual_ns() + SETTLING_S * 1_000_000_000;
        let mut ptp = ptp::synchronise(self.leads, QUEUES, SchedAttr::deadline(WIRE_NS, 2 * WIRE_NS))?;
        self.address()?;
        while virtual_ns() < start {
            sys::sleep(10_000_000);
        }
        fork(|| match record() {
            Ok(()) => 0,
            Err(reason) => {
                eprintln!("{reason}");
                1
            }
        });
        let words = ["observe", PLAN, "--output", OBSERVATION, "--duration", &format!("{RUN_S}s")];
        let status = Command::new(RUNNER).args(words).stdout(Stdio::null()).status();
        let status = status.map_err(|error| format!("{RUNNER}: {error}"))?;
        ensure!(status.code().is_some_and(|code| code <= 1), "{RUNNER} ends with {status}");
        ensure!(matches!(ptp.try_wait(), Ok(None)), "ptp4l has ended");
        // The other machine may still need the wire.
        sys::sleep(1_000_000_000);
        Ok(())
    }

    /// Gives the interface its address and its neighbour.
    fn address(&self) -> Check {
        let [own, other] = Deployed::addresses(self.leads);
        let hardware = |address: &str| format!("02:00:00:00:00:0{}", &address[address.len() - 1..]);
        ptp::ip(&["link", "set", ptp::INTERFACE, "address", &hardware(own)])?;
        ptp::ip(&["address", "add", &format!("{own}/24"), "dev", ptp::INTERFACE])?;
        ptp::ip(&["neigh", "add", other, "lladdr", &hardware(other), "dev", ptp::INTERFACE, "nud", "permanent"])?;
        leave_no_checksum_to_the_device().explain("checksums")
    }
}

/// Prints when each message arrives at the wire's end of the interface, by the time stamp of the kernel. A socket for one
/// protocol does not get the frames that the wire delivers.
fn record() -> Check {
    sys::set_sched(0, SchedAttr::fifo(97)).explain("SCHED_FIFO")?;
    let socket = port::socket(ptp::WIRE, libc::ETH_P_IP).map_err(|error| format!("{}: {error}", ptp::WIRE))?;
    // The first question turns the time stamps on.
    let _ = stamp_ns(socket.as_raw_fd());
    let mut frame = [0u8; 256];
    loop {
        // SAFETY: the buffer outlives the call.
        let length = unsafe { libc::recv(socket.as_raw_fd(), frame.as_mut_ptr().cast(), frame.len(), 0) };
        ensure!(length > 0, "no frame: {}", sys::errno());
        if length as usize > PROTOCOL_AT && frame[PROTOCOL_AT] == libc::IPPROTO_UDP as u8 {
            let stamp_ns = stamp_ns(socket.as_raw_fd()).explain("a time stamp")?;
            let to_virtual = virtual_ns() as i64 - sys::real_ns() as i64;
            println!("{} {}", stamp_ns + TAI_S * 1_000_000_000, stamp_ns + to_virtual);
        }
    }
}

/// Makes the stack compute checksums itself: the wire does not compute those that it leaves to the device.
fn leave_no_checksum_to_the_device() -> Result<(), i32> {
    const SIOCETHTOOL: libc::c_ulong = 0x8946;
    const ETHTOOL_STXCSUM: u32 = 0x17;
    let mut value = [ETHTOOL_STXCSUM, 0];
    // SAFETY: plain numbers and a pointer.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(ptp::INTERFACE.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_data = value.as_mut_ptr().cast();
    // SAFETY: both structures outlive the calls.
    unsafe {
        let socket = libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
        let result = sys::done(libc::ioctl(socket, SIOCETHTOOL, &raw mut request)).map(drop);
        libc::close(socket);
        result
    }
}

/// Returns the time stamp of the last frame of a socket, on `CLOCK_REALTIME` in nanoseconds.
fn stamp_ns(socket: i32) -> Result<i64, i32> {
    /// `SIOCGSTAMPNS_OLD`: a `struct timespec`.
    const SIOCGSTAMPNS: u64 = 0x8907;
    let mut stamp = sys::timespec(0);
    // SAFETY: the structure outlives the call.
    sys::done(unsafe { libc::ioctl(socket, SIOCGSTAMPNS, &raw mut stamp) })?;
    Ok(stamp.tv_sec * 1_000_000_000 + stamp.tv_nsec)
}
