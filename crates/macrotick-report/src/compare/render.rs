//! A comparison as text, markdown, plots and a page.

use super::overview::decimals;
use super::{ChainComparison, ChainRow, Comparison, Reference, Row, TaskComparison};
use crate::chains::ChainLatency;
use crate::html::write::{list, page, section, table};
use crate::plot::overlay::{self, Overlay, Series, Spread};
use crate::plot::svg::{escape, Picture};
use crate::report::Metric;
use crate::table::{toned, Cell, Table, Tone};
use crate::terminal::{bad_if_any, list as list_text, statistics_cells, STATISTICS};
use crate::words::{self, Decimals};

pub(super) const METRICS: [Metric; 2] = [Metric::Lateness, Metric::Response];

/// Runs are close if their p99.9 is at most this many times the smallest one.
const CLOSE: i64 = 10;

/// The classes of colours in `plot.css`.
const COLOURS: [&str; 8] = ["s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7"];

const TASKS_NOTE: &str = "Times in microseconds; all statistics and the distributions are below, task by task.";

const CHAINS_NOTE: &str = "From cause to effect, in microseconds, beside the bounds of the description; the curves \
show the share of paths that took at most this time.";

/// Returns the class of a run's colour.
fn class(row: &Row) -> &'static str {
    colour_class(row.colour)
}

fn colour_class(colour: usize) -> &'static str {
    COLOURS[colour % COLOURS.len()]
}

impl Comparison {
    /// Returns the comparison as text of at most about `width` columns. Times are in microseconds.
    pub fn terminal(&self, colour: bool, width: usize) -> String {
        let mut text = self.head(colour, width);
        for task in &self.tasks {
            for metric in METRICS {
                let title = self.title(task, metric, "us");
                text.push_str(&format!("\n{}\n", Tone::Strong.paint(&title, colour)));
                text.push_str(&self.metric_table(task, metric).text(colour, width));
            }
        }
        text.push_str(&self.chain_text(colour, width));
        text.push_str(&self.notes_text(colour, width));
        text
    }

    /// Returns title, headline and the table of runs.
    pub(super) fn head(&self, colour: bool, width: usize) -> String {
        let paint = |text: &str| Tone::Strong.paint(text, colour);
        let (title, headline) = (format!("{}: runs compared", self.system), self.headline());
        format!("{}\n{}\n\n{}", paint(&title), paint(&headline), self.run_table().text(colour, width))
    }

    /// Returns the chains with a title; an empty text without chains.
    pub(super) fn chain_text(&self, colour: bool, width: usize) -> String {
        match self.chains.is_empty() {
            true => String::new(),
            false => {
                let title = Tone::Strong.paint("Chains [us]", colour);
                format!("\n{title}\n{}", self.chain_table().text(colour, width))
            }
        }
    }

    /// Returns remarks and caveats.
    pub(super) fn notes_text(&self, colour: bool, width: usize) -> String {
        let mut text = String::new();
        for (title, sentences) in [("Remarks", &self.remarks), ("Caveats", &self.caveats)] {
            if !sentences.is_empty() {
                text.push_str(&format!("\n{}\n", Tone::Strong.paint(title, colour)));
                text.push_str(&list_text(sentences, width.max(40)));
            }
        }
        text
    }

    /// Returns the tables as markdown, for `docs/results/`.
    pub fn markdown(&self) -> String {
        let mut text = format!("### {}\n\n{}", self.system, self.run_table().markdown());
        for task in &self.tasks {
            for metric in METRICS {
                let table = self.metric_table(task, metric).markdown();
                text.push_str(&format!("\n#### {}\n\n{table}", self.title(task, metric, "us")));
            }
        }
        if !self.chains.is_empty() {
            text.push_str(&format!("\n#### Chains [us]\n\n{}", self.chain_table().markdown()));
        }
        for sentences in [&self.sources(), &self.remarks, &self.caveats] {
            if !sentences.is_empty() {
                text.push_str(&format!("\n* {}\n", sentences.join("\n* ")));
            }
        }
        text
    }

    /// Returns an SVG file with overlaid histograms of a task's metric. Mean and deviation of runs and references are
    /// below.
    pub fn histogram_svg(&self, task: &TaskComparison, metric: Metric) -> String {
        self.histogram(task, metric, &|_| true).file()
    }

