//! Load beside the tasks.

use super::run::COMMAND;
use super::MAX_LONG_NAME;
use crate::keys::{forms, object, words, Kind};
use crate::time::Duration;

object! {
    /// Load beside the tasks, or in a pool or a group.
    pub struct Background: "a background load" {
        flat policy: Policy, or "`nice: 0`" { Policy::Other(0) } = "The stock policy under which it runs.";
        "name" name: String [Kind::Name { most: MAX_LONG_NAME }], required = "Its name, unique.";
        "load" load: Load, required = "What it does.";
        "count" count: u32 [Kind::Integer { least: 1, most: 1000 }], or "1" { 1 } = "How many processes.";
        "cpu" cpu: Option<u32> [Kind::CPU], optional "any" = "The CPU they are bound to; it need not be one of `cpus`.";
        "pool" pool: Option<String>, optional "none" = "The pool they are in; not together with `nice`, `fifo` or `cpu`.";
        "group" group: Option<String>, optional "none"
            = "The group they are in; with `fifo` only if the group has `serve-fifo`. Without `fifo` they are under `SCHED_OTHER` and have nothing of its budget.";
        "namespace" namespace: Option<String>, optional "the host's" = "The [network namespace](#namespaces) they are in.";
    }
}

impl Background {
    /// What its process is called; of several, that of this index.
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
    /// What a background process does.
    pub enum Load: "a load" {
        word "hog" Hog = "Computes without end.";
        word "syscalls" Syscalls = "Issues system calls without end (pipes, memory mappings, files in memory).";
        key "periodic" Periodic: Periodic = "Computes `run` in every `period`.";
        key "ping-flood" PingFlood: PingFlood
            = "Sends ICMP echo requests, each as soon as the last one was answered, or after 10 ms (`ping -f`); needs root.";
        key "program" Program: Vec<String> [COMMAND] = "A program: the command and its arguments.";
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
        "program" program: Vec<String> [COMMAND], optional "the image's; required with `rootfs`"
            = "Command and arguments, in the container.";
        "engine" engine: Engine, or "`crun`, `podman` for an image" { root.engine() } = "What makes it.";
    }
}

forms! {
    /// A container's root file system.
    #[derive(Eq)]
    pub enum ContainerRoot: "a root file system" {
        key "rootfs" Rootfs: String [Kind::Text("directory")] = "The absolute path of a directory.";
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
