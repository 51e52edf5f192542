//! Threads end in every possible state, and the others continue.

use macrotick_uapi::{state, Device, SCHED_TT};

use super::jobs::ensure_regular;
use super::{unit_ns, Scenario};
use crate::board::{Board, Log};
use crate::check::{Check, Explain};
use crate::process::{self, member, member_hog, periodic, Child, Ended};
use crate::sys::{self, SchedAttr};
use crate::table::Table;
use crate::{ensure, ensure_eq};

pub const ALL: &[Scenario] = &[
    Scenario::new("death_by_exit", by_exit),
    Scenario::new("death_by_segfault", by_segfault),
    Scenario::new("death_while_waiting", while_waiting),
    Scenario::new("death_while_stopped", while_stopped),
    Scenario::new("death_in_its_window", in_its_window),
    Scenario::new("death_outside_its_window", outside_its_window),
    Scenario::new("death_while_blocked", while_blocked),
    Scenario::new("death_under_a_busy_window", under_a_busy_window),
    Scenario::new("death_by_sigterm_outside", by_sigterm_outside),
    Scenario::new("death_of_a_group", of_a_group),
    Scenario::new("death_by_exit_group", by_exit_group),
    Scenario::new("death_of_who_installed", of_who_installed),
    Scenario::new("exec_in_the_class", exec_in_the_class),
    Scenario::new("exec_from_a_thread", exec_from_a_thread),
];

const SECOND: u64 = 1_000_000_000;
/// A dying thread must not wait for its next window: these tables have cycles far longer than this time.
const SOON: u64 = SECOND / 4;

/// The victim's entity `t` and a witness in cycles of 20 units. The victim's end must not affect the witness.
struct Stage {
    device: Device,
    witness: Log,
    epoch: u64,
    u: u64,
}

impl Stage {
    /// Runs a victim beside the witness.
    fn new(victim: impl FnOnce(&Device) -> i32) -> Check<(Stage, Child)> {
        let (u, device, witness) = (unit_ns(), Device::open()?, Log::new(1024));
        Table::single(20 * u, 0, 2 * u, 4 * u).window("witness", 0, 10 * u, 4 * u, 3).install(&device)?;
        periodic("witness", witness, u)?;
        let child = member("t", victim)?;
        let epoch = device.start(sys::now_ns() + 20 * u).explain("start")?;
        Ok((Stage { device, witness, epoch, u }, child))
    }

    /// Checks that the victim has left the entity, and the witness has had all its jobs in 10 cycles.
    fn ensure_undisturbed(&self) -> Check {
        let cycle = 20 * self.u;
        let cycles = (sys::now_ns().saturating_sub(self.epoch) / cycle + 2).max(10);
        sys::sleep_until(self.epoch + cycles * cycle - self.u);
        ensure_eq!(self.witness.count() as u64, cycles, "jobs of the witness");
        ensure_regular(&self.witness.jobs(), 0, self.epoch, 20 * self.u, 10 * self.u)?;
        ensure_eq!(self.device.stats(0).explain("stats")?.nr_threads, 0, "threads that remain");
        let again = Log::new(4);
        periodic("t", again, self.u)?;
        sys::sleep(45 * self.u);
        ensure!(again.count() >= 2, "{} jobs of the victim's successor", again.count());
        Ok(())
    }
}

fn by_exit() -> Check {
    let (stage, child) = Stage::new(|device| i32::from(device.wait().is_err()))?;
    child.succeed(SOON)?;
    stage.ensure_undisturbed()
}

fn by_segfault() -> Check {
    let (stage, child) = Stage::new(|device| {
        let _ = device.wait();
        // SAFETY: none; the test needs the fault.
        unsafe { std::ptr::null_mut::<u32>().write_volatile(1) };
        0
    })?;
    ensure_eq!(child.wait(SOON)?, Ended::Signaled(libc::SIGSEGV), "the victim's end");
    stage.ensure_undisturbed()
}

fn while_waiting() -> Check {
    let (stage, child) = Stage::new(|device| loop {
        let _ = device.wait();
    })?;
    sys::sleep_until(stage.epoch + 30 * stage.u);
    child.kill(SOON)?;
    stage.ensure_undisturbed()
}

fn while_stopped() -> Check {
    let (stage, child) = Stage::new(|device| loop {
        let _ = device.wait();
    })?;
    sys::sleep_until(stage.epoch + 30 * stage.u);
    stage.device.stop().explain("stop")?;
    child.kill(SOON)?;
    ensure_eq!(stage.device.stats(0).explain("stats")?.nr_threads, 0, "threads that remain");
    Ok(())
}

