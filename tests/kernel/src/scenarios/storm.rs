//! Windows that end inside the kernel's critical sections. Members make all kinds of system calls in windows far
//! shorter than their work, while other threads make the same calls outside the class.

use std::fs::File;
use std::io::{Read, Write};
use std::net::UdpSocket;
use std::os::fd::FromRawFd;

use macrotick_uapi::{self as abi, Device, SCHED_TT};

use super::{unit_ns, Scenario};
use crate::board::{Board, Log};
use crate::check::{Check, Explain};
use crate::process::{self, member};
use crate::sys::{self, SchedAttr};
use crate::table::Table;
use crate::{ensure, ensure_eq};

pub const ALL: &[Scenario] = &[
    Scenario::new("kernel_locks_files", || storm(&[files, files], 40)),
    Scenario::new("kernel_locks_pipes", || storm(&[pipes, pipes], 40)),
    Scenario::new("kernel_locks_memory", || storm(&[memory, shared_memory], 40)),
    Scenario::new("kernel_locks_network", || storm(&[network, network], 40)),
    Scenario::new("kernel_locks_processes", || storm(&[processes, processes], 40)),
    Scenario::new("kernel_locks_mixed", || storm(&[files, pipes, memory, network], 40)),
    Scenario::new("full_kernel_locks", || storm(&[files, pipes, memory, shared_memory, network, processes], 800))
        .within(600_000),
];

/// A function that does one round of work; false when a call fails.
pub(super) type Work = fn(u64) -> bool;

/// The cycles for each kind of work after which all threads must have made progress. A member has 5 % of a CPU, and all
/// SCHED_OTHER threads share the rest. A round of the longest work takes about 8 ms at 4 ns per instruction.
const SLICE_CYCLES: u64 = 200;

/// The slices in which each worker must make progress. The slowest one makes about one round in a slice.
const PATIENCE: usize = 4;

fn storm(works: &[Work], slices: u64) -> Check {
    storm_between(0, works, slices)
}

/// Runs the works as members and, at the same time, as SCHED_OTHER and SCHED_FIFO threads. All of them must make
/// progress. Each member's first window is on CPU 0, and its second window on CPU `second`.
pub(super) fn storm_between(second: u32, works: &[Work], slices: u64) -> Check {
    let (u, device) = (unit_ns(), Device::open()?);
    // With several CPUs the lab executes one at a time, for up to 100 ms. Then only survival counts.
    let punctual = std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() == 1);
    let count = works.len();
    let board = Board::new(3 * count);
    let cycle = 10 * u;
    // The lengths are odd, to let the ends fall on different instructions in each cycle.
    let table = (0..count as u64).fold(Table::new(cycle), |table, i| {
        let name = format!("m{i}");
        let table = table.window(&name, 0, i * u / 2, u / 3 + i * 7, abi::ACTIVATE);
        let table = if second > 0 { table.migrate() } else { table };
        table.window(&name, second, (i + 8) * u / 2, u / 5 + i, 0)
    });
    let table = table.window("witness", 0, 9 * u, u / 2, 3).sorted();
    table.install(&device)?;
    let witness = Log::new(4);
    process::periodic("witness", witness, u / 10)?;
    for (i, work) in works.iter().enumerate() {
        member(&format!("m{i}"), |_| match sys::set_sched(0, SchedAttr::policy(SCHED_TT)) {
            Ok(()) => repeat(*work, board, i, 0),
            Err(errno) => errno,
        })?;
        process::fork(|| repeat(*work, board, count + i, 0));
        process::fork(|| match sys::set_sched(0, SchedAttr::fifo(20)) {
            // The sleeps are long: RCU, which is below these threads, must free the memory of all workers.
            Ok(()) => repeat(*work, board, 2 * count + i, 100 * u),
            Err(errno) => errno,
        });
    }
    let epoch = device.start(sys::now_ns() + 10 * u).explain("start")?;
    let rounds = || (0..3 * count).map(|i| board.get(i)).collect::<Vec<u64>>();
    let mut earlier = vec![vec![0; 3 * count]; PATIENCE];
    for slice in 1..=slices.div_ceil(20) {
        sys::sleep_until(epoch + slice * SLICE_CYCLES * count as u64 * cycle);
        let (now, before) = (rounds(), earlier.remove(0));
        let stuck = now.iter().zip(&before).position(|(now, before)| now == before && slice > 1);
        let stuck = stuck.filter(|_| punctual);
        ensure_eq!(stuck, None, "worker without progress until slice {slice}: {now:?} after {before:?}");
        earlier.push(now);
    }
    let before = earlier.swap_remove(PATIENCE - 1);
    // A thread that moves must not get lost on the way.
    let goes_on = || second == 0 || rounds().iter().zip(&before).all(|(now, before)| now > before);
    ensure!(sys::eventually(120_000_000_000, goes_on), "worker without progress: {:?} after {before:?}", rounds());
    let cycles = (sys::now_ns() - epoch) / cycle;
    let stats = device.stats(table_index(&table, "witness")).explain("stats")?;
    // Without PREEMPT_RT the interrupt's delay may exceed a window.
    let served = stats.activations + if sys::is_preempt_rt() { 0 } else { stats.skipped };
    ensure_eq!(served >= cycles || !punctual, true, "activations of the witness in {cycles} cycles");
    device.remove().explain("remove")
}

