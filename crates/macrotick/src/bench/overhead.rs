//! What the patched kernel costs while no table is installed: cyclictest and hackbench on it and on the pristine one.

use std::fmt::Write as _;

use macrotick_lab::Flavor;
use macrotick_model::Duration;
use macrotick_report::{figures, paired_bars, BarPair, Figure};

use super::{kernel, Bench, Results};
use crate::args::LabOptions;
use crate::error::CliError;
use crate::guest;
use crate::verbs::write_text;

const METHOD: &str = "The same source tree and configuration with and without Macrotick's overlay and hooks, no table \
installed. cyclictest runs one SCHED_FIFO 90 thread, alone and beside hackbench, that sleeps 1.009 ms at a time: its phase \
sweeps over that of the tick, or the least latency would depend on where it began; hackbench \
passes messages between groups of processes over sockets, and over pipes, in 20 runs of growing length, because a \
single one depends on who happens to wait for whom. The aim is that everything takes less than 2 % longer on the patched kernel. A \
maximum is one sample, the wake-up that met most by chance, and is not judged: any change of the kernel moves it.";

/// The patched kernel shall take less than so many percent longer.
const AIM: f64 = 2.0;
/// The figure that is a single sample of its run.
const SAMPLE: &str = "max";
const PLOT: &str = "bars.svg";

/// Numbers by the name of their figure.
type Numbers = Vec<(&'static str, f64)>;

/// A command and the numbers in its output.
struct Case {
    name: &'static str,
    command: &'static str,
    parse: fn(&str) -> Option<Numbers>,
    unit: &'static str,
}

const CASES: [Case; 4] = [
    Case { name: "cyclictest", command: CYCLICTEST, parse: parse_cyclictest, unit: "ns" },
    Case { name: "cyclictest over hackbench", command: CYCLICTEST_LOADED, parse: parse_cyclictest, unit: "ns" },
    Case { name: "hackbench sockets", command: SOCKETS, parse: parse_hackbench, unit: "s" },
    Case { name: "hackbench pipes", command: PIPES, parse: parse_hackbench, unit: "s" },
];
/// One run depends on who happens to wait for whom; runs of different lengths tell what they have in common.
const SOCKETS: &str = "for i in $(seq 100 10 290); do hackbench -g 2 -l $i; done";
const PIPES: &str = "for i in $(seq 100 10 290); do hackbench -p -g 2 -l $i; done";
const CYCLICTEST: &str = "cyclictest -m -N -q -p 90 -i 1009 -l 5000";
const CYCLICTEST_LOADED: &str =
    "hackbench -g 1 -l 100000 >/dev/null & cyclictest -m -N -q -p 90 -i 1009 -l 2000; kill $!";

/// One number on both kernels.
struct Row {
    case: &'static str,
    figure: &'static str,
    unit: &'static str,
    pristine: f64,
    patched: f64,
}

impl Row {
    fn percent(&self) -> f64 {
        (self.patched / self.pristine - 1.0) * 100.0
    }

    fn is_judged(&self) -> bool {
        self.figure != SAMPLE
    }

    fn meets_the_aim(&self) -> bool {
        self.percent() < AIM
    }

    fn judgement(&self) -> &'static str {
        match (self.is_judged(), self.meets_the_aim()) {
            (false, _) => "not judged: one sample",
            (true, true) => "met",
            (true, false) => "**not met**",
        }
    }
}

/// Runs it.
pub fn run(bench: &Bench) -> Result<Results, CliError> {
    let mut rows = Vec::new();
    for case in &CASES {
        guest::announce(&format!("{}: {}", bench.name, case.name));
        let pristine = measure(case, Flavor::Pristine)?;
        let patched = measure(case, Flavor::Patched)?;
        rows.extend(pristine.into_iter().zip(patched).map(|((figure, pristine), (_, patched))| Row {
            case: case.name,
            figure,
            unit: case.unit,
            pristine,
            patched,
        }));
    }
    let tables = markdown(&rows);
    print!("{tables}");
    write_text(&bench.folder.join("tables.md"), &tables)?;
    write_text(&bench.folder.join(PLOT), &plot(&rows))?;
    figures::write(&bench.folder.join("figures.json"), &rows.iter().flat_map(figures_of).collect::<Vec<_>>())?;
    Ok(Results {
        title: "Overhead: the patched kernel at rest",
        method: METHOD.into(),
        tables,
        kernels: vec![kernel(Flavor::Pristine)?, kernel(Flavor::Patched)?],
        packages: &["rt-tests"],
        plots: vec![(PLOT.into(), "Each figure relative to the pristine kernel's".into())],
    })
}

fn measure(case: &Case, flavor: Flavor) -> Result<Numbers, CliError> {
    let argv = ["sh", "-c", case.command].map(String::from).to_vec();
    let options = LabOptions { shift: 0, smp: None, dry_run: false };
    let mut job = guest::job(flavor, argv, &options, 1);
    job.wall_limit = Duration::from_secs(900);
    job.title = Some(format!("run {} on the {} kernel", case.name, flavor.name()));
    let output = guest::run(&job)?.stdout_text();
    (case.parse)(&output).ok_or_else(|| CliError::GuestOutput {
        command: case.command.into(),
        expected: "figures",
        output,
    })
}

