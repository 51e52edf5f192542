//! What programs print. Whoever reads it may be gone, and a file may be full: neither takes from what the program does, and
//! the second one is told at its end.

use std::fmt::Display;
use std::io::{self, ErrorKind, StdoutLock, Write};
use std::sync::OnceLock;

/// Why standard output takes no more.
static FAULT: OnceLock<io::Error> = OnceLock::new();

fn attempt(write: impl FnOnce(&mut StdoutLock) -> io::Result<()>) {
    if FAULT.get().is_some() {
        return;
    }
    let mut output = io::stdout().lock();
    if let Err(fault) = write(&mut output).and_then(|()| output.flush()) {
        let _ = FAULT.set(fault);
    }
}

/// Prints to standard output, unless that has failed.
pub fn print(text: impl Display) {
    attempt(|output| write!(output, "{text}"));
}

/// The same with what others have printed.
pub fn print_bytes(bytes: &[u8]) {
    attempt(|output| output.write_all(bytes));
}

/// The same, and ends the line.
pub fn print_line(text: impl Display) {
    print(format_args!("{text}\n"));
}

/// Prints a line for people, to standard error. Where that fails there is nobody to tell.
pub fn tell(text: impl Display) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// What is to be told once a program is done: why not all of its output could be written. A reader that is gone had enough.
pub fn fault() -> Option<io::Error> {
    let fault = FAULT.get().filter(|fault| fault.kind() != ErrorKind::BrokenPipe)?;
    Some(fault.raw_os_error().map_or_else(|| io::Error::from(fault.kind()), io::Error::from_raw_os_error))
}
