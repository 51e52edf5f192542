//! The port of an interface: its link, its traffic classes, and the way in which its gates decide.

use macrotick_model::Instant;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::gates::Gates;
use super::link::{Link, Protocol};

/// The frames that a queue holds by default: the limit of pfifo on a device with the usual `txqueuelen`.
pub const QUEUE: usize = 1000;

/// A traffic class of a port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Class {
    /// The name.
    pub name: String,
    /// The most frames that wait. The queue drops further ones.
    pub queue: usize,
    /// The most bytes of content in a frame (queueMaxSDU), if it is limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_sdu: Option<u32>,
}

impl Class {
    /// Makes a class with a queue of [`QUEUE`] frames.
    pub fn new(name: impl Into<String>) -> Class {
        Class { name: name.into(), queue: QUEUE, max_sdu: None }
    }
}

/// The bytes of a frame that a gate compares with the rest of its window before it lets the frame start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Guard {
    /// All bytes on the wire, with preamble, tag, padding, frame check sequence and gap. The kernel counts them with a
    /// size table (`stab`).
    #[default]
    Wire,
    /// The header and the content only, as the kernel without a size table. A frame can end after the closing.
    Kernel,
    /// None: a frame can start until the closing.
    None,
}

/// The instant at which the gates choose the next frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Gating {
    /// When the link is free, as in IEEE 802.1Q and in a device with full offload.
    #[default]
    Link,
    /// When the frame is in its queue and the gate is open, as in `sch_taprio.c`. The device then has it, and sends it
    /// after the frames that it already has. Only the budget of an entry bounds a burst, so a frame can leave after
    /// its gate has closed. The model has one queue without a limit for the device.
    Qdisc,
}

/// A port that sends frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// The name of the interface.
    pub name: String,
    /// The link.
    pub link: Link,
    /// The traffic classes, the most important one first.
    pub classes: Vec<Class>,
    /// The gates, made for the names of these classes. Without gates, the port has strict priorities only.
    pub gates: Option<Gates>,
    /// The guard band.
    pub guard: Guard,
    /// The instant of the decision.
    pub gating: Gating,
}

/// A frame that reaches the queue of its class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The place of the class in [`Port::classes`].
    pub class: usize,
    /// The bytes between the Ethernet header and the frame check sequence, without a VLAN tag.
    pub content: u32,
    /// Whether the frame has a VLAN tag.
    pub tagged: bool,
    /// The instant at which it reaches the queue.
    pub at: Instant,
}

impl Frame {
    /// Makes the frames of a message of `size` bytes at the socket. `None` if the link cannot carry the message.
    pub fn of(
        class: usize,
        size: u32,
        protocol: Protocol,
        tagged: bool,
        at: Instant,
        link: &Link,
    ) -> Option<Vec<Frame>> {
        let contents = protocol.contents(size, link.mtu)?;
        Some(contents.into_iter().map(|content| Frame { class, content, tagged, at }).collect())
    }
}

impl Port {
    /// Makes a port with these classes, without gates. Its guard band counts the wire, and its gates decide for the
    /// link.
    pub fn new(name: impl Into<String>, link: Link, classes: Vec<Class>) -> Port {
        Port { name: name.into(), link, classes, gates: None, guard: Guard::default(), gating: Gating::default() }
    }

    /// Returns the share of time in which the gate of a class is open, 0 to 1.
    pub(crate) fn open_share(&self, class: usize) -> f64 {
        let Some(gates) = self.gates.as_ref().filter(|gates| !gates.always(class)) else { return 1.0 };
        let open: i64 = gates.windows(class).map(|(begin, end)| end - begin).sum();
        open as f64 / gates.cycle().as_nanos() as f64
    }

    /// Returns the bytes of a frame that the gate counts.
    pub(crate) fn counted(&self, frame: &Frame) -> u64 {
        match self.guard {
            Guard::Wire => self.link.wire_bytes(frame.content, frame.tagged),
            Guard::Kernel => self.link.kernel_bytes(frame.content),
            Guard::None => 0,
        }
    }

    /// Returns the time for so many bytes as the gate computes it, in nanoseconds, rounded down.
    pub(crate) fn counted_time(&self, bytes: u64) -> i64 {
        let nanos = match self.gating {
            Gating::Link => u128::from(bytes) * 8_000_000_000 / u128::from(self.link.speed),
            Gating::Qdisc => u128::from(bytes) * u128::from(self.link.picos_per_byte()) / 1000,
        };
        i64::try_from(nanos).unwrap_or(i64::MAX)
    }

    /// Returns the bytes that fit into a time as the gate computes it, rounded down.
    pub(crate) fn counted_bytes(&self, nanos: i64) -> u64 {
        let nanos = nanos.max(0) as u128;
        let bytes = match self.gating {
            Gating::Link => nanos * u128::from(self.link.speed) / 8_000_000_000,
            Gating::Qdisc => nanos * 1000 / u128::from(self.link.picos_per_byte()),
        };
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }

    /// Whether a gate lets a frame start now: it is open, and closes only after the counted bytes.
    pub(crate) fn passes(&self, gates: &Gates, class: usize, counted: u64, now: i64) -> bool {
        if gates.before(now) {
            return true;
        }
        if !gates.open(class, now) {
            return false;
        }
        match gates.window(class, now) {
            // As `taprio_entry_allows_tx()`: a frame that would end with the window waits.
            Some((_, close)) if self.guard != Guard::None => now + self.counted_time(counted) < close,
            _ => true,
        }
    }
}
