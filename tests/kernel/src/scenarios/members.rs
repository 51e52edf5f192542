//! Joining, leaving, starting, stopping and removing while there are threads.

use macrotick_uapi::{Device, SCHED_TT};

use super::jobs::ensure_regular;
use super::{unit_ns, Scenario};
use crate::board::{Board, Job, Log};
use crate::check::{Check, Explain};
use crate::process::{self, member, periodic, Child, Ended};
use crate::sys::{self, SchedAttr};
use crate::table::Table;
use crate::{ensure, ensure_eq};

pub const ALL: &[Scenario] = &[
    Scenario::new("join_while_running", join_while_running),
    Scenario::new("stop_and_start", stop_and_start),
    Scenario::new("first_wait_enters", first_wait_enters),
    Scenario::new("stop_mid_job", stop_mid_job),
    Scenario::new("remove_while_waiting", remove_while_waiting),
    Scenario::new("remove_before_start", remove_before_start),
    Scenario::new("remove_mid_job", remove_mid_job).punctual(),
    Scenario::new("install_after_remove", install_after_remove),
    Scenario::new("bind_errors", bind_errors),
    Scenario::new("bind_by_pidfd", bind_by_pidfd).punctual(),
    Scenario::new("bind_a_sleeper_elsewhere", bind_a_sleeper_elsewhere).on(2),
    Scenario::new("bind_a_thread", bind_a_thread),
    Scenario::new("unbind", unbind),
    Scenario::new("unbind_yielding", unbind_yielding),
    Scenario::new("wait_interrupted", wait_interrupted),
    Scenario::new("stop_signal", stop_signal),
    Scenario::new("start_amid_waits", start_amid_waits).within(20_000),
];

const SECOND: u64 = 1_000_000_000;

/// Returns a table: `t` has [2, 6) of 20 units, and `other` has [10, 14).
fn table(u: u64) -> Table {
    Table::single(20 * u, 0, 2 * u, 4 * u).window("other", 0, 10 * u, 4 * u, 3)
}

fn join_while_running() -> Check {
    let (u, device) = (unit_ns(), Device::open()?);
    table(u).install(&device)?;
    let epoch = device.start(sys::now_ns() + 10 * u).explain("start")?;
    sys::sleep(55 * u);
    let logs = [Log::new(32), Log::new(32)];
    periodic("t", logs[0], u)?;
    sys::sleep(31 * u);
    periodic("other", logs[1], u)?;
    sys::sleep(200 * u);
    for (log, offset) in logs.iter().zip([2 * u, 10 * u]) {
        let jobs = log.jobs();
        ensure!(jobs.len() >= 9, "{} jobs in ten cycles: {jobs:?}", jobs.len());
        ensure_regular(&jobs, jobs[0].number, epoch, 20 * u, offset)?;
    }
    Ok(())
}

fn stop_and_start() -> Check {
    let (u, device, log) = (unit_ns(), Device::open()?, Log::new(64));
    table(u).install(&device)?;
    let child = periodic("t", log, u)?;
    for round in 0..4 {
        let before = log.count();
        let epoch = device.start(sys::now_ns() + 10 * u).explain("start")?;
        sys::sleep_until(epoch + 3 * 20 * u - u);
        ensure_eq!(log.count() - before, 3, "jobs of round {round}");
        ensure_regular(&log.jobs()[before..], 0, epoch, 20 * u, 2 * u)?;
        device.stop().explain("stop")?;
        ensure_eq!(sys::sched(child.pid).explain("getattr")?.policy, SCHED_TT, "policy while stopped");
        sys::sleep(60 * u);
        ensure_eq!(log.count() - before, 3, "jobs after the stop of round {round}");
    }
    Ok(())
}

