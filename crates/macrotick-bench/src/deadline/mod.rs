//! SCHED_DEADLINE: greedy tasks, and random task sets with a CPU for each task or with migration. They are figure 3 and
//! tables I to III of its paper.

mod greedy;
mod ideal;
mod misses;
mod papers;
mod play;
pub mod player_guest;
mod sets;
mod sweep;

use macrotick_lab::Flavor;
use macrotick_report::{figures, output};

use self::greedy::Greedy;
use self::misses::Misses;
use crate::error::BenchError;
use crate::kit::aims::{self, Aim};
use crate::kit::bench::{kernel, Bench, Results};

const METHOD: &str = "\
**Greedy tasks** (section 4.1 and figure 3 of Lelli, Scordino, Abeni, Faggioli: Deadline scheduling in the Linux \
kernel, 2016). A periodic task needs 1 ms in 4 ms (runtime 1.1 ms). Two tasks never sleep, and have reservations of 1 \
ms in 6 ms and in 10 ms. The bench adds a slow periodic task of 2 ms in 20 ms (runtime 2.2 ms). It has the lowest \
priority under SCHED_FIFO, where priorities are rate monotonic. One virtual CPU.

**Random task sets** (section 4.2, tables I to III). Each load has six sets of 2 s. The paper has 50 sets, and does \
not give their length. RandFixedSum draws the shares, as taskgen does, and no share is above 95 %. The paper gives \
neither the number of tasks nor their periods. The bench uses 5 tasks for each CPU when tasks stay on a CPU, and 2.5 \
otherwise. Periods are log-uniform from 10 to 100 ms and are also the deadlines. A job needs at least 0.3 ms. All \
tasks are released together.

Runtimes are 1 % and 50 us larger than execution times. If the runtimes of a set exceed the CPUs, the bench draws \
another set. Priorities of SCHED_FIFO are rate monotonic when tasks stay on a CPU, otherwise by `D - kC`.

As in the paper, each CPU has the load of table I, and no bin packing is necessary. Each CPU is a partition \
(`cpuset.cpus.partition`), as SCHED_DEADLINE requires. CPU 0 belongs to the root's partition. Tables II and III have \
no partitions.

A job ends when it has had its processor time, as in rt-app. A job that was due and is not complete at the end of the \
run is a miss. `sched_rt_runtime_us` is -1. The kernel throttles runtimes at its tick, every millisecond (`HRTICK_DL` \
is off by default).

**Theory** (`macrotick_analysis::deadline`) gets the reservations. For tasks that stay on a CPU, it uses the exact \
test by processor demand. For tasks that migrate, it uses the density test (Goossens, Funk, Baruah 2003) and the bound \
on tardiness (Devi, Anderson 2008). Each cell also has the percentage of an ideal schedule of the same sets. The host \
computes it, with switches that cost nothing. The paper's percentages depend on numbers of tasks and periods that it \
does not give. Therefore compare their growth, not single values.

**Several virtual CPUs** execute one at a time, and an instruction takes 1 ns for all of them together. With n busy \
CPUs everything takes n times as long as with one, the kernel's work included. Jobs yield to the next virtual CPU \
every 1920 instructions (`pause`). Each guest measures how evenly the CPUs progress. The figures are deadlines, not \
latencies. Figures from several virtual CPUs do not repeat to the bit. In two runs the misses of a set differed by up \
to 4 of 600 jobs.";

/// Returns the milliseconds that each run plays.
pub fn extent(bench: &Bench) -> Result<Vec<u64>, BenchError> {
    Ok([greedy::extent(bench.scale), misses::extent(bench.scale)].concat())
}

/// Runs the experiment.
pub fn run(bench: &Bench) -> Result<Results, BenchError> {
    let kernels = vec![kernel(Flavor::Pristine)?, kernel(Flavor::Patched)?];
    let greedy = Greedy::measure(bench)?;
    let misses = Misses::measure(bench)?;
    let aims = [greedy.aims(), misses.aims()].concat();
    let tables = [aims::markdown(&aims, bench.scale), greedy.markdown(), misses.markdown()].join("\n");
    output::print(&tables);
    let of_aims = aims.iter().map(Aim::figure).collect();
    figures::write(&bench.folder.join("figures.json"), &[greedy.figures(), misses.figures(), of_aims].concat())?;
    Ok(Results {
        title: "SCHED_DEADLINE: isolation, and misses of random task sets",
        method: METHOD.into(),
        tables,
        kernels,
        packages: &[],
        plots: Vec::new(),
    })
}