    /// Returns the histogram without runs that are far slower, because they hide the differences of the others; `None`
    /// without such runs.
    pub fn close_histogram_svg(&self, task: &TaskComparison, metric: Metric) -> Option<String> {
        Some(self.close_histogram(task, metric)?.file())
    }

    /// Returns an SVG file with cumulative distributions of a task's metric.
    pub fn cdf_svg(&self, task: &TaskComparison, metric: Metric) -> String {
        self.cumulative(task, metric).file()
    }

    /// Returns the comparison as one HTML file.
    pub fn html(&self) -> String {
        let tasks: Vec<String> = self.tasks.iter().map(|task| self.task_section(task)).collect();
        let notes: Vec<String> = [("Sources", &self.sources()), ("Remarks", &self.remarks), ("Caveats", &self.caveats)]
            .into_iter()
            .filter(|(_, sentences)| !sentences.is_empty())
            .map(|(title, sentences)| section(title, "", &list(sentences)))
            .collect();
        let title = format!("{}: runs compared", self.system);
        let body = format!(
            "<header>\n<p class=\"eyebrow\">Macrotick comparison</p>\n<h1>{}</h1>\n<p>{}</p>\n</header>\n{}{}{}{}{}",
            escape(&self.system),
            escape(&self.headline()),
            section("Runs", "", &table(&self.run_table())),
            section("Tasks", TASKS_NOTE, &table(&self.task_table())),
            self.chain_section(),
            tasks.concat(),
            notes.concat()
        );
        page(&title, &body)
    }

    fn chain_section(&self) -> String {
        if self.chains.is_empty() {
            return String::new();
        }
        let plots: Vec<String> = self.chains.iter().map(|chain| self.chain_plots(chain)).collect();
        section("Chains", CHAINS_NOTE, &format!("{}{}", table(&self.chain_table()), plots.concat()))
    }

