//! Reading `system.yaml`: from text to the normal form. Every error is reported at its place.
//!
//! There are two passes. The first reads the syntax by the table of [`crate::keys`]: keys, kinds and units. It reports
//! each value that it cannot read, marks it as broken, and uses a placeholder. The second applies the rules of
//! [`crate::validate`], except those that depend on a broken value. So each mistake is reported once, and none hides
//! another.

mod context;
mod json;
mod old;
mod place;
mod yaml;

pub(crate) use context::{join, nearest_name, Context, Fields, Form};
pub(crate) use json::SYSTEM;
pub(crate) use old::anywhere as old_key;
pub use place::Finding;
pub(crate) use yaml::Node;
use yaml::Value;

use crate::container::Container;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::keys::Field;
use crate::system::{GroupTask, System};
use crate::validate::{
    self, CLASS_NAMES, GROUP_NAMES, HOST_NAMES, INTERFACE_NAMES, NAMESPACE_NAMES, PERIODS, TASK_NAMES,
};

impl System {
    /// Reads a description, and reports all errors at once. `path` only names the place of an error.
    pub fn parse(source: &str, path: &str) -> Result<System, Diagnostics> {
        read(source, |cx, root| {
            let system = cx.system(root)?;
            validate::values(&system).into_iter().for_each(|problem| cx.apply_to_value(problem));
            validate::rules(&system).into_iter().for_each(|problem| cx.apply(problem));
            Some(system)
        })
        .map_err(|findings| Diagnostics::new(path, source, findings))
    }
}

impl Container {
    /// Reads a description, and reports all errors at once. `path` only names the place of an error.
    pub fn parse(source: &str, path: &str) -> Result<Container, Diagnostics> {
        read(source, |cx, root| {
            let container = cx.container(root)?;
            validate::values(&container).into_iter().for_each(|problem| cx.apply_to_value(problem));
            validate::container_rules(&container).into_iter().for_each(|problem| cx.apply(problem));
            Some(container)
        })
        .map_err(|findings| Diagnostics::new(path, source, findings))
    }
}

impl GroupTask {
    /// Reads a list of tasks by itself, in the form of the key `tasks` of a container. `path` only names the place of
    /// an error.
    pub fn parse_list(source: &str, path: &str) -> Result<Vec<GroupTask>, Diagnostics> {
        read(source, |cx, root| {
            let tasks = Vec::<GroupTask>::read(cx, root, "tasks", &Vec::<GroupTask>::KIND);
            if tasks.is_empty() && cx.findings.is_empty() {
                cx.report("tasks", root.at, "there is no task", None);
            }
            validate::values_of_tasks(&tasks).into_iter().for_each(|problem| cx.apply_to_value(problem));
            validate::task_rules(&tasks).into_iter().for_each(|problem| cx.apply(problem));
            Some(tasks)
        })
        .map_err(|findings| Diagnostics::new(path, source, findings))
    }
}

/// Reads a text with `decode`. Fails if there are findings.
fn read<T>(source: &str, decode: impl FnOnce(&mut Context, &Node) -> Option<T>) -> Result<T, Vec<Diagnostic>> {
    let root = yaml::load(source).map_err(|finding| vec![finding])?;
    let mut cx = Context::default();
    match decode(&mut cx, &root) {
        Some(decoded) if cx.findings.is_empty() => Ok(decoded),
        _ => Err(cx.findings.into_iter().map(|(_, finding)| finding).collect()),
    }
}

impl Context {
    fn root<T: Field>(&mut self, root: &Node) -> Option<T> {
        if matches!(root.value, Value::Null) {
            self.report("", root.at, "the description is empty", None);
            return None;
        }
        Some(T::read(self, root, "", &T::KIND)).filter(|_| !self.is_broken(""))
    }

    fn system(&mut self, root: &Node) -> Option<System> {
        let mut system: System = self.root(root)?;
        system.complete();
        self.mark_sets("tasks", system.tasks.len(), TASK_NAMES, "period");
        self.mark_sets("groups", system.groups.len(), GROUP_NAMES, "windows");
        self.mark_names("hosts", system.hosts.len(), HOST_NAMES);
        self.mark_names("namespaces", system.namespaces.len(), NAMESPACE_NAMES);
        if let Some(network) = &system.network {
            self.mark_names("network.classes", network.classes.len(), CLASS_NAMES);
            self.mark_names("network.interfaces", network.interfaces.len(), INTERFACE_NAMES);
            for (list, count) in [("slots", network.slots.len()), ("flows", network.flows.len())] {
                let path = |index| format!("network.{list}[{index}].period");
                if self.is_broken("network") || (0..count).any(|index| self.holds_broken(&path(index))) {
                    self.mark_broken(PERIODS);
                }
            }
        }
        Some(system)
    }

    fn container(&mut self, root: &Node) -> Option<Container> {
        self.root(root)
    }

    /// Turns off the rules about all names or all periods if one of them could not be read.
    fn mark_sets(&mut self, list: &str, count: usize, names: &str, period: &str) {
        for index in 0..count {
            for (key, set) in [("name", names), (period, PERIODS)] {
                if self.holds_broken(&format!("{list}[{index}].{key}")) {
                    self.mark_broken(set);
                }
            }
        }
        if self.is_broken(list) {
            self.mark_broken(names);
            self.mark_broken(PERIODS);
        }
    }

    fn mark_names(&mut self, list: &str, count: usize, names: &str) {
        let broken = |index: usize| self.is_broken(&format!("{list}[{index}].name"));
        if self.is_broken(list) || (0..count).any(broken) {
            self.mark_broken(names);
        }
    }
}