/// Checks that the first wait enters the class even while no table runs. Otherwise a thread that others keep from
/// running would miss its first windows.
fn first_wait_enters() -> Check {
    let (u, device, log) = (unit_ns(), Device::open()?, Log::new(8));
    table(u).install(&device)?;
    let child = periodic("t", log, u)?;
    sys::sleep(20 * u);
    ensure_eq!(
        sys::sched(child.pid).explain("getattr")?.policy,
        SCHED_TT,
        "policy of a thread that waits for the start"
    );
    let hog = process::hog(SchedAttr::fifo(50));
    sys::set_affinity(hog.pid, &[0]).explain("pin the hog")?;
    let epoch = device.start(sys::now_ns() + 10 * u).explain("start")?;
    sys::sleep_until(epoch + 3 * 20 * u - u);
    ensure_eq!(log.count(), 3, "jobs beside a FIFO hog");
    ensure_regular(&log.jobs(), 0, epoch, 20 * u, 2 * u)
}

/// Checks that an interrupted job continues under SCHED_OTHER after a stop, and its thread takes part in the next run.
fn stop_mid_job() -> Check {
    let (u, device, log, board) = (unit_ns(), Device::open()?, Log::new(64), Board::new(1));
    table(u).install(&device)?;
    member("t", |device| loop {
        match device.wait() {
            Ok(wait) => log.push(&wait),
            Err(errno) => return errno,
        }
        sys::spin(30 * u);
        board.add(0, 1);
    })?;
    let epoch = device.start(sys::now_ns() + 10 * u).explain("start")?;
    sys::sleep_until(epoch + 8 * u);
    ensure_eq!((log.count(), board.get(0)), (1, 0), "jobs begun and done at the stop");
    device.stop().explain("stop")?;
    sys::sleep(60 * u);
    ensure_eq!((log.count(), board.get(0)), (1, 1), "jobs begun and done after the stop");
    let epoch = device.start(sys::now_ns() + 10 * u).explain("start again")?;
    sys::sleep_until(epoch + 8 * u);
    ensure_eq!(log.count(), 2, "jobs after the second start");
    ensure_regular(&log.jobs()[1..], 0, epoch, 20 * u, 2 * u)
}

fn remove_while_waiting() -> Check {
    let (u, device, log) = (unit_ns(), Device::open()?, Log::new(64));
    table(u).install(&device)?;
    let child = periodic("t", log, u)?;
    let epoch = device.start(sys::now_ns() + 10 * u).explain("start")?;
    sys::sleep_until(epoch + 50 * u);
    device.remove().explain("remove")?;
    ensure_eq!(child.wait(SECOND)?, Ended::Exited(libc::ESHUTDOWN), "the waiter's end");
    ensure_eq!(log.count(), 3, "jobs before the removal");
    Ok(())
}

fn remove_before_start() -> Check {
    let (u, device, log) = (unit_ns(), Device::open()?, Log::new(1));
    table(u).install(&device)?;
    let child = periodic("t", log, u)?;
    sys::sleep(10 * u);
    device.remove().explain("remove")?;
    ensure_eq!(child.wait(SECOND)?, Ended::Exited(libc::ESHUTDOWN), "the waiter's end");
    Ok(())
}

/// Checks that a thread that loses its table in the middle of a job continues under SCHED_OTHER, on all CPUs.
fn remove_mid_job() -> Check {
    let (u, device, log, board) = (unit_ns(), Device::open()?, Log::new(64), Board::new(2));
    table(u).install(&device)?;
    let child = member("t", |device| {
        let Ok(wait) = device.wait() else { return 50 };
        log.push(&wait);
        sys::spin(30 * u);
        board.set(0, u64::from(sys::sched(0).map_or(99, |attr| attr.policy)) + 1);
        board.set(1, sys::affinity(0).map_or(0, |cpus| cpus.len() as u64));
        device.wait().map_or_else(|errno| errno, |_| 51)
    })?;
    let epoch = device.start(sys::now_ns() + 10 * u).explain("start")?;
    sys::sleep_until(epoch + 8 * u);
    ensure_eq!(log.count(), 1, "jobs begun");
    device.remove().explain("remove")?;
    ensure_eq!(child.wait(SECOND)?, Ended::Exited(libc::ENOTCONN), "the next wait");
    ensure_eq!(board.get(0), 1, "policy after the removal, plus one");
    ensure_eq!(board.get(1), u64::from(sys::nr_cpus()), "CPUs after the removal");
    Ok(())
}

