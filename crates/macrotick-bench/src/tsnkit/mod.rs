//! Flows of tsnkit's generator: its planners and ours, and its simulator as the judge of both.

mod instance;
mod toolkit;

use std::path::Path;
use std::time::{Duration as WallTime, Instant};

use macrotick_check::judge_wire;
use macrotick_plan::wire::plan_wire;
use macrotick_plan::{Options as Search, Unwatched};
use macrotick_report::{figures, output, Figure};

use self::instance::{Drawn, Planned};
use self::toolkit::{Attempt, Options, Toolkit};
use crate::error::BenchError;
use crate::kit::bench::{Bench, Results};
use crate::kit::scale::Scale;

const METHOD: &str = "\
tsnkit (Xue and others, RTAS 2024) has a generator of switched networks with streams, 17 published planners for gates, and \
a simulator. Each row has systems of its generator from the seeds 0, 1, 2 and so on, at 1 Gb/s. Each planner has one \
core and the time limit of the table.

The generator's numbers of options are in the first column: **period 4** draws from 100, 200, 400 and 800 us, **size 3** \
from 200 to 1500 bytes, and **size 2** from 100 to 500 bytes. With **deadline 1**, a frame has its period. With **deadline \
5**, it must not wait anywhere. The networks have 8 switches.

**Planned** counts the systems with a plan, **proved** those with a proof of Macrotick that there is none, and \
**delivered** those whose frames all arrive in time in tsnkit's simulator. \
**Too long** counts the systems for which the time limit was over, and **failed** those that the planner could not take. \
Times are on the wall clock, without the start of Python. Our own judge, which shares no code with the planner, accepted \
every plan of Macrotick.

The planners `ls`, `ls_tb`, `ls_pl` and `dt` need no solver. `cg`, `smt_wa`, `smt_pr`, `at` and `i_omt` use solvers that can \
be installed from a package registry. Six others need licences for systems of this size. `i_ilp` needs a further package, and `smt_fr` needed more than a minute for 20 streams.";

/// The planners of tsnkit without a solver.
const HEURISTICS: [&str; 4] = ["ls", "ls_tb", "ls_pl", "dt"];
/// Those with a solver that runs without a licence.
const SOLVERS: [&str; 5] = ["cg", "smt_wa", "smt_pr", "at", "i_omt"];
/// The name of our planner.
const OURS: &str = "macrotick";
const LIMIT: WallTime = WallTime::from_secs(15);

/// Systems of one kind and size.
struct Cell {
    topology: (&'static str, u8),
    streams: u32,
    size: u8,
    deadline: u8,
    /// Whether the solvers try them: they need the whole limit for many streams.
    is_small: bool,
    count: u64,
}

/// The results of a planner in a row.
#[derive(Default)]
struct Outcome {
    planned: u64,
    delivered: u64,
    proved: u64,
    timed_out: u64,
    failed: u64,
    /// The times of the plans, in ascending order.
    times: Vec<WallTime>,
}

fn cells(scale: Scale) -> Vec<Cell> {
    let topologies = [("line", 0), ("ring", 1), ("tree", 2), ("mesh", 3)];
    let cell = |streams, size, deadline, is_small, count| {
        topologies.map(|topology| Cell { topology, streams, size, deadline, is_small, count: scale.of(count, 1) })
    };
    // The solvers would need their whole limit in a quick run, too.
    let small = cell(10, 2, 1, scale.of(true, false), 2);
    let large =
        [40, 60, 80, 100].map(|streams| cell(streams, 3, 1, false, 2)).into_iter().chain([cell(40, 3, 5, false, 2)]);
    small.into_iter().chain(scale.of(large.flatten().collect(), Vec::new())).collect()
}

impl Cell {
    fn name(&self) -> String {
        let Cell { topology, streams, size, deadline, .. } = self;
        format!("{}, {streams} streams, period 4, size {size}, deadline {deadline}", topology.0)
    }

    fn methods(&self) -> Vec<&'static str> {
        let solvers: &[&str] = if self.is_small { &SOLVERS } else { &[] };
        HEURISTICS.iter().chain(solvers).copied().collect()
    }

