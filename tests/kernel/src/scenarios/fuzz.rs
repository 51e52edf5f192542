//! Random calls from several processes. Their results hardly matter. The kernel must survive, keep no memory, and work
//! afterwards.

mod caller;
mod garbage;
mod gates;
mod refused;
mod tables;
mod tally;

use macrotick_uapi::{self as abi, Device, SCHED_DS, SCHED_TT};

use self::caller::{Caller, Shared, PROCESSES};
use self::refused::Refused;
use self::tally::Tally;
use super::jobs::ensure_regular;
use super::{is_slow, unit_ns, Scenario};
use crate::board::{Board, Log};
use crate::check::{Check, Explain};
use crate::group::{self, Group};
use crate::process::{self, periodic, Child};
use crate::random::{variation, Random};
use crate::slab::Slabs;
use crate::sys::{self, SchedAttr};
use crate::table::Table;
use crate::wire::Wire;
use crate::{ensure, ensure_eq};

pub const ALL: &[Scenario] = &[
    Scenario::new("fuzz_1", || fuzz(1, 6000)).within(60_000),
    Scenario::new("fuzz_2", || fuzz(2, 6000)).within(60_000),
    Scenario::new("fuzz_hotplug", || fuzz(1000, 4000)).on(2).within(60_000),
    Scenario::new("fuzz_refused", || refused(2000, if is_slow() { 300 } else { 3000 })).within(120_000),
    Scenario::new("full_fuzz_refused", || refused(2001, 100_000)).within(6_000_000),
    Scenario::new("full_fuzz_3", || fuzz(3, 60_000)).within(600_000),
    Scenario::new("full_fuzz_4", || fuzz(4, 60_000)).within(600_000),
    Scenario::new("full_fuzz_hotplug_long", || fuzz(1001, 85_000)).on(2).within(600_000),
];

/// The first seed with hotplug of CPUs.
const WITH_HOTPLUG: u64 = 1000;

const SECOND: u64 = 1_000_000_000;

/// The beginning of the line that reports the number of calls to the host.
pub const CALLS_OF: &str = "# calls of the device and of control groups: ";

/// Makes at least this many calls of the device and of control groups, and other calls between them.
fn fuzz(seed: u64, calls: u64) -> Check {
    let (u, board, cpus) = (unit_ns(), Board::new(Shared::WORDS), sys::nr_cpus());
    let device = Device::open()?;
    process::adopt();
    // The kernel keeps some memory after the first network namespaces.
    drop(Wire::new()?);
    let before = Slabs::now();
    ensure!(!is_slow() || !before.is_empty(), "the debug kernel does not tell of its memory");
    let outer = Group::new("outer")?;
    outer.set("cgroup.subtree_control", "+cpu")?;
    let groups = [Group::new("other")?, outer.child("inner")?, outer];
    let kernel_thread = process::kernel_thread("ksoftirqd/0")?;
    let hotplug = seed >= WITH_HOTPLUG && cpus > 1;
    let shared = Shared { board, tally: Tally::new(), u, cpus, hotplug, groups, kernel_thread };
    let wire = Wire::new()?;
    drive(&device, &shared, seed, calls)?;
    drop(wire);
    println!("{CALLS_OF}{}, seed {seed}", shared.tally.interface());
    println!("# in all {}: {}", shared.tally.total(), shared.tally.describe());
    nothing_is_left(&device, &before, cpus)?;
    still_works(u, cpus)
}

/// Makes a call with a pidfd, and closes the pidfd: a fuzzer's process makes many of them.
fn with_pidfd(whom: i32, call: impl FnOnce(i32) -> Result<(), i32>) -> Check {
    let pidfd = sys::pidfd_open(whom, 0).explain("pidfd")?;
    let result = call(pidfd);
    // SAFETY: a descriptor of our own.
    unsafe { libc::close(pidfd) };
    result.explain("with somebody")
}

/// Makes this many calls of one process; see `Refused`.
fn refused(seed: u64, calls: u64) -> Check {
    let (u, cpus, device) = (unit_ns(), sys::nr_cpus(), Device::open()?);
    process::adopt();
    let before = Slabs::now();
    let refused = Refused::new(Random::new(seed ^ variation() << 32), u, cpus)?.run(calls)?;
    println!("{CALLS_OF}{calls}, seed {seed}, {refused} refused");
    ensure!(calls / 4 < refused && refused < calls * 3 / 4, "{refused} of {calls} calls are refused");
    ensure!(sys::eventually(10 * SECOND, process::end_all), "processes do not end");
    let sysctls =
        [("sched_rt_period_us", "1000000"), ("sched_rt_runtime_us", "950000"), ("sched_ds_period_us", "2500")];
    for (name, value) in sysctls {
        let _ = std::fs::write(format!("/proc/sys/kernel/{name}"), value);
    }
    nothing_is_left(&device, &before, cpus)?;
    still_works(u, cpus)
}

