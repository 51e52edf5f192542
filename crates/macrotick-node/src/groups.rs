//! The groups of a run under the backend `kernel`: their control groups, budgets, priorities and kernel threads, and what
//! they have had.

use std::fs::{self, File};
use std::path::Path;

use macrotick_model::{Background, Duration, GroupObservation, Load, Pool, System};

use crate::budgets::{server_period, BUDGET, PERIOD};
use crate::cgroup::{Controller, Group, Owner, ENTITY};
use crate::domains::Domains;
use crate::error::NodeError;
use crate::kernel_threads::{self, ServedThread};

/// The control groups of all groups, in the order of the system. Dropping them takes the budgets back.
pub struct Groups {
    /// First of all: they leave groups that are still there.
    threads: Vec<ServedThread>,
    groups: Vec<Group>,
    before: Vec<GroupObservation>,
    /// What a reader of the observation should know.
    remarks: Vec<String>,
    _controller: Controller,
}

impl Groups {
    /// Gives all groups their budgets; a table that there is, is installed. `None`: the system has no group.
    pub fn prepare(system: &System, domains: Option<&Domains>) -> Result<Option<Groups>, NodeError> {
        let Some(first) = system.groups.first() else { return Ok(None) };
        let controller = Controller::enable(&Owner::Group(first.name.clone()), Controller::CPU)?;
        let open = |group: &macrotick_model::Group| {
            let partition = domains.and_then(|domains| domains.of(&group.cpus.iter().copied().collect()));
            Group::open(Owner::Group(group.name.clone()), group.cgroup.as_deref(), partition)
        };
        let mut groups = system.groups.iter().map(open).collect::<Result<Vec<Group>, NodeError>>()?;
        set_period(system.server_period)?;
        let (mut threads, mut remarks) = (Vec::new(), Vec::new());
        for (group, wanted) in groups.iter_mut().zip(&system.groups) {
            give(group, wanted)?;
            remarks.extend(group.bound(containers(system, |load| load.group.as_ref() == Some(&wanted.name))));
            let names = kernel_threads::full_names(&wanted.kernel_threads, &wanted.cpus);
            for thread in kernel_threads::find(group.owner(), names, &mut remarks)? {
                threads.push(ServedThread::new(group, thread, wanted.serve_fifo)?);
            }
        }
        Ok(Some(Groups { threads, groups, before: Vec::new(), remarks, _controller: controller }))
    }

    /// What a reader of the observation should know.
    pub fn remarks(&self) -> &[String] {
        &self.remarks
    }

    /// Their control groups.
    pub fn control_groups(&self) -> &[Group] {
        &self.groups
    }

    /// Lets somebody look after the promises of all. The kernel threads of one that was promised again come to it again.
    pub fn look_after(&mut self, keep: &mut dyn FnMut(&mut Group) -> bool) {
        for group in &mut self.groups {
            if keep(group) {
                let threads = self.threads.iter().filter(|thread| thread.is_of(group));
                threads.for_each(|thread| self.remarks.extend(thread.serve_again()));
            }
        }
    }

    /// For a process that is to be in a group: what to write to before it executes its program.
    pub fn entrance(&self, group: &str) -> Result<Option<File>, NodeError> {
        self.groups.iter().find(|one| one.name() == group).map(Group::entrance).transpose()
    }

    /// The directory of one.
    pub fn path(&self, group: &str) -> Option<&Path> {
        self.groups.iter().find(|one| one.name() == group).map(Group::path)
    }

