//! Golden schedules: a tiny table and a few threads in, the exact timeline out.
//!
//! A case is text (`golden/*.txt`); `#` begins a comment. All times are in cells of the timeline's grid, one
//! macrotick each:
//!
//! ```text
//! cycle 10 x 3             three cycles of ten cells
//! window E cpu 0 0..4 AD   a window of entity E, flags A(CTIVATE), D(EADLINE) or -
//! sync cpu 0 6..9 bound 1  a sync window; the table is on CLOCK_TAI
//! step -3 at 25            the clock is set back by three cells, 25 after the epoch
//! pool E                   E is a pool in the order FIFO; its windows have no flags
//! migrate E                E may have windows on several CPUs
//! thread a tt E: wait; spin 2,6; wait        repeats for ever; `2,6`: 2 in the first round, 6 in all others
//! thread h other: hog                        also: fifo PRIORITY, deadline RUNTIME/PERIOD; `on CPU` after it pins
//! thread f fifo 99: until 5; spin 2; end     `until` counts from the epoch, and one cycle more in each round
//! ```
//!
//! Steps: `wait`, `yield`, `spin N` (processor time, 0.3 cells less, so that it ends inside a cell), `until N`, `from N`
//! (`until N` in the first round only), `read` and `write` (a pipe that all share), `hog`, `end` (sleeps for ever).

use std::str::FromStr;

use macrotick_uapi::{self as abi, Device};

use crate::board::{Board, Log};
use crate::check::{Check, Explain};
use crate::ensure;
use crate::process;
use crate::random::{variation, Random};
use crate::scenarios::unit_ns;
use crate::sys::{self, SchedAttr};
use crate::table::Table;
use crate::trace;

/// The line between a case and its timeline.
pub const SEPARATOR: &str = "---";

/// One step of a thread's program.
#[derive(Clone, Debug, PartialEq)]
enum Step {
    Wait,
    Yield,
    /// Cells, by round; the last one counts for all further rounds.
    Spin(Vec<f64>),
    Until(f64),
    From(f64),
    Read,
    Write,
    Hog,
    End,
}

/// Under what a thread runs.
#[derive(Clone, Debug, PartialEq)]
enum Standing {
    Member(String),
    Other,
    Fifo(u32),
    /// Runtime and period, in cells.
    Deadline(u64, u64),
}

#[derive(Clone, Debug, PartialEq)]
struct Thread {
    name: char,
    standing: Standing,
    cpu: Option<u32>,
    program: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq)]
struct Window {
    entity: String,
    cpu: u32,
    begin: f64,
    end: f64,
    flags: u32,
}

#[derive(Clone, Debug, PartialEq)]
struct Sync {
    cpu: u32,
    begin: f64,
    end: f64,
    bound: f64,
}

/// The clock is set forward by so much at an instant since the epoch.
#[derive(Clone, Copy, Debug, PartialEq)]
struct ClockStep {
    by: f64,
    at: f64,
}

/// A case, decoded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Case {
    cycle: usize,
    cycles: usize,
    windows: Vec<Window>,
    syncs: Vec<Sync>,
    steps: Vec<ClockStep>,
    pools: Vec<String>,
    migrating: Vec<String>,
    threads: Vec<Thread>,
}

fn number<T: FromStr>(word: Option<&str>) -> Check<T> {
    let word = word.ok_or("a number is missing")?;
    word.parse().map_err(|_| format!("{word} is not a number"))
}

impl Case {
    /// Decodes a case; an error names the line.
    pub fn parse(text: &str) -> Check<Case> {
        let mut case = Case::default();
        let input = text.lines().take_while(|line| *line != SEPARATOR);
        for line in input.map(|line| line.split('#').next().unwrap_or("").trim()).filter(|line| !line.is_empty()) {
            case.line(line).map_err(|reason| format!("{line}: {reason}"))?;
        }
        ensure!(case.cycle > 0 && case.cycles > 0, "no cycle");
        Ok(case)
    }

    fn line(&mut self, line: &str) -> Check {
        let mut words = line.split_whitespace();
        match words.next() {
            Some("cycle") => {
                self.cycle = number(words.next())?;
                ensure!(words.next() == Some("x"), "x is missing");
                self.cycles = number(words.next())?;
            }
            Some("window") => self.windows.push(parse_window(words)?),
            Some("pool") => self.pools.push(words.next().ok_or("no entity")?.to_owned()),
            Some("migrate") => self.migrating.push(words.next().ok_or("no entity")?.to_owned()),
            Some("sync") => self.syncs.push(parse_sync(words)?),
            Some("step") => {
                let by = number(words.next())?;
                ensure!(words.next() == Some("at"), "at is missing");
                self.steps.push(ClockStep { by, at: number(words.next())? });
            }
            Some("thread") => self.threads.push(parse_thread(line)?),
            _ => return Err("neither cycle, window, pool, migrate, sync, step nor thread".into()),
        }
        Ok(())
    }

