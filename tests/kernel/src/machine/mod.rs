//! One of two machines that share a table: its clock, its jobs, and linuxptp on a wire to the other machine.

pub mod deployed;
pub mod ptp;

use macrotick_lab::wire::port::virtual_ns;
use macrotick_uapi::{Device, ACTIVATE, DEADLINE};

use crate::board::Board;
use crate::check::{Check, Explain};
use crate::ensure;
use crate::process::member;
use crate::sys::{self, SchedAttr};
use crate::table::Table;

/// The cycle, in nanoseconds. It does not divide a second: the seconds between `CLOCK_REALTIME` and `CLOCK_TAI` matter.
pub const CYCLE_NS: u64 = 7_000_000;
/// The most by which a sync window moves the grid.
pub const BOUND_NS: u32 = 100_000;
/// The seconds by which `CLOCK_TAI` is ahead of UTC.
const TAI_S: i64 = 37;

/// The parameters of a machine.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    /// Whether the other machine follows this machine's clock.
    pub leads: bool,
    /// Whether linuxptp runs.
    pub synchronised: bool,
    /// The initial error of `CLOCK_REALTIME`, in nanoseconds.
    pub wrong_ns: i64,
    /// The length of the run, in seconds of virtual time.
    pub seconds: u64,
}

impl Machine {
    /// Returns the parameters as words of a command line.
    pub fn words(&self) -> Vec<String> {
        let role = if self.leads { "leads" } else { "follows" };
        let clock = if self.synchronised { "synchronised" } else { "free" };
        vec!["machine".into(), role.into(), clock.into(), self.wrong_ns.to_string(), self.seconds.to_string()]
    }

    /// Reads the words of [`Machine::words`], without the first one.
    pub fn from_words(words: &[&str]) -> Option<Machine> {
        let &[role, clock, wrong_ns, seconds] = words else { return None };
        let (leads, synchronised) = (role == "leads", clock == "synchronised");
        Some(Machine { leads, synchronised, wrong_ns: wrong_ns.parse().ok()?, seconds: seconds.parse().ok()? })
    }

    /// Runs to the end. Prints the virtual instants at which jobs started, in nanoseconds.
    pub fn run(&self) -> Check {
        let end = virtual_ns() + self.seconds * 1_000_000_000;
        sys::set_sched(0, SchedAttr { flags: sys::RESET_ON_FORK, ..SchedAttr::fifo(90) }).explain("SCHED_FIFO")?;
        sys::step_clock(self.wrong_ns).explain("step")?;
        if self.leads || !self.synchronised {
            sys::set_tai(TAI_S).explain("ADJ_TAI")?;
        }
        let (device, jobs) = (Device::open()?, (self.seconds * 1_000_000_000 / CYCLE_NS) as usize);
        let starts = Board::new(1 + jobs);
        table().install(&device)?;
        member("job", move |device| log_starts(device, starts, jobs))?;
        device.start(0).explain("start")?;
        let ptp = self.synchronised.then(|| ptp::synchronise(self.leads, 1, SchedAttr::fifo(98))).transpose()?;
        while virtual_ns() < end {
            sys::sleep(10_000_000);
        }
        ensure!(ptp.is_none_or(|mut ptp| matches!(ptp.try_wait(), Ok(None))), "ptp4l has ended");
        println!("# {:?}", device.get().explain("get")?);
        (1..=starts.get(0)).for_each(|at| println!("{}", starts.get(at as usize)));
        Ok(())
    }
}

/// Returns a table with a job and a sync window in each cycle. With the lead, a job's start does not include the
/// dispatch.
fn table() -> Table {
    let table = Table::new(CYCLE_NS).window("job", 0, 2_000_000, 100_000, ACTIVATE | DEADLINE).lead(20_000);
    table.sync(0, 4_000_000, 300_000, BOUND_NS)
}

/// Records the starts of up to this many jobs: their number in word 0, then the instants.
fn log_starts(device: &Device, starts: Board, jobs: usize) -> i32 {
    for number in 1.. {
        if let Err(errno) = device.wait() {
            return errno;
        }
        if number <= jobs {
            starts.set(number, virtual_ns());
            starts.set(0, number as u64);
        }
    }
    0
}
