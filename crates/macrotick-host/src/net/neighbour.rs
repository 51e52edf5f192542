//! Permanent neighbours.

use std::net::IpAddr;

use netlink_bindings::rt_neigh::{Ndmsg, OpGetneighDump, Request};
use netlink_bindings::traits::NetlinkRequest;

use super::message::Message;
use super::wanted::Neighbour;

/// `NUD_PERMANENT`.
const PERMANENT: u16 = 0x80;

fn at(index: i32, state: u16) -> Ndmsg {
    Ndmsg { ndm_family: libc::AF_INET as u8, ndm_ifindex: index, ndm_state: state, ..Default::default() }
}

/// Adds a neighbour, or replaces what is known about it.
pub(super) fn put(index: i32, neighbour: &Neighbour) -> Message {
    let mut request = Request::new().set_create().set_replace().op_newneigh_do(&at(index, PERMANENT));
    request.encode().push_dst(IpAddr::V4(neighbour.address)).push_lladdr(&neighbour.hardware);
    Message::of(&request)
}

/// Deletes a neighbour.
pub(super) fn delete(index: i32, neighbour: &Neighbour) -> Message {
    let mut request = Request::new().op_delneigh_do(&at(index, PERMANENT));
    request.encode().push_dst(IpAddr::V4(neighbour.address));
    Message::of(&request)
}

/// Asks for all neighbours.
pub(super) fn dump() -> Message {
    Message::of(&Request::new().op_getneigh_dump(&at(0, 0)))
}

/// Reads the permanent neighbours of a device from the answers of [`dump`]. Others are forgotten by themselves.
pub(super) fn decode(index: i32, answers: &[Vec<u8>]) -> Vec<Neighbour> {
    decode_all(index, answers).filter(|(_, permanent)| *permanent).map(|(neighbour, _)| neighbour).collect()
}

/// Reads the neighbours of a device with a hardware address, and whether each is permanent.
pub(super) fn decode_all(index: i32, answers: &[Vec<u8>]) -> impl Iterator<Item = (Neighbour, bool)> + '_ {
    answers.iter().filter_map(move |answer| decode_one(index, answer))
}

fn decode_one(index: i32, answer: &[u8]) -> Option<(Neighbour, bool)> {
    let (header, attributes) = OpGetneighDump::decode_reply(answer);
    let permanent = header.ndm_state & PERMANENT != 0;
    let (Ok(IpAddr::V4(address)), Ok(hardware)) = (attributes.get_dst(), attributes.get_lladdr()) else { return None };
    let neighbour = Neighbour { address, hardware: hardware.try_into().ok()? };
    (header.ndm_ifindex == index).then_some((neighbour, permanent))
}

/// Returns the arguments for ip.
pub(super) fn words(device: &str, neighbour: &Neighbour) -> String {
    let hardware = hardware_words(neighbour);
    format!("neighbour replace {} lladdr {hardware} dev {device} nud permanent", neighbour.address)
}

/// Returns the hardware address as ip writes it.
pub(super) fn hardware_words(neighbour: &Neighbour) -> String {
    let bytes: Vec<String> = neighbour.hardware.iter().map(|byte| format!("{byte:02x}")).collect();
    bytes.join(":")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::samples;

    #[test]
    fn what_is_written_is_read() {
        let neighbour = samples::neighbour();
        assert_eq!(decode(3, &[put(3, &neighbour).payload]), [neighbour]);
        assert_eq!(decode(4, &[put(3, &neighbour).payload]), []);
    }
}
