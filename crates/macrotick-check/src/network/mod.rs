//! The network: a simulator of gates, the judge of planned flows, and the judge of captures.
//!
//! [`simulate()`] sends given frames through the gates of one port. [`judge()`] sends all flows of a plan, and compares
//! the result with their deadlines and with the TDMA slots. [`judge_capture`](capture::judge_capture) compares the time
//! stamps of a capture with the same gates and slots. All are pure: they need no host and no privileges.
//!
//! **Rounding.** Times are whole nanoseconds. The time that a frame takes on the wire is rounded up, so the simulated
//! end is never before the real one. The length that a gate compares with the closing time is rounded down, and must
//! be less than the rest of the window, as in `sch_taprio.c`. For whole nanoseconds, both together mean that a frame
//! that the gate counts completely never ends after the closing.

pub mod capture;
mod gates;
mod link;
mod plan;
mod port;
mod qdisc;
mod queues;
mod simulate;
mod slots;
mod text;
mod violation;
mod wire;

pub use crate::gates::placed_slots;
pub use gates::{GateError, Gates, MAX_CLASSES};
pub use link::{Link, Overheads, Protocol};
pub use plan::{judge, ClassLoad, Flow, FlowVerdict, InterfaceVerdict, Network, NetworkInterface, NetworkVerdict};
pub use port::{Class, Frame, Gating, Guard, Port, QUEUE};
pub use simulate::{simulate, ClassResult, Fate, Loss, Simulation, SimulationError};
pub use slots::Slot;
pub(crate) use slots::{own as own_slots, values as slot_values};
pub(crate) use text::loads;
pub use violation::NetworkViolation;
