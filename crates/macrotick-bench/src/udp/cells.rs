//! The cells of the tables: a configuration beside a load, and the round trips of both.

use std::fmt::Write as _;

use macrotick_lab::{taken_along, Flavor, GuestJob, NicModel, Nics};
use macrotick_model::Duration;
use macrotick_report::{Figure, Statistics};
use serde::{Deserialize, Serialize};

use super::papers;
use super::udp_guest::RUN;
use crate::error::BenchError;
use crate::kit::aims::Aim;
use crate::kit::bench::Bench;
use crate::kit::scale::Scale;
use crate::kit::{disk, lab};

/// The packets of a cell: the phase of the tick sweeps over the whole period.
const PACKETS: u64 = 1000;
const QUICK_PACKETS: u64 = 100;
/// The packets of a run that is made twice.
const REPEATED: u64 = 200;
/// A guest with much traffic needs many seconds of wall time for each virtual one.
const WALL: Duration = Duration::from_secs(3600);
/// Client, server and PC. The driver makes a queue for each CPU at the boot: the paper's card has three.
const NICS: Nics = Nics { model: NicModel::Vmxnet3, count: 3, queues: 4 };
const MEMORY_MIB: u32 = 1024;

/// The most that a load may add to the longest round trip of the idle guest, as a factor.
const AIM_FACTOR: f64 = 1.2;
/// The greatest share of the socket's round trip that the express path may take.
const AIM_EXPRESS: f64 = 0.75;

/// A configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// Client and server have no priorities.
    Ordinary,
    /// Client and server run under SCHED_FIFO.
    RealTime,
    /// The same, with the interrupt threads of their queue above them.
    Interrupts,
    /// The set-up of the profile `macrotick`, a window for the client, and gates for the other traffic.
    Macrotick,
}

impl Column {
    /// All configurations, in the order of the tables.
    pub const ALL: [Column; 4] = [Column::Ordinary, Column::RealTime, Column::Interrupts, Column::Macrotick];

    /// Returns the word on the guest's command line.
    pub fn name(self) -> &'static str {
        match self {
            Column::Ordinary => "ordinary",
            Column::RealTime => "real-time",
            Column::Interrupts => "interrupts",
            Column::Macrotick => "macrotick",
        }
    }

    /// Returns the name in tables and figures.
    pub fn title(self) -> &'static str {
        match self {
            Column::Ordinary => "no RT priorities",
            Column::RealTime => "RT priorities",
            Column::Interrupts => "RT priorities, interrupt threads above",
            Column::Macrotick => "Macrotick",
        }
    }

    /// Parses a name of [`Column::name`].
    pub fn from_name(name: &str) -> Result<Column, String> {
        Column::ALL.into_iter().find(|one| one.name() == name).ok_or_else(|| format!("no column `{name}`"))
    }
}

/// A rate of the other traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// As in the paper.
    Mbps100,
    /// More than the guest's CPU can pass on.
    Mbps300,
    /// Without a pause.
    Unlimited,
}

impl Rate {
    const ALL: [Rate; 3] = [Rate::Mbps100, Rate::Mbps300, Rate::Unlimited];

    /// Returns the rate in Mb/s, if there is one.
    pub fn mbps(self) -> Option<u64> {
        match self {
            Rate::Mbps100 => Some(100),
            Rate::Mbps300 => Some(300),
            Rate::Unlimited => None,
        }
    }
}

/// The load beside the round trips.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// Nothing.
    Idle,
    /// The processes of `stress`.
    Stress,
    /// The client sends to the PC.
    Sent(Rate),
    /// The PC sends to the server.
    Received(Rate),
}

impl Load {
    const QUICK: [Load; 3] = [Load::Idle, Load::Sent(Rate::Mbps100), Load::Received(Rate::Mbps100)];

    /// Returns all loads, in the order of the tables.
    pub fn all() -> Vec<Load> {
        let of = |load: fn(Rate) -> Load| Rate::ALL.into_iter().map(load);
        [Load::Idle, Load::Stress].into_iter().chain(of(Load::Sent)).chain(of(Load::Received)).collect()
    }

    /// Returns the word on the guest's command line.
    pub fn name(self) -> String {
        let rate = |rate: Rate| rate.mbps().map_or("unlimited".into(), |mbps| mbps.to_string());
        match self {
            Load::Idle => "idle".into(),
            Load::Stress => "stress".into(),
            Load::Sent(of) => format!("tx-{}", rate(of)),
            Load::Received(of) => format!("rx-{}", rate(of)),
        }
    }

    /// Returns the name in tables and figures.
    pub fn title(self) -> String {
        let rate = |rate: Rate| rate.mbps().map_or("unlimited".into(), |mbps| format!("{mbps} Mb/s"));
        match self {
            Load::Idle => "idle".into(),
            Load::Stress => "stress".into(),
            Load::Sent(of) => format!("TX traffic, {}", rate(of)),
            Load::Received(of) => format!("RX traffic, {}", rate(of)),
        }
    }

