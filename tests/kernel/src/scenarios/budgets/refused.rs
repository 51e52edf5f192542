//! Calls and writes that the kernel refuses, by caller.

use std::fs::{self, File};
use std::io::Write;

use macrotick_uapi::{error, Device, SCHED_DS};

use super::{become_user_in, budget_of, ds, first_group, set_period, write_fails, NOBODY, PERIOD, SECOND};
use crate::check::{Check, Explain};
use crate::group::Group;
use crate::process;
use crate::scenarios::containers::unshare;
use crate::scenarios::unit_ns;
use crate::sys::{self, SchedAttr};
use crate::table::{Refusal, Table};
use crate::{ensure, ensure_eq};

pub(super) fn refusals() -> Check {
    let u = unit_ns();
    ensure_eq!(sys::set_sched(0, ds(10)), Err(libc::ENOTCONN), "SCHED_DS without a budget");
    ensure_eq!(sys::set_sched(0, ds(0)), Err(libc::EINVAL), "priority 0");
    ensure_eq!(sys::set_sched(0, ds(100)), Err(libc::EINVAL), "priority 100");
    // SAFETY: takes a number.
    let limits =
        unsafe { (libc::sched_get_priority_min(SCHED_DS as i32), libc::sched_get_priority_max(SCHED_DS as i32)) };
    ensure_eq!(limits, (1, 99), "limits of priorities");
    let group = first_group("a", 5, 1)?;
    for (text, errno) in [
        ("x", libc::EINVAL),
        (" ", libc::EINVAL),
        ("-5", libc::EINVAL),
        ("1000 0=x", libc::EINVAL),
        ("64=1000", libc::EINVAL),
        ("9", libc::ERANGE),
        ("1000001", libc::ERANGE),
    ] {
        ensure_eq!(write_fails(&group, "cpu.ds.budget", text), Some(errno), "budget {text:?}");
    }
    let all = (PERIOD * u / 1000).to_string();
    ensure_eq!(write_fails(&group, "cpu.ds.budget", &all), Some(libc::EBUSY), "all of the CPU");
    ensure_eq!(budget_of(&group)?, (5 * u / 1000).to_string(), "the budget after refusals");
    for (text, errno) in [("0", libc::ERANGE), ("100", libc::ERANGE), ("x", libc::EINVAL)] {
        ensure_eq!(write_fails(&group, "cpu.ds.priority", text), Some(errno), "priority {text:?}");
    }
    for (text, errno) in [("1001", libc::ERANGE), ("-1", libc::EINVAL), ("x", libc::EINVAL)] {
        ensure_eq!(write_fails(&group, "cpu.ds.lead", text), Some(errno), "lead {text:?}");
    }
    let period = fs::write("/proc/sys/kernel/sched_ds_period_us", "1000").map_err(|error| error.raw_os_error());
    ensure_eq!(period, Err(Some(libc::EBUSY)), "another period although a group has a budget");
    group.set("cpu.ds.budget", "0")?;
    set_period(10 * u)?;
    set_period(PERIOD * u)
}

/// Checks that windows and budgets share a CPU. A request beyond the free capacity is refused, in either order.
pub(super) fn beside_windows() -> Check {
    let (u, device) = (unit_ns(), Device::open()?);
    let windows = |units: u64| Table::single(20 * u, 0, 0, units * u);
    let group = first_group("a", 15, 1)?;
    let refusal = Refusal { errno: libc::EBUSY, error: error::BUDGETS, index: 0, other: 600 };
    ensure_eq!(windows(8).try_install(&device), Err(refusal), "windows of 40 % beside budgets of 60 %");
    windows(6).install(&device)?;
    let more = (18 * u / 1000).to_string();
    ensure_eq!(write_fails(&group, "cpu.ds.budget", &more), Some(libc::EBUSY), "72 % beside windows of 30 %");
    group.set("cpu.ds.budget", &(16 * u / 1000).to_string())?;
    device.remove().explain("remove")?;
    group.set("cpu.ds.budget", &more)?;
    group.set("cpu.ds.budget", "0")?;
    windows(18).install(&device)
}

/// Checks that admitted deadline tasks keep their bandwidth, and that SCHED_DEADLINE admits only as much as budgets
/// leave.
pub(super) fn beside_deadline() -> Check {
    let u = unit_ns();
    let group = first_group("a", 10, 1)?;
    // The system's limit is 95 % of all CPUs together. The budgets' share is the same on each CPU.
    let percent = |of_each: u64| SchedAttr::deadline(of_each * 1_000_000, 100_000_000);
    let asks = |of_each: u64, errno: Option<i32>| {
        process::check_in_child(SECOND, || {
            let asked = sys::set_sched(0, percent(of_each)).err();
            ensure_eq!(asked, errno, "{of_each} % for a deadline task");
            // Otherwise the task would keep its bandwidth until its period ends.
            sys::set_sched(0, SchedAttr::other()).explain("SCHED_OTHER")
        })
    };
    asks(60, Some(libc::EBUSY))?;
    asks(40, None)?;
    let task = process::fork(|| match sys::set_sched(0, percent(40)) {
        Ok(()) => loop {
            sys::sleep(SECOND);
        },
        Err(errno) => errno,
    });
    let is_deadline = || sys::sched(task.pid).is_ok_and(|attr| attr.policy == libc::SCHED_DEADLINE as u32);
    ensure!(sys::eventually(SECOND, is_deadline), "no deadline task: {}", task.describe());
    let more = (16 * u / 1000).to_string();
    ensure_eq!(write_fails(&group, "cpu.ds.budget", &more), Some(libc::EBUSY), "64 % beside 40 %");
    ensure_eq!(budget_of(&group)?, (10 * u / 1000).to_string(), "the budget after that");
    task.kill(SECOND)
}

