//! The traffic class of a captured frame.

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::packet::Packet;

/// Frames that belong to a class: those that have all the given properties.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Rule {
    /// The name of the class.
    pub class: String,
    /// The priority code point of the outer VLAN tag.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pcp: Option<u8>,
    /// The EtherType after the VLAN tags.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ether_type: Option<u16>,
    /// The source address of the IP packet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<IpAddr>,
    /// The destination address of the IP packet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destination: Option<IpAddr>,
    /// The source port of the UDP datagram.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_port: Option<u16>,
    /// The destination port of the UDP datagram.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destination_port: Option<u16>,
}

impl Rule {
    /// Whether a frame has all properties of the rule.
    pub fn matches(&self, packet: &Packet) -> bool {
        fn has<T: PartialEq>(asked: &Option<T>, actual: Option<T>) -> bool {
            asked.is_none() || *asked == actual
        }
        has(&self.pcp, packet.vlan.map(|vlan| vlan.pcp))
            && has(&self.ether_type, packet.ether_type)
            && has(&self.source, packet.source)
            && has(&self.destination, packet.destination)
            && has(&self.source_port, packet.source_port)
            && has(&self.destination_port, packet.destination_port)
    }
}

/// A rule names a class that does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("rule {rule}: no traffic class is named `{class}`: use one of {}", .known.join(", "))]
pub struct UnknownClass {
    /// The place of the rule, from 0.
    pub rule: usize,
    /// The unknown name.
    pub class: String,
    /// The names that exist.
    pub known: Vec<String>,
}

/// Rules in order: the first one that matches a frame decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Classifier {
    rules: Vec<(usize, Rule)>,
}

impl Classifier {
    /// Makes a classifier for these classes. A last rule without properties takes all other frames.
    ///
    /// # Errors
    ///
    /// Refuses a rule for an unknown class.
    pub fn new(classes: &[&str], rules: &[Rule]) -> Result<Classifier, UnknownClass> {
        let place = |(number, rule): (usize, &Rule)| {
            let class = classes.iter().position(|class| *class == rule.class);
            class.map(|class| (class, rule.clone())).ok_or_else(|| UnknownClass {
                rule: number,
                class: rule.class.clone(),
                known: classes.iter().map(|class| class.to_string()).collect(),
            })
        };
        Ok(Classifier { rules: rules.iter().enumerate().map(place).collect::<Result<_, _>>()? })
    }

    /// Returns the place of the class of a frame; `None` if no rule matches.
    pub fn classify(&self, packet: &Packet) -> Option<usize> {
        self.rules.iter().find(|(_, rule)| rule.matches(packet)).map(|(class, _)| *class)
    }
}
