//! The policy SCHED_TT in `sched_setattr(2)` and related calls, privileges, affinity, and hotplug.

use macrotick_uapi::{self as abi, Device, SCHED_TT};

use super::jobs::ensure_regular;
use super::{is_slow, unit_ns, Scenario};
use crate::board::{Board, Job, Log};
use crate::check::{Check, Explain};
use crate::process::{self, member, periodic};
use crate::sys::{self, SchedAttr};
use crate::table::{send, Table};
use crate::{ensure, ensure_eq};

pub const ALL: &[Scenario] = &[
    Scenario::new("policy_unbound", unbound),
    Scenario::new("policy_shown", shown),
    Scenario::new("policy_unprivileged", unprivileged),
    Scenario::new("policy_wait_unprivileged", wait_unprivileged),
    Scenario::new("policy_leave_and_return", leave_and_return),
    Scenario::new("policy_leave_for_fifo", leave_for_fifo).punctual(),
    Scenario::new("policy_other_policies_bound", other_policies_bound),
    Scenario::new("policy_affinity", affinity),
    Scenario::new("policy_affinity_refused", affinity_refused).on(2),
    Scenario::new("hotplug", hotplug).on(2),
    Scenario::new("hotplug_affinity", hotplug_affinity).on(2),
];

const SECOND: u64 = 1_000_000_000;

fn table(u: u64) -> Table {
    Table::single(20 * u, 0, 2 * u, 4 * u)
}

fn unbound() -> Check {
    let device = Device::open()?;
    ensure_eq!(sys::set_sched(0, SchedAttr::policy(SCHED_TT)), Err(libc::ENOTCONN), "SCHED_TT without a table");
    table(unit_ns()).install(&device)?;
    ensure_eq!(sys::set_sched(0, SchedAttr::policy(SCHED_TT)), Err(libc::ENOTCONN), "SCHED_TT unbound");
    for policy in [8, 15, 17, 1 << 20] {
        ensure_eq!(sys::set_sched(0, SchedAttr::policy(policy)), Err(libc::EINVAL), "policy {policy}");
    }
    // SAFETY: takes numbers.
    let range = unsafe { (libc::sched_get_priority_min(16), libc::sched_get_priority_max(16)) };
    ensure_eq!(range, (0, 0), "priorities of SCHED_TT");
    let with_priority = SchedAttr { priority: 1, ..SchedAttr::policy(SCHED_TT) };
    device.bind(-1, "t").explain("bind")?;
    ensure_eq!(sys::set_sched(0, with_priority), Err(libc::EINVAL), "SCHED_TT with a priority");
    Ok(())
}

fn shown() -> Check {
    let (u, device, log) = (unit_ns(), Device::open()?, Log::new(16));
    table(u).install(&device)?;
    let child = periodic("t", log, u)?;
    let epoch = device.start(sys::now_ns() + 10 * u).explain("start")?;
    sys::sleep_until(epoch + 10 * u);
    let attr = sys::sched(child.pid).explain("getattr")?;
    ensure_eq!((attr.policy, attr.priority, attr.nice), (SCHED_TT, 0, 0), "policy, priority and nice");
    // SAFETY: takes a number.
    ensure_eq!(unsafe { libc::sched_getscheduler(child.pid) }, SCHED_TT as i32, "sched_getscheduler");
    ensure_eq!(sys::shown_priority(child.pid)?, -100, "the priority in /proc");
    // SAFETY: takes numbers.
    let niced = sys::done(unsafe { libc::setpriority(libc::PRIO_PROCESS, child.pid as u32, 7) });
    ensure_eq!(niced, Ok(0), "setpriority");
    let mut slice = libc::timespec { tv_sec: 9, tv_nsec: 9 };
    // SAFETY: writes one timespec.
    let slice = unsafe { (libc::sched_rr_get_interval(child.pid, &mut slice), slice.tv_sec, slice.tv_nsec) };
    ensure_eq!(slice, (0, 0, 0), "sched_rr_get_interval");
    sys::sleep_until(epoch + 50 * u);
    ensure_eq!(sys::sched(child.pid).explain("getattr")?.policy, SCHED_TT, "policy after setpriority");
    ensure_eq!(log.count(), 3, "jobs");
    device.remove().explain("remove")?;
    let attr = sys::sched(child.pid).unwrap_or_default();
    ensure!(attr.policy == 0, "policy {} after the removal", attr.policy);
    Ok(())
}

