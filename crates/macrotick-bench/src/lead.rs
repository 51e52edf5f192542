//! The effect of the lead: the variation of a job's start under different loads, without a lead and with one.

use std::fmt::Write as _;
use std::io::IsTerminal;

use macrotick_lab::observe::Dispatch;
use macrotick_lab::Flavor;
use macrotick_model::{Backend, Duration, Plan, Process};
use macrotick_report::{compare_labelled, output, write_text, Comparison, Metric, Report};

use crate::error::BenchError;
use crate::kit::bench::{kernel, Bench, Results};
use crate::kit::lab;
use crate::kit::scale::Scale;

const DESCRIPTION: &str = "bench/lead.yaml";
/// The length of a quick run. Before each run with a lead, the bench measures the host.
const QUICK: Duration = Duration::from_millis(300);

type Load = (&'static str, &'static [&'static str]);
/// The loads, and the prefixes of the names of their processes.
const LOADS: [Load; 3] = [("hog", &["hog"]), ("fifo tasks", &["hog", "fifo-"]), ("system calls", &["hog", "syscalls"])];
const DISPATCHES: [(&str, Backend); 3] = [("fifo", Backend::Fifo), ("tt", Backend::Kernel), (LEADING, Backend::Kernel)];
const LEADING: &str = "tt, lead";

/// The limits for a job with a lead, in nanoseconds.
const AIM_MEAN: f64 = 300.0;
const AIM_SPREAD: i64 = 100;

const METHOD: &str = "\
One task of 100 us every 10 ms runs above a SCHED_OTHER process that never sleeps. It runs alone, with four SCHED_FIFO \
tasks of lower priority (33 % of the CPU), and with two processes that issue system calls without end. The plan is the \
same in all runs. The solver placed the task away from whole milliseconds, because the tick and the timers of the \
other tasks expire there.

In the runs named `tt, lead`, the kernel dispatches each job early and holds it until its nominal instant. The lead \
comes from a measurement of the host (`lead: auto`). Lateness is the first instruction of the job minus its nominal \
instant.";

/// Runs the experiment.
pub fn run(bench: &Bench) -> Result<Results, BenchError> {
    let plan = lab::plan(&lab::description(bench, DESCRIPTION, QUICK)?)?;
    let mut reports = Vec::new();
    let loads = loads(bench.scale);
    for &(load, processes) in loads {
        for (dispatch, backend) in DISPATCHES {
            let label = format!("{load}: {dispatch}");
            lab::announce(&format!("{}: {label}", bench.name));
            reports.push((label, observe(variant(&plan, processes, dispatch == LEADING), backend)?));
        }
    }
    let runs: Vec<(&str, &Report)> = reports.iter().map(|(label, report)| (label.as_str(), report)).collect();
    let mut comparison = compare_labelled(&runs);
    comparison.remarks.extend(bench.scale.note().map(String::from));
    comparison.write(&bench.folder)?;
    for (runs, (load, _)) in runs.chunks(DISPATCHES.len()).zip(loads) {
        let alone = compare_labelled(runs);
        write_text(&bench.folder.join(plot(load)), &alone.histogram_svg(&alone.tasks[0], Metric::Lateness))?;
    }
    let colour = macrotick_report::colour_wanted(std::io::stdout().is_terminal());
    let summary = summary(&comparison, &runs, bench.scale);
    output::print(format_args!("{}\n{summary}", comparison.terminal(colour, 110)));
    results(&comparison, &summary, loads)
}

/// Returns the loads. A quick run leaves out the hog alone.
fn loads(scale: Scale) -> &'static [Load] {
    scale.of(&LOADS, &LOADS[1..])
}

/// Returns the milliseconds of each run.
pub fn extent(bench: &Bench) -> Result<Vec<u64>, BenchError> {
    Ok(lab::extent(&lab::description(bench, DESCRIPTION, QUICK)?, loads(bench.scale).len() * DISPATCHES.len()))
}

/// Returns the file of a load's histogram.
fn plot(load: &str) -> String {
    format!("lateness-{}.svg", load.replace(' ', "-"))
}

fn observe(plan: Plan, backend: Backend) -> Result<Report, BenchError> {
    // The bench compares the kernel alone, without the host settings of a deployment.
    let dispatch = Dispatch { leaves_host_settings: true, ..Dispatch::under(backend) };
    Ok(Report::new(&lab::observe(&plan, &dispatch)?))
}

/// Returns the plan with some of its loads. Without the lead, the time that the plan keeps free for it stays idle.
fn variant(plan: &Plan, processes: &[&str], leads: bool) -> Plan {
    let mut plan = plan.clone();
    let wanted = |load: &Process| processes.iter().any(|begin| load.name.starts_with(begin));
    plan.system.load.retain(wanted);
    if !leads {
        plan.system.lead = None;
    }
    plan
}

/// Returns a table with the aims of jobs with a lead, and the lead.
fn summary(comparison: &Comparison, runs: &[(&str, &Report)], scale: Scale) -> String {
    let (mean, spread) = (AIM_MEAN / 1e3, AIM_SPREAD as f64 / 1e3);
    let mut text = format!(
        "| run | mean [us] | max - min [us] | lead [us] | aim: mean <= {mean} us, max - min <= {spread} us |\n\
         |---|---:|---:|---:|---|\n"
    );
    let rows = comparison.tasks[0].rows.iter().zip(runs);
    for (row, (label, report)) in rows.filter(|(_, (label, _))| label.ends_with(LEADING)) {
        let Some(lateness) = row.statistics(Metric::Lateness) else { continue };
        let reached = lateness.max_ns - lateness.min_ns;
        let met = lateness.mean_ns.as_ns_f64() <= AIM_MEAN && reached <= AIM_SPREAD;
        let lead = report.lead.map_or(0.0, |chosen| chosen.lead.as_nanos() as f64 / 1e3);
        let _ = writeln!(
            text,
            "| {label} | {:.3} | {:.3} | {lead:.0} | {} |",
            lateness.mean_ns.as_us_f64(),
            reached as f64 / 1e3,
            scale.verdict(met)
        );
    }
    text
}

fn results(comparison: &Comparison, summary: &str, loads: &[Load]) -> Result<Results, BenchError> {
    let caption = |load: &str| format!("Lateness beside the load `{load}`");
    Ok(Results {
        title: "Lead: the spread of a job's start",
        method: METHOD.into(),
        tables: format!("{summary}\n{}", comparison.markdown()),
        kernels: vec![kernel(Flavor::Patched)?],
        packages: &[],
        plots: loads.iter().map(|(load, _)| (plot(load), caption(load))).collect(),
    })
}
