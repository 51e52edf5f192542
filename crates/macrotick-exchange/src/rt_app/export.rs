//! Writes a file of rt-app.

use macrotick_model::{Duration, ExecutionTime, Load, Policy as Stock, Process, System, Task, Workload};

use super::written::{Global, OfThread, Own, Thread, Timer, Written};
use super::MOST_MICROS;
use crate::findings::Findings;
use crate::ExportError;

/// The computing time of a round of a thread without pauses, in microseconds.
const ROUND: i64 = 10_000;
/// The highest priority of a task without one. The others follow below, as under the backend `fifo`.
const FIRST_PRIORITY: u8 = 90;

/// Writes the tasks and the load of a system as a file of rt-app, and returns it with remarks.
///
/// A task with windows becomes a thread of SCHED_FIFO, and a task with a reservation one of SCHED_DEADLINE. Each
/// computes once in a period, with an absolute timer.
///
/// # Errors
///
/// If a period, a deadline or an offset is no whole number of microseconds, or longer than rt-app can count. Also if
/// the system has several hosts, or neither a task nor a load that rt-app can run.
pub fn export(system: &System) -> Result<(String, Vec<String>), ExportError> {
    let mut findings = Findings::default();
    if system.hosts.len() > 1 {
        findings.refuse("hosts", "rt-app runs on one host: export the part of one");
    }
    let mut threads: Vec<(String, Thread)> = Vec::new();
    let priorities = priorities(&system.tasks);
    for (index, (task, priority)) in system.tasks.iter().zip(priorities).enumerate() {
        let thread = Writer { path: format!("tasks[{index}]"), findings: &mut findings }.task(system, task, priority);
        threads.push((task.name.clone(), thread));
    }
    for (index, process) in system.load.iter().enumerate() {
        let thread = Writer { path: format!("load[{index}]"), findings: &mut findings }.process(system, process);
        threads.extend(thread.map(|thread| (process.name.clone(), thread)));
    }
    if threads.is_empty() {
        findings.refuse("tasks", "there is neither a task nor a load that rt-app can run");
    }
    left_out(system, &mut findings);
    let seconds = system.experiment.duration.as_nanos().div_euclid(1_000_000_000);
    if Duration::from_secs(seconds) != system.experiment.duration {
        findings.remark("experiment.duration", "rt-app counts seconds: the run becomes longer");
    }
    let duration = seconds + i64::from(Duration::from_secs(seconds) != system.experiment.duration);
    let cpus = system.cpus.iter().map(|cpu| own_number(system, *cpu)).collect();
    let global = Global { duration, default_policy: "SCHED_OTHER" };
    let remarks = findings.finish().map_err(|refusals| ExportError::Refused { refusals })?;
    Ok((Written { threads, global, own: Own { cpus } }.text(), remarks))
}

/// Notes the parts of a system that rt-app lacks.
fn left_out(system: &System, findings: &mut Findings) {
    let parts = [
        ("groups", !system.groups.is_empty()),
        ("namespaces", !system.namespaces.is_empty()),
        ("network", system.network.is_some()),
        ("chains", !system.chains.is_empty()),
        ("reserve", system.reserve.is_some()),
        ("table", system.table.is_some()),
        ("profile", system.profile.is_some()),
        ("cycle", system.cycle.is_some()),
        ("lead", system.lead.is_some()),
        ("clock", system.sync().is_some()),
        ("preemptible", system.preemptible.is_some()),
        ("lab.files", !system.lab.files.is_empty()),
    ];
    for (part, _) in parts.into_iter().filter(|(_, is_there)| *is_there) {
        findings.remark(part, NO_COUNTERPART);
    }
}

const NO_COUNTERPART: &str = "rt-app has no counterpart, and it is left out";

/// Returns the number that the host gives to a CPU.
fn own_number(system: &System, cpu: u32) -> u32 {
    system.hosts.iter().find_map(|host| host.own_number(cpu)).unwrap_or(cpu)
}

/// Returns one priority for each task: its own, else a rate-monotonic one.
fn priorities(tasks: &[Task]) -> Vec<u8> {
    let is_taken = |priority: &u8| tasks.iter().any(|task| task.priority == Some(*priority));
    let mut free = (1..=FIRST_PRIORITY).rev().filter(|priority| !is_taken(priority));
    let mut open: Vec<usize> =
        (0..tasks.len()).filter(|&index| tasks[index].priority.is_none() && tasks[index].supply.is_windows()).collect();
    open.sort_by_key(|&index| tasks[index].period);
    let mut priorities: Vec<u8> = tasks.iter().map(|task| task.priority.unwrap_or(1)).collect();
    open.into_iter().for_each(|index| priorities[index] = free.next().unwrap_or(1));
    priorities
}

/// Writes one task or process.
struct Writer<'a> {
    path: String,
    findings: &'a mut Findings,
}

