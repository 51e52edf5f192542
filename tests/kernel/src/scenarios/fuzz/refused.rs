//! Random calls of one process. The kernel refuses many of them; a refused call must not change the host's state.

use macrotick_uapi::{Device, SCHED_DS, SCHED_TT};

use super::garbage::{self, Scratch};
use super::tables::{table, NAMES};
use super::with_pidfd;
use crate::board::Board;
use crate::check::{Check, Explain};
use crate::group::Group;
use crate::host::Host;
use crate::process::{self, Child};
use crate::random::Random;
use crate::sys::{self, SchedAttr};

/// The number of sleeping threads that are bound, moved, and given policies.
const THREADS: usize = 3;
/// A time that is long enough for a swap, and for the misses after which an entity is stopped.
const SETTLES_NS: u64 = 30_000_000;
const NOBODY: u32 = 65534;

/// A process that makes calls, and the objects of its calls.
pub struct Refused {
    random: Random,
    device: Device,
    scratch: Scratch,
    u: u64,
    cpus: u32,
    groups: Vec<Group>,
    threads: Vec<Child>,
    /// A thread under SCHED_DEADLINE. It stays there: Linux does not release the bandwidth of a thread that leaves
    /// while it sleeps.
    deadline: Child,
    /// Counts the begins and ends of calls that can bind this process. The count is odd during such a call.
    at_risk: Board,
    /// Unbinds this process if it is frozen in such a call: the bound entity may have no window that is long enough.
    _guard: Child,
}

/// Unbinds a process that does not return from a call at risk.
fn guard(whom: i32, at_risk: Board) -> i32 {
    let Ok(device) = Device::open() else { return 1 };
    let mut before = 0;
    loop {
        sys::sleep(2 * SETTLES_NS);
        let now = at_risk.get(0);
        if now == before && now % 2 == 1 {
            let _ = with_pidfd(whom, |pidfd| device.unbind(pidfd));
        }
        before = now;
    }
}

fn runtime_us(us: u64) -> SchedAttr {
    SchedAttr::deadline(us * 1000, 10_000_000)
}

/// Linux counts the bandwidth of a deadline thread twice if the thread moves to a group with other CPUs of the same root
/// domain (docs/contributing/kernel-tests.md). A group with all CPUs shares one with any other group.
fn has_all_cpus(group: &Group) -> bool {
    let online = std::fs::read_to_string("/sys/devices/system/cpu/online");
    online.is_ok_and(|online| group.get("cpuset.cpus.effective").is_ok_and(|cpus| cpus.trim() == online.trim()))
}

fn set(group: &Group, file: &str, value: &str) -> Check {
    group.set(file, value).map_err(|error| format!("{value:?} > {error}"))
}

impl Refused {
    /// Makes the groups and threads for a generator.
    pub fn new(seed: Random, u: u64, cpus: u32) -> Check<Refused> {
        Group::root().set("cgroup.subtree_control", "+cpu +cpuset")?;
        let outer = Group::new("outer")?;
        outer.set("cgroup.subtree_control", "+cpu +cpuset")?;
        let groups = vec![Group::new("other")?, outer.child("inner")?, outer];
        let threads = (0..THREADS).map(|_| process::sleeper()).collect();
        let deadline = process::sleeper();
        sys::sleep(SETTLES_NS);
        sys::set_sched(deadline.pid, runtime_us(500)).explain("SCHED_DEADLINE")?;
        let (device, scratch, at_risk) = (Device::open()?, Scratch::new(), Board::new(1));
        let whom = std::process::id() as i32;
        let _guard = process::fork(move || guard(whom, at_risk));
        Ok(Refused { random: seed, device, scratch, u, cpus, groups, threads, deadline, at_risk, _guard })
    }