    /// Plans all systems with all planners. Ours is the first one.
    fn measure(&self, toolkit: &Toolkit, folder: &Path) -> Result<Vec<(&'static str, Outcome)>, BenchError> {
        let planners = [OURS].into_iter().chain(self.methods());
        let mut outcomes: Vec<_> = planners.map(|name| (name, Outcome::default())).collect();
        for seed in 0..self.count {
            let (Cell { topology, streams, size, deadline, .. }, switches, period) = (self, 8, 4);
            let folder = folder.join(format!("{}-{streams}-{size}-{deadline}-{seed}", topology.0));
            let (streams, topology) = (*streams, topology.1);
            let options = Options { seed, topology, switches, streams, period, size: *size, deadline: *deadline };
            let drawn = toolkit.generate(&folder, options)?;
            for (name, outcome) in &mut outcomes {
                let attempt = match *name == OURS {
                    true => ours(toolkit, &folder, &drawn)?,
                    false => toolkit.plan(&folder, name, LIMIT)?,
                };
                match attempt {
                    Attempt::Planned(time) => {
                        outcome.planned += 1;
                        outcome.times.push(time);
                        outcome.delivered += u64::from(toolkit.delivers(&folder, name)?);
                    }
                    Attempt::NotFound => {}
                    Attempt::Proved => outcome.proved += 1,
                    Attempt::TimedOut => outcome.timed_out += 1,
                    Attempt::Failed => outcome.failed += 1,
                }
            }
        }
        outcomes.iter_mut().for_each(|(_, outcome)| outcome.times.sort_unstable());
        Ok(outcomes)
    }
}

/// Plans a system with our planner, and writes the plan for tsnkit's simulator.
fn ours(toolkit: &Toolkit, folder: &Path, drawn: &Drawn) -> Result<Attempt, BenchError> {
    let (wire, flows) = drawn.network();
    let options = Search { time_limit: LIMIT, ..Search::default() };
    let begin = Instant::now();
    let planned = plan_wire(&wire, &flows, options, &Unwatched);
    let time = begin.elapsed();
    let courses = match planned {
        Ok(courses) => courses,
        Err(error) if error.is_proof() => return Ok(Attempt::Proved),
        Err(_) => return Ok(Attempt::TimedOut),
    };
    if let Some(violation) = judge_wire(&wire, &flows, &courses).first() {
        return Err(BenchError::Refused { system: folder.display().to_string(), verdict: violation.to_string() });
    }
    toolkit.write(folder, OURS, &Planned::new(&wire, &flows, &courses))?;
    Ok(Attempt::Planned(time))
}

impl Outcome {
    fn median(&self) -> f64 {
        self.times.get(self.times.len() / 2).map_or(0.0, |time| time.as_secs_f64() * 1e3)
    }

    fn row(&self, system: &str, planner: &str, count: u64) -> String {
        let Outcome { planned, delivered, proved, timed_out, failed, times } = self;
        let median = if times.is_empty() { "-".into() } else { format!("{:.1}", self.median()) };
        format!(
            "| {system} | {planner} | {count} | {planned} | {delivered} | {proved} | {timed_out} | {failed} | {median} |\n"
        )
    }

    fn figures(&self, system: &str, planner: &str) -> Vec<Figure> {
        let case = format!("{system}, {planner}");
        let of = |figure: &str, value, unit: &str| Figure::new(figure, &case, value, unit);
        let mut all = vec![
            of("planned", self.planned as f64, "systems"),
            of("delivered", self.delivered as f64, "systems"),
            of("proved", self.proved as f64, "systems"),
            of("timed out", self.timed_out as f64, "systems"),
            of("failed", self.failed as f64, "systems"),
        ];
        if !self.times.is_empty() {
            all.push(of("time.median", self.median(), "ms"));
        }
        all
    }
}

/// Runs the experiment.
pub fn run(bench: &Bench) -> Result<Results, BenchError> {
    output::tell(format_args!("{}: tsnkit and its requirements", bench.name));
    let toolkit = Toolkit::install(&bench.root)?;
    let mut tables =
        "| systems | planner | number | planned | delivered | proved | too long | failed | median [ms] |\n\
                      |---|---|---:|---:|---:|---:|---:|---:|---:|\n"
            .to_string();
    let mut all = Vec::new();
    for cell in cells(bench.scale) {
        let name = cell.name();
        output::tell(format_args!("{}: {name}", bench.name));
        for (planner, outcome) in cell.measure(&toolkit, &bench.folder.join("systems"))? {
            tables += &outcome.row(&name, planner, cell.count);
            all.extend(outcome.figures(&name, planner));
        }
    }
    figures::write(&bench.folder.join("figures.json"), &all)?;
    output::print(&tables);
    Ok(Results {
        title: "Flows of tsnkit",
        method: format!("{METHOD} The time limit is {} s.", LIMIT.as_secs()),
        tables,
        kernels: Vec::new(),
        packages: &[],
        plots: Vec::new(),
    })
}

/// Returns the number of systems in each row.
pub fn extent(bench: &Bench) -> Result<Vec<u64>, BenchError> {
    Ok(cells(bench.scale).into_iter().map(|cell| cell.count).collect())
}
