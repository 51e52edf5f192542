//! What gives a task's jobs the processor.

use super::context::{similar, Context, Fields};
use crate::cpus::CpuSet;
use crate::system::{Reservation, Supply};
use crate::time::Duration;

/// What of a task its reservation rests on.
pub(super) struct Reserved<'a> {
    /// The task, in words.
    pub what: &'a str,
    pub wcet: Duration,
    pub deadline: Duration,
    /// The one CPU, if that is said.
    pub cpu: Option<u32>,
}

impl Context {
    pub(super) fn supply(&mut self, fields: &Fields, task: Reserved) -> Supply {
        let path = fields.path_of("supply");
        let word = fields.get("supply").and_then(|node| Some((self.text(node, &path)?, node)));
        match word {
            None | Some(("windows", _)) => {
                self.only_reserved(fields, task.what);
                Supply::Windows
            }
            Some(("deadline", _)) => Supply::Deadline(self.reservation(fields, task)),
            Some((other, node)) => {
                let hint = similar(other, &Supply::NAMES);
                self.refuse(&path, node.at, format!("unknown supply `{other}`"), Some(hint));
                Supply::Windows
            }
        }
    }

    /// Keys that mean something for reservations only.
    fn only_reserved(&mut self, fields: &Fields, what: &str) {
        for key in ["runtime", "cpus"] {
            if let Some(node) = fields.get(key) {
                let text = format!("{what} has `{key}`, which is only for tasks with `supply: deadline`");
                self.report(node.at, text, None);
            }
        }
    }

    fn reservation(&mut self, fields: &Fields, task: Reserved) -> Reservation {
        let runtime = self.optional_duration(fields, "runtime");
        let cpus = match (fields.get("cpus"), fields.get("cpu")) {
            (Some(cpus), None) => self.cpu_list(cpus, &fields.path_of("cpus")),
            (Some(cpus), Some(_)) => {
                let hint = Some("leave out `cpu` or `cpus`".into());
                self.report(cpus.at, format!("{} has both `cpu` and `cpus`", task.what), hint);
                Vec::new()
            }
            (None, Some(cpu)) => {
                // Rules about its CPUs point at what was written.
                self.place(&fields.path_of("cpus"), cpu.at);
                task.cpu.into_iter().collect()
            }
            (None, None) => Vec::new(),
        };
        self.unlike_each_other(fields, &cpus);
        Reservation {
            runtime: runtime.unwrap_or_else(|| Reservation::default_runtime(task.wcet, task.deadline)),
            cpus: CpuSet::from_iter(cpus),
        }
    }

    /// An empty list means nothing, and a set does not show that one was there twice.
    fn unlike_each_other(&mut self, fields: &Fields, cpus: &[u32]) {
        let Some(node) = fields.get("cpus") else { return };
        if cpus.is_empty() && !self.is_broken(&fields.path_of("cpus")) && fields.get("cpu").is_none() {
            let hint = Some("leave `cpus` out to let the solver choose one".into());
            self.report(node.at, "no CPU to run on", hint);
        }
        if let Some(pair) = cpus.windows(2).find(|pair| pair[0] == pair[1]) {
            self.report(node.at, format!("CPU {} is listed twice", pair[0]), None);
        }
    }
}
