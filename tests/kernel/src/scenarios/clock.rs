//! Tables on `CLOCK_TAI`: the grid follows the clock, and only in sync windows.

use macrotick_uapi::{error, state, Device, Get};

use super::jobs::ensure_regular;
use super::{is_slow, unit_ns, Scenario};
use crate::board::{Job, Log};
use crate::check::{Check, Explain};
use crate::process::{member_hog, periodic};
use crate::sys;
use crate::table::{Refusal, Table};
use crate::{ensure, ensure_eq, trace};

pub const ALL: &[Scenario] = &[
    Scenario::new("clock_steady", || follows(0, 12, &[])).punctual(),
    Scenario::new("clock_steps_within_the_bound", steps_within_the_bound).punctual(),
    Scenario::new("clock_steps_beyond_the_bound", steps_beyond_the_bound).punctual(),
    Scenario::new("clock_steps_with_a_lead", steps_with_a_lead).punctual(),
    Scenario::new("clock_steps_of_many_cycles", steps_of_many_cycles).punctual(),
    Scenario::new("clock_tai_leaps", tai_leaps).punctual(),
    Scenario::new("clock_slewed", slewed).punctual(),
    Scenario::new("clock_traced", traced).punctual(),
    Scenario::new("clock_epochs", epochs),
    Scenario::new("clock_swap_while_corrected", swap_while_corrected).punctual(),
    Scenario::new("clock_swap_refused", swap_refused),
    Scenario::new("clock_nobody_there", nobody_there),
    Scenario::new("clock_several_cpus", several_cpus).on(2),
    Scenario::new("clock_cpu_without_threads", cpu_without_threads).on(2),
];

const CYCLE: u64 = 20;
/// The beginnings of `before`, the sync window, `hog` and `after`, in units.
const BEFORE: u64 = 2;
const SYNC: u64 = 10;
const HOG: u64 = 14;
const AFTER: u64 = 17;

/// The bound of the tests' sync windows, in units: a third of their length.
const BOUND: u64 = 1;

/// Returns a table with jobs before and after a sync window, and a window that a hog uses completely.
fn table(lead: u64) -> Table {
    let u = unit_ns();
    Table::new(CYCLE * u)
        .window("before", 0, BEFORE * u, 3 * u, 3)
        .sync(0, SYNC * u, 3 * u, (BOUND * u) as u32)
        .window("hog", 0, HOG * u, 2 * u, 0)
        .window("after", 0, AFTER * u, 2 * u, 3)
        .lead(lead)
}

fn hog() -> Check {
    member_hog("hog").map(drop)
}

/// The expected state of the kernel: a grid on `CLOCK_MONOTONIC`, and the offset of `CLOCK_TAI`.
struct Grid {
    cycle: i64,
    bound: i64,
    /// The beginning of the cycle, on `CLOCK_MONOTONIC`.
    base: i64,
    /// The offset of `CLOCK_TAI` that the grid follows, and the actual one.
    offset: i64,
    clock: i64,
    stretched: u64,
    shrunk: u64,
    corrections: u64,
}

impl Grid {
    /// Returns the grid of a table that was started at an epoch on `CLOCK_TAI`.
    fn started(device: &Device, epoch: u64, bound: u64) -> Check<Grid> {
        let get = device.get().explain("get")?;
        ensure_eq!((get.state, get.epoch_ns), (state::RUNNING, epoch), "state and epoch");
        let (base, offset) = (epoch as i64 - get.offset_ns, get.offset_ns);
        let (cycle, bound) = (get.cycle_ns as i64, bound as i64);
        Ok(Grid { cycle, bound, base, offset, clock: offset, stretched: 0, shrunk: 0, corrections: 0 })
    }

    fn at(&self, units: u64) -> u64 {
        self.base as u64 + units * unit_ns()
    }

    fn step(&mut self, by: i64) -> Check {
        sys::step_clock(by).explain("step")?;
        self.clock += by;
        Ok(())
    }

