//! A container's description, in a file of its own.

use super::context::Context;
use super::yaml::{Node, Value};
use super::{read, CPUS};
use crate::container::Container;
use crate::diagnostic::Diagnostics;
use crate::system::GroupTask;
use crate::validate;

const CONTAINER_KEYS: [&str; 8] =
    ["container", "criticality", "priority", "cpus", "budget", "may-grow", "lead", "tasks"];
const TASK_KEYS: [&str; 7] = ["name", "period", "wcet", "deadline", "jitter", "priority", "bound"];

impl Container {
    /// Reads a description. `path` is only used to name the place of an error. All errors are told at once.
    pub fn parse(source: &str, path: &str) -> Result<Container, Diagnostics> {
        read(source, |cx, root| {
            let container = cx.container(root)?;
            validate::container_problems(&container).into_iter().for_each(|problem| cx.apply(problem));
            Some(container)
        })
        .map_err(|findings| Diagnostics::new(path, source, findings))
    }
}

impl GroupTask {
    /// Reads a list of tasks by itself, as it stands under `tasks` of a container. `path` names the place of an error.
    pub fn parse_list(source: &str, path: &str) -> Result<Vec<GroupTask>, Diagnostics> {
        read(source, |cx, root| {
            let tasks = cx.items(root, "tasks", "the list of tasks", Context::container_task);
            if tasks.is_empty() && cx.findings.is_empty() {
                cx.report(root.at, "there is no task", None);
            }
            validate::task_problems(&tasks).into_iter().for_each(|problem| cx.apply(problem));
            Some(tasks)
        })
        .map_err(|findings| Diagnostics::new(path, source, findings))
    }
}

impl Context {
    pub(super) fn container(&mut self, root: &Node) -> Option<Container> {
        if matches!(root.value, Value::Null) {
            self.report(root.at, "the description is empty", None);
            return None;
        }
        let fields = self.fields(root, "", "the description of a container", &CONTAINER_KEYS)?;
        Some(Container {
            name: self.required_text(&fields, "container", "the description"),
            criticality: self.required_criticality(&fields, "the description"),
            priority: self.optional_priority(&fields),
            cpus: fields.get(CPUS).map_or(Vec::new(), |node| self.cpu_list(node, CPUS)),
            budget: self.assignable_duration(&fields, "budget"),
            may_grow: self.flag(&fields, "may-grow"),
            lead: self.optional_duration(&fields, "lead"),
            tasks: self.optional_items(&fields, "tasks", Self::container_task),
        })
    }

    fn container_task(&mut self, node: &Node, path: &str) -> GroupTask {
        self.declared_task(node, path, "a task of a container", &TASK_KEYS)
    }
}
