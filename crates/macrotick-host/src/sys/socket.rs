//! Sockets.

use std::io;
use std::mem;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

/// Sets the priority of the frames of a socket (`SO_PRIORITY`). Those above 6 need CAP_NET_ADMIN.
pub fn set_priority(socket: &UdpSocket, priority: libc::c_int) -> io::Result<()> {
    let length = mem::size_of_val(&priority) as libc::socklen_t;
    // SAFETY: the value is as long as the kernel is told, and lives until the call returns.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PRIORITY,
            (&raw const priority).cast::<libc::c_void>(),
            length,
        )
    };
    super::check(result.into()).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priorities_that_anyone_may_set_are_set() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        set_priority(&socket, 6).unwrap();
    }
}
