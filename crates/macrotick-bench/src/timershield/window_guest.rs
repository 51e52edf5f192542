//! The guest's part: a task of SCHED_TT beside a load.

use std::fs;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};

use macrotick_uapi::{self as abi, Device, Entity, Window};

use super::task_guest::begin_tasks;
use super::workload::Workload;
use crate::kit::board::{gather, release, Board, SAMPLES};
use crate::kit::clock::now_ns;
use crate::kit::round::work;
use crate::kit::variant::{switch, Variant};
use crate::kit::{hostile, process};

/// A hidden verb of this program.
pub const RUN: &str = "timershield-window";

/// The jobs of a full run, and of a quick run.
pub const JOBS: usize = 400;
/// See [`JOBS`].
pub const QUICK_JOBS: usize = 20;

const ENTITY: &str = "job";
/// A period that is no multiple of the tick's or of the lower tasks' periods. Their timers expire at every phase of the
/// job.
const CYCLE_NS: u64 = 5_003_500;
const WINDOW_NS: u64 = 2_500_000;
/// Longer than the path to a job, whatever the kernel does at that moment.
const LEAD_NS: u64 = 40_000;
/// About 1.7 ms.
const ROUNDS: u64 = 7200;
/// Lower tasks of SCHED_FIFO.
const TASKS: u32 = 100;
/// The number of timers of the unprivileged process.
const TIMERS: u32 = 1000;
const BYTES: usize = 4096;

/// The load of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// Only the tick.
    None,
    /// Tasks of SCHED_FIFO that wake up in groups.
    Tasks,
    /// An unprivileged process with timers.
    Timers,
    /// A process that issues system calls without end.
    Calls,
}

impl Load {
    /// All loads.
    pub const ALL: [Load; 4] = [Load::None, Load::Tasks, Load::Timers, Load::Calls];

    /// Returns the name on the guest's command line, and in figures.
    pub fn name(self) -> &'static str {
        match self {
            Load::None => "alone",
            Load::Tasks => "tasks",
            Load::Timers => "timers",
            Load::Calls => "calls",
        }
    }

    /// Returns the name in tables.
    pub fn title(self) -> String {
        match self {
            Load::None => "the tick alone".into(),
            Load::Tasks => format!("{TASKS} lower SCHED_FIFO tasks"),
            Load::Timers => format!("{TIMERS} timers of a hostile process"),
            Load::Calls => "system calls without end".into(),
        }
    }

    fn from_name(name: &str) -> Option<Load> {
        Load::ALL.into_iter().find(|load| load.name() == name)
    }
}

/// The observations of each job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observed {
    /// Nanoseconds from its nominal instant to its first instruction, and to its end.
    Times,
    /// The number of timer interrupts in the job, and a zero.
    Interrupts,
}

impl Observed {
    fn name(self) -> &'static str {
        match self {
            Observed::Times => "times",
            Observed::Interrupts => "interrupts",
        }
    }

    fn from_name(name: &str) -> Option<Observed> {
        [Observed::Times, Observed::Interrupts].into_iter().find(|observed| observed.name() == name)
    }
}

/// Returns the words of the command line that [`main`] takes.
pub fn words(variant: Variant, load: Load, observed: Observed, jobs: usize) -> [String; 5] {
    [RUN.into(), variant.name().into(), load.name().into(), observed.name().into(), jobs.to_string()]
}

/// Runs the verb: its main function.
pub fn main() -> ExitCode {
    process::main(|words| {
        let (variant, load, observed, jobs) = parse(words).ok_or("a verb of `macrotick-bench timershield`")?;
        run(variant, load, observed, jobs)
    })
}

fn parse(words: &[&str]) -> Option<(Variant, Load, Observed, usize)> {
    let &[variant, load, observed, jobs] = words else { return None };
    let jobs = jobs.parse().ok().filter(|&jobs| 2 * jobs <= SAMPLES)?;
    Some((Variant::from_name(variant)?, Load::from_name(load)?, Observed::from_name(observed)?, jobs))
}

/// Starts all processes and the table, waits for the task, and prints its observations.
fn run(variant: Variant, load: Load, observed: Observed, jobs: usize) -> Result<(), String> {
    switch(variant)?;
    let device = Device::open()?;
    install(&device)?;
    // SAFETY: atomic words.
    let board: &'static Board = unsafe { process::share()? };
    let children = begin_load(load, board)?;
    let task = process::fork(|| task(&device, observed, jobs, board))?;
    let zero = gather(board, children.len() as u32 + 1);
    device.start(zero).map_err(|errno| format!("cannot start: errno {errno}"))?;
    release(board, zero);
    process::wait(task)?;
    children.into_iter().for_each(process::kill);
    let word = |i: usize| board.samples[i].load(Ordering::SeqCst);
    (0..jobs).for_each(|job| println!("job {} {}", word(2 * job), word(2 * job + 1)));
    Ok(())
}