    fn chain_plots<'a>(&self, chain: &'a ChainComparison) -> String {
        let mut plots = String::new();
        for which in 0..2 {
            let latencies = || chain.rows.iter().map(|row| row.latencies()[which].1);
            let name = chain.rows.first().map_or("", |row| row.latencies()[which].0);
            let curve = |(row, latency): (&'a ChainRow, &'a ChainLatency)| Series {
                label: &row.label,
                class: colour_class(row.colour),
                samples: &latency.samples,
            };
            let series: Vec<Series> = chain.rows.iter().zip(latencies()).map(curve).collect();
            let title = format!("{} of {} ({})", words::capital(name), chain.name, self.system);
            let bound = latencies().find_map(|latency| latency.bound_ns);
            let plot = Overlay { title: &title, series: &series, spreads: &[], bound, unit: "paths" };
            plots.push_str(&overlay::cumulative(&plot).inline());
        }
        let path: Vec<String> = chain.path.iter().map(|task| escape(task)).collect();
        format!(
            "<h3>{}: <span class=\"faint\">{}</span></h3>\n<div class=\"overlay scroll\">{plots}</div>\n",
            escape(&chain.name),
            path.join(" → ")
        )
    }

    fn task_section(&self, task: &TaskComparison) -> String {
        let mut body = String::new();
        for metric in METRICS {
            let cumulative = self.cumulative(task, metric).inline();
            let close = self.close_histogram(task, metric).map_or(String::new(), |picture| picture.inline());
            body.push_str(&format!(
                "<h3>{}</h3>\n{}<div class=\"overlay scroll\">{}{close}</div>\n<details>\
                 <summary>Cumulative distribution</summary>\n<div class=\"overlay scroll\">{cumulative}</div>\
                 </details>\n",
                escape(&self.title(task, metric, "µs")),
                table(&self.metric_table(task, metric)),
                self.histogram(task, metric, &|_| true).inline(),
            ));
        }
        let note = "The share of each run's jobs per bin, on a logarithmic scale; below, mean and standard deviation.";
        section(&task.name, note, &body)
    }

    fn cumulative(&self, task: &TaskComparison, metric: Metric) -> Picture {
        let (title, series) = (self.plot_title(task, metric), series(&task.rows, metric));
        overlay::cumulative(&Overlay { title: &title, series: &series, spreads: &[], bound: None, unit: "jobs" })
    }

    fn close_histogram(&self, task: &TaskComparison, metric: Metric) -> Option<Picture> {
        let p999 = |row: &Row| row.statistics(metric).map(|s| s.p999_ns);
        let limit = task.rows.iter().filter_map(p999).min()?.max(1).saturating_mul(CLOSE);
        let close = |row: &Row| p999(row).is_some_and(|p999| p999 <= limit);
        let far = task.rows.iter().any(|row| row.statistics(metric).is_some() && !close(row));
        far.then(|| self.histogram(task, metric, &close))
    }

    fn histogram(&self, task: &TaskComparison, metric: Metric, shown: &dyn Fn(&Row) -> bool) -> Picture {
        let rows: Vec<&Row> = task.rows.iter().filter(|row| shown(row)).collect();
        let all = rows.len() == task.rows.len();
        let ours = rows.iter().filter_map(|row| {
            let s = row.statistics(metric)?;
            let (mean, deviation) = (s.mean_ns.as_ns_f64(), s.deviation_ns.as_ns_f64());
            Some(Spread { label: row.label.clone(), class: class(row).to_string(), mean, deviation })
        });
        let theirs = self.references.iter().filter(|reference| all && reference.metric == metric);
        // The colour of the run beside it, if there is exactly one.
        let beside = |reference: &Reference| {
            let mut rows = task.rows.iter().filter(|row| Some(row.backend) == reference.backend);
            rows.next().filter(|_| rows.next().is_none())
        };
        let theirs = theirs.map(|reference| Spread {
            label: reference.label.clone(),
            class: format!("{} paper", beside(reference).map_or("", class)),
            mean: reference.mean_us * 1e3,
            deviation: reference.std_us * 1e3,
        });
        let spreads: Vec<Spread> = ours.chain(theirs).collect();
        let title =
            self.plot_title(task, metric) + if all { "" } else { ", without the runs that are ten times worse" };
        let series = series(rows, metric);
        overlay::histogram(&Overlay { title: &title, series: &series, spreads: &spreads, bound: None, unit: "jobs" })
    }

    fn plot_title(&self, task: &TaskComparison, metric: Metric) -> String {
        format!("{} of {} ({})", words::capital(metric.name()), task.name, self.system)
    }

    fn title(&self, task: &TaskComparison, metric: Metric, unit: &str) -> String {
        format!("{}: {} [{unit}]", task.name, metric.name())
    }

    fn run_table(&self) -> Table {
        let mut table = Table::new(4, &["run", "verdict", "what happened", "tier"]);
        for run in &self.runs {
            let verdict = if run.holds { toned("held", Tone::Good) } else { toned("not held", Tone::Bad) };
            table.rows.push(vec![
                run.label.as_str().into(),
                verdict,
                run.verdict.as_str().into(),
                run.tier.split(':').next().unwrap_or_default().into(),
            ]);
        }
        table
    }

    fn metric_table(&self, task: &TaskComparison, metric: Metric) -> Table {
        let mut head = vec!["run", "jobs", "misses"];
        head.extend(STATISTICS);
        let mut table = Table::new(1, &head);
        let decimals = decimals(task.rows.iter(), metric);
        table.rows.extend(task.rows.iter().map(|row| own_row(row, metric, decimals)));
        for reference in self.references.iter().filter(|reference| reference.metric == metric) {
            let mut cells: Vec<Cell> = vec!["".into(); head.len()];
            cells[0] = toned(reference.label.as_str(), Tone::Faint);
            cells[4] = toned(format!("{:.1}", reference.mean_us), Tone::Faint);
            cells[9] = toned(format!("{:.1}", reference.std_us), Tone::Faint);
            table.rows.push(cells);
        }
        table
    }

    /// Returns the sources of the references, each once.
    fn sources(&self) -> Vec<String> {
        let mut sources: Vec<String> = self.references.iter().map(|reference| reference.source.clone()).collect();
        sources.dedup();
        sources
    }
}

fn own_row(row: &Row, metric: Metric, decimals: Decimals) -> Vec<Cell> {
    let mut cells: Vec<Cell> =
        vec![row.label.as_str().into(), words::grouped(row.released).into(), bad_if_any(row.missed)];
    cells.extend(statistics_cells(row.statistics(metric), decimals));
    cells
}

fn series<'a>(rows: impl IntoIterator<Item = &'a Row>, metric: Metric) -> Vec<Series<'a>> {
    rows.into_iter().map(|row| Series { label: &row.label, class: class(row), samples: row.samples(metric) }).collect()
}