fn in_its_window() -> Check {
    let (stage, child) = Stage::new(|device| {
        let _ = device.wait();
        sys::hog()
    })?;
    // No thread outside the entity can preempt the victim in its window: the signal comes from another member.
    sys::sleep_until(stage.epoch + 30 * stage.u);
    let pid = child.pid;
    let killer = member("t", move |device| {
        let _ = device.wait();
        // SAFETY: takes numbers.
        unsafe { libc::kill(pid, libc::SIGKILL) };
        0
    })?;
    sys::sleep_until(stage.epoch + 90 * stage.u);
    child.kill(SOON)?;
    killer.succeed(SECOND)?;
    stage.ensure_undisturbed()
}

/// Checks a victim that is preempted in the middle of a job. The table's next window is ten seconds away.
fn outside_its_window() -> Check {
    let (u, device) = (unit_ns(), Device::open()?);
    Table::single(10 * SECOND, 0, 0, 4 * u).install(&device)?;
    let busy = member("t", |device| {
        let _ = device.wait();
        sys::hog()
    })?;
    let waiting = member("t", |device| {
        let _ = device.wait();
        let _ = device.wait();
        0
    })?;
    let unbegun = member_hog("t")?;
    let hog = process::hog(SchedAttr::other());
    let epoch = device.start(sys::now_ns() + 100 * u).explain("start")?;
    sys::sleep_until(epoch + 20 * u);
    let begin = sys::now_ns();
    for child in [busy, waiting, unbegun] {
        child.kill(SOON)?;
    }
    ensure!(sys::now_ns() - begin < SECOND, "dying took {} ns", sys::now_ns() - begin);
    ensure_eq!(device.stats(0).explain("stats")?.nr_threads, 0, "threads that remain");
    hog.kill(SECOND)
}

fn while_blocked() -> Check {
    let mut pipe = [0; 2];
    // SAFETY: writes two descriptors.
    unsafe { libc::pipe(pipe.as_mut_ptr()) };
    let (stage, child) = Stage::new(|device| {
        let _ = device.wait();
        // SAFETY: one byte of a local variable.
        unsafe { libc::read(pipe[0], (&mut 0u8 as *mut u8).cast(), 1) };
        0
    })?;
    sys::sleep_until(stage.epoch + 30 * stage.u);
    child.kill(SOON)?;
    stage.ensure_undisturbed()
}

/// Checks that dying threads get the rest of the time when another entity's window takes nearly all of it.
fn under_a_busy_window() -> Check {
    let (u, device) = (unit_ns(), Device::open()?);
    let table = Table::new(100 * u).window("busy", 0, 0, 90 * u, 0).window("t", 0, 91 * u, u, 3);
    table.install(&device)?;
    member_hog("busy")?;
    let victims: Vec<Child> = (0..4)
        .map(|_| {
            member("t", |device| {
                let _ = device.wait();
                sys::hog()
            })
        })
        .collect::<Check<_>>()?;
    let epoch = device.start(sys::now_ns() + 20 * u).explain("start")?;
    sys::sleep_until(epoch + 195 * u);
    victims.iter().try_for_each(|victim| victim.kill(SECOND))?;
    ensure_eq!(device.stats(1).explain("stats")?.nr_threads, 0, "threads that remain");
    Ok(())
}

/// Checks that a signal without a handler other than SIGKILL is also fatal outside the window.
fn by_sigterm_outside() -> Check {
    let (u, device) = (unit_ns(), Device::open()?);
    Table::single(10 * SECOND, 0, 0, 4 * u).install(&device)?;
    let child = member("t", |device| {
        let _ = device.wait();
        sys::hog()
    })?;
    let epoch = device.start(sys::now_ns() + 50 * u).explain("start")?;
    sys::sleep_until(epoch + 20 * u);
    child.signal(libc::SIGTERM);
    ensure_eq!(child.wait(SOON)?, Ended::Signaled(libc::SIGTERM), "the victim's end");
    Ok(())
}

/// Starts threads that are members by inheritance, in different states, and then calls `then`.
fn with_threads(device: &Device, then: impl FnOnce() -> i32) -> i32 {
    if sys::set_sched(0, SchedAttr::policy(SCHED_TT)).is_err() {
        return 1;
    }
    let _ = device.wait();
    // This thread pauses: an endlessly busy thread would keep all others of the entity from running.
    std::thread::spawn(|| loop {
        sys::spin(200_000);
        sys::sleep(100_000);
    });
    std::thread::spawn(|| {
        let Ok(device) = Device::open() else { return };
        while device.wait().is_ok() {}
    });
    std::thread::spawn(|| sys::sleep(3600 * SECOND));
    then()
}

