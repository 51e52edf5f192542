//! The end-to-end experiment of the SCHED_TT paper: the time from a sender's start to a receiver's end. The two are in
//! different network namespaces and use UDP through a bridge.

mod flow;
mod papers;

use std::fmt::Write as _;

use macrotick_lab::observe::Dispatch;
use macrotick_lab::{Flavor, LabError};
use macrotick_model::{Backend, Duration, Plan, System};
use macrotick_report::{figures, output, overlaid_histogram, write_text, Distribution, Figure, Statistics};

use self::flow::Flow;
use crate::error::BenchError;
use crate::kit::bench::{kernel, Bench, Results};
use crate::kit::lab;
use crate::kit::scale::Scale;

const DESCRIPTION: &str = "bench/e2e.yaml";
/// The length of a quick run.
const QUICK: Duration = Duration::from_millis(300);
const SENDER: &str = "sender";
const RECEIVER: &str = "receiver";
/// The task that preempts the receiver in the paper's table.
const PREEMPTING: &str = "10ms-a";
const FLOOD: &str = "ping";

/// The loads.
const ALONE: &str = "background";
const COMPETING: &str = "competing tasks";
const FLOODED: &str = "ping flood";
const LOADS: [&str; 3] = [ALONE, COMPETING, FLOODED];

const POLICIES: [(&str, Backend); 3] =
    [("fifo", Backend::Fifo), ("deadline", Backend::Deadline), (TT, Backend::Kernel)];
const TT: &str = "tt";

/// The planned time from the sender's start to the receiver's end in the paper's table, in nanoseconds.
const PLANNED: i64 = 3_100_000;
/// The limits for SCHED_TT beside competing tasks, in nanoseconds.
const AIM_SPREAD: i64 = 25_000;
const AIM_DEVIATION: i64 = 50_000;

const METHOD: &str = "\
A sender computes and sends one UDP datagram every 10 ms. A receiver waits for it and computes. They are in two \
network namespaces, joined by veth and a bridge. The bench measures the time from the nominal instant of the sender's \
job to the last instruction of the receiver's job. The paper's time starts at the sender's first instruction; a second \
table has this time.

In the table the sender has 1100 us to 2500 us. The receiver starts at 3500 us, is preempted at 3900 us for 300 us, \
and ends at 4200 us: 3.1 ms after the sender's start. The loads are:

* `background`: four SCHED_OTHER processes that never sleep, and the preempting task
* `competing tasks`: 14 more tasks with periods of the automotive benchmark and Gumbel-distributed execution times (65 \
% of the processor in the worst case)
* `ping flood`: also a SCHED_FIFO 40 process that sends pings of 6000 bytes through the bridge to the receiver's \
namespace. It sends each ping after the reply to the previous one

Under every policy the jobs are released at the instants of the same table. The stock policies profit from it: the \
paper releases their jobs without a table. Under SCHED_DEADLINE the receiver ends 300 us early, because its deadline \
is earlier than the deadline of the preempting task. Under SCHED_FIFO the flood causes outliers through the fair \
server, which gives the fair class 50 ms of every second. This server precedes all of SCHED_FIFO, even while the flood \
holds locks. An outlier is a datagram that takes longer than a period.";

/// One run.
struct Case {
    load: &'static str,
    policy: &'static str,
    flow: Flow,
}

impl Case {
    fn label(&self) -> String {
        format!("{}: {}", self.load, self.policy)
    }
}

