//! The needs of a description: which checks its plan depends on.

use std::collections::BTreeSet;

use macrotick_model::{Backend, Clock, Duration, Host, Policy, System, Workload};

use crate::host;

/// The needs of a description. The default is the need of no particular one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// The name of the system. `None`: there is no description.
    pub system: Option<String>,
    /// The CPUs of the plan; without a description, the isolated CPUs of the host.
    pub cpus: BTreeSet<u32>,
    /// Whether the kernel class dispatches it: windows or budgets, and not the user-space dispatcher.
    pub class: bool,
    /// Whether it has windows.
    pub windows: bool,
    /// Whether it has groups with budgets.
    pub budgets: bool,
    /// Whether it has reservations of `SCHED_DEADLINE`.
    pub reservations: bool,
    /// Whether its table follows `CLOCK_TAI`; the most by which a sync window changes.
    pub tai: Option<Duration>,
    /// Whether it uses the network: gates, or tasks that send and receive.
    pub network: bool,
    /// The interfaces with gates.
    pub gated: BTreeSet<String>,
    /// The highest priority of a thread under `SCHED_FIFO`, or 0.
    pub fifo: u8,
}

/// The highest priority of a task under the backend `fifo`.
const TASKS: u8 = 90;

impl Needs {
    /// Returns the needs of a description under a backend, on one of its hosts if it has several.
    pub fn of(system: &System, backend: Backend, host: Option<&Host>) -> Needs {
        let network = system.network.as_ref();
        let is_here = |name: Option<&str>| host.is_none_or(|host| name.is_none_or(|name| name == host.name));
        let gated = network.iter().flat_map(|network| &network.interfaces);
        let gated = gated.filter(|interface| is_here(system.host_of_interface(interface)));
        let cpus: BTreeSet<u32> = match host {
            Some(host) => host.cpus.iter().filter_map(|cpu| host.own_number(*cpu)).collect(),
            None => system.cpus.iter().copied().collect(),
        };
        let talks = |work: &Workload| matches!(work, Workload::UdpSend(_) | Workload::UdpReceive(_));
        // Tasks under SCHED_FIFO have priorities up to that of the runner's own thread.
        let tasks = (backend == Backend::Fifo).then_some(TASKS);
        let priorities = system.processes().filter_map(|placed| match placed.process.policy {
            Policy::Fifo(priority) => Some(priority),
            Policy::Other(_) => None,
        });
        let class = backend == Backend::Kernel;
        Needs {
            system: Some(system.name.clone()),
            cpus,
            class: class && (system.has_windows() || system.servers().next().is_some()),
            windows: system.has_windows(),
            budgets: system.servers().next().is_some(),
            reservations: system.reserved().next().is_some(),
            tai: match system.clock {
                Clock::Monotonic => None,
                Clock::Tai(sync) => Some(sync.bound),
            },
            network: network.is_some() || system.tasks.iter().any(|task| talks(&task.run)),
            gated: gated.map(|interface| interface.name.clone()).collect(),
            fifo: priorities.chain(tasks).max().unwrap_or(0),
        }
    }

    /// Returns the needs of a host without a description: its isolated CPUs are those of some plan.
    pub fn here(host: &host::Host) -> Needs {
        let isolated = host.text("/sys/devices/system/cpu/isolated").and_then(crate::host::cpus_of);
        Needs { cpus: isolated.unwrap_or_default(), ..Needs::default() }
    }

    /// Whether a description is given.
    pub fn is_described(&self) -> bool {
        self.system.is_some()
    }

    /// Returns the online CPUs of the host that the plan does not use.
    pub fn others(&self, host: &host::Host) -> BTreeSet<u32> {
        host.online().difference(&self.cpus).copied().collect()
    }
}
