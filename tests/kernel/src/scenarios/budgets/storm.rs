//! Budgets that end inside the kernel's critical sections, with the same system calls in groups with little budget and
//! outside of groups.

use super::{ds, first_group, group, PERIOD};
use crate::board::Board;
use crate::check::Check;
use crate::process;
use crate::scenarios::storm::{repeat, Work};
use crate::scenarios::unit_ns;
use crate::sys::{self, SchedAttr};
use crate::{ensure, ensure_eq};

/// The length of a slice, in periods. A group has 4 % of a CPU, and a round of the longest work takes about 4 ms at 4
/// ns per instruction.
const SLICE_PERIODS: u64 = 60;

/// Runs each work in its own group, and at the same time under SCHED_OTHER and SCHED_FIFO. All workers must make
/// progress.
pub(super) fn storm(works: &[Work], slices: u64) -> Check {
    let (u, count) = (unit_ns(), works.len());
    let board = Board::new(3 * count);
    for (i, work) in works.iter().enumerate() {
        // The budgets are odd, to let their ends fall on different instructions in each period.
        let (name, priority) = (format!("g{i}"), 1 + i as u32 % 3);
        let group = if i == 0 { first_group(&name, 1, priority)? } else { group(&name, 1, priority)? };
        group.set("cpu.ds.budget", &(u / 1000 + i as u64 * 7).to_string())?;
        process::fork(|| match group.take(0).map_or(Err(1), |()| sys::set_sched(0, ds(1 + i as u32))) {
            Ok(()) => repeat(*work, board, i, 0),
            Err(errno) => errno,
        });
        process::fork(|| repeat(*work, board, count + i, 0));
        process::fork(|| match sys::set_sched(0, SchedAttr::fifo(20)) {
            // The sleeps are long: RCU, which is below these threads, must free the memory of all workers.
            Ok(()) => repeat(*work, board, 2 * count + i, 100 * u),
            Err(errno) => errno,
        });
    }
    // With several CPUs the lab executes one at a time, for up to 100 ms. Then only the total counts.
    let punctual = sys::nr_cpus() == 1;
    let rounds = || (0..3 * count).map(|i| board.get(i)).collect::<Vec<u64>>();
    let mut before = vec![0; 3 * count];
    for slice in 1..=slices {
        sys::sleep(SLICE_PERIODS * count as u64 * PERIOD * u);
        let now = rounds();
        let stuck = now.iter().zip(&before).position(|(now, before)| now == before).filter(|_| punctual);
        ensure_eq!(stuck, None, "worker without progress in slice {slice}: {now:?} after {before:?}");
        before = now;
    }
    let goes_on = || rounds().iter().zip(&before).all(|(now, before)| now > before);
    ensure!(sys::eventually(60_000_000_000, goes_on), "worker without progress: {:?} after {before:?}", rounds());
    Ok(())
}