/// Runs the experiment.
pub fn run(bench: &Bench) -> Result<Results, BenchError> {
    let system = lab::description(bench, DESCRIPTION, QUICK)?;
    let mut cases = Vec::new();
    for load in LOADS {
        let plan = lab::plan(&under(&system, load))?;
        for (policy, backend) in POLICIES {
            lab::announce(&format!("{}: {load}: {policy}", bench.name));
            cases.push(Case { load, policy, flow: observe(&plan, backend)? });
        }
    }
    let tables = markdown(&cases, bench.scale);
    output::print(&tables);
    figures::write(&bench.folder.join("figures.json"), &all_figures(&cases))?;
    let plots = plots(&cases);
    for (file, _, svg) in &plots {
        write_text(&bench.folder.join(file), svg)?;
    }
    Ok(Results {
        title: "End to end: a datagram from task to task",
        method: METHOD.into(),
        tables,
        kernels: vec![kernel(Flavor::Patched)?],
        packages: &["iproute2"],
        plots: plots.into_iter().map(|(file, caption, _)| (file, caption)).collect(),
    })
}

/// Returns the milliseconds of each run.
pub fn extent(bench: &Bench) -> Result<Vec<u64>, BenchError> {
    Ok(lab::extent(&lab::description(bench, DESCRIPTION, QUICK)?, LOADS.len() * POLICIES.len()))
}

/// Returns the system with the tasks and processes of a load.
fn under(system: &System, load: &str) -> System {
    let mut system = system.clone();
    if load == ALONE {
        system.tasks.retain(|task| [SENDER, RECEIVER, PREEMPTING].contains(&task.name.as_str()));
    }
    if load != FLOODED {
        system.load.retain(|load| load.name != FLOOD);
    }
    system
}

fn observe(plan: &Plan, backend: Backend) -> Result<Flow, BenchError> {
    // The bench compares the kernel alone, without the host settings of a deployment.
    let dispatch = Dispatch { leaves_host_settings: true, ..Dispatch::under(backend) };
    let observation = lab::observe(plan, &dispatch)?;
    let fault = || LabError::GuestOutput {
        command: DESCRIPTION.into(),
        expected: "sender and receiver",
        output: observation.remarks.join("\n"),
    };
    Flow::of(&observation, SENDER, RECEIVER).ok_or_else(|| fault().into())
}

fn markdown(cases: &[Case], scale: Scale) -> String {
    format!("{}\n{}\n{}", aims(cases, scale), times(cases), from_start(cases))
}

/// Returns a table with the results of SCHED_TT beside competing tasks, and beside the flood.
fn aims(cases: &[Case], scale: Scale) -> String {
    let (spread, deviation, planned) = (us(AIM_SPREAD), us(AIM_DEVIATION), ms(PLANNED));
    let mut text = format!(
        "| run | max - min [us] | furthest from {planned} ms [us] | outliers | aim: at most {spread:.0} us, \
         {deviation:.0} us, none |\n|---|---:|---:|---:|---|\n"
    );
    for case in cases.iter().filter(|case| case.policy == TT && case.load != ALONE) {
        let (Some(statistics), Some(furthest)) = (case.flow.statistics(), case.flow.deviation(PLANNED)) else {
            continue;
        };
        let reached = statistics.max_ns - statistics.min_ns;
        let outliers = case.flow.outliers + case.flow.missing();
        let met = match (reached <= AIM_SPREAD && furthest <= AIM_DEVIATION && outliers == 0, outliers) {
            (false, 0) if case.load == FLOODED && scale == Scale::Full => {
                "no outlier; the rest is aimed at without the flood"
            }
            (met, _) => scale.verdict(met),
        };
        let _ = writeln!(text, "| {} | {:.1} | {:.1} | {outliers} | {met} |", case.label(), us(reached), us(furthest));
    }
    text
}

fn times(cases: &[Case]) -> String {
    let mut text = String::from(
        "### from the sender's nominal instant to the receiver's end [ms]\n\n\
         | run | datagrams | min | mean | p99 | max | std dev | outliers | not received | the paper: min, mean, max, std dev |\n\
         |---|---:|---:|---:|---:|---:|---:|---:|---:|---|\n",
    );
    for case in cases {
        let (flow, beside) = (&case.flow, paper(case));
        let times = flow.statistics().map_or("| | | | ".into(), |s| row(&s));
        let _ = writeln!(
            text,
            "| {} | {} | {times} | {} | {} | {beside} |",
            case.label(),
            flow.received,
            flow.outliers,
            flow.missing()
        );
    }
    text
}

