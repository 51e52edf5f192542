//! Several runs of one plan, side by side.

mod chains;
mod mismatch;
mod overview;
mod render;

use std::path::{Path, PathBuf};

use macrotick_model::Backend;
use serde::Serialize;

use crate::figures::{self, Figure, WriteError};
use crate::report::{Metric, Report, TaskReport};
use crate::stats::Statistics;
use crate::words;

pub use chains::{ChainComparison, ChainRow};
pub use mismatch::{check_comparable, Mismatch};

/// Several runs of one plan, side by side.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The system's name.
    pub system: String,
    /// One entry per run, in the order given.
    pub runs: Vec<Run>,
    /// One entry per task, in the order of the system.
    pub tasks: Vec<TaskComparison>,
    /// One entry per chain, in the order of the system.
    pub chains: Vec<ChainComparison>,
    /// Numbers of other sources, to show beside ours.
    pub references: Vec<Reference>,
    /// Reasons against a comparison, and remarks of the runs.
    pub remarks: Vec<String>,
    /// Limits of the numbers.
    pub caveats: Vec<String>,
}

/// One run of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Run {
    /// The label of the run.
    pub label: String,
    /// The backend that dispatched the jobs.
    pub backend: Backend,
    /// The enforcement, in words.
    pub tier: String,
    /// Whether the run held.
    pub holds: bool,
    /// The verdict in a line.
    pub verdict: String,
    /// Jobs of all tasks with a deadline within the run.
    pub released: u64,
    /// Jobs of them that were not complete at their deadline.
    pub missed: u64,
}

/// One task in all runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TaskComparison {
    /// The task's name.
    pub name: String,
    /// One entry per run that has the task.
    pub rows: Vec<Row>,
}

/// One task in one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The label of the run.
    pub label: String,
    /// The backend that dispatched the jobs.
    pub backend: Backend,
    /// Jobs with a deadline within the run.
    pub released: u64,
    /// Jobs that were not complete at their deadline.
    pub missed: u64,
    /// Start minus nominal instant.
    pub lateness: Option<Statistics>,
    /// End minus nominal instant.
    pub response: Option<Statistics>,
    /// The number of its colour.
    #[serde(skip)]
    colour: usize,
    #[serde(skip)]
    lateness_samples: Vec<i64>,
    #[serde(skip)]
    response_samples: Vec<i64>,
}

/// A mean and a standard deviation of another source, such as a paper.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reference {
    /// The label.
    pub label: String,
    /// The measured quantity.
    pub metric: Metric,
    /// The backend of the run beside it, if there is one.
    pub backend: Option<Backend>,
    /// Mean, in microseconds.
    pub mean_us: f64,
    /// Standard deviation, in microseconds.
    pub std_us: f64,
    /// The source of the numbers.
    pub source: String,
}

impl Reference {
    /// Returns the response times of figure 3 of the SCHED_TT paper (RTNS 2023).
    pub fn sched_tt_figure_3() -> Vec<Reference> {
        [
            ("paper: CFS", Backend::Other, 67.4, 42.7),
            ("paper: user-space TT", Backend::User, 25.5, 2.8),
            ("paper: kernel TT", Backend::Kernel, 7.7, 1.7),
        ]
        .into_iter()
        .map(|(label, backend, mean_us, std_us)| Reference {
            label: label.into(),
            metric: Metric::Response,
            backend: Some(backend),
            mean_us,
            std_us,
            source: "SCHED_TT paper (RTNS 2023), figure 3, on the authors' machine".into(),
        })
        .collect()
    }
}

impl Row {
    /// Returns the statistics of a metric.
    pub fn statistics(&self, metric: Metric) -> Option<&Statistics> {
        match metric {
            Metric::Lateness => self.lateness.as_ref(),
            Metric::Response => self.response.as_ref(),
        }
    }
    /// Returns the samples of a metric in ascending order, in nanoseconds.
    pub fn samples(&self, metric: Metric) -> &[i64] {
        match metric {
            Metric::Lateness => &self.lateness_samples,
            Metric::Response => &self.response_samples,
        }
    }
}

