//! The end-to-end experiment of the SCHED_TT paper: the time from a sender's start to a receiver's end. The two are in
//! different network namespaces and use UDP through a bridge, which can have gates.

mod bridge;
mod flow;
mod papers;

use std::fmt::Write as _;

use macrotick_lab::observe::Dispatch;
use macrotick_lab::{Flavor, LabError};
use macrotick_model::{Backend, Duration, Plan, System};
use macrotick_report::{figures, output, overlaid_histogram, write_text, Distribution, Figure, Statistics};

use self::bridge::Bridge;
use self::flow::Flow;
use crate::error::BenchError;
use crate::kit::aims::{self, Aim};
use crate::kit::bench::{kernel, Bench, Results};
use crate::kit::lab;

const DESCRIPTION: &str = "bench/e2e.yaml";
const GATES: &str = "bench/e2e-gates.yaml";
/// The length of a quick run.
const QUICK: Duration = Duration::from_millis(300);
/// The length of the runs under SCHED_TT with gates, as in the paper.
const LONG: Duration = Duration::from_secs(600);
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
/// The limits for SCHED_TT beside competing tasks, in microseconds.
const AIM_SPREAD: f64 = 25.0;
const AIM_DEVIATION: f64 = 50.0;
/// The limit for SCHED_TT beside the flood with gates, in microseconds.
const AIM_SPREAD_WITH_GATES: f64 = 30.0;

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
* `ping flood, scheduled egress`: the same, and the bridge's port towards the receiver has gates. The flood's frames wait \
from 2 ms to 4.4 ms of each cycle, and the datagram from 2.1 ms until its gate opens at 2.8 ms
* `ping flood, scheduled ingress`: the same, and the links from the sender and from the flood have gates instead. The \
flood's frames wait at the same time, and the datagram finds its gate open

The gates are [exact gates](../explanation/exact-gates.md) with their default lead. Their thread has no windows and is \
under SCHED_FIFO 50. The runs under SCHED_TT with gates take ten virtual minutes, as in the paper, the others 5 s.

Under every policy the jobs are released at the instants of the same table. The stock policies profit from it: the \
paper releases their jobs without a table. Under SCHED_DEADLINE the receiver ends 300 us early, because its deadline \
is earlier than the deadline of the preempting task. Under SCHED_FIFO the flood causes outliers through the fair \
server, which gives the fair class 50 ms of every second. This server precedes all of SCHED_FIFO, even while the flood \
holds locks. An outlier is a datagram that takes longer than a period.";

/// One run.
struct Case {
    load: &'static str,
    bridge: Bridge,
    policy: &'static str,
    flow: Flow,
}

impl Case {
    fn load(&self) -> String {
        format!("{}{}", self.load, self.bridge.suffix())
    }

    fn label(&self) -> String {
        format!("{}: {}", self.load(), self.policy)
    }
}

/// Returns the loads, each with a bridge: the default bridge under all loads, and the gates beside the flood.
fn loads() -> impl Iterator<Item = (&'static str, Bridge)> {
    let all = LOADS.into_iter().flat_map(|load| Bridge::ALL.map(|bridge| (load, bridge)));
    all.filter(|(load, bridge)| *load == FLOODED || *bridge == Bridge::Default)
}

/// Runs the experiment.
pub fn run(bench: &Bench) -> Result<Results, BenchError> {
    let system = lab::description(bench, DESCRIPTION, QUICK)?;
    let gates = lab::description(bench, GATES, QUICK)?;
    let mut cases = Vec::new();
    for (load, bridge) in loads() {
        let plan = lab::plan(&under(&system, load))?;
        let plan = lab::plan(&bridge.around(&plan, &gates))?;
        for (policy, backend) in POLICIES {
            lab::announce(&format!("{}: {load}{}: {policy}", bench.name, bridge.suffix()));
            let duration = duration(bench, &system, bridge, policy);
            cases.push(Case { load, bridge, policy, flow: observe(&plan, backend, duration)? });
        }
    }
    let aims = all_aims(&cases);
    let tables = [aims::markdown(&aims, bench.scale), times(&cases), from_start(&cases)].join("\n");
    output::print(&tables);
    let figures: Vec<Figure> = all_figures(&cases).into_iter().chain(aims.iter().map(Aim::figure)).collect();
    figures::write(&bench.folder.join("figures.json"), &figures)?;
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
    let system = lab::description(bench, DESCRIPTION, QUICK)?;
    let runs = loads().flat_map(|(_, bridge)| POLICIES.map(|(policy, _)| (bridge, policy)));
    let length = |(bridge, policy)| duration(bench, &system, bridge, policy).as_nanos() / 1_000_000;
    Ok(runs.map(|run| length(run) as u64).collect())
}

