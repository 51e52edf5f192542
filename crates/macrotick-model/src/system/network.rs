//! Network namespaces.

use std::net::Ipv4Addr;

use super::MAX_NAME;
use crate::keys::{object, Kind};

object! {
    /// A network namespace with one interface, `eth0`. A bridge connects all namespaces.
    #[derive(Eq)]
    pub struct Namespace: "a namespace" {
        "name" name: String [Kind::Name { most: MAX_NAME }], required
            = "The unique name of the namespace. In iproute2 its name is `macrotick-NAME`.";
        "host" host: Option<String> [Kind::Text("host")], optional "the only one" = "The name of its [host](#hosts).";
        "address" address: String [Kind::Text("address")], required
            = "IPv4 address of the interface with the prefix length (1 to 30), as in `10.0.0.1/24`.";
    }
}

impl Namespace {
    /// Returns the address and the prefix length, if both are valid.
    pub fn decode(&self) -> Option<(Ipv4Addr, u8)> {
        let (address, prefix) = self.address.split_once('/')?;
        Some((address.parse().ok()?, prefix.parse().ok().filter(|prefix| (1..=30).contains(prefix))?))
    }
}