/// Lets the processes make calls, and ends them.
fn drive(device: &Device, shared: &Shared, seed: u64, calls: u64) -> Check {
    let (u, tally) = (shared.u, shared.tally);
    let mut random = Random::new(seed ^ variation() << 32);
    let mut begin = |slot: usize| {
        let random = Random::new(random.number());
        let child = process::fork(|| match Caller::new(shared.clone(), random) {
            Ok(mut caller) => caller.run(),
            Err(_) => 1,
        });
        shared.board.set(slot, child.pid as u64);
        child
    };
    let mut children: Vec<Child> = (0..PROCESSES).map(&mut begin).collect();
    let (mut before, mut victims) = (u64::MAX, 0);
    while tally.interface() < calls {
        sys::sleep(40 * u);
        let now = tally.total();
        // If all processes wait for jobs that no window releases, or are frozen or stopped, then one of them must end.
        // It may be blocked by another one, so the next victim is a different one.
        if now == before {
            children[victims % PROCESSES].signal(libc::SIGKILL);
            victims += 1;
        }
        before = now;
        for (slot, child) in children.iter_mut().enumerate() {
            child.signal(libc::SIGCONT);
            if child.poll().is_some() {
                *child = begin(slot);
            }
        }
        // If all processes wait for a table that no process starts, then this one starts it.
        if device.get().explain("get")?.state != abi::state::RUNNING {
            let _ = tables::table(&mut Random::new(now), u, shared.cpus).try_install(device);
            let _ = device.start(0);
        }
    }
    let left = || process::descendants().into_iter().map(|(_, stat)| stat).collect::<Vec<_>>();
    ensure!(sys::eventually(10 * SECOND, process::end_all), "processes do not end: {:?}", left());
    let _ = device.remove();
    sys::set_sched(shared.kernel_thread, SchedAttr::other()).explain("the kernel thread's policy")
}

/// Checks that no table, no thread in the class, no group and no memory are left, except memory that the kernel always
/// keeps.
pub(super) fn nothing_is_left(device: &Device, before: &Slabs, cpus: u32) -> Check {
    let _ = device.remove();
    let get = device.get().explain("get")?;
    ensure_eq!((get.state, get.nr_entities, get.nr_windows), (abi::state::EMPTY, 0, 0), "the table afterwards");
    ensure_eq!(device.stats(0).err(), Some(libc::ENOENT), "counters afterwards");
    group::remove_all()?;
    for cpu in 1..cpus {
        let _ = sys::set_online(cpu, true);
    }
    ensure!(sys::eventually(SECOND, || in_the_class().is_empty()), "in the class afterwards: {:?}", in_the_class());
    let mut grown = String::new();
    // RCU and the workers free memory with a delay.
    sys::eventually(5 * SECOND, || {
        sys::sleep(SECOND / 2);
        grown = Slabs::now().since(before);
        grown.is_empty()
    });
    ensure!(grown.is_empty(), "memory afterwards: {grown}");
    Ok(())
}

/// Returns the threads with a policy of ours, including kernel threads.
fn in_the_class() -> Vec<i32> {
    let threads = process::numbers_in("/proc").into_iter().flat_map(process::threads_of);
    threads.filter(|tid| sys::sched(*tid).is_ok_and(|attr| [SCHED_TT, SCHED_DS].contains(&attr.policy))).collect()
}

/// Checks that a simple table runs as usual after all of this.
fn still_works(u: u64, cpus: u32) -> Check {
    let device = Device::open()?;
    let log = Log::new(8);
    Table::single(20 * u, 0, 2 * u, 4 * u).install(&device)?;
    periodic("t", log, u)?;
    let epoch = device.start(sys::now_ns() + 10 * u).explain("start")?;
    if is_slow() && cpus > 1 {
        // Jobs are late or lost while other CPUs have their turn.
        ensure!(sys::eventually(10 * SECOND, || log.count() >= 3), "{} jobs afterwards", log.count());
    } else {
        sys::sleep_until(epoch + 3 * 20 * u - u);
        ensure_eq!(log.count(), 3, "jobs afterwards");
        ensure_regular(&log.jobs(), 0, epoch, 20 * u, 2 * u)?;
    }
    let threads = device.stats(0).explain("stats")?.nr_threads;
    ensure!(threads == 1, "{threads} threads afterwards");
    Ok(())
}
