//! Makes QEMU's main loop and its virtual CPUs take turns, so that runs repeat on a busy host, too.
//!
//! QEMU reads the clock of instructions in its main loop while a virtual CPU halts. On a busy host, this can come
//! between the halt and the account of the last instructions. `turns.c` has the details, and prevents it.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::LabError;
use crate::layout::Layout;
use crate::plugin;

const SOURCE: &str = include_str!("turns.c");
const VARIABLE: &str = "LD_PRELOAD";

/// Builds the library, unless it is up to date.
pub fn build(layout: &Layout) -> Result<PathBuf, LabError> {
    plugin::build(layout, "turns", SOURCE)
}

/// Makes a command of QEMU load the library, before those that the environment names.
pub fn take(qemu: &mut Command, library: &Path) {
    // The library knows the thread of the virtual CPUs by its name.
    qemu.args(["-name", "lab,debug-threads=on"]);
    let mut libraries = library.as_os_str().to_owned();
    if let Some(others) = std::env::var_os(VARIABLE) {
        libraries.push(" ");
        libraries.push(others);
    }
    qemu.env(VARIABLE, libraries);
}
