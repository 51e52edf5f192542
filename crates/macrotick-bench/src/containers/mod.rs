//! Groups with a budget: what picks, refills and the budgets themselves cost (figures 5 and 6 of the paper).

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
**Picks and refills** (figure 5). Groups with a budget of 2.5 ms each, together 85 % of the CPU: two with three threads, \
four with six, six with nine, and five drawn at random (two to six groups, two to seven threads). Two threads of each \
group never sleep, so that its budget is used up in every period; the others have jobs of 20 us and periods of 2 to \
20 ms. QEMU records the address of every instruction that the kernel executes from an interrupt of the timer, or from a \
system call, to the next return to user space, where SCHED_DS was asked what to run: up to 1000 of each, after 50. A pick goes \
from the first question to a scheduling class (balance, put, pick, set) to where windows and groups have been told what is \
going to run, and have charged what ran: all classes' together, and what SCHED_DS has of it. A refill is the budgets' timer \
handler from entry to return, where it refills groups whose budget was used up: as many as budgets were seen to end since \
the refill before it. What a refill leaves to whoever looks at a group next is in the end of a budget, the same handler \
where it finds one used up, and in picks. Nothing is traced in the guest, and its clock does not notice.

**Overhead** (figure 6). Twelve threads count and yield to each other after 0.1, 1 or 10 ms of counting, for three seconds \
from one refill to another: under SCHED_FIFO, and in a group with 40 % of the CPU. The overhead is what the latter lack of \
40 % of the former's count. With a load beside them they are compared with SCHED_FIFO without one: a process that never \
sleeps; one that writes a file, synchronises, and removes it (ext4 on a disk in memory); two that send each \
other datagrams; an unprivileged one with 100 timers of 1 ms.";

/// The server periods of runs that are recorded, and the milliseconds of counting.
pub fn extent(bench: &Bench) -> Result<Vec<u64>, BenchError> {
    Ok([picks::extent(bench.scale), yields::extent(bench.scale)].concat())
}

/// Runs it.
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
