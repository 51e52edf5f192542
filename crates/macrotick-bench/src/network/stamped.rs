//! Frames with the kernel's time stamps.

use std::os::fd::RawFd;

use crate::kit::netns::set;

/// A received frame: its time stamp in ns of CLOCK_REALTIME, and its length before it was cut to the buffer.
pub struct Stamped {
    /// The time stamp.
    pub at_ns: i64,
    /// The length.
    pub length: usize,
}

/// Makes a socket give time stamps, and wait for at most a time. It has room for this many bytes.
pub fn prepare(socket: RawFd, patience: libc::timeval, room: i32) -> Result<(), String> {
    set(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &1i32)?;
    set(socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &room)?;
    set(socket, libc::SOL_SOCKET, libc::SO_RCVTIMEO, &patience)
}

/// Receives a frame; none within the time of the socket.
pub fn receive(socket: RawFd, data: &mut [u8]) -> Option<Stamped> {
    let mut control = [0u64; 16];
    // SAFETY: the message points to both buffers, which outlive the call; the header is checked before it is read.
    unsafe {
        let mut vector = libc::iovec { iov_base: data.as_mut_ptr().cast(), iov_len: data.len() };
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &mut vector;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(&control);
        let length = libc::recvmsg(socket, &mut message, libc::MSG_TRUNC);
        let header = libc::CMSG_FIRSTHDR(&message);
        if length < 0 || header.is_null() || (*header).cmsg_type != libc::SO_TIMESTAMPNS {
            return None;
        }
        let stamp = libc::CMSG_DATA(header).cast::<libc::timespec>().read_unaligned();
        Some(Stamped { at_ns: stamp.tv_sec * 1_000_000_000 + stamp.tv_nsec, length: length as usize })
    }
}