    /// Returns the remaining error, to the nearest cycle.
    fn error(&self) -> i64 {
        let error = (self.offset - self.clock).rem_euclid(self.cycle);
        if error > self.cycle / 2 {
            error - self.cycle
        } else {
            error
        }
    }

    fn sync(&mut self) {
        let error = self.error();
        self.offset = self.clock + error;
        let by = error.clamp(-self.bound, self.bound);
        self.offset -= by;
        self.base += by;
        self.corrections += u64::from(by != 0);
        self.stretched += by.max(0) as u64;
        self.shrunk += (-by).max(0) as u64;
    }

    fn ensure(&self, get: &Get, when: &str) -> Check {
        ensure_eq!(get.error_ns, self.error(), "error {when}");
        ensure_eq!(get.offset_ns - self.offset, 0, "offset {when}");
        let told = (get.stretched_ns, get.shrunk_ns, get.corrections);
        ensure_eq!(told, (self.stretched, self.shrunk, self.corrections), "stretched, shrunk, corrections {when}");
        Ok(())
    }
}

fn nominal(jobs: &[Job]) -> Vec<u64> {
    jobs.iter().map(|job| job.nominal_ns).collect()
}

/// The excess of a window's run time over its length. If a tick is due right after the window's end, one interrupt does
/// both. The window's thread is then charged for the tick: 1700 instructions, 3.5 % of 2 units.
const MORE: f64 = 0.06;

/// The excess while the clock is slewed by 1 %: a window of run time is that much longer. In addition, the timer
/// interrupt is armed by the unslewed rate. It comes up to 1 % of its distance late, or early, and must then repeat.
/// The largest measured excess was 4.8 %, with a tick.
const MORE_WHILE_SLEWED: f64 = 0.1;

/// The threads of [`table`], and their expected jobs.
struct Watch {
    device: Device,
    logs: [Log; 2],
    expected: [Vec<u64>; 2],
}

impl Watch {
    fn new(lead: u64) -> Check<Watch> {
        let (u, device, logs) = (unit_ns(), Device::open()?, [Log::new(256), Log::new(256)]);
        table(lead).install(&device)?;
        periodic("before", logs[0], u)?;
        periodic("after", logs[1], u / 2)?;
        hog()?;
        Ok(Watch { device, logs, expected: [Vec::new(), Vec::new()] })
    }

    fn start(&self) -> Check<(u64, Grid)> {
        let epoch = self.device.start(sys::tai_ns() + 20 * unit_ns()).explain("start")?;
        Ok((epoch, Grid::started(&self.device, epoch, BOUND * unit_ns())?))
    }

    /// Runs one cycle, with steps of the clock before its sync window.
    fn cycle(&mut self, number: usize, grid: &mut Grid, steps: &[(usize, i64)]) -> Check {
        self.expected[0].push(grid.at(BEFORE));
        sys::sleep_until(grid.at(SYNC - 1));
        for (_, by) in steps.iter().filter(|(at, _)| *at == number) {
            grid.step(*by)?;
        }
        let before = self.device.get().explain("get")?;
        grid.ensure(&before, &format!("before the sync window of cycle {number}"))?;
        grid.sync();
        self.expected[1].push(grid.at(AFTER));
        sys::sleep_until(grid.at(SYNC + 3));
        let after = self.device.get().explain("get")?;
        grid.ensure(&after, &format!("after the sync window of cycle {number}"))?;
        grid.base += grid.cycle;
        Ok(())
    }