    /// Makes this many calls, and returns how many were refused.
    pub fn run(&mut self, calls: u64) -> Check<u64> {
        let threads: Vec<i32> = self.threads.iter().chain([&self.deadline]).map(|child| child.pid).collect();
        let host = Host::new(&self.groups, &threads)?;
        let mut state = host.state()?;
        let mut refused = 0;
        for _ in 0..calls {
            match self.call() {
                Ok(()) => {
                    sys::sleep(SETTLES_NS);
                    state = host.state_after(&state)?;
                }
                Err(what) => {
                    refused += 1;
                    host.ensure(&state, &what)?;
                }
            }
        }
        Ok(refused)
    }

    /// Makes a call, sometimes as an unprivileged user.
    fn call(&mut self) -> Check {
        if self.random.below(8) > 0 {
            return self.any();
        }
        // SAFETY: takes a number.
        let become_user = |uid| sys::done(unsafe { libc::seteuid(uid) }).explain("seteuid");
        become_user(NOBODY)?;
        let result = self.any().map_err(|what| format!("{what}, as an ordinary user"));
        become_user(0).and(result)
    }

    fn any(&mut self) -> Check {
        match self.random.below(18) {
            0..=2 => self.change_table(),
            3..=4 => self.bind(),
            5..=6 => self.send_garbage(),
            7..=9 => self.budget(),
            10..=11 => self.change_group(),
            12 => self.cpuset(),
            13 => self.limit(),
            14..=15 => self.policy(),
            16 => self.affinity(),
            _ => self.hotplug(),
        }
    }

    fn group(&mut self) -> Group {
        self.random.pick(&self.groups).clone()
    }

    fn thread(&mut self) -> i32 {
        self.random.pick(&self.threads).pid
    }

    fn text(&mut self, of: &[&str]) -> String {
        (*self.random.pick(of)).to_owned()
    }

    fn change_table(&mut self) -> Check {
        let table = table(&mut self.random, self.u, self.cpus);
        match self.random.below(10) {
            0..=3 => table.install(&self.device),
            4..=6 => table.swap(&self.device).map(drop).map_err(|refusal| format!("swap {refusal:?}")),
            7 => self.device.start(0).map(drop).explain("start"),
            8 => self.device.stop().explain("stop"),
            _ => self.device.remove().explain("remove"),
        }
    }

    fn bind(&mut self) -> Check {
        let (whom, name) = (self.thread(), *self.random.pick(&[NAMES[0], NAMES[1], NAMES[2], "none"]));
        match self.random.below(3) {
            0 => with_pidfd(whom, |pidfd| self.device.unbind(pidfd)),
            _ => with_pidfd(whom, |pidfd| self.device.bind(pidfd, name)),
        }
    }

    /// Some of these calls can bind this process, which must not be frozen.
    fn send_garbage(&mut self) -> Check {
        if self.random.below(3) == 0 {
            let group = self.group();
            return garbage::write(&group, &mut self.random);
        }
        let table = table(&mut self.random, self.u, self.cpus);
        self.at_risk.add(0, 1);
        let result = self.scratch.send(&self.device, &table, &mut self.random);
        let _ = self.device.unbind(-1);
        self.at_risk.add(0, 1);
        result.explain("garbage")
    }

    /// Sets budgets on some CPUs. One of them may be too large, or name the same CPU twice.
    fn budget(&mut self) -> Check {
        let mut parts = Vec::new();
        for _ in 0..1 + self.random.below(3) {
            let cpus = self.text(&["", "0=", "0=", "1=", "0-1=", "0,1=", "63=", "0-63="]);
            let us = self.random.pick(&[0, 5, 50, 300, 700, 1500, 2000, 2600, 99_999]);
            parts.push(format!("{cpus}{us}"));
        }
        let group = self.group();
        set(&group, "cpu.ds.budget", &parts.join(" "))
    }