/// The last line is `T: 0 ( 42) P:90 I:1000 C: 5000 Min: 3012 Act: 3120 Avg: 3100 Max: 5400`.
fn parse_cyclictest(output: &str) -> Option<Numbers> {
    let line = output.lines().rev().find(|line| line.starts_with("T:"))?;
    let words: Vec<&str> = line.split_whitespace().collect();
    let after = |key: &str| {
        let at = words.iter().position(|word| *word == key)?;
        words.get(at + 1)?.parse().ok()
    };
    Some(vec![("min", after("Min:")?), ("mean", after("Avg:")?), ("max", after("Max:")?)])
}

/// `Time: 0.123`, once for every run.
fn parse_hackbench(output: &str) -> Option<Numbers> {
    let times: Vec<f64> = output
        .lines()
        .filter_map(|line| line.strip_prefix("Time:"))
        .map(|time| time.trim().parse().ok())
        .collect::<Option<_>>()?;
    let sum: f64 = times.iter().sum();
    (!times.is_empty()).then(|| vec![("sum of 20 runs", (sum * 1e3).round() / 1e3)])
}

fn figures_of(row: &Row) -> [Figure; 3] {
    let figure = |kernel: &str, value: f64, unit: &str| Figure {
        figure: row.figure.into(),
        case: format!("{}, {kernel}", row.case),
        value,
        unit: unit.into(),
    };
    [
        figure("pristine", row.pristine, row.unit),
        figure("patched", row.patched, row.unit),
        figure("difference", row.percent(), "%"),
    ]
}

fn markdown(rows: &[Row]) -> String {
    let mut text = format!(
        "| case | figure | pristine | patched | difference | aim: below +{AIM} % |\n|---|---|---:|---:|---:|---|\n"
    );
    for row in rows {
        let Row { case, figure, unit, pristine, patched } = row;
        let (percent, judgement) = (row.percent(), row.judgement());
        let _ = writeln!(
            text,
            "| {case} | {figure} | {pristine} {unit} | {patched} {unit} | {percent:+.2} % | {judgement} |"
        );
    }
    format!("{text}\n{}\n", summary(rows))
}

/// How many of the judged figures meet the aim, and which do not.
fn summary(rows: &[Row]) -> String {
    let judged = || rows.iter().filter(|row| row.is_judged());
    let missing: Vec<String> =
        judged().filter(|row| !row.meets_the_aim()).map(|row| format!("{} ({})", row.case, row.figure)).collect();
    let met = judged().count() - missing.len();
    let but = if missing.is_empty() { String::new() } else { format!(", but not {}", missing.join(", ")) };
    format!("{met} of {} judged figures meet the aim{but}.", judged().count())
}

fn plot(rows: &[Row]) -> String {
    let pair = |row: &Row| BarPair {
        label: format!("{}: {}", row.case, row.figure),
        unit: row.unit.into(),
        values: [row.pristine, row.patched],
        judged: row.is_judged(),
    };
    let pairs: Vec<BarPair> = rows.iter().map(pair).collect();
    paired_bars("The patched kernel at rest, and the pristine one", ["pristine", "patched"], 1.0 + AIM / 100.0, &pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_the_tools_print() {
        let cyclictest = "# /dev/cpu_dma_latency set to 0us\n\
            T: 0 (   52) P:90 I:1000 C:   5000 Min:   3012 Act: 3120 Avg: 3100 Max:    5400\n";
        assert_eq!(parse_cyclictest(cyclictest), Some(vec![("min", 3012.0), ("mean", 3100.0), ("max", 5400.0)]));
        let hackbench = "Running in process mode\nTime: 0.123\nRunning in process mode\nTime: 0.200\n";
        assert_eq!(parse_hackbench(hackbench), Some(vec![("sum of 20 runs", 0.323)]));
        assert_eq!(parse_cyclictest("nothing"), None);
        assert_eq!(parse_hackbench("nothing"), None);
    }

    #[test]
    fn difference_is_relative_to_the_pristine_kernel() {
        let row = Row { case: "c", figure: "mean", unit: "ns", pristine: 200.0, patched: 203.0 };
        assert_eq!(format!("{:.2}", row.percent()), "1.50");
        assert!(markdown(&[row]).contains("\n| c | mean | 200 ns | 203 ns | +1.50 % | met |\n"));
    }

    fn row(figure: &'static str, patched: f64) -> Row {
        Row { case: "c", figure, unit: "ns", pristine: 200.0, patched }
    }

    #[test]
    fn every_figure_but_a_maximum_is_judged() {
        let judged = [row("min", 203.9), row("mean", 204.0), row("mean", 100.0), row("max", 900.0)];
        let expected = ["met", "**not met**", "met", "not judged: one sample"];
        assert_eq!(judged.each_ref().map(Row::judgement), expected);
        assert!(markdown(&judged).ends_with("\n\n2 of 3 judged figures meet the aim, but not c (mean).\n"));
        assert_eq!(summary(&judged[..1]), "1 of 1 judged figures meet the aim.");
    }

    #[test]
    fn the_plot_has_two_bars_per_figure() {
        let svg = plot(&[row("min", 203.0), row("max", 900.0)]);
        assert_eq!(svg.matches("class=\"dot").count(), 4);
        assert!(svg.contains("c: max (not judged)"));
    }
}