    /// Parses a name of [`Load::name`].
    pub fn from_name(name: &str) -> Result<Load, String> {
        Load::all().into_iter().find(|one| one.name() == name).ok_or_else(|| format!("no load `{name}`"))
    }

    /// Whether the PC makes the traffic.
    pub fn is_received(self) -> bool {
        matches!(self, Load::Received(_))
    }

    fn has_traffic(self) -> bool {
        matches!(self, Load::Sent(_) | Load::Received(_))
    }
}

/// The path of the packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// The network stack.
    Socket,
    /// AF_XDP before the network stack.
    Skb,
    /// AF_XDP in the driver.
    Native,
}

impl Path {
    const ALL: [Path; 3] = [Path::Socket, Path::Skb, Path::Native];

    /// Returns the word on the guest's command line.
    pub fn name(self) -> &'static str {
        match self {
            Path::Socket => "socket",
            Path::Skb => "skb",
            Path::Native => "native",
        }
    }

    /// Returns the name in tables and figures.
    fn title(self) -> &'static str {
        match self {
            Path::Socket => "socket",
            Path::Skb => "AF_XDP before the stack",
            Path::Native => "AF_XDP in the driver",
        }
    }

    /// Parses a name of [`Path::name`].
    pub fn from_name(name: &str) -> Result<Path, String> {
        Path::ALL.into_iter().find(|one| one.name() == name).ok_or_else(|| format!("no path `{name}`"))
    }
}

/// The guest's readings of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    /// How often each round trip occurred, in ns from the call of send to the answer, in ascending order.
    pub round_trips: Vec<(i64, u64)>,
    /// The packets that were sent.
    pub sent: u64,
    /// The packets without an answer, those included that were not sent.
    pub lost: u64,
    /// The packets without an answer within 1 ms after their nominal instant.
    pub misses: u64,
    /// The longest time from the nominal instant to the call of send, in ns.
    pub wake_ns: i64,
    /// The longest way to the server, in ns.
    pub there_ns: i64,
    /// The longest time in the server, in ns.
    pub server_ns: i64,
    /// The longest way back, in ns.
    pub back_ns: i64,
    /// The other traffic that arrived at its sink, in kb/s; the PC's sink takes all that is sent.
    pub moved_kbps: u64,
}

impl Reading {
    fn statistics(&self) -> Option<Statistics> {
        let each = |&(time, count): &(i64, u64)| std::iter::repeat_n(time, count as usize);
        let all: Vec<i64> = self.round_trips.iter().flat_map(each).collect();
        Statistics::of_sorted(&all)
    }
}

/// A run with its statistics.
struct Cell {
    column: Column,
    load: Load,
    path: Path,
    reading: Reading,
    statistics: Statistics,
}

impl Cell {
    fn run(column: Column, load: Load, path: Path, packets: u64) -> Result<Cell, BenchError> {
        let job = job(column, load, path, packets)?;
        lab::read(&job, "round trips", |output| {
            let reading: Reading = serde_json::from_str(output).ok()?;
            let statistics = reading.statistics()?;
            Some(Cell { column, load, path, reading, statistics })
        })
    }
}

/// All runs.
pub struct Cells {
    cells: Vec<Cell>,
    /// The idle guest with each path, in the configuration with the interrupt threads above.
    express: Vec<Cell>,
    /// The number of configurations with a repetition that differs. `None`: nothing was repeated.
    different: Option<usize>,
}

fn loads(scale: Scale) -> Vec<Load> {
    scale.of(Load::all(), Load::QUICK.to_vec())
}

fn packets(scale: Scale) -> u64 {
    scale.of(PACKETS, QUICK_PACKETS)
}

/// Returns the packets of each run.
pub fn extent(scale: Scale) -> Vec<u64> {
    let all = vec![packets(scale); loads(scale).len() * Column::ALL.len() + Path::ALL.len()];
    [all, scale.of(vec![REPEATED; 2 * Column::ALL.len()], Vec::new())].concat()
}

fn job(column: Column, load: Load, path: Path, packets: u64) -> Result<GuestJob, BenchError> {
    let words = [RUN.into(), column.name().into(), load.name(), path.name().into(), packets.to_string()];
    let mut job = lab::job(Flavor::Net, words);
    (job.nics, job.memory_mib, job.wall_limit) = (Some(NICS), MEMORY_MIB, WALL);
    if load == Load::Stress {
        job.files.extend(taken_along(&[disk::MAKER.into()], job.image)?);
    }
    Ok(job)
}

