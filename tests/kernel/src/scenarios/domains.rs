//! Changes of root domains and of the limit of real-time tasks, beside budgets and windows. Deadline tasks keep their
//! bandwidth, or the kernel refuses the change.

use std::fs;

use macrotick_uapi::{error, Device};

use super::{unit_ns, Scenario};
use crate::check::{Check, Explain};
use crate::group::Group;
use crate::host::Host;
use crate::process::{self, Child};
use crate::sys::{self, SchedAttr};
use crate::table::Table;
use crate::{ensure, ensure_eq};

pub const ALL: &[Scenario] = &[
    Scenario::new("domain_of_a_partition", || with_two_cpus(of_a_partition)).on(2),
    Scenario::new("domain_of_a_partition_beside_windows", || with_two_cpus(beside_windows)).on(2),
    Scenario::new("domain_of_a_smaller_cpuset", of_a_smaller_cpuset).on(2),
    Scenario::new("domain_of_a_smaller_cpuset_from_outside", from_outside).on(2),
    Scenario::new("domain_without_a_cpu", || with_two_cpus(without_a_cpu)).on(2),
    Scenario::new("domain_under_another_limit", under_another_limit),
    Scenario::new("domain_rebuilt", rebuilt),
    Scenario::new("bind_outside_the_cpuset", bind_outside).on(2),
    Scenario::new("refused_bind_keeps_the_affinity", refused_bind).on(2),
];

const SECOND: u64 = 1_000_000_000;
/// The server period, in units.
const PERIOD: u64 = 25;

fn errno(written: std::io::Result<()>) -> Result<(), i32> {
    written.map_err(|error| error.raw_os_error().unwrap_or(libc::EIO))
}

fn write(group: &Group, file: &str, value: &str) -> Result<(), i32> {
    errno(fs::write(format!("{}/{file}", group.path()), value))
}

fn sysctl(name: &str, value: &str) -> Result<(), i32> {
    errno(fs::write(format!("/proc/sys/kernel/{name}"), value))
}

/// Runs a scenario with two CPUs online. With more CPUs, enough bandwidth would remain when one is taken offline.
fn with_two_cpus(scenario: fn() -> Check) -> Check {
    let others = 2..sys::nr_cpus();
    let set = |online| others.clone().try_for_each(|cpu| sys::set_online(cpu, online)).explain("other CPUs");
    set(false)?;
    scenario().and(set(true))
}

/// Waits until the kernel releases the bandwidth of ended deadline tasks, a period later. If domains are rebuilt before
/// that, the kernel does not count these tasks.
fn wait_for_the_dead() {
    sys::sleep(SECOND / 5);
}

/// Makes a group with its own CPUs.
fn cpuset(name: &str, cpus: &str) -> Check<Group> {
    wait_for_the_dead();
    Group::root().set("cgroup.subtree_control", "+cpuset")?;
    let group = Group::new(name)?;
    group.set("cpuset.cpus", cpus)?;
    Ok(group)
}

/// A group with a budget.
struct Budget(Group);

impl Drop for Budget {
    /// Sets the budget to 0: a removed group keeps its budget for a while, which would limit other scenarios.
    fn drop(&mut self) {
        let _ = self.0.set("cpu.ds.budget", "0");
    }
}

/// Makes a group with a percentage of some CPUs.
fn budget(cpus: &str, percent: u64) -> Check<Budget> {
    wait_for_the_dead();
    let us = (PERIOD * unit_ns() / 1000).to_string();
    let set = || sysctl("sched_ds_period_us", &us).is_ok();
    ensure!(sys::eventually(SECOND, set), "the server period cannot be set");
    let group = Group::new("budget")?;
    group.set("cpu.ds.budget", &share(cpus, percent))?;
    Ok(Budget(group))
}

fn share(cpus: &str, percent: u64) -> String {
    format!("{cpus}={}", PERIOD * unit_ns() * percent / 100_000)
}

/// A deadline task that was admitted.
struct Promised(Child);

impl Drop for Promised {
    /// Waits for the release of the bandwidth, which other scenarios need.
    fn drop(&mut self) {
        let _ = self.0.kill(SECOND);
        wait_for_the_dead();
    }
}

/// Forks a sleeping deadline task with a percentage of a CPU. The task asks itself: see `admission.rs`.
fn promised(percent: u64, group: Option<&Group>) -> Check<Promised> {
    let task = process::fork(|| match sys::set_sched(0, SchedAttr::deadline(percent * 1_000_000, 100_000_000)) {
        Ok(()) => loop {
            sys::sleep(SECOND);
        },
        Err(errno) => errno,
    });
    let is_deadline = || sys::sched(task.pid).is_ok_and(|attr| attr.policy == libc::SCHED_DEADLINE as u32);
    ensure!(sys::eventually(SECOND, is_deadline), "no deadline task: {}", task.describe());
    group.map_or(Ok(()), |group| group.take(task.pid))?;
    Ok(Promised(task))
}

