//! The cost of picks, refills and budgets of groups (figures 5 and 6 of the paper).

mod papers;
mod paths;
mod picks;
mod population;
pub mod thread_guest;
mod yields;

use macrotick_lab::Flavor;
use macrotick_report::{figures, output, write_text};

use self::picks::Picks;
use self::yields::Yields;
use crate::error::BenchError;
use crate::kit::aims::{self, Aim};
use crate::kit::bench::{kernel, Bench, Results};

const PLOT: &str = "picks.svg";

const METHOD: &str = "\
**Picks and refills** (figure 5). Groups with a server period of 2.5 ms have budgets of together 85 % of the CPU. \
There are eight populations. Three of them are even: two groups with three threads each, four groups with six, and six \
groups with nine. Five are drawn at random, with two to six groups of two to seven threads. Two threads of each group \
never sleep, and therefore exhaust its budget in every period. The other threads have jobs of 20 us and periods of 2 \
to 20 ms.

QEMU records the address of every instruction that the kernel executes. A path starts at a timer interrupt or a system \
call, and ends at the next return to user space. Only paths count in which the scheduler core asked SCHED_DS for the \
next thread. The bench skips 50 paths of each kind and records up to 1000.

A *pick* starts at the first callback of a scheduling class (balance, put, pick, set). It ends when the scheduler core \
has reported the next thread to the windows and the groups, and they have charged the previous thread. The tables have \
the instructions of all classes together, and the part of SCHED_DS.

A *refill* is the budgets' timer handler from entry to return, when it refills groups with an exhausted budget. It \
refills all groups that exhausted their budgets since the previous refill. A refill leaves some work to the next use \
of a group. That work is part of picks, and of *end of a budget*: the same handler when it finds an exhausted budget. \
Nothing is traced in the guest, and the recording does not change its clock.

**Overhead** (figure 6). Twelve threads count, and each yields to the others after it has counted for 0.1, 1 or 10 ms. \
A run starts at a refill and takes three seconds. One run is under SCHED_FIFO, the other in a group with 40 % of the \
CPU. The overhead is 40 % minus the second count in percent of the first.

In further runs a load runs beside the threads. They are compared with SCHED_FIFO without a load. The loads are:

* a process that never sleeps
* a process that writes a file, synchronises, and removes it (ext4 on a disk in memory)
* two processes that send each other datagrams
* an unprivileged process with 100 timers of 1 ms";

/// Returns the server periods of the runs that are recorded, and the milliseconds of the runs that count.
pub fn extent(bench: &Bench) -> Result<Vec<u64>, BenchError> {
    Ok([picks::extent(bench.scale), yields::extent(bench.scale)].concat())
}

/// Runs the experiment.
pub fn run(bench: &Bench) -> Result<Results, BenchError> {
    let patched = kernel(Flavor::Patched)?;
    let picks = Picks::measure(bench, &patched)?;
    let yields = Yields::measure(bench)?;
    let aims = [picks.aims(), yields.aims()].concat();
    let tables = [
        aims::markdown(&aims, bench.scale),
        picks.markdown(),
        yields.markdown(bench.scale),
        papers::markdown(&picks, &yields),
    ]
    .join("\n");
    output::print(&tables);
    write_text(&bench.folder.join(PLOT), &picks.plot())?;
    let of_aims = aims.iter().map(Aim::figure).collect();
    figures::write(&bench.folder.join("figures.json"), &[picks.figures(), yields.figures(), of_aims].concat())?;
    Ok(Results {
        title: "Containers: what groups with a budget cost",
        method: METHOD.into(),
        tables,
        kernels: vec![patched],
        packages: &[],
        plots: vec![(PLOT.into(), "Picks and refills: cumulative distributions, one instruction for 1 ns".into())],
    })
}
