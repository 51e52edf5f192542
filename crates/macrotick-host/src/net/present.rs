//! The present state of a device.

use super::channels::{self, Channels};
use super::classifier::{self, Filter, Side};
use super::kernel::{Kernel, Refusal};
use super::link::{self, Link};
use super::neighbour;
use super::qdisc::{self, Found, Placed, State};
use super::taprio::Running;
use super::wanted::Neighbour;

/// The present state of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Present {
    pub link: Link,
    /// In order of place and handle.
    pub qdiscs: Vec<Found>,
    /// The filters of both sides. The numbers of frames are left out.
    pub filters: Vec<classifier::Found>,
    pub neighbours: Vec<Neighbour>,
    /// `None`: they were not asked for.
    pub channels: Option<Channels>,
}

/// Reads the state of a device. The number of queues is read only `with_channels`, because the kernel may lack the
/// interface, and drivers may refuse.
pub(super) fn read(kernel: &mut dyn Kernel, device: &str, with_channels: bool) -> Result<Present, Refusal> {
    let missing = || Refusal { errno: libc::ENODEV, text: None };
    let link = link::decode(&kernel.send(&link::read(device))?).ok_or_else(missing)?;
    let mut qdiscs = read_qdiscs(kernel, link.index)?;
    settle(kernel, &mut qdiscs);
    qdiscs.sort_by_key(|found| (found.parent, found.handle));
    let mut filters = read_filters(kernel, link.index)?;
    filters.iter_mut().for_each(|found| found.packets = 0);
    let mut neighbours = neighbour::decode(link.index, &kernel.send(&neighbour::dump())?);
    neighbours.sort_by_key(|neighbour| neighbour.address);
    let channels = match with_channels {
        true => channels::decode(&kernel.send(&channels::read(link.index))?),
        false => None,
    };
    Ok(Present { link, qdiscs, filters, neighbours, channels })
}

/// Reads the qdiscs of a device, as the kernel reports them.
pub(super) fn read_qdiscs(kernel: &mut dyn Kernel, index: i32) -> Result<Vec<Found>, Refusal> {
    Ok(qdisc::decode(index, &kernel.send(&qdisc::dump(index))?))
}

/// Takes gate lists for running that are in force by the clock.
fn settle(kernel: &dyn Kernel, qdiscs: &mut [Found]) {
    for found in qdiscs {
        if let Some(State::Taprio(running)) = &mut found.state {
            running.settle(kernel.now(running.clock));
        }
    }
}

/// Reads the filters of a device, at ingress and at egress.
pub(super) fn read_filters(kernel: &mut dyn Kernel, index: i32) -> Result<Vec<classifier::Found>, Refusal> {
    let mut found = Vec::new();
    for side in Side::BOTH {
        found.extend(classifier::decode(index, &kernel.send(&classifier::dump(index, side))?));
    }
    Ok(found)
}

/// Returns the gates among qdiscs.
pub(super) fn gates(qdiscs: &[Found]) -> Option<&Running> {
    match &root(qdiscs)?.state {
        Some(State::Taprio(running)) => Some(running),
        _ => None,
    }
}

/// Returns the configured root. The kernel's default has handle 0.
fn root(qdiscs: &[Found]) -> Option<&Found> {
    qdiscs.iter().find(|found| found.parent == qdisc::ROOT && found.handle != 0)
}

impl Present {
    /// Returns the state of a veth that has just been made.
    pub fn of_new_veth(queues: u32) -> Present {
        let link = Link { index: 0, kind: "veth".into(), tx_queues: queues, mtu: 1500, vlan_priorities: None };
        Present { link, qdiscs: Vec::new(), filters: Vec::new(), neighbours: Vec::new(), channels: None }
    }

    /// Returns the configured root.
    pub fn root(&self) -> Option<&Found> {
        root(&self.qdiscs)
    }

    /// Returns the configured qdiscs below the root, at any depth, in order of their places.
    pub fn below_root(&self) -> impl Iterator<Item = &Found> {
        let special = [qdisc::ROOT, qdisc::CLSACT];
        self.qdiscs.iter().filter(move |found| found.handle != 0 && !special.contains(&found.parent))
    }

    /// Returns what makes the root and everything below it again. Fails with the name of a qdisc that a deployment
    /// does not make.
    pub fn tree(&self) -> Result<Vec<Placed>, String> {
        let all = self.root().into_iter().chain(self.below_root());
        all.map(|found| found.placed().ok_or_else(|| found.name.clone())).collect()
    }

    /// Returns the qdisc of ingress or of both directions.
    pub fn special(&self) -> Option<&str> {
        self.qdiscs.iter().find(|found| found.parent == qdisc::CLSACT).map(|found| found.name.as_str())
    }

    /// Returns the filter of a preference; `Some(None)`: there is one that a deployment does not make.
    pub fn filter(&self, side: Side, preference: u16) -> Option<Option<&Filter>> {
        let mut found = self.filters.iter().filter(|found| found.side == side && found.preference == preference);
        let first = found.next()?;
        Some(first.filter.as_ref().filter(|_| found.next().is_none()))
    }
}