    /// How many CPUs it needs.
    pub fn cpus(&self) -> u32 {
        let windows = self.windows.iter().map(|window| window.cpu);
        windows.chain(self.threads.iter().filter_map(|thread| thread.cpu)).max().unwrap_or(0) + 1
    }

    fn table(&self) -> Table {
        let cells = |cells: f64| (cells * unit_ns() as f64) as u64;
        let mut table = self.windows.iter().fold(Table::new(self.cycle as u64 * unit_ns()), |table, window| {
            let length = cells(window.end) - cells(window.begin);
            let table = table.window(&window.entity, window.cpu, cells(window.begin), length, window.flags);
            match self.is_first(window) {
                true if self.pools.contains(&window.entity) => table.pool(0, 0),
                true if self.migrating.contains(&window.entity) => table.migrate(),
                _ => table,
            }
        });
        for sync in &self.syncs {
            let length = cells(sync.end) - cells(sync.begin);
            table = table.sync(sync.cpu, cells(sync.begin), length, cells(sync.bound) as u32);
        }
        table.sorted()
    }

    fn is_first(&self, window: &Window) -> bool {
        self.windows.iter().find(|one| one.entity == window.entity) == Some(window)
    }
}

/// `cpu 0 2..5`.
fn parse_place<'a>(words: &mut impl Iterator<Item = &'a str>) -> Check<(u32, f64, f64)> {
    ensure!(words.next() == Some("cpu"), "cpu is missing");
    let cpu = number(words.next())?;
    let (begin, end) = words.next().and_then(|range| range.split_once("..")).ok_or("no range")?;
    Ok((cpu, number(Some(begin))?, number(Some(end))?))
}

fn parse_sync<'a>(mut words: impl Iterator<Item = &'a str>) -> Check<Sync> {
    let (cpu, begin, end) = parse_place(&mut words)?;
    ensure!(words.next() == Some("bound"), "bound is missing");
    Ok(Sync { cpu, begin, end, bound: number(words.next())? })
}

fn parse_window<'a>(mut words: impl Iterator<Item = &'a str>) -> Check<Window> {
    let entity = words.next().ok_or("no entity")?.to_owned();
    let (cpu, begin, end) = parse_place(&mut words)?;
    let flags = words.next().ok_or("no flags")?;
    let flag = |letter, value| if flags.contains(letter) { value } else { 0 };
    let flags = flag('A', abi::ACTIVATE) | flag('D', abi::DEADLINE);
    Ok(Window { entity, cpu, begin, end, flags })
}

fn parse_thread(line: &str) -> Check<Thread> {
    let (head, program) = line.split_once(':').ok_or("no program")?;
    let mut words = head.split_whitespace().skip(1);
    let name = words.next().and_then(|word| word.chars().next()).ok_or("no name")?;
    let standing = match words.next() {
        Some("tt") => Standing::Member(words.next().ok_or("no entity")?.to_owned()),
        Some("other") => Standing::Other,
        Some("fifo") => Standing::Fifo(number(words.next())?),
        Some("deadline") => {
            let (runtime, period) = words.next().and_then(|word| word.split_once('/')).ok_or("no RUNTIME/PERIOD")?;
            Standing::Deadline(number(Some(runtime))?, number(Some(period))?)
        }
        _ => return Err("no standing".into()),
    };
    let cpu = match words.next() {
        Some("on") => Some(number(words.next())?),
        _ => None,
    };
    let program = program.split(';').map(|step| parse_step(step.trim())).collect::<Check<_>>()?;
    Ok(Thread { name, standing, cpu, program })
}

fn parse_step(step: &str) -> Check<Step> {
    let (verb, rest) = step.split_once(' ').unwrap_or((step, ""));
    Ok(match verb {
        "wait" => Step::Wait,
        "yield" => Step::Yield,
        "spin" => Step::Spin(rest.split(',').map(|word| number(Some(word.trim()))).collect::<Check<_>>()?),
        "until" => Step::Until(number(Some(rest))?),
        "from" => Step::From(number(Some(rest))?),
        "read" => Step::Read,
        "write" => Step::Write,
        "hog" => Step::Hog,
        "end" => Step::End,
        _ => return Err(format!("no such step: {step}")),
    })
}