/// Checks that a call fails with EBUSY and changes nothing.
fn is_refused(host: &Host, what: &str, call: impl FnOnce() -> Result<(), i32>) -> Check {
    let before = host.state()?;
    ensure_eq!(call(), Err(libc::EBUSY), "{what}");
    host.ensure(&before, what)
}

fn kind_of(part: &Group) -> Check<String> {
    Ok(part.get("cpuset.cpus.partition")?.trim().to_owned())
}

fn of_a_partition() -> Check {
    let (budgets, part) = (budget("0", 80)?, cpuset("part", "1")?);
    let task = promised(80, None)?;
    let host = Host::new(&[budgets.0.clone(), part.clone()], &[task.0.pid])?;
    for kind in ["root", "isolated"] {
        is_refused(&host, &format!("a partition of CPU 1, {kind}"), || write(&part, "cpuset.cpus.partition", kind))?;
        ensure_eq!(kind_of(&part)?, "member", "the partition after that");
    }
    drop((host, task));
    // Without deadline tasks or without budgets, the administrator may make the partition.
    part.set("cpuset.cpus.partition", "root")?;
    ensure_eq!(kind_of(&part)?, "root", "the partition without deadline tasks");
    part.set("cpuset.cpus.partition", "member")?;
    budgets.0.set("cpu.ds.budget", "0")?;
    let _task = promised(80, None)?;
    part.set("cpuset.cpus.partition", "root")?;
    ensure_eq!(write(&budgets.0, "cpu.ds.budget", &share("0", 80)), Err(libc::EBUSY), "a budget beside what remains");
    // Linux counts a sleeping task on the CPU where it went to sleep, until it wakes up and domains are rebuilt.
    let counted_anew = || {
        let kinds = ["isolated", "root"].map(|kind| write(&part, "cpuset.cpus.partition", kind));
        kinds == [Ok(()), Ok(())] && write(&budgets.0, "cpu.ds.budget", &share("1", 80)) == Ok(())
    };
    ensure!(sys::eventually(3 * SECOND, counted_anew), "a budget in the partition");
    part.set("cpuset.cpus.partition", "member")
}

fn beside_windows() -> Check {
    let (u, device, part) = (unit_ns(), Device::open()?, cpuset("part", "1")?);
    Table::single(20 * u, 0, 0, 16 * u).install(&device)?;
    let task = promised(80, None)?;
    let host = Host::new(std::slice::from_ref(&part), &[task.0.pid])?;
    is_refused(&host, "a partition beside windows", || write(&part, "cpuset.cpus.partition", "root"))?;
    device.remove().explain("remove")?;
    part.set("cpuset.cpus.partition", "root")?;
    let refused = Table::single(20 * u, 0, 0, 16 * u).try_install(&device).map_err(|refusal| refusal.error);
    ensure_eq!(refused, Err(error::BANDWIDTH), "windows beside what remains");
    part.set("cpuset.cpus.partition", "member")
}

/// Checks a deadline task with a cpuset smaller than its root domain.
fn of_a_smaller_cpuset() -> Check {
    let (u, device) = (unit_ns(), Device::open()?);
    let (budgets, small) = (budget("0", 80)?, cpuset("small", "0-1")?);
    let task = promised(80, Some(&small))?;
    let host = Host::new(&[budgets.0.clone(), small.clone()], &[task.0.pid])?;
    is_refused(&host, "a cpuset of CPU 0 alone", || write(&small, "cpuset.cpus", "0"))?;
    small.set("cpuset.cpus", "1")?;
    is_refused(&host, "a budget where the cpuset is", || write(&budgets.0, "cpu.ds.budget", &share("1", 80)))?;
    let refused = Table::single(20 * u, 1, 0, 12 * u).try_install(&device).map_err(|refusal| refusal.error);
    ensure_eq!(refused, Err(error::BANDWIDTH), "windows where the cpuset is");
    budgets.0.set("cpu.ds.budget", "0")?;
    small.set("cpuset.cpus", "0")
}

fn from_outside() -> Check {
    let (budgets, small) = (budget("0", 80)?, cpuset("small", "0")?);
    let task = promised(80, None)?;
    let host = Host::new(&[budgets.0.clone(), small.clone()], &[task.0.pid])?;
    is_refused(&host, "moving a deadline task to CPU 0", || write(&small, "cgroup.procs", &task.0.pid.to_string()))?;
    budgets.0.set("cpu.ds.budget", "0")?;
    small.take(task.0.pid)
}

fn without_a_cpu() -> Check {
    let budgets = budget("0", 80)?;
    let task = promised(80, None)?;
    let host = Host::new(std::slice::from_ref(&budgets.0), &[task.0.pid])?;
    is_refused(&host, "CPU 1 off line", || sys::set_online(1, false))?;
    drop((host, task));
    sys::set_online(1, false).explain("CPU 1 off line without promises")?;
    sys::set_online(1, true).explain("CPU 1 on line")
}