    /// Checks that all jobs were at their instants, no job was missed or lost, and windows kept their lengths.
    fn verdict(&self, cycles: usize, more: f64) -> Check {
        for (log, expected) in self.logs.iter().zip(&self.expected) {
            ensure_eq!(nominal(&log.jobs())[..], expected[..], "nominal instants");
            let late = log.jobs().iter().map(|job| job.start_ns.wrapping_sub(job.nominal_ns)).max();
            let most = if is_slow() { 3 * unit_ns() } else { unit_ns() };
            ensure!(late < Some(most), "a job began early, or {late:?} ns late");
        }
        for index in 0..3 {
            let stats = self.device.stats(index).explain("stats")?;
            let counts = (stats.misses, stats.lost, stats.skipped, stats.late);
            ensure_eq!(counts, (0, 0, 0, 0), "misses, lost, skipped and late of entity {index}");
        }
        let hog = self.device.stats(1).explain("stats")?;
        let share = hog.runtime_ns as f64 / (cycles as u64 * 2 * unit_ns()) as f64;
        ensure!((0.9..1.0 + more).contains(&share), "{} ns in {cycles} windows of 2 units", hog.runtime_ns);
        Ok(())
    }
}

/// Sets the clock by given amounts, each before the sync window of a cycle. Checks that in the end the grid is on the
/// clock again.
fn follows(lead: u64, cycles: usize, steps: &[(usize, i64)]) -> Check {
    follows_with(MORE, lead, cycles, steps)
}

fn follows_with(more: f64, lead: u64, cycles: usize, steps: &[(usize, i64)]) -> Check {
    let mut watch = Watch::new(lead)?;
    let (epoch, mut grid) = watch.start()?;
    for number in 0..cycles {
        watch.cycle(number, &mut grid, steps)?;
    }
    sys::sleep_until(grid.at(0));
    watch.verdict(cycles, more)?;
    ensure_on_clock(&watch.device, watch.logs[1].jobs().last(), epoch + AFTER * unit_ns())
}

/// Checks that the grid is on the clock as a program reads it.
pub(super) fn ensure_on_clock(device: &Device, job: Option<&Job>, first: u64) -> Check {
    let get = device.get().explain("get")?;
    let job = job.ok_or("no job")?;
    let beside = sys::tai_offset_ns() - get.offset_ns;
    ensure!(beside.abs() < unit_ns() as i64 / 2, "the grid lies {beside} ns beside the clock");
    ensure_eq!(get.error_ns, 0, "error in the end");
    let since = job.nominal_ns as i64 + get.offset_ns - first as i64;
    ensure_eq!(since.rem_euclid(get.cycle_ns as i64), 0, "the last job's instant on CLOCK_TAI, in its cycle");
    Ok(())
}

fn bound() -> i64 {
    (BOUND * unit_ns()) as i64
}

fn steps_within_the_bound() -> Check {
    let part = bound() / 3;
    follows(0, 12, &[(2, part), (3, -part), (5, -part), (6, 1), (7, bound()), (8, -bound()), (9, -1)])
}

fn steps_beyond_the_bound() -> Check {
    follows(0, 20, &[(2, bound() * 7 / 2), (8, -bound() * 7 / 2), (9, -1), (14, 2 * bound()), (15, -2 * bound())])
}

/// Checks that the lead stays free after a sync window that shrinks.
fn steps_with_a_lead() -> Check {
    let lead = unit_ns() / 2;
    follows(lead, 16, &[(2, bound()), (4, 3 * bound()), (9, -bound()), (11, -2 * bound())])
}

/// Checks that whole cycles are no error, and that the grid moves the shorter way.
fn steps_of_many_cycles() -> Check {
    let cycle = (CYCLE * unit_ns()) as i64;
    let years = 10 * 365 * 86_400 * 1_000_000_000;
    let rest = -(years % cycle);
    let most = cycle / 2 - bound() / 2;
    let steps =
        [(2, 1000 * cycle), (3, -777 * cycle + bound() / 3), (5, years), (6, rest), (18, most), (30, -2 * most)];
    follows(0, 42, &steps)
}

