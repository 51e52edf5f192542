//! The report as text for a terminal.

use macrotick_model::visible::visible;
use macrotick_model::Duration;

use crate::chains::{ChainLatency, ChainReport};
use crate::group_report::GroupUse;
use crate::jobs::Outcome;
use crate::pools::Had;
use crate::report::{Metric, Report, TaskReport};
use crate::stats::Statistics;
use crate::table::{cut, pad, toned, width, wrap, Cell, Table, Tone};
use crate::timeline::{jobs_in, pieces, pool_pieces, windows_in, Slice};
use crate::words::{self, Decimals};

/// Whether to colour: on a terminal, unless `NO_COLOR` is set (<https://no-color.org>) or the terminal is dumb.
pub fn colour_wanted(is_terminal: bool) -> bool {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    is_terminal && !set("NO_COLOR") && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// The greatest number of periods of the fastest task in the Gantt.
const GANTT_PERIODS: i64 = 20;

/// Returns the report as text of at most `width` columns (tables need about 96), the verdict first. Times are in
/// microseconds.
pub fn terminal(report: &Report, colour: bool, width: usize) -> String {
    let width = width.clamp(60, 160);
    let mut text = head(report, colour, width);
    let mut section = |title: &str, body: String| {
        if !body.is_empty() {
            text.push_str(&format!("\n{}\n{body}", Tone::Strong.paint(title, colour)));
        }
    };
    section("Tasks", task_table(report).text(colour, width));
    for metric in [Metric::Lateness, Metric::Response] {
        let meaning = match metric {
            Metric::Lateness => "Lateness [us]: first instruction minus nominal instant",
            Metric::Response => "Response [us]: last instruction minus nominal instant",
        };
        section(meaning, metric_table(report, metric).text(colour, width));
    }
    if !report.pools.is_empty() {
        section("Pools [us]", pool_table(report).text(colour, width));
    }
    if !report.groups.is_empty() {
        section("Groups [us]", group_table(report).text(colour, width));
    }
    if !report.chains.is_empty() {
        section("Chains [us]", chain_table(report).text(colour, width));
    }
    let slice = Slice::first(report, GANTT_PERIODS);
    let title = format!("Planned against actual, first {}", words::short_time(slice.length().as_nanos()));
    section(&title, gantt(report, slice, colour, width));
    section("Remarks", list(&report.remarks, width));
    section("Caveats", list(&report.caveats, width));
    text
}

fn head(report: &Report, colour: bool, width: usize) -> String {
    let (word, tone) = if report.holds() { ("HELD", Tone::Good) } else { ("NOT HELD", Tone::Bad) };
    let mut text = format!(
        "{}  {}: {}\n",
        tone.paint(word, colour),
        Tone::Strong.paint(&report.system, colour),
        words::verdict_line(report)
    );
    for reason in &report.verdict.reasons {
        text.push_str(&format!("  {}\n", Tone::Bad.paint(&cut(reason, width - 2), colour)));
    }
    if let Some(note) = words::latencies(report) {
        text.push_str(&format!("  {}\n", Tone::Strong.paint(&cut(note, width - 2), colour)));
    }
    let environment = &report.environment;
    let place = match environment.lab {
        Some(lab) => format!("lab, {} ns per instruction, {} CPU(s)", lab.ns_per_instruction, lab.cpus),
        None => format!("{} CPU(s), {}", environment.cpus, environment.cpu_model),
    };
    let facts = [
        ("tier", words::tier_of(report)),
        ("kernel", format!("{} {}", environment.kernel, environment.preemption)),
        ("place", place),
        (
            "run",
            format!(
                "{} in cycles of {}, planned by {}",
                words::short_time(report.duration_ns),
                words::short_time(report.cycle_ns),
                report.solver
            ),
        ),
    ];
    let clock = words::clock(report).map(|clock| ("clock", clock));
    let lead = words::lead(report).map(|lead| ("lead", lead));
    let gates = words::gates(&report.gates).into_iter().map(|gates| ("gates", gates));
    for (name, value) in facts.into_iter().chain(clock).chain(lead).chain(gates) {
        text.push_str(&format!("  {}  {}\n", Tone::Faint.paint(&pad(name, 6, true), colour), cut(&value, width - 10)));
    }
    text
}

pub(crate) fn bad_if_any(number: u64) -> Cell {
    toned(number.to_string(), if number > 0 { Tone::Bad } else { Tone::Plain })
}

fn task_table(report: &Report) -> Table {
    let counters = report.tasks.iter().any(|task| task.counters.is_some());
    let mut head =
        vec!["task", "CPU", "period [us]", "WCET [us]", "jobs", "done", "misses", "never started", "verdict"];
    if counters {
        head.insert(8, "kernel's misses");
    }
    let reserved = report.tasks.iter().any(|task| task.runtime_ns.is_some());
    if reserved {
        head.insert(4, "runtime [us]");
    }
    let mut table = Table::new(1, &head);
    for task in &report.tasks {
        let verdict = match (task.released, task.missed) {
            (0, _) => toned("not shown", Tone::Bad),
            (_, 0) => toned("ok", Tone::Good),
            _ => toned("MISSED", Tone::Bad),
        };
        let mut row = vec![
            cut(&task.name, 24).into(),
            task.cpus.to_string().into(),
            words::us(task.period_ns).into(),
            words::us(task.wcet_ns).into(),
            task.released.to_string().into(),
            task.completed.to_string().into(),
            bad_if_any(task.missed),
            bad_if_any(task.never_started),
            verdict,
        ];
        if counters {
            row.insert(8, task.counters.map_or("-".into(), |counters| bad_if_any(counters.missed)));
        }
        if reserved {
            row.insert(4, task.runtime_ns.map_or("-".into(), |runtime| words::us(runtime).into()));
        }
        table.rows.push(row);
    }
    table
}

/// The columns of a set of statistics.
pub(crate) const STATISTICS: [&str; 7] = ["min", "mean", "p50", "p99", "p99.9", "max", "std dev"];

/// Returns the cells below [`STATISTICS`], in microseconds.
pub(crate) fn statistics_cells(statistics: Option<&Statistics>, decimals: Decimals) -> Vec<Cell> {
    let Some(s) = statistics else { return vec!["-".into(); STATISTICS.len()] };
    let mut cells: Vec<Cell> =
        [s.min_ns, s.p50_ns, s.p99_ns, s.p999_ns, s.max_ns].map(|ns| decimals.us(ns).into()).into();
    cells.insert(1, decimals.us_of_tenths(s.mean_ns).into());
    cells.push(decimals.us_of_tenths(s.deviation_ns).into());
    cells
}

/// Returns the number of decimals for a metric, which is the same for all tasks.
pub(crate) fn decimals(report: &Report, metric: Metric) -> Decimals {
    let largest = report.tasks.iter().filter_map(|task| task.statistics(metric)).map(|s| s.max_ns).max();
    Decimals::for_largest(largest.unwrap_or(0))
}

pub(crate) fn metric_table(report: &Report, metric: Metric) -> Table {
    let mut head = vec!["task", "count"];
    head.extend(STATISTICS);
    if metric == Metric::Response {
        head.push("least slack");
    }
    let decimals = decimals(report, metric);
    let mut table = Table::new(1, &head);
    for task in &report.tasks {
        let statistics = task.statistics(metric);
        let count = statistics.map_or(0, |statistics| statistics.count);
        let mut row: Vec<Cell> = vec![cut(&task.name, 16).into(), count.to_string().into()];
        row.extend(statistics_cells(statistics, decimals));
        if metric == Metric::Response {
            let tone = if task.least_slack_ns.is_some_and(|slack| slack < 0) { Tone::Bad } else { Tone::Plain };
            row.push(toned(task.least_slack_ns.map_or("-".into(), |ns| decimals.us(ns)), tone));
        }
        table.rows.push(row);
    }
    table
}

pub(crate) fn pool_table(report: &Report) -> Table {
    let head =
        ["pool", "CPU", "period", "budget", "window time", "in windows", "of budget", "outside", "threads", "slack"];
    let mut table = Table::new(1, &head);
    for pool in &report.pools {
        let had = |text: &dyn Fn(&Had) -> String| -> Cell { pool.had.as_ref().map_or("-".into(), text).into() };
        table.rows.push(vec![
            cut(&pool.name, 20).into(),
            pool.cpu.map_or("-".into(), |cpu| cpu.to_string()).into(),
            words::us(pool.period_ns).into(),
            words::us(pool.budget_ns).into(),
            Decimals::One.us(pool.window_ns).into(),
            had(&|had| Decimals::One.us(had.runtime_ns as i64)),
            had(&|had| words::percent(had.permille_of_budget)),
            had(&|had| Decimals::One.us(had.outside_ns as i64)),
            had(&|had| had.threads.to_string()),
            if pool.slack { "yes" } else { "no" }.into(),
        ]);
    }
    table
}

pub(crate) fn group_table(report: &Report) -> Table {
    let head = ["group", "CPUs", "priority", "period", "budget", "had", "of budget", "used up", "waited"];
    let mut table = Table::new(1, &head);
    for group in &report.groups {
        let had = |text: &dyn Fn(&GroupUse) -> String| -> Cell { group.had.as_ref().map_or("-".into(), text).into() };
        let cpus: Vec<String> = group.cpus.iter().map(u32::to_string).collect();
        table.rows.push(vec![
            cut(&group.name, 20).into(),
            cpus.join(",").into(),
            group.priority.to_string().into(),
            words::us(group.server_period_ns).into(),
            words::us(group.budget_ns).into(),
            had(&|had| Decimals::One.us(had.usage_ns as i64)),
            had(&|had| words::percent(had.permille_of_budget)),
            had(&|had| had.exhaustions.to_string()),
            had(&|had| Decimals::One.us(had.throttled_ns as i64)),
        ]);
    }
    table
}

pub(crate) fn chain_table(report: &Report) -> Table {
    let mut table =
        Table::new(2, &["chain", "latency", "paths", "min", "mean", "p99", "max", "bound", "lost", "verdict"]);
    let latencies = || report.chains.iter().flat_map(ChainReport::latencies);
    let times =
        latencies().flat_map(|(_, latency)| latency.bound_ns.into_iter().chain(latency.measured.map(|s| s.max_ns)));
    let decimals = Decimals::for_largest(times.max().unwrap_or(0));
    for chain in &report.chains {
        for (name, latency) in chain.latencies() {
            table.rows.push(chain_row(&chain.name, name, latency, decimals));
        }
    }
    table
}

fn chain_row(chain: &str, name: &str, latency: &ChainLatency, decimals: Decimals) -> Vec<Cell> {
    let measured = latency.measured;
    let time = |ns: Option<i64>| -> Cell { ns.map_or("-".into(), |ns| decimals.us(ns)).into() };
    vec![
        cut(chain, 20).into(),
        name.into(),
        measured.map_or(0, |s| s.count).to_string().into(),
        time(measured.map(|s| s.min_ns)),
        measured.map_or("-".into(), |s| decimals.us_of_tenths(s.mean_ns)).into(),
        time(measured.map(|s| s.p99_ns)),
        time(measured.map(|s| s.max_ns)),
        time(latency.bound_ns),
        bad_if_any(latency.lost),
        toned(words::bound(latency.verdict), latency.verdict.tone()),
    ]
}

/// Formats a list of sentences. Some of them contain names of other origin.
pub(crate) fn list(items: &[String], width: usize) -> String {
    let mut text = String::new();
    for item in items {
        for (index, line) in wrap(&visible(item), width - 2).iter().enumerate() {
            text.push_str(&format!("{} {line}\n", if index == 0 { "*" } else { " " }));
        }
    }
    text
}

/// Draws two lines per task and pool: windows above, executions below. The height of a block is the share of its time.
fn gantt(report: &Report, slice: Slice, colour: bool, columns: usize) -> String {
    let all = report.tasks.iter().map(|task| &task.name).chain(report.pools.iter().map(|pool| &pool.name));
    let names = all.map(|name| width(name)).max().unwrap_or(0).clamp(4, 16);
    let cells = columns - names - 10;
    let mut text = String::new();
    let planned = |name: &str, reserved: bool| {
        let planned = match reserved {
            true => "no windows: SCHED_DEADLINE".into(),
            false => blocks(&coverage(slice, cells, &windows_in(report, name, slice))),
        };
        let label = pad(&cut(name, names), names, true);
        format!("{label}  planned {}\n", Tone::Faint.paint(planned.trim_end(), colour))
    };
    let indent = " ".repeat(names);
    for task in &report.tasks {
        text.push_str(&planned(&task.name, task.runtime_ns.is_some()));
        text.push_str(&format!("{indent}  actual  {}\n", actual(report, task, slice, cells, colour)));
    }
    for pool in &report.pools {
        text.push_str(&planned(&pool.name, false));
        // Only a trace has the execution times of a pool.
        if !report.first_segments.is_empty() {
            let ran = coverage(slice, cells, &pool_pieces(&report.first_segments, &pool.name, (slice.from, slice.to)));
            text.push_str(&format!("{indent}  actual  {}\n", Tone::Good.paint(blocks(&ran).trim_end(), colour)));
        }
    }
    let end = words::short_time(slice.length().as_nanos());
    text.push_str(&format!("{}0{}\n", " ".repeat(names + 10), pad(&end, cells - 1, false)));
    let margin = " ".repeat(names + 10);
    if report.tasks.iter().flat_map(|task| jobs_in(&task.jobs, slice)).any(Outcome::missed) {
        text.push_str(&format!("{margin}{} a job that missed its deadline\n", Tone::Bad.paint("x", colour)));
    }
    if report.first_segments.is_empty() {
        let note = "no trace: from the first to the last instruction of a job, preempted or not";
        let lines = wrap(note, columns - margin.len());
        lines.iter().for_each(|line| text.push_str(&format!("{margin}{}\n", Tone::Faint.paint(line, colour))));
    }
    text
}

fn actual(report: &Report, task: &TaskReport, slice: Slice, cells: usize, colour: bool) -> String {
    let jobs = || jobs_in(&task.jobs, slice);
    let span = |job: &Outcome| Some((job.start?, job.end.unwrap_or(slice.to)));
    let ran = |span| {
        let pieces = pieces(&report.first_segments, &task.name, span);
        if pieces.is_empty() {
            vec![span]
        } else {
            pieces
        }
    };
    let ran: Vec<(Duration, Duration)> = jobs().filter_map(span).flat_map(ran).collect();
    let missed: Vec<(Duration, Duration)> =
        jobs().filter(|job| job.missed()).map(|job| missed_stretch(job, slice)).collect();
    let (ran, missed) = (coverage(slice, cells, &ran), coverage(slice, cells, &missed));
    let mut text = String::new();
    for (ran, missed) in ran.iter().zip(&missed) {
        match *missed > 0.0 {
            true => text.push_str(&Tone::Bad.paint("x", colour)),
            false => text.push_str(&Tone::Good.paint(&blocks(&[*ran]), colour)),
        }
    }
    text.trim_end().to_string()
}

/// Returns the stretch of a missed job's mark: from its start to its end, or at its deadline if it did not run.
fn missed_stretch(job: &Outcome, slice: Slice) -> (Duration, Duration) {
    let instant = Duration::from_nanos(1);
    match (job.start, job.end) {
        (Some(start), end) => (start, end.unwrap_or(slice.to).max(start + instant)),
        (None, _) => (job.deadline - instant, job.deadline),
    }
}

/// Returns the share of each of `cells` equal parts of a slice that the intervals cover.
fn coverage(slice: Slice, cells: usize, intervals: &[(Duration, Duration)]) -> Vec<f64> {
    let length = slice.length().as_nanos();
    let edge = |cell: usize| slice.from + Duration::from_nanos(length * cell as i64 / cells as i64);
    let share = |cell: usize| {
        let (from, to) = (edge(cell), edge(cell + 1).max(edge(cell) + Duration::from_nanos(1)));
        let overlap = |&(start, end): &(Duration, Duration)| (end.min(to) - start.max(from)).max(Duration::ZERO);
        let covered: Duration = intervals.iter().map(overlap).sum();
        covered.as_nanos() as f64 / (to - from).as_nanos() as f64
    };
    (0..cells).map(share).collect()
}

/// Returns shares as blocks of eighths; every share above zero is visible.
fn blocks(shares: &[f64]) -> String {
    const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let block = |share: &f64| match *share {
        share if share <= 0.0 => BLOCKS[0],
        share => BLOCKS[((share * 8.0).round() as usize).clamp(1, 8)],
    };
    shares.iter().map(block).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coverage_is_the_share_of_each_cell() {
        let at = Duration::from_nanos;
        let slice = Slice { from: at(100), to: at(140) };
        let shares = coverage(slice, 4, &[(at(95), at(105)), (at(115), at(132)), (at(138), at(200))]);
        assert_eq!(shares, [0.5, 0.5, 1.0, 0.4]);
        assert_eq!(blocks(&[0.0, 0.001, 0.5, 1.0, 1.2]), " ▁▄██");
    }
}
