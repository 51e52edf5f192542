//! Rules of resources that only one job at a time has.

use super::Rules;
use crate::system::Task;

impl Rules<'_> {
    /// Checks the resources of a task.
    pub(super) fn exclusive(&mut self, path: &str, task: &Task) {
        if task.exclusive.is_empty() {
            return;
        }
        let at = format!("{path}.exclusive");
        if !task.supply.is_windows() {
            let text = format!(
                "task `{}` has a reservation and no windows, so no plan keeps others from its resources",
                task.name
            );
            self.add(&at, &[&format!("{path}.supply")], text);
        }
        if task.migrate {
            let text = format!("task `{}` may migrate, but its jobs stay on one CPU with their resources", task.name);
            self.add(&at, &[&format!("{path}.migrate")], text).hint = Some("leave out `exclusive` or `migrate`".into());
        }
        for (index, name) in task.exclusive.iter().enumerate() {
            let place = format!("{at}[{index}]");
            if task.exclusive[..index].contains(name) {
                self.add(&place, &[], format!("resource `{name}` is listed twice"));
                continue;
            }
            if self.system.tasks.iter().any(|other| other.name != task.name && other.exclusive.contains(name)) {
                continue;
            }
            let others = self.system.tasks.iter().flat_map(|other| &other.exclusive).filter(|other| *other != name);
            let near = crate::parse::nearest_name(name, others.map(String::as_str));
            let text = format!("no other task has `{name}`: a resource needs at least two tasks");
            self.add(&place, &["tasks"], text).hint = near.map(|near| format!("did you mean `{near}`?"));
        }
    }
}
