//! Sockets.

use std::io;
use std::mem;
use std::net::UdpSocket;
use std::os::fd::{AsRawFd, RawFd};

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

/// The process at the other end of a socket, as it was when it connected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The process; 0 if it is in a PID namespace that this process does not see.
    pub process: super::Tid,
    /// Its effective user.
    pub user: u32,
    /// Its effective group and its further groups.
    pub groups: Vec<u32>,
}

/// Returns the peer of a connected Unix socket. The kernel vouches for it (`SO_PEERCRED`, `SO_PEERGROUPS`).
pub fn peer(socket: &impl AsRawFd) -> io::Result<Peer> {
    let mut own = libc::ucred { pid: 0, uid: 0, gid: 0 };
    option(socket.as_raw_fd(), libc::SO_PEERCRED, std::slice::from_mut(&mut own))?;
    // A socket of another family has none.
    if own.uid == u32::MAX {
        return Err(io::Error::from_raw_os_error(libc::ENOTCONN));
    }
    // As many as a process can have (`NGROUPS_MAX`).
    let mut groups = vec![0; 65_536];
    let count = option(socket.as_raw_fd(), libc::SO_PEERGROUPS, &mut groups)?;
    groups.truncate(count);
    groups.push(own.gid);
    Ok(Peer { process: own.pid, user: own.uid, groups })
}

/// Reads an option of a socket into values; returns how many of them the kernel has written.
fn option<T>(socket: RawFd, name: libc::c_int, values: &mut [T]) -> io::Result<usize> {
    let mut length = mem::size_of_val(values) as libc::socklen_t;
    // SAFETY: the kernel writes at most the length that it is given; the values are plain numbers.
    let result = unsafe { libc::getsockopt(socket, libc::SOL_SOCKET, name, values.as_mut_ptr().cast(), &mut length) };
    super::check(result.into())?;
    Ok(length as usize / mem::size_of::<T>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_is_known_by_its_socket() {
        let (one, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        let peer = peer(&one).unwrap();
        assert_eq!((peer.process, peer.user), (std::process::id() as i32, crate::sys::user()));
        // SAFETY: no arguments.
        assert!(peer.groups.contains(&unsafe { libc::getegid() }), "{peer:?}");
        assert!(super::peer(&std::fs::File::open("/proc/self/stat").unwrap()).is_err());
    }

    #[test]
    fn priorities_that_anyone_may_set_are_set() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        set_priority(&socket, 6).unwrap();
    }
}
