//! Time stamps of a device: turned on for a run, and put back afterwards.

use std::io;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

/// `SIOCSHWTSTAMP` and `SIOCGHWTSTAMP`.
const SET: libc::c_ulong = 0x89b0;
const GET: libc::c_ulong = 0x89b1;
/// `HWTSTAMP_TX_ON` and `HWTSTAMP_FILTER_ALL`.
const SENT: i32 = 1;
const ALL_RECEIVED: i32 = 1;

/// `struct hwtstamp_config`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Config {
    flags: i32,
    sent: i32,
    received: i32,
}

/// The stamps of a device. Dropping it restores their setting from before.
#[derive(Debug)]
pub struct DeviceStamps {
    socket: UdpSocket,
    interface: String,
    before: Config,
}

impl DeviceStamps {
    /// Turns the stamps of all packets on. It fails with `EOPNOTSUPP` if the device has none, and with `EPERM` without
    /// CAP_NET_ADMIN.
    pub fn turn_on(interface: &str) -> io::Result<DeviceStamps> {
        let socket = UdpSocket::bind((std::net::Ipv4Addr::UNSPECIFIED, 0))?;
        let mut before = Config::default();
        call(&socket, interface, GET, &mut before)?;
        let stamps = DeviceStamps { socket, interface: interface.to_owned(), before };
        let mut wanted = Config { flags: 0, sent: SENT, received: ALL_RECEIVED };
        call(&stamps.socket, interface, SET, &mut wanted)?;
        Ok(stamps)
    }
}

impl Drop for DeviceStamps {
    fn drop(&mut self) {
        let mut before = self.before;
        // There is no place to report a failure: the device has gone.
        let _ = call(&self.socket, &self.interface, SET, &mut before);
    }
}

fn call(socket: &UdpSocket, interface: &str, request: libc::c_ulong, config: &mut Config) -> io::Result<()> {
    // SAFETY: numbers and a pointer, for which zero is valid.
    let mut arguments: libc::ifreq = unsafe { std::mem::zeroed() };
    if interface.len() >= arguments.ifr_name.len() {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    for (place, byte) in arguments.ifr_name.iter_mut().zip(interface.bytes()) {
        *place = byte as libc::c_char;
    }
    arguments.ifr_ifru.ifru_data = (config as *mut Config).cast();
    // SAFETY: an open socket, a terminated name, and a structure that the kernel may read and write.
    match unsafe { libc::ioctl(socket.as_raw_fd(), request as _, &mut arguments) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_without_stamps_says_so() {
        let errno = |interface: &str| DeviceStamps::turn_on(interface).unwrap_err().raw_os_error();
        assert!([Some(libc::EOPNOTSUPP), Some(libc::EPERM)].contains(&errno("lo")));
        assert_eq!(errno("nowhere-0"), Some(libc::ENODEV));
        assert_eq!(errno("a-name-that-is-too-long"), Some(libc::ENODEV));
    }
}
