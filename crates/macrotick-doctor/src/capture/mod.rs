//! Captures a host: it reads what the checks read, and nothing else.

mod document;
mod files;
mod interfaces;
mod measure;
mod options;
mod threads;

use std::ffi::CStr;

use macrotick_host::{device, HostFailure};

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
    // SAFETY: uname fills the structure with terminated strings.
    unsafe {
        let mut name: libc::utsname = std::mem::zeroed();
        libc::uname(&mut name);
        let text = |field: &[libc::c_char]| CStr::from_ptr(field.as_ptr()).to_string_lossy().into_owned();
        Kernel { release: text(&name.release), version: text(&name.version), machine: text(&name.machine) }
    }
}

fn clock() -> Option<ClockState> {
    // SAFETY: plain numbers; a call without a mode changes nothing.
    let mut state: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: writes one structure.
    if unsafe { libc::adjtimex(&mut state) } < 0 {
        return None;
    }
    // The fields' types differ between targets.
    #[allow(clippy::unnecessary_cast)]
    Some(ClockState {
        synchronised: state.status & libc::STA_UNSYNC == 0,
        estimated_error_us: state.esterror as i64,
        tai_offset_s: state.tai as i32,
    })
}
