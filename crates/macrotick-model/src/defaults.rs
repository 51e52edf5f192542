//! What a description means where it says nothing: each part with its defaults.
//!
//! A constructor takes what has no default. The decoder starts from it, and so does whoever builds a system in code:
//! `System { cycle: Some(cycle), ..System::named("arm") }`.

use crate::system::{
    Background, Chain, ExecutionTime, GivenWindow, Group, GroupTask, Load, OnMiss, Policy, Pool, PoolOrder, Supply,
    System, Task, Workload,
};
use crate::time::Duration;

impl System {
    /// A system without any part, on CPU 0.
    pub fn named(name: impl Into<String>) -> System {
        System {
            name: name.into(),
            macrotick: Self::DEFAULT_MACROTICK,
            cycle: None,
            lead: None,
            sync: None,
            cpus: vec![0],
            duration: Self::DEFAULT_DURATION,
            tasks: Vec::new(),
            pools: Vec::new(),
            server_period: Self::DEFAULT_SERVER_PERIOD,
            groups: Vec::new(),
            namespaces: Vec::new(),
            chains: Vec::new(),
            background: Vec::new(),
            table: None,
            files: Vec::new(),
        }
    }
}

impl Task {
    /// A task with windows and its period as the deadline, which computes [`within`](ExecutionTime::within) its WCET.
    pub fn named(name: impl Into<String>, period: Duration, wcet: Duration) -> Task {
        Task {
            name: name.into(),
            period,
            wcet,
            deadline: period,
            offset: None,
            jitter: None,
            cpu: None,
            migrate: false,
            priority: None,
            on_miss: OnMiss::default(),
            max_misses: None,
            namespace: None,
            supply: Supply::default(),
            workload: Workload::Spin(ExecutionTime::within(wcet)),
        }
    }
}

impl Pool {
    /// A pool whose threads take turns, on a CPU that the solver chooses.
    pub fn named(name: impl Into<String>, period: Duration, budget: Duration) -> Pool {
        Pool {
            name: name.into(),
            period,
            budget,
            cpu: None,
            order: PoolOrder::RoundRobin { slice: PoolOrder::DEFAULT_SLICE },
            slack: false,
            cgroup: None,
            kernel_threads: Vec::new(),
        }
    }
}

impl Group {
    /// A group on these CPUs, whose priority and budget are left open. In a description the CPUs may be left out, too: they
    /// are the system's.
    pub fn named(name: impl Into<String>, cpus: Vec<u32>) -> Group {
        Group {
            name: name.into(),
            criticality: None,
            priority: None,
            budget: None,
            may_grow: false,
            cpus,
            cgroup: None,
            fifo: false,
            lead: None,
            pool: None,
            kernel_threads: Vec::new(),
            tasks: Vec::new(),
        }
    }
}

impl GroupTask {
    /// A task that arrives anywhere, with its period as the deadline and its priority left open. In a description the CPU
    /// may be left out, too: it is the group's first one.
    pub fn named(name: impl Into<String>, period: Duration, wcet: Duration, cpu: u32) -> GroupTask {
        GroupTask {
            name: name.into(),
            period,
            wcet,
            deadline: period,
            jitter: Duration::ZERO,
            priority: None,
            cpu,
            bound: false,
        }
    }
}

impl Background {
    /// One process of `SCHED_OTHER` at nice value 0, on any CPU.
    pub fn named(name: impl Into<String>, load: Load) -> Background {
        Background {
            name: name.into(),
            count: 1,
            pool: None,
            group: None,
            namespace: None,
            cpu: None,
            policy: Policy::Other(0),
            load,
        }
    }
}

impl Chain {
    /// A chain without a bound; a description gives it at least one.
    pub fn named(name: impl Into<String>, path: Vec<String>) -> Chain {
        Chain { name: name.into(), path, reaction: None, age: None }
    }
}

impl GivenWindow {
    /// A window that neither releases a job nor is the last of one.
    pub fn new(task: impl Into<String>, cpu: u32, offset: Duration, length: Duration) -> GivenWindow {
        GivenWindow { task: task.into(), cpu, offset, length, activate: false, deadline: false }
    }
}
