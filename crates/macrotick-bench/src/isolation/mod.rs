//! The isolation of groups with a budget: the effect of one container on another (figure 7 and table 2 of the paper,
//! and attacks).

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
**Deadline misses** (figure 7). Task sets of two containers run on one CPU and use together 50 to 70 % of it. Each \
total has 30 sets. RandFixedSum draws the shares, with two to five tasks in each container. Periods are log-uniform \
from 1 ms to 2 s and are also the deadlines. Priorities follow the periods, and a job needs at least 30 us.

The budgets are the least with which `macrotick check` finds no miss. For this check each job gets a tenth and 30 us \
more, because the kernel charges interrupts to the running thread. The budgets then get 1 % and 12 us more, for the \
switch to the group and the interrupt that ends its turn. If the budgets of a set exceed 90 % of the CPU, the bench \
draws another set. All tasks are released together.

Each set plays for 30 s twice. In the first run the tasks of the high container take 1.8 times their declared time. In \
the second run all tasks keep their declared times, beside one of four loads in turn. The first load is a process that \
never sleeps. The second one writes and synchronises files (ext4 on a disk in memory). The third one sends datagrams, \
and the fourth one has 100 timers of an unprivileged process. Jobs execute a number of instructions that do nothing. A \
job that was due and is not complete at the end of the run is a miss. An instruction takes 4 ns here. Therefore the \
kernel's work costs four times as much as in the other experiments.

**Latencies** (table 2). A task with a period of 100 us measures the latency of 50 000 jobs. Its real period is 100.1 \
us, and its releases therefore pass over the tick and the refills. In the columns named *clear* the period is 100 us \
and the releases stay 25 us away from both. The task runs under SCHED_FIFO 90 outside of all groups, on the pristine \
kernel and on ours. It also runs in a group with 40 % of the CPU. The loads are stress-ng's cpu, io, hdd (ext4 on a \
disk in memory), netdev and udp stressors under SCHED_OTHER. An instruction takes 1 ns. With a lead of 15 us \
(`cpu.ds.lead`) the kernel wakes the task up 15 us early, and holds it until the instant, on its own budget.

**Attacks**. Containers are control groups here, without an engine. The critical container has 40 % of the CPU and a \
job of 100 us every 1001 us. A trial takes 10 s. The hostile container has 30 %, a lower priority, 64 MiB and 1000 \
threads. Its user is unprivileged and may request any real-time priority. The attacks are:

* stress-ng under SCHED_FIFO 99
* 400 threads that are offered locks (PI futexes) right before the end of the budget
* 200 threads that wake up at the same instants
* 900 threads in a chain of locks, while the priority of the last thread changes
* up to 5000 control groups below a group that exhausts its `cpu.max`; the container owns that group
* 50 clocks of perf_event_open(2)
* 450 pairs of threads: one waits under SCHED_DS for a lock of the other, which never sleeps
* 900 threads that never sleep, while their budget is removed and given back every 7 ms
* 500 groups with a budget of 10 us each, which they exhaust in each period of 25 ms
* instead of a budget, 900 threads in a pool with 4 % of the time in windows, and slack; it is compared with one \
thread there

Each attack runs twice. The first host has no settings. The second host has the settings of a deployment: TimerShield \
on, `kernel.perf_event_paranoid` 3, and limited control groups of the container. The result is the increase of the \
longest response.";

/// Returns the milliseconds of each trial and of each set.
pub fn extent(bench: &Bench) -> Result<Vec<u64>, BenchError> {
    let scale = bench.scale;
    Ok([latencies::extent(scale), attacks::extent(scale), misses::extent(scale)].concat())
}

/// Runs the experiment.
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