impl Cells {
    /// Runs everything in the lab.
    pub fn measure(bench: &Bench) -> Result<Cells, BenchError> {
        let (packets, mut cells, mut different) = (packets(bench.scale), Vec::new(), 0);
        for column in Column::ALL {
            for load in loads(bench.scale) {
                lab::announce(&format!("{}: {}, {}", bench.name, column.title(), load.title()));
                cells.push(Cell::run(column, load, Path::Socket, packets)?);
            }
            if bench.scale == Scale::Full {
                let job = job(column, Load::Received(Rate::Mbps100), Path::Socket, REPEATED)?;
                let run = || Ok::<_, BenchError>(lab::run(&job)?.stdout);
                different += usize::from(run()? != run()?);
            }
        }
        let express = |path| Cell::run(Column::Interrupts, Load::Idle, path, packets);
        let express = Path::ALL.into_iter().map(express).collect::<Result<_, _>>()?;
        Ok(Cells { cells, express, different: bench.scale.of(Some(different), None) })
    }

    fn of(&self, column: Column) -> impl Iterator<Item = &Cell> {
        self.cells.iter().filter(move |cell| cell.column == column)
    }

    /// Returns the aims.
    pub fn aims(&self) -> Vec<Aim> {
        let aim = |what: String, unit, value, limit| Aim { what, unit, value, limit };
        let idle = self.of(Column::Macrotick).find(|cell| cell.load == Load::Idle);
        let idle = idle.map_or(f64::NAN, |cell| us(cell.statistics.max_ns));
        let mut aims: Vec<Aim> = self
            .of(Column::Macrotick)
            .filter(|cell| cell.load != Load::Idle)
            .map(|cell| {
                let factor = us(cell.statistics.max_ns) / idle;
                aim(
                    format!("Macrotick, {}: longest round trip, by that of idle", cell.load.title()),
                    "times",
                    factor,
                    AIM_FACTOR,
                )
            })
            .collect();
        let sum =
            |of: fn(&Reading) -> u64| self.of(Column::Macrotick).map(|cell| of(&cell.reading)).sum::<u64>() as f64;
        aims.push(aim("Macrotick, all loads: lost packets".into(), "packets", sum(|reading| reading.lost), 0.0));
        aims.push(aim("Macrotick, all loads: misses of 1 ms".into(), "packets", sum(|reading| reading.misses), 0.0));
        let mean =
            |path| self.express.iter().find(|cell| cell.path == path).map(|cell| cell.statistics.mean_ns.as_us_f64());
        if let (Some(socket), Some(native)) = (mean(Path::Socket), mean(Path::Native)) {
            let what = "AF_XDP in the driver: mean round trip, by that of the socket".into();
            aims.push(aim(what, "times", native / socket, AIM_EXPRESS));
        }
        let differs = |n: usize| aim("runs that differ from their repetition".into(), "runs", n as f64, 0.0);
        aims.extend(self.different.map(differs));
        aims
    }

    /// Returns the tables.
    pub fn markdown(&self) -> String {
        let tables = Column::ALL.map(|column| self.table(column));
        [tables.join("\n"), self.delays(), self.paths()].join("\n")
    }

    fn table(&self, column: Column) -> String {
        let paper = papers::table(column);
        let mut text = format!(
            "### {} [us]\n\nBeside it: {}, on two machines with two ARMv7 cores each.\n\n\
             | load | samples | min | mean | p99 | max | missed 1 ms | lost | traffic [Mb/s] | paper: min | mean | max \
             | missed 1 ms | lost |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n",
            column.title(),
            paper.title
        );
        for cell in self.of(column) {
            let (s, reading) = (&cell.statistics, &cell.reading);
            let traffic = match cell.load.has_traffic() {
                true => format!("{:.1}", reading.moved_kbps as f64 / 1e3),
                false => "".into(),
            };
            let _ = writeln!(
                text,
                "| {} | {} | {:.1} | {:.1} | {:.1} | {:.1} | {} | {} | {traffic} | {} |",
                cell.load.title(),
                s.count,
                us(s.min_ns),
                s.mean_ns.as_us_f64(),
                us(s.p99_ns),
                us(s.max_ns),
                reading.misses,
                reading.lost,
                paper.row(cell.load).map_or_else(|| [""; 5].join(" | "), papers::Row::cells)
            );
        }
        text
    }

    fn delays(&self) -> String {
        let mut text = "### the longest of each part of the round trip [us]\n\n\
             | load | configuration | nominal instant to send | to the server | in the server | back |\n\
             |---|---|---:|---:|---:|---:|\n"
            .to_owned();
        for cell in &self.cells {
            let reading = &cell.reading;
            let parts = [reading.wake_ns, reading.there_ns, reading.server_ns, reading.back_ns];
            let parts: Vec<String> = parts.into_iter().map(|ns| format!("{:.1}", us(ns))).collect();
            let _ = writeln!(text, "| {} | {} | {} |", cell.load.title(), cell.column.title(), parts.join(" | "));
        }
        text
    }

