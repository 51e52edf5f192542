//! Rules of groups and their contents.

use std::collections::{BTreeMap, BTreeSet};

use super::{Rules, CPUS, GROUP_NAMES, MIN_BUDGET};
use crate::keys::Found;
use crate::system::{Group, GroupTask, GroupThread};
use crate::time::Duration;

const MICROSECOND: Duration = Duration::from_micros(1);
const SERVER_PERIOD: &str = "server-period";

impl Found {
    /// Reports a length that is not a whole number of microseconds, the unit of the kernel's files.
    pub(super) fn in_microseconds(&mut self, path: &str, key: &str, length: Duration) {
        if !length.is_multiple_of(MICROSECOND) {
            self.add(path, &[], format!("{key} {length} is not a whole number of microseconds"));
        }
    }

    /// Checks the tasks of one group or container. `whose` is its name in messages.
    pub(super) fn tasks(&mut self, path: &str, tasks: &[GroupTask], whose: &str) {
        let mut names = BTreeSet::new();
        let given = tasks.iter().position(|task| task.priority.is_some());
        for (index, task) in tasks.iter().enumerate() {
            if !names.insert(&task.name) {
                let text = format!("duplicate name `{}`: another task of {whose} has this name", task.name);
                self.add(format!("{path}[{index}].name"), &[], text);
            }
            if let Some(given) = given {
                self.task_priority(path, tasks, (index, given), whose);
            }
        }
    }

    /// Checks that all tasks have a priority, or none has one.
    fn task_priority(&mut self, path: &str, tasks: &[GroupTask], (index, given): (usize, usize), whose: &str) {
        let task = &tasks[index];
        if task.priority.is_none() {
            let hint = format!(
                "task `{}` has one: set it for all tasks of {whose}, or leave it out for all",
                tasks[given].name
            );
            let text = format!("task `{}` has no `priority`", task.name);
            let other = format!("{path}[{given}].priority");
            self.add(format!("{path}[{index}].priority"), &[&other], text).hint = Some(hint);
        }
    }
}