/// Compares runs, and labels each with its backend.
pub fn compare(reports: &[Report]) -> Comparison {
    let runs: Vec<(&str, &Report)> = reports.iter().map(|report| (report.backend.name(), report)).collect();
    compare_labelled(&runs)
}

/// Compares runs under labels of their own, for runs that share a backend.
pub fn compare_labelled(runs: &[(&str, &Report)]) -> Comparison {
    let colours: Vec<usize> = (0..runs.len()).map(|index| colour(runs, index)).collect();
    let mut tasks: Vec<TaskComparison> = Vec::new();
    for ((label, report), &colour) in runs.iter().zip(&colours) {
        for task in &report.tasks {
            let row = row(label, report.backend, colour, task);
            match tasks.iter_mut().find(|entry| entry.name == task.name) {
                Some(entry) => entry.rows.push(row),
                None => tasks.push(TaskComparison { name: task.name.clone(), rows: vec![row] }),
            }
        }
    }
    Comparison {
        system: runs.first().map_or(String::new(), |(_, report)| report.system.clone()),
        runs: runs.iter().map(|(label, report)| run(label, report)).collect(),
        tasks,
        chains: chains::side_by_side(runs, &colours),
        references: Vec::new(),
        remarks: remarks(runs),
        caveats: caveats(runs),
    }
}

fn run(label: &str, report: &Report) -> Run {
    Run {
        label: label.into(),
        backend: report.backend,
        tier: words::tier(report.tier, report.backend).into(),
        holds: report.holds(),
        verdict: words::verdict_line(report),
        released: report.verdict.released,
        missed: report.verdict.missed,
    }
}

fn row(label: &str, backend: Backend, colour: usize, task: &TaskReport) -> Row {
    Row {
        label: label.into(),
        backend,
        released: task.released,
        missed: task.missed,
        lateness: task.lateness,
        response: task.response,
        colour,
        lateness_samples: task.samples(Metric::Lateness),
        response_samples: task.samples(Metric::Response),
    }
}

/// Returns the number of a run's colour. A backend has the same colour in all comparisons, unless runs share one.
fn colour(runs: &[(&str, &Report)], index: usize) -> usize {
    let backend = runs[index].1.backend;
    let shared = runs
        .iter()
        .enumerate()
        .any(|(other, (_, report))| runs[..other].iter().any(|(_, earlier)| earlier.backend == report.backend));
    if shared {
        index
    } else {
        Backend::ALL.iter().position(|&other| other == backend).unwrap_or(index)
    }
}

fn remarks(runs: &[(&str, &Report)]) -> Vec<String> {
    let mut remarks = Vec::new();
    if let Some(((first_label, first), rest)) = runs.split_first() {
        for (label, report) in rest {
            if (&report.system, report.cycle_ns, &report.tables) != (&first.system, first.cycle_ns, &first.tables) {
                remarks.push(format!("{label} ran another plan than {first_label}: the two are not comparable"));
            }
            if report.environment.kernel != first.environment.kernel || report.environment.lab != first.environment.lab
            {
                remarks.push(format!("{label} ran on another kernel or machine than {first_label}"));
            }
        }
    }
    for (label, report) in runs {
        remarks.extend(report.remarks.iter().map(|remark| format!("{label}: {remark}")));
    }
    remarks
}

/// Returns the caveats of all runs, each once.
fn caveats(runs: &[(&str, &Report)]) -> Vec<String> {
    let mut caveats: Vec<String> = Vec::new();
    for caveat in runs.iter().flat_map(|(_, report)| &report.caveats) {
        if !caveats.contains(caveat) {
            caveats.push(caveat.clone());
        }
    }
    caveats
}

