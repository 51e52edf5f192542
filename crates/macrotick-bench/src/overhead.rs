//! The cost of the patched kernel while no table is installed: cyclictest and hackbench on it and on the pristine
//! kernel.

mod hackbench;

use std::fmt::Write as _;

use macrotick_lab::{Flavor, GuestJob, LabError};
use macrotick_model::Duration;
use macrotick_report::{figures, output, paired_bars, write_text, BarPair, Figure};

use self::hackbench::Run;
use crate::error::BenchError;
use crate::kit::bench::{kernel, Bench, Results};
use crate::kit::lab;
use crate::kit::scale::Scale;

const METHOD: &str = "\
The kernels have the same source tree and configuration, with and without Macrotick's overlay and hooks. No table is \
installed. cyclictest runs one SCHED_FIFO 90 thread, alone and beside hackbench. The thread sleeps 1.009 ms at a time, \
and its phase therefore sweeps over the tick. With a fixed phase, the least latency would depend on the start.

hackbench passes messages between groups of processes over sockets, and over pipes, in 20 runs of growing length. The \
number of switches depends on which process waits for which other one. It doubles or halves the time of a run without \
any change to the kernel. Therefore the bench estimates the cost of a run, a loop and a switch for each kernel, by \
least squares over its runs. It judges the time for equal work, the mean of both kernels.

The aim is that everything takes less than 2 % longer on the patched kernel. Figures that depend on chance are not \
judged. A maximum is one sample, the wake-up that met the most work. The measured sum of the runs follows the number \
of switches.";

/// The percentage by which the patched kernel may take longer.
const AIM: f64 = 2.0;
const PLOT: &str = "bars.svg";

/// The program of a case, and the way to parse its output.
enum Tool {
    /// One thread, alone or beside a hackbench.
    Cyclictest { loops: u32, beside: bool },
    /// Runs of growing length.
    Hackbench { options: &'static str, lengths: Lengths },
}

/// Loops of the runs of hackbench: of the first run, the increase per run, of the last run.
#[derive(Clone, Copy)]
struct Lengths(u32, u32, u32);

const ALL_LENGTHS: Lengths = Lengths(100, 10, 290);
/// A few more runs than the least number that gives the costs of a run, a loop and a switch.
const FEW_LENGTHS: Lengths = Lengths(20, 10, 70);

struct Case {
    name: &'static str,
    tool: Tool,
}

fn cases(scale: Scale) -> [Case; 4] {
    let lengths = scale.of(ALL_LENGTHS, FEW_LENGTHS);
    let cyclictest =
        |name, full, quick, beside| Case { name, tool: Tool::Cyclictest { loops: scale.of(full, quick), beside } };
    let hackbench = |name, options| Case { name, tool: Tool::Hackbench { options, lengths } };
    [
        cyclictest("cyclictest", 5000, 500, false),
        cyclictest("cyclictest over hackbench", 2000, 200, true),
        hackbench("hackbench sockets", "-g 2"),
        hackbench("hackbench pipes", "-p -g 2"),
    ]
}

impl Tool {
    /// Returns the command for the guest's shell.
    fn command(&self) -> String {
        match *self {
            Tool::Cyclictest { loops, beside } => {
                let cyclictest = format!("cyclictest -m -N -q -p 90 -i 1009 -l {loops}");
                let over_hackbench = || format!("hackbench -g 1 -l 100000 >/dev/null & {cyclictest}; kill $!");
                if beside {
                    over_hackbench()
                } else {
                    cyclictest
                }
            }
            Tool::Hackbench { options, lengths } => script(options, lengths),
        }
    }

