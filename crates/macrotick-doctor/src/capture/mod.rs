//! Captures a host: it reads what the checks read, and nothing else.

mod document;
mod files;
mod interfaces;
mod measure;
mod options;
mod threads;

use macrotick_host::clock::Discipline;
use macrotick_host::{device, environment, HostFailure};

use crate::checks;
use crate::host::{Class, ClockState, Host, Kernel, Pattern, VERSION};

pub use document::{read, write, DocumentError};

/// The measurements of a capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Spin and sleep on each CPU, for about 1.5 s in all.
    pub measure: bool,
}

/// Files that several checks read.
const SHARED: [&str; 2] = ["/proc/cmdline", "/sys/devices/system/cpu/online"];

fn patterns() -> impl Iterator<Item = &'static str> {
    checks::all().flat_map(|check| check.reads.iter().copied()).chain(SHARED)
}

/// Whether a capture reads this file.
pub fn reads(path: &str) -> bool {
    patterns().any(|pattern| Pattern::new(pattern).is(path))
}

/// Captures this host. A part that cannot be read is missing: the checks say so.
pub fn take(options: Options) -> Host {
    let kernel = kernel();
    let mut host = Host {
        version: VERSION,
        files: files::read(patterns()),
        options: options::read(&kernel.release),
        threads: threads::read(),
        interfaces: interfaces::read(),
        clock: clock(),
        class: match device::installed() {
            Err(HostFailure::NoKernelClass) => None,
            table => Some(Class { table: table.ok().map(|table| table.is_some()) }),
        },
        measured: Vec::new(),
        kernel,
    };
    if options.measure {
        host.measured = measure::all(&host.online());
    }
    host
}

fn kernel() -> Kernel {
    let environment::Kernel { release, version, machine } = environment::kernel();
    Kernel { release, version, machine }
}

fn clock() -> Option<ClockState> {
    let clock = Discipline::read().ok()?;
    Some(ClockState {
        synchronised: clock.is_synchronised(),
        estimated_error_us: clock.estimated_error().map(|error| error.as_nanos() / 1000),
        tai_offset_s: clock.tai_offset_s(),
    })
}
