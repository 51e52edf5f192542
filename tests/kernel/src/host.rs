//! The state of the host, as far as calls of the class can change it: files, the table, threads, and free capacity.

use std::fs;

use macrotick_uapi::{Device, Entity, Window};

use crate::check::{Check, Explain};
use crate::group::Group;
use crate::process::{self, Child};
use crate::sys::{self, SchedAttr};
use crate::{ensure, ensure_eq};

const SYSCTLS: [&str; 4] = ["sched_rt_runtime_us", "sched_rt_period_us", "sched_ds_period_us", "sched_ds_phase_ns"];
const GROUP_FILES: [&str; 11] = [
    "cpu.ds.budget",
    "cpu.ds.priority",
    "cpu.ds.fifo",
    "cpu.ds.lead",
    "cpu.ds.kthreads",
    "cpu.tt.entity",
    "cgroup.procs",
    "cgroup.subtree_control",
    "cpuset.cpus",
    "cpuset.cpus.effective",
    "cpuset.cpus.partition",
];

/// The time until a new process sleeps, and until the kernel has released the bandwidth of an ended deadline task.
const SETTLED_NS: u64 = 200_000_000;
/// The period of the deadline tasks that ask for runtime, in microseconds.
const ASKED_US: u64 = 10_000;
/// The runtime that such a task always has, in microseconds. The kernel's limit is only a little lower.
const LEAST_US: u64 = 10;
/// The smallest valid budget, in microseconds.
const LEAST_BUDGET_US: u64 = 10;

/// The groups and threads to observe, and the probes for free capacity.
pub struct Host {
    device: Device,
    groups: Vec<Group>,
    threads: Vec<i32>,
    /// Sleeping deadline tasks, one more than there are CPUs. Each has the runtime that the others leave, up to a full
    /// CPU.
    askers: Vec<Child>,
    /// A group without threads, for attempts to set a budget.
    probe: Group,
    cpus: u32,
}

/// The state that a scenario compares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    files: Vec<(String, String)>,
    table: String,
    threads: Vec<String>,
    admitted: Admitted,
}

/// The further runtimes and budgets that the kernel would admit, exact to a microsecond.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admitted {
    /// The greatest runtimes that SCHED_DEADLINE admits for one task after another, in a period of 10 ms.
    pub deadline_us: Vec<u64>,
    /// The greatest budget that the kernel admits for a further group, on each CPU alone.
    pub budget_us: Vec<u64>,
}

/// Sorts the lines: a refused move puts a process at the end of its group's list (cgroup_migrate_finish() in
/// kernel/cgroup/cgroup.c).
fn in_order(processes: &str) -> String {
    let mut lines: Vec<&str> = processes.lines().collect();
    lines.sort_unstable();
    lines.join("\n")
}

impl Host {
    /// Prepares to observe these groups and threads.
    pub fn new(groups: &[Group], threads: &[i32]) -> Check<Host> {
        let cpus = sys::nr_cpus();
        let askers: Vec<Child> = (0..=cpus).map(|_| process::sleeper()).collect();
        // With this small runtime a task does not get far: the tasks must sleep before.
        sys::sleep(SETTLED_NS);
        for asker in &askers {
            sys::set_sched(asker.pid, asked(LEAST_US)).explain("a deadline task that asks")?;
        }
        let (groups, threads) = (groups.to_vec(), threads.to_vec());
        Ok(Host { device: Device::open()?, groups, threads, askers, probe: Group::new("probe")?, cpus })
    }

    /// Reads the whole state.
    pub fn state(&self) -> Check<State> {
        let admitted =
            Admitted { deadline_us: self.deadline(), budget_us: (0..self.cpus).map(|cpu| self.budget(cpu)).collect() };
        self.with(admitted)
    }

    /// Reads the same state after an operation. To check that the former limits still apply takes much less time than a
    /// search.
    pub fn state_after(&self, before: &State) -> Check<State> {
        if self.admits(&before.admitted) {
            return self.with(before.admitted.clone());
        }
        self.state()
    }

    fn with(&self, admitted: Admitted) -> Check<State> {
        Ok(State { files: self.files(), table: self.table()?, threads: self.described(), admitted })
    }

    fn admits(&self, most: &Admitted) -> bool {
        self.has_deadline(&most.deadline_us)
            && (0..self.cpus).zip(&most.budget_us).all(|(cpu, us)| self.has_budget(cpu, *us))
    }

    /// Compares the state with `before`. It tests the admission only at its limits.
    pub fn ensure(&self, before: &State, after_what: &str) -> Check {
        for (is, was) in self.files().iter().zip(&before.files) {
            ensure_eq!(is, was, "after {after_what}");
        }
        ensure_eq!(self.table()?, before.table, "the table after {after_what}");
        ensure_eq!(self.described(), before.threads, "threads after {after_what}");
        let now = || self.state().map(|state| state.admitted);
        ensure!(
            self.admits(&before.admitted),
            "after {after_what} {:?} are admitted instead of {:?}",
            now()?,
            before.admitted
        );
        Ok(())
    }

