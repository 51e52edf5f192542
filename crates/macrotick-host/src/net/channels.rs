//! The number of transmit queues of a device, by the ethtool family of netlink.
//!
//! The bindings number the commands of this family wrongly (they count notifications too). The right numbers are set
//! here.

use netlink_bindings::ethtool::{OpChannelsGetDo, Request};
use netlink_bindings::traits::NetlinkRequest;

use super::message::Message;

/// `ETHTOOL_MSG_CHANNELS_GET`.
const GET: u8 = 17;
/// `ETHTOOL_MSG_CHANNELS_SET`.
const SET: u8 = 18;

/// The queues of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Channels {
    /// The transmit queues in use.
    pub queues: u32,
    /// The largest number.
    pub max: u32,
    /// Each queue transmits and receives.
    pub combined: bool,
}

/// Asks for the queues of a device.
pub(super) fn read(index: i32) -> Message {
    let mut request = Request::new().op_channels_get_do();
    request.header_mut().cmd = GET;
    request.encode().nested_header().push_dev_index(index as u32);
    Message::of(&request)
}

/// Reads the answer of [`read`].
pub(super) fn decode(answers: &[Vec<u8>]) -> Option<Channels> {
    let found = OpChannelsGetDo::decode_reply(answers.first()?);
    let combined_max = found.get_combined_max().unwrap_or(0);
    let transmit = Channels {
        queues: found.get_tx_count().unwrap_or(0) + found.get_combined_count().unwrap_or(0),
        max: found.get_tx_max().unwrap_or(0),
        combined: false,
    };
    Some(match combined_max {
        0 => transmit,
        max => Channels { max, combined: true, ..transmit },
    })
}

/// Sets the number of transmit queues.
pub(super) fn set(index: i32, channels: Channels) -> Message {
    let mut request = Request::new().op_channels_set_do();
    request.header_mut().cmd = SET;
    let encoder = request.encode().nested_header().push_dev_index(index as u32).end_nested();
    match channels.combined {
        true => drop(encoder.push_combined_count(channels.queues)),
        false => drop(encoder.push_tx_count(channels.queues)),
    }
    Message::of(&request)
}

/// Returns the arguments for ethtool.
pub(super) fn words(device: &str, combined: bool, queues: u32) -> String {
    format!("-L {device} {} {queues}", if combined { "combined" } else { "tx" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for combined in [false, true] {
            let wanted = Channels { queues: 4, max: 4, combined };
            let mut message = set(3, wanted).payload;
            // The answer has maxima too: combined (5) or transmit (3).
            message.extend([8_u16.to_ne_bytes(), if combined { 5_u16 } else { 3 }.to_ne_bytes()].concat());
            message.extend(4_u32.to_ne_bytes());
            assert_eq!(decode(&[message]), Some(wanted));
        }
    }
}
