//! TimerShield: sleeps of less important tasks end without an interrupt while a more important task runs.

mod switching;

use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::atomic::Ordering;

use macrotick_uapi::Device;

use super::{is_slow, unit_ns, Scenario};
use crate::board::{Board, Log};
use crate::check::{Check, Explain};
use crate::process::{self, member, Child};
use crate::random::{variation, Random};
use crate::sys::{self, PiLock, SchedAttr};
use crate::table::Table;
use crate::{ensure, ensure_eq};

pub const ALL: &[Scenario] = &[
    Scenario::new("shield_switch", switch),
    Scenario::new("shield_masks", masks).punctual(),
    Scenario::new("shield_soft", soft).punctual(),
    Scenario::new("shield_soft_switched_off", soft_switched_off).punctual(),
    Scenario::new("shield_made_real_time", made_real_time).punctual(),
    Scenario::new("shield_soft_starves_nobody", soft_starves_nobody).fair(),
    Scenario::new("shield_tick", tick).punctual(),
    Scenario::new("shield_tick_in_long_windows", tick_in_long_windows).punctual(),
    Scenario::new("shield_window_amid_sleeps", window_amid_sleeps).punctual().within(60_000),
    Scenario::new("shield_response", response).punctual().within(60_000),
    Scenario::new("shield_order", order).punctual(),
    Scenario::new("shield_nothing_lost", nothing_lost).punctual(),
    Scenario::new("shield_nothing_lost_switching", nothing_lost_switching).punctual(),
    Scenario::new("shield_raised", raised).punctual(),
    Scenario::new("shield_lowered", lowered).punctual(),
    Scenario::new("shield_made_ordinary", made_ordinary).punctual(),
    Scenario::new("shield_lowers_itself", lowers_itself).punctual(),
    Scenario::new("shield_lowered_by_another", lowered_by_another).punctual(),
    Scenario::new("shield_boosted_asleep", boosted_asleep).punctual(),
    Scenario::new("shield_boosted_running", boosted_running).punctual(),
    Scenario::new("shield_deadline", deadline).punctual(),
    Scenario::new("shield_signal", signal),
    Scenario::new("shield_clock_set", clock_set),
    Scenario::new("shield_affinity", affinity).on(2),
    Scenario::new("shield_hotplug", hotplug).on(2),
    Scenario::new("shield_switching", switching::storm).within(60_000),
    Scenario::new("shield_switching_2", switching::storm).on(2).within(60_000),
    Scenario::new("shield_storm", storm).within(60_000),
    Scenario::new("shield_storm_2", storm).on(2).within(60_000),
];

const SECOND: u64 = 1_000_000_000;
const SWITCH: &str = "/proc/sys/kernel/timershield";
const TICK_DELAY: &str = "/proc/sys/kernel/timershield_tick_delay_us";

/// The words of the board, after one word per process.
pub(super) const LOCK: usize = 60;
const STOP: usize = 61;

pub(super) fn set(on: bool) -> Check {
    sys::set_timershield(on).explain("switch")
}

/// The counters, summed over the CPUs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stats {
    pending: u64,
    served: u64,
    pub(super) deferred: u64,
    pub(super) moved: u64,
}

pub(super) fn stats() -> Check<Stats> {
    let text = std::fs::read_to_string("/sys/kernel/debug/timershield").map_err(|error| error.to_string())?;
    let mut sum = Stats::default();
    for line in text.lines().skip(1) {
        let fields: Vec<u64> = line.split(' ').filter_map(|field| field.parse().ok()).collect();
        let [_, pending, served, deferred, _, _, moved] = fields[..] else { return Err(format!("odd: {line}")) };
        sum.pending += pending;
        sum.served += served;
        sum.deferred += deferred;
        sum.moved += moved;
    }
    Ok(sum)
}

/// Forks a process under SCHED_FIFO on one CPU.
fn bound(cpu: u32, priority: u32, body: impl FnOnce() -> i32) -> Child {
    process::fork(|| {
        if sys::nr_cpus() == 1 {
            sys::prefault();
        }
        let placed = sys::under_fifo_on(cpu, priority);
        placed.err().unwrap_or_else(body)
    })
}

/// Forks a process that sleeps until an instant and records when it woke up.
fn sleeper(priority: u32, at_ns: u64, board: Board, word: usize) -> Child {
    bound(0, priority, move || {
        sys::sleep_until(at_ns);
        board.set(word, sys::now_ns());
        0
    })
}

/// Forks a process that does something and is busy between two instants. It ends later, because its end takes long.
fn busy(priority: u32, from_ns: u64, to_ns: u64, first: impl FnOnce()) -> Child {
    bound(0, priority, move || {
        sys::sleep_until(from_ns);
        first();
        sys::spin_until(to_ns);
        sys::sleep(30 * unit_ns());
        0
    })
}