fn from_start(cases: &[Case]) -> String {
    let mut text = String::from(
        "### from the sender's first instruction, as in the paper [ms]\n\n\
         | run | min | mean | p99 | max | std dev |\n|---|---:|---:|---:|---:|---:|\n",
    );
    for case in cases {
        if let Some(statistics) = case.flow.statistics_from_start() {
            let _ = writeln!(text, "| {} | {} |", case.label(), row(&statistics));
        }
    }
    text
}

/// Returns cells with the least value, mean, 99th percentile, greatest value and deviation.
fn row(s: &Statistics) -> String {
    let mean = |tenths: macrotick_report::stats::Tenths| tenths.as_us_f64() / 1e3;
    format!(
        "{} | {:.4} | {} | {} | {:.4}",
        ms(s.min_ns),
        mean(s.mean_ns),
        ms(s.p99_ns),
        ms(s.max_ns),
        mean(s.deviation_ns)
    )
}

fn paper(case: &Case) -> String {
    let Some(row) = papers::beside(case.load, case.policy) else { return String::new() };
    let number = |(_, figure): (&str, Option<f64>)| figure.map_or("?".into(), |ms| format!("{ms:.3}"));
    row.figures.map(number).join(", ")
}

fn all_figures(cases: &[Case]) -> Vec<Figure> {
    let mut all = Vec::new();
    for case in cases {
        let mut add = |figure: &str, value: f64, unit: &str| {
            all.push(Figure { figure: figure.into(), case: case.label(), value, unit: unit.into() });
        };
        add("datagrams", case.flow.received as f64, "datagrams");
        add("outliers", case.flow.outliers as f64, "datagrams");
        add("not received", case.flow.missing() as f64, "datagrams");
        for (of, statistics) in
            [("end-to-end", case.flow.statistics()), ("from-start", case.flow.statistics_from_start())]
        {
            let Some(s) = statistics else { continue };
            add(&format!("{of}.min"), us(s.min_ns), "us");
            add(&format!("{of}.mean"), s.mean_ns.as_us_f64(), "us");
            add(&format!("{of}.p99"), us(s.p99_ns), "us");
            add(&format!("{of}.max"), us(s.max_ns), "us");
            add(&format!("{of}.std"), s.deviation_ns.as_us_f64(), "us");
        }
    }
    for row in papers::ROWS {
        for (figure, value) in row.figures.into_iter().filter_map(|(figure, value)| Some((figure, value?))) {
            let (figure, case) = (format!("end-to-end.{figure}"), format!("paper: {}: {}", row.load, row.policy));
            all.push(Figure { figure, case, value: value * 1e3, unit: "us".into() });
        }
    }
    all
}

/// Returns file, caption and content of a plot for each load.
fn plots(cases: &[Case]) -> Vec<(String, String, String)> {
    let plot = |cases: &[Case]| {
        let load = cases.first().map_or("", |case| case.load);
        let each: Vec<Distribution> =
            cases.iter().map(|case| Distribution { label: case.policy, samples: &case.flow.from_nominal }).collect();
        let caption = format!("From the sender's nominal instant to the receiver's end: {load}");
        let svg = overlaid_histogram(&caption, "datagrams", &each);
        (format!("end-to-end-{}.svg", load.replace(' ', "-")), caption, svg)
    };
    cases.chunk_by(|one, other| one.load == other.load).map(plot).collect()
}

fn us(ns: i64) -> f64 {
    ns as f64 / 1e3
}

