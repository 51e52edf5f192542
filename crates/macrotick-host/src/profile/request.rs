//! The needs of a plan, and the host that they are for.

use std::collections::BTreeMap;

use macrotick_model::{Backend, CpuSet, Policy, Profile, ProfileSettings, Serving, System, Workload};

use super::access::Access;
use super::change::{Target, Value};
use super::fault::ProfileFault;
use crate::kernel_threads::full_names;

/// The needs of a plan.
pub struct Request<'a> {
    /// The system with the profile.
    pub system: &'a System,
    /// The backend of the run.
    pub backend: Backend,
    /// The priorities of its tasks under `SCHED_FIFO`, in the order of the system. `None`: the task has windows, or
    /// another policy.
    pub priorities: Vec<Option<u8>>,
    /// The CPUs that are online.
    pub online: &'a [u32],
}

/// One setting of a profile on this host.
#[derive(Debug)]
pub(super) enum Item {
    /// The host is to have this value.
    Wish(Wish),
    /// The host does not have the setting, or another part of the plan needs it.
    Absent {
        /// The setting.
        name: String,
        /// The reason.
        reason: String,
    },
}

/// A value that the host is to have.
#[derive(Debug)]
pub(super) struct Wish {
    pub target: Target,
    pub value: Value,
    /// The key of the description.
    pub key: &'static str,
    /// Whether the setting is absent if the kernel refuses it. Some interrupts cannot move.
    pub may_refuse: bool,
}

impl Item {
    pub fn wish(key: &'static str, target: Target, value: Value) -> Item {
        Item::Wish(Wish { target, value, key, may_refuse: false })
    }

    pub fn absent(name: impl Into<String>, reason: impl Into<String>) -> Item {
        Item::Absent { name: name.into(), reason: reason.into() }
    }
}

/// A request with the facts of the host that all settings need.
pub(super) struct Needs<'a> {
    pub access: &'a dyn Access,
    pub settings: ProfileSettings,
    /// The CPUs of the profile.
    pub cpus: CpuSet,
    /// The online CPUs that the profile leaves to others.
    pub others: Vec<u32>,
    /// The network devices.
    pub devices: Vec<String>,
    /// The kernel threads that groups serve, each with its group.
    pub served: BTreeMap<String, String>,
    /// The priority of the threads of interrupts; `None`: they keep it.
    pub interrupts: Option<u8>,
    /// The priority of the threads of softirqs; `None`: they keep it.
    pub softirqs: Option<u8>,
    /// Priorities that are against the order of the plan, in words.
    pub remarks: Vec<String>,
}

/// The lowest priority of serving threads above a plan: that of the kernel for threads of interrupts.
const LEAST: u32 = 50;

impl<'a> Needs<'a> {
    /// Looks up the facts. Fails if the host lacks a CPU or a device, or if the plan leaves no priority.
    pub fn of(
        request: &Request,
        profile: &Profile,
        devices: Vec<String>,
        access: &'a dyn Access,
    ) -> Result<Needs<'a>, ProfileFault> {
        let settings = profile.settings(request.backend);
        let all =
            if profile.cpus.is_empty() { request.system.cpus.iter().copied().collect() } else { profile.cpus.clone() };
        if let Some(cpu) = all.as_slice().iter().find(|cpu| !request.online.contains(cpu)) {
            return Err(ProfileFault::Offline(*cpu));
        }
        let others = request.online.iter().copied().filter(|cpu| !all.contains(*cpu)).collect();
        let served = request.system.groups.iter().flat_map(|group| {
            full_names(&group.kernel_threads, &group.cpus)
                .map(|thread| (thread, group.name.clone()))
                .collect::<Vec<_>>()
        });
        let served = served.collect();
        let mut remarks = Vec::new();
        let interrupts = priority(request, settings.interrupts, ("interrupts", 2), &mut remarks)?;
        let softirqs = priority(request, settings.softirqs, ("softirqs", 1), &mut remarks)?;
        Ok(Needs { access, settings, cpus: all, others, devices, served, interrupts, softirqs, remarks })
    }

    /// Returns an absent setting if the profile leaves no CPU to others.
    pub fn absent_without_others(&self, key: &str) -> Option<Item> {
        self.others.is_empty().then(|| Item::absent(key, "the profile has every CPU of this host"))
    }
}

/// Returns the priority of serving threads. `above` is the distance from the users of the threads.
fn priority(
    request: &Request,
    serving: Serving,
    (key, above): (&'static str, u32),
    remarks: &mut Vec<String>,
) -> Result<Option<u8>, ProfileFault> {
    let highest = waiting(request).max_by_key(|(_, priority)| *priority);
    match serving {
        Serving::Keep => Ok(None),
        Serving::Fixed(fixed) => {
            if let Some((user, priority)) = highest.filter(|(_, priority)| *priority >= u32::from(fixed)) {
                remarks.push(format!(
                    "profile: `{key}` gives the threads priority {fixed}: {user} with priority {priority} waits for \
                     them, and keeps them from the CPU"
                ));
            }
            Ok(Some(fixed))
        }
        Serving::Above => {
            let (user, priority) = highest.or_else(|| beside(request)).unwrap_or_default();
            match u8::try_from(priority.max(LEAST - 2) + above) {
                Ok(level) if priority + 2 <= u32::from(Serving::MOST) => Ok(Some(level)),
                _ => Err(ProfileFault::NoPriority { user, priority, key }),
            }
        }
    }
}

/// Returns the tasks with priorities that wait for the network: those that receive, and programs.
fn waiting<'a>(request: &'a Request) -> impl Iterator<Item = (String, u32)> + 'a {
    let waits = |work: &Workload| matches!(work, Workload::UdpReceive(_) | Workload::Program(_));
    let tasks = request.system.tasks.iter().zip(&request.priorities).filter(move |(task, _)| waits(&task.run));
    tasks.filter_map(|(task, priority)| Some((format!("task `{}`", task.name), u32::from((*priority)?))))
}

/// Returns the process with the highest priority, where tasks have windows or another policy.
fn beside(request: &Request) -> Option<(String, u32)> {
    let all = request.system.processes().filter_map(|placed| match placed.process.policy {
        Policy::Fifo(priority) => Some((format!("process `{}`", placed.process.name), u32::from(priority))),
        Policy::Other(_) => None,
    });
    all.max_by_key(|(_, priority)| *priority)
}
