//! Rules of groups, and of what runs in them.

use std::collections::BTreeMap;

use super::{Rules, CPUS, GROUP_NAMES, MIN_BUDGET, PRIORITY_RANGE, SERVER_PERIOD_RANGE};
use crate::parse::nearest_name;
use crate::system::{Background, Group, GroupTask, Policy};
use crate::time::Duration;

const MICROSECOND: Duration = Duration::from_micros(1);
const SERVER_PERIOD: &str = "server-period";

impl Rules<'_> {
    pub(super) fn groups(&mut self) {
        let system = self.system;
        self.server_period();
        let mut priorities: BTreeMap<u32, &str> = BTreeMap::new();
        for (index, group) in system.groups.iter().enumerate() {
            let path = format!("groups[{index}]");
            self.group(&path, group);
            if let Some(other) = priorities.insert(group.priority, &group.name) {
                let text = format!("group `{other}` has priority {} already", group.priority);
                self.add(format!("{path}.priority"), &[GROUP_NAMES], text);
            }
        }
    }

    fn server_period(&mut self) {
        let period = self.system.server_period;
        if !SERVER_PERIOD_RANGE.contains(&period) {
            let (least, most) = (SERVER_PERIOD_RANGE.start(), SERVER_PERIOD_RANGE.end());
            self.add(SERVER_PERIOD, &[], format!("server-period {period} is out of range: {least} to {most}"));
        } else {
            self.in_microseconds(SERVER_PERIOD, "server-period", period);
        }
    }

    /// The kernel's files count in them.
    fn in_microseconds(&mut self, path: &str, key: &str, length: Duration) {
        if !length.is_multiple_of(MICROSECOND) {
            self.add(path, &[], format!("{key} {length} is no whole number of microseconds"));
        }
    }

    fn group(&mut self, path: &str, group: &Group) {
        let at = |key: &str| format!("{path}.{key}");
        self.name(&at("name"), &group.name);
        self.range(path, "priority", group.priority.into(), &PRIORITY_RANGE);
        self.budget(&at("budget"), group);
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
        for (index, task) in group.tasks.iter().enumerate() {
            self.group_task(&format!("{path}.tasks[{index}]"), group, task);
            if group.tasks[..index].iter().any(|other| other.name == task.name) {
                let text = format!("duplicate name `{}`: another task of the group has it already", task.name);
                self.add(format!("{path}.tasks[{index}].name"), &[], text);
            }
        }
    }

    fn budget(&mut self, path: &str, group: &Group) {
        let (budget, period) = (group.budget, self.system.server_period);
        if budget < MIN_BUDGET {
            self.add(path, &[], format!("budget {budget} is shorter than {MIN_BUDGET}"));
        } else if budget > period {
            let text = format!("budget {budget} is longer than the server period {period}");
            self.add(path, &[SERVER_PERIOD], text);
        } else {
            self.in_microseconds(path, "budget", budget);
        }
    }

    fn group_task(&mut self, path: &str, group: &Group, task: &GroupTask) {
        let dot = format!("{path}.");
        self.name(&format!("{path}.name"), &task.name);
        self.range(path, "priority", task.priority.into(), &PRIORITY_RANGE);
        for (key, length) in [("period", task.period), ("wcet", task.wcet), ("deadline", task.deadline)] {
            self.positive(&dot, key, length);
        }
        if task.jitter < Duration::ZERO {
            self.add(format!("{path}.jitter"), &[], format!("jitter {} is negative", task.jitter));
        }
        if !group.cpus.contains(&task.cpu) {
            let text = format!("CPU {} is not among those of group `{}`", task.cpu, group.name);
            self.add(format!("{path}.cpu"), &[CPUS], text);
        }
        let period = self.system.server_period;
        if task.bound && period > Duration::ZERO && !task.period.is_multiple_of(period) {
            let text = format!("a bound task arrives at refills: {} is no multiple of {period}", task.period);
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
        if matches!(background.policy, Policy::Fifo(_)) && self.system.group(name).is_some_and(|group| !group.fifo) {
            let text =
                format!("background load `{}` has SCHED_FIFO, which group `{name}` does not take", background.name);
            self.add(path, &[GROUP_NAMES], text).hint = Some("give the group `fifo: true`".into());
        }
    }
}