/// Becomes an unprivileged user without capabilities.
fn drop_privileges() -> Check {
    // SAFETY: takes numbers.
    sys::done(unsafe { libc::syscall(libc::SYS_setresuid, 65534, 65534, 65534) }).explain("setresuid").map(drop)
}

fn unprivileged() -> Check {
    let (u, root) = (unit_ns(), Device::open()?);
    table(u).install(&root)?;
    process::check_in_child(5 * SECOND, || {
        drop_privileges()?;
        let device = Device::open()?;
        ensure_eq!(device.get().explain("get")?.nr_windows, 1, "get");
        device.stats(0).explain("stats")?;
        let refused = send(&device, table(u).request()).map_err(|refusal| (refusal.errno, refusal.error));
        ensure_eq!(refused, Err((libc::EPERM, 0)), "install");
        // SAFETY: takes numbers.
        let eventfd = sys::done(unsafe { libc::eventfd(0, 0) }).explain("eventfd")? as i32;
        for entity in [0, abi::ALL_ENTITIES] {
            ensure_eq!(device.notify(entity, eventfd), Err(libc::EPERM), "notify of {entity:#x}");
            ensure_eq!(device.notify(entity, -1), Err(libc::EPERM), "the end of notify of {entity:#x}");
        }
        ensure_eq!(device.start(0), Err(libc::EPERM), "start");
        ensure_eq!(device.stop(), Err(libc::EPERM), "stop");
        ensure_eq!(device.remove(), Err(libc::EPERM), "remove");
        ensure_eq!(device.bind(-1, "t"), Err(libc::EPERM), "bind");
        ensure_eq!(device.unbind(-1), Err(libc::EPERM), "unbind");
        ensure_eq!(device.wait().map(drop), Err(libc::ENOTCONN), "wait");
        ensure_eq!(sys::set_sched(0, SchedAttr::policy(SCHED_TT)), Err(libc::EPERM), "SCHED_TT");
        Ok(())
    })?;
    let epoch = root.start(0).explain("start")?;
    process::check_in_child(5 * SECOND, || {
        drop_privileges()?;
        let refused = Table::single(30 * u, 0, 5 * u, 3 * u).swap(&Device::open()?);
        let refused = refused.map_err(|refusal| (refusal.errno, refusal.error));
        ensure_eq!(refused, Err((libc::EPERM, 0)), "install in the place of the running table");
        Ok(())
    })?;
    sys::sleep(50 * u);
    let get = root.get().explain("get")?;
    ensure_eq!((get.state, get.epoch_ns, get.cycle_ns), (abi::state::RUNNING, epoch, 20 * u), "the table afterwards");
    Ok(())
}

fn wait_unprivileged() -> Check {
    let (u, device, log) = (unit_ns(), Device::open()?, Log::new(16));
    table(u).install(&device)?;
    let child = member("t", |device| {
        if drop_privileges().is_err() {
            return 1;
        }
        for _ in 0..3 {
            match device.wait() {
                Ok(wait) => log.push(&wait),
                Err(errno) => return errno,
            }
        }
        // To leave the class needs no privilege, but to return does.
        i32::from(sys::set_sched(0, SchedAttr::other()).is_err())
    })?;
    let epoch = device.start(sys::now_ns() + 10 * u).explain("start")?;
    child.succeed(SECOND)?;
    ensure_eq!(log.count(), 3, "jobs");
    ensure_regular(&log.jobs(), 0, epoch, 20 * u, 2 * u)
}

fn leave_and_return() -> Check {
    let u = unit_ns();
    outside_for_windows(table(u), |epoch, jobs| {
        for job in jobs {
            ensure_eq!(job.nominal_ns, epoch + job.number * 20 * u + 2 * u, "nominal instant of job {}", job.number);
        }
        Ok(())
    })
}

