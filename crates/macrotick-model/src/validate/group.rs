//! Rules of groups, and of what runs in them.

use std::collections::BTreeMap;

use super::{Rules, CPUS, GROUP_NAMES, MIN_BUDGET, POOL_NAMES};
use crate::keys::Found;
use crate::parse::nearest_name;
use crate::system::{Background, Group, GroupTask, GroupThread, Policy, Pool, PoolOrder};
use crate::time::Duration;

const MICROSECOND: Duration = Duration::from_micros(1);
const SERVER_PERIOD: &str = "server-period";

impl Found {
    /// The kernel's files count in them.
    pub(super) fn in_microseconds(&mut self, path: &str, key: &str, length: Duration) {
        if !length.is_multiple_of(MICROSECOND) {
            self.add(path, &[], format!("{key} {length} is no whole number of microseconds"));
        }
    }

    /// The tasks of one group or container: `whose`, in words.
    pub(super) fn tasks(&mut self, path: &str, tasks: &[GroupTask], whose: &str) {
        for (index, task) in tasks.iter().enumerate() {
            let at = format!("{path}[{index}]");
            if tasks[..index].iter().any(|other| other.name == task.name) {
                let text = format!("duplicate name `{}`: another task of {whose} has it already", task.name);
                self.add(format!("{at}.name"), &[], text);
            }
            self.task_priority(path, tasks, index, whose);
        }
    }

    /// The order of tasks is given for all of them, or found for all of them.
    fn task_priority(&mut self, path: &str, tasks: &[GroupTask], index: usize, whose: &str) {
        let given = tasks.iter().position(|task| task.priority.is_some());
        let (task, Some(given)) = (&tasks[index], given) else { return };
        if task.priority.is_none() {
            let hint = format!("task `{}` has one: give it to all tasks of {whose}, or to none", tasks[given].name);
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
            let Some(priority) = group.priority else {
                self.no_priority(&path, group);
                continue;
            };
            if let Some(other) = priorities.insert(priority, &group.name) {
                let text = format!("group `{other}` has priority {priority} already");
                self.add(format!("{path}.priority"), &[GROUP_NAMES], text);
            }
        }
    }

