//! Rules of what runs: tasks, their workloads, and background load.

use std::net::SocketAddr;

use super::{Rules, COUNT_RANGE, CPU_RANGE, FIFO_RANGE, MISSES_RANGE, NICE_RANGE, PING_RANGE, PRIORITY_RANGE};
use crate::system::{Background, ExecutionTime, Load, Policy, Task, Workload};
use crate::time::Duration;

impl Rules<'_> {
    pub(super) fn task(&mut self, path: &str, task: &Task) {
        let dot = format!("{path}.");
        let at = |key: &str| format!("{path}.{key}");
        self.name(&at("name"), &task.name);
        self.positive(&dot, "period", task.period);
        self.positive(&dot, "wcet", task.wcet);
        if task.deadline != task.period {
            self.positive(&dot, "deadline", task.deadline);
        }
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
        if let Some(priority) = task.priority {
            self.range(path, "priority", i64::from(priority), &PRIORITY_RANGE);
        }
        if let Some(misses) = task.max_misses {
            self.range(path, "max-misses", i64::from(misses), &MISSES_RANGE);
        }
        self.known_namespace(path, task.namespace.as_deref());
        if let Some(reservation) = task.reservation() {
            self.reservation(path, task, reservation);
        }
        // A workload that was left out computes within the wcet, which has been checked.
        if task.workload != Workload::Spin(ExecutionTime::within(task.wcet)) {
            self.workload(&at("workload"), &task.workload);
        }
    }

    fn workload(&mut self, path: &str, workload: &Workload) {
        match workload {
            Workload::Spin(spin) => self.execution_time(&format!("{path}.spin"), spin),
            Workload::UdpSend { spin, to } => {
                self.execution_time(&format!("{path}.udp-send.spin"), spin);
                self.address(&format!("{path}.udp-send.to"), to);
            }
            Workload::UdpReceive { spin, at } => {
                self.execution_time(&format!("{path}.udp-receive.spin"), spin);
                self.address(&format!("{path}.udp-receive.at"), at);
            }
            Workload::Program(command) => self.command(&format!("{path}.program"), command),
        }
    }

    fn execution_time(&mut self, path: &str, time: &ExecutionTime) {
        match *time {
            ExecutionTime::Fixed(length) => {
                if length <= Duration::ZERO {
                    self.add(path, &[], format!("spin must be longer than zero, this is {length}"));
                }
            }
            ExecutionTime::Uniform { min, max } => {
                let path = format!("{path}.uniform.");
                self.positive(&path, "min", min);
                if min > max {
                    let text = format!("max {max} is shorter than min {min}");
                    self.add(format!("{path}max"), &[&format!("{path}min")], text);
                }
            }
            ExecutionTime::Gumbel { mode, scale, max } => {
                let path = format!("{path}.gumbel.");
                self.positive(&path, "mode", mode);
                self.positive(&path, "scale", scale);
                if mode > max {
                    let text = format!("max {max} is shorter than the mode {mode}");
                    self.add(format!("{path}max"), &[&format!("{path}mode")], text);
                }
            }
        }
    }

    fn address(&mut self, path: &str, address: &str) {
        if address.parse::<SocketAddr>().is_err() {
            self.add(path, &[], format!("`{address}` is not an address and a port")).hint =
                Some("write \"127.0.0.1:5000\" or \"[::1]:5000\"".into());
        }
    }

    fn command(&mut self, path: &str, command: &[String]) {
        if command.first().is_none_or(String::is_empty) {
            self.add(path, &[], "a program needs a command");
        }
        if command.iter().any(|word| word.contains('\0')) {
            self.add(path, &[], "a command cannot hold a NUL character");
        }
    }

    pub(super) fn background(&mut self, path: &str, background: &Background) {
        self.name(&format!("{path}.name"), &background.name);
        self.range(path, "count", i64::from(background.count), &COUNT_RANGE);
        if let Some(cpu) = background.cpu {
            self.range(path, "cpu", i64::from(cpu), &CPU_RANGE);
        }
        self.in_pool(path, background);
        self.in_group(path, background);
        self.shares_with_containers(path, background);
        self.known_namespace(path, background.namespace.as_deref());
        match background.policy {
            Policy::Other(nice) => self.range(path, "nice", i64::from(nice), &NICE_RANGE),
            Policy::Fifo(priority) => self.range(path, "fifo", i64::from(priority), &FIFO_RANGE),
        }
        match &background.load {
            Load::Container(container) => self.container_load(&format!("{path}.load.container"), container),
            Load::Periodic { period, run } => {
                let path = format!("{path}.load.periodic.");
                self.positive(&path, "period", *period);
                self.positive(&path, "run", *run);
                if run > period {
                    let text = format!("run {run} is longer than the period {period}");
                    self.add(format!("{path}run"), &[&format!("{path}period")], text);
                }
            }
            Load::PingFlood { to, bytes } => {
                let path = format!("{path}.load.ping-flood");
                self.ping(&path, to);
                self.range(&path, "bytes", i64::from(*bytes), &PING_RANGE);
            }
            Load::Program(command) => self.command(&format!("{path}.load.program"), command),
            Load::Hog | Load::Syscalls => {}
        }
    }
}
