//! The sets of CPUs that tasks of SCHED_DEADLINE are scheduled on, as partitions of the host.
//!
//! SCHED_DEADLINE takes no thread whose affinity is less than its root domain (`__sched_setscheduler()` in
//! `kernel/sched/syscalls.c`). A set that is not the whole host becomes a root domain as a cpuset partition, and whatever is to
//! run on its CPUs has to be below that: tasks with windows, pools, groups and process too.

use std::fs::File;

use macrotick_host::cgroup::{Controller, Group, Owner, DOMAIN};
use macrotick_model::{CpuSet, System};

use crate::error::NodeError;

/// The partitions of a run. Dropping them gives their CPUs back.
pub struct Domains {
    partitions: Vec<(CpuSet, Group)>,
    _controllers: Vec<Controller>,
}

impl Domains {
    /// Makes the partitions that a system needs on a host with these CPUs. `None`: it needs none.
    pub fn prepare(system: &System, online: &[u32]) -> Result<Option<Domains>, NodeError> {
        let wanted = partitions(&system.domains(), online);
        let Some(first) = wanted.first() else { return Ok(None) };
        let controllers =
            [Controller::CPUSET, Controller::CPU].map(|name| Controller::enable(&owner(first), name)).into_iter();
        let controllers = controllers.collect::<Result<_, _>>()?;
        let mut partitions = Vec::new();
        for cpus in wanted {
            let group = Group::make(owner(&cpus))?;
            group.divide(&cpus)?;
            partitions.push((cpus, group));
        }
        Ok(Some(Domains { partitions, _controllers: controllers }))
    }

    /// The partition that has these CPUs. `None`: they are in none.
    pub fn of(&self, cpus: &CpuSet) -> Option<&Group> {
        let first = cpus.first()?;
        self.partitions.iter().find(|(all, _)| all.contains(first)).map(|(_, group)| group)
    }

    /// For a process that is to run on these CPUs: what to write to before it executes its program. `None`: it need not move.
    pub fn entrance(&self, cpus: &CpuSet) -> Result<Option<File>, NodeError> {
        Ok(self.of(cpus).map(Group::place).transpose()?)
    }
}

fn owner(cpus: &CpuSet) -> Owner {
    let list: Vec<String> = cpus.as_slice().iter().map(u32::to_string).collect();
    Owner::Domain(format!("{DOMAIN}{}", list.join("-")))
}

/// The sets that need a partition: what no set has stays a domain, too. Where nothing would be left, which the kernel does not
/// allow, the first set stays in the place of that.
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
        assert_eq!(owner(&set(&[1])).to_string(), "deadline tasks on cpus-1");
    }
}
