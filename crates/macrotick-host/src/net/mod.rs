//! Time-aware networking on devices, by netlink: gates, traffic classes, shapers, classifiers, priorities of VLANs,
//! neighbours, queues and their interrupts.
//!
//! A deployment reads the state of all devices, refuses what does not fit, decides on the steps, and only then changes
//! something. It reads the new state back. After a failure, and when it is dropped, it restores the former state:
//!
//! ```no_run
//! use std::cell::RefCell;
//! use std::rc::Rc;
//!
//! use macrotick_host::net::{Deployment, Mapping, Netlink, Root, Target, Tree, Wanted};
//!
//! let mut wanted = Wanted::of("eth1");
//! wanted.tree = Some(Tree::of(Root::Mqprio(Mapping::one_queue_each(2, &[(6, 0)]))));
//! let kernel = Rc::new(RefCell::new(Netlink::open()?));
//! let deployment = Deployment::make(&[Target { kernel, namespace: None, wanted }])?;
//! println!("{:?}", deployment.reports());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | module | part |
//! |---|---|
//! | `wanted` | the wanted state, as plain structs |
//! | `taprio`, `qdisc`, `classifier`, `link`, `neighbour`, `channels` | messages: encoding, decoding, the arguments for `tc`, `ip` and `ethtool` |
//! | `present`, `check`, `decide`, `step` | the present state, checks, the decision on the steps |
//! | `deploy`, `fault` | steps, undo, reading back; the reason of a failure |
//! | [`left`] | the devices that a killed run has left configured |
//! | `veth`, [`slots`] | the host's ends of a container's interfaces; the priority of its frames |
//! | `kernel`, `netlink`, `message` | the connection with the kernel |
//! | `ethtool` | the state of a device for an examination |
//! | [`interrupts`] | the interrupts of a device's queues, and their threads |

mod channels;
mod check;
mod classifier;
mod decide;
mod deploy;
mod ethtool;
#[cfg(test)]
mod fake;
mod fault;
#[cfg(test)]
mod golden;
pub mod interrupts;
mod kernel;
pub mod left;
mod link;
mod message;
mod neighbour;
mod netlink;
mod present;
mod qdisc;
#[cfg(test)]
mod samples;
pub mod slots;
mod speed;
mod step;
mod taprio;
#[cfg(test)]
mod tests;
mod veth;
mod wanted;

pub use deploy::{
    gate_thread, pending, propose, propose_new, restart, swap, vlan_device, Deployment, Proposal, Report, Target,
};
pub use ethtool::{describe, Described};
pub use fault::{DeployFault, Reason};
pub use kernel::{Kernel, Refusal, Shared};
pub use message::{Family, Message};
pub use netlink::Netlink;
pub use speed::{link_of, LinkFacts};
pub use veth::{host_ends, NoEnds};
pub use wanted::{
    entries, Cbs, Classifier, Entry, Etf, Frames, GateClock, Leaf, Mapping, Mode, Neighbour, Protocol, Queues, Root,
    Sizes, Taprio, Tree, Wanted, MAX_CLASSES, PRIORITIES,
};