/// Checks that a thread that leaves for SCHED_FIFO within its window waits for more important SCHED_FIFO threads.
fn leave_for_fifo() -> Check {
    let (u, device, board) = (unit_ns(), Device::open()?, Board::new(2));
    table(u).install(&device)?;
    let child = member("t", |device| {
        if let Err(errno) = device.wait() {
            return errno;
        }
        sys::spin(2 * u);
        if let Err(errno) = sys::set_sched(0, SchedAttr::fifo(10)) {
            return errno;
        }
        board.set(0, sys::now_ns());
        sys::spin(8 * u);
        0
    })?;
    let epoch = device.start(sys::now_ns() + SECOND).explain("start")?;
    let more = process::fork(|| {
        sys::prefault();
        if let Err(errno) = sys::under_fifo_on(0, 50) {
            return errno;
        }
        sys::sleep_until(epoch + 3 * u);
        sys::spin(3 * u);
        board.set(1, sys::now_ns());
        0
    });
    more.succeed(2 * SECOND)?;
    child.succeed(SECOND)?;
    let (left, done) = (board.get(0), board.get(1));
    ensure!(done <= left, "who is less important goes on for {} ns", done.wrapping_sub(left));
    Ok(())
}

/// Checks a thread of entity `t` that works in other classes. The entity has eight units in each cycle of twenty.
pub(super) fn outside_for_windows(table: Table, on_grid: impl Fn(u64, &[Job]) -> Check) -> Check {
    let (u, device, log, board) = (unit_ns(), Device::open()?, Log::new(64), Board::new(1));
    table.install(&device)?;
    let child = member("t", |device| {
        for round in 0..12 {
            match device.wait() {
                Ok(wait) => log.push(&wait),
                Err(errno) => return errno,
            }
            let attr = if round % 2 == 0 { SchedAttr::other() } else { SchedAttr::fifo(10) };
            if let Err(errno) = sys::set_sched(0, attr) {
                return errno;
            }
            // Outside of the class the windows have no effect: the work crosses several of them.
            let begin = sys::now_ns();
            sys::spin((30 + round) * u);
            board.set(0, board.get(0).max(sys::now_ns() - begin));
        }
        0
    })?;
    let epoch = device.start(sys::now_ns() + 10 * u).explain("start")?;
    child.succeed(5 * SECOND)?;
    let jobs = log.jobs();
    ensure_eq!(jobs.len(), 12, "jobs");
    on_grid(epoch, &jobs)?;
    ensure!(jobs.windows(2).all(|pair| pair[0].number < pair[1].number), "jobs out of order: {jobs:?}");
    // In the class the work would take 75 units or more. On a slow kernel, the scenario's own polling takes as much
    // time from the child.
    ensure!(is_slow() || board.get(0) < 70 * u, "41 units of work outside of the class took {} ns", board.get(0));
    ensure_eq!(device.stats(0).explain("stats")?.nr_threads, 0, "threads");
    Ok(())
}

/// Checks that a bound thread under another policy is served by that policy only.
fn other_policies_bound() -> Check {
    let (u, device) = (unit_ns(), Device::open()?);
    table(u).install(&device)?;
    device.start(0).explain("start")?;
    let child = member("t", |_| sys::hog())?;
    let policies = [
        SchedAttr::fifo(10),
        SchedAttr::policy(libc::SCHED_BATCH as u32),
        SchedAttr::policy(SCHED_TT),
        SchedAttr::policy(libc::SCHED_IDLE as u32),
        SchedAttr::policy(SCHED_TT),
        SchedAttr::other(),
    ];
    for attr in policies {
        sys::set_sched(child.pid, attr).explain("setattr")?;
        ensure_eq!(sys::sched(child.pid).explain("getattr")?.policy, attr.policy, "policy");
        sys::sleep(25 * u);
    }
    child.kill(SECOND)
}

fn affinity() -> Check {
    let (u, device, log) = (unit_ns(), Device::open()?, Log::new(32));
    table(u).install(&device)?;
    let all: Vec<u32> = (0..sys::nr_cpus()).collect();
    let child = periodic("t", log, u)?;
    ensure_eq!(sys::affinity(child.pid), Ok(vec![0]), "CPUs once bound");
    let epoch = device.start(sys::now_ns() + 10 * u).explain("start")?;
    sys::sleep_until(epoch + 30 * u);
    sys::set_affinity(child.pid, &[0]).explain("affinity to its own CPU")?;
    sys::sleep_until(epoch + 70 * u);
    ensure_eq!(log.count(), 4, "jobs");
    device.remove().explain("remove")?;
    // An affinity that was set meanwhile takes effect. `all` stands for a thread that has ended.
    let restored = sys::affinity(child.pid).unwrap_or_else(|_| all.clone());
    ensure!(restored == [0] || restored == all, "CPUs after the removal: {restored:?}");
    Ok(())
}

