//! Netlink sockets in a network namespace.
//!
//! The sockets are those of the crate `netlink-sys`. `netlink-socket2`, which belongs to the bindings, reads at most
//! 8 KiB at once. The kernel omits a qdisc from a dump if it does not fit. Two gate lists of 110 entries do not fit.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;

use macrotick_model::Duration;
use netlink_bindings::builtin::{NlmsgerrAttrs, Nlmsghdr};
use netlink_bindings::{nlctrl, utils};
use netlink_sys::protocols::{NETLINK_GENERIC, NETLINK_ROUTE};
use netlink_sys::Socket;

use super::kernel::{Kernel, Refusal};
use super::message::{Family, Message};
use super::wanted::GateClock;
use crate::sys;

/// The most that the kernel writes into one answer of a dump (`netlink_recvmsg()`), rounded up.
const BUFFER: usize = 32 * 1024;
const HEADER: usize = Nlmsghdr::len();

/// Netlink sockets of one network namespace.
pub struct Netlink {
    route: Socket,
    generic: Socket,
    families: BTreeMap<&'static str, u16>,
    sequence: u32,
}

impl Netlink {
    /// Opens the sockets in the namespace of the calling thread.
    pub fn open() -> io::Result<Netlink> {
        let (route, generic) = (open(NETLINK_ROUTE)?, open(NETLINK_GENERIC)?);
        let mut netlink = Netlink { route, generic, families: BTreeMap::new(), sequence: 0 };
        // The kernel sizes the first answer of a dump by the largest buffer that the socket has read into.
        netlink.resolve("nlctrl").map_err(io::Error::other)?;
        netlink.send(&super::link::read("lo")).map_err(io::Error::other)?;
        Ok(netlink)
    }

    /// Opens the sockets in another namespace, for example a file in `/run/netns`. They stay in it.
    pub fn open_in(namespace: &File) -> io::Result<Netlink> {
        sys::in_network_namespace(namespace, Netlink::open)?
    }

    fn resolve(&mut self, family: &'static str) -> Result<u16, Refusal> {
        if let Some(number) = self.families.get(family) {
            return Ok(*number);
        }
        let mut request = nlctrl::Request::new().op_getfamily_do();
        request.encode().push_family_name_bytes(family.as_bytes());
        let message = Message::of(&request);
        self.sequence += 1;
        let answers = exchange(&self.generic, libc::GENL_ID_CTRL as u16, self.sequence, &message)?;
        let number = answers.first().and_then(|answer| {
            <nlctrl::OpGetfamilyDo as netlink_bindings::traits::NetlinkRequest>::decode_reply(answer)
                .get_family_id()
                .ok()
        });
        let missing = || Refusal { errno: libc::ENOENT, text: Some(format!("no family `{family}` of netlink")) };
        let number = number.ok_or_else(missing)?;
        self.families.insert(family, number);
        Ok(number)
    }
}

impl Kernel for Netlink {
    fn send(&mut self, message: &Message) -> Result<Vec<Vec<u8>>, Refusal> {
        let (generic, kind) = match message.family {
            Family::Route(kind) => (false, kind),
            Family::Generic(family) => (true, self.resolve(family)?),
        };
        self.sequence += 1;
        exchange(if generic { &self.generic } else { &self.route }, kind, self.sequence, message)
    }

    fn now(&self, clock: GateClock) -> i64 {
        sys::time_of(clock.id()).as_nanos()
    }

    fn wait(&mut self, length: Duration) {
        sys::sleep(length);
    }
}

fn open(protocol: isize) -> io::Result<Socket> {
    let socket = Socket::new(protocol)?;
    socket.set_ext_ack(true)?;
    // A refusal without the request fits the buffer.
    socket.set_cap_ack(true)?;
    Ok(socket)
}

