//! Calls about the gates of an interface, which all processes of a fuzzer share.

use std::net::UdpSocket;

use crate::check::Check;
use crate::random::Random;
use crate::scenarios::gates::random;
use crate::taprio;
use crate::wire::{self, CRITICAL};

/// The thread of the gates.
pub const THREAD: &str = "gate/va";

/// The interface, and a socket that sends through it.
pub struct Gates {
    interface: u32,
    socket: UdpSocket,
}

impl Gates {
    /// Enters the namespace of the interface for the rest of this process. Half of the processes send frames of the class
    /// that mostly waits.
    pub fn new(choice: &Random) -> Check<Gates> {
        wire::enter("a")?;
        let interface = taprio::index(wire::SENDER);
        // Another process may have taken it down. The socket needs its route.
        let _ = taprio::switch(interface, true);
        let priority = if choice.clone().below(2) == 0 { 0 } else { CRITICAL };
        Ok(Gates { interface, socket: wire::sender(priority)? })
    }

    /// Sets, changes, removes or reads gates, switches the link, or sends frames.
    pub fn call(&self, choice: &mut Random) -> Result<(), i32> {
        match choice.below(16) {
            0..=6 => {
                let mut taprio = random(choice);
                match choice.below(12) {
                    0 => taprio.lead = Some(choice.number() as u32),
                    1 => taprio.base = choice.number() as i64,
                    2 => taprio.entries.push((choice.number() as u32, choice.number() as u32)),
                    3 => taprio.clock = choice.below(16) as i32,
                    _ => {}
                }
                taprio.set(self.interface)
            }
            7 => taprio::remove(self.interface),
            8 => taprio::dump(self.interface),
            9 => taprio::switch(self.interface, false),
            10..=11 => taprio::switch(self.interface, true),
            _ => {
                // A full queue, and a link that is down, are no failures.
                (0..1 + choice.below(16)).for_each(|_| drop(self.socket.send(&[0; 200])));
                Ok(())
            }
        }
    }
}
