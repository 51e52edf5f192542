//! Many entities that cross each other.

use macrotick_uapi::Device;

use super::{busy_cpus, Grid, SECOND};
use crate::board::{Board, Log};
use crate::check::{Check, Explain};
use crate::process::{member, periodic};
use crate::scenarios::storm::{files, pipes};
use crate::scenarios::unit_ns;
use crate::sys::{self, SchedAttr};
use crate::table::Table;
use crate::{ensure, ensure_eq, process};

const ENTITIES: u64 = 8;
/// A slot of the cycle, in units. Each entity has one on each CPU.
const SLOT: u64 = 2;
const CYCLE: u64 = ENTITIES * SLOT + 4;

/// Returns the slots of an entity on both CPUs. Four entities change places with their neighbours at one boundary; the
/// others have a slot in between.
fn slots(entity: u64) -> [u64; 2] {
    let partner = if entity < ENTITIES / 2 { entity ^ 1 } else { entity ^ 2 };
    [entity * SLOT, partner * SLOT]
}

fn table(u: u64) -> Table {
    let crossing = |table: Table, entity: u64| {
        let (name, [zero, one]) = (format!("e{entity}"), slots(entity));
        let table = table.window(&name, 0, zero * u, SLOT * u, 3).migrate();
        table.window(&name, 1, one * u, SLOT * u, 3)
    };
    (0..ENTITIES).fold(Table::new(CYCLE * u), crossing).sorted()
}

/// Checks entities that meet at every boundary, on both CPUs at once, beside other busy threads. Each entity has a
/// thread that waits for its jobs, and one that makes calls between its jobs.
pub fn crossing(cycles: u64) -> Check {
    let (u, device) = (unit_ns(), Device::open()?);
    let (logs, board) = ([(); ENTITIES as usize].map(|()| Log::new(1 << 16)), Board::new(ENTITIES as usize));
    table(u).install(&device)?;
    for (entity, log) in logs.into_iter().enumerate() {
        let name = format!("e{entity}");
        periodic(&name, log, u / 4)?;
        member(&name, move |device| loop {
            if let Err(errno) = device.wait() {
                return errno;
            }
            if !pipes(0) || !files(entity as u64 * 1_000_000) {
                return 77;
            }
            board.add(entity, 1);
        })?;
    }
    busy_cpus(SchedAttr::other())?;
    process::fork(|| {
        for round in 100_000_000.. {
            if !pipes(round) || !files(round) {
                return 77;
            }
            sys::relax();
        }
        0
    });
    let epoch = device.start(sys::now_ns() + 20 * u).explain("start")?;
    let counts = || logs.iter().map(|log| log.count() as u64).chain((0..ENTITIES as usize).map(|i| board.get(i)));
    for slice in 1..=4 {
        let before: Vec<u64> = counts().collect();
        sys::sleep_until(epoch + slice * cycles / 4 * CYCLE * u);
        let goes_on = || counts().zip(&before).all(|(now, before)| now > *before);
        let now = || counts().collect::<Vec<u64>>();
        ensure!(sys::eventually(20 * SECOND, goes_on), "stuck in slice {slice}: {:?} after {before:?}", now());
    }
    for (entity, log) in (0..ENTITIES).zip(logs) {
        let [zero, one] = slots(entity);
        let mut releases = vec![(0, zero * u), (1, one * u)];
        releases.sort_by_key(|(_, offset)| *offset);
        let grid = Grid { epoch, cycle: CYCLE * u, releases, length: SLOT * u, first: 0 };
        let jobs = log.jobs();
        grid.ensure_on(&jobs).map_err(|reason| format!("e{entity}: {reason}"))?;
        ensure!(jobs.windows(2).all(|pair| pair[0].number < pair[1].number), "jobs of e{entity} out of order");
        let stats = device.stats(entity as u32).explain("stats")?;
        ensure_eq!(stats.nr_threads, 2, "threads of e{entity}");
        ensure!(stats.activations >= 2 * cycles - 1, "{} activations of e{entity}", stats.activations);
    }
    device.remove().explain("remove")
}