    /// Priorities follow from criticality for all groups or for none: so it is plain where each stands.
    fn no_priority(&mut self, path: &str, group: &Group) {
        let groups = &self.system.groups;
        let given = groups.iter().position(|other| other.priority.is_some());
        if given.is_none() && group.criticality.is_some() {
            return;
        }
        let hint = match given {
            Some(other) => {
                format!("group `{}` has one: give it to all groups, or `criticality` only", groups[other].name)
            }
            None => "give all groups one; or `criticality`, from which priorities follow".into(),
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
            None => self.no_budget(path, group),
        }
        for (index, &cpu) in group.cpus.iter().enumerate() {
            self.cpu(&at("cpus"), cpu);
            if group.cpus[..index].contains(&cpu) {
                self.add(at("cpus"), &[], format!("CPU {cpu} is listed twice"));
            }
        }
        if !group.cpus.is_sorted() {
            self.add(at("cpus"), &[], "CPUs are not in ascending order");
        }
        if group.cpus.is_empty() {
            self.add(at("cpus"), &[CPUS], "no CPU to have a budget on");
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
        if let Some(pool) = &group.pool {
            self.windows(&at("pool"), group, pool);
        }
        for index in 0..group.kernel_threads.len() {
            self.group_thread(&format!("{path}.kernel-threads[{index}]"), group, index);
        }
        self.found.tasks(&at("tasks"), &group.tasks, "the group");
        for (index, task) in group.tasks.iter().enumerate() {
            self.group_task(&format!("{path}.tasks[{index}]"), group, task);
        }
    }

    /// The windows are the group's alone, and serve it as its budget does: by priority, on its one CPU.
    fn windows(&mut self, path: &str, group: &Group, name: &str) {
        let system = self.system;
        let mut wrong = |text: String, hint: Option<String>| self.add(path, &[POOL_NAMES, CPUS], text).hint = hint;
        let Some(pool) = system.pool(name) else {
            let near = nearest_name(name, system.pools.iter().map(|pool| pool.name.as_str()));
            return wrong(format!("no pool is named `{name}`"), near.map(|near| format!("did you mean `{near}`?")));
        };
        if system.groups.iter().any(|other| other.name != group.name && other.pool.as_deref() == Some(name)) {
            wrong(format!("the windows of pool `{name}` are to serve two groups"), None);
        }
        if !matches!(pool.order, PoolOrder::Priority { .. }) {
            let text = format!("pool `{name}` does not serve group `{}` by priority", group.name);
            wrong(text, Some("give the pool `order: priority`".into()));
        }
        if pool.cpu.is_none() || group.cpus.iter().any(|&cpu| Some(cpu) != pool.cpu) {
            let text = format!("pool `{name}` and group `{}` are not on the same one CPU", group.name);
            wrong(text, Some("give the pool a `cpu`, and the group `cpus` with just that one".into()));
        }
        if !group.kernel_threads.is_empty() {
            let text = format!("the kernel threads of group `{}` are not in pool `{name}`", group.name);
            wrong(text, Some("put them in a group without `pool`".into()));
        }
        let loaded = system.background.iter().any(|load| load.pool.as_deref() == Some(name));
        if loaded || pool.cgroup.is_some() || !pool.kernel_threads.is_empty() {
            let text = format!("the windows of pool `{name}` serve others beside group `{}`", group.name);
            wrong(
                text,
                Some("a pool whose windows a group has is without `cgroup`, `kernel-threads` and loads".into()),
            );
        }
    }

    /// A thread is served by one group, or by the windows of one pool.
    fn group_thread(&mut self, path: &str, group: &Group, index: usize) {
        let thread = &group.kernel_threads[index];
        let name = thread.name();
        if matches!(thread, GroupThread::Interrupt(name) if !is_interrupt(name)) {
            self.add(path, &[], format!("`{name}` is not the name of an interrupt's thread")).hint =
                Some(format!("write {}, as `ps -e` has it", GroupThread::INTERRUPT_FORM));
        }
        if group.kernel_threads[..index].contains(thread) {
            self.add(path, &[], format!("kernel thread `{name}` stands twice in group `{}`", group.name));
            return;
        }
        let system = self.system;
        let mut before = system.groups.iter().take_while(|other| !std::ptr::eq(*other, group));
        let group_has = |other: &&Group| other.kernel_threads.contains(thread) && thread.is_shared(group, other);
        let pool_has = |pool: &&Pool| {
            let kinds = pool.kernel_threads.iter();
            let same_cpu = pool.cpu.is_none_or(|cpu| group.cpus.contains(&cpu));
            same_cpu && kinds.map(|kind| GroupThread::EachCpu(*kind)).any(|other| other == *thread)
        };
        let other = before.find(group_has).map(|other| format!("group `{}`", other.name));
        let pool = system.pools.iter().find(pool_has).map(|pool| format!("pool `{}`", pool.name));
        if let Some(other) = other.or(pool) {
            self.add(path, &[CPUS], format!("kernel thread `{name}` is in {other} already"));
        }
    }

    /// The least budget is found from what is declared.
    fn no_budget(&mut self, path: &str, group: &Group) {
        let (at, tasks, name) = (format!("{path}.budget"), format!("{path}.tasks"), &group.name);
        if group.tasks.is_empty() {
            let hint = "give it, or declare `tasks`, for which the least budget is found";
            self.add(at, &[&tasks], format!("group `{name}` has no `budget`")).hint = Some(hint.into());
            return;
        }
        let idle = group.cpus.iter().find(|&&cpu| group.tasks.iter().all(|task| task.cpu != cpu));
        if let Some(cpu) = idle {
            let text = format!("group `{name}` has no `budget`, and no task on CPU {cpu} that one could be found for");
            self.add(at, &[&tasks, &format!("{path}.cpus"), CPUS], text).hint =
                Some("give `budget`, or only those CPUs in `cpus` that have tasks".into());
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

    /// What is said of it beside its group.
    fn group_task(&mut self, path: &str, group: &Group, task: &GroupTask) {
        if !group.cpus.contains(&task.cpu) {
            let text = format!("CPU {} is not among those of group `{}`", task.cpu, group.name);
            self.add(format!("{path}.cpu"), &[CPUS], text);
        }
        let period = self.system.server_period;
        if task.at_refills && period > Duration::ZERO && !task.period.is_multiple_of(period) {
            let text = format!("its jobs arrive at refills: {} is no multiple of {period}", task.period);
            self.add(format!("{path}.period"), &[SERVER_PERIOD], text);
        }
    }

    pub(super) fn in_group(&mut self, path: &str, background: &Background) {
        let Some(name) = &background.group else { return };
        if self.system.group(name).is_none() {
            let near = nearest_name(name, self.system.groups.iter().map(|group| group.name.as_str()));
            let hint = near.map(|near| format!("did you mean `{near}`?"));
            self.add(format!("{path}.group"), &[GROUP_NAMES], format!("no group is named `{name}`")).hint = hint;
        }
        if background.pool.is_some() {
            self.add(path, &[], format!("background load `{}` is in a pool and in a group", background.name));
        }
        if matches!(background.policy, Policy::Fifo(_))
            && self.system.group(name).is_some_and(|group| !group.serve_fifo)
        {
            let text =
                format!("background load `{}` has SCHED_FIFO, which group `{name}` does not take", background.name);
            self.add(path, &[GROUP_NAMES], text).hint = Some("give the group `serve-fifo: true`".into());
        }
    }
}

impl GroupThread {
    /// Whether it is the same thread in both groups: every CPU has its own, an interrupt one.
    fn is_shared(&self, one: &Group, other: &Group) -> bool {
        match self {
            GroupThread::EachCpu(_) => one.cpus.iter().any(|cpu| other.cpus.contains(cpu)),
            GroupThread::Interrupt(_) => true,
        }
    }
}

/// Whether a name has the form that the kernel gives to threads of interrupts (`kernel/irq/manage.c`, `setup_irq_thread`).
fn is_interrupt(name: &str) -> bool {
    let Some((number, action)) = name.strip_prefix(GroupThread::INTERRUPT_PREFIX).and_then(|rest| rest.split_once('-'))
    else {
        return false;
    };
    number.parse::<u32>().is_ok() && !action.is_empty() && !action.contains(char::is_control)
}
