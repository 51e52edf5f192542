//! Processes in their own namespaces: the needs of a container that joins a table, and the limits of its rights.

use std::ffi::CString;
use std::os::unix::fs::MetadataExt;

use macrotick_uapi::{Device, DEVICE, SCHED_TT};

use super::jobs::ensure_regular;
use super::{unit_ns, Scenario};
use crate::board::{Board, Log};
use crate::check::{Check, Explain};
use crate::process::{self, Child};
use crate::sys::{self, SchedAttr};
use crate::table::Table;
use crate::{ensure, ensure_eq};

pub const ALL: &[Scenario] = &[
    Scenario::new("container_joins_by_itself", joins_by_itself),
    Scenario::new("container_of_another_user", of_another_user),
    Scenario::new("container_bound_before", bound_before),
    Scenario::new("container_bound_from_outside", bound_from_outside),
];

const SECOND: u64 = 1_000_000_000;
/// The namespaces of a container that the machine's administrator starts.
const USUAL: i32 = libc::CLONE_NEWPID | libc::CLONE_NEWNS;
/// The namespaces that any user may make. The first process is root inside, and unprivileged outside.
const ROOTLESS: i32 = libc::CLONE_NEWUSER | USUAL;

/// Starts a table with an entity `t`. Returns the epoch and the unit.
fn running() -> Check<(u64, u64)> {
    let (u, device) = (unit_ns(), Device::open()?);
    Table::single(20 * u, 0, 2 * u, 4 * u).install(&device)?;
    Ok((device.start(0).explain("start")?, u))
}

pub(super) fn unshare(namespaces: i32) -> Check {
    // SAFETY: takes a number.
    sys::done(unsafe { libc::unshare(namespaces) }).explain("unshare").map(drop)
}

/// Runs a check in the first process of new namespaces.
fn inside(namespaces: i32, body: impl FnOnce() -> Check) -> Check {
    process::check_in_child(5 * SECOND, || {
        unshare(namespaces)?;
        process::check_in_child(5 * SECOND, || {
            ensure_eq!(std::process::id(), 1, "the first process's id inside");
            body()
        })
    })
}

fn mount(kind: &str, at: &str, flags: libc::c_ulong) -> Check {
    let [kind, at] = [kind, at].map(|text| CString::new(text).unwrap_or_default());
    // SAFETY: terminated texts; no data.
    let mounted = unsafe { libc::mount(kind.as_ptr(), at.as_ptr(), kind.as_ptr(), flags, std::ptr::null()) };
    sys::done(mounted).explain("mount").map(drop)
}

/// Mounts a `/dev` that only has this device.
fn own_devices(number: u64) -> Check {
    mount("none", "/", libc::MS_REC | libc::MS_PRIVATE)?;
    mount("tmpfs", "/dev", 0)?;
    ensure_eq!(Device::open().map(drop).map_err(|error| error.errno), Err(libc::ENOENT), "the device before mknod");
    let path = CString::new(DEVICE).unwrap_or_default();
    // SAFETY: a terminated path.
    sys::done(unsafe { libc::mknod(path.as_ptr(), libc::S_IFCHR | 0o600, number) }).explain("mknod").map(drop)
}

/// Checks that the next jobs of the calling thread, which is bound to `t`, are on the table's grid.
fn ensure_served(device: &Device, epoch: u64, u: u64) -> Check {
    let log = Log::new(8);
    if sys::nr_cpus() == 1 {
        sys::prefault();
    }
    // The work before this may have taken several windows.
    device.wait().explain("wait")?;
    device.wait().explain("wait")?;
    for _ in 0..6 {
        log.push(&device.wait().explain("wait")?);
    }
    ensure_eq!(sys::sched(0).explain("policy")?.policy, SCHED_TT, "policy of a member");
    let jobs = log.jobs();
    ensure_regular(&jobs, jobs[0].number, epoch, 20 * u, 2 * u)
}

