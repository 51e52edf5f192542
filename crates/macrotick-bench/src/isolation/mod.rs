//! Groups with a budget: whether one container can hurt another (figure 7 and table 2 of the paper, and attacks).

mod alarms;
mod attacks;
mod chain;
mod clocks;
mod crowd;
mod latencies;
mod misses;
mod offers;
mod operator;
mod pairs;
mod papers;
mod pi;
mod play;
mod rivals;
pub mod set_guest;
mod sets;
mod throttle;
mod trial;
mod victim;

use macrotick_lab::Flavor;
use macrotick_report::{figures, output};

use self::attacks::Attacks;
use self::latencies::Latencies;
use self::misses::Misses;
use crate::error::BenchError;
use crate::kit::aims::{self, Aim};
use crate::kit::bench::{kernel, Bench, Results};

const METHOD: &str = "\
**Deadline misses** (figure 7). Task sets of two containers on one CPU, 30 for each of 50 to 70 % of it together: shares by \
RandFixedSum, two to five tasks in each container, log-uniform periods of 1 ms to 2 s (which are the deadlines), priorities \
by period, at least 30 us a job. Budgets are the least with which `macrotick check` finds no miss, with a tenth and \
30 us more for each job, as interrupts are charged to whoever runs, and 1 % and 12 us more, for the switch to the \
group and the interrupt that ends its turn; sets that take more than 90 % of the CPU are drawn \
anew. All tasks are released together. \
Each set plays for 30 s twice: once the tasks of the high container take 1.8 times what they say, and once everybody keeps to \
what he says, beside one of four loads in turn (a process that never sleeps; one that writes files, on ext4 on a disk in memory, and has them \
written out; datagrams; 100 timers of an unprivileged process). Jobs execute a number of instructions, which do nothing; a job not done at \
the end, though it was due, is a miss. At 4 ns per instruction: what the kernel does costs four times as much as \
elsewhere.

**Latencies** (table 2). A task with a period of 100 us (100.1 us, so that its releases pass over the tick and the refills; \
100 us where they are kept clear of both by 25 us) sees how late its jobs begin, 50 000 of them: under SCHED_FIFO 90, outside of all groups, on the pristine \
kernel and on ours, and in a group with 40 % of the CPU, beside stress-ng's cpu, io, hdd (ext4 on a disk in memory), \
netdev and udp stressors under SCHED_OTHER. 1 ns per instruction. With a lead of 15 us (`cpu.ds.lead`) it is woken up so much earlier, \
and held until the instant, on its own budget.

**Attacks**. Containers are control groups here, without an engine. \
The critical one has 40 % of the CPU and a job of 100 us every 1001 us, 10 s long. The hostile one has 30 %, a lower priority, 64 MiB, \
1000 threads; it is an ordinary user who may ask for any real-time priority, and runs stress-ng under SCHED_FIFO 99, or 400 threads that \
are offered locks (PI futexes) right before the budget is used up, or 200 whose sleeps end at the same instants, or 900 in a chain of \
locks whose last one's priority changes; or it makes as many as 5000 control groups below one whose `cpu.max` it uses up, which it was \
given as its own, or 50 clocks of perf_event_open(2). Or it has 450 pairs of threads, one of which waits under SCHED_DS for a lock \
of the other one, which never sleeps; 900 threads that never sleep, whose budget is taken away and given again every 7 ms; \
500 groups of 10 us each, which use them up in each period of 25 ms; or, instead of a budget, 900 threads in a pool with 4 % of the time in windows, and slack, \
compared with one thread there. \
Once nothing is done about it, and once the host is set as deployments set it: TimerShield on, `kernel.perf_event_paranoid` 3, \
the container's control groups bounded. How much longer is the longest response?";

/// The milliseconds of each trial, and of each set.
pub fn extent(bench: &Bench) -> Result<Vec<u64>, BenchError> {
    let scale = bench.scale;
    Ok([latencies::extent(scale), attacks::extent(scale), misses::extent(scale)].concat())
}

/// Runs it.
pub fn run(bench: &Bench) -> Result<Results, BenchError> {
    let kernels = vec![kernel(Flavor::Pristine)?, kernel(Flavor::Patched)?];
    let latencies = Latencies::measure(bench)?;
    let attacks = Attacks::measure(bench)?;
    let misses = Misses::measure(bench)?;
    let aims = [misses.aims(), latencies.aims(), attacks.aims()].concat();
    let tables = [
        attacks.headline(),
        aims::markdown(&aims, bench.scale),
        misses.markdown(),
        latencies.markdown(),
        attacks.markdown(),
        papers::markdown(&misses, &latencies),
    ]
    .join("\n");
    output::print(&tables);
    let of_aims = aims.iter().map(Aim::figure).collect();
    let all = [misses.figures(), latencies.figures(), attacks.figures(), of_aims].concat();
    figures::write(&bench.folder.join("figures.json"), &all)?;
    Ok(Results {
        title: "Isolation: what containers with a budget can do to each other",
        method: METHOD.into(),
        tables,
        kernels,
        packages: &["stress-ng"],
        plots: Vec::new(),
    })
}
