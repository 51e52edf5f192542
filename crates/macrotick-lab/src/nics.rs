//! The network cards of a machine. All of them are on one hub: a frame of one arrives at all others.
//!
//! The lab's clock counts instructions, and the hub passes frames between two of them. `docs/explanation/lab.md` states
//! which runs repeat.

use std::process::Command;

use crate::command;
use crate::error::LabError;

/// A model of network cards with several queues, which works on a hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NicModel {
    /// VMware's paravirtual card.
    Vmxnet3,
    /// Intel's 82576, which QEMU has from version 8 on.
    Igb,
}

impl NicModel {
    /// All models.
    pub const ALL: [NicModel; 2] = [NicModel::Vmxnet3, NicModel::Igb];

    /// Returns the name of the device in QEMU.
    pub fn name(self) -> &'static str {
        match self {
            NicModel::Vmxnet3 => "vmxnet3",
            NicModel::Igb => "igb",
        }
    }

    /// Whether the installed QEMU has this model.
    pub fn is_there(self) -> Result<bool, LabError> {
        let qemu = command::find("qemu-system-x86_64", "qemu-system-x86")?;
        let list = command::output(Command::new(qemu).args(["-device", "help"]))?;
        Ok(list.contains(&format!("name \"{}\",", self.name())))
    }
}

/// The network cards of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nics {
    /// Their model.
    pub model: NicModel,
    /// Their number: 1 to 8.
    pub count: u32,
    /// The queues of each one, 1 to 8. The drivers make one for each CPU that is online at the boot. The machine boots
    /// with as many CPUs. Those that the job does not have go offline before the machine is saved.
    pub queues: u32,
}

/// The first slot of PCI for cards, and the distance of two cards: the functions of an igb take slots, too.
const FIRST_SLOT: u32 = 4;
const SLOTS: u32 = 3;
// A bus has 32 slots.
const _: () = assert!(FIRST_SLOT + SLOTS * 8 <= 32);

impl Nics {
    /// Returns the reason why no machine has these cards.
    pub(crate) fn problem(&self) -> Option<String> {
        if !(1..=8).contains(&self.count) {
            Some(format!("{} network cards: 1 to 8 are possible", self.count))
        } else if !(1..=8).contains(&self.queues) {
            Some(format!("network cards with {} queues: 1 to 8 are possible", self.queues))
        } else {
            None
        }
    }

    /// Fails if the installed QEMU does not have the cards.
    pub(crate) fn check(&self) -> Result<(), LabError> {
        match self.model.is_there()? {
            true => Ok(()),
            false => Err(LabError::NoNic { model: self.model.name() }),
        }
    }

    /// Returns QEMU's arguments. Without a ROM the firmware has nothing to boot from a network.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let model = self.model.name();
        let of = |number: u32| {
            let slot = FIRST_SLOT + SLOTS * number;
            [
                "-netdev".to_owned(),
                format!("hubport,id=port{number},hubid=0"),
                "-device".to_owned(),
                format!("{model},netdev=port{number},mac={},addr={slot:#x},romfile=", address(number)),
            ]
        };
        (0..self.count).flat_map(of).collect()
    }
}

/// Returns the hardware address of a card. The cards have the numbers 0, 1, and so on, as `eth0`, `eth1` in the guest.
pub fn address(number: u32) -> String {
    format!("02:00:00:00:01:{:02x}", number + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_cards_are_on_one_hub_in_slots_of_their_own() {
        let nics = Nics { model: NicModel::Igb, count: 2, queues: 4 };
        assert_eq!(
            nics.arguments().join(" "),
            "-netdev hubport,id=port0,hubid=0 -device igb,netdev=port0,mac=02:00:00:00:01:01,addr=0x4,romfile= \
             -netdev hubport,id=port1,hubid=0 -device igb,netdev=port1,mac=02:00:00:00:01:02,addr=0x7,romfile="
        );
    }
}
