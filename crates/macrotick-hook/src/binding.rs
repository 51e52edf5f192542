//! The CPUs of a container, and the binding that keeps it on the CPUs of its budget.
//!
//! On other CPUs its threads would run as SCHED_OTHER, and stay there until they sleep. The binding is the
//! `cpuset.cpus` of the control group. A thread cannot set an affinity beyond it.

use macrotick_host::budgets::note_bound;
use macrotick_host::cgroup::{Existing, CPUS as BOUND};
use macrotick_host::sys::{cpu_list, online_cpus, parse_cpu_list};
use macrotick_host::Undo;

use crate::cgroup;
use crate::error::{AnnotationFault, HookError};
use crate::request::{Budget, Declared, CPUS};

/// The CPUs that a container's engine gives it.
pub struct Allowed {
    list: String,
    /// Whether other CPUs are online.
    few: bool,
}

impl Allowed {
    /// Returns the CPUs of its control group, or all online CPUs if the kernel does not limit them.
    pub fn of(group: &Existing) -> Result<Allowed, HookError> {
        let online = online_cpus()?;
        let list = group.cpus().unwrap_or_else(|| cpu_list(&online));
        let few = parse_cpu_list(&list).len() < online.len();
        Ok(Allowed { list, few })
    }

    /// Checks that the budget is on CPUs of the container. On other CPUs no thread could use it.
    pub fn budget(&self, budget: &Budget) -> Result<Budget, HookError> {
        match &budget.cpus {
            Some(cpus) => self.check(&parse_cpu_list(cpus), cpus).map(|()| budget.clone()),
            None => Ok(Budget { cpus: self.few.then(|| self.list.clone()), ..budget.clone() }),
        }
    }

    /// Does the same check for the CPUs from which the admission chooses one.
    pub fn declared(&self, declared: &Declared) -> Result<Declared, HookError> {
        self.check(&declared.cpus, &cpu_list(&declared.cpus))?;
        let of_all = declared.cpus.is_empty() && self.few;
        let cpus = if of_all { parse_cpu_list(&self.list) } else { declared.cpus.clone() };
        Ok(Declared { cpus, ..declared.clone() })
    }

    fn check(&self, cpus: &[u32], text: &str) -> Result<(), HookError> {
        let allowed = parse_cpu_list(&self.list);
        match cpus.iter().all(|cpu| allowed.contains(cpu)) {
            true => Ok(()),
            false => Err(HookError::annotation(CPUS, text, AnnotationFault::OtherCpus(self.list.clone()))),
        }
    }
}

/// Binds a container to the CPUs of its budget, if the request says so. The note makes it possible to detect a later
/// change of the CPUs by another program.
pub fn bind(group: &Existing, budget: &Budget, undo: &mut Undo) -> Result<(), HookError> {
    let Some(cpus) = budget.cpus.as_deref().filter(|_| budget.bind) else { return Ok(()) };
    group.enable("cpuset", undo)?;
    cgroup::write(group, BOUND, cpus, undo)?;
    Ok(note_bound(group.path())?)
}

#[cfg(test)]
mod tests {
    use macrotick_model::Duration;

    use super::*;

    fn allowed(list: &str, few: bool) -> Allowed {
        Allowed { list: list.into(), few }
    }

    fn budget(cpus: Option<&str>) -> Budget {
        let (length, cpus) = (Duration::from_millis(1), cpus.map(str::to_owned));
        Budget { length, bind: cpus.is_some(), cpus, priority: 1, fifo: true, lead: None }
    }

    #[test]
    fn a_budget_is_where_the_container_may_run() {
        let cpus = |allowed: Allowed, asked| allowed.budget(&budget(asked)).map(|budget| budget.cpus).ok();
        assert_eq!(cpus(allowed("0-3", false), None), Some(None));
        assert_eq!(cpus(allowed("2-3", true), None), Some(Some("2-3".into())));
        assert_eq!(cpus(allowed("0-3", false), Some("1,3")), Some(Some("1,3".into())));
        assert_eq!(cpus(allowed("2-3", true), Some("1,3")), None);
        let said = allowed("2-3", true).budget(&budget(Some("1,3"))).unwrap_err().to_string();
        assert_eq!(said, "annotation macrotick.cpus: 1,3: the container may run only on CPU 2-3");
    }

    #[test]
    fn tasks_are_admitted_where_the_container_may_run() {
        let declared = |cpus: &[u32]| Declared {
            tasks: Vec::new(),
            criticality: 1,
            priority: None,
            budget: None,
            cpus: cpus.to_vec(),
            bind: true,
            fifo: true,
            lead: None,
        };
        let cpus = |allowed: Allowed, asked: &[u32]| allowed.declared(&declared(asked)).map(|one| one.cpus).ok();
        assert_eq!(cpus(allowed("0-3", false), &[]), Some(vec![]));
        assert_eq!(cpus(allowed("2-3", true), &[]), Some(vec![2, 3]));
        assert_eq!(cpus(allowed("2-3", true), &[3]), Some(vec![3]));
        assert_eq!(cpus(allowed("2-3", true), &[0]), None);
    }
}
