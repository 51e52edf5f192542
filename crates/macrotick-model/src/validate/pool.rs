//! Rules of pools, and of what runs or is served in them.

use super::{Rules, CPUS, POOL_NAMES, TASK_NAMES};
use crate::parse::nearest_name;
use crate::system::{Background, GivenWindow, KernelThread, Policy, Pool};
use crate::time::Duration;

impl Rules<'_> {
    pub(super) fn pool(&mut self, path: &str, pool: &Pool) {
        let dot = format!("{path}.");
        let at = |key: &str| format!("{path}.{key}");
        self.on_grid(&dot, "period", pool.period);
        if pool.budget > pool.period && pool.period > Duration::ZERO {
            let text = format!("budget {} is longer than the period {}", pool.budget, pool.period);
            self.add(at("budget"), &[&at("period")], text);
        }
        if let Some(cpu) = pool.cpu {
            self.cpu(&at("cpu"), cpu);
        }
        for (index, thread) in pool.kernel_threads.iter().enumerate() {
            self.kernel_thread(&format!("{path}.kernel-threads[{index}]"), pool, index, *thread);
        }
        if let Some(cgroup) = &pool.cgroup {
            self.cgroup(&at("cgroup"), cgroup);
        }
    }

    /// One that two pools want on different CPUs is two threads.
    fn kernel_thread(&mut self, path: &str, pool: &Pool, index: usize, thread: KernelThread) {
        let pools = &self.system.pools;
        let before = pools.iter().take_while(|other| !std::ptr::eq(*other, pool));
        let same_cpu = |other: &&Pool| other.cpu.is_none() || pool.cpu.is_none() || other.cpu == pool.cpu;
        let other = before.filter(same_cpu).find(|other| other.kernel_threads.contains(&thread));
        if pool.kernel_threads[..index].contains(&thread) {
            self.add(path, &[], format!("kernel thread `{}` stands twice in pool `{}`", thread.name(), pool.name));
        } else if let Some(other) = other {
            let text = format!("kernel thread `{}` is in pool `{}` already", thread.name(), other.name);
            self.add(path, &[CPUS], text).hint = Some("every CPU has one of its own: pin the pools with `cpu`".into());
        }
    }

    /// Whether there is such a group is the host's business.
    pub(super) fn cgroup(&mut self, path: &str, cgroup: &str) {
        let well_formed = cgroup.starts_with('/') && !cgroup.contains('\0');
        if !well_formed || cgroup.split('/').any(|part| part == "..") {
            self.add(path, &[], format!("`{cgroup}` is not the absolute path of a directory")).hint =
                Some("write \"/sys/fs/cgroup/NAME\"".into());
        }
        let pools = self.system.pools.iter().map(|pool| &pool.cgroup);
        let all = pools.chain(self.system.groups.iter().map(|group| &group.cgroup));
        if all.filter(|one| one.as_deref() == Some(cgroup)).count() > 1 {
            self.add(path, &[], format!("two pools or groups are to be the control group `{cgroup}`"));
        }
    }

    pub(super) fn in_pool(&mut self, path: &str, background: &Background) {
        let Some(name) = &background.pool else { return };
        if self.system.pool(name).is_none() {
            let near = nearest_name(name, self.system.pools.iter().map(|pool| pool.name.as_str()));
            let hint = near.map(|near| format!("did you mean `{near}`?"));
            self.add(format!("{path}.pool"), &[POOL_NAMES], format!("no pool is named `{name}`")).hint = hint;
        }
        if background.cpu.is_some() || background.policy != Policy::Other(0) {
            let text = format!("background load `{}` in a pool has a CPU or a policy of its own", background.name);
            self.add(path, &[CPUS], text);
        }
    }

    /// What a window serves.
    pub(super) fn known_entity(&mut self, path: &str, name: &str) {
        let system = self.system;
        self.windowed_task(path, name);
        if system.task(name).is_some() || system.pool(name).is_some() {
            return;
        }
        let names = system.tasks.iter().map(|task| &task.name).chain(system.pools.iter().map(|pool| &pool.name));
        let hint = nearest_name(name, names.map(String::as_str)).map(|near| format!("did you mean `{near}`?"));
        let what = if system.pools.is_empty() { "task" } else { "task or pool" };
        self.add(path, &[TASK_NAMES, POOL_NAMES], format!("no {what} is named `{name}`")).hint = hint;
    }

    /// A pool has no jobs.
    pub(super) fn flags_of_pool(&mut self, path: &str, window: &GivenWindow) {
        if self.system.pool(&window.task).is_none() {
            return;
        }
        for (key, set) in [("activate", window.activate), ("deadline", window.deadline)] {
            if set {
                let text = format!("`{}` is a pool, which has no jobs: its windows have no `{key}`", window.task);
                self.add(format!("{path}.{key}"), &[&format!("{path}.task"), POOL_NAMES], text);
            }
        }
    }
}