fn install_after_remove() -> Check {
    let (u, device) = (unit_ns(), Device::open()?);
    for round in 0..20 {
        table(u).install(&device)?;
        let log = Log::new(8);
        let child = periodic("t", log, u / 2)?;
        let epoch = device.start(sys::now_ns() + u).explain("start")?;
        sys::sleep_until(epoch + 9 * u);
        ensure_eq!(log.count(), 1, "jobs of round {round}");
        device.remove().explain("remove")?;
        // The error is ENOTCONN if the thread was about to wait again.
        let ended = child.wait(SECOND)?;
        let over = [libc::ESHUTDOWN, libc::ENOTCONN].map(Ended::Exited);
        ensure!(over.contains(&ended), "the waiter's end in round {round}: {ended:?}");
    }
    Ok(())
}

fn bind_errors() -> Check {
    let (u, device) = (unit_ns(), Device::open()?);
    ensure_eq!(device.bind(-1, "t"), Err(libc::ENOENT), "bind without a table");
    ensure_eq!(device.wait().map(drop), Err(libc::ENOTCONN), "wait unbound");
    ensure_eq!(device.unbind(-1), Err(libc::ENOTCONN), "unbind unbound");
    table(u).install(&device)?;
    ensure_eq!(device.bind(-1, "nobody"), Err(libc::ENOENT), "bind to an unknown entity");
    ensure_eq!(device.bind(-1, ""), Err(libc::ENOENT), "bind to no name");
    ensure_eq!(device.bind(-1, "tt"), Err(libc::ENOENT), "bind to a longer name");
    ensure_eq!(device.wait().map(drop), Err(libc::ENOTCONN), "wait unbound, with a table");
    ensure_eq!(device.bind(12345, "t"), Err(libc::EBADF), "a descriptor that is not open");
    ensure_eq!(device.bind(-2, "t"), Err(libc::EBADF), "descriptor -2");
    ensure_eq!(device.bind(0, "t"), Err(libc::EBADF), "a descriptor that is no pidfd");
    let dead = process::fork(|| 0);
    let pidfd = sys::pidfd_open(dead.pid, 0).explain("pidfd")?;
    dead.succeed(SECOND)?;
    ensure_eq!(device.bind(pidfd, "t"), Err(libc::ESRCH), "the pidfd of a dead process");
    let zombie = process::fork(|| 0);
    let pidfd = sys::pidfd_open(zombie.pid, 0).explain("pidfd")?;
    sys::sleep(20 * u);
    ensure_eq!(device.bind(pidfd, "t"), Err(libc::ESRCH), "the pidfd of a zombie");
    device.bind(-1, "t").explain("bind")?;
    ensure_eq!(device.bind(-1, "t"), Err(libc::EBUSY), "bind twice");
    ensure_eq!(device.bind(-1, "other"), Err(libc::EBUSY), "bind to a second entity");
    ensure_eq!(device.stats(0).explain("stats")?.nr_threads, 1, "threads");
    device.unbind(-1).explain("unbind")?;
    ensure_eq!(device.unbind(-1), Err(libc::ENOTCONN), "unbind twice");
    device.bind(-1, "other").explain("bind to another entity")?;
    ensure_eq!(device.stats(0).explain("stats")?.nr_threads, 0, "threads of the first");
    ensure_eq!(device.stats(1).explain("stats")?.nr_threads, 1, "threads of the second");
    Ok(())
}

