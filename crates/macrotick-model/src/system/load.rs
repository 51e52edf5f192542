//! Processes beside the tasks: in groups, and as test load.

use std::ops::Deref;

use super::program::Program;
use super::MAX_LONG_NAME;
use crate::keys::{forms, object, words, Kind};
use crate::time::Duration;

object! {
    /// A process that a run starts beside the tasks: in a group, or as test load.
    pub struct Process: "a process" {
        flat run: Load, required = "The work of the process.";
        flat policy: Policy, or "`nice: 0`" { Policy::Other(0) } = "The stock policy of the process.";
        "name" name: String [Kind::Name { most: MAX_LONG_NAME }], required = "The unique name of the process.";
        "count" count: u32 [Kind::Integer { least: 1, most: 1000 }], or "1" { 1 } = "Number of processes to start.";
        "host" host: Option<String> [Kind::Text("host")], optional "that of its CPU or of its namespace; in a group that of the group" = "The name of its [host](#hosts).";
        "cpu" cpu: Option<u32> [Kind::Cpu], optional "any" = "The CPU to which the processes are bound. It need not be one of `cpus`.";
        "namespace" namespace: Option<String>, optional "the host's" = "The [network namespace](#namespaces) of the processes.";
    }
}

impl Process {
    /// Returns the name of the process with this index.
    pub fn process_name(&self, index: u32) -> String {
        match self.count {
            1 => self.name.clone(),
            _ => format!("{}.{index}", self.name),
        }
    }

    /// Returns the names of all processes.
    pub fn process_names(&self) -> impl Iterator<Item = String> + '_ {
        (0..self.count).map(|index| self.process_name(index))
    }
}

/// A process with its group.
#[derive(Clone, Debug, PartialEq)]
pub struct Placed {
    /// The process.
    pub process: Process,
    /// Its group, if it has one.
    pub group: Option<String>,
    /// Whether the group has a budget. It may also have windows.
    pub has_budget: bool,
}

impl Placed {
    /// Returns the pool of the process: a group with windows only.
    pub fn pool(&self) -> Option<&String> {
        self.group.as_ref().filter(|_| !self.has_budget)
    }

    /// Returns the group of the process if it has a budget.
    pub fn server(&self) -> Option<&String> {
        self.group.as_ref().filter(|_| self.has_budget)
    }
}

impl Deref for Placed {
    type Target = Process;

    fn deref(&self) -> &Process {
        &self.process
    }
}

forms! {
    /// A stock scheduling policy.
    #[derive(Copy, Eq)]
    pub enum Policy: "a policy" {
        key "nice" Other: i8 [Kind::Integer { least: -20, most: 19 }] = "Runs under `SCHED_OTHER` with this nice value.";
        key "fifo" Fifo: u8 [Kind::Integer { least: 1, most: 98 }]
            = "Runs under `SCHED_FIFO` with this priority. The dispatchers need priority 99.";
    }
}

forms! {
    /// The work of a process.
    pub enum Load: "a load" {
        bare "hog" Hog = "Computes without a pause.";
        bare "syscalls" Syscalls = "Makes system calls without a pause (pipes, memory mappings, files in memory).";
        key "periodic" Periodic: Periodic = "Computes for `run` in every `period`.";
        key "ping-flood" PingFlood: PingFlood
            = "Sends ICMP echo requests, each at the reply to the last one or after 10 ms (`ping -f`). Needs root.";
        key "program" Program: Program = "Runs a program.";
        key "container" Container: ContainerLoad = "Runs a container, see [Containers](#containers).";
    }
}

object! {
    /// A process that computes in every period.
    pub struct Periodic: "`periodic`" {
        "period" period: Duration, required = "Interval between two activations.";
        "run" run: Duration, required = "Computing time of each activation.";
    }
}

object! {
    /// A flood of ICMP echo requests.
    pub struct PingFlood: "`ping-flood`" {
        "to" to: String [Kind::Text("address")], required = "The IPv4 address of the destination.";
        "bytes" bytes: u32 [PingFlood::BYTES], or "56" { 56 } = "Number of data bytes in each request.";
    }
}

impl PingFlood {
    /// The largest payload of an IPv4 packet.
    const BYTES: Kind = Kind::Integer { least: 0, most: 65_507 };
}

object! {
    /// A container, which a run creates, starts and removes.
    #[derive(Eq)]
    pub struct ContainerLoad: "`container`" {
        flat root: ContainerRoot, required = "The source of the root file system. The run does not write to it.";
        "program" program: Option<Program>, optional "the program of the image; required with `rootfs`"
            = "The [program](#what-runs) of the container. Its `env` adds to the variables of the engine. Its `user` has the group with the same number, and must be a number with `rootfs`.";
        "engine" engine: Engine, or "`crun`, `podman` for an image" { root.engine() } = "The container engine that creates the container.";
    }
}

forms! {
    /// A container's root file system.
    #[derive(Eq)]
    pub enum ContainerRoot: "a root file system" {
        key "rootfs" Rootfs: String [Kind::Text("directory")] = "The absolute path of the root directory.";
        key "image" Image: String [Kind::Text("image")] = "An image in the store of podman. The run does not pull images.";
    }
}

impl ContainerRoot {
    /// Returns the default engine.
    fn engine(&self) -> Engine {
        match self {
            ContainerRoot::Rootfs(_) => Engine::Crun,
            ContainerRoot::Image(_) => Engine::Podman,
        }
    }
}

words! {
    /// A container engine: a program that starts containers.
    pub enum Engine: "an engine" {
        "crun" Crun = "`crun`.";
        "runc" Runc = "`runc`.";
        "podman" Podman = "`podman`.";
    }
}
