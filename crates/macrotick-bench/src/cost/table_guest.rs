//! The guest's part: runs of a table with its threads over a process that never sleeps, and traced installations.

use std::arch::x86_64::_rdtsc;
use std::fs;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU32, Ordering};

use macrotick_host::trace::ROOT as TRACEFS;
use macrotick_uapi::{self as abi, Device, Entity, Window};

use super::{Population, TableSize, IN_A_ROW};
use crate::kit::group::write;
use crate::kit::process::{self, Gate};

/// A hidden verb of this program: runs a table.
pub const CROSS: &str = "cost-cross";
/// A hidden verb of this program: installs a table.
pub const INSTALL: &str = "cost-install";

const WINDOW_NS: u64 = 40_000;
/// A round of the hog takes fewer instructions, and the shortest interrupt takes more.
const GAP: u64 = 200;
/// Room for the gaps of the longest run.
const GAPS: usize = 1 << 16;

/// Runs the verb: its main function.
pub fn main(verb: &str) -> ExitCode {
    process::main(|words| match (verb, words) {
        (CROSS, [population, entities, cycles]) => parse_cross(population, entities, cycles).and_then(cross),
        (INSTALL, [entities, windows]) => parse_size(entities, windows).and_then(install_traced),
        _ => Err("these verbs belong to `macrotick-bench cost`".into()),
    })
}

fn parse_cross(population: &str, entities: &str, cycles: &str) -> Result<(Population, u32, u64), String> {
    let population = Population::from_name(population).ok_or_else(|| format!("no population `{population}`"))?;
    Ok((population, process::number(entities)?, process::number(cycles)?))
}

fn parse_size(entities: &str, windows: &str) -> Result<TableSize, String> {
    Ok(TableSize { entities: process::number(entities)?, windows: process::number(windows)? })
}

/// A table with windows of one length for all entities in turn. After each [`IN_A_ROW`] windows, one length is free.
struct Table {
    entities: Vec<Entity>,
    windows: Vec<Window>,
    cycle_ns: u64,
}

fn offset_ns(window: u32) -> u64 {
    u64::from(window + window / IN_A_ROW) * WINDOW_NS
}

fn entity_name(index: u32) -> String {
    format!("e{index}")
}

impl Table {
    fn new(size: TableSize, flags: u32) -> Table {
        let entity = |index| Entity { name: abi::name(&entity_name(index)), ..Default::default() };
        let window = |index: u32| Window {
            offset_ns: offset_ns(index),
            length_ns: WINDOW_NS,
            entity: index % size.entities,
            flags,
            ..Default::default()
        };
        Table {
            entities: (0..size.entities).map(entity).collect(),
            windows: (0..size.windows).map(window).collect(),
            cycle_ns: offset_ns(size.windows) + WINDOW_NS,
        }
    }

    fn install(&self, device: &Device) -> Result<(), String> {
        process::install(device, &self.entities, &self.windows, self.cycle_ns, 0)
    }
}

/// The memory that the processes share.
struct Board {
    /// The number of threads that are bound.
    bound: AtomicU32,
    /// Opens when the table runs.
    runs: Gate,
}