/// Sends a message, and reads until its acknowledgement.
fn exchange(socket: &Socket, kind: u16, sequence: u32, message: &Message) -> Result<Vec<Vec<u8>>, Refusal> {
    let len = (HEADER + message.payload.len()) as u32;
    let header = Nlmsghdr { len, r#type: kind, flags: message.flags, seq: sequence, pid: 0 };
    socket.send(&[header.as_slice(), &message.payload].concat(), 0)?;
    let mut answers = Vec::new();
    loop {
        let mut buffer = Vec::with_capacity(BUFFER);
        socket.recv(&mut buffer, 0)?;
        if take(&buffer, sequence, &mut answers)? {
            return Ok(answers);
        }
    }
}

/// Takes the answers from a buffer. Returns whether the last one was there.
fn take(mut buffer: &[u8], sequence: u32, answers: &mut Vec<Vec<u8>>) -> Result<bool, Refusal> {
    while let Some(header) = buffer.get(..HEADER).and_then(Nlmsghdr::new_from_slice) {
        let Some(payload) = buffer.get(HEADER..header.len as usize) else { break };
        buffer = buffer.get(utils::nla_align_up(header.len as usize)..).unwrap_or_default();
        if header.seq != sequence {
            continue;
        }
        match i32::from(header.r#type) {
            libc::NLMSG_NOOP => {}
            libc::NLMSG_ERROR => return acknowledged(header.flags, payload).map(|()| true),
            libc::NLMSG_DONE => return finished(payload).map(|()| true),
            _ => answers.push(payload.to_vec()),
        }
    }
    Ok(false)
}

/// Reads the end of a dump: a number, which is negative for an error.
fn finished(payload: &[u8]) -> Result<(), Refusal> {
    match payload.get(..4).and_then(utils::parse_i32).unwrap_or(0) {
        0.. => Ok(()),
        errno => Err(Refusal { errno: -errno, text: None }),
    }
}

/// Reads an acknowledgement: a number, the header of the request, the rest of the request unless the kernel left it
/// out, and attributes.
fn acknowledged(flags: u16, payload: &[u8]) -> Result<(), Refusal> {
    let errno = payload.get(..4).and_then(utils::parse_i32).unwrap_or(-libc::EIO);
    if errno == 0 {
        return Ok(());
    }
    let echoed = match payload.get(4..4 + HEADER).and_then(Nlmsghdr::new_from_slice) {
        Some(header) if flags & libc::NLM_F_CAPPED as u16 == 0 => header.len as usize,
        _ => HEADER,
    };
    let attributes = payload.get(4 + utils::nla_align_up(echoed)..).unwrap_or_default();
    let has_text = flags & libc::NLM_F_ACK_TLVS as u16 != 0;
    let text = has_text.then(|| NlmsgerrAttrs::new(attributes).get_msg().ok()).flatten();
    Err(Refusal { errno: -errno, text: text.map(|text| text.to_string_lossy().into_owned()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: i32, flags: i32, sequence: u32, payload: &[u8]) -> Vec<u8> {
        let len = (HEADER + payload.len()) as u32;
        let header = Nlmsghdr { len, r#type: kind as u16, flags: flags as u16, seq: sequence, pid: 0 };
        [header.as_slice(), payload].concat()
    }

    #[test]
    fn answers_of_other_requests_are_left_out() {
        let buffer =
            [message(36, 2, 6, &[1, 1, 1, 1]), message(36, 2, 7, &[2; 4]), message(libc::NLMSG_DONE, 2, 7, &[0; 4])];
        let mut answers = Vec::new();
        assert_eq!(take(&buffer.concat(), 7, &mut answers), Ok(true));
        assert_eq!(answers, [[2; 4]]);
    }

    #[test]
    fn a_refusal_has_number_and_text() {
        let request = message(36, 5, 7, &[9; 8]);
        let words = b"Invalid 'clockid'\0";
        let attribute = [&(4 + words.len() as u16).to_ne_bytes()[..], &1_u16.to_ne_bytes(), words].concat();
        let refused = [&(-libc::EINVAL).to_ne_bytes()[..], &request, &attribute].concat();
        let whole = message(libc::NLMSG_ERROR, libc::NLM_F_ACK_TLVS, 7, &refused);
        let refusal = Refusal { errno: libc::EINVAL, text: Some("Invalid 'clockid'".into()) };
        assert_eq!(take(&whole, 7, &mut Vec::new()), Err(refusal.clone()));
        // The kernel leaves out the body of the request.
        let refused = [&(-libc::EINVAL).to_ne_bytes()[..], &request[..HEADER], &attribute].concat();
        let capped = message(libc::NLMSG_ERROR, libc::NLM_F_ACK_TLVS | libc::NLM_F_CAPPED, 7, &refused);
        assert_eq!(take(&capped, 7, &mut Vec::new()), Err(refusal));
    }

    #[test]
    fn the_loopback_device_is_there() {
        let mut netlink = Netlink::open().unwrap();
        assert_eq!(netlink.send(&super::super::link::read("lo")).unwrap().len(), 1);
        let refusal = netlink.send(&super::super::link::read("no-such-device")).unwrap_err();
        assert_eq!(refusal.errno, libc::ENODEV);
    }
}
