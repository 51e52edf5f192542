//! Rules of processes: in groups, and as test load.

use super::{Rules, CPUS};
use crate::system::{Group, Load, Periodic, PingFlood, Policy, Process};

impl Rules<'_> {
    pub(super) fn process(&mut self, path: &str, process: &Process) {
        self.known_namespace(path, process.namespace.as_deref());
        match &process.run {
            Load::Container(container) => self.container_load(&format!("{path}.container"), container),
            Load::Periodic(Periodic { period, run }) if run > period => {
                let text = format!("run {run} is longer than the period {period}");
                self.add(format!("{path}.periodic.run"), &[&format!("{path}.periodic.period")], text);
            }
            Load::PingFlood(PingFlood { to, .. }) => self.ping(&format!("{path}.ping-flood"), to),
            Load::Program(program) => self.program(&format!("{path}.program"), program),
            Load::Hog | Load::Syscalls | Load::Periodic(_) => {}
        }
    }

    /// Checks a process against its group.
    pub(super) fn process_in(&mut self, path: &str, group: &Group, process: &Process) {
        let (name, whose) = (&process.name, &group.name);
        if !group.has_budget() {
            let given = [("cpu", process.cpu.is_some()), ("policy", process.policy != Policy::Other(0))];
            for (key, _) in given.into_iter().filter(|(_, given)| *given) {
                let text = format!(
                    "the windows of group `{whose}` determine where and when `{name}` runs: it cannot have its own {key}"
                );
                let at = match (key, process.policy) {
                    ("cpu", _) => "cpu",
                    (_, Policy::Other(_)) => "nice",
                    (_, Policy::Fifo(_)) => "fifo",
                };
                self.add(format!("{path}.{at}"), &[CPUS], text);
            }
        } else if matches!(process.policy, Policy::Fifo(_)) && !group.serve_fifo {
            let text = format!("`{name}` has SCHED_FIFO, which group `{whose}` does not serve");
            self.add(format!("{path}.fifo"), &[], text).hint = Some("give the group `serve-fifo: true`".into());
        }
    }

    /// Checks the kernel's rule of control groups: a group has either processes or children with controllers
    /// (cgroup-v2.rst, "No Internal Process Constraint").
    pub(super) fn containers_or_processes(&mut self, path: &str, group: &Group) {
        let is_container = |process: &&Process| matches!(process.run, Load::Container(_));
        let (container, process) =
            (group.run.iter().find(is_container), group.run.iter().find(|one| !is_container(one)));
        if let (Some(container), Some(process)) = (container, process) {
            let (container, process) = (&container.name, &process.name);
            let text = format!("`{container}` is a container and `{process}` is not: a control group cannot have both");
            self.add(format!("{path}.run"), &[], text).hint = Some("move one of them to another group".into());
        }
    }
}