fn table_index(table: &Table, name: &str) -> u32 {
    table.entities.iter().position(|entity| entity.name == abi::name(name)).unwrap_or(usize::MAX) as u32
}

/// Runs rounds endlessly, and counts them on the board.
pub(super) fn repeat(work: Work, board: Board, own: usize, sleep_ns: u64) -> i32 {
    for round in own as u64 * 1_000_000.. {
        if !work(round) {
            return 77;
        }
        board.add(own, 1);
        if sleep_ns > 0 {
            sys::sleep(sleep_ns);
        }
    }
    0
}

/// Creates, writes, reads, renames and removes files in one directory.
pub(super) fn files(round: u64) -> bool {
    let (path, other) = (format!("/tmp/storm-{round}"), format!("/tmp/storm-{round}-renamed"));
    let mut back = Vec::new();
    std::fs::write(&path, [7; 5000]).is_ok()
        && std::fs::rename(&path, &other).is_ok()
        && File::open(&other).is_ok_and(|mut file| file.read_to_end(&mut back).is_ok())
        && back.len() == 5000
        && std::fs::remove_file(&other).is_ok()
}

/// Lists directories.
pub(super) fn listings(_: u64) -> bool {
    let list = |path: &str| std::fs::read_dir(path).is_ok_and(|entries| entries.flatten().count() > 0);
    list("/proc/self/fd") && list("/proc/self/task") && list("/dev")
}

/// Sends bytes to itself through a pipe.
pub(super) fn pipes(_: u64) -> bool {
    let mut ends = [0; 2];
    // SAFETY: writes two descriptors, which become files of our own.
    let (mut reader, mut writer) = unsafe {
        if libc::pipe(ends.as_mut_ptr()) != 0 {
            return false;
        }
        (File::from_raw_fd(ends[0]), File::from_raw_fd(ends[1]))
    };
    let mut buffer = [0; 3000];
    (0..4).all(|_| writer.write_all(&[1; 3000]).is_ok() && reader.read_exact(&mut buffer).is_ok())
}

/// Maps, touches, protects and unmaps memory.
pub(super) fn memory(_: u64) -> bool {
    let (bytes, protection) = (64 * 4096, libc::PROT_READ | libc::PROT_WRITE);
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a mapping of our own, touched inside its bounds.
    unsafe {
        let at = libc::mmap(std::ptr::null_mut(), bytes, protection, flags, -1, 0);
        if at == libc::MAP_FAILED {
            return false;
        }
        (0..64).for_each(|page| at.cast::<u8>().add(page * 4096).write_volatile(1));
        libc::mprotect(at, bytes / 2, libc::PROT_READ) == 0 && libc::munmap(at, bytes) == 0
    }
}

/// Runs threads of one process that take page faults and unmap memory in the same address space.
pub(super) fn shared_memory(round: u64) -> bool {
    let threads: Vec<_> = (0..2).map(|_| std::thread::spawn(move || memory(round))).collect();
    threads.into_iter().all(|thread| thread.join().unwrap_or(false))
}

/// Sends datagrams to itself over the loopback device.
pub(super) fn network(_: u64) -> bool {
    let Ok(socket) = UdpSocket::bind("127.0.0.1:0") else { return false };
    let Ok(own) = socket.local_addr() else { return false };
    let mut buffer = [0; 600];
    (0..4).all(|_| socket.send_to(&[3; 500], own).is_ok() && socket.recv(&mut buffer).is_ok_and(|length| length == 500))
}

/// Forks a child that exits, and reaps it.
pub(super) fn processes(_: u64) -> bool {
    process::fork(|| 0).wait(60_000_000_000).is_ok()
}