    /// The control groups of those that name a pool.
    pub fn in_pool<'a>(&'a self, system: &'a System, pool: &'a Pool) -> impl Iterator<Item = &'a Group> {
        let all = system.groups.iter().zip(&self.groups);
        all.filter(|(wanted, _)| wanted.pool.as_ref() == Some(&pool.name)).map(|(_, group)| group)
    }

    /// What is received from now on counts.
    pub fn begin(&mut self) -> Result<(), NodeError> {
        self.before = self.read()?;
        Ok(())
    }

    /// What the groups have had since [`Groups::begin`].
    pub fn observe(&self) -> Result<Vec<GroupObservation>, NodeError> {
        Ok(self.read()?.into_iter().zip(&self.before).map(|(now, before)| since(now, before)).collect())
    }

    fn read(&self) -> Result<Vec<GroupObservation>, NodeError> {
        let observe = |group: &Group| {
            let text = group.read("cpu.ds.stat")?;
            let unreadable = || NodeError::group_file(group.owner(), "understand", "cpu.ds.stat".as_ref());
            parse(group.name(), &text).ok_or_else(|| unreadable()(std::io::ErrorKind::InvalidData.into()))
        };
        self.groups.iter().map(observe).collect()
    }
}

/// How many containers are among the loads that are meant.
pub fn containers(system: &System, is_meant: impl Fn(&Background) -> bool) -> u32 {
    let all = system.background.iter().filter(|load| matches!(load.load, Load::Container(_)) && is_meant(load));
    all.map(|load| load.count).sum()
}

/// Writing what it is already is no change.
fn set_period(wanted: Duration) -> Result<(), NodeError> {
    let failed = NodeError::system("writing kernel.sched_ds_period_us");
    let now = server_period()?;
    if now == wanted {
        return Ok(());
    }
    match fs::write(PERIOD, microseconds(wanted)) {
        Err(error) if error.raw_os_error() == Some(libc::EBUSY) => Err(NodeError::ServerPeriod { wanted, now }),
        other => other.map_err(failed),
    }
}

/// What the files of groups count in.
pub fn microseconds(length: Duration) -> String {
    (length.as_nanos() / 1000).to_string()
}

fn give(group: &mut Group, wanted: &macrotick_model::Group) -> Result<(), NodeError> {
    let (Some(priority), Some(budget)) = (wanted.priority, wanted.budget) else {
        return Err(NodeError::LeftOpen(wanted.name.clone()));
    };
    let mut writes = vec![
        ("cpu.ds.priority", priority.to_string()),
        ("cpu.ds.fifo", if wanted.serve_fifo { "1" } else { "0" }.into()),
        ("cpu.ds.lead", microseconds(wanted.lead.unwrap_or(Duration::ZERO))),
        (BUDGET, format!("{}={}", crate::sys::cpu_list(&wanted.cpus), microseconds(budget))),
    ];
    writes.extend(wanted.pool.as_ref().map(|pool| (ENTITY, pool.clone())));
    group.promise(writes)
}

/// Lines `cpuN usage_usec=A refills=B exhaustions=C throttled_usec=D`; the sums over all CPUs.
pub fn parse(name: &str, text: &str) -> Option<GroupObservation> {
    let mut sum = GroupObservation { name: name.into(), ..Default::default() };
    for line in text.lines() {
        let value = |key: &str| -> Option<u64> {
            let word = line.split_whitespace().find_map(|word| word.strip_prefix(key)?.strip_prefix('='))?;
            word.parse().ok()
        };
        sum.usage_ns += value("usage_usec")? * 1000;
        sum.refills += value("refills")?;
        sum.exhaustions += value("exhaustions")?;
        sum.throttled_ns += value("throttled_usec")? * 1000;
    }
    Some(sum)
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
    use macrotick_fixtures::group_record;

    use super::*;

    #[test]
    fn what_the_cpus_have_had_is_summed() {
        let text = "cpu0 usage_usec=10 refills=2 exhaustions=1 throttled_usec=7\n\
                    cpu2 usage_usec=5 refills=1 exhaustions=0 throttled_usec=0\n";
        let sum = parse("g", text).unwrap();
        let expected = GroupObservation { refills: 3, exhaustions: 1, throttled_ns: 7000, ..group_record("g", 15_000) };
        assert_eq!(sum, expected);
        assert_eq!(parse("g", "cpu0 usage_usec=x\n"), None);
        let later = GroupObservation { usage_ns: 20_000, refills: 4, ..expected.clone() };
        let difference = since(later, &expected);
        assert_eq!((difference.usage_ns, difference.refills, difference.exhaustions), (5000, 1, 0));
    }
}
