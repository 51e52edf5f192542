//! A network interface, as netlink describes it. A part that the driver does not have is absent.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// A network interface.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Interface {
    /// The kind of its root qdisc, for example `taprio`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qdisc: Option<String>,
    /// The transmit queues in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queues: Option<u32>,
    /// The most transmit queues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most_queues: Option<u32>,
    /// The coalescing of interrupts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coalescing: Option<Coalescing>,
    /// The names of the features that are on, for example `tx-tcp-segmentation`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub features: Option<BTreeSet<String>>,
    /// Whether energy-efficient Ethernet is on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eee: Option<bool>,
    /// Pause frames.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause: Option<Pause>,
    /// The ring buffers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rings: Option<Rings>,
    /// Time stamps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stamps: Option<Stamps>,
    /// Whether its root qdisc has a size table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_table: Option<bool>,
    /// The VLAN that it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlan: Option<VlanState>,
    /// The priorities that its classifiers give to frames.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priorities: Option<BTreeSet<u32>>,
    /// Its neighbours, by their addresses of IPv4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub neighbours: Option<BTreeMap<String, Neighbour>>,
}

/// A VLAN.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct VlanState {
    /// Its number.
    pub number: u16,
    /// The interface below it, if that is in the same network namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub below: Option<String>,
    /// The priority code points of the priorities that have one. The others have 0.
    pub code_points: BTreeMap<u32, u8>,
}

/// A neighbour with a known hardware address.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Neighbour {
    /// Its hardware address.
    pub hardware: String,
    /// Whether it stays.
    pub permanent: bool,
}

/// The coalescing of interrupts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Coalescing {
    /// The delay of a receive interrupt, in microseconds.
    pub receive_us: u32,
    /// The delay of a transmit interrupt, in microseconds.
    pub transmit_us: u32,
    /// Whether the driver changes the delay of receive interrupts by itself.
    pub adaptive: bool,
}

/// Pause frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Pause {
    /// Whether a received pause frame stops the transmitter.
    pub receive: bool,
    /// Whether the interface sends pause frames.
    pub transmit: bool,
}

/// The ring buffers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Rings {
    /// The frames of a transmit ring.
    pub transmit: u32,
    /// The frames of a receive ring.
    pub receive: u32,
}

/// Time stamps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Stamps {
    /// Whether the interface stamps frames in hardware.
    pub hardware: bool,
    /// The number of its hardware clock (`/dev/ptpN`).
    pub clock: Option<u32>,
}
