//! The kernel, as far as a deployment speaks with it. Tests put a model in its place.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;

use macrotick_model::Duration;

use super::message::Message;
use super::wanted::GateClock;

/// The connection of a deployment with the kernel, in one network namespace.
pub trait Kernel {
    /// Sends a message, and returns the payloads of the answers.
    fn send(&mut self, message: &Message) -> Result<Vec<Vec<u8>>, Refusal>;
    /// Returns the present instant of a clock, in nanoseconds.
    fn now(&self, clock: GateClock) -> i64;
    /// Waits.
    fn wait(&mut self, length: Duration);
}

/// A kernel that the steps of a deployment and of its undo share.
pub type Shared = Rc<RefCell<dyn Kernel>>;

/// The reason why the kernel refused a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The number of the error, for example `EINVAL`.
    pub errno: i32,
    /// The kernel's words (extended acknowledgement).
    pub text: Option<String>,
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Refusal {
        match error.raw_os_error() {
            Some(errno) => Refusal { errno, text: None },
            None => Refusal { errno: libc::EIO, text: Some(error.to_string()) },
        }
    }
}

impl std::error::Error for Refusal {}

/// The kernel's own number for "not supported". It reaches user space, but libc has no name for it.
pub(super) const ENOTSUPP: i32 = 524;

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.errno {
            ENOTSUPP => f.write_str("Operation not supported (error 524)")?,
            errno => write!(f, "{}", io::Error::from_raw_os_error(errno))?,
        }
        self.text.as_ref().map_or(Ok(()), |text| write!(f, ": {text}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_has_the_kernels_words() {
        let refusal = Refusal { errno: libc::EINVAL, text: Some("Invalid 'clockid'".into()) };
        assert_eq!(refusal.to_string(), "Invalid argument (os error 22): Invalid 'clockid'");
        let refusal = Refusal { errno: ENOTSUPP, text: None };
        assert_eq!(refusal.to_string(), "Operation not supported (error 524)");
    }
}
