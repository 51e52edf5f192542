//! Groups.

use super::context::{Context, Fields};
use super::yaml::{Node, Value};
use super::UNREAD;
use crate::system::{Group, GroupTask, GroupThread};
use crate::time::Duration;
use crate::validate::{CPU_RANGE, CRITICALITY_RANGE, INTERRUPT_FORM, INTERRUPT_PREFIX, PRIORITY_RANGE};

const GROUP_KEYS: [&str; 12] = [
    "name",
    "criticality",
    "priority",
    "budget",
    "may-grow",
    "cpus",
    "cgroup",
    "fifo",
    "lead",
    "pool",
    "kernel-threads",
    "tasks",
];
const TASK_KEYS: [&str; 8] = ["name", "period", "wcet", "deadline", "jitter", "priority", "cpu", "bound"];

impl Context {
    pub(super) fn group(&mut self, node: &Node, path: &str) -> Group {
        let Some(fields) = self.fields(node, path, "a group", &GROUP_KEYS) else {
            return Group::named("unread", Vec::new());
        };
        let name = self.required_text(&fields, "name", "the group");
        let cpus = match fields.get("cpus") {
            Some(node) => self.cpu_list(node, &fields.path_of("cpus")),
            None => Vec::new(),
        };
        Group {
            criticality: self.optional_criticality(&fields),
            priority: self.optional_priority(&fields),
            budget: self.assignable_duration(&fields, "budget"),
            may_grow: self.flag(&fields, "may-grow"),
            cgroup: self.optional_text(&fields, "cgroup"),
            fifo: self.flag(&fields, "fifo"),
            lead: self.optional_duration(&fields, "lead"),
            pool: self.optional_text(&fields, "pool"),
            kernel_threads: self.optional_items(&fields, "kernel-threads", Self::group_thread),
            tasks: self.optional_items(&fields, "tasks", Self::group_task),
            ..Group::named(name, cpus)
        }
    }

    fn group_thread(&mut self, node: &Node, path: &str) -> GroupThread {
        match &node.value {
            Value::Scalar(text) if text.starts_with(INTERRUPT_PREFIX) => GroupThread::Interrupt(text.clone()),
            _ => GroupThread::EachCpu(self.kernel_thread(node, path, &[INTERRUPT_FORM])),
        }
    }

    fn group_task(&mut self, node: &Node, path: &str) -> GroupTask {
        self.declared_task(node, path, "a task of a group", &TASK_KEYS)
    }

    /// A task of a group or a container: `what`, in words.
    pub(super) fn declared_task(&mut self, node: &Node, path: &str, what: &str, keys: &[&str]) -> GroupTask {
        let Some(fields) = self.fields(node, path, what, keys) else {
            return GroupTask::named("unread", UNREAD, UNREAD, GroupTask::FIRST_CPU);
        };
        let name = self.required_text(&fields, "name", "the task");
        let what = format!("task `{name}`");
        let period = self.required_duration(&fields, "period", &what);
        let wcet = self.required_duration(&fields, "wcet", &what);
        let default = GroupTask::named(name, period, wcet, GroupTask::FIRST_CPU);
        GroupTask {
            deadline: self.optional_duration(&fields, "deadline").unwrap_or(default.deadline),
            jitter: self.optional_duration(&fields, "jitter").unwrap_or(default.jitter),
            priority: self.optional_priority(&fields),
            cpu: self.optional_cpu(&fields).unwrap_or(default.cpu),
            bound: self.flag(&fields, "bound"),
            ..default
        }
    }

    pub(super) fn optional_criticality(&mut self, fields: &Fields) -> Option<u32> {
        let node = fields.get("criticality")?;
        self.integer(node, &fields.path_of("criticality"), CRITICALITY_RANGE)
    }

    pub(super) fn required_criticality(&mut self, fields: &Fields, what: &str) -> u32 {
        self.require(fields, "criticality", what);
        self.optional_criticality(fields).unwrap_or(0)
    }

    pub(super) fn optional_priority(&mut self, fields: &Fields) -> Option<u32> {
        self.excuse(fields, "priority");
        fields.get("priority").and_then(|node| self.integer(node, &fields.path_of("priority"), PRIORITY_RANGE))
    }

    /// A time that is found where it is left out.
    pub(super) fn assignable_duration(&mut self, fields: &Fields, key: &str) -> Option<Duration> {
        self.excuse(fields, key);
        self.optional_duration(fields, key)
    }

    fn optional_cpu(&mut self, fields: &Fields) -> Option<u32> {
        fields.get("cpu").and_then(|node| self.integer(node, &fields.path_of("cpu"), CPU_RANGE))
    }
}

/// What the description leaves out: a group has all CPUs of the system, and a task the first one of its group.
pub(super) fn complete(groups: &mut [Group], cpus: &[u32]) {
    for group in groups {
        if group.cpus.is_empty() {
            group.cpus = cpus.to_vec();
        }
        let first = group.cpus.first().copied().unwrap_or(0);
        let unsaid = group.tasks.iter_mut().filter(|task| task.cpu == GroupTask::FIRST_CPU);
        unsaid.for_each(|task| task.cpu = first);
    }
}

impl GroupTask {
    /// Stands for the first CPU of the group while a description is read; no CPU has that number.
    const FIRST_CPU: u32 = u32::MAX;
}
