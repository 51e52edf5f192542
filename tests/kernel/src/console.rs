//! The console of the lab's machine, and the thread of its interrupt: a test can cause its interrupts.

use std::fs;

use crate::check::Check;
use crate::process;

/// The device.
#[cfg(target_arch = "x86_64")]
pub const DEVICE: &str = "/dev/ttyS0";
/// The device.
#[cfg(target_arch = "aarch64")]
pub const DEVICE: &str = "/dev/ttyAMA0";

/// The name of its interrupt's handler.
#[cfg(target_arch = "x86_64")]
const HANDLER: &str = "ttyS0";
#[cfg(target_arch = "aarch64")]
const HANDLER: &str = "uart-pl011";

/// The most characters of a thread's name in traces (TASK_COMM_LEN).
const NAME: usize = 15;

/// Its interrupt.
pub struct Interrupt {
    /// Its number.
    pub number: u32,
    /// The name of its thread in traces.
    pub name: String,
    /// Its thread.
    pub pid: i32,
}

/// Returns its interrupt. Fails if the interrupt has no thread, as without PREEMPT_RT.
pub fn interrupt() -> Check<Interrupt> {
    let table = fs::read_to_string("/proc/interrupts").map_err(|error| format!("/proc/interrupts: {error}"))?;
    let line = table.lines().find(|line| line.ends_with(&format!(" {HANDLER}")));
    let number = line.and_then(|line| line.trim().split_once(':')?.0.parse().ok());
    let number: u32 = number.ok_or_else(|| format!("no interrupt of {HANDLER}"))?;
    let mut name = format!("irq/{number}-{HANDLER}");
    let pid = process::kernel_thread(&name)?;
    name.truncate(NAME);
    Ok(Interrupt { number, name, pid })
}
