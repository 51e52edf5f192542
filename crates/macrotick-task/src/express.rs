//! The express path: Ethernet frames without the network stack, through an AF_XDP socket.
//!
//! The calls are those of `include/macrotick-express.h`, which explains them.

use std::ffi::{c_char, c_void, CStr, CString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use crate::calls;

/// The longest frame that the path takes, in bytes, with its Ethernet header.
pub const LONGEST_FRAME: usize = 1792;

/// Where the device hands frames to the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Before the network stack, with every driver.
    Skb = 1,
    /// In the driver, if it can: faster.
    Native = 2,
}

/// The reason why the path could not be opened: the step with its remedy, and the kernel's error.
#[derive(Debug, thiserror::Error)]
#[error("express path of `{interface}`: {step}")]
pub struct ExpressError {
    /// The interface.
    pub interface: String,
    /// The failed step, and its remedy.
    pub step: String,
    /// The kernel's error.
    pub source: io::Error,
}

/// A ring, as in the header.
#[repr(C)]
#[derive(Debug)]
struct Ring {
    producer: *mut u32,
    consumer: *mut u32,
    flags: *mut u32,
    entries: *mut c_void,
    map: *mut c_void,
    size: usize,
}

/// `struct macrotick_express`. A test compares the layouts.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Layout {
    socket: i32,
    queues: i32,
    program: i32,
    link: i32,
    device: u32,
    zero_copy: u32,
    failed: *const c_char,
    frames: *mut u8,
    nr_free: u32,
    free: [u32; 512],
    rings: [Ring; 4],
}

/// An open path. Dropping it closes it, and the stack gets the frames again.
#[derive(Debug)]
pub struct Express {
    layout: Box<Layout>,
}

// SAFETY: the pointers lead to maps that belong to this value alone; no call depends on the thread.
unsafe impl Send for Express {}

impl Express {
    /// Opens the path for UDP over IPv4 to `port` that arrives on a receive queue of an interface. It allocates and
    /// locks memory.
    pub fn open(interface: &str, queue: u32, port: u16, mode: Mode) -> Result<Express, ExpressError> {
        let error =
            |step: &str, source| ExpressError { interface: interface.to_owned(), step: step.to_owned(), source };
        let name = CString::new(interface)
            .map_err(|_| error("there is no such interface", io::ErrorKind::InvalidInput.into()))?;
        // SAFETY: the structure has numbers and raw pointers only, for which zero is valid.
        let mut layout: Box<Layout> = Box::new(unsafe { std::mem::zeroed() });
        // SAFETY: a structure with the layout of the header, and a terminated text that is only read during the call.
        match unsafe { calls::macrotick_express_open(&mut *layout, name.as_ptr(), queue, port, mode as u32) } {
            0 => Ok(Express { layout }),
            // SAFETY: after a failure this is a terminated text of the program.
            result => Err(error(&unsafe { CStr::from_ptr(layout.failed) }.to_string_lossy(), of(result))),
        }
    }

    /// Whether the device reads and writes the frames itself, without a copy by the kernel.
    pub fn is_zero_copy(&self) -> bool {
        self.layout.zero_copy != 0
    }

    /// Receives a frame, with its Ethernet header, and returns its length; `None` if there is none. It fails with
    /// `EMSGSIZE` if the frame is longer than the buffer; the frame is lost.
    pub fn receive(&mut self, frame: &mut [u8]) -> io::Result<Option<usize>> {
        let size = u32::try_from(frame.len()).unwrap_or(u32::MAX);
        // SAFETY: an open path, and a buffer of this size.
        match unsafe { calls::macrotick_express_receive(&mut *self.layout, frame.as_mut_ptr().cast(), size) } {
            length @ 0.. => Ok(Some(length as usize)),
            error if error == -libc::EAGAIN => Ok(None),
            error => Err(of(error)),
        }
    }

    /// Sends a frame, with its Ethernet header. While all frames are on their way, it fails with
    /// [`io::ErrorKind::WouldBlock`]. An empty frame, or one longer than [`LONGEST_FRAME`], fails with `EMSGSIZE`. If
    /// the device is down, it fails with `ENETDOWN`.
    pub fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        let length = u32::try_from(frame.len()).unwrap_or(u32::MAX);
        // SAFETY: an open path, and a buffer of this length; the call refuses a length beyond its own.
        match unsafe { calls::macrotick_express_send(&mut *self.layout, frame.as_ptr().cast(), length) } {
            0 => Ok(()),
            error => Err(of(error)),
        }
    }
}

impl AsFd for Express {
    /// Returns the socket, to wait for input with `poll(2)`.
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor is open as long as the path.
        unsafe { BorrowedFd::borrow_raw(self.layout.socket) }
    }
}

impl Drop for Express {
    fn drop(&mut self) {
        // SAFETY: an open path; nothing uses its memory afterwards.
        unsafe { calls::macrotick_express_close(&mut *self.layout) };
    }
}

fn of(result: i32) -> io::Error {
    io::Error::from_raw_os_error(-result)
}

#[cfg(test)]
mod tests {
    use std::mem::{offset_of, size_of};

    use super::*;

    #[test]
    fn the_layout_is_that_of_the_header() {
        let fields = [
            ("socket", offset_of!(Layout, socket)),
            ("zero_copy", offset_of!(Layout, zero_copy)),
            ("failed", offset_of!(Layout, failed)),
            ("frames", offset_of!(Layout, frames)),
            ("nr_free", offset_of!(Layout, nr_free)),
            ("free", offset_of!(Layout, free)),
            ("fill", offset_of!(Layout, rings)),
            ("out", offset_of!(Layout, rings) + 3 * size_of::<Ring>()),
        ];
        let mut source = String::from("#include <macrotick-express.h>\n#include <stddef.h>\n");
        let mut hold = |left: String, right: usize| source += &format!("_Static_assert({left} == {right}, \"\");\n");
        hold("sizeof(struct macrotick_express)".into(), size_of::<Layout>());
        hold("MACROTICK_EXPRESS_MOST".into(), LONGEST_FRAME);
        fields.into_iter().for_each(|(field, at)| hold(format!("offsetof(struct macrotick_express, {field})"), at));
        assert_eq!(crate::tests::compiles(&source), Ok(()));
    }

    #[test]
    fn a_missing_interface_is_named() {
        let error = Express::open("nowhere-0", 0, 7600, Mode::Skb).unwrap_err();
        assert_eq!(error.to_string(), "express path of `nowhere-0`: there is no such interface");
        assert_eq!(error.source.raw_os_error(), Some(libc::ENODEV));
        let error = Express::open("lo", 64, 7600, Mode::Skb).unwrap_err();
        assert_eq!(error.step, "the mode is skb or native, and the receive queue is below 64");
        assert!(Express::open("a\0b", 0, 7600, Mode::Skb).is_err());
    }
}
