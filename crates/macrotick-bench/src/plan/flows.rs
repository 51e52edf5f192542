//! Flows over switched networks.

use std::time::{Duration as WallTime, Instant};

use macrotick_check::judge_wire;
use macrotick_generate::{switched, Topology, Traffic};
use macrotick_model::wire::{Course, Wire, WireFlow};
use macrotick_plan::wire::{add_to_wire, plan_wire};
use macrotick_plan::{Options, Unwatched};
use macrotick_report::Figure;

use super::memory;
use crate::error::BenchError;
use crate::kit::scale::Scale;

/// Networks of one kind and size.
pub struct Cell {
    name: &'static str,
    topology: Topology,
    traffic: Traffic,
    pub count: u64,
}

/// The outcome of a row.
#[derive(Default)]
pub struct Outcome {
    networks: u64,
    nodes: usize,
    flows: usize,
    planned: u64,
    /// The share of time that the fullest link of all plans is busy, in percent.
    fullest: f64,
    /// The times of all plans, of the judge, and of one more flow, in ascending order.
    plan: Vec<WallTime>,
    judge: Vec<WallTime>,
    more: Vec<WallTime>,
    /// The largest resident set, in bytes.
    memory: u64,
}

/// The time limit of a plan.
const LIMIT: WallTime = WallTime::from_secs(60);

/// Returns all rows.
pub fn cells(scale: Scale) -> Vec<Cell> {
    let cell = |name, topology, flows, hosts, count| Cell {
        name,
        topology,
        traffic: Traffic { flows, hosts },
        count: scale.of(count, 1),
    };
    let small = [
        cell("line of 20 switches", Topology::Line(20), 1000, 4, 10),
        cell("ring of 20 switches", Topology::Ring(20), 1000, 4, 10),
        cell("mesh of 6 x 6 switches", Topology::Mesh(6, 6), 1000, 3, 10),
        cell("fat tree of switches with 6 ports", Topology::FatTree(6), 1000, 3, 10),
    ];
    let large = [
        cell("mesh of 20 x 20 switches", Topology::Mesh(20, 20), 10_000, 4, 3),
        cell("fat tree of switches with 18 ports", Topology::FatTree(18), 10_000, 9, 3),
    ];
    small.into_iter().chain(scale.of(Vec::from(large), Vec::new())).collect()
}

impl Cell {
    /// Returns the name of the row.
    pub fn name(&self) -> String {
        format!("{}, {} flows", self.name, self.traffic.flows)
    }

    /// Plans and judges all networks. For each, one more flow is planned that moves none of the others.
    pub fn measure(&self) -> Result<Outcome, BenchError> {
        let mut outcome = Outcome { networks: self.count, flows: self.traffic.flows, ..Outcome::default() };
        memory::forget();
        for seed in 0..self.count {
            let traffic = Traffic { flows: self.traffic.flows + 1, ..self.traffic };
            let (wire, mut flows) = switched(seed, self.topology, traffic);
            let more = flows.split_off(self.traffic.flows);
            outcome.nodes = wire.nodes.len();
            let options = Options { time_limit: LIMIT, ..Options::default() };
            let begin = Instant::now();
            let planned = plan_wire(&wire, &flows, options, &Unwatched);
            outcome.plan.push(begin.elapsed());
            let Ok(mut courses) = planned else { continue };
            let begin = Instant::now();
            self.accepted(&wire, &flows, &courses)?;
            outcome.judge.push(begin.elapsed());
            outcome.planned += 1;
            outcome.fullest = outcome.fullest.max(fullest(&wire, &flows, &courses));
            let begin = Instant::now();
            let added = add_to_wire(&wire, (&flows, &courses), &more);
            outcome.more.push(begin.elapsed());
            if let Ok(added) = added {
                flows.extend(more);
                courses.extend(added);
                self.accepted(&wire, &flows, &courses)?;
            }
        }
        outcome.memory = memory::largest();
        [&mut outcome.plan, &mut outcome.judge, &mut outcome.more].into_iter().for_each(|times| times.sort_unstable());
        Ok(outcome)
    }

    fn accepted(&self, wire: &Wire, flows: &[WireFlow], courses: &[Course]) -> Result<(), BenchError> {
        match judge_wire(wire, flows, courses).first() {
            None => Ok(()),
            Some(violation) => Err(BenchError::Refused { system: self.name(), verdict: violation.to_string() }),
        }
    }
}

/// Returns the share of time for which the fullest link is busy, in percent.
fn fullest(wire: &Wire, flows: &[WireFlow], courses: &[Course]) -> f64 {
    let mut loads = vec![0.0; wire.links.len()];
    for (flow, course) in flows.iter().zip(courses) {
        for (link, _) in &course.hops {
            loads[*link] += wire.links[*link].time(flow.frame).as_nanos() as f64 / flow.period.as_nanos() as f64;
        }
    }
    loads.into_iter().fold(0.0, f64::max) * 100.0
}

fn median(times: &[WallTime]) -> f64 {
    times.get(times.len() / 2).map_or(0.0, |time| time.as_secs_f64() * 1e3)
}

fn longest(times: &[WallTime]) -> f64 {
    times.last().map_or(0.0, |time| time.as_secs_f64() * 1e3)
}

/// The head of the table.
pub const HEAD: &str =
    "| network | nodes | flows | number | planned | fullest link [%] | median [ms] | longest [ms] | \
                        judge [ms] | one more flow [ms] | memory [MB] |\n\
                        |---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n";

impl Outcome {
    /// Returns the row of the table.
    pub fn row(&self, cell: &Cell) -> String {
        let Outcome { networks, nodes, flows, planned, fullest, plan, judge, more, memory } = self;
        format!(
            "| {} | {nodes} | {flows} | {networks} | {planned} | {fullest:.1} | {:.0} | {:.0} | {:.1} | {:.1} | {:.0} |\n",
            cell.name,
            median(plan),
            longest(plan),
            median(judge),
            median(more),
            *memory as f64 / 1e6,
        )
    }

    /// Returns the numbers of the row.
    pub fn figures(&self, case: &str) -> Vec<Figure> {
        vec![
            Figure::new("flows planned", case, self.planned as f64, "networks"),
            Figure::new("fullest link", case, self.fullest, "%"),
            Figure::new("time.median", case, median(&self.plan), "ms"),
            Figure::new("time.longest", case, longest(&self.plan), "ms"),
            Figure::new("time.judge", case, median(&self.judge), "ms"),
            Figure::new("time.one more", case, median(&self.more), "ms"),
            Figure::new("memory", case, self.memory as f64, "bytes"),
        ]
    }
}
