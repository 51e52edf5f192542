//! Release jitter: the checker's bounds of bound and unbound tasks, and the worst that was seen (equations 1 and 3 of the paper).

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
A bound task's jobs arrive at refills of its group's budget, an unbound one's anywhere: the checker adds to the release jitter \
of the latter the gap in which the group may get nothing (Davis and Burns 2005; `Arrival` of `macrotick_analysis::servers`). Here \
the worst case of the model is played in the kernel. One CPU, a server period of 2.5 ms. The group has a thread of the lowest \
priority that never sleeps, and so uses the budget up from each refill on; the groups above it sleep until the refill after \
the release, and from there on use up their budgets at the beginning of each server period; the group's tasks of higher priority are \
released together with the one that is measured, as late as their jitter allows. Its release is swept over the server period, in \
steps of 100 us, and of 2 us around the instant at which the budget is used up; each phase is a job of its own, after a pause in \
which all earlier ones are done. A bound task is released at the refill only, forty times. The response counts from the arrival, by its jitter \
before the release. Jobs execute a number of instructions, which do nothing. The checker gets the same set with 20 us more \
in each task's execution time, for what its equations leave out: switches, interrupts, and by how much budgets are overrun.";

/// The jobs of the one run.
pub fn extent(bench: &Bench) -> Result<Vec<u64>, BenchError> {
    Ok(vec![responses::jobs(bench.scale)])
}

/// Runs it.
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