    fn change_group(&mut self) -> Check {
        let group = self.group();
        match self.random.below(8) {
            0 => {
                let value = self.text(&["0", "1", "4", "200", "-1"]);
                set(&group, "cpu.ds.priority", &value)
            }
            1 => {
                let value = self.text(&["0", "10", "200", "99999999"]);
                set(&group, "cpu.ds.lead", &value)
            }
            2 => {
                let value = self.text(&["0", "1", "2"]);
                set(&group, "cpu.ds.fifo", &value)
            }
            3 => {
                let value = self.text(&["-cpu", "+cpu", "+cpu +cpuset", "-cpuset", "+cpu +none"]);
                set(&group, "cgroup.subtree_control", &value)
            }
            4 => {
                let name = self.text(&NAMES);
                group.serve(&name)
            }
            5 => group.serve(""),
            _ => {
                let to = if self.random.below(2) == 0 { Group::root() } else { group };
                let asks_deadline = self.random.below(4) == 0 && has_all_cpus(&to);
                let whom = if asks_deadline { self.deadline.pid } else { self.thread() };
                set(&to, "cgroup.procs", &whom.to_string())
            }
        }
    }

    /// There is at most one partition, and an invalid one can only become a member: Linux does not keep its rules for
    /// several (docs/contributing/kernel-tests.md).
    fn cpuset(&mut self) -> Check {
        let kind = |group: &Group| group.get("cpuset.cpus.partition").unwrap_or_default();
        let partition = self.groups.iter().find(|group| !matches!(kind(group).trim(), "" | "member")).cloned();
        if let Some(invalid) = partition.as_ref().filter(|group| kind(group).contains("invalid")) {
            return set(invalid, "cpuset.cpus.partition", "member");
        }
        let group = partition.unwrap_or_else(|| self.group());
        if self.random.below(2) == 0 {
            let cpus = self.text(&["", "0", "1", "0-1", "9-", "0-63"]);
            return set(&group, "cpuset.cpus", &cpus);
        }
        let kind = self.text(&["member", "root", "isolated", "none"]);
        set(&group, "cpuset.cpus.partition", &kind)
    }

    fn limit(&mut self) -> Check {
        let (file, values) = *self.random.pick(&[
            ("sched_rt_runtime_us", ["950000", "500000", "900000", "2000000"]),
            ("sched_rt_period_us", ["1000000", "1500000", "100", "0"]),
            ("sched_ds_period_us", ["2500", "2500", "1000", "1"]),
        ]);
        let value = *self.random.pick(&values);
        let path = format!("/proc/sys/kernel/{file}");
        std::fs::write(&path, value).map_err(|error| format!("{value} > {path}: {error}"))
    }

    fn policy(&mut self) -> Check {
        if self.random.below(3) == 0 {
            let us = *self.random.pick(&[10, 100, 900, 3000, 9000]);
            return sys::set_sched(self.deadline.pid, runtime_us(us)).explain("SCHED_DEADLINE");
        }
        let attr = *self.random.pick(&[
            SchedAttr::policy(SCHED_TT),
            SchedAttr { priority: 7, ..SchedAttr::policy(SCHED_DS) },
            SchedAttr { priority: 100, ..SchedAttr::policy(SCHED_DS) },
            SchedAttr::fifo(1),
            SchedAttr::fifo(100),
            SchedAttr::other(),
            SchedAttr::policy(libc::SCHED_IDLE as u32),
        ]);
        sys::set_sched(self.thread(), attr).explain("policy")
    }

    fn affinity(&mut self) -> Check {
        let cpu = self.random.below(u64::from(self.cpus)) as u32;
        let all: Vec<u32> = (0..self.cpus).collect();
        let cpus = if self.random.below(2) == 0 { vec![cpu] } else { all };
        let whom = if self.random.below(4) == 0 { self.deadline.pid } else { self.thread() };
        sys::set_affinity(whom, &cpus).explain("affinity")
    }

    fn hotplug(&mut self) -> Check {
        let cpu = self.random.below(u64::from(self.cpus)) as u32;
        sys::set_online(cpu, self.random.below(3) > 0).explain("hotplug")
    }
}
