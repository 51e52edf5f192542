//! The pools of a run under the backend `kernel`: their control groups and kernel threads, and the CPU time that they
//! received.

use std::collections::BTreeMap;
use std::fs::File;
use std::iter;
use std::path::Path;

use macrotick_host::cgroup::{Controller, Group, Owner};
use macrotick_host::kernel_threads;
use macrotick_host::sys::Tid;
use macrotick_host::HostFailure;
use macrotick_model::{CpuTable, Duration, Plan, Pool, PoolObservation, System};

use crate::backend::budget_groups::{containers, BudgetGroups};
use crate::backend::domains::Domains;
use crate::backend::gates::{bind_threads, Gates};
use crate::backend::kernel::InstalledTable;
use crate::error::NodeError;

/// The control groups of all pools, in the order of the system. Dropping them gives the groups back.
pub struct Pools {
    groups: Vec<Group>,
    before: Vec<PoolObservation>,
    /// The threads that were in pools at the instants of a note, with their pools.
    threads: BTreeMap<Tid, String>,
    /// Remarks for the observation.
    remarks: Vec<String>,
    _controller: Controller,
}

impl Pools {
    /// Makes the control groups. Their table is installed. Returns `None` if the system has no pool.
    pub fn prepare(plan: &Plan, domains: Option<&Domains>) -> Result<Option<Pools>, NodeError> {
        let Some(first) = plan.system.pools().next() else { return Ok(None) };
        let controller = Controller::enable(&Owner::Pool(first.name.clone()), Controller::CPU)?;
        let (groups, before, threads) = (Vec::new(), Vec::new(), BTreeMap::new());
        let mut pools = Pools { groups, before, threads, remarks: Vec::new(), _controller: controller };
        pools.extend(plan, plan.system.pools(), domains)?;
        Ok(Some(pools))
    }

    /// Makes the control groups of more pools of a plan: of all of them, or of none.
    pub fn extend(
        &mut self,
        plan: &Plan,
        pools: impl Iterator<Item = Pool>,
        domains: Option<&Domains>,
    ) -> Result<(), NodeError> {
        let mut more = Vec::new();
        for pool in pools {
            let group = make(plan, &pool, domains)?;
            let containers = containers(&plan.system, |load| load.pool() == Some(&pool.name));
            self.remarks.extend(group.bound(containers));
            more.push(group);
        }
        self.groups.extend(more);
        Ok(())
    }

    /// Gives back the control groups of pools that a system does not have. Sorts the others in its order.
    pub fn keep(&mut self, system: &System) {
        let mut former = std::mem::take(&mut self.groups);
        for pool in system.pools() {
            let place = former.iter().position(|group| group.name() == pool.name);
            self.groups.extend(place.map(|place| former.swap_remove(place)));
        }
    }

    /// Returns the control groups.
    pub fn control_groups(&self) -> &[Group] {
        &self.groups
    }

    /// Calls `keep` for each control group.
    pub fn look_after(&mut self, keep: &mut dyn FnMut(&mut Group) -> bool) {
        self.groups.iter_mut().for_each(|group| _ = keep(group));
    }

    /// Returns the file that a process writes to before it executes its program, to enter a pool.
    pub fn entrance(&self, pool: &str) -> Result<Option<File>, NodeError> {
        Ok(self.groups.iter().find(|group| group.name() == pool).map(Group::entrance).transpose()?)
    }

