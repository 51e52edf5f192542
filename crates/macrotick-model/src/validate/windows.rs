//! Rules of groups with windows, and of the entities that windows serve.

use super::{Rules, GROUP_NAMES, TASK_NAMES};
use crate::parse::nearest_name;
use crate::system::{GivenWindow, Group, GroupThread, Pool, PoolOrder, Windows, MAX_NAME};
use crate::time::Duration;

impl Rules<'_> {
    pub(super) fn windows(&mut self, path: &str, group: &Group, windows: &Windows) {
        let at = |key: &str| format!("{path}.windows.{key}");
        let Windows { period, length, .. } = *windows;
        self.on_grid(&format!("{path}.windows."), "period", period);
        if length > period && period > Duration::ZERO {
            let text = format!("length {length} is longer than the period {period}");
            self.add(at("length"), &[&at("period")], text);
        }
        match group.has_budget() {
            true => self.windows_beside_a_budget(path, group, windows),
            false => self.windows_alone(path, group),
        }
    }

    /// Checks that the windows serve the group as its budget does: by priority, on its only CPU.
    fn windows_beside_a_budget(&mut self, path: &str, group: &Group, windows: &Windows) {
        let at = |key: &str| format!("{path}.{key}");
        let name = &group.name;
        if !matches!(windows.order, PoolOrder::Priority(_)) {
            let text = format!("the budget of group `{name}` serves it by priority, but its windows do not");
            self.add(at("windows.order"), &[&at("windows")], text).hint =
                Some("set `order: priority` for the windows".into());
        }
        if windows.slack {
            let text = format!("outside its windows the budget serves group `{name}`, so it cannot have slack");
            self.add(at("windows.slack"), &[], text).hint = Some("leave out `slack`".into());
        }
        if group.cpus.len() != 1 {
            let text = format!("group `{name}` has windows on one CPU, but a budget on {} CPUs", group.cpus.len());
            self.add(at("cpus"), &[super::CPUS], text).hint = Some("list exactly one CPU in `cpus`".into());
        }
        if !group.kernel_threads.is_empty() {
            let text = format!("the budget of group `{name}` can serve kernel threads, but its windows cannot");
            self.add(at("kernel-threads"), &[], text).hint = Some("move them to a group without `windows`".into());
        }
        let most = MAX_NAME - Pool::BESIDE_A_BUDGET.len();
        if name.len() > most {
            let text = format!(
                "the name of a group with windows and a budget has at most {most} bytes, this one has {}",
                name.len()
            );
            self.add(at("name"), &[], text);
        }
    }

    /// Reports keys that apply only to budgets.
    fn windows_alone(&mut self, path: &str, group: &Group) {
        let at = |key: &str| format!("{path}.{key}");
        let name = &group.name;
        if group.cpus.len() > 1 {
            let text = format!("the windows of group `{name}` are on one CPU, but `cpus` lists {}", group.cpus.len());
            self.add(at("cpus"), &[], text).hint = Some("list exactly one CPU in `cpus`, or leave out `cpus`".into());
        }
        let given = [
            ("may-grow", group.may_grow),
            ("serve-fifo", group.serve_fifo),
            ("lead", group.lead.is_some()),
            ("tasks", !group.tasks.is_empty()),
        ];
        for (key, _) in given.into_iter().filter(|(_, given)| *given) {
            let text = format!("group `{name}` has windows only, but `{key}` applies to a budget");
            self.add(at(key), &[&at("budget"), &at("priority"), &at("criticality")], text).hint =
                Some(format!("set `budget`, or leave out `{key}`"));
        }
        for (index, thread) in group.kernel_threads.iter().enumerate() {
            if matches!(thread, GroupThread::Interrupt(_)) {
                let text = format!("`{}` is not a thread of a CPU: windows alone cannot serve it", thread.name());
                self.add(format!("{path}.kernel-threads[{index}]"), &[], text).hint =
                    Some("move it to a group with a `budget`".into());
            }
        }
    }

    /// Checks that the window of a table by hand serves an existing task or group.
    pub(super) fn known_entity(&mut self, path: &str, name: &str) {
        let system = self.system;
        self.windowed_task(path, name);
        if system.task(name).is_some() || system.pool(name).is_some() {
            return;
        }
        let pools: Vec<String> = system.pools().map(|pool| pool.name).collect();
        let names = system.tasks.iter().map(|task| &task.name).chain(&pools);
        let hint = nearest_name(name, names.map(String::as_str)).map(|near| format!("did you mean `{near}`?"));
        let what = if pools.is_empty() { "task" } else { "task and no group with windows" };
        self.add(path, &[TASK_NAMES, GROUP_NAMES], format!("no {what} is named `{name}`")).hint = hint;
    }

    /// Reports flags in windows of a group, which has no jobs.
    pub(super) fn flags_of_pool(&mut self, path: &str, window: &GivenWindow) {
        if self.system.pool(&window.task).is_none() {
            return;
        }
        for (key, set) in [("activate", window.activate), ("deadline", window.deadline)] {
            if set {
                let text = format!("`{}` is a group without jobs: its windows cannot have `{key}`", window.task);
                self.add(format!("{path}.{key}"), &[&format!("{path}.task"), GROUP_NAMES], text);
            }
        }
    }
}
