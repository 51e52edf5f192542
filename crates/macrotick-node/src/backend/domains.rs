//! The CPU sets of SCHED_DEADLINE tasks, and the isolated CPUs of a profile, as cpuset partitions of the host.
//!
//! SCHED_DEADLINE accepts a thread only if its affinity covers the thread's whole root domain (`__sched_setscheduler()`
//! in `kernel/sched/syscalls.c`). A CPU set that is not the whole host becomes a root domain as a cpuset partition. All
//! threads that run on its CPUs must be in control groups below the partition: tasks with windows, pools, groups and
//! processes.

use std::fs::File;

use macrotick_host::cgroup::{Controller, Division, Group, Owner, DOMAIN};
use macrotick_model::{CpuSet, System};

use crate::error::NodeError;

/// The partitions of a run. Dropping them gives their CPUs back.
pub struct Domains {
    partitions: Vec<(CpuSet, Group)>,
    _controllers: Vec<Controller>,
}

impl Domains {
    /// Makes the partitions that a system needs on a host with these CPUs, and the one of the isolated CPUs. Returns
    /// `None` if it needs no partition.
    pub fn prepare(system: &System, online: &[u32], isolated: Option<&CpuSet>) -> Result<Option<Domains>, NodeError> {
        let shared: Vec<u32> =
            online.iter().copied().filter(|cpu| isolated.is_none_or(|isolated| !isolated.contains(*cpu))).collect();
        let domains = partitions(&system.domains(), &shared).into_iter().map(|cpus| (cpus, Division::Domain));
        let wanted: Vec<(CpuSet, Division)> =
            isolated.map(|cpus| (cpus.clone(), Division::Isolated)).into_iter().chain(domains).collect();
        let Some((first, _)) = wanted.first() else { return Ok(None) };
        let controllers =
            [Controller::CPUSET, Controller::CPU].map(|name| Controller::enable(&owner(first), name)).into_iter();
        let controllers = controllers.collect::<Result<_, _>>()?;
        let mut partitions = Vec::new();
        for (cpus, division) in wanted {
            let group = Group::make(owner(&cpus))?;
            group.divide(&cpus, division)?;
            partitions.push((cpus, group));
        }
        Ok(Some(Domains { partitions, _controllers: controllers }))
    }

    /// Returns the partition that has these CPUs. Returns `None` if they are in no partition.
    pub fn of(&self, cpus: &CpuSet) -> Option<&Group> {
        let first = cpus.first()?;
        self.partitions.iter().find(|(all, _)| all.contains(first)).map(|(_, group)| group)
    }

    /// Returns the file that a process writes to before it executes its program, to run on these CPUs. Returns `None`
    /// if the process need not move.
    pub fn entrance(&self, cpus: &CpuSet) -> Result<Option<File>, NodeError> {
        Ok(self.of(cpus).map(Group::place).transpose()?)
    }
}

fn owner(cpus: &CpuSet) -> Owner {
    let list: Vec<String> = cpus.as_slice().iter().map(u32::to_string).collect();
    Owner::Domain(format!("{DOMAIN}{}", list.join("-")))
}

/// Returns the sets that need a partition. The CPUs that are in no set remain a domain of their own. The kernel does
/// not allow partitions that take all CPUs. In that case the set with the first CPU of the host gets no partition and
/// remains in the host's domain.
fn partitions(domains: &[CpuSet], online: &[u32]) -> Vec<CpuSet> {
    let mut domains = domains.to_vec();
    let has = |cpu: &u32| domains.iter().any(|domain| domain.contains(*cpu));
    if online.iter().all(has) {
        let first = online.first().copied().unwrap_or(0);
        domains.retain(|domain| !domain.contains(first));
    }
    domains
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_domain_stays_where_everybody_is() {
        let set = |cpus: &[u32]| cpus.iter().copied().collect::<CpuSet>();
        let of = |domains: &[&[u32]], online: &[u32]| {
            let domains: Vec<CpuSet> = domains.iter().map(|cpus| set(cpus)).collect();
            partitions(&domains, online)
        };
        assert_eq!(of(&[], &[0, 1]), []);
        assert_eq!(of(&[&[0]], &[0]), []);
        assert_eq!(of(&[&[0, 1]], &[0, 1]), []);
        assert_eq!(of(&[&[1]], &[0, 1]), [set(&[1])]);
        assert_eq!(of(&[&[0]], &[0, 1]), [set(&[0])]);
        assert_eq!(of(&[&[1], &[0]], &[0, 1]), [set(&[1])]);
        assert_eq!(of(&[&[2, 3], &[1]], &[0, 1, 2, 3]), [set(&[2, 3]), set(&[1])]);
        assert_eq!(owner(&set(&[1])).to_string(), "partition cpus-1");
    }
}