impl Comparison {
    /// Adds numbers of other sources.
    pub fn with_references(mut self, references: Vec<Reference>) -> Comparison {
        self.references = references;
        self
    }

    /// Returns the task of that name.
    pub fn task(&self, name: &str) -> Option<&TaskComparison> {
        self.tasks.iter().find(|task| task.name == name)
    }

    /// Returns every number of the comparison for `figures.json`. With several tasks, `TASK.` precedes the figure's
    /// name. Cases are the labels of runs and references.
    pub fn figures(&self) -> Vec<Figure> {
        let mut all = Vec::new();
        for task in &self.tasks {
            let prefix = if self.tasks.len() > 1 { format!("{}.", task.name) } else { String::new() };
            task.rows.iter().for_each(|row| all.extend(row_figures(&prefix, row)));
        }
        for reference in &self.references {
            for (name, value) in [("mean", reference.mean_us), ("std", reference.std_us)] {
                let figure = format!("{}.{name}", reference.metric.name());
                all.push(Figure { figure, case: reference.label.clone(), value, unit: "us".into() });
            }
        }
        all
    }

    /// Writes everything into a folder, and returns the files: `figures.json`, `comparison.json`, `tables.md`,
    /// `report.html`. Each task and metric has `TASK-METRIC-histogram.svg` and `TASK-METRIC-cdf.svg`. If some runs are
    /// far slower than others, there is also `TASK-METRIC-histogram-close.svg`.
    pub fn write(&self, folder: &Path) -> Result<Vec<PathBuf>, WriteError> {
        let mut files = vec![
            ("figures.json".to_string(), figures::to_json(&self.figures())?),
            ("comparison.json".into(), self.to_json()),
            ("tables.md".into(), self.markdown()),
            ("report.html".into(), self.html()),
        ];
        for task in &self.tasks {
            for metric in [Metric::Lateness, Metric::Response] {
                let stem = format!("{}-{}", file_name(&task.name), metric.name());
                files.push((format!("{stem}-histogram.svg"), self.histogram_svg(task, metric)));
                let close = self.close_histogram_svg(task, metric);
                files.extend(close.map(|svg| (format!("{stem}-histogram-close.svg"), svg)));
                files.push((format!("{stem}-cdf.svg"), self.cdf_svg(task, metric)));
            }
        }
        files
            .into_iter()
            .map(|(name, text)| {
                let path = folder.join(name);
                figures::write_text(&path, &text)?;
                Ok(path)
            })
            .collect()
    }

    /// Returns the comparison as JSON, indented, with a newline at its end.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("strings, numbers and lists always serialise");
        text.push('\n');
        text
    }
}

fn row_figures(prefix: &str, row: &Row) -> Vec<Figure> {
    let figure = |name: String, value: f64, unit: &str| Figure {
        figure: format!("{prefix}{name}"),
        case: row.label.clone(),
        value,
        unit: unit.into(),
    };
    let mut all = vec![
        figure("activations".into(), row.released as f64, "jobs"),
        figure("misses".into(), row.missed as f64, "jobs"),
    ];
    for metric in [Metric::Lateness, Metric::Response] {
        let Some(s) = row.statistics(metric) else { continue };
        let us = |ns: i64| ns as f64 / 1e3;
        for (name, value) in [
            ("mean", s.mean_ns.as_us_f64()),
            ("std", s.deviation_ns.as_us_f64()),
            ("min", us(s.min_ns)),
            ("p50", us(s.p50_ns)),
            ("p99", us(s.p99_ns)),
            ("p99.9", us(s.p999_ns)),
            ("max", us(s.max_ns)),
        ] {
            all.push(figure(format!("{}.{name}", metric.name()), value, "us"));
        }
    }
    all
}

/// Returns a name that is safe for a file: every character that is no letter, digit, `-` or `_` becomes `_`.
fn file_name(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '_' }).collect()
}