impl Rules<'_> {
    pub(super) fn groups(&mut self) {
        let system = self.system;
        self.server_period();
        let mut priorities: BTreeMap<u32, &str> = BTreeMap::new();
        for (index, group) in system.groups.iter().enumerate() {
            let path = format!("groups[{index}]");
            self.group(&path, group);
            if !group.has_budget() {
                continue;
            }
            let Some(priority) = group.priority else {
                self.no_priority(&path, group);
                continue;
            };
            if let Some(other) = priorities.insert(priority, &group.name) {
                let text = format!("group `{other}` already has priority {priority}");
                self.add(format!("{path}.priority"), &[GROUP_NAMES], text);
            }
        }
    }

    /// Reports a group without a priority. All groups have a priority or none has one, so their order is always clear.
    /// Without priorities, the order follows from criticality.
    fn no_priority(&mut self, path: &str, group: &Group) {
        let groups = &self.system.groups;
        let given = groups.iter().position(|other| other.has_budget() && other.priority.is_some());
        if given.is_none() && group.criticality.is_some() {
            return;
        }
        let hint = match given {
            Some(other) => {
                format!(
                    "group `{}` has one: set it for all groups, or only `criticality` for all groups",
                    groups[other].name
                )
            }
            None => "set it for all groups, or `criticality` for all groups to derive it".into(),
        };
        let needs = format!("{path}.criticality");
        let given = format!("groups[{}].priority", given.unwrap_or(0));
        let text = format!("group `{}` has no `priority`", group.name);
        self.add(format!("{path}.priority"), &[GROUP_NAMES, &needs, &given], text).hint = Some(hint);
    }

    fn server_period(&mut self) {
        let period = self.system.server_period;
        self.found.in_microseconds(SERVER_PERIOD, "server-period", period);
    }

    fn group(&mut self, path: &str, group: &Group) {
        let at = |key: &str| format!("{path}.{key}");
        match group.budget {
            Some(budget) => self.budget(&at("budget"), budget),
            None if group.has_budget() => self.no_budget(path, group),
            None => {}
        }
        if let Some(windows) = &group.windows {
            self.windows(path, group, windows);
        }
        for (index, process) in group.run.iter().enumerate() {
            let path = format!("{path}.run[{index}]");
            self.process(&path, process);
            self.process_in(&path, group, process);
        }
        self.containers_or_processes(path, group);
        for (index, &cpu) in group.cpus.iter().enumerate() {
            self.cpu(&at("cpus"), cpu);
            if group.cpus[..index].contains(&cpu) {
                self.add(at("cpus"), &[], format!("CPU {cpu} is listed twice"));
            }
        }
        if !group.cpus.is_sorted() {
            self.add(at("cpus"), &[], "CPUs are not in ascending order");
        }
        if group.cpus.is_empty() && group.has_budget() {
            self.add(at("cpus"), &[CPUS], "the group has no CPU for its budget");
        }
        if let Some(cgroup) = &group.cgroup {
            self.cgroup(&at("cgroup"), cgroup);
        }
        if let Some(lead) = group.lead {
            self.found.in_microseconds(&at("lead"), "lead", lead);
            if lead <= Group::MAX_LEAD && lead >= self.system.server_period {
                let text = format!("lead {lead} is not shorter than the server period, {}", self.system.server_period);
                self.add(at("lead"), &[SERVER_PERIOD], text);
            }
        }
        for index in 0..group.kernel_threads.len() {
            self.group_thread(&format!("{path}.kernel-threads[{index}]"), group, index);
        }
        self.found.tasks(&at("tasks"), &group.tasks, "the group");
        for (index, task) in group.tasks.iter().enumerate() {
            self.group_task(&format!("{path}.tasks[{index}]"), group, task);
        }
    }

    /// Checks the path of a control group. Only the host knows whether the group exists.
    fn cgroup(&mut self, path: &str, cgroup: &str) {
        let well_formed = cgroup.starts_with('/') && !cgroup.contains('\0');
        if !well_formed || cgroup.split('/').any(|part| part == "..") {
            self.add(path, &[], format!("`{cgroup}` is not the absolute path of a directory")).hint =
                Some("write \"/sys/fs/cgroup/NAME\"".into());
        }
        let all = self.system.groups.iter().filter(|group| group.cgroup.as_deref() == Some(cgroup));
        if all.count() > 1 {
            self.add(path, &[], format!("two groups use the control group `{cgroup}`"));
        }
    }

    /// Checks that only one group serves a kernel thread. Each CPU has its own thread, so the same name on different
    /// CPUs stands for different threads.
    fn group_thread(&mut self, path: &str, group: &Group, index: usize) {
        let thread = &group.kernel_threads[index];
        let name = thread.name();
        if matches!(thread, GroupThread::Interrupt(name) if !is_interrupt(name)) {
            self.add(path, &[], format!("`{name}` is not the name of an interrupt thread")).hint =
                Some(format!("write {}, as `ps -e` shows it", GroupThread::INTERRUPT_FORM));
        }
        if let GroupThread::Gate(interface) = thread {
            self.gate_thread(path, interface);
        }
        if group.kernel_threads[..index].contains(thread) {
            self.add(path, &[], format!("kernel thread `{name}` is listed twice in group `{}`", group.name));
            return;
        }
        let mut before = self.system.groups.iter().take_while(|other| !std::ptr::eq(*other, group));
        let other = before.find(|other| other.kernel_threads.contains(thread) && thread.is_shared(group, other));
        if let Some(other) = other {
            let text = format!("kernel thread `{name}` is already in group `{}`", other.name);
            let unpinned = [group, other].iter().any(|group| group.cpus.is_empty());
            self.add(path, &[CPUS], text).hint =
                unpinned.then(|| "every CPU has its own thread: set `cpus` for groups with windows".into());
        }
    }

    /// Reports a missing budget that cannot be derived from declared tasks.
    fn no_budget(&mut self, path: &str, group: &Group) {
        let (at, tasks, name) = (format!("{path}.budget"), format!("{path}.tasks"), &group.name);
        if group.tasks.is_empty() {
            let hint = "set it, or declare `tasks` to get the least budget for them";
            self.add(at, &[&tasks], format!("group `{name}` has no `budget`")).hint = Some(hint.into());
            return;
        }
        let idle = group.cpus.iter().find(|&&cpu| group.tasks.iter().all(|task| task.cpu != cpu));
        if let Some(cpu) = idle {
            let text = format!("group `{name}` has no `budget`, and no task on CPU {cpu} to derive one from");
            self.add(at, &[&tasks, &format!("{path}.cpus"), CPUS], text).hint =
                Some("set `budget`, or list in `cpus` only CPUs that have tasks".into());
        }
    }

    fn budget(&mut self, path: &str, budget: Duration) {
        let period = self.system.server_period;
        if budget < MIN_BUDGET {
            self.add(path, &[], format!("budget {budget} is shorter than {MIN_BUDGET}"));
        } else if budget > period {
            let text = format!("budget {budget} is longer than the server period {period}");
            self.add(path, &[SERVER_PERIOD], text);
        } else {
            self.found.in_microseconds(path, "budget", budget);
        }
    }

    /// Checks a task against its group.
    fn group_task(&mut self, path: &str, group: &Group, task: &GroupTask) {
        // A group with windows only has no CPUs yet if the solver may choose them. Its tasks are an error of their own.
        if !group.cpus.is_empty() && !group.cpus.contains(&task.cpu) {
            let text = format!("CPU {} is not one of the CPUs of group `{}`", task.cpu, group.name);
            self.add(format!("{path}.cpu"), &[CPUS], text);
        }
        let period = self.system.server_period;
        if task.at_refills && period > Duration::ZERO && !task.period.is_multiple_of(period) {
            let text =
                format!("its jobs arrive at refills, but the period {} is not a multiple of {period}", task.period);
            self.add(format!("{path}.period"), &[SERVER_PERIOD], text);
        }
    }
}

impl GroupThread {
    /// Whether the name can stand for the same thread in both groups. Every CPU has its own thread, and an interrupt
    /// or an interface has one. If a group with windows lists no CPU, the solver may choose any.
    fn is_shared(&self, one: &Group, other: &Group) -> bool {
        match self {
            GroupThread::EachCpu(_) => {
                one.cpus.is_empty() || other.cpus.is_empty() || one.cpus.iter().any(|cpu| other.cpus.contains(cpu))
            }
            GroupThread::Interrupt(_) | GroupThread::Gate(_) => true,
        }
    }
}

/// Whether a name has the form of interrupt threads in the kernel (`kernel/irq/manage.c`, `setup_irq_thread`).
fn is_interrupt(name: &str) -> bool {
    let Some((number, action)) = name.strip_prefix(GroupThread::INTERRUPT_PREFIX).and_then(|rest| rest.split_once('-'))
    else {
        return false;
    };
    number.parse::<u32>().is_ok() && !action.is_empty() && !action.contains(char::is_control)
}
