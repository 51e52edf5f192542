//! Threads that lose their window, or must move, while they hold locks: kernel locks and their own. On PREEMPT_RT a
//! thread that holds a kernel lock cannot move.

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

/// Makes a system call. With several CPUs, QEMU ends a CPU's turn before it.
fn call(round: u64) -> bool {
    sys::relax();
    WORKS[round as usize % WORKS.len()](round)
}

/// Checks windows that end in the middle of any system call. When the call returns, the thread is in its windows, on
/// their CPU.
pub fn system_calls() -> Check {
    const CYCLES: u64 = 300;
    let (u, device, board) = (unit_ns(), Device::open()?, Board::new(3));
    let track = Track::new(1 << 14, u / 2);
    // The lengths are odd, to let the ends fall on different instructions in each cycle.
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
    // A call takes longer than a window: most looks are separate stretches.
    let looks = track.stretches();
    let on = [0, 1].map(|cpu| looks.iter().filter(|look| look.cpu == cpu).count());
    ensure!(on.iter().all(|looks| *looks >= 2), "{on:?} looks on the two CPUs in {CYCLES} cycles");
    // A thread may be handed a lock outside of its windows. It is then served for up to 50 us after taking it.
    let long = outside.iter().find(|stretch| stretch.to_ns - stretch.from_ns > u);
    ensure!(long.is_none(), "outside its windows: {long:?}");
    ensure!(4 * outside.len() <= looks.len(), "{} of {} looks outside its windows", outside.len(), looks.len());
    Ok(())
}

/// Checks windows far shorter than the calls, on two CPUs in turn. On both CPUs other threads use the same locks.
pub fn kernel_locks(works: &[Work], slices: u64) -> Check {
    storm_between(1, works, slices)
}

/// Returns a table with [0, 4) on CPU 0 with a job, and a window on CPU 1 elsewhere in the cycle, in units.
fn table(cycle: u64, offset: u64, length: u64) -> Table {
    let u = unit_ns();
    Table::new(cycle * u).window("t", 0, 0, 4 * u, 3).migrate().window("t", 1, offset * u, length * u, 0)
}

/// Checks that the holder runs for its waiter between its windows, and is frozen afterwards.
pub fn inherit_outside(attr: SchedAttr) -> Check {
    outside_of(&table(5000, 2500, 4), attr)
}

/// Checks that a member that is offered a lock outside of its windows takes it there.
pub fn inherit_offered_outside() -> Check {
    offered_outside_of(&table(5000, 2500, 4))
}

/// Checks that the holder moves between the CPUs with the lock, both in its windows and on behalf of a waiter.
pub fn inherit_many_windows() -> Check {
    many_windows_on(&[0, 1])
}

/// Checks a waiter in its window, on a CPU on which the holder's next window is far away.
pub fn inherit_between_members() -> Check {
    let u = unit_ns();
    let table = table(1000, 500, 4).window("w", 1, 20 * u, 30 * u, 3);
    between_members_of(&table.sorted())
}

/// Checks a holder with a waiter, while others keep both CPUs from the waiter's priority. In its window on the other
/// CPU, the holder continues at full speed, as without a waiter.
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
    // Of 20 units, the holder had 4 in its window, and about 4 before the others came. Without the second window it
    // would be frozen.
    let freed = (board.get(FREED) - epoch) / u;
    ensure!((20..40).contains(&freed), "the lock was given back after {freed} units");
    ensure!(sys::eventually(1_000_000_000, || board.get(GOT) > 0), "no lock for the waiter");
    ensure_eq!(device.stats(0).explain("stats")?.stopped, 0, "stopped");
    Ok(())
}
