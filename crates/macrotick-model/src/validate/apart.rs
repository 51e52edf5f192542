//! Rules of tasks that share no CPU.

use super::{Rules, TASK_NAMES};
use crate::system::Task;

impl Rules<'_> {
    /// Checks the tasks that a task is apart from.
    pub(super) fn apart(&mut self, path: &str, task: &Task) {
        if !task.apart.is_empty() && !task.supply.is_windows() {
            let text =
                format!("task `{}` has a reservation and no windows, so it cannot be apart from others", task.name);
            self.add(format!("{path}.apart"), &[&format!("{path}.supply")], text);
        }
        for (index, name) in task.apart.iter().enumerate() {
            let place = format!("{path}.apart[{index}]");
            self.known_task(&place, name);
            self.windowed_task(&place, name);
            if task.apart[..index].contains(name) {
                self.add(&place, &[], format!("task `{name}` is listed twice"));
                continue;
            }
            if *name == task.name {
                self.add(&place, &[], format!("task `{name}` cannot be apart from itself"));
                continue;
            }
            let shared = self.system.task(name).and_then(|other| other.cpu.filter(|cpu| task.cpu == Some(*cpu)));
            if let Some(cpu) = shared {
                let text = format!("tasks `{}` and `{name}` are apart, but both have CPU {cpu}", task.name);
                self.add(&place, &[&format!("{path}.cpu"), TASK_NAMES], text);
            }
        }
    }
}