/// What all threads of a case share.
#[derive(Clone, Copy)]
struct Stage {
    /// Word 0: the epoch, once it is known.
    board: Board,
    pipe: [i32; 2],
    cycle_ns: u64,
}

impl Stage {
    fn instant(&self, cells: f64) -> u64 {
        (self.board.get(0) as i64 + (cells * unit_ns() as f64) as i64) as u64
    }

    /// For members, who begin before the epoch is known. One that the start freezes between its look at the board and
    /// its sleep must not sleep in its first window: until when, it says before it looks.
    fn wait_until(&self, cells: f64) {
        loop {
            let next = sys::now_ns() + unit_ns();
            if self.board.get(0) != 0 {
                break;
            }
            sys::sleep_until(next);
        }
        sys::sleep_until(self.instant(cells));
    }
}

/// A thread's life after it has joined.
fn perform(thread: &Thread, stage: Stage, log: Log, device: &Device) -> i32 {
    sys::prefault();
    for round in 0.. {
        for step in &thread.program {
            match step {
                Step::Wait => match device.wait() {
                    Ok(wait) => log.push(&wait),
                    Err(errno) => return errno,
                },
                // SAFETY: takes nothing.
                Step::Yield => drop(unsafe { libc::sched_yield() }),
                Step::Spin(cells) => {
                    let cells = cells[round.min(cells.len() - 1)];
                    sys::spin(((cells - 0.3) * unit_ns() as f64) as u64);
                }
                Step::Until(cells) => sys::sleep_until(stage.instant(*cells) + round as u64 * stage.cycle_ns),
                Step::From(cells) if round == 0 => stage.wait_until(*cells),
                Step::From(_) => {}
                // SAFETY: one byte of a local variable.
                Step::Read => drop(unsafe { libc::read(stage.pipe[0], (&mut 0u8 as *mut u8).cast(), 1) }),
                // SAFETY: one byte of a constant.
                Step::Write => drop(unsafe { libc::write(stage.pipe[1], b"x".as_ptr().cast(), 1) }),
                Step::Hog => sys::hog(),
                Step::End => loop {
                    sys::sleep(1_000_000_000);
                },
            }
        }
    }
    0
}

fn begin(thread: &Thread, stage: Stage, log: Log) -> Check {
    let enter = |attr: SchedAttr| {
        thread.cpu.map_or(Ok(()), |cpu| sys::set_affinity(0, &[cpu]))?;
        sys::set_sched(0, attr)
    };
    let name = format!("gt-{}", thread.name);
    if let Standing::Member(entity) = &thread.standing {
        process::member(entity, |device| {
            sys::set_name(&name);
            if thread.program.contains(&Step::Yield) && sys::set_sched(0, SchedAttr::policy(abi::SCHED_TT)).is_err() {
                return 102;
            }
            perform(thread, stage, log, device)
        })?;
        return Ok(());
    }
    let attr = match thread.standing {
        Standing::Fifo(priority) => SchedAttr::fifo(priority),
        Standing::Deadline(runtime, period) => SchedAttr::deadline(runtime * unit_ns(), period * unit_ns()),
        _ => SchedAttr::other(),
    };
    process::fork(|| {
        sys::set_name(&name);
        while stage.board.get(0) == 0 {
            sys::sleep(1_000_000);
        }
        let Ok(device) = Device::open() else { return 100 };
        match enter(attr) {
            Ok(()) => perform(thread, stage, log, &device),
            Err(errno) => errno,
        }
    });
    Ok(())
}

/// Plays a case; returns its timeline, the jobs of its threads and the counters of its entities.
pub fn play(case: &Case) -> Check<String> {
    let device = Device::open()?;
    let table = case.table();
    table.install(&device)?;
    let mut pipe = [0; 2];
    // SAFETY: writes two descriptors.
    unsafe { libc::pipe(pipe.as_mut_ptr()) };
    if variation() > 0 {
        sys::sleep(Random::new(variation() ^ sys::gettid() as u64).below(10_000_000));
    }
    let cycle_ns = table.cycle_ns;
    let stage = Stage { board: Board::new(1), pipe, cycle_ns };
    let logs: Vec<Log> = case.threads.iter().map(|_| Log::new(64)).collect();
    for (thread, log) in case.threads.iter().zip(&logs) {
        begin(thread, stage, *log)?;
    }
    sys::sleep(5_000_000);
    trace::start()?;
    let epoch = start(&device, case)?;
    stage.board.set(0, epoch);
    for step in &case.steps {
        sys::sleep_until(stage.instant(step.at));
        sys::step_clock((step.by * unit_ns() as f64) as i64).explain("step")?;
    }
    let end = epoch + case.cycles as u64 * cycle_ns;
    sys::sleep_until(end - unit_ns() / 2);
    let counters = counters(&device, &table)?;
    sys::sleep_until(end + unit_ns());
    let switches = trace::stop()?;
    let mut text = String::new();
    for cpu in 0..case.cpus() as usize {
        text += &format!("cpu {cpu} {}\n", timeline(case, &switches, cpu, epoch));
    }
    for (thread, log) in case.threads.iter().zip(&logs).filter(|(_, log)| log.count() > 0) {
        text += &format!("{}{}\n", thread.name, jobs(log, epoch, end));
    }
    Ok(text + &counters)
}