    /// Makes the kernel threads members of their pools, if `is_wanted` is true for the pool. Call it before the windows
    /// of these pools start. The threads leave with the table.
    pub fn bind_kernel_threads(
        &mut self,
        plan: &Plan,
        table: &InstalledTable,
        gates: Option<&Gates>,
        is_wanted: &dyn Fn(&Pool) -> bool,
    ) -> Result<(), NodeError> {
        let wanted = plan.system.pools().filter(|pool| is_wanted(pool));
        for pool in wanted {
            let Some(cpu) = cpu_of(plan, &pool) else { continue };
            let cpus = [cpu];
            let names = kernel_threads::full_names(&pool.kernel_threads, &cpus);
            let owner = Owner::Pool(pool.name.clone());
            for (tid, name) in kernel_threads::find(&owner, names, &mut self.remarks)? {
                table.bind_thread(tid, &name, &pool.name)?;
                self.threads.insert(tid, pool.name.clone());
            }
            bind_threads(gates, &pool.kernel_threads, cpu, &owner, &mut self.remarks, &mut |tid, name| {
                table.bind_thread(tid, name, &pool.name)?;
                self.threads.insert(tid, pool.name.clone());
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Returns the directory of a pool's control group.
    pub fn path(&self, pool: &str) -> Option<&Path> {
        self.groups.iter().find(|one| one.name() == pool).map(Group::path)
    }

    /// Starts to count: [`Pools::observe`] counts from here. `groups` may name pools.
    pub fn begin(
        &mut self,
        system: &System,
        groups: Option<&BudgetGroups>,
        table: &InstalledTable,
    ) -> Result<(), NodeError> {
        self.before = self.read(system, groups, table)?;
        Ok(())
    }

    /// Notes the threads that are in pools at this instant.
    pub fn note_threads(&mut self, system: &System, groups: Option<&BudgetGroups>) {
        for (pool, own) in system.pools().zip(&self.groups) {
            let threads = members(system, &pool, own, groups).flat_map(Group::threads);
            self.threads.extend(threads.map(|tid| (tid, pool.name.clone())));
        }
    }

    /// Returns remarks for the observation.
    pub fn remarks(&self) -> &[String] {
        &self.remarks
    }

    /// Returns the noted threads, with their pools.
    pub fn threads(&self) -> &BTreeMap<Tid, String> {
        &self.threads
    }

    /// Returns the counters of the pools since [`Pools::begin`]. The table must still run.
    pub fn observe(
        &self,
        system: &System,
        groups: Option<&BudgetGroups>,
        table: &InstalledTable,
    ) -> Result<Vec<PoolObservation>, NodeError> {
        let now = self.read(system, groups, table)?;
        Ok(now.into_iter().zip(&self.before).map(|(now, before)| since(now, before)).collect())
    }

    fn read(
        &self,
        system: &System,
        groups: Option<&BudgetGroups>,
        table: &InstalledTable,
    ) -> Result<Vec<PoolObservation>, NodeError> {
        let each = system.pools().zip(&self.groups).enumerate();
        each.map(|(index, (pool, own))| {
            let usages = members(system, &pool, own, groups).map(Group::usage);
            // The entities of the pools come after those of the tasks.
            let stats = table.stats(&pool.name, system.windowed().count() + index)?;
            Ok(PoolObservation {
                name: pool.name.clone(),
                runtime_ns: stats.runtime_ns,
                usage_ns: usages.sum::<Result<Duration, HostFailure>>()?.as_nanos() as u64,
                overrun: stats.preemptions,
                skipped: stats.skipped,
                threads: stats.nr_threads,
            })
        })
        .collect()
    }
}

/// Returns the control groups with threads in a pool: its own group, and the groups that name it.
fn members<'a>(
    system: &'a System,
    pool: &'a Pool,
    own: &'a Group,
    groups: Option<&'a BudgetGroups>,
) -> impl Iterator<Item = &'a Group> {
    let naming = groups.into_iter().flat_map(move |groups| groups.in_pool(system, pool));
    // The pool's own group includes the groups below it.
    iter::once(own).chain(naming.filter(|group| !group.path().starts_with(own.path())))
}

fn make(plan: &Plan, pool: &Pool, domains: Option<&Domains>) -> Result<Group, NodeError> {
    Ok(Group::of(pool, domains.and_then(|domains| domains.of(&plan.cpus(&pool.name))))?)
}

/// Returns the CPU of a pool. The deployment has checked that every pool has one.
fn cpu_of(plan: &Plan, pool: &Pool) -> Option<u32> {
    let serves = |table: &&CpuTable| table.windows.iter().any(|window| window.task == pool.name);
    plan.tables.iter().find(serves).map(|table| table.cpu)
}

fn since(now: PoolObservation, before: &PoolObservation) -> PoolObservation {
    PoolObservation {
        runtime_ns: now.runtime_ns.saturating_sub(before.runtime_ns),
        usage_ns: now.usage_ns.saturating_sub(before.usage_ns),
        overrun: now.overrun.saturating_sub(before.overrun),
        skipped: now.skipped.saturating_sub(before.skipped),
        ..now
    }
}