/// Checks a container with a device node that binds itself by its own pidfd. Its process id is 1 inside.
fn joins_by_itself() -> Check {
    let (epoch, u) = running()?;
    let number = std::fs::metadata(DEVICE).map_err(|error| error.to_string())?.rdev();
    inside(USUAL, || {
        own_devices(number)?;
        let device = Device::open()?;
        let pidfd = sys::pidfd_open(1, 0).explain("pidfd")?;
        device.bind(pidfd, "t").explain("bind")?;
        ensure_eq!(device.bind(-1, "t"), Err(libc::EBUSY), "binding the caller, who is bound");
        ensure_served(&device, epoch, u)?;
        ensure_eq!(device.stats(0).explain("stats")?.nr_threads, 1, "threads");
        device.unbind(pidfd).explain("unbind")?;
        ensure_eq!(device.wait().map(drop), Err(libc::ENOTCONN), "wait once unbound");
        Ok(())
    })?;
    ensure_eq!(Device::open()?.stats(0).explain("stats")?.nr_threads, 0, "threads of a container that has ended");
    Ok(())
}

/// Returns whether the caller has `CAP_SYS_NICE` in its user namespace.
fn may_nice() -> bool {
    const CAP_SYS_NICE: u64 = 23;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    line.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).is_some_and(|bits| bits >> CAP_SYS_NICE & 1 == 1)
}

/// Checks that all changes need the capability in the initial user namespace.
fn ensure_refused(device: &Device) -> Check {
    ensure!(may_nice(), "it lacks the capability inside, too");
    let pidfd = sys::pidfd_open(std::process::id() as i32, 0).explain("pidfd")?;
    for fd in [pidfd, -1] {
        ensure_eq!(device.bind(fd, "t"), Err(libc::EPERM), "bind");
        ensure_eq!(device.unbind(fd), Err(libc::EPERM), "unbind");
    }
    ensure_eq!(device.stop(), Err(libc::EPERM), "stop");
    ensure_eq!(device.remove(), Err(libc::EPERM), "remove");
    Ok(())
}

fn of_another_user() -> Check {
    running()?;
    inside(ROOTLESS, || {
        let device = Device::open()?;
        ensure_refused(&device)?;
        ensure_eq!(device.wait().map(drop), Err(libc::ENOTCONN), "wait");
        ensure_eq!(sys::set_sched(0, SchedAttr::policy(SCHED_TT)), Err(libc::EPERM), "SCHED_TT");
        Ok(())
    })
}

/// Checks that a bound process that gives up its privileges keeps its jobs.
fn bound_before() -> Check {
    let (epoch, u) = running()?;
    process::check_in_child(5 * SECOND, || {
        let device = Device::open()?;
        device.bind(-1, "t").explain("bind")?;
        unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS)?;
        ensure_served(&device, epoch, u)?;
        ensure_refused(&device)?;
        ensure_served(&device, epoch, u)
    })
}

/// Checks that a process outside can bind a container's process, by its outside process id.
fn bound_from_outside() -> Check {
    let ((epoch, u), log, ready, id) = (running()?, Log::new(64), Board::new(1), Board::new(1));
    let keeper = process::fork(|| {
        if unshare(ROOTLESS).is_err() {
            return 1;
        }
        let first = process::fork(|| if std::process::id() == 1 { process::wait_once_bound(ready, log) } else { 2 });
        id.set(0, first.pid as u64);
        first.wait(10 * SECOND).map_or(3, |_| 0)
    });
    let there = || id.get(0) != 0 && ready.get(0) != 0;
    ensure!(sys::eventually(SECOND, there), "the container has not begun: {:?}", keeper.poll());
    let first = Child { pid: id.get(0) as i32 };
    let device = Device::open()?;
    device.bind(sys::pidfd_open(first.pid, 0).explain("pidfd")?, "t").explain("bind")?;
    ensure!(sys::eventually(SECOND, || log.count() >= 6), "{} jobs: {}", log.count(), first.describe());
    ensure_eq!(sys::sched(first.pid).explain("policy")?.policy, SCHED_TT, "policy of a member");
    let jobs = log.jobs();
    ensure_regular(&jobs, jobs[0].number, epoch, 20 * u, 2 * u)?;
    first.signal(libc::SIGKILL);
    keeper.succeed(SECOND)?;
    ensure_eq!(device.stats(0).explain("stats")?.nr_threads, 0, "threads of a container that was killed");
    Ok(())
}