/// Checks a process that another process binds before it waits.
fn bind_by_pidfd() -> Check {
    let (u, device, log, go) = (unit_ns(), Device::open()?, Log::new(32), Board::new(2));
    table(u).install(&device)?;
    process::fork(|| {
        let Ok(device) = Device::open() else { return 1 };
        while go.get(0) == 0 {
            sys::sleep(u);
        }
        loop {
            match device.wait() {
                Ok(wait) => log.push(&wait),
                Err(errno) => return errno,
            }
        }
    });
    let sleeper = process::fork(|| {
        let _ = sys::set_affinity(0, &[0]);
        go.set(1, 1);
        sys::sleep(3600 * SECOND);
        0
    });
    ensure!(sys::eventually(SECOND, || go.get(1) == 1), "the sleeper did not begin");
    let first = process::fork(|| sys::hog());
    for child in [&sleeper, &first] {
        let pidfd = sys::pidfd_open(child.pid, 0).explain("pidfd")?;
        device.bind(pidfd, "other").explain("bind another process")?;
        ensure_eq!(sys::sched(child.pid).explain("getattr")?.policy, 0, "the policy of a bound thread");
    }
    ensure_eq!(device.stats(1).explain("stats")?.nr_threads, 2, "threads");
    // One sleeping and one busy process enter the class by policy, and leave it by unbind.
    for child in [&sleeper, &first] {
        sys::set_sched(child.pid, SchedAttr::policy(SCHED_TT)).explain("set SCHED_TT")?;
    }
    let epoch = device.start(sys::now_ns() + 10 * u).explain("start")?;
    sys::sleep_until(epoch + 100 * u);
    let stats = device.stats(1).explain("stats")?;
    let share = stats.runtime_ns as f64 / (5 * 4 * u) as f64;
    ensure!((0.7..1.05).contains(&share), "the busy process got {} ns of 5 windows of 4 x {u}", stats.runtime_ns);
    ensure_eq!(stats.preemptions, 5, "preemptions at the ends of 5 windows");
    for child in [&sleeper, &first] {
        let pidfd = sys::pidfd_open(child.pid, 0).explain("pidfd")?;
        device.unbind(pidfd).explain("unbind another process")?;
        ensure_eq!(sys::sched(child.pid).explain("getattr")?.policy, 0, "the policy after unbind");
        child.kill(SECOND)?;
    }
    ensure_eq!(device.stats(1).explain("stats")?.nr_threads, 0, "threads at the end");
    Ok(())
}

/// Checks a sleeping thread with a new affinity: it stays on the CPU where it fell asleep until it wakes up.
fn bind_a_sleeper_elsewhere() -> Check {
    let (u, device, board) = (unit_ns(), Device::open()?, Board::new(1));
    table(u).install(&device)?;
    let sleeper = process::fork(|| {
        let _ = sys::set_affinity(0, &[1]);
        loop {
            board.add(0, 1);
            sys::sleep(SECOND / 2);
        }
    });
    ensure!(sys::eventually(SECOND, || board.get(0) == 1), "the sleeper did not begin");
    sys::sleep(SECOND / 4);
    let pidfd = sys::pidfd_open(sleeper.pid, 0).explain("pidfd")?;
    ensure_eq!(device.bind(pidfd, "t"), Err(libc::EAGAIN), "bind while it sleeps on another CPU");
    ensure_eq!(sys::affinity(sleeper.pid).explain("affinity")?, [1], "affinity afterwards");
    sys::set_affinity(sleeper.pid, &[0]).explain("set affinity")?;
    ensure!(sys::eventually(SECOND, || board.get(0) == 2), "the sleeper did not wake up");
    device.bind(pidfd, "t").explain("bind once it is there")?;
    Ok(())
}

