//! Release jitter: the checker's bounds of bound and unbound tasks, and the worst measured responses (equations 1 and 3
//! of the paper).

pub mod group_guest;
mod play;
mod responses;
mod sets;

use macrotick_lab::Flavor;
use macrotick_report::{figures, output};

use self::responses::Responses;
use crate::error::BenchError;
use crate::kit::aims::{self, Aim};
use crate::kit::bench::{kernel, Bench, Results};

const METHOD: &str = "\
Jobs of a bound task arrive at refills of its group's budget. Jobs of an unbound task arrive at any instant. For \
unbound tasks, the checker adds the gap to the release jitter. The gap is the longest time before a refill in which \
the group may get no CPU time (Davis and Burns 2005; `Arrival` of `macrotick_analysis::servers`). The bench plays the \
worst case of this model in the kernel, on one CPU with a server period of 2.5 ms.

The group has a thread of the lowest priority that never sleeps, and exhausts the budget from each refill on. The \
groups above it sleep until the refill after the release, for bound tasks until the release itself. From then on they \
use their budgets from the start of each server period. The group's tasks of higher priority are released together \
with the measured task, as late as their jitter allows.

The releases of an unbound task sweep over the server period, in steps of 100 us. Around the end of the budget the \
steps are 2 us. Each phase has a job of its own, after a pause in which all earlier jobs complete. A bound task is \
released forty times, only at the refill. The response counts from the arrival, which is earlier than the release by \
the task's jitter. Jobs execute a number of instructions that do nothing.

The checker gets the same set with 20 us more in each task's execution time. This covers the costs outside its \
equations: switches, interrupts, and the overrun of budgets.";

/// Returns the jobs of the only run.
pub fn extent(bench: &Bench) -> Result<Vec<u64>, BenchError> {
    Ok(vec![responses::jobs(bench.scale)])
}

/// Runs the experiment.
pub fn run(bench: &Bench) -> Result<Results, BenchError> {
    let kernels = vec![kernel(Flavor::Patched)?];
    let responses = Responses::measure(bench)?;
    let aims = responses.aims();
    let tables = [aims::markdown(&aims, bench.scale), responses.markdown()].join("\n");
    output::print(&tables);
    let of_aims = aims.iter().map(Aim::figure).collect();
    figures::write(&bench.folder.join("figures.json"), &[responses.figures(), of_aims].concat())?;
    Ok(Results {
        title: "Release jitter: bound and unbound tasks, computed and measured",
        method: METHOD.into(),
        tables,
        kernels,
        packages: &[],
        plots: Vec::new(),
    })
}
