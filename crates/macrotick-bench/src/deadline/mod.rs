//! SCHED_DEADLINE: greedy tasks, and random task sets with a CPU for each task or with migration (figure 3 and tables I to III
//! of its paper).

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
**Greedy tasks** (section 4.1 and figure 3 of Lelli, Scordino, Abeni, Faggioli: Deadline scheduling in the Linux kernel, 2016). A periodic \
task of 1 ms in 4 ms (runtime 1.1 ms), and two that never sleep, with reservations of 1 ms in 6 ms and in 10 ms; in addition to the paper's a slow periodic \
one of 2 ms in 20 ms (runtime 2.2 ms), which is the lowest under SCHED_FIFO with rate monotonic priorities. One virtual CPU.

**Random task sets** (section 4.2, tables I to III). Six sets for each load, 2 s each; the paper has 50, and does not say how long. Shares by \
RandFixedSum, as taskgen draws them, none above 95 %. The paper tells neither the number of tasks nor their periods: here 5 for each CPU \
where tasks stay on theirs, else 2.5, log-uniform periods of 10 to 100 ms (which are the deadlines), at least 0.3 ms a job, all released together. Runtimes are \
slightly larger than execution times: by 1 % and 50 us; sets for whose runtimes there is not the time are drawn anew. Priorities of SCHED_FIFO are rate monotonic where tasks stay on a CPU, else by \
`D - kC`. As in the paper each CPU has the load of table I, so that nothing has to be packed; each CPU is a partition (`cpuset.cpus.partition`), as \
SCHED_DEADLINE demands, CPU 0 that of the root. In tables II and III there are no partitions. A job is over when it has had its processor time, \
as in rt-app. A job that is not done at the end, though it was due, is a miss. `sched_rt_runtime_us` is -1. The kernel cuts runtimes off at its \
tick, every millisecond (`HRTICK_DL` is off, as it is by default).

**Theory** is told of the reservations, by `macrotick_analysis::deadline`: the exact test by processor demand on each CPU; for tasks that migrate the density \
test (Goossens, Funk, Baruah 2003) and the bound on tardiness (Devi, Anderson 2008). Beside each percentage stands that of an ideal schedule of the same sets, \
played on the host with switches that cost nothing. The paper's depend on numbers of tasks and periods that it does not tell: what compares is how \
they grow, not each of them.

**Several virtual CPUs** execute one at a time, 1 ns per instruction for all together: with n busy CPUs everything, the kernel's work too, takes n \
times as long as with one. Jobs give the turn to the next CPU every 1920 instructions (`pause`); how evenly CPUs go on is measured in each \
guest. What is counted are deadlines, not latencies. \
Figures from several virtual CPUs do not repeat to the bit: in two runs the misses of a set differed by up to 4 of 600 jobs.";

/// The milliseconds that each run plays.
pub fn extent(bench: &Bench) -> Result<Vec<u64>, BenchError> {
    Ok([greedy::extent(bench.scale), misses::extent(bench.scale)].concat())
}

/// Runs it.
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