fn bind_a_thread() -> Check {
    let (u, device, log, board) = (unit_ns(), Device::open()?, Log::new(32), Board::new(1));
    table(u).install(&device)?;
    process::fork(|| {
        let thread = std::thread::spawn(move || {
            board.set(0, sys::gettid() as u64);
            let Ok(device) = Device::open() else { return };
            while board.get(0) != 0 {
                sys::sleep(u);
            }
            while let Ok(wait) = device.wait() {
                log.push(&wait);
            }
        });
        let _ = thread.join();
        0
    });
    ensure!(sys::eventually(SECOND, || board.get(0) != 0), "no thread");
    let tid = board.get(0) as i32;
    let pidfd = sys::pidfd_open(tid, sys::PIDFD_THREAD).explain("pidfd of a thread")?;
    device.bind(pidfd, "t").explain("bind a thread")?;
    board.set(0, 0);
    let epoch = device.start(sys::now_ns() + 20 * u).explain("start")?;
    sys::sleep_until(epoch + 50 * u);
    ensure_eq!(log.count(), 3, "jobs");
    ensure_regular(&log.jobs(), 0, epoch, 20 * u, 2 * u)?;
    ensure_eq!(device.stats(0).explain("stats")?.nr_threads, 1, "threads");
    Ok(())
}

fn unbind() -> Check {
    let (u, device, log) = (unit_ns(), Device::open()?, Log::new(32));
    table(u).install(&device)?;
    let waiting = periodic("t", log, u)?;
    let epoch = device.start(sys::now_ns() + 10 * u).explain("start")?;
    sys::sleep_until(epoch + 30 * u);
    let pidfd = sys::pidfd_open(waiting.pid, 0).explain("pidfd")?;
    device.unbind(pidfd).explain("unbind")?;
    ensure_eq!(waiting.wait(SECOND)?, Ended::Exited(libc::ESHUTDOWN), "the end of a waiter that was unbound");
    let own = member("t", |device| {
        let first = device.wait();
        let left = device.unbind(-1);
        let policy = sys::sched(0).map(|attr| attr.policy);
        sys::spin(u);
        let again = device.bind(-1, "t");
        let second = device.wait();
        i32::from((left, policy, again) != (Ok(()), Ok(0), Ok(())) || first.is_err() || second.is_err())
    })?;
    own.succeed(SECOND)
}

/// Checks waiters that a SCHED_IDLE process unbinds. They preempt it as soon as they are out of the class, and must not
/// return to the class.
fn unbind_yielding() -> Check {
    let (u, device) = (unit_ns(), Device::open()?);
    table(u).install(&device)?;
    let waiters = (0..20).map(|_| member("t", wait_for_end)).collect::<Check<Vec<_>>>()?;
    let epoch = device.start(sys::now_ns() + 10 * u).explain("start")?;
    sys::sleep_until(epoch + 30 * u);
    let pidfds = waiters.iter().map(|waiter| sys::pidfd_open(waiter.pid, 0)).collect::<Result<Vec<_>, _>>();
    let pidfds = pidfds.explain("pidfds")?;
    let idle = process::fork(|| {
        let yields =
            sys::set_affinity(0, &[0]).is_ok() && sys::set_sched(0, SchedAttr::policy(libc::SCHED_IDLE as u32)).is_ok();
        // The calls are at different points of the time slice.
        let unbind = |(n, fd): (u64, &i32)| (sys::spin(n * u / 40), device.unbind(*fd)).1;
        i32::from(!yields || !(0..).zip(&pidfds).map(unbind).all(|unbound| unbound.is_ok()))
    });
    idle.succeed(SECOND)?;
    for waiter in waiters {
        ensure_eq!(waiter.wait(SECOND)?, Ended::Exited(libc::ESHUTDOWN), "the end of a waiter that was unbound");
    }
    Ok(())
}

/// Waits for jobs until an error, and returns it.
fn wait_for_end(device: &Device) -> i32 {
    loop {
        if let Err(errno) = device.wait() {
            return errno;
        }
    }
}

extern "C" fn count_signal(_: i32) {
    // SAFETY: atomic; the handler's only effect.
    SIGNALS.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
}
static SIGNALS: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);