    fn files(&self) -> Vec<(String, String)> {
        let sysctls = SYSCTLS.iter().map(|name| format!("/proc/sys/kernel/{name}"));
        let groups =
            self.groups.iter().flat_map(|group| GROUP_FILES.iter().map(move |name| format!("{}/{name}", group.path())));
        let online = "/sys/devices/system/cpu/online".to_owned();
        let read = |path: String| {
            let text = fs::read_to_string(&path).unwrap_or_else(|_| "cannot be read".into());
            let text = if path.ends_with("cgroup.procs") { in_order(&text) } else { text };
            (path, text)
        };
        sysctls.chain(groups).chain([online]).map(read).collect()
    }

    fn table(&self) -> Check<String> {
        let counts = self.device.get().explain("get")?;
        let mut entities = vec![Entity::default(); counts.nr_entities as usize];
        let mut windows = vec![Window::default(); counts.nr_windows as usize];
        let get = self.device.read(&mut entities, &mut windows).explain("get")?;
        let bound = |entity: usize| self.device.stats(entity as u32).map(|stats| (stats.nr_threads, stats.stopped));
        let bound: Vec<_> = (0..entities.len()).map(bound).collect();
        let head = (get.state, get.clockid, get.cycle_ns, get.epoch_ns, get.lead_ns);
        Ok(format!("{head:?} {entities:?} {windows:?} {bound:?}"))
    }

    fn described(&self) -> Vec<String> {
        let one = |tid: &i32| format!("{:?} {:?}", sys::sched(*tid), sys::affinity(*tid));
        self.threads.iter().map(one).collect()
    }

    fn asks(&self, asker: usize, us: u64) -> bool {
        sys::set_sched(self.askers[asker].pid, asked(us)).is_ok()
    }

    fn settle(&self) {
        (0..self.askers.len()).for_each(|asker| _ = self.asks(asker, LEAST_US));
    }

    fn deadline(&self) -> Vec<u64> {
        let most =
            (0..self.askers.len()).map(|asker| greatest(LEAST_US, ASKED_US, |us| self.asks(asker, us))).collect();
        self.settle();
        most
    }

    fn has_deadline(&self, most: &[u64]) -> bool {
        let all = most.iter().enumerate().all(|(asker, us)| self.asks(asker, (*us).max(LEAST_US)) == (*us > 0));
        let beyond = || most.iter().enumerate().any(|(asker, us)| *us < ASKED_US && self.asks(asker, us + 1));
        let same = all && !beyond();
        self.settle();
        same
    }

    fn takes(&self, cpu: u32, us: u64) -> bool {
        self.probe.set("cpu.ds.budget", &format!("{cpu}={us}")).is_ok()
    }

    fn budget(&self, cpu: u32) -> u64 {
        let most = greatest(LEAST_BUDGET_US, 1_000_000, |us| self.takes(cpu, us));
        let _ = self.probe.set("cpu.ds.budget", "0");
        most
    }

    fn has_budget(&self, cpu: u32, us: u64) -> bool {
        let all = us == 0 || self.takes(cpu, us);
        let same = all && !self.takes(cpu, (us + 1).max(LEAST_BUDGET_US));
        let _ = self.probe.set("cpu.ds.budget", "0");
        same
    }
}

impl Drop for Host {
    /// With the least runtime the tasks would need many periods to end. If domains were rebuilt meanwhile, the kernel
    /// would forget the tasks' bandwidth.
    fn drop(&mut self) {
        for (index, asker) in self.askers.iter().enumerate() {
            let _ = [1000, 300, 100, 30].into_iter().find(|us| self.asks(index, *us));
            let _ = asker.kill(SETTLED_NS);
            sys::sleep(2 * ASKED_US * 1000);
        }
    }
}

impl State {
    /// Returns what the kernel would admit.
    pub fn admitted(&self) -> &Admitted {
        &self.admitted
    }
}

fn asked(us: u64) -> SchedAttr {
    SchedAttr::deadline(us * 1000, ASKED_US * 1000)
}

/// Returns the greatest accepted number from `least` to `most`, or 0. The last accepted number is the result.
fn greatest(least: u64, most: u64, mut is_taken: impl FnMut(u64) -> bool) -> u64 {
    if !is_taken(least) {
        return 0;
    }
    let (mut taken, mut refused) = (least, most + 1);
    while refused - taken > 1 {
        let middle = taken + (refused - taken) / 2;
        if is_taken(middle) {
            taken = middle;
        } else {
            refused = middle;
        }
    }
    is_taken(taken);
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greatest_is_found() {
        for limit in [0, 9, 10, 11, 500, 999, 1000, 2000] {
            let mut last = 0;
            let found = greatest(10, 1000, |number| {
                last = number;
                number <= limit
            });
            assert_eq!(found, if limit < 10 { 0 } else { limit.min(1000) });
            assert!(found == 0 || last == found);
        }
    }
}