impl Writer<'_> {
    fn task(&mut self, system: &System, task: &Task, priority: u8) -> Thread {
        let period = self.exact("period", task.period);
        let deadline = self.exact("deadline", task.deadline);
        let run = self.computing(task);
        let run = self.shortened("run", run).max(1);
        let wcet = self.lengthened("wcet", task.wcet);
        let timer = Some(Timer { name: "unique", period, mode: Some("absolute") });
        let own = OfThread { wcet: Some(wcet), ..OfThread::default() };
        let delay = task.offset.filter(|offset| *offset > Duration::ZERO);
        let delay = delay.map(|offset| self.exact("offset", offset));
        self.keys_left_out(task);
        let numbers = |cpus: &[u32]| cpus.iter().map(|cpu| own_number(system, *cpu)).collect::<Vec<u32>>();
        let thread = Thread { delay, rounds: -1, run, timer, own, ..Thread::default() };
        if let Some(reservation) = task.reservation() {
            let cpus = reservation.cpus.as_slice();
            return Thread {
                policy: "SCHED_DEADLINE",
                dl_runtime: Some(self.lengthened("supply.deadline.runtime", reservation.runtime)),
                dl_deadline: Some(deadline),
                dl_period: Some(period),
                cpus: (!cpus.is_empty()).then(|| numbers(cpus)),
                ..thread
            };
        }
        let own = OfThread {
            deadline: (deadline != period).then_some(deadline),
            jitter: task.jitter.map(|jitter| self.shortened("jitter", jitter)),
            // Threads of rt-app with several CPUs, or with all of them, migrate.
            migrate: (task.cpu.is_none() && task.migrate == task.cpus.is_empty()).then_some(task.migrate),
            ..thread.own
        };
        let cpus = task.cpu.map(|cpu| vec![cpu]).unwrap_or_else(|| task.cpus.as_slice().to_vec());
        let cpus = (!cpus.is_empty()).then(|| numbers(&cpus));
        Thread { policy: "SCHED_FIFO", priority: Some(priority as i8), cpus, own, ..thread }
    }

    fn keys_left_out(&mut self, task: &Task) {
        let keys = [
            ("after", !task.after.is_empty()),
            ("apart", !task.apart.is_empty()),
            ("exclusive", !task.exclusive.is_empty()),
            ("preemptible", task.preemptible.is_some()),
            ("on-miss", !task.on_miss.is_default()),
            ("max-misses", task.max_misses.is_some()),
            ("namespace", task.namespace.is_some()),
        ];
        for (key, _) in keys.into_iter().filter(|(_, is_there)| *is_there) {
            self.remark(key, NO_COUNTERPART);
        }
    }

    /// Returns the computing time of a job that a thread of rt-app has in its place.
    fn computing(&mut self, task: &Task) -> Duration {
        let time = match &task.run {
            Workload::Spin(time) => time.clone(),
            Workload::UdpSend(job) => {
                self.remark("run", "rt-app sends no datagrams: the thread only computes");
                job.spin.clone()
            }
            Workload::UdpReceive(job) => {
                self.remark("run", "rt-app receives no datagrams: the thread only computes");
                job.spin.clone()
            }
            Workload::Program(_) => {
                self.remark("run", "rt-app runs no programs: the thread computes for a little less than the WCET");
                ExecutionTime::within(task.wcet)
            }
        };
        if !matches!(time, ExecutionTime::Fixed(_)) {
            self.remark("run", "rt-app draws no times: the thread computes for the longest one");
        }
        time.max()
    }

    /// Returns `None` for a load that rt-app cannot run.
    fn process(&mut self, system: &System, process: &Process) -> Option<Thread> {
        let (run, timer) = match &process.run {
            Load::Hog => (ROUND, None),
            Load::Periodic(periodic) => {
                let period = self.exact("periodic.period", periodic.period);
                self.remark("periodic", "an import needs `--as-load NAME` to make this thread load again");
                (
                    self.shortened("periodic.run", periodic.run).max(1),
                    Some(Timer { name: "unique", period, mode: None }),
                )
            }
            _ => {
                self.findings.remark(&self.path, "rt-app has no such load, and it is left out");
                return None;
            }
        };
        if process.namespace.is_some() {
            self.remark("namespace", NO_COUNTERPART);
        }
        let (policy, priority) = match process.policy {
            Stock::Other(nice) => ("SCHED_OTHER", nice),
            Stock::Fifo(priority) => ("SCHED_FIFO", priority as i8),
        };
        Some(Thread {
            instance: (process.count != 1).then_some(process.count),
            policy,
            priority: Some(priority),
            cpus: process.cpu.map(|cpu| vec![own_number(system, cpu)]),
            rounds: -1,
            run,
            timer,
            ..Thread::default()
        })
    }

    fn remark(&mut self, key: &str, text: &str) {
        self.findings.remark(format!("{}.{key}", self.path), text);
    }

    /// Returns a time in microseconds. One that would change is refused.
    fn exact(&mut self, key: &str, time: Duration) -> i64 {
        if !time.is_multiple_of(Duration::from_micros(1)) {
            let text = format!("{time} is no whole number of microseconds, the unit of rt-app");
            self.findings.refuse(&format!("{}.{key}", self.path), text);
        }
        self.within_range(key, time, time.as_nanos() / 1000)
    }

    /// Returns a time in microseconds, rounded down.
    fn shortened(&mut self, key: &str, time: Duration) -> i64 {
        let micros = time.as_nanos().div_euclid(1000);
        self.rounded(key, time, micros)
    }

    /// Returns a time in microseconds, rounded up.
    fn lengthened(&mut self, key: &str, time: Duration) -> i64 {
        let micros = time.as_nanos().div_euclid(1000);
        let micros = micros + i64::from(!time.is_multiple_of(Duration::from_micros(1)));
        self.rounded(key, time, micros)
    }

    fn rounded(&mut self, key: &str, time: Duration, micros: i64) -> i64 {
        if !time.is_multiple_of(Duration::from_micros(1)) {
            self.remark(key, "rt-app counts whole microseconds: the time is rounded");
        }
        self.within_range(key, time, micros)
    }

    fn within_range(&mut self, key: &str, time: Duration, micros: i64) -> i64 {
        if !(0..=MOST_MICROS).contains(&micros) {
            let text = format!("{time} is out of the range of rt-app: 0us to {MOST_MICROS}us");
            self.findings.refuse(&format!("{}.{key}", self.path), text);
        }
        micros
    }
}
