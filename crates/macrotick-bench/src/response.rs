//! Figure 3 of the SCHED_TT paper: response times of one periodic task over a CPU hog under every backend.

use std::io::IsTerminal;

use macrotick_lab::observe::Dispatch;
use macrotick_lab::Flavor;
use macrotick_model::{Backend, Duration};
use macrotick_report::{compare, output, Comparison, Metric, Reference, Report};

use crate::error::BenchError;
use crate::kit::bench::{kernel, Bench, Results};
use crate::kit::lab;

const DESCRIPTION: &str = "bench/response.yaml";
/// The length of a quick run.
const QUICK: Duration = Duration::from_millis(1000);
const BACKENDS: [Backend; 5] = [Backend::Other, Backend::Fifo, Backend::Deadline, Backend::User, Backend::Kernel];

const METHOD: &str = "\
One task of 100 us every 10.001009 ms runs above a SCHED_OTHER process that never sleeps. With this period, its phase \
sweeps over the kernel's tick. The same plan runs under each backend. Lateness is the first instruction of the job \
minus its nominal instant in the table. Response is the last instruction minus the nominal instant.

The paper's figure 3 has the time from the nominal instant to the task's reaction on other hardware (Atom E3950, Linux \
5.9). Compare shapes and order, not absolute values.";

/// Runs the experiment.
pub fn run(bench: &Bench) -> Result<Results, BenchError> {
    let plan = lab::plan(&lab::description(bench, DESCRIPTION, QUICK)?)?;
    let mut reports = Vec::new();
    for backend in BACKENDS {
        lab::announce(&format!("{}: {}", bench.name, backend));
        // The bench compares the kernel alone, without the host settings of a deployment.
        let dispatch = Dispatch { leaves_host_settings: true, ..Dispatch::under(backend) };
        reports.push(Report::new(&lab::observe(&plan, &dispatch)?));
    }
    let mut comparison = compare(&reports).with_references(references());
    comparison.remarks.extend(bench.scale.note().map(String::from));
    comparison.write(&bench.folder)?;
    let colour = macrotick_report::colour_wanted(std::io::stdout().is_terminal());
    output::print(comparison.terminal(colour, 110));
    results(&comparison)
}

/// Returns the milliseconds of each run.
pub fn extent(bench: &Bench) -> Result<Vec<u64>, BenchError> {
    Ok(lab::extent(&lab::description(bench, DESCRIPTION, QUICK)?, BACKENDS.len()))
}

/// Returns the paper's response times as lateness. The paper's job has nearly no length, and its response time is
/// therefore our lateness.
fn references() -> Vec<Reference> {
    Reference::sched_tt_figure_3()
        .into_iter()
        .map(|reference| Reference { metric: Metric::Lateness, ..reference })
        .collect()
}

fn results(comparison: &Comparison) -> Result<Results, BenchError> {
    let task = &comparison.tasks[0];
    let close = comparison.close_histogram_svg(task, Metric::Lateness).map(|_| "-close").unwrap_or_default();
    let plots = vec![
        (format!("{}-lateness-histogram{close}.svg", task.name), "Lateness under each backend".into()),
        (format!("{}-lateness-cdf.svg", task.name), "The same as cumulative distribution".into()),
    ];
    Ok(Results {
        title: "Response: one task over a CPU hog",
        method: METHOD.into(),
        tables: comparison.markdown(),
        kernels: vec![kernel(Flavor::Patched)?],
        packages: &[],
        plots,
    })
}