/// Checks other limits of real-time tasks. A group has half of each CPU, and a deadline task per CPU has 40 %.
fn under_another_limit() -> Check {
    let cpus = sys::nr_cpus();
    let budgets = budget(&format!("0-{}", cpus - 1), 50)?;
    let tasks: Vec<Promised> = (0..cpus).map(|_| promised(40, None)).collect::<Check<_>>()?;
    let host = Host::new(std::slice::from_ref(&budgets.0), &[tasks[0].0.pid])?;
    is_refused(&host, "a lower limit", || sysctl("sched_rt_runtime_us", "600000"))?;
    is_refused(&host, "a longer period", || sysctl("sched_rt_period_us", "1500000"))?;
    budgets.0.set("cpu.ds.budget", "0")?;
    let lower = sysctl("sched_rt_runtime_us", "600000");
    let higher = sysctl("sched_rt_runtime_us", "950000");
    ensure_eq!((lower, higher), (Ok(()), Ok(())), "a lower limit without budgets, and the former one");
    Ok(())
}

/// Checks that the kernel admits no more after root domains are rebuilt.
fn rebuilt() -> Check {
    let budgets = budget("0", 20)?;
    // Before the state is read: the controller gives all groups the files of cpuset.
    let part = (sys::nr_cpus() > 1).then(|| cpuset("part", "1")).transpose()?;
    let host = Host::new(std::slice::from_ref(&budgets.0), &[])?;
    let before = host.state()?;
    for limit in ["900000", "950000"] {
        sysctl("sched_rt_runtime_us", limit).explain("the limit")?;
    }
    host.ensure(&before, "another limit and the former one")?;
    if let Some(part) = part {
        part.set("cpuset.cpus.partition", "root")?;
        part.set("cpuset.cpus.partition", "member")?;
        host.ensure(&before, "a partition that comes and goes")?;
        sys::set_online(1, false).explain("CPU 1 off line")?;
        sys::set_online(1, true).explain("CPU 1 on line")?;
        host.ensure(&before, "a CPU that goes and comes")?;
    }
    Ok(())
}

/// Starts a sleeper on CPU 0.
fn sleeper() -> Check<Child> {
    sys::set_affinity(0, &[0]).explain("affinity")?;
    let sleeper = process::sleeper();
    sys::set_affinity(sleeper.pid, &[0, 1]).explain("affinity of the sleeper")?;
    Ok(sleeper)
}

/// Binds a sleeper to the entity `t`.
fn bind(device: &Device, sleeper: &Child) -> Check<Result<(), i32>> {
    let pidfd = sys::pidfd_open(sleeper.pid, 0).explain("pidfd")?;
    Ok(device.bind(pidfd, "t"))
}

/// Checks that a thread cannot have windows on a CPU that its cpuset lacks.
fn bind_outside() -> Check {
    let (u, device, small) = (unit_ns(), Device::open()?, cpuset("small", "0")?);
    let sleeper = sleeper()?;
    small.take(sleeper.pid)?;
    Table::single(20 * u, 1, 0, 4 * u).install(&device)?;
    ensure_eq!(bind(&device, &sleeper)?, Err(libc::EINVAL), "bind outside the cpuset");
    ensure_eq!(sys::affinity(sleeper.pid), Ok(vec![0]), "the affinity after that");
    device.remove().explain("remove")?;
    Table::single(20 * u, 0, 0, 4 * u).window("t", 1, 8 * u, 4 * u, 3).migrate().install(&device)?;
    ensure_eq!(bind(&device, &sleeper)?, Err(libc::EINVAL), "bind to an entity of two CPUs, one outside the cpuset");
    ensure_eq!(sys::affinity(sleeper.pid), Ok(vec![0]), "the affinity after that");
    Ok(())
}

/// Checks that a refused call does not change an affinity that Linux holds narrower than the user asked for. A move
/// between groups with the same CPUs does not widen it, nor does a CPU that comes back.
fn refused_bind() -> Check {
    let (u, device, small) = (unit_ns(), Device::open()?, cpuset("small", "0")?);
    let sleeper = sleeper()?;
    small.take(sleeper.pid)?;
    let cpus = sys::nr_cpus();
    let others = |online| (1..cpus).try_for_each(|cpu| sys::set_online(cpu, online));
    others(false).explain("other CPUs off line")?;
    Group::root().take(sleeper.pid)?;
    others(true).explain("other CPUs on line")?;
    ensure_eq!(sys::affinity(sleeper.pid), Ok(vec![0]), "the affinity before");
    Table::single(20 * u, 1, 0, 4 * u).install(&device)?;
    ensure_eq!(bind(&device, &sleeper)?, Err(libc::EAGAIN), "bind while it sleeps on another CPU");
    ensure_eq!(sys::affinity(sleeper.pid), Ok(vec![0]), "the affinity after a refused call");
    Ok(())
}
