//! The groups of a run under the backend `kernel`: their control groups, budgets, priorities and kernel threads, and
//! the CPU time that they received.

use std::fs::File;
use std::path::Path;

use macrotick_host::budgets::{microseconds, parse_stat, set_server_period, BUDGET, FIFO, LEAD, PRIORITY, STAT};
use macrotick_host::cgroup::{Controller, Group, Owner, ENTITY};
use macrotick_host::kernel_threads::{self, ServedThread};
use macrotick_host::sys;
use macrotick_host::HostFailure;
use macrotick_model::{Duration, GroupObservation, Load, Placed, Pool, System};

use crate::backend::domains::Domains;
use crate::backend::gates::{threads_of_group, Gates};
use crate::error::NodeError;

/// The control groups of all groups, in the order of the system. Dropping them takes the budgets back.
pub struct BudgetGroups {
    /// Drops first: the threads leave groups that must still exist.
    threads: Vec<ServedThread>,
    groups: Vec<Group>,
    before: Vec<GroupObservation>,
    /// Remarks for the observation.
    remarks: Vec<String>,
    _controller: Controller,
}

impl BudgetGroups {
    /// Gives all groups their budgets. If the system has windows, their table is installed already. Returns `None` if
    /// the system has no group.
    pub fn prepare(
        system: &System,
        domains: Option<&Domains>,
        gates: Option<&Gates>,
    ) -> Result<Option<BudgetGroups>, NodeError> {
        let Some(first) = system.servers().next() else { return Ok(None) };
        let controller = Controller::enable(&Owner::Group(first.name.clone()), Controller::CPU)?;
        let open = |group: &macrotick_model::Group| {
            let partition = domains.and_then(|domains| domains.of(&group.cpus.iter().copied().collect()));
            Group::open(Owner::Group(group.name.clone()), group.cgroup.as_deref(), partition)
        };
        let mut groups = system.servers().map(open).collect::<Result<Vec<Group>, HostFailure>>()?;
        set_server_period(system.server_period)?;
        let (mut threads, mut remarks) = (Vec::new(), Vec::new());
        for (group, wanted) in groups.iter_mut().zip(system.servers()) {
            give(group, wanted)?;
            remarks.extend(group.bound(containers(system, |load| load.server() == Some(&wanted.name))));
            let names = kernel_threads::full_names(&wanted.kernel_threads, &wanted.cpus);
            let found = kernel_threads::find(group.owner(), names, &mut remarks)?;
            let of_gates = threads_of_group(gates, &wanted.kernel_threads, group.owner(), &mut remarks);
            for thread in found.into_iter().chain(of_gates) {
                threads.push(ServedThread::new(group, thread, wanted.serve_fifo)?);
            }
        }
        Ok(Some(BudgetGroups { threads, groups, before: Vec::new(), remarks, _controller: controller }))
    }

    /// Returns remarks for the observation.
    pub fn remarks(&self) -> &[String] {
        &self.remarks
    }

    /// Returns the control groups.
    pub fn control_groups(&self) -> &[Group] {
        &self.groups
    }

    /// Calls `keep` for each control group. Where it returns true, the group's budget was set again, and its kernel
    /// threads are served again.
    pub fn look_after(&mut self, keep: &mut dyn FnMut(&mut Group) -> bool) {
        for group in &mut self.groups {
            if keep(group) {
                let threads = self.threads.iter().filter(|thread| thread.is_of(group));
                threads.for_each(|thread| self.remarks.extend(thread.serve_again()));
            }
        }
    }

    /// Returns the file that a process writes to before it executes its program, to enter a group.
    pub fn entrance(&self, group: &str) -> Result<Option<File>, NodeError> {
        Ok(self.groups.iter().find(|one| one.name() == group).map(Group::entrance).transpose()?)
    }

    /// Returns the directory of a group.
    pub fn path(&self, group: &str) -> Option<&Path> {
        self.groups.iter().find(|one| one.name() == group).map(Group::path)
    }

    /// Returns the control groups of the groups that name a pool.
    pub fn in_pool<'a>(&'a self, system: &'a System, pool: &'a Pool) -> impl Iterator<Item = &'a Group> {
        let all = system.servers().zip(&self.groups);
        all.filter(|(wanted, _)| wanted.pool_name().as_ref() == Some(&pool.name)).map(|(_, group)| group)
    }

    /// Starts to count: [`BudgetGroups::observe`] counts from here.
    pub fn begin(&mut self) -> Result<(), NodeError> {
        self.before = self.read()?;
        Ok(())
    }

    /// Returns the counters of the groups since [`BudgetGroups::begin`].
    pub fn observe(&self) -> Result<Vec<GroupObservation>, NodeError> {
        Ok(self.read()?.into_iter().zip(&self.before).map(|(now, before)| since(now, before)).collect())
    }

    fn read(&self) -> Result<Vec<GroupObservation>, NodeError> {
        let observe = |group: &Group| {
            let text = group.read(STAT)?;
            Ok(parse_stat(group.name(), &text).ok_or_else(|| group.not_understood(STAT))?)
        };
        self.groups.iter().map(observe).collect()
    }
}

/// Returns the number of containers among the loads for which `is_meant` is true.
pub fn containers(system: &System, is_meant: impl Fn(&Placed) -> bool) -> u32 {
    let all = system.processes().filter(|load| matches!(load.run, Load::Container(_)) && is_meant(load));
    all.map(|load| load.count).sum()
}

fn give(group: &mut Group, wanted: &macrotick_model::Group) -> Result<(), NodeError> {
    let (Some(priority), Some(budget)) = (wanted.priority, wanted.budget) else {
        return Err(NodeError::LeftOpen(wanted.name.clone()));
    };
    let mut writes = vec![
        (PRIORITY, priority.to_string()),
        (FIFO, if wanted.serve_fifo { "1" } else { "0" }.into()),
        (LEAD, microseconds(wanted.lead.unwrap_or(Duration::ZERO))),
        (BUDGET, format!("{}={}", sys::cpu_list(&wanted.cpus), microseconds(budget))),
    ];
    writes.extend(wanted.pool_name().map(|pool| (ENTITY, pool)));
    Ok(group.promise(writes)?)
}

fn since(now: GroupObservation, before: &GroupObservation) -> GroupObservation {
    GroupObservation {
        usage_ns: now.usage_ns.saturating_sub(before.usage_ns),
        refills: now.refills.saturating_sub(before.refills),
        exhaustions: now.exhaustions.saturating_sub(before.exhaustions),
        throttled_ns: now.throttled_ns.saturating_sub(before.throttled_ns),
        name: now.name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_group_has_had_is_counted_from_the_beginning() {
        let before =
            GroupObservation { name: "g".into(), usage_ns: 15_000, refills: 3, exhaustions: 1, throttled_ns: 7000 };
        let later = GroupObservation { usage_ns: 20_000, refills: 4, ..before.clone() };
        let difference = since(later, &before);
        assert_eq!((difference.usage_ns, difference.refills, difference.exhaustions), (5000, 1, 0));
    }
}
