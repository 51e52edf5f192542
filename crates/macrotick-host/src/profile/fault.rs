//! The reasons why a profile cannot be in force.

use std::io;

use macrotick_model::Serving;

/// The reason why a profile cannot be in force. The host is as it was before.
#[derive(Debug, thiserror::Error)]
pub enum ProfileFault {
    /// Only root changes settings of a host.
    #[error("the set-up of the host needs root: run as root, or leave the host as it is (`--host-settings leave`)")]
    NotRoot,
    /// Another program has a profile.
    #[error("the profile of {0} is in force: a host has one profile at a time")]
    Held(String),
    /// A network device does not exist.
    #[error("there is no network device `{device}` (`devices`): this host has {there}")]
    NoDevice {
        /// The device.
        device: String,
        /// The devices of the host.
        there: String,
    },
    /// A CPU is not online.
    #[error("CPU {0} is not online")]
    Offline(u32),
    /// A task or process leaves no priority for the threads that serve it.
    #[error(
        "{user} has priority {priority}, and the threads that serve it need the two priorities above: give it at most \
         {}, or give `{key}` a priority",
        Serving::MOST - 2
    )]
    NoPriority {
        /// The task or process.
        user: String,
        /// Its priority.
        priority: u32,
        /// The key of the description.
        key: &'static str,
    },
    /// A CPU does not have a governor.
    #[error("CPU {cpu} has no frequency governor `{governor}`: it has {there} (`governor: keep` leaves it as it is)")]
    NoGovernor {
        /// The CPU.
        cpu: u32,
        /// The governor in the description.
        governor: String,
        /// The governors of the CPU.
        there: String,
    },
    /// The kernel refused a value.
    #[error("cannot set {name} to {value}: {source} (`{key}: {off}` leaves it as it is)")]
    Refused {
        /// The setting.
        name: String,
        /// The value.
        value: String,
        /// The key of the description.
        key: &'static str,
        /// The value of the key that changes nothing.
        off: &'static str,
        /// The reason.
        source: io::Error,
    },
    /// The kernel accepted a value, and has another one.
    #[error("{name} is {now} after it was set to {value} (`{key}: {off}` leaves it as it is)")]
    NotKept {
        /// The setting.
        name: String,
        /// The value that was written.
        value: String,
        /// The value that was read.
        now: String,
        /// The key of the description.
        key: &'static str,
        /// The value of the key that changes nothing.
        off: &'static str,
    },
    /// The record of the changes cannot be written.
    #[error("cannot record the changes, which the next start needs after a crash: {0}")]
    Record(io::Error),
}
