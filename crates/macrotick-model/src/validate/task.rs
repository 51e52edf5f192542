//! Rules of tasks and their jobs.

use std::net::SocketAddr;

use super::Rules;
use crate::system::{ExecutionTime, Gumbel, Task, UdpReceive, UdpSend, Uniform, Workload};
use crate::time::Duration;

impl Rules<'_> {
    pub(super) fn task(&mut self, path: &str, task: &Task) {
        let dot = format!("{path}.");
        let at = |key: &str| format!("{path}.{key}");
        if task.supply.is_windows() {
            self.on_grid(&dot, "period", task.period);
        }
        let none = Duration::ZERO;
        if task.deadline > task.period && task.period > none {
            let text = format!("deadline {} is longer than the period {}", task.deadline, task.period);
            self.add(at("deadline"), &[&at("period")], text);
        }
        if task.wcet > task.deadline && task.deadline > none {
            let bound = match task.deadline == task.period {
                true => format!("period {}", task.period),
                false => format!("deadline {}", task.deadline),
            };
            let text = format!("wcet {} is longer than the {bound}", task.wcet);
            self.add(at("wcet"), &[&at("deadline"), &at("period")], text);
        }
        if let Some(offset) = task.offset {
            if task.supply.is_windows() {
                self.on_grid(&dot, "offset", offset);
            }
            if offset < none || (offset >= task.period && task.period > none) {
                let text = format!("offset {offset} is not within [0, period {})", task.period);
                self.add(at("offset"), &[&at("period")], text);
            }
        }
        if let Some(jitter) = task.jitter {
            if jitter < none || (jitter > task.deadline && task.deadline > none) {
                let text = format!("jitter {jitter} is not within [0, deadline {}]", task.deadline);
                self.add(at("jitter"), &[&at("deadline"), &at("period")], text);
            }
        }
        if let Some(cpu) = task.cpu {
            self.cpu(&at("cpu"), cpu);
            if task.migrate {
                let text = format!("task `{}` may migrate, but is pinned to CPU {cpu}", task.name);
                self.add(at("migrate"), &[&at("cpu")], text).hint = Some("leave out `cpu` or `migrate`".into());
            }
        }
        for &cpu in task.cpus.as_slice() {
            self.cpu(&at("cpus"), cpu);
        }
        if !task.cpus.is_empty() && task.cpu.is_some() {
            let text = format!("task `{}` has both `cpu` and `cpus`", task.name);
            self.add(at("cpus"), &[&at("cpu")], text).hint = Some("leave one of them out".into());
        }
        if task.migrate && !self.system.is_preemptible(task) {
            let text = format!("task `{}` may migrate, but is not preemptible: its jobs stay on one CPU", task.name);
            let key = if task.preemptible.is_some() { at("preemptible") } else { "preemptible".into() };
            self.add(at("migrate"), &[&key], text).hint =
                Some("leave out `migrate`, or set `preemptible: true` for the task".into());
        }
        self.after(path, task);
        self.apart(path, task);
        self.exclusive(path, task);
        self.known_namespace(path, task.namespace.as_deref());
        if let Some(reservation) = task.reservation() {
            self.reservation(path, task, reservation);
        }
        self.run(&at("run"), &task.run);
    }

    fn run(&mut self, path: &str, run: &Workload) {
        match run {
            Workload::Spin(spin) => self.execution_time(&format!("{path}.spin"), spin),
            Workload::UdpSend(UdpSend { spin, to }) => {
                self.execution_time(&format!("{path}.udp-send.spin"), spin);
                self.address(&format!("{path}.udp-send.to"), to);
            }
            Workload::UdpReceive(UdpReceive { spin, at }) => {
                self.execution_time(&format!("{path}.udp-receive.spin"), spin);
                self.address(&format!("{path}.udp-receive.at"), at);
            }
            Workload::Program(program) => self.program(&format!("{path}.program"), program),
        }
    }

    fn execution_time(&mut self, path: &str, time: &ExecutionTime) {
        match *time {
            ExecutionTime::Uniform(Uniform { min, max }) if min > max => {
                let text = format!("max {max} is shorter than min {min}");
                self.add(format!("{path}.uniform.max"), &[&format!("{path}.uniform.min")], text);
            }
            ExecutionTime::Gumbel(Gumbel { mode, max, .. }) if mode > max => {
                let text = format!("max {max} is shorter than the mode {mode}");
                self.add(format!("{path}.gumbel.max"), &[&format!("{path}.gumbel.mode")], text);
            }
            _ => {}
        }
    }

    fn address(&mut self, path: &str, address: &str) {
        if address.parse::<SocketAddr>().is_err() {
            self.add(path, &[], format!("`{address}` is not an address and a port")).hint =
                Some("write \"127.0.0.1:5000\" or \"[::1]:5000\"".into());
        }
    }
}