/// Checks that the grid follows when `CLOCK_TAI` moves by whole seconds against `CLOCK_REALTIME`.
fn tai_leaps() -> Check {
    let mut watch = Watch::new(0)?;
    sys::set_tai(0).explain("ADJ_TAI")?;
    let (epoch, mut grid) = watch.start()?;
    for number in 0..12 {
        if number == 3 {
            sys::set_tai(37).explain("ADJ_TAI")?;
            grid.clock += 37_000_000_000;
        }
        watch.cycle(number, &mut grid, &[(8, bound() / 2)])?;
    }
    sys::sleep_until(grid.at(0));
    watch.verdict(12, MORE)?;
    ensure_on_clock(&watch.device, watch.logs[1].jobs().last(), epoch + AFTER * unit_ns())?;
    sys::set_tai(0).explain("ADJ_TAI")
}

/// Checks that a slewed clock needs no correction: `CLOCK_MONOTONIC` is slewed with it.
fn slewed() -> Check {
    let change = |modes, frequency, tick, offset| {
        let mut change = sys::no_change();
        (change.modes, change.freq, change.tick, change.offset) = (modes, frequency, tick, offset);
        change.status = if offset == 0 { libc::STA_UNSYNC } else { libc::STA_PLL };
        sys::adjust_clock(change).explain("adjtimex")
    };
    let usual = 1_000_000 / 100; // microseconds, USER_HZ
    change(libc::ADJ_FREQUENCY | libc::ADJ_TICK, 500 << 16, usual + usual / 100, 0)?;
    follows_with(MORE_WHILE_SLEWED, 0, 10, &[])?;
    Device::open()?.remove().explain("remove")?;
    change(libc::ADJ_FREQUENCY | libc::ADJ_TICK, -(500 << 16), usual - usual / 100, 0)?;
    follows_with(MORE_WHILE_SLEWED, 0, 10, &[])?;
    Device::open()?.remove().explain("remove")?;
    change(libc::ADJ_FREQUENCY | libc::ADJ_TICK | libc::ADJ_OFFSET | libc::ADJ_STATUS, 0, usual, 400_000)?;
    follows_with(MORE_WHILE_SLEWED, 0, 10, &[])?;
    change(libc::ADJ_OFFSET | libc::ADJ_FREQUENCY | libc::ADJ_STATUS, 0, usual, 0)
}

/// Checks that the tracepoint reports each correction, and nothing else.
fn traced() -> Check {
    let (u, mut watch) = (unit_ns() as i64, Watch::new(0)?);
    let mut expected = Vec::new();
    let said = trace::said("macrotick_sync", || {
        let (_, mut grid) = watch.start()?;
        for number in 0..8 {
            let (at, before) = (grid.at(SYNC), grid.base + grid.cycle);
            watch.cycle(number, &mut grid, &[(2, -3 * u / 2), (5, u / 4)])?;
            let (by, rest) = (grid.base - before, grid.error());
            if by != 0 {
                expected.push(format!("cpu=0 instant={at} correction={by} rest={rest}"));
            }
        }
        Ok(())
    })?;
    ensure_eq!(expected.len(), 3, "corrections");
    ensure_eq!(said, expected, "what the tracepoint said");
    Ok(())
}

/// Checks that the epoch is on the table's clock. It is moved forward and limited as for other clocks.
fn epochs() -> Check {
    let (u, device, log) = (unit_ns(), Device::open()?, Log::new(8));
    let cycle = CYCLE * u + 7;
    Table::single(cycle, 0, 2 * u, 4 * u).sync(0, 10 * u, 2 * u, u as u32).install(&device)?;
    ensure_eq!(device.get().explain("get")?.offset_ns, 0, "the offset of a table that does not run");
    periodic("t", log, u)?;
    let far = sys::tai_ns() + 2 * macrotick_uapi::MAX_CYCLE_NS;
    ensure_eq!(device.start(far), Err(libc::EINVAL), "an epoch beyond the longest cycle");
    for wish in [0, 1, sys::now_ns(), sys::tai_ns() - 123_456_789, sys::tai_ns()] {
        let before = sys::tai_ns();
        let epoch = device.start(wish).explain("start")?;
        ensure_eq!((epoch - wish) % cycle, 0, "whole cycles from {wish} to {epoch}");
        ensure!(epoch >= before && epoch < sys::tai_ns() + cycle + 10 * u, "epoch {epoch} after {before}");
        device.stop().explain("stop")?;
        // The next start uses the new clock at once.
        sys::step_clock(3 * u as i64 + 1).explain("step")?;
    }
    let done = log.count();
    let epoch = device.start(0).explain("start")?;
    let grid = Grid::started(&device, epoch, u)?;
    sys::sleep_until(grid.base as u64 + 2 * cycle);
    let jobs = log.jobs();
    ensure_eq!(jobs.len() - done, 2, "jobs in two cycles");
    ensure_regular(&jobs[done..], 0, grid.base as u64, cycle, 2 * u)
}