/// Checks that signals during a wait are handled, and no job is lost.
fn wait_interrupted() -> Check {
    let (u, device, log, board) = (unit_ns(), Device::open()?, Log::new(64), Board::new(2));
    table(u).install(&device)?;
    let child = member("t", |device| {
        // SAFETY: the handler only counts.
        unsafe { libc::signal(libc::SIGUSR1, count_signal as *const () as usize) };
        loop {
            match device.wait() {
                Ok(wait) => log.push(&wait),
                Err(libc::EINTR) => board.add(0, 1),
                Err(errno) => return errno,
            }
            board.set(1, SIGNALS.load(std::sync::atomic::Ordering::SeqCst));
        }
    })?;
    sys::sleep(20 * u);
    child.signal(libc::SIGUSR1);
    ensure!(sys::eventually(SECOND, || board.get(1) == 1), "no handler ran while no table runs");
    ensure_eq!(board.get(0), 1, "waits that ended with EINTR");
    let epoch = device.start(sys::now_ns() + 10 * u).explain("start")?;
    for cycle in 0..5 {
        sys::sleep_until(epoch + cycle * 20 * u + 15 * u);
        child.signal(libc::SIGUSR1);
    }
    sys::sleep_until(epoch + 6 * 20 * u - u);
    ensure_eq!(board.get(1), 6, "handlers that ran");
    let jobs: Vec<Job> = log.jobs();
    ensure_eq!(jobs.len(), 6, "jobs");
    ensure_regular(&jobs, 0, epoch, 20 * u, 2 * u)
}

/// Checks SIGSTOP and SIGCONT: the thread stops, others continue, and it returns on the grid. Before the table starts,
/// they do not end its wait, because no handler runs.
fn stop_signal() -> Check {
    let (u, device) = (unit_ns(), Device::open()?);
    let logs = [Log::new(64), Log::new(64)];
    table(u).install(&device)?;
    let child = periodic("t", logs[0], u)?;
    periodic("other", logs[1], u)?;
    for signal in [libc::SIGSTOP, libc::SIGCONT] {
        sys::sleep(20 * u);
        child.signal(signal);
    }
    let epoch = device.start(sys::now_ns() + 10 * u).explain("start")?;
    sys::sleep_until(epoch + 35 * u);
    child.signal(libc::SIGSTOP);
    sys::sleep_until(epoch + 135 * u);
    let stopped = logs[0].count();
    ensure!((2..=3).contains(&stopped), "{stopped} jobs before the stop");
    child.signal(libc::SIGCONT);
    sys::sleep_until(epoch + 239 * u);
    ensure_eq!(logs[1].count(), 12, "jobs of the other");
    ensure_regular(&logs[1].jobs(), 0, epoch, 20 * u, 10 * u)?;
    let jobs = logs[0].jobs();
    let last = jobs.last().map(|job| job.number);
    ensure_eq!(last, Some(11), "the last job of the thread that continued");
    ensure!(jobs.iter().all(|job| job.nominal_ns == epoch + job.number * 20 * u + 2 * u), "off the grid: {jobs:?}");
    Ok(())
}

/// Checks a start while a thread enters or leaves its first wait and may hold the lock of the queue of waiters. No
/// window releases a job that would let the thread continue.
fn start_amid_waits() -> Check {
    let (u, device, board) = (unit_ns(), Device::open()?, Board::new(1));
    Table::new(20 * u).window("t", 0, 0, 4 * u, 0).install(&device)?;
    let waiter = member("t", |device| {
        // SAFETY: the handler only counts.
        unsafe { libc::signal(libc::SIGUSR1, count_signal as *const () as usize) };
        loop {
            match device.wait() {
                Err(libc::EINTR) => board.add(0, 1),
                other => return other.err().unwrap_or(0),
            }
        }
    })?;
    let pid = waiter.pid;
    process::fork(|| {
        let _ = sys::set_sched(0, SchedAttr::fifo(1));
        loop {
            Child { pid }.signal(libc::SIGUSR1);
            sys::sleep(u / 5);
        }
    });
    for round in 0..1000 {
        sys::sleep(u + round * 371 % u);
        device.start(0).explain("start")?;
        device.stop().explain("stop")?;
    }
    ensure!(board.get(0) > 1000, "only {} waits were interrupted", board.get(0));
    ensure!(waiter.poll().is_none(), "the waiter ended");
    Ok(())
}
