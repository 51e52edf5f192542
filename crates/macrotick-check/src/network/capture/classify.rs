//! The traffic class of a captured frame.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

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

/// The reason why a text is not a rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseRuleError {
    /// There is no class, or nothing after it.
    #[error("write CLASS=FRAMES, as in `control=udp:5000`")]
    Form,
    /// A property that frames do not have.
    #[error("unknown property `{0}`: use udp:PORT, from-udp:PORT, to:ADDRESS, from:ADDRESS, ether:TYPE or pcp:NUMBER")]
    Property(String),
    /// A value that the property cannot have.
    #[error("`{value}` is not {expected}")]
    Value {
        /// The value.
        value: String,
        /// The values that are possible, in words.
        expected: &'static str,
    },
}

/// Reads a class and the properties of its frames, separated by commas, as in `control=udp:5000,to:10.0.0.2`.
impl FromStr for Rule {
    type Err = ParseRuleError;

    fn from_str(text: &str) -> Result<Rule, ParseRuleError> {
        let (class, properties) = text.split_once('=').ok_or(ParseRuleError::Form)?;
        if class.is_empty() || properties.is_empty() {
            return Err(ParseRuleError::Form);
        }
        let mut rule = Rule { class: class.into(), ..Rule::default() };
        for property in properties.split(',') {
            let unknown = || ParseRuleError::Property(property.into());
            let (name, value) = property.split_once(':').ok_or_else(unknown)?;
            let wrong = |expected| ParseRuleError::Value { value: value.into(), expected };
            match name {
                "udp" => rule.destination_port = Some(value.parse().map_err(|_| wrong("a port of UDP"))?),
                "from-udp" => rule.source_port = Some(value.parse().map_err(|_| wrong("a port of UDP"))?),
                "to" => rule.destination = Some(value.parse().map_err(|_| wrong("an IP address"))?),
                "from" => rule.source = Some(value.parse().map_err(|_| wrong("an IP address"))?),
                "pcp" => {
                    let pcp = value.parse().ok().filter(|pcp| *pcp <= 7);
                    rule.pcp = Some(pcp.ok_or_else(|| wrong("a priority code point, 0 to 7"))?);
                }
                "ether" => {
                    let digits = value.strip_prefix("0x").unwrap_or(value);
                    let expected = "an EtherType, as 0x88f7";
                    rule.ether_type = Some(u16::from_str_radix(digits, 16).map_err(|_| wrong(expected))?);
                }
                _ => return Err(unknown()),
            }
        }
        Ok(rule)
    }
}

/// Writes the rule in the form in which it is read.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Rule { class, pcp, ether_type, source, destination, source_port, destination_port } = self;
        let properties = [
            destination_port.map(|port| format!("udp:{port}")),
            source_port.map(|port| format!("from-udp:{port}")),
            destination.map(|address| format!("to:{address}")),
            source.map(|address| format!("from:{address}")),
            ether_type.map(|kind| format!("ether:{kind:#06x}")),
            pcp.map(|pcp| format!("pcp:{pcp}")),
        ];
        let properties: Vec<String> = properties.into_iter().flatten().collect();
        let properties = if properties.is_empty() { "all".into() } else { properties.join(",") };
        write!(f, "{class}={properties}")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_written_as_they_are_read() {
        for text in ["control=udp:5000", "a=udp:1,from-udp:2,to:10.0.0.2,from:::1", "sync=ether:0x88f7", "b=pcp:6"] {
            assert_eq!(text.parse::<Rule>().unwrap().to_string(), text);
        }
        let told = |text: &str| text.parse::<Rule>().unwrap_err().to_string();
        assert_eq!(told("control"), "write CLASS=FRAMES, as in `control=udp:5000`");
        assert!(told("a=tcp:5").starts_with("unknown property `tcp:5`: use udp:PORT"));
        assert_eq!(told("a=pcp:8"), "`8` is not a priority code point, 0 to 7");
        assert_eq!(told("a=udp:70000"), "`70000` is not a port of UDP");
    }
}