fn of_a_group() -> Check {
    let (stage, child) = Stage::new(|device| {
        with_threads(device, || loop {
            sys::spin(100_000);
            sys::sleep(100_000);
        })
    })?;
    sys::sleep_until(stage.epoch + 90 * stage.u);
    let four = || stage.device.stats(0).is_ok_and(|stats| stats.nr_threads == 4);
    ensure!(sys::eventually(SECOND, four), "not all threads joined");
    child.kill(SECOND)?;
    stage.ensure_undisturbed()
}

fn by_exit_group() -> Check {
    let (stage, child) = Stage::new(|device| with_threads(device, || 7))?;
    ensure_eq!(child.wait(SECOND)?, Ended::Exited(7), "the victim's end");
    stage.ensure_undisturbed()
}

/// Checks that a table has no owner: the process that installed it, started it and bound the threads may end.
fn of_who_installed() -> Check {
    outlives(|owner| owner.succeed(SECOND))?;
    outlives(|owner| owner.kill(SECOND))
}

fn outlives(end: fn(&Child) -> Check) -> Check {
    let (u, log, ready, epoch) = (unit_ns(), Log::new(64), Board::new(1), Board::new(1));
    let sibling = process::fork(|| process::wait_once_bound(ready, log));
    ensure!(sys::eventually(SECOND, || ready.get(0) != 0), "no sibling");
    let owner = process::fork(|| match install_and_start(sibling, u) {
        Ok(begins) => {
            epoch.set(0, begins);
            // Leaves time for the process that kills this one.
            (0..50).for_each(|_| sys::sleep(u));
            0
        }
        Err(reason) => {
            eprintln!("{reason}");
            1
        }
    });
    ensure!(sys::eventually(SECOND, || epoch.get(0) != 0), "no table: {:?}", owner.poll());
    let epoch = epoch.get(0);
    end(&owner)?;
    let ended = sys::now_ns();
    let cycles = ended.saturating_sub(epoch) / (20 * u) + 10;
    sys::sleep_until(epoch + cycles * 20 * u - u);
    ensure_eq!(log.count() as u64, cycles, "jobs, ten of them after the end of who installed the table");
    ensure_regular(&log.jobs(), 0, epoch, 20 * u, 2 * u)?;
    process::check_in_child(SECOND, || {
        let device = Device::open()?;
        let (get, stats) = (device.get().explain("get")?, device.stats(0).explain("stats")?);
        ensure_eq!((get.state, get.epoch_ns), (state::RUNNING, epoch), "state and epoch");
        ensure_eq!((stats.nr_threads, stats.lost), (1, 0), "threads and lost");
        device.stop().explain("stop")?;
        ensure_eq!(device.get().explain("get")?.state, state::STOPPED, "state once stopped");
        device.remove().explain("remove")?;
        ensure_eq!(device.stats(0).map(drop), Err(libc::ENOENT), "counters once removed");
        Ok(())
    })?;
    ensure_eq!(sibling.wait(SECOND)?, Ended::Exited(libc::ESHUTDOWN), "the wait once the table is removed");
    Ok(())
}

fn install_and_start(member: Child, u: u64) -> Check<u64> {
    let device = Device::open()?;
    Table::single(20 * u, 0, 2 * u, 4 * u).install(&device)?;
    let pidfd = sys::pidfd_open(member.pid, 0).explain("pidfd")?;
    device.bind(pidfd, "t").explain("bind")?;
    device.start(sys::now_ns() + 20 * u).explain("start")
}

pub(super) fn exec(program: &str, arguments: &[&str]) -> i32 {
    use std::os::unix::process::CommandExt;
    let error = std::process::Command::new(program).args(arguments).exec();
    error.raw_os_error().unwrap_or(1)
}

fn exec_in_the_class() -> Check {
    let (stage, child) = Stage::new(|device| {
        let _ = device.wait();
        exec("/proc/self/exe", &["jobs", "3"])
    })?;
    child.succeed(SECOND)?;
    ensure!(stage.device.stats(0).explain("stats")?.completions >= 3, "the new program had no jobs");
    stage.ensure_undisturbed()
}

/// Checks exec(2) from a thread that is not the first one: the others end, and it gets the first thread's identity.
fn exec_from_a_thread() -> Check {
    let board = Board::new(1);
    let (stage, child) = Stage::new(|device| {
        if device.wait().is_err() {
            return 1;
        }
        std::thread::spawn(move || {
            let Ok(device) = Device::open() else { return };
            let _ = device.wait();
            board.set(0, 1);
            exec("/proc/self/exe", &["jobs", "3"]);
        });
        while device.wait().is_ok() {}
        2
    })?;
    child.succeed(SECOND)?;
    ensure_eq!(board.get(0), 1, "the thread's own job");
    stage.ensure_undisturbed()
}