/// Returns an instant at which this many processes have taken their page faults and sleep. No tick comes whole units
/// after it: a tick would fall between a wake-up and the look at the clock.
pub(super) fn soon(children: u64) -> u64 {
    let unit = unit_ns();
    (sys::now_ns() + (500 + 200 * children) * unit).next_multiple_of(10 * unit) + unit / 2
}

pub(super) fn succeed(children: impl IntoIterator<Item = Child>) -> Check {
    children.into_iter().try_for_each(|child| child.succeed(5 * SECOND))
}

/// Checks that a process woke up at an instant, with a tolerance of half a unit. On slow kernels it is three units,
/// which is still far from the end of a deferred sleep.
pub(super) fn ensure_at(woke_ns: u64, at_ns: u64, what: &str) -> Check {
    let late = woke_ns as i64 - at_ns as i64;
    let limit = if is_slow() { 3 * unit_ns() } else { unit_ns() / 2 };
    ensure!((0..limit as i64).contains(&late), "{what} {late} ns after its instant");
    Ok(())
}

fn switch() -> Check {
    let read = || std::fs::read_to_string(SWITCH).map_err(|error| error.to_string());
    for on in [true, true, false, false, true] {
        set(on)?;
        ensure_eq!(read()?, if on { "1\n" } else { "0\n" }, "the switch");
    }
    ensure!(std::fs::write(SWITCH, "2").is_err(), "2 is taken for a state");
    // On one CPU, the runner's own wait is one of the pending timers.
    let others = stats()?.pending;
    let (board, at) = (Board::new(1), soon(1));
    let child = sleeper(10, at, board, 0);
    sys::sleep_until(at - 100 * unit_ns());
    ensure_eq!(stats()?.pending, others + 1, "pending timers");
    set(false)?;
    ensure_eq!(stats()?.pending, 0, "pending timers, switched off");
    set(true)?;
    ensure_eq!(stats()?.pending, others + 1, "pending timers, switched on again");
    set(false)?;
    child.succeed(SECOND)
}

/// Returns the number of interrupts of CPU 0's timer.
fn timer_interrupts() -> u64 {
    let text = std::fs::read_to_string("/proc/interrupts").unwrap_or_default();
    let is_timer = |line: &&str| line.trim_start().starts_with("LOC:") || line.ends_with(" arch_timer");
    let line = text.lines().find(is_timer);
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0)
}

/// Counts the timer interrupts of a busy task while ten sleeps of a lower priority end.
fn interrupts(on: bool) -> Check<u64> {
    set(on)?;
    let (u, board) = (unit_ns(), Board::new(64));
    let t = soon(11);
    let hog = busy_counting(t, board);
    let sleepers: Vec<Child> = (0..10).map(|i| sleeper(40, t + 55 * u + 3 * u * i, board, 1 + i as usize)).collect();
    sys::sleep_until(t + 110 * u);
    succeed(sleepers.into_iter().chain([hog]))?;
    for i in 1..=10 {
        ensure!(board.get(i) > t + 100 * u, "sleeper {i} was served before a task of higher priority");
    }
    Ok(board.get(0))
}

fn busy_counting(t: u64, board: Board) -> Child {
    bound(0, 50, move || count_interrupts(t, board))
}

/// Computes for a while, and records how many timer interrupts come in the second half.
pub(super) fn count_interrupts(t: u64, board: Board) -> i32 {
    let u = unit_ns();
    sys::sleep_until(t);
    timer_interrupts();
    sys::spin_until(t + 50 * u);
    let before = timer_interrupts();
    sys::spin_until(t + 100 * u);
    board.set(0, timer_interrupts() - before);
    0
}

fn masks() -> Check {
    let ticks = 50 * unit_ns() / 1_000_000;
    let (without, with) = (interrupts(false)?, interrupts(true)?);
    ensure!(without >= ticks + 7, "{without} interrupts without, {ticks} are ticks");
    ensure!(with <= ticks + 2, "{with} interrupts with TimerShield, {ticks} are ticks");
    let stats = stats()?;
    ensure!(stats.deferred >= 10, "{stats:?}");
    Ok(())
}