/// Checks that no sync window makes a correction from the call to the swap. The new table's sync windows then correct
/// the rest.
fn swap_while_corrected() -> Check {
    let (u, mut watch) = (unit_ns(), Watch::new(0)?);
    let (epoch, mut grid) = watch.start()?;
    for number in 0..4 {
        watch.cycle(number, &mut grid, &[(2, 5 * bound())])?;
    }
    ensure_eq!(grid.error(), -3 * bound(), "what is left before the swap");
    watch.expected[0].push(grid.at(BEFORE));
    sys::sleep_until(grid.at(SYNC - 4));
    let next = Table { cycle_ns: 25 * u, ..table(0) };
    let second = next.swap(&watch.device).map_err(|refusal| format!("swap: {refusal:?}"))?;
    watch.expected[1].push(grid.at(AFTER));
    grid.base += grid.cycle;
    ensure_eq!(second as i64 - grid.offset, grid.base, "the instant of the swap");
    ensure_eq!((second - epoch) % (CYCLE * u), 0, "the instant of the swap on CLOCK_TAI, in the old cycle");
    sys::sleep_until(grid.at(1));
    let mut grid = Grid::started(&watch.device, second, BOUND * u)?;
    grid.clock = grid.offset + 3 * bound();
    for number in 0..8 {
        watch.cycle(number, &mut grid, &[(6, -bound())])?;
    }
    sys::sleep_until(grid.at(0));
    watch.verdict(13, MORE)?;
    ensure_on_clock(&watch.device, watch.logs[1].jobs().last(), second + AFTER * u)
}

fn swap_refused() -> Check {
    let (u, device) = (unit_ns(), Device::open()?);
    let plain = Table::single(20 * u, 0, 2 * u, 4 * u);
    let synced = plain.clone().sync(0, 10 * u, 2 * u, u as u32);
    let refused = Refusal { errno: libc::EBUSY, error: error::SWAP_CLOCK, index: 0, other: 0 };
    plain.install(&device)?;
    device.start(0).explain("start")?;
    ensure_eq!(synced.swap(&device), Err(refused), "from CLOCK_MONOTONIC to CLOCK_TAI");
    device.stop().explain("stop")?;
    ensure_eq!(synced.swap(&device), Ok(0), "a swap while stopped");
    device.start(0).explain("start")?;
    ensure_eq!(plain.swap(&device), Err(refused), "from CLOCK_TAI to CLOCK_MONOTONIC");
    ensure_eq!(device.get().explain("get")?.clockid, libc::CLOCK_TAI as u32, "the clock");
    Ok(())
}

/// Checks that the clock's steps while no interrupt was needed are corrected when one is needed again.
fn nobody_there() -> Check {
    let (u, device, log) = (unit_ns(), Device::open()?, Log::new(64));
    Table::single(20 * u, 0, 2 * u, 4 * u).sync(0, 10 * u, 3 * u, u as u32).install(&device)?;
    let epoch = device.start(sys::tai_ns() + 10 * u).explain("start")?;
    for by in [7 * u as i64, -2 * u as i64, 4000 * u as i64] {
        sys::sleep(100 * 20 * u + u);
        sys::step_clock(by).explain("step")?;
    }
    ensure_eq!(device.get().explain("get")?.error_ns, -5 * u as i64, "error while nobody is there");
    periodic("t", log, u)?;
    ensure!(sys::eventually(1_000_000_000, || log.count() > 10), "no jobs");
    let jobs = log.jobs();
    ensure_eq!(jobs.iter().map(|job| job.lost).sum::<u64>(), 0, "lost activations");
    ensure_on_clock(&device, jobs.last(), epoch + 2 * u)
}