/// The epoch on `CLOCK_MONOTONIC`.
fn start(device: &Device, case: &Case) -> Check<u64> {
    let now = if case.syncs.is_empty() { sys::now_ns() } else { sys::tai_ns() };
    let epoch = device.start(now + 20_000_000).explain("start")?;
    let ahead = device.get().explain("get")?.offset_ns;
    Ok((epoch as i64 - ahead) as u64)
}

fn timeline(case: &Case, switches: &[trace::Switch], cpu: usize, epoch: u64) -> String {
    let letter = |name: &str| match name.strip_prefix("gt-").and_then(|rest| rest.chars().next()) {
        Some(letter) => letter,
        None if name.starts_with("swapper") => '.',
        None => '-',
    };
    let cells = trace::cells(switches, cpu, epoch, unit_ns(), case.cycle * case.cycles, letter);
    let cycles: Vec<&str> = (0..case.cycles).map(|i| &cells[i * case.cycle..(i + 1) * case.cycle]).collect();
    format!("|{}|", cycles.join("|"))
}

/// ` number@nominal` in cells, with `-n` for n lost activations.
fn jobs(log: &Log, epoch: u64, end: u64) -> String {
    let jobs = log.jobs().into_iter().filter(|job| job.nominal_ns < end);
    jobs.map(|job| {
        let at = (job.nominal_ns - epoch) as f64 / unit_ns() as f64;
        let lost = if job.lost > 0 { format!("-{}", job.lost) } else { String::new() };
        format!(" {}@{at}{lost}", job.number)
    })
    .collect()
}

fn counters(device: &Device, table: &Table) -> Check<String> {
    let mut text = String::new();
    for index in 0..table.entities.len() as u32 {
        let stats = device.stats(index).explain("stats")?;
        let name: String = stats.name.iter().take_while(|byte| **byte != 0).map(|byte| *byte as char).collect();
        text += &format!(
            "{name}: activations {} completions {} misses {} lost {} skipped {} preemptions {}\n",
            stats.activations, stats.completions, stats.misses, stats.lost, stats.skipped, stats.preemptions
        );
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_read() {
        let case =
            Case::parse("cycle 10 x 2 # words\nwindow E cpu 1 0.5..4 A\nthread a tt E: wait; spin 2,6\n").unwrap();
        let pool = Case::parse("cycle 10 x 2\nwindow P cpu 0 0..4 -\nwindow P cpu 0 5..6 -\npool P\n").unwrap();
        assert_eq!(pool.table().entities.iter().map(|one| one.flags).collect::<Vec<_>>(), [abi::POOL]);
        let text = "cycle 10 x 2\nwindow M cpu 1 0..4 A\nwindow E cpu 0 0..4 A\nwindow M cpu 0 5..6 -\nmigrate M\n";
        let table = Case::parse(text).unwrap().table();
        assert_eq!(table.entities.iter().map(|one| one.flags).collect::<Vec<_>>(), [abi::MIGRATE, 0]);
        assert_eq!(table.windows.iter().map(|one| (one.cpu, one.entity)).collect::<Vec<_>>(), [(0, 1), (0, 0), (1, 0)]);
        assert_eq!((case.cycle, case.cycles, case.cpus()), (10, 2, 2));
        assert_eq!(case.windows[0].flags, abi::ACTIVATE);
        assert_eq!(case.threads[0].program, [Step::Wait, Step::Spin(vec![2.0, 6.0])]);
        let synced = Case::parse("cycle 10 x 2\nsync cpu 0 6..9 bound 1\nstep -3 at 25\n").unwrap();
        assert_eq!(synced.syncs, [Sync { cpu: 0, begin: 6.0, end: 9.0, bound: 1.0 }]);
        assert_eq!(synced.steps, [ClockStep { by: -3.0, at: 25.0 }]);
        assert!(Case::parse("cycle 10 x 2\nthread a tt E: dance\n").unwrap_err().contains("no such step: dance"));
        assert!(Case::parse("").is_err());
    }
}