fn install(device: &Device) -> Result<(), String> {
    let entity = Entity { name: abi::name(ENTITY), ..Default::default() };
    let window = Window { length_ns: WINDOW_NS, flags: abi::ACTIVATE | abi::DEADLINE, ..Default::default() };
    process::install(device, &[entity], &[window], CYCLE_NS, LEAD_NS)
}

/// Starts the processes of a load, which wait for time zero.
fn begin_load(load: Load, board: &'static Board) -> Result<Vec<i32>, String> {
    match load {
        Load::None => Ok(Vec::new()),
        Load::Tasks => begin_tasks(&Workload::Synchronised.others(TASKS), board),
        Load::Timers => Ok(vec![process::fork(|| hostile::run(&Workload::Hostile.timers(TIMERS), board))?]),
        Load::Calls => Ok(vec![process::fork(|| issue_calls(board))?]),
    }
}

/// Issues system calls without end: pipe, memory mapping, process id.
fn issue_calls(board: &Board) -> Result<(), String> {
    let (mut ends, mut buffer) = ([0; 2], [0u8; BYTES]);
    // SAFETY: two descriptors are written.
    if unsafe { libc::pipe(ends.as_mut_ptr()) } != 0 {
        return Err(process::last_error("pipe"));
    }
    board.join();
    let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    loop {
        // SAFETY: moves as many bytes as the buffer has; a fresh private mapping, written within and unmapped once.
        unsafe {
            libc::write(ends[1], buffer.as_ptr().cast(), BYTES);
            libc::read(ends[0], buffer.as_mut_ptr().cast(), BYTES);
            let memory = libc::mmap(std::ptr::null_mut(), 16 * BYTES, access, kind, -1, 0);
            if memory == libc::MAP_FAILED {
                return Err(process::last_error("mmap"));
            }
            memory.cast::<u8>().write_volatile(1);
            libc::munmap(memory, 16 * BYTES);
            libc::syscall(libc::SYS_getpid);
        }
    }
}

/// Becomes the task: jobs with the same number of instructions.
fn task(device: &Device, observed: Observed, jobs: usize, board: &Board) -> Result<(), String> {
    process::lock_memory()?;
    device.bind(-1, ENTITY).map_err(|errno| format!("cannot bind: errno {errno}"))?;
    board.join();
    // The first job does not count: it has page faults, also for the clock.
    for round in 0..=jobs {
        let job = device.wait().map_err(|errno| format!("cannot wait: errno {errno}"))?;
        let seen = match observed {
            Observed::Times => timed(job.nominal_ns),
            Observed::Interrupts => counted(),
        };
        if let Some(round) = round.checked_sub(1) {
            let words: &[AtomicU64] = &board.samples[2 * round..];
            words.iter().zip(seen).for_each(|(word, value)| word.store(value, Ordering::Relaxed));
        }
    }
    Ok(())
}

fn timed(nominal_ns: u64) -> [u64; 2] {
    let begin = now_ns();
    work(ROUNDS);
    let end = now_ns();
    [begin - nominal_ns, end - nominal_ns]
}

fn counted() -> [u64; 2] {
    let before = timer_interrupts();
    work(ROUNDS);
    [timer_interrupts() - before, 0]
}

/// Returns the timer interrupts of the first CPU since its boot.
fn timer_interrupts() -> u64 {
    let text = fs::read_to_string("/proc/interrupts").unwrap_or_default();
    let line = text.lines().find(|line| line.trim_start().starts_with("LOC:"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_read_as_it_was_written() {
        for load in Load::ALL {
            let words = words(Variant::Off, load, Observed::Interrupts, JOBS);
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            assert_eq!(parse(&words[1..]), Some((Variant::Off, load, Observed::Interrupts, JOBS)));
        }
        let odd = [
            &["on", "tasks", "times"][..],
            &["on", "many", "times", "9"],
            &["no", "tasks", "times", "9"],
            &["on", "tasks", "no", "9"],
            &["on", "tasks", "times", "1000000"],
        ];
        assert!(odd.iter().all(|words| parse(words).is_none()));
    }

    #[test]
    fn ticks_and_lower_tasks_come_at_every_phase() {
        const TICK_NS: u64 = 1_000_000;
        let drift = CYCLE_NS % TICK_NS;
        assert!(drift < WINDOW_NS / JOBS as u64 && drift * JOBS as u64 > TICK_NS);
    }
}