fn affinity_refused() -> Check {
    let (u, device, log) = (unit_ns(), Device::open()?, Log::new(64));
    Table::single(20 * u, 1, 2 * u, 4 * u).install(&device)?;
    let child = periodic("t", log, u)?;
    ensure_eq!(sys::affinity(child.pid), Ok(vec![1]), "CPUs once bound");
    ensure_eq!(sys::set_affinity(child.pid, &[0]), Err(libc::EBUSY), "affinity away from its CPU");
    let epoch = device.start(sys::now_ns() + 10 * u).explain("start")?;
    sys::sleep_until(epoch + 30 * u);
    ensure_eq!(sys::set_affinity(child.pid, &[0]), Err(libc::EBUSY), "affinity away from its CPU while it runs");
    // The kernel also refuses a larger mask: while the table is stopped, the load balancer would use it.
    ensure_eq!(sys::set_affinity(child.pid, &[0, 1]), Err(libc::EBUSY), "affinity to both");
    sys::sleep_until(epoch + 90 * u);
    sys::set_sched(child.pid, SchedAttr::other()).explain("leave")?;
    sys::sleep(30 * u);
    sys::set_sched(child.pid, SchedAttr::policy(SCHED_TT)).explain("return")?;
    sys::sleep_until(epoch + 400 * u);
    ensure!(log.count() >= 15, "{} jobs in 20 cycles", log.count());
    ensure_eq!(device.stats(0).explain("stats")?.cpu, 1, "CPU");
    device.unbind(sys::pidfd_open(child.pid, 0).explain("pidfd")?).explain("unbind")?;
    child.wait(SECOND).map(drop)
}

fn hotplug() -> Check {
    let (u, device, log) = (unit_ns(), Device::open()?, Log::new(8));
    Table::single(20 * u, 1, 2 * u, 4 * u).install(&device)?;
    ensure_eq!(sys::set_online(1, false), Err(libc::EBUSY), "off line with a table installed");
    periodic("t", log, u)?;
    let epoch = device.start(sys::now_ns() + 10 * u).explain("start")?;
    ensure_eq!(sys::set_online(1, false), Err(libc::EBUSY), "off line with a table running");
    sys::sleep_until(epoch + 50 * u);
    ensure_eq!(log.count(), 3, "jobs");
    device.stop().explain("stop")?;
    ensure_eq!(sys::set_online(1, false), Err(libc::EBUSY), "off line with a table stopped");
    device.remove().explain("remove")?;
    ensure_eq!(sys::set_online(1, false), Ok(()), "off line without a table");
    let mut start = abi::Start::default();
    ensure_eq!(device.call(&mut start), Err(libc::ENOENT), "start without a table");
    table(u).install(&device)?;
    device.start(0).explain("start on CPU 0 alone")?;
    ensure_eq!(sys::set_online(1, true), Ok(()), "on line while a table runs elsewhere");
    ensure_eq!(sys::set_online(1, false), Ok(()), "off line while a table runs elsewhere");
    sys::set_online(1, true).explain("on line")
}

/// Checks a thread with an affinity to a CPU that is offline when its membership ends: it may run on all other CPUs.
fn hotplug_affinity() -> Check {
    let device = Device::open()?;
    let others: Vec<u32> = (0..sys::nr_cpus()).filter(|cpu| *cpu != 1).collect();
    table(unit_ns()).install(&device)?;
    sys::set_affinity(0, &[1]).explain("pin")?;
    device.bind(-1, "t").explain("bind")?;
    ensure_eq!(sys::affinity(0), Ok(vec![0]), "CPUs once bound");
    ensure_eq!(sys::set_online(1, false), Ok(()), "off line");
    let unbound = device.unbind(-1);
    let affinity = sys::affinity(0);
    ensure_eq!(sys::set_online(1, true), Ok(()), "on line");
    ensure_eq!((unbound, affinity), (Ok(()), Ok(others)), "what was left of the CPUs");
    ensure_eq!(sys::affinity(0).map(|cpus| cpus.len() as u32), Ok(sys::nr_cpus()), "CPUs in the end");
    Ok(())
}
