//! Threads that lose their window, or have to move, with locks in their hands: the kernel's and their own. On PREEMPT_RT
//! who holds one of the kernel's cannot move.

use macrotick_uapi::{self as abi, Device};

use super::track::{Track, Windows};
use crate::board::Board;
use crate::check::{Check, Explain};
use crate::process::{self, member};
use crate::scenarios::inherit::{
    between_members_of, holder, many_windows_on, offered_outside_of, outside_of, waiter, FREED, GOT, HELD,
};
use crate::scenarios::storm::{files, listings, memory, pipes, storm_between, Work};
use crate::scenarios::unit_ns;
use crate::sys::{self, SchedAttr};
use crate::table::Table;
use crate::{ensure, ensure_eq};

const WORKS: [Work; 4] = [pipes, listings, memory, files];

/// Between two system calls. Where there are several CPUs, QEMU ends a CPU's turn here.
fn call(round: u64) -> bool {
    std::hint::spin_loop();
    WORKS[round as usize % WORKS.len()](round)
}

/// Windows end in the middle of whatever system call it is in. When it is back it is in its windows, on their CPU.
pub fn system_calls() -> Check {
    const CYCLES: u64 = 300;
    let (u, device, board) = (unit_ns(), Device::open()?, Board::new(3));
    let track = Track::new(1 << 14, u / 2);
    // Odd lengths, so that the ends fall on different instructions in each cycle.
    let (cycle, zero, one) = (10 * u + 13, 3 * u + 7, 3 * u + 111);
    let table = Table::new(cycle).window("t", 0, 0, zero, abi::ACTIVATE).migrate().window("t", 1, 5 * u, one, 0);
    table.install(&device)?;
    let calls = move |own: usize, look: bool| {
        for round in own as u64 * 1_000_000.. {
            if !call(round) {
                return 77;
            }
            if look {
                track.look();
            }
            board.add(own, 1);
        }
        0
    };
    let child = member("t", move |device| match device.wait() {
        Ok(_) => calls(0, true),
        Err(errno) => errno,
    })?;
    for own in [1, 2] {
        let other = process::fork(move || calls(own, false));
        sys::set_affinity(other.pid, &[own as u32 - 1]).explain("pin")?;
    }
    let epoch = device.start(sys::now_ns() + 20 * u).explain("start")?;
    sys::sleep_until(epoch + CYCLES * cycle);
    let rounds = [0, 1, 2].map(|own| board.get(own));
    let goes_on = || (0..3).all(|own| board.get(own) > rounds[own]);
    ensure!(sys::eventually(20_000_000_000, goes_on), "no more rounds after {rounds:?}: {}", child.describe());
    ensure!(child.poll().is_none(), "a call failed");
    let windows = vec![(0, 0, zero), (1, 5 * u, 5 * u + one)];
    let (_, outside) = Windows { epoch, cycle, windows, late: u / 4 }.judge(&track);
    // A call takes longer than a window, so that most looks are stretches of their own.
    let looks = track.stretches();
    let on = [0, 1].map(|cpu| looks.iter().filter(|look| look.cpu == cpu).count());
    ensure!(on.iter().all(|looks| *looks >= 2), "{on:?} looks on the two CPUs in {CYCLES} cycles");
    // Who is handed a lock outside of its windows is served for up to 50 us longer than it takes to take it.
    let long = outside.iter().find(|stretch| stretch.to_ns - stretch.from_ns > u);
    ensure!(long.is_none(), "outside its windows: {long:?}");
    ensure!(4 * outside.len() <= looks.len(), "{} of {} looks outside its windows", outside.len(), looks.len());
    Ok(())
}

/// Windows far shorter than the calls, on two CPUs in turn, and others with the same locks on both of them.
pub fn kernel_locks(works: &[Work], slices: u64) -> Check {
    storm_between(1, works, slices)
}

/// [0, 4) on CPU 0 with a job, and so many units on CPU 1 somewhere else in the cycle.
fn table(cycle: u64, offset: u64, length: u64) -> Table {
    let u = unit_ns();
    Table::new(cycle * u).window("t", 0, 0, 4 * u, 3).migrate().window("t", 1, offset * u, length * u, 0)
}

/// Between its windows the holder goes on for its waiter, and is frozen afterwards.
pub fn inherit_outside(attr: SchedAttr) -> Check {
    outside_of(&table(5000, 2500, 4), attr)
}

/// A member offered a lock outside of its windows takes it there.
pub fn inherit_offered_outside() -> Check {
    offered_outside_of(&table(5000, 2500, 4))
}

/// The holder moves to and fro with the lock, whether a window or a waiter lets it go on.
pub fn inherit_many_windows() -> Check {
    many_windows_on(&[0, 1])
}

/// The waiter is in its window on the CPU from which the holder's next window is far away.
pub fn inherit_between_members() -> Check {
    let u = unit_ns();
    let table = table(1000, 500, 4).window("w", 1, 20 * u, 30 * u, 3);
    between_members_of(&table.sorted())
}

/// Somebody waits for the holder, and others keep what such waiters lend from either processor: it goes on at full speed
/// in its window on the other CPU, as it would without a waiter.
pub fn inherit_inside(attr: SchedAttr) -> Check {
    let (u, device, board) = (unit_ns(), Device::open()?, Board::new(8));
    table(1000, 20, 30).install(&device)?;
    holder(board, 20 * u)?;
    let epoch = device.start(sys::now_ns() + 100 * u).explain("start")?;
    waiter(board, attr, epoch + 8 * u);
    let busy = |cpu: u32| {
        process::fork(move || {
            sys::sleep_until(epoch + 12 * u);
            match sys::set_affinity(0, &[cpu]).and_then(|()| sys::set_sched(0, SchedAttr::fifo(80))) {
                Ok(()) => sys::hog(),
                Err(errno) => errno,
            }
        })
    };
    let hogs = [busy(0), busy(1)];
    sys::sleep_until(epoch + 19 * u);
    ensure!(board.get(HELD) > 0 && board.get(FREED) == 0, "the holder does not hold the lock before its second window");
    sys::sleep_until(epoch + 55 * u);
    hogs.iter().try_for_each(|hog| hog.kill(1_000_000_000))?;
    ensure!(board.get(FREED) > 0, "the holder did not go on in its window on the other CPU");
    // Of 20 units it had 4 in its window, and about 4 before the others came. Without this window it would be frozen.
    let freed = (board.get(FREED) - epoch) / u;
    ensure!((20..40).contains(&freed), "the lock was given back after {freed} units");
    ensure!(sys::eventually(1_000_000_000, || board.get(GOT) > 0), "no lock for the waiter");
    ensure_eq!(device.stats(0).explain("stats")?.stopped, 0, "stopped");
    Ok(())
}