/// Runs a table for some cycles over a process that never sleeps. Prints that process's round and its interruptions.
fn cross((population, entities, cycles): (Population, u32, u64)) -> Result<(), String> {
    let device = Device::open()?;
    let flags = if population == Population::Overrun { 0 } else { abi::ACTIVATE | abi::DEADLINE };
    let table = Table::new(TableSize { entities, windows: entities }, flags);
    table.install(&device)?;
    // SAFETY: atomic words.
    let board: &'static Board = unsafe { process::share()? };
    let threads = if population == Population::Sparse { 1 } else { entities };
    let children = (0..threads).map(|index| process::fork(|| Err(member(&device, index, population, board))));
    let children = children.collect::<Result<Vec<i32>, String>>()?;
    while board.bound.load(Ordering::SeqCst) < threads {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let room = room_for_gaps();
    device.start(0).map_err(|errno| format!("cannot start: errno {errno}"))?;
    board.runs.open();
    let (round, gaps) = hog(cycles * table.cycle_ns, room);
    // The threads end while the table runs: without it those that never sleep would share the processor.
    children.into_iter().for_each(process::kill);
    println!("round {round}");
    gaps.iter().for_each(|gap| println!("gap {gap}"));
    Ok(())
}

/// Runs the thread of an entity; returns the reason why it failed.
fn member(device: &Device, index: u32, population: Population, board: &Board) -> String {
    if let Err(errno) = device.bind(-1, &entity_name(index)) {
        return format!("cannot bind: errno {errno}");
    }
    board.bound.fetch_add(1, Ordering::SeqCst);
    if population == Population::Overrun {
        return overrun(board);
    }
    loop {
        if let Err(errno) = device.wait() {
            return format!("cannot wait: errno {errno}");
        }
        if population == Population::Misses {
            never_wait();
        }
    }
}

/// Computes until the end of every window.
fn overrun(board: &Board) -> String {
    if let Err(reason) = process::set_policy(abi::SCHED_TT, 0) {
        return reason;
    }
    board.runs.wait();
    never_wait()
}

fn never_wait() -> ! {
    loop {
        std::hint::black_box(());
    }
}

/// Makes room for the gaps. It touches every page before the table runs: a switch to a process in a page fault takes
/// long to reach user space.
fn room_for_gaps() -> Vec<u64> {
    let mut room = std::hint::black_box(vec![1; GAPS]);
    room.clear();
    room
}

/// Reads the instruction counter without a pause. Returns the length of one round, and each gap between two readings.
fn hog(length: u64, mut gaps: Vec<u64>) -> (u64, Vec<u64>) {
    // SAFETY: every x86-64 processor has the instruction.
    let read = || unsafe { _rdtsc() };
    let (mut round, mut last) = (u64::MAX, read());
    let end = last + length;
    while last < end {
        let now = read();
        let gap = now - last;
        if gap > GAP {
            if gaps.len() < gaps.capacity() {
                gaps.push(gap);
            }
        } else {
            round = round.min(gap);
        }
        last = now;
    }
    (round, gaps)
}

/// Installs a table while the kernel's allocator is traced. Prints the bytes that the table keeps, and the growth of
/// the kernel's memory.
fn install_traced(size: TableSize) -> Result<(), String> {
    let device = Device::open()?;
    let table = Table::new(size, 0);
    for (file, value) in [("buffer_size_kb", "16384"), ("events/kmem/kmalloc/enable", "1"), ("tracing_on", "1")] {
        write(&format!("{TRACEFS}/{file}"), value)?;
    }
    let before = kernel_memory()?;
    table.install(&device)?;
    let grown = kernel_memory()? - before;
    let (requested, allocated) =
        kept_allocations(&fs::read_to_string(format!("{TRACEFS}/trace")).map_err(|e| e.to_string())?);
    println!("requested {requested}\nallocated {allocated}\ngrown {grown}");
    Ok(())
}

/// Returns the bytes that the kernel's allocators hold.
fn kernel_memory() -> Result<i64, String> {
    let text = fs::read_to_string("/proc/meminfo").map_err(|error| error.to_string())?;
    let value = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key)).ok_or_else(|| format!("no {key}"))?;
        process::number::<i64>(line.trim().trim_end_matches(" kB"))
    };
    Ok((value("Slab:")? + value("VmallocUsed:")?) * 1024)
}

/// Returns the requested and the allocated bytes of all allocations that are accounted to their user. Copies of
/// user-space data are not accounted, and are temporary.
fn kept_allocations(trace: &str) -> (u64, u64) {
    let value = |line: &str, key: &str| {
        let rest = line.split_once(key)?.1;
        rest.split_whitespace().next()?.parse::<u64>().ok()
    };
    let ours = format!("-{} ", std::process::id());
    let lines = trace.lines().filter(|line| line.contains(": kmalloc:") && line.contains("ACCOUNT"));
    lines.filter(|line| line.contains(&ours)).fold((0, 0), |(requested, allocated), line| {
        let of = |key| value(line, key).unwrap_or(0);
        (requested + of("bytes_req="), allocated + of("bytes_alloc="))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_accounted_allocations_count() {
        let ours = std::process::id();
        let line = |pid: u32, flags: &str| {
            format!(
                "  macrotick-{pid}  [000] .....   1.0: kmalloc: call_site=mt_table_decode+0x1 ptr=00 bytes_req=300 \
                 bytes_alloc=512 gfp_flags={flags} node=-1 accounted=true\n"
            )
        };
        let text = [line(ours, "GFP_KERNEL_ACCOUNT"), line(ours, "GFP_USER"), line(ours + 1, "GFP_KERNEL_ACCOUNT")];
        assert_eq!(kept_allocations(&text.concat()), (300, 512));
    }

    #[test]
    fn tables_are_valid() {
        let table = Table::new(TableSize { entities: 3, windows: 7 }, abi::ACTIVATE);
        let offsets = table.windows.iter().map(|window| window.offset_ns / WINDOW_NS).collect::<Vec<_>>();
        assert_eq!(offsets, [0, 1, 2, 3, 5, 6, 7]);
        assert_eq!(table.cycle_ns, 9 * WINDOW_NS);
        let used: u64 = table.windows.iter().map(|window| window.length_ns).sum();
        assert!(used * 1000 <= table.cycle_ns * abi::CAP_PERMILLE);
        assert!(table.windows.windows(2).all(|pair| pair[0].offset_ns + pair[0].length_ns <= pair[1].offset_ns));
        assert_eq!(table.windows.iter().map(|window| window.entity).collect::<Vec<_>>(), [0, 1, 2, 0, 1, 2, 0]);
    }

    #[test]
    fn the_hog_sees_its_rounds() {
        let (round, _) = hog(1_000_000, room_for_gaps());
        assert!(round < GAP, "{round}");
    }
}
