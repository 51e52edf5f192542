//! Rules of reservations, and of the sets of CPUs into which they divide a system.

use super::{Rules, CPUS, GROUP_NAMES, RESERVATION_RANGE};
use crate::system::{OnMiss, Reservation, Task};

impl Rules<'_> {
    pub(super) fn reservation(&mut self, path: &str, task: &Task, reservation: &Reservation) {
        let at = |key: &str| format!("{path}.{key}");
        let (runtime, deadline, wcet) = (reservation.runtime, task.deadline, task.wcet);
        if !RESERVATION_RANGE.contains(&task.period) {
            let (least, most) = (RESERVATION_RANGE.start(), RESERVATION_RANGE.end());
            let text = format!("period {} is out of range for SCHED_DEADLINE: {least} to {most}", task.period);
            self.add(at("period"), &[], text);
        }
        if runtime < Reservation::MIN_RUNTIME {
            let text = format!(
                "runtime {runtime} is shorter than {}, the time of a switch to the task",
                Reservation::MIN_RUNTIME
            );
            self.add(at("supply.deadline.runtime"), &[&at("wcet"), &at("deadline")], text);
        } else if runtime > deadline {
            let text = format!("runtime {runtime} is longer than the deadline {deadline}");
            self.add(at("supply.deadline.runtime"), &[&at("deadline"), &at("period")], text);
        } else if runtime < wcet && wcet <= deadline {
            let text = format!("runtime {runtime} is shorter than the wcet {wcet}: its jobs would be throttled");
            self.add(at("supply.deadline.runtime"), &[&at("wcet"), &at("deadline"), &at("period")], text);
        }
        for &cpu in reservation.cpus.as_slice() {
            self.cpu(&at("supply.deadline.cpus"), cpu);
        }
        self.only_windows(path, task);
    }

    /// Reports keys that apply only to windows.
    fn only_windows(&mut self, path: &str, task: &Task) {
        let given = [
            ("offset", task.offset.is_some()),
            ("jitter", task.jitter.is_some()),
            ("cpu", task.cpu.is_some()),
            ("cpus", !task.cpus.is_empty()),
            ("migrate", task.migrate),
            ("preemptible", task.preemptible.is_some()),
            ("on-miss", task.on_miss != OnMiss::Resume),
            ("max-misses", task.max_misses.is_some()),
        ];
        for (key, _) in given.into_iter().filter(|(_, given)| *given) {
            let text = format!("task `{}` has a reservation, but `{key}` applies only to windows", task.name);
            self.add(format!("{path}.{key}"), &[&format!("{path}.supply")], text).hint = Some(match key {
                "cpu" | "cpus" | "migrate" => {
                    "list the CPUs of the task: `supply: {deadline: {cpus: [CPU, ...]}}`".into()
                }
                _ => format!("leave out `{key}`, or `supply`"),
            });
        }
    }

    /// Checks that sets of CPUs are equal or disjoint. Threads do not move from one root domain to another, and each
    /// domain has its own admission.
    pub(super) fn domains(&mut self) {
        let system = self.system;
        for (index, task) in system.tasks.iter().enumerate() {
            let Some(reservation) = task.reservation() else { continue };
            let earlier = system.tasks[..index].iter().enumerate();
            let mut earlier = earlier.filter_map(|(index, task)| Some((index, task, task.reservation()?)));
            let conflict = earlier.find(|(.., other)| {
                other.cpus != reservation.cpus
                    && other.cpus.as_slice().iter().any(|&cpu| reservation.cpus.contains(cpu))
            });
            if let Some((first, other, Reservation { cpus, .. })) = conflict {
                let text = format!(
                    "task `{}` is scheduled on CPU {}, and task `{}` on CPU {cpus}: two sets of CPUs must be equal or \
                     disjoint",
                    task.name, reservation.cpus, other.name
                );
                self.add(
                    format!("tasks[{index}].supply.deadline.cpus"),
                    &[&format!("tasks[{first}].supply.deadline.cpus"), CPUS],
                    text,
                );
            }
        }
        let domains = system.domains();
        for (index, group) in system.groups.iter().enumerate() {
            let cpus = group.cpus.iter().copied().collect::<crate::cpus::CpuSet>();
            if let Some(domain) = domains.iter().find(|domain| cpus.straddles(domain)) {
                let text = format!(
                    "group `{}` has {}, but tasks of SCHED_DEADLINE reserve {}: threads do not migrate between them",
                    group.name,
                    cpus.words(),
                    domain.words()
                );
                self.add(format!("groups[{index}].cpus"), &[GROUP_NAMES, "tasks", CPUS], text).hint =
                    Some("give the group CPUs of one set only".into());
            }
        }
    }
}
