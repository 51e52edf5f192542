//! Network namespaces.

use std::net::Ipv4Addr;

use super::MAX_NAME;
use crate::keys::{object, Kind};

object! {
    /// A network namespace with one interface, `eth0`, at the bridge that joins all of them.
    #[derive(Eq)]
    pub struct Namespace: "a namespace" {
        "name" name: String [Kind::Name { most: MAX_NAME }], required
            = "Its name, unique; iproute2 calls the namespace `macrotick-NAME`.";
        "address" address: String [Kind::Text("address")], required
            = "IPv4 address of the interface with the length of the network's prefix (1 to 30), `10.0.0.1/24`.";
    }
}

impl Namespace {
    /// The address and the length of the prefix, if they are that.
    pub fn decode(&self) -> Option<(Ipv4Addr, u8)> {
        let (address, prefix) = self.address.split_once('/')?;
        Some((address.parse().ok()?, prefix.parse().ok().filter(|prefix| (1..=30).contains(prefix))?))
    }
}