    fn paths(&self) -> String {
        let mut text = format!(
            "### the express path beside the socket, idle, {} [us]\n\n\
             | path | samples | min | mean | p99 | max | lost |\n|---|---:|---:|---:|---:|---:|---:|\n",
            Column::Interrupts.title()
        );
        for Cell { path, statistics: s, reading, .. } in &self.express {
            let _ = writeln!(
                text,
                "| {} | {} | {:.1} | {:.1} | {:.1} | {:.1} | {} |",
                path.title(),
                s.count,
                us(s.min_ns),
                s.mean_ns.as_us_f64(),
                us(s.p99_ns),
                us(s.max_ns),
                reading.lost
            );
        }
        text
    }

    /// Returns the same values as figures.
    pub fn figures(&self) -> Vec<Figure> {
        let mut figures = Vec::new();
        let tables = self.cells.iter().map(|cell| (format!("{}: {}", cell.load.title(), cell.column.title()), cell));
        let express = self.express.iter().map(|cell| (format!("express path: {}", cell.path.title()), cell));
        for (case, cell) in tables.chain(express) {
            let mut add = |figure: &str, value: f64, unit: &str| {
                figures.push(Figure { figure: figure.into(), case: case.clone(), value, unit: unit.into() });
            };
            let (s, reading) = (&cell.statistics, &cell.reading);
            add("samples", s.count as f64, "packets");
            add("round trip.min", us(s.min_ns), "us");
            add("round trip.mean", s.mean_ns.as_us_f64(), "us");
            add("round trip.p99", us(s.p99_ns), "us");
            add("round trip.max", us(s.max_ns), "us");
            add("misses", reading.misses as f64, "packets");
            add("lost", reading.lost as f64, "packets");
            add("nominal instant to send.max", us(reading.wake_ns), "us");
            add("way to the server.max", us(reading.there_ns), "us");
            add("in the server.max", us(reading.server_ns), "us");
            add("way back.max", us(reading.back_ns), "us");
            if cell.load.has_traffic() {
                add("traffic", reading.moved_kbps as f64 / 1e3, "Mb/s");
            }
        }
        figures.extend(papers::figures());
        figures
    }
}

fn us(ns: i64) -> f64 {
    ns as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(column: Column, load: Load, path: Path, round_trips: &[(i64, u64)], bad: u64) -> Cell {
        let reading = Reading { round_trips: round_trips.to_vec(), lost: bad, misses: bad, ..Reading::default() };
        Cell { column, load, path, statistics: reading.statistics().unwrap(), reading }
    }

    #[test]
    fn names_say_which() {
        Column::ALL.iter().for_each(|one| assert_eq!(Column::from_name(one.name()), Ok(*one)));
        Path::ALL.iter().for_each(|one| assert_eq!(Path::from_name(one.name()), Ok(*one)));
        Load::all().iter().for_each(|one| assert_eq!(Load::from_name(&one.name()), Ok(*one)));
        assert!(
            Load::from_name("tx-200").is_err() && Column::from_name("").is_err() && Path::from_name("xdp").is_err()
        );
    }

    #[test]
    fn the_longest_round_trip_and_every_loss_count() {
        let (macrotick, socket) = (Column::Macrotick, Path::Socket);
        let tx = Load::Sent(Rate::Mbps100);
        let cells = vec![
            cell(macrotick, Load::Idle, socket, &[(60_000, 9), (80_000, 1)], 0),
            cell(macrotick, tx, socket, &[(60_000, 9), (100_000, 1)], 2),
            cell(Column::RealTime, tx, socket, &[(900_000, 1)], 7),
        ];
        let express = [Path::Socket, Path::Native].map(|path| {
            let ns = if path == socket { 80_000 } else { 40_000 };
            cell(Column::Interrupts, Load::Idle, path, &[(ns, 1)], 0)
        });
        let cells = Cells { cells, express: express.into(), different: Some(1) };
        let aims = cells.aims();
        assert_eq!(aims.iter().map(|aim| aim.value).collect::<Vec<_>>(), [1.25, 2.0, 2.0, 0.5, 1.0]);
        assert!(aims[0].what.contains("TX traffic, 100 Mb/s"), "{}", aims[0].what);
        let text = cells.markdown();
        // The paper's row is beside ours.
        let row = "| TX traffic, 100 Mb/s | 1 | 900.0 | 900.0 | 900.0 | 900.0 | 7 | 7 | 0.0 | 265 | 320 | 25727 | 20 of 600000 | 0 |";
        assert!(text.lines().any(|line| line == row), "{text}");
    }
}