/// Makes a descriptor that is readable from an instant on.
fn timerfd(at_ns: u64) -> Result<OwnedFd, i32> {
    let zero = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let times = libc::itimerspec { it_interval: zero, it_value: sys::timespec(at_ns) };
    // SAFETY: a new descriptor, which has one owner, and its times.
    unsafe {
        let fd = libc::timerfd_create(libc::CLOCK_MONOTONIC, 0);
        if fd < 0 || libc::timerfd_settime(fd, libc::TFD_TIMER_ABSTIME, &times, std::ptr::null_mut()) != 0 {
            return Err(sys::errno());
        }
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// Returns whether a scenario applies to this kernel; otherwise prints the reason.
fn applies(applies: bool, otherwise: &str) -> bool {
    if !applies {
        println!("# {otherwise}");
    }
    applies
}

/// Forks a process of SCHED_OTHER with timers that expire at these instants. It does not wait for them.
fn with_timers(at_ns: Vec<u64>, until_ns: u64) -> Child {
    process::fork(move || {
        if sys::set_affinity(0, &[0]).is_err() {
            return 1;
        }
        let timers: Result<Vec<OwnedFd>, i32> = at_ns.into_iter().map(timerfd).collect();
        sys::sleep_until(until_ns);
        timers.err().unwrap_or(0)
    })
}

/// The number of units from a job's release until an ordinary timer expires. The scenario counts interrupts before the
/// expiry, which takes time, and half a unit after it. On a fast kernel no tick comes meanwhile.
const EXPIRES: u64 = 5;

/// Counts the timer interrupts of fifty jobs while an ordinary timer expires in each.
fn interrupts_of_ordinary_timers(on: bool) -> Check<u64> {
    const JOBS: u64 = 50;
    set(on)?;
    let (u, board) = (unit_ns(), Board::new(1));
    let t = soon(12);
    let releases = (0..JOBS).map(|job| t + 20 * u * job);
    let ordinary = with_timers(releases.clone().map(|release| release + EXPIRES * u).collect(), t + 20 * u * JOBS);
    let measured = bound(0, 50, move || {
        for release in releases {
            sys::sleep_until(release);
            let before = timer_interrupts();
            sys::spin_until(release + EXPIRES * u + u / 2);
            board.add(0, timer_interrupts() - before);
        }
        0
    });
    // The sleeps of this process, which are more important, are not in the counted intervals.
    sys::sleep_until(t + 20 * u * JOBS);
    succeed([measured, ordinary])?;
    Ok(board.get(0))
}

/// Checks timers of ordinary processes. On PREEMPT_RT a thread of low priority serves them, otherwise the interrupt
/// does.
fn soft() -> Check {
    let (without, with) = (interrupts_of_ordinary_timers(false)?, interrupts_of_ordinary_timers(true)?);
    ensure!(with + 40 <= without, "{with} interrupts with TimerShield, {without} without");
    ensure!(is_slow() || with == 0, "{with} interrupts with TimerShield");
    Ok(())
}

/// Checks that a timer that waits for a busy task waits no longer than without TimerShield once that is switched off.
/// The timer's interrupt comes between two ticks.
fn soft_switched_off() -> Check {
    if !applies(!is_slow(), "ticks come meanwhile") {
        return Ok(());
    }
    set(true)?;
    let (u, board) = (unit_ns(), Board::new(3));
    let t = soon(3);
    let ordinary = with_timers(vec![t + EXPIRES * u, t + (20 + EXPIRES) * u], t + 40 * u);
    let hog = bound(0, 50, move || {
        sys::sleep_until(t);
        board.set(0, timer_interrupts());
        sys::spin_until(t + EXPIRES * u + u / 2);
        board.set(1, timer_interrupts());
        // A tick would also serve the timer.
        sys::sleep_until(t + 20 * u);
        let before = timer_interrupts();
        sys::spin_until(t + (20 + EXPIRES) * u + u / 2);
        if sys::set_timershield(false).is_err() {
            return 3;
        }
        board.set(2, timer_interrupts() - before);
        0
    });
    sys::sleep_until(t + 50 * u);
    succeed([hog, ordinary])?;
    ensure_eq!(board.get(1) - board.get(0), 0, "interrupts while ordinary timers wait");
    ensure_eq!(board.get(2), 1, "interrupts once they do not");
    Ok(())
}

/// Checks a process that becomes a real-time one during its sleep: the sleep ends as that of a real-time process. (On
/// PREEMPT_RT the softirq continues to serve it.)
fn made_real_time() -> Check {
    if !applies(!sys::is_preempt_rt(), "on PREEMPT_RT the softirq serves such a sleep") {
        return Ok(());
    }
    set(true)?;
    let (u, board) = (unit_ns(), Board::new(1));
    let t = soon(2);
    let sleeper = process::fork(|| {
        if sys::set_affinity(0, &[0]).is_err() {
            return 1;
        }
        sys::sleep_until(t + 10 * u);
        board.set(0, sys::now_ns());
        0
    });
    let pid = sleeper.pid;
    let hog = busy(50, t, t + 20 * u, || {
        let _ = sys::set_sched(pid, SchedAttr::fifo(60));
    });
    sys::sleep_until(t + 60 * u);
    succeed([hog, sleeper])?;
    // An ordinary sleep may end 50 us late.
    let late = board.get(0) as i64 - (t + 10 * u) as i64;
    ensure!((0..u as i64).contains(&late), "the sleeper woke up {late} ns after its instant");
    Ok(())
}

/// Checks that an ordinary process wakes up, and has its share, beside a real-time task that never sleeps.
fn soft_starves_nobody() -> Check {
    set(true)?;
    let board = Board::new(1);
    let t = soon(2);
    let hog = bound(0, 50, move || {
        sys::sleep_until(t);
        sys::spin_until(t + 6 * SECOND);
        0
    });
    let child = process::fork(|| {
        let _ = sys::set_affinity(0, &[0]);
        sys::sleep_until(t + SECOND);
        board.set(0, sys::now_ns());
        0
    });
    sys::sleep_until(t + 6 * SECOND);
    succeed([hog, child])?;
    let woke = board.get(0);
    ensure!(woke < t + 4 * SECOND, "an ordinary process woke up {} ns after its instant", woke - t - SECOND);
    Ok(())
}

/// The measurement of a hundred jobs of SCHED_TT, which compute for a number of units in each cycle of a hundred.
#[derive(Debug)]
struct Ticks {
    /// The number of timer interrupts.
    interrupts: u64,
    /// The CPU time in user mode that the kernel accounted, in percent of the jobs' time there: the tick takes samples.
    accounted: u64,
}

fn ticks_in_jobs(on: bool, busy: u64) -> Check<Ticks> {
    const JOBS: u64 = 100;
    set(on)?;
    let (u, board, device) = (unit_ns(), Board::new(1), Device::open()?);
    Table::single(100 * u, 0, 2 * u, 80 * u).install(&device)?;
    let child = member("t", |device| {
        for _ in 0..JOBS {
            if let Err(errno) = device.wait() {
                return errno;
            }
            let before = timer_interrupts();
            sys::spin(busy * u);
            board.add(0, timer_interrupts() - before);
        }
        0
    })?;
    let before = user_ns()?;
    device.start(0).explain("start")?;
    child.succeed(20 * SECOND)?;
    let accounted = 100 * (user_ns()? - before) / (JOBS * busy * u);
    device.remove().explain("remove")?;
    Ok(Ticks { interrupts: board.get(0), accounted })
}

/// Returns the time in user mode from the first line of `/proc/stat`, which has a resolution of 10 ms.
fn user_ns() -> Check<u64> {
    let text = std::fs::read_to_string("/proc/stat").map_err(|error| error.to_string())?;
    let user = text.split_whitespace().nth(1).and_then(|field| field.parse::<u64>().ok());
    user.map(|user| user * 10_000_000).ok_or_else(|| format!("odd: {text}"))
}

fn ensure_accounted(ticks: &Ticks) -> Check {
    ensure!((50..=120).contains(&ticks.accounted), "{ticks:?}");
    Ok(())
}

/// The number of interrupts of the fair class's server. Its timer (`inactive_task_timer()`) may be due in a job. It
/// comes once in a period of a second, and the jobs take a second.
const OF_THE_SERVER: u64 = 2;

/// Checks that a job shorter than the tick's delay has no interrupt. The time is accounted afterwards.
fn tick() -> Check {
    if !applies(!is_slow(), "jobs are longer than the tick's delay") {
        return Ok(());
    }
    let (without, with) = (ticks_in_jobs(false, 25)?, ticks_in_jobs(true, 25)?);
    ensure!(without.interrupts >= 200, "without: {without:?}");
    ensure!(with.interrupts <= OF_THE_SERVER, "with: {with:?}");
    ensure_accounted(&with)
}

/// Checks that a longer job has some ticks. The setting gives their number.
fn tick_in_long_windows() -> Check {
    if !applies(!is_slow(), "the bounds are for shorter jobs") {
        return Ok(());
    }
    let (without, with) = (ticks_in_jobs(false, 70)?, ticks_in_jobs(true, 70)?);
    ensure!(without.interrupts >= 600, "without: {without:?}");
    ensure!((80..=220).contains(&with.interrupts), "with: {with:?}");
    ensure_accounted(&with)?;
    let set_delay = |us: &str| std::fs::write(TICK_DELAY, us).map_err(|error| format!("{TICK_DELAY}: {error}"));
    ensure!(set_delay("20001").is_err() && set_delay("-1").is_err(), "a delay out of bounds is taken");
    set_delay("20000")?;
    let never = ticks_in_jobs(true, 70);
    set_delay("0")?;
    let always = ticks_in_jobs(true, 70);
    set_delay("4000")?;
    let (never, always) = (never?, always?);
    ensure!(never.interrupts <= OF_THE_SERVER, "late by 20 ms: {never:?}");
    ensure!(always.interrupts >= 600, "late by nothing: {always:?}");
    ensure_accounted(&never)
}

/// Returns the latest start of ten jobs of SCHED_TT beside forty lower tasks. The tasks' sleeps end at each window's
/// beginning, or this long before it.
fn latest_start(on: bool, before_ns: u64) -> Check<u64> {
    const JOBS: u64 = 10;
    set(on)?;
    let (u, device, log) = (unit_ns(), Device::open()?, Log::new(16));
    let cycle = 40 * u;
    Table::single(cycle, 0, 0, 10 * u).install(&device)?;
    let job = process::periodic("t", log, u)?;
    let t = soon(40);
    let sleeper = |_| {
        bound(0, 40, move || {
            (0..JOBS).for_each(|round| sys::sleep_until(t + round * cycle - before_ns));
            0
        })
    };
    let sleepers: Vec<Child> = (0..40).map(sleeper).collect();
    device.start(t).explain("start")?;
    sys::sleep_until(t + JOBS * cycle - u);
    succeed(sleepers)?;
    job.kill(SECOND)?;
    device.remove().explain("remove")?;
    let late = log.jobs().iter().take(JOBS as usize).map(|job| job.start_ns - job.nominal_ns).max();
    late.ok_or_else(|| "no jobs".into())
}

/// Checks that a window begins on time, however many sleeps end at once.
fn window_amid_sleeps() -> Check {
    let u = unit_ns();
    let instants = if is_slow() { vec![0] } else { vec![0, u / 50, u / 20] };
    for before in instants {
        let [off, on] = [latest_start(false, before)?, latest_start(true, before)?];
        ensure!(on < u / 2, "{before} ns after they ended a job began {on} ns late, {off} ns without");
    }
    Ok(())
}

/// Checks that with TimerShield many sleepers of lower priority hardly lengthen the longest response. A lower task that
/// is inside the kernel delays it with and without TimerShield.
fn response() -> Check {
    let [off_one, off_many] = [longest_response(false, 1)?, longest_response(false, 60)?];
    let [on_one, on_many] = [longest_response(true, 1)?, longest_response(true, 60)?];
    println!("# longest response: off {off_one} and {off_many} ns, on {on_one} and {on_many} ns");
    ensure!(on_many <= on_one + unit_ns() / 5, "{on_many} ns among 60 others, {on_one} ns beside one");
    ensure!(off_many > off_one + unit_ns() / 2, "without: {off_many} ns among 60 others, {off_one} ns beside one");
    Ok(())
}

/// Returns the longest response of a task with a fixed number of instructions in each period, beside this many others.
/// Without PREEMPT_RT it ignores the longest ten: RCU's softirq frees the memory of earlier processes, and no thread
/// can preempt it.
fn longest_response(on: bool, others: u32) -> Check<u64> {
    const PERIODS: [u64; 7] = [1, 2, 5, 10, 20, 50, 100];
    set(on)?;
    let (period, rounds) = (10 * unit_ns(), 200);
    let (board, t) = (Board::new(1), soon(u64::from(others)));
    let end = t + rounds * period;
    let left_out = if sys::is_preempt_rt() { 0 } else { 10 };
    let measured = bound(0, 99, move || {
        let mut responses = Vec::with_capacity(rounds as usize);
        for round in 0..rounds {
            let release = t + round * period;
            sys::sleep_until(release);
            (0..20_000).for_each(|i| {
                std::hint::black_box(i);
            });
            responses.push(sys::now_ns() - release);
        }
        responses.sort_unstable();
        board.set(0, responses[responses.len() - 1 - left_out]);
        0
    });
    let other = |number: u32| {
        let own = PERIODS[number as usize % PERIODS.len()] * period;
        bound(0, 70, move || {
            (0..).map(|round| t + round * own).take_while(|at| *at < end).for_each(sys::sleep_until);
            0
        })
    };
    let children: Vec<Child> = (0..others).map(other).chain([measured]).collect();
    sys::sleep_until(end);
    succeed(children)?;
    Ok(board.get(0))
}

/// Checks that of several sleeps that ended meanwhile, the most important one comes first, and no sleep is lost.
fn order() -> Check {
    set(true)?;
    let (u, board) = (unit_ns(), Board::new(64));
    let t = soon(13);
    let turn = board.word(0);
    let one = |i: usize| {
        let i = i as u64;
        bound(0, 80 - 5 * i as u32, move || {
            sys::sleep_until(t + 20 * u - u * i);
            board.set(10 + i as usize, turn.fetch_add(1, Ordering::SeqCst));
            sys::spin(u / 2);
            0
        })
    };
    let children: Vec<Child> = (0..12).map(one).chain([busy(85, t, t + 30 * u, || ())]).collect();
    sys::sleep_until(t + 60 * u);
    succeed(children)?;
    let turns: Vec<u64> = (10..22).map(|word| board.get(word)).collect();
    ensure_eq!(turns, (0..12).collect::<Vec<u64>>(), "turns, the most important first");
    Ok(())
}

/// Checks many periodic sleepers below a task that is busy most of the time: each must have every round, and in time.
fn lose_nothing(meanwhile: impl Fn(u64)) -> Check {
    const SLEEPERS: u64 = 24;
    let (u, board) = (unit_ns(), Board::new(64));
    let (t, rounds) = (soon(SLEEPERS), 60);
    let end = t + rounds * 20 * u;
    let hog = bound(0, 80, move || {
        for round in 0..rounds {
            sys::sleep_until(t + round * 20 * u);
            sys::spin_until(t + round * 20 * u + 12 * u);
        }
        sys::sleep_until(end + 200 * u);
        0
    });
    let one = |i: u64| {
        bound(0, 10 + i as u32, move || {
            let (own, mut longest) = ((20 + 5 * (i % 9)) * u, 0);
            for at in (1..).map(|round| t + round * own).take_while(|at| *at < end) {
                sys::sleep_until(at);
                longest = longest.max(sys::now_ns() - at);
            }
            board.set(i as usize, longest);
            // The end of a process takes long, and would keep the others waiting.
            sys::sleep_until(end + 200 * u);
            0
        })
    };
    let children: Vec<Child> = (0..SLEEPERS).map(one).chain([hog]).collect();
    meanwhile(end);
    sys::sleep_until(end + 10 * u);
    succeed(children)?;
    for i in 0..SLEEPERS {
        let longest = board.get(i as usize);
        ensure!(longest > 0 && longest < 20 * u, "sleeper {i} was up to {longest} ns late, units of {u}");
    }
    Ok(())
}

fn nothing_lost() -> Check {
    set(true)?;
    let before = stats()?;
    lose_nothing(|_| ())?;
    let stats = stats()?;
    ensure!(stats.served > before.served + 700 && stats.deferred > before.deferred + 200, "{stats:?}, {before:?}");
    ensure!(stats.pending <= 1, "{} timers left", stats.pending);
    Ok(())
}

fn nothing_lost_switching() -> Check {
    let u = unit_ns();
    lose_nothing(|end| {
        for round in 0.. {
            sys::sleep(3 * u + round % 7 * u / 5);
            let _ = set(round % 2 == 0);
            if sys::now_ns() > end {
                break;
            }
        }
    })
}

/// Changes the priority of a sleeper from below or above a busy task while its sleep is pending. Returns when it woke
/// up.
fn changed_while_pending(from: u32, to: SchedAttr) -> Check<(u64, u64)> {
    set(true)?;
    let (u, board) = (unit_ns(), Board::new(1));
    let t = soon(2);
    let child = sleeper(from, t + 30 * u, board, 0);
    let hog = busy(50, t, t + 80 * u, move || {
        let _ = sys::set_sched(child.pid, to);
    });
    sys::sleep_until(t + 90 * u);
    succeed([child, hog])?;
    ensure!(stats()?.moved > 0, "no timer was moved");
    Ok((t, board.get(0)))
}

fn raised() -> Check {
    let (t, woke) = changed_while_pending(10, SchedAttr::fifo(60))?;
    ensure_at(woke, t + 30 * unit_ns(), "a sleeper that was raised woke up")
}

fn lowered() -> Check {
    let (t, woke) = changed_while_pending(60, SchedAttr::fifo(10))?;
    ensure_at(woke, t + 80 * unit_ns(), "a sleeper that was lowered woke up")
}

fn made_ordinary() -> Check {
    let (t, woke) = changed_while_pending(60, SchedAttr::other())?;
    ensure!(woke > t + 80 * unit_ns(), "an ordinary sleeper woke up {} ns after the beginning", woke - t);
    Ok(())
}

/// Checks a running task that becomes less important than a waiting sleeper.
fn lowers_itself() -> Check {
    set(true)?;
    let (u, board) = (unit_ns(), Board::new(1));
    let t = soon(2);
    let child = sleeper(40, t + 10 * u, board, 0);
    let hog = busy(50, t, t + 60 * u, move || {
        sys::spin_until(t + 30 * u);
        let _ = sys::set_sched(0, SchedAttr::fifo(30));
    });
    sys::sleep_until(t + 70 * u);
    succeed([child, hog])?;
    ensure_at(board.get(0), t + 30 * u, "a sleeper woke up")
}

fn lowered_by_another() -> Check {
    set(true)?;
    let (u, board) = (unit_ns(), Board::new(1));
    let t = soon(2);
    let child = sleeper(40, t + 10 * u, board, 0);
    let hog = busy(50, t, t + 60 * u, || ());
    sys::sleep_until(t + 30 * u);
    sys::set_sched(hog.pid, SchedAttr::fifo(30)).explain("lower the hog")?;
    sys::sleep_until(t + 70 * u);
    succeed([child, hog])?;
    ensure_at(board.get(0), t + 30 * u, "a sleeper woke up")
}

/// Checks the owner of a lock that sleeps with it, while a task above a busy task waits for the lock.
fn boosted_asleep() -> Check {
    set(true)?;
    let (u, board) = (unit_ns(), Board::new(64));
    let (t, lock) = (soon(3), PiLock(board.futex(LOCK)));
    let owner = bound(0, 10, move || {
        let locked = lock.lock();
        sys::sleep_until(t + 30 * u);
        i32::from(locked.is_err() || lock.unlock().is_err())
    });
    let waiter = bound(0, 80, move || {
        sys::sleep_until(t + 5 * u);
        let locked = lock.lock();
        board.set(0, sys::now_ns());
        i32::from(locked.is_err() || lock.unlock().is_err())
    });
    let hog = busy(50, t + 10 * u, t + 80 * u, || ());
    sys::sleep_until(t + 90 * u);
    succeed([owner, waiter, hog])?;
    ensure_at(board.get(0), t + 30 * u, "the waiter had the lock")
}

/// Checks that the owner of a lock runs with the priority of its waiter. It masks sleepers in between until it releases
/// the lock.
fn boosted_running() -> Check {
    set(true)?;
    let (u, board) = (unit_ns(), Board::new(64));
    let (t, lock) = (soon(3), PiLock(board.futex(LOCK)));
    let owner = bound(0, 10, move || {
        sys::sleep_until(t);
        let locked = lock.lock();
        sys::spin_until(t + 30 * u);
        let unlocked = lock.unlock();
        sys::spin_until(t + 60 * u);
        i32::from(locked.is_err() || unlocked.is_err())
    });
    let waiter = bound(0, 80, move || {
        sys::sleep_until(t + 5 * u);
        let failed = lock.lock().is_err() || lock.unlock().is_err();
        sys::sleep(50 * u);
        i32::from(failed)
    });
    let child = sleeper(50, t + 15 * u, board, 0);
    sys::sleep_until(t + 70 * u);
    succeed([owner, waiter, child])?;
    ensure_at(board.get(0), t + 30 * u, "a sleeper in between woke up")
}

/// Checks that sleeps of deadline tasks are above all sleeps of SCHED_FIFO.
fn deadline() -> Check {
    set(true)?;
    let (u, board) = (unit_ns(), Board::new(1));
    let t = soon(2);
    let child = process::fork(|| {
        let placed = sys::set_sched(0, SchedAttr::deadline(5 * u, 100 * u));
        sys::sleep_until(t + 20 * u);
        board.set(0, sys::now_ns());
        i32::from(placed.is_err())
    });
    let hog = busy(99, t, t + 60 * u, || ());
    sys::sleep_until(t + 70 * u);
    succeed([child, hog])?;
    ensure_at(board.get(0), t + 20 * u, "a deadline task woke up")
}

/// Checks a masked sleep that is interrupted and restarts.
fn signal() -> Check {
    set(true)?;
    let (u, board) = (unit_ns(), Board::new(1));
    let t = soon(2);
    let child = sleeper(10, t + 20 * u, board, 0);
    let hog = busy(50, t, t + 40 * u, move || {
        sys::spin_until(t + 30 * u);
        child.signal(libc::SIGSTOP);
        child.signal(libc::SIGCONT);
    });
    sys::sleep_until(t + 50 * u);
    succeed([child, hog])?;
    ensure!(board.get(0) >= t + 40 * u, "a sleeper woke up below a busy task");
    Ok(())
}

/// Checks that a sleep on CLOCK_REALTIME ends when the clock is set past its end, and not at its old instant.
fn clock_set() -> Check {
    set(true)?;
    let (u, board) = (unit_ns(), Board::new(2));
    let one = |word: usize, priority: u32, ahead: u64| {
        bound(0, priority, move || {
            sys::sleep_until_on(libc::CLOCK_REALTIME, sys::real_ns() + ahead);
            board.set(word, sys::now_ns());
            0
        })
    };
    let children = [one(0, 10, 10 * SECOND), one(1, 20, 30 * SECOND)];
    sys::sleep(1000 * u);
    let began = sys::now_ns();
    sys::step_clock(20 * SECOND as i64).explain("set the clock")?;
    sys::sleep(50 * u);
    let woke = board.get(0);
    ensure!(woke >= began && woke < began + 50 * u, "the sleeper woke up at {woke}, the clock was set at {began}");
    ensure_eq!(board.get(1), 0, "the other one");
    sys::step_clock(-20 * SECOND as i64).explain("set the clock back")?;
    children[1].kill(SECOND)?;
    children[0].succeed(SECOND)
}

/// Checks that a sleeper that may run on another CPU does not wait for the busy task here.
fn affinity() -> Check {
    set(true)?;
    let (u, board) = (unit_ns(), Board::new(1));
    let t = soon(5);
    let child = sleeper(10, t + 100 * u, board, 0);
    let hog = busy(50, t, t + 8000 * u, move || {
        let _ = sys::set_affinity(child.pid, &[1]);
    });
    sys::sleep_until(t + 8100 * u);
    succeed([child, hog])?;
    ensure!(board.get(0) < t + 6000 * u, "a sleeper woke up {} ns after its instant", board.get(0) - t - 100 * u);
    Ok(())
}

/// Checks that a CPU with pending sleeps can be taken offline.
fn hotplug() -> Check {
    set(true)?;
    let (u, board) = (unit_ns(), Board::new(64));
    let t = soon(20);
    let one = |i: u64| {
        bound(1, 10 + i as u32, move || {
            sys::sleep_until(t + 20 * u * i);
            board.set(i as usize, sys::now_ns());
            0
        })
    };
    let children: Vec<Child> = (0..20).map(one).collect();
    sys::sleep_until(t - 500 * u);
    sys::set_online(1, false).explain("off line")?;
    sys::sleep_until(t + 200 * u);
    sys::set_online(1, true).explain("on line")?;
    succeed(children)
}

/// Runs one process of the storm: sleeps, time-outs, timers, priorities, CPUs and locks at random.
fn whirl(seed: u64, board: Board, pids: &'static [std::sync::atomic::AtomicU64]) -> i32 {
    let (u, mut random, lock) = (unit_ns(), Random::new(seed), PiLock(board.futex(LOCK)));
    let mut timers: Vec<OwnedFd> = Vec::new();
    while board.get(STOP) == 0 {
        let length = random.below(40 * u);
        match random.below(13) {
            0..4 => sys::sleep(length),
            4 => sys::sleep_until_on(libc::CLOCK_REALTIME, sys::real_ns() + length),
            5 => sys::poll_nothing(length),
            6 => sys::spin(length / 40),
            7 => {
                let _ = sys::set_sched(0, SchedAttr::fifo(1 + random.below(60) as u32));
            }
            8 => {
                let _ = sys::set_affinity(0, &[random.below(u64::from(sys::nr_cpus())) as u32]);
            }
            9 => {
                let other = random.pick(pids).load(Ordering::SeqCst) as i32;
                let fifo = SchedAttr::fifo(1 + random.below(60) as u32);
                let attr = if random.below(4) == 0 { SchedAttr::other() } else { fifo };
                if other > 0 {
                    let _ = sys::set_sched(other, attr);
                }
            }
            10 => {
                if lock.lock().is_err() {
                    return 1;
                }
                sys::sleep(length / 8);
                if lock.unlock().is_err() {
                    return 2;
                }
            }
            11 => {
                timers.truncate(random.below(8) as usize);
                timers.extend(timerfd(sys::now_ns() + length));
            }
            _ => {
                let other = random.pick(pids).load(Ordering::SeqCst) as i32;
                let cpus: Vec<u32> = (0..sys::nr_cpus()).collect();
                if other > 0 {
                    let _ = sys::set_affinity(other, &cpus);
                }
            }
        }
    }
    0
}

fn storm() -> Check {
    const CHILDREN: usize = 16;
    let (u, board, pids) = (unit_ns(), Board::new(64), Board::new(CHILDREN));
    let words = pids.words();
    let begin = |i: usize| bound(0, 1 + i as u32, move || whirl(1000 * variation() + i as u64, board, words));
    let children: Vec<Child> = (0..CHILDREN).map(begin).collect();
    children.iter().enumerate().for_each(|(i, child)| pids.set(i, child.pid as u64));
    let mut random = Random::new(variation());
    for _ in 0..if is_slow() { 60 } else { 300 } {
        sys::sleep(u + random.below(20 * u));
        match random.below(6) {
            0 => set(false)?,
            1 | 2 => set(true)?,
            3 if sys::nr_cpus() > 1 && random.below(8) == 0 => {
                sys::set_online(1, false).explain("off line")?;
                sys::sleep(random.below(10 * u));
                sys::set_online(1, true).explain("on line")?;
            }
            4 if random.below(4) == 0 => sys::step_clock(u as i64).explain("set the clock")?,
            _ => {}
        }
    }
    board.set(STOP, 1);
    children.iter().try_for_each(|child| child.succeed(20 * SECOND))?;
    set(true)?;
    ensure!(stats()?.pending <= 2, "timers left: {:?}", stats()?);
    Ok(())
}