/// Checks that a refused budget takes no bandwidth from deadline tasks. Here the first CPU could have the budget, but
/// the second CPU's budget is longer than the period.
pub(super) fn claims_nothing() -> Check {
    let u = unit_ns();
    set_period(PERIOD * u)?;
    let group = Group::new("a")?;
    let text = format!("0={} 1={}", 20 * u / 1000, 26 * u / 1000);
    ensure_eq!(write_fails(&group, "cpu.ds.budget", &text), Some(libc::ERANGE), "budget {text:?}");
    ensure_eq!(budget_of(&group)?, "0", "the budget after that");
    let tasks = [80, 80].map(|percent| {
        process::fork(move || match sys::set_sched(0, SchedAttr::deadline(percent * 1_000_000, 100_000_000)) {
            Ok(()) => loop {
                sys::sleep(SECOND);
            },
            Err(errno) => errno,
        })
    });
    for task in tasks {
        let is_deadline = || sys::sched(task.pid).is_ok_and(|attr| attr.policy == libc::SCHED_DEADLINE as u32);
        ensure!(sys::eventually(SECOND, is_deadline), "a deadline task is not admitted: {}", task.describe());
    }
    tasks.iter().try_for_each(|task| task.kill(SECOND))
}

/// Checks that RLIMIT_RTPRIO allows SCHED_DS to a user in the group, and that only the administrator can write the
/// files.
pub(super) fn of_another_user() -> Check {
    let group = first_group("a", 5, 1)?;
    process::check_in_child(5 * SECOND, || {
        become_user_in(&group, 20)?;
        ensure_eq!(sys::set_sched(0, ds(21)), Err(libc::EPERM), "a priority above the limit");
        sys::set_sched(0, ds(20)).explain("SCHED_DS")?;
        ensure_eq!(sys::sched(0).explain("policy")?.policy, SCHED_DS, "policy");
        for file in ["budget", "priority", "fifo", "lead"] {
            ensure!(group.set(&format!("cpu.ds.{file}"), "1").is_err(), "anybody may write cpu.ds.{file}");
        }
        sys::set_sched(0, SchedAttr::other()).explain("SCHED_OTHER")
    })
}

/// Names after `cpu.ds.`, each with a value to write.
const FILES: [(&str, &str); 5] = [("budget", "0"), ("priority", "9"), ("fifo", "1"), ("lead", "1"), ("kthreads", "2")];

fn paths(group: &Group) -> impl Iterator<Item = String> + '_ {
    FILES.iter().map(|(file, _)| format!("{}/cpu.ds.{file}", group.path()))
}

fn opened(group: &Group) -> Check<Vec<File>> {
    let open = |path| File::options().write(true).open(&path).map_err(|error| format!("{path}: {error}"));
    paths(group).map(open).collect()
}

fn ensure_nothing_is_taken(files: &[File], whose: &str) -> Check {
    for (mut file, (name, text)) in files.iter().zip(FILES) {
        let errno = file.write(text.as_bytes()).err().and_then(|error| error.raw_os_error());
        ensure_eq!(errno, Some(libc::EPERM), "cpu.ds.{name}, {whose}");
    }
    Ok(())
}

/// Checks that the owner of a group's files and the root of a user namespace can change nothing through them. The
/// writer and the process that opened the file must both be privileged.
pub(super) fn delegated() -> Check {
    let u = unit_ns();
    let group = first_group("a", 5, 1)?;
    for path in paths(&group) {
        std::os::unix::fs::chown(&path, Some(NOBODY), None).map_err(|error| format!("{path}: {error}"))?;
    }
    // SAFETY: take numbers.
    let (become_user, end) = (|uid| unsafe { libc::seteuid(uid) }, |uid| unsafe { libc::setuid(uid) });
    process::check_in_child(5 * SECOND, || {
        let by_root = opened(&group)?;
        ensure_eq!(become_user(NOBODY), 0, "becoming somebody else");
        let by_user = opened(&group)?;
        ensure_nothing_is_taken(&by_root, "opened by root, written by its owner")?;
        ensure_nothing_is_taken(&by_user, "opened and written by its owner")?;
        ensure_eq!(become_user(0), 0, "becoming root again");
        ensure_nothing_is_taken(&by_user, "opened by its owner, written by root")?;
        ensure_eq!(end(NOBODY), 0, "becoming somebody else for good");
        unshare(libc::CLONE_NEWUSER)?;
        ensure_nothing_is_taken(&opened(&group)?, "by root of a user namespace")
    })?;
    ensure_eq!(budget_of(&group)?, (5 * u / 1000).to_string(), "the budget after that");
    // The refused write succeeds for a privileged user.
    ensure!(opened(&group)?[0].write(b"0").is_ok(), "root cannot write the budget");
    Ok(())
}
