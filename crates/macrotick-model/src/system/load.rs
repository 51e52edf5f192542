//! What runs beside the tasks: processes in groups, and test load.

use std::ops::Deref;

use super::program::Program;
use super::MAX_LONG_NAME;
use crate::keys::{forms, object, words, Kind};
use crate::time::Duration;

object! {
    /// What a run starts beside the tasks: in a group, or as test load.
    pub struct Process: "a process" {
        flat run: Load, required = "What it does.";
        flat policy: Policy, or "`nice: 0`" { Policy::Other(0) } = "The stock policy under which it runs.";
        "name" name: String [Kind::Name { most: MAX_LONG_NAME }], required = "Its name, unique.";
        "count" count: u32 [Kind::Integer { least: 1, most: 1000 }], or "1" { 1 } = "How many of it.";
        "cpu" cpu: Option<u32> [Kind::Cpu], optional "any" = "The CPU they are bound to; it need not be one of `cpus`.";
        "namespace" namespace: Option<String>, optional "the host's" = "The [network namespace](#namespaces) they are in.";
    }
}

impl Process {
    /// What one is called; of several, that of this index.
    pub fn process_name(&self, index: u32) -> String {
        match self.count {
            1 => self.name.clone(),
            _ => format!("{}.{index}", self.name),
        }
    }

    /// What all of them are called.
    pub fn process_names(&self) -> impl Iterator<Item = String> + '_ {
        (0..self.count).map(|index| self.process_name(index))
    }
}

/// A process, and where it runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Placed {
    /// The process.
    pub process: Process,
    /// The group that it is in.
    pub group: Option<String>,
    /// Whether a budget serves that group; it may have windows besides.
    pub has_budget: bool,
}

impl Placed {
    /// The pool that it is in: a group that has windows only.
    pub fn pool(&self) -> Option<&String> {
        self.group.as_ref().filter(|_| !self.has_budget)
    }

    /// The group with a budget that it is in.
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
            = "Runs under `SCHED_FIFO` with this priority: below the highest, which the dispatchers need.";
    }
}

forms! {
    /// What a process does.
    pub enum Load: "a load" {
        bare "hog" Hog = "Computes without end.";
        bare "syscalls" Syscalls = "Issues system calls without end (pipes, memory mappings, files in memory).";
        key "periodic" Periodic: Periodic = "Computes `run` in every `period`.";
        key "ping-flood" PingFlood: PingFlood
            = "Sends ICMP echo requests, each as soon as the last one was answered, or after 10 ms (`ping -f`); needs root.";
        key "program" Program: Program = "A program.";
        key "container" Container: ContainerLoad = "A container, see [Containers](#containers).";
    }
}

object! {
    /// Computes in every period.
    pub struct Periodic: "`periodic`" {
        "period" period: Duration, required = "Length between two activations.";
        "run" run: Duration, required = "Time computed in each.";
    }
}

object! {
    /// A flood of ICMP echo requests.
    pub struct PingFlood: "`ping-flood`" {
        "to" to: String [Kind::Text("address")], required = "Where they go, an IPv4 address.";
        "bytes" bytes: u32 [PingFlood::BYTES], or "56" { 56 } = "Data bytes of each.";
    }
}

impl PingFlood {
    /// What fits into an IPv4 packet.
    const BYTES: Kind = Kind::Integer { least: 0, most: 65_507 };
}

object! {
    /// A container, which a run makes, starts and removes.
    #[derive(Eq)]
    pub struct ContainerLoad: "`container`" {
        flat root: ContainerRoot, required = "Where its root file system comes from. It is not written to.";
        "program" program: Option<Program>, optional "the image's; required with `rootfs`"
            = "[The program](#what-runs), in the container: `env` is beside the engine's, a `user` has the group of the same number, and is a number where there is no image.";
        "engine" engine: Engine, or "`crun`, `podman` for an image" { root.engine() } = "What makes it.";
    }
}

forms! {
    /// A container's root file system.
    #[derive(Eq)]
    pub enum ContainerRoot: "a root file system" {
        key "rootfs" Rootfs: String [Kind::Text("directory")] = "The absolute path of its root directory.";
        key "image" Image: String [Kind::Text("image")] = "An image that podman has; none is pulled.";
    }
}

impl ContainerRoot {
    /// What makes such a container where the description does not say.
    fn engine(&self) -> Engine {
        match self {
            ContainerRoot::Rootfs(_) => Engine::Crun,
            ContainerRoot::Image(_) => Engine::Podman,
        }
    }
}

words! {
    /// A container engine: what starts containers.
    pub enum Engine: "an engine" {
        "crun" Crun = "`crun`.";
        "runc" Runc = "`runc`.";
        "podman" Podman = "`podman`.";
    }
}