fn duration(bench: &Bench, system: &System, bridge: Bridge, policy: &str) -> Duration {
    match policy == TT && bridge != Bridge::Default {
        true => bench.scale.of(LONG, QUICK),
        false => system.experiment.duration,
    }
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

fn observe(plan: &Plan, backend: Backend, duration: Duration) -> Result<Flow, BenchError> {
    // The bench compares the kernel alone, without the host settings of a deployment.
    let dispatch = Dispatch { leaves_host_settings: true, duration: Some(duration), ..Dispatch::under(backend) };
    let observation = lab::observe(plan, &dispatch)?;
    let fault = || LabError::GuestOutput {
        command: DESCRIPTION.into(),
        expected: "sender and receiver",
        output: observation.remarks.join("\n"),
    };
    Flow::of(&observation, SENDER, RECEIVER).ok_or_else(|| fault().into())
}

/// Returns the aims for SCHED_TT: the spread beside competing tasks, and with gates also beside the flood.
fn all_aims(cases: &[Case]) -> Vec<Aim> {
    let mut aims = Vec::new();
    for case in cases.iter().filter(|case| case.policy == TT && case.load != ALONE) {
        let mut aim = |what: &str, unit, value, limit| {
            aims.push(Aim { what: format!("{}: {what}", case.label()), unit, value, limit });
        };
        let spread = case.flow.statistics().map_or(f64::INFINITY, |s| us(s.max_ns - s.min_ns));
        let furthest = case.flow.deviation(PLANNED).map_or(f64::INFINITY, us);
        match (case.load, case.bridge) {
            (COMPETING, _) => {
                aim("max - min", "us", spread, AIM_SPREAD);
                aim(&format!("furthest from {} ms", ms(PLANNED)), "us", furthest, AIM_DEVIATION);
            }
            (_, Bridge::Default) => {}
            _ => aim("max - min", "us", spread, AIM_SPREAD_WITH_GATES),
        }
        aim("outliers and lost datagrams", "datagrams", (case.flow.outliers + case.flow.missing()) as f64, 0.0);
    }
    aims
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
    let Some(row) = papers::beside(&case.load(), case.policy) else { return String::new() };
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
        let load = cases.first().map_or(String::new(), Case::load);
        let each: Vec<Distribution> =
            cases.iter().map(|case| Distribution { label: case.policy, samples: &case.flow.from_nominal }).collect();
        let caption = format!("From the sender's nominal instant to the receiver's end: {load}");
        let svg = overlaid_histogram(&caption, "datagrams", &each);
        (format!("end-to-end-{}.svg", load.replace(", ", "-").replace(' ', "-")), caption, svg)
    };
    cases.chunk_by(|one, other| one.load() == other.load()).map(plot).collect()
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

    fn case(load: &'static str, bridge: Bridge, times: &[i64], missing: usize, outliers: usize) -> Case {
        let from_nominal = times.to_vec();
        let flow = Flow {
            from_start: from_nominal.clone(),
            received: times.len(),
            sent: times.len() + missing,
            outliers,
            from_nominal,
        };
        Case { load, bridge, policy: TT, flow }
    }

    #[test]
    fn aims_are_judged() {
        let met = |case: Case| all_aims(&[case]).iter().map(Aim::is_met).collect::<Vec<_>>();
        let (good, wide) = ([3_105_400, 3_105_600], [3_105_400, 3_150_400]);
        assert_eq!(met(case(COMPETING, Bridge::Default, &good, 0, 0)), [true, true, true]);
        assert_eq!(met(case(COMPETING, Bridge::Default, &good, 1, 0)), [true, true, false]);
        assert_eq!(met(case(COMPETING, Bridge::Default, &wide, 0, 0)), [false, false, true]);
        assert_eq!(met(case(COMPETING, Bridge::Default, &[], 0, 0)), [false, false, true]);
        assert_eq!(met(case(FLOODED, Bridge::Default, &wide, 0, 0)), [true]);
        assert_eq!(met(case(FLOODED, Bridge::Default, &[3_105_400, 13_150_400], 0, 1)), [false]);
        assert_eq!(met(case(FLOODED, Bridge::Egress, &wide, 0, 0)), [false, true]);
        assert_eq!(met(case(FLOODED, Bridge::Ingress, &good, 0, 0)), [true, true]);
        let names = all_aims(&[case(FLOODED, Bridge::Ingress, &good, 0, 0)]);
        assert_eq!(names[0].what, "ping flood, scheduled ingress: tt: max - min");
    }

    /// The gates change nothing but the network, and each bridge has its own.
    #[test]
    fn all_bridges_have_the_table_of_the_default_bridge() {
        let plan = planned(&under(&description(), FLOODED));
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(GATES);
        let gates = System::load(&path).unwrap();
        let with = |bridge: Bridge| planned(&bridge.around(&plan, &gates));
        let lists = |plan: &Plan| plan.gates.iter().map(|list| list.interface.clone()).collect::<Vec<_>>();
        assert_eq!(with(Bridge::Default).gates, []);
        for (bridge, interfaces) in
            [(Bridge::Egress, vec!["egress"]), (Bridge::Ingress, vec!["ingress-sender", "ingress-interference"])]
        {
            let gated = with(bridge);
            assert_eq!(
                (&gated.tables, lists(&gated)),
                (&plan.tables, interfaces.iter().map(|i| i.to_string()).collect())
            );
        }
    }

    #[test]
    fn ours_stand_beside_the_papers() {
        let text = times(&[case(ALONE, Bridge::Default, &[3_105_400, 3_105_600], 0, 0)]);
        let line =
            "| background: tt | 2 | 3.1054 | 3.1055 | 3.1056 | 3.1056 | 0.0001 | 0 | 0 | 3.242, 3.302, 3.486, 0.159 |";
        assert_eq!(text.lines().last(), Some(line));
        let figures = all_figures(&[case(ALONE, Bridge::Default, &[3_105_400], 0, 0)]);
        assert!(figures.iter().any(|figure| figure.case == "background: tt" && figure.figure == "end-to-end.max"));
        assert!(figures.iter().any(|figure| figure.case == "paper: background: tt" && figure.value == 3302.0));
    }
}