    /// Returns the loops of all runs on one kernel.
    fn loops(&self) -> u64 {
        match *self {
            Tool::Cyclictest { loops, .. } => loops.into(),
            Tool::Hackbench { lengths: Lengths(first, step, last), .. } => {
                (first..=last).step_by(step as usize).map(u64::from).sum()
            }
        }
    }
}

/// Returns the loops of each case on both kernels.
pub fn extent(bench: &Bench) -> Result<Vec<u64>, BenchError> {
    Ok(cases(bench.scale).iter().flat_map(|case| [case.tool.loops(); 2]).collect())
}

/// One number on both kernels.
struct Row {
    case: &'static str,
    figure: &'static str,
    unit: &'static str,
    pristine: f64,
    patched: f64,
    /// The reason why the row is not judged.
    excuse: Option<&'static str>,
}

impl Row {
    fn percent(&self) -> f64 {
        (self.patched / self.pristine - 1.0) * 100.0
    }

    fn is_judged(&self) -> bool {
        self.excuse.is_none()
    }

    fn meets_the_aim(&self) -> bool {
        self.percent() < AIM
    }

    fn judgement(&self, scale: Scale) -> String {
        match self.excuse {
            Some(excuse) => format!("not judged: {excuse}"),
            None => scale.verdict(self.meets_the_aim()).into(),
        }
    }
}

/// Runs the experiment.
pub fn run(bench: &Bench) -> Result<Results, BenchError> {
    let mut rows = Vec::new();
    for case in &cases(bench.scale) {
        lab::announce(&format!("{}: {}", bench.name, case.name));
        rows.extend(measure(case)?);
    }
    let tables = markdown(&rows, bench.scale);
    output::print(&tables);
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

fn measure(case: &Case) -> Result<Vec<Row>, BenchError> {
    let command = case.tool.command();
    match case.tool {
        Tool::Cyclictest { .. } => {
            let measure = |flavor| read(parse_cyclictest, &command, &output_of(case, &command, flavor)?);
            Ok(latencies(case.name, measure(Flavor::Pristine)?, measure(Flavor::Patched)?))
        }
        Tool::Hackbench { .. } => {
            let measure = |flavor| read(hackbench::parse, &command, &output_of(case, &command, flavor)?);
            let (pristine, patched) = (measure(Flavor::Pristine)?, measure(Flavor::Patched)?);
            read(|_| times(case.name, &pristine, &patched), &command, &format!("{pristine:?}\n{patched:?}"))
        }
    }
}

fn output_of(case: &Case, command: &str, flavor: Flavor) -> Result<String, BenchError> {
    let mut job = GuestJob::new(flavor, ["sh", "-c", command]).on(1, 0);
    job.wall_limit = Duration::from_secs(900);
    job.title = Some(format!("run {} on the {} kernel", case.name, flavor.name()));
    Ok(lab::run(&job)?.stdout_text())
}

fn read<T>(parse: impl Fn(&str) -> Option<T>, command: &str, output: &str) -> Result<T, BenchError> {
    let fault = || LabError::GuestOutput { command: command.into(), expected: "figures", output: output.into() };
    parse(output).ok_or_else(|| fault().into())
}

/// Returns a script that runs hackbench, and prints the machine's context switches before and after each run.
fn script(options: &str, Lengths(first, step, last): Lengths) -> String {
    let switches = "sed -n 's/^ctxt/Switches:/p' /proc/stat";
    let lengths = format!("seq {first} {step} {last}");
    format!("{switches}; for i in $({lengths}); do echo Loops: $i; hackbench {options} -l $i; {switches}; done")
}

/// Parses cyclictest's least, mean and greatest latency in nanoseconds, from its last line:
/// `T: 0 ( 42) P:90 I:1000 C: 5000 Min: 3012 Act: 3120 Avg: 3100 Max: 5400`.
fn parse_cyclictest(output: &str) -> Option<[f64; 3]> {
    let line = output.lines().rev().find(|line| line.starts_with("T:"))?;
    let words: Vec<&str> = line.split_whitespace().collect();
    let after = |key: &str| {
        let at = words.iter().position(|word| *word == key)?;
        words.get(at + 1)?.parse().ok()
    };
    Some([after("Min:")?, after("Avg:")?, after("Max:")?])
}

fn latencies(case: &'static str, pristine: [f64; 3], patched: [f64; 3]) -> Vec<Row> {
    let figures = [("min", None), ("mean", None), ("max", Some("one sample"))];
    let row = |i: usize| {
        let (figure, excuse) = figures[i];
        Row { case, figure, unit: "ns", pristine: pristine[i], patched: patched[i], excuse }
    };
    (0..figures.len()).map(row).collect()
}

fn times(case: &'static str, pristine: &[Run], patched: &[Run]) -> Option<Vec<Row>> {
    let milliseconds = |seconds: f64| (seconds * 1e3).round() / 1e3;
    let [equal_pristine, equal_patched] = hackbench::equal_work(pristine, patched)?.map(milliseconds);
    let sum = |runs: &[Run]| milliseconds(runs.iter().map(|run| run.seconds).sum());
    let switches = |runs: &[Run]| runs.iter().map(|run| run.switches).sum();
    let row = |figure, unit, pristine, patched, excuse| Row { case, figure, unit, pristine, patched, excuse };
    Some(vec![
        row("equal work", "s", equal_pristine, equal_patched, None),
        row("sum of the runs", "s", sum(pristine), sum(patched), Some("follows the switches")),
        row("context switches", "", switches(pristine), switches(patched), Some("chance")),
    ])
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

fn markdown(rows: &[Row], scale: Scale) -> String {
    let mut text = format!(
        "| case | figure | pristine | patched | difference | aim: below +{AIM} % |\n|---|---|---:|---:|---:|---|\n"
    );
    for row in rows {
        let Row { case, figure, unit, pristine, patched, excuse: _ } = row;
        let (percent, judgement) = (row.percent(), row.judgement(scale));
        let _ = writeln!(
            text,
            "| {case} | {figure} | {} | {} | {percent:+.2} % | {judgement} |",
            format!("{pristine} {unit}").trim_end(),
            format!("{patched} {unit}").trim_end()
        );
    }
    format!("{text}\n{}\n", summary(rows, scale))
}

/// Returns a line with the number of judged figures that meet the aim, and the others.
fn summary(rows: &[Row], scale: Scale) -> String {
    let judged = || rows.iter().filter(|row| row.is_judged());
    let missing: Vec<String> =
        judged().filter(|row| !row.meets_the_aim()).map(|row| format!("{} ({})", row.case, row.figure)).collect();
    if scale == Scale::Quick {
        return scale.summary(0, judged().count());
    }
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
        assert_eq!(parse_cyclictest(cyclictest), Some([3012.0, 3100.0, 5400.0]));
        assert_eq!(parse_cyclictest("nothing"), None);
    }

    #[test]
    fn difference_is_relative_to_the_pristine_kernel() {
        let row = row("mean", 203.0);
        assert_eq!(format!("{:.2}", row.percent()), "1.50");
        assert!(markdown(&[row], Scale::Full).contains("\n| c | mean | 200 ns | 203 ns | +1.50 % | met |\n"));
    }

    fn row(figure: &'static str, patched: f64) -> Row {
        let excuse = (figure == "max").then_some("one sample");
        Row { case: "c", figure, unit: "ns", pristine: 200.0, patched, excuse }
    }

    #[test]
    fn a_figure_with_an_excuse_is_not_judged() {
        let judged = [row("min", 203.9), row("mean", 204.0), row("mean", 100.0), row("max", 900.0)];
        let expected = ["met", "**not met**", "met", "not judged: one sample"];
        assert_eq!(judged.each_ref().map(|row| row.judgement(Scale::Full)), expected);
        assert!(markdown(&judged, Scale::Full).ends_with("\n\n2 of 3 judged figures meet the aim, but not c (mean).\n"));
        assert_eq!(summary(&judged[..1], Scale::Full), "1 of 1 judged figures meet the aim.");
    }

    #[test]
    fn the_plot_has_two_bars_per_figure() {
        let svg = plot(&[row("min", 203.0), row("max", 900.0)]);
        assert_eq!(svg.matches("class=\"dot").count(), 4);
        assert!(svg.contains("c: max (not judged)"));
    }
}
