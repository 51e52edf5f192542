//! The system description, the plan and the observation: the three documents that the stages of Macrotick exchange.
//!
//! Every stage reads one document and writes the next (`docs/explanation/data-flow.md`). All types of these documents
//! are in this crate, together with their parts and with the generator for seeded random choices.

mod container;
mod cpus;
mod defaults;
mod diagnostic;
pub mod files;
mod gates;
mod json_schema;
pub mod keys;
pub mod observation;
mod parse;
mod part;
pub mod plan;
mod random;
mod system;
mod time;
pub mod timeline;
pub mod trace_events;
mod units;
pub mod validate;
pub mod visible;
pub mod whole;
pub mod wire;

pub use container::{Container, ContainerSlot};
pub use cpus::CpuSet;
pub use diagnostic::{Diagnostic, Diagnostics};
pub use files::{FileError, LoadError};
pub use gates::{GateEntry, GateList};
pub use observation::{
    Backend, ClockInForce, EntityCounters, Environment, GateTier, GatesInForce, GroupObservation, Job, LeadInForce,
    Observation, PoolObservation, ProcessOutput, ProfileInForce, RefusedTier, Segment, SettingInForce, TaskObservation,
    Tier,
};
pub use parse::Finding;
pub use part::PartError;
pub use plan::{CpuTable, Plan, Window};
pub use random::SplitMix64;
pub use system::{
    Chain, Clock, ContainerLoad, ContainerRoot, Engine, ExecutionTime, Experiment, Flow, Gates, GivenWindow, Group,
    GroupTask, GroupThread, Gumbel, Host, IdleLatency, Interface, InterfaceEnd, KernelThread, Lab, Lead, Load,
    Namespace, Network, OnMiss, Periodic, PingFlood, Placed, Policy, Pool, PoolOrder, Process, Profile,
    ProfileSettings, Program, Reservation, Reserve, Serving, SetUp, Slot, Supply, SyncClass, SyncWindow, System, Task,
    TrafficClass, UdpReceive, UdpSend, Uniform, Windows, Workload,
};
pub use time::{nanos, us, Duration, Instant};
pub use units::{ParseSizeError, ParseSpeedError, Size, Speed};