/// Checks that jobs with the same number keep their distance in the cycle, whatever the clock does meanwhile.
fn ensure_together(a: &Log, b: &Log, apart: u64) -> Check {
    let (a, b) = (a.jobs(), b.jobs());
    let mut common = 0;
    for job in &a {
        if let Some(other) = b.iter().find(|other| other.number == job.number) {
            ensure_eq!(other.nominal_ns, job.nominal_ns + apart, "nominal instant of job {} of b", job.number);
            common += 1;
        }
    }
    ensure!(common > 10, "{common} jobs in common");
    Ok(())
}

fn on_both(u: u64) -> Table {
    let sync = |table: Table, cpu| table.sync(cpu, 10 * u, 4 * u, u as u32);
    sync(sync(Table::new(20 * u).window("a", 0, 2 * u, 4 * u, 3), 0).window("b", 1, 3 * u, 4 * u, 3), 1)
}

fn ensure_settled(device: &Device) -> Check {
    let settled = || device.get().is_ok_and(|get| get.error_ns == 0);
    ensure!(sys::eventually(5_000_000_000, settled), "{:?}", device.get());
    Ok(())
}

/// Sets the clock forward and back by less and by more than sync windows correct at once. Then the table must follow.
pub(super) fn step_to_and_fro(device: &Device) -> Check {
    let u = unit_ns();
    for by in [u / 2, 3 * u, 1007 * u, 9 * u].map(|by| by as i64) {
        for by in [by, -2 * by] {
            sys::sleep(45 * u);
            sys::step_clock(by).explain("step")?;
        }
    }
    ensure_settled(device)
}

fn several_cpus() -> Check {
    let (u, device, logs) = (unit_ns(), Device::open()?, [Log::new(4096), Log::new(4096)]);
    on_both(u).install(&device)?;
    periodic("a", logs[0], u / 2)?;
    periodic("b", logs[1], u / 2)?;
    let epoch = device.start(sys::tai_ns() + 10 * u).explain("start")?;
    step_to_and_fro(&device)?;
    let done = logs.map(|log| log.count());
    let more = || logs.iter().zip(done).all(|(log, done)| log.count() > done + 3);
    ensure!(sys::eventually(5_000_000_000, more), "no more jobs");
    ensure_together(&logs[0], &logs[1], u)?;
    for (log, offset) in logs.iter().zip([2 * u, 3 * u]) {
        ensure_on_clock(&device, log.jobs().last(), epoch + offset)?;
    }
    Ok(())
}

/// Checks that a CPU that needed no interrupt for a long time continues on the grid of the others.
fn cpu_without_threads() -> Check {
    let (u, device, logs) = (unit_ns(), Device::open()?, [Log::new(4096), Log::new(4096)]);
    on_both(u).install(&device)?;
    periodic("a", logs[0], u / 2)?;
    let epoch = device.start(sys::tai_ns() + 10 * u).explain("start")?;
    for by in [-5 * u as i64, 8 * u as i64, -9 * u as i64] {
        sys::step_clock(by).explain("step")?;
        ensure_settled(&device)?;
    }
    periodic("b", logs[1], u / 2)?;
    ensure!(sys::eventually(5_000_000_000, || logs[1].count() > 12), "no jobs");
    ensure_together(&logs[0], &logs[1], u)?;
    ensure_on_clock(&device, logs[1].jobs().last(), epoch + 3 * u)
}