fn ms(ns: i64) -> String {
    format!("{:.4}", ns as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use macrotick_plan::Solver;

    use super::*;

    fn description() -> System {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(DESCRIPTION);
        System::load(&path).unwrap()
    }

    fn planned(system: &System) -> Plan {
        let plan = macrotick_plan::plan(system, Solver::default_for(system)).unwrap();
        assert!(macrotick_check::check(&plan).is_feasible());
        plan
    }

    /// In every cycle of 10 ms, under each load.
    #[test]
    fn the_table_is_the_papers() {
        for load in [ALONE, COMPETING, FLOODED] {
            let plan = planned(&under(&description(), load));
            let of = |name: &str| -> Vec<(i64, i64)> {
                let windows = plan.tables[0].windows.iter().filter(|window| window.task == name);
                windows.map(|window| (window.offset.as_nanos() / 1000, window.length.as_nanos() / 1000)).collect()
            };
            let every = |windows: &[(i64, i64)]| -> Vec<(i64, i64)> {
                let cycles = plan.cycle / Duration::from_millis(10);
                (0..cycles).flat_map(|n| windows.iter().map(move |(at, length)| (at + n * 10_000, *length))).collect()
            };
            assert_eq!(of(SENDER), every(&[(1100, 1400)]));
            assert_eq!(of(RECEIVER), every(&[(3500, 400), (4200, 200)]));
            assert_eq!(of(PREEMPTING), every(&[(3900, 300)]));
        }
    }

    #[test]
    fn fifteen_tasks_compete_for_two_thirds_of_the_processor() {
        let system = description();
        let competing: Vec<_> =
            system.tasks.iter().filter(|task| ![SENDER, RECEIVER].contains(&task.name.as_str())).collect();
        let permille: i64 = competing.iter().map(|task| task.wcet.as_nanos() * 10_000 / task.period.as_nanos()).sum();
        assert_eq!((competing.len(), permille), (15, 6550));
        assert!(competing.iter().all(|task| task.priority >= Some(60)));
    }

    #[test]
    fn loads_differ_in_what_they_add() {
        let system = description();
        let parts = |load| {
            let system = under(&system, load);
            (system.tasks.len(), system.load.len())
        };
        assert_eq!([ALONE, COMPETING, FLOODED].map(parts), [(3, 1), (17, 1), (17, 2)]);
    }

    fn case(load: &'static str, times: &[i64], missing: usize, outliers: usize) -> Case {
        let from_nominal = times.to_vec();
        let flow = Flow {
            from_start: from_nominal.clone(),
            received: times.len(),
            sent: times.len() + missing,
            outliers,
            from_nominal,
        };
        Case { load, policy: TT, flow }
    }

    #[test]
    fn aims_are_judged() {
        let judged = |case| aims(&[case], Scale::Full).lines().last().unwrap().to_string();
        let good = [3_105_400, 3_105_600];
        assert_eq!(judged(case(COMPETING, &good, 0, 0)), "| competing tasks: tt | 0.2 | 5.6 | 0 | met |");
        assert!(judged(case(COMPETING, &good, 1, 0)).ends_with("| 1 | **not met** |"));
        assert!(judged(case(COMPETING, &[3_105_400, 3_150_400], 0, 0)).ends_with("| **not met** |"));
        assert!(judged(case(FLOODED, &[3_105_400, 3_150_400], 0, 0)).contains("| no outlier;"));
        assert!(judged(case(FLOODED, &[3_105_400, 13_150_400], 0, 1)).ends_with("| **not met** |"));
    }

    #[test]
    fn ours_stand_beside_the_papers() {
        let text = times(&[case(ALONE, &[3_105_400, 3_105_600], 0, 0)]);
        let line =
            "| background: tt | 2 | 3.1054 | 3.1055 | 3.1056 | 3.1056 | 0.0001 | 0 | 0 | 3.242, 3.302, 3.486, 0.159 |";
        assert_eq!(text.lines().last(), Some(line));
        let figures = all_figures(&[case(ALONE, &[3_105_400], 0, 0)]);
        assert!(figures.iter().any(|figure| figure.case == "background: tt" && figure.figure == "end-to-end.max"));
        assert!(figures.iter().any(|figure| figure.case == "paper: background: tt" && figure.value == 3302.0));
    }
}
