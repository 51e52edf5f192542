//! The lab: the deterministic virtual machine. Everything can run there and be measured without special hardware.
//!
//! [`Lab`] does three things:
//!
//! * It builds a kernel (`kernel`: from Debian's source, see [`source`] and `config`), an image (`image`, `engines`,
//!   `cpio`), and a booted machine that is saved (`snapshot`, `qemu`).
//! * It runs a [`GuestJob`] in the machine.
//! * It judges the results (`frame`, `console`).
//!
//! On request it records the kernel's execution (`paths`), or joins two guests ([`wire`]). Inside the guest, [`agent`]
//! is the other end. `program` and [`libraries`] find the files that the guest needs to execute a file of the host.
//! Everything is cached by content ([`cache`]) below `build/`.
//!
//! ```no_run
//! use macrotick_lab::{progress::Terminal, Flavor, GuestJob, Lab};
//!
//! let mut job = GuestJob::new(Flavor::Patched, ["cyclictest", "-p", "90", "-i", "1000", "-l", "100", "-q"]);
//! job.shift = 2;
//! let outcome = Lab::new()?.run(&job, &mut Terminal::new(), &mut |line| eprintln!("{line}"))?;
//! println!("{}: {}", outcome.status, outcome.stdout_text());
//! # Ok::<(), macrotick_lab::LabError>(())
//! ```

pub mod agent;
mod arch;
pub mod cache;
pub mod command;
mod config;
mod console;
mod cpio;
mod debian;
mod engines;
mod error;
mod frame;
mod fwcfg;
mod guest_files;
mod image;
mod job;
mod kernel;
mod layout;
pub mod libraries;
mod linux;
pub mod machine;
pub mod nics;
pub mod observe;
mod outcome;
mod paths;
mod plan_files;
mod plugin;
pub mod port;
mod program;
pub mod progress;
mod qemu;
mod qmp;
mod run;
pub mod series;
mod snapshot;
pub mod source;
mod suppliers;
mod symbols;
mod tree;
mod turns;
pub mod wire;

pub use arch::Arch;
pub use console::{Complaint, Finding};
pub use engines::debian_root;
pub use error::{Death, LabError};
pub use frame::GuestStatus;
pub use guest_files::FileFault;
pub use image::ImageKind;
pub use job::{Boot, GuestJob, GuestOutcome};
pub use kernel::{package, Flavor, Kernel};
pub use layout::Layout;
pub use linux::Linux;
pub use nics::{NicModel, Nics};
pub use paths::PathRequest;
pub use plan_files::taken_along;
pub use run::Lab;
pub use symbols::Symbols;
