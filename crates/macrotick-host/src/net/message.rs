//! One netlink message, apart from the number and the sender in its header.

use netlink_bindings::traits::{NetlinkRequest, Protocol};
use netlink_bindings::utils;

/// The receiver of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// rtnetlink, with the type of the message.
    Route(u16),
    /// A family of generic netlink, by its name.
    Generic(&'static str),
}

/// A message to the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The receiver.
    pub family: Family,
    /// The flags of its header.
    pub flags: u16,
    /// Everything after the header.
    pub payload: Vec<u8>,
}

impl Message {
    /// Takes the encoded request of the bindings.
    pub(super) fn of(request: &impl NetlinkRequest) -> Message {
        let family = match request.protocol() {
            Protocol::Raw { request_type, .. } => Family::Route(request_type),
            // The bindings have the names of families as bytes of string literals.
            Protocol::Generic(name) => Family::Generic(std::str::from_utf8(name).unwrap_or_default()),
        };
        let flags = request.flags() | (libc::NLM_F_REQUEST | libc::NLM_F_ACK) as u16;
        let mut payload = request.payload().to_vec();
        // The bindings align an attribute when the next one follows.
        utils::align(&mut payload);
        Message { family, flags, payload }
    }
}
