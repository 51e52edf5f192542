//! Rules of the order of jobs.

use std::collections::BTreeSet;

use super::{Rules, TASK_NAMES};
use crate::system::Task;

impl Rules<'_> {
    /// Checks the tasks that the jobs of a task wait for.
    pub(super) fn after(&mut self, path: &str, task: &Task) {
        if !task.after.is_empty() && !task.supply.is_windows() {
            let text = format!("task `{}` has a reservation and no windows, so it cannot wait for others", task.name);
            self.add(format!("{path}.after"), &[&format!("{path}.supply")], text);
        }
        for (index, name) in task.after.iter().enumerate() {
            let place = format!("{path}.after[{index}]");
            self.known_task(&place, name);
            self.windowed_task(&place, name);
            if task.after[..index].contains(name) {
                self.add(&place, &[], format!("task `{name}` is listed twice"));
            }
            let other = self.system.task(name);
            if let Some(other) = other.filter(|other| other.period != task.period && other.name != task.name) {
                let text = format!(
                    "task `{name}` has the period {}, but `{}` has {}: only tasks of one period can wait for each other",
                    other.period, task.name, task.period
                );
                self.add(&place, &[TASK_NAMES, &format!("{path}.period")], text).hint =
                    Some("use a chain with a bound".into());
            }
            if self.waits_for(name, &task.name) {
                let text = match *name == task.name {
                    true => format!("task `{name}` cannot wait for itself"),
                    false => format!("tasks `{name}` and `{}` wait for each other", task.name),
                };
                self.add(&place, &[TASK_NAMES, "tasks"], text);
            }
        }
    }

    /// Whether a task is the other one, or waits for it through any tasks.
    fn waits_for(&self, task: &str, other: &str) -> bool {
        let (mut seen, mut open) = (BTreeSet::new(), vec![task]);
        while let Some(name) = open.pop() {
            if name == other {
                return true;
            }
            if seen.insert(name) {
                open.extend(self.system.task(name).iter().flat_map(|task| &task.after).map(String::as_str));
            }
        }
        false
    }
}
