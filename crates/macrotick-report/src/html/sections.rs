//! The sections of a report's page.

use macrotick_model::visible::visible;
use macrotick_model::{Observation, ProcessOutput};

use super::write::{self, card, definitions, list, section, table};
use crate::chains::{BoundVerdict, ChainLatency, ChainReport};
use crate::jobs::Outcome;
use crate::plot::axis::Axis;
use crate::plot::histogram::{Histogram, Mark};
use crate::plot::svg::escape;
use crate::plot::{gantt, histogram, spark};
use crate::report::{Metric, Report, TaskReport};
use crate::stats::Statistics;
use crate::terminal::{chain_table, decimals, group_table, metric_table, pool_table};
use crate::timeline::{worst_job, Slice};
use crate::words::{self, Decimals};

pub(super) fn header(report: &Report) -> String {
    format!(
        "<header>\n<p class=\"eyebrow\">Macrotick report</p>\n<h1>{}</h1>\n<p>{} in cycles of {}, planned by {}, \
         dispatched by <b>{}</b></p>\n</header>\n",
        escape(&report.system),
        micro(&words::short_time(report.duration_ns)),
        micro(&words::short_time(report.cycle_ns)),
        escape(&report.solver),
        report.backend
    )
}

pub(super) fn banner(report: &Report) -> String {
    let (class, word) = if report.holds() { ("banner", "✓ Held") } else { ("banner bad", "✗ Not held") };
    let reasons = if report.verdict.reasons.is_empty() { String::new() } else { list(&report.verdict.reasons) };
    format!(
        "<div class=\"{class}\"><strong>{word}</strong><span class=\"line\">{}</span>\n{reasons}\
         <p class=\"tier\">Tier: {}.<br>{}{}{}{}{}</p></div>\n",
        escape(&words::verdict_line(report)),
        escape(&words::tier_of(report)),
        escape(&place(report)),
        words::clock(report).map(|clock| format!("<br>Clock: {}.", escape(&clock))).unwrap_or_default(),
        words::lead(report).map(|lead| format!("<br>Lead: {}.", escape(&lead))).unwrap_or_default(),
        words::gates(&report.gates).iter().map(|gates| format!("<br>Gates: {}.", escape(gates))).collect::<String>(),
        words::latencies(report).map(|text| format!("<br><b>{}.</b>", escape(text))).unwrap_or_default(),
    )
}

fn place(report: &Report) -> String {
    let environment = &report.environment;
    let place = match environment.lab {
        Some(lab) => format!("in the lab (no caches, no device speed), {} virtual CPU(s)", lab.cpus),
        None => format!("on {} CPU(s), {}", environment.cpus, environment.cpu_model),
    };
    format!("Linux {} {}, {place}.", environment.kernel, environment.preemption)
}

/// Writes `us` with the sign of micro.
fn micro(text: &str) -> String {
    escape(text).replace(" us", " µs")
}

pub(super) fn cards(report: &Report) -> String {
    let worst = |value: &dyn Fn(&TaskReport) -> Option<i64>| {
        let all = report.tasks.iter().filter_map(|task| Some((value(task)?, task.name.as_str())));
        all.fold(None, |worst: Option<(i64, &str)>, next| match worst {
            Some(worst) if worst.0 >= next.0 => Some(worst),
            _ => Some(next),
        })
    };
    let us = |found: Option<(i64, &str)>, sign: i64| match found {
        Some((ns, task)) => (micro(&words::short_time(sign * ns)), task.to_string()),
        None => ("-".into(), "no job ran".into()),
    };
    // A task with a deadline and no nominal instant of its own is not late while it waits for other tasks.
    let timed = |task: &TaskReport| task.lateness.filter(|_| task.runtime_ns.is_none());
    let mut lateness = us(worst(&|task| timed(task).map(|s| s.max_ns)), 1);
    if report.tasks.iter().any(|task| task.runtime_ns.is_some()) {
        lateness.1 += " (of the tasks with windows)";
    }
    let slack = us(worst(&|task| task.least_slack_ns.map(|slack| -slack)), -1);
    let verdict = &report.verdict;
    let mut cards = vec![
        card("Jobs", &words::grouped(verdict.released), &of_tasks(report.tasks.len()), false),
        card("Misses", &words::grouped(verdict.missed), &share(verdict.missed, verdict.released), verdict.missed > 0),
        card("Worst lateness", &lateness.0, &lateness.1, false),
        card("Least slack to a deadline", &slack.0, &slack.1, slack.0.starts_with('-') && slack.0.len() > 1),
    ];
    cards.extend(tightest_chain(report));
    format!("<div class=\"cards\">\n{}</div>\n", cards.concat())
}

fn of_tasks(tasks: usize) -> String {
    let noun = if tasks == 1 { "task" } else { "tasks" };
    format!("of {tasks} {noun}")
}

fn share(part: u64, whole: u64) -> String {
    match whole {
        0 => "no job was expected".into(),
        _ => format!("{:.2} % of all jobs", part as f64 * 100.0 / whole as f64),
    }
}

/// Returns a card with the bounded chain that used the largest share of its bound.
fn tightest_chain(report: &Report) -> Option<String> {
    let used = |latency: &ChainLatency| Some(latency.measured?.max_ns as f64 * 100.0 / latency.bound_ns?.max(1) as f64);
    let all = report.chains.iter().flat_map(|chain| {
        chain.bounded().filter_map(move |(name, latency)| Some((used(latency)?, chain.name.as_str(), name, latency)))
    });
    let (used, chain, name, latency) = all.max_by(|a, b| a.0.total_cmp(&b.0))?;
    let of = format!("of {} of {chain}, {}", words::short_time(latency.bound_ns?), name);
    Some(card("Tightest chain", &format!("{used:.1} %"), &of, latency.verdict != BoundVerdict::Kept))
}

pub(super) fn tasks(report: &Report) -> String {
    let head = "<thead><tr><th class=\"left\" rowspan=\"2\">task</th><th class=\"left\" rowspan=\"2\">verdict</th>\
                <th rowspan=\"2\">CPU</th><th rowspan=\"2\">period<br>[ms]</th><th rowspan=\"2\">jobs</th>\
                <th rowspan=\"2\">misses</th><th class=\"group\" colspan=\"4\">lateness [µs]</th>\
                <th class=\"group\" colspan=\"4\">response [µs]</th><th rowspan=\"2\">least slack<br>[µs]</th></tr>\n\
                <tr><th>mean</th><th>p99</th><th>max</th><th class=\"left\">all on one scale</th>\
                <th>mean</th><th>p99</th><th>max</th><th class=\"left\">up to the deadline</th></tr></thead>\n";
    let axis = common_axis(report);
    let decimals = [Metric::Lateness, Metric::Response].map(|metric| decimals(report, metric));
    let rows: Vec<String> = report.tasks.iter().map(|task| task_row(task, axis, decimals)).collect();
    let summary = format!(
        "<div class=\"scroll\"><table class=\"wide\">\n{head}<tbody>\n{}</tbody>\n</table></div>\n",
        rows.concat()
    );
    let all: Vec<String> = [Metric::Lateness, Metric::Response]
        .iter()
        .map(|&metric| {
            format!("<h3>{} [µs]</h3>\n{}", words::capital(metric.name()), table(&metric_table(report, metric)))
        })
        .collect();
    let body = format!("{summary}<details><summary>All statistics</summary>\n{}</details>\n", all.concat());
    section(
        "Tasks",
        "In the small bars the thin line spans from the smallest to the largest, the thick one from the median to the \
         99th percentile. The tick is the mean. Red lines are the shortest and the longest time to a deadline.",
        &body,
    )
}

fn common_axis(report: &Report) -> Axis {
    let all = || report.tasks.iter().filter_map(|task| task.lateness);
    Axis::over(all().map(|s| s.min_ns).min().unwrap_or(0), all().map(|s| s.max_ns).max().unwrap_or(1))
}

fn task_row(task: &TaskReport, lateness_axis: Axis, [of_lateness, of_response]: [Decimals; 2]) -> String {
    let bad = |number: u64| if number > 0 { "bad-text" } else { "" };
    let (class, verdict) = match (task.released, task.missed) {
        (0, _) => ("bad-text", "not shown".into()),
        (_, 0) => ("good", "✓ ok".into()),
        (all, misses) => ("bad-text", format!("✗ {:.1} % missed", misses as f64 * 100.0 / all as f64)),
    };
    let deadlines = deadlines(task);
    let until = deadlines.last().copied().unwrap_or(1).max(task.response.map_or(1, |s| s.max_ns));
    let response_axis = Axis::exactly(0.0, until as f64);
    format!(
        "<tr><td class=\"left\">{}</td><td class=\"left {class}\">{verdict}</td><td>{}</td><td>{}</td><td>{}</td>\
         <td class=\"{}\">{}</td>{}{}<td class=\"{}\">{}</td></tr>\n",
        escape(&task.name) + &supply(task),
        task.cpus,
        task.period_ns as f64 / 1e6,
        words::grouped(task.released),
        bad(task.missed),
        words::grouped(task.missed),
        metric_cells(task.lateness.as_ref(), lateness_axis, &[], of_lateness),
        metric_cells(task.response.as_ref(), response_axis, &deadlines, of_response),
        bad(u64::from(task.least_slack_ns.is_some_and(|slack| slack < 0))),
        task.least_slack_ns.map_or("-".into(), |slack| of_response.us(slack)),
    )
}

/// Returns the text behind the name of a task without windows.
fn supply(task: &TaskReport) -> String {
    let runtime = task.runtime_ns.map(|runtime| format!("SCHED_DEADLINE, {}", words::short_time(runtime)));
    runtime.map_or(String::new(), |runtime| format!("<br><span class=\"faint\">{}</span>", escape(&runtime)))
}

/// Returns the shortest and the longest time to a deadline.
fn deadlines(task: &TaskReport) -> Vec<i64> {
    let all = || task.jobs.iter().map(|job| (job.deadline - job.nominal).as_nanos());
    let mut ends: Vec<i64> = all().min().into_iter().chain(all().max()).collect();
    ends.dedup();
    ends
}

fn metric_cells(statistics: Option<&Statistics>, axis: Axis, limits: &[i64], decimals: Decimals) -> String {
    let Some(s) = statistics else {
        return "<td>-</td><td>-</td><td>-</td><td class=\"left faint\">never ran</td>".into();
    };
    let title = format!("min {} µs, median {} µs", words::us(s.min_ns), words::us(s.p50_ns));
    format!(
        "<td>{}</td><td>{}</td><td>{}</td><td>{}</td>",
        decimals.us_of_tenths(s.mean_ns),
        decimals.us(s.p99_ns),
        decimals.us(s.max_ns),
        spark::draw(s, axis, limits, &title).inline()
    )
}

/// The number of periods of the fastest task in a detailed Gantt, and the greatest number in an overview.
const DETAIL: i64 = 20;
const OVERVIEW: i64 = 250;

pub(super) fn gantts(report: &Report, observation: &Observation) -> String {
    let segments = &observation.segments;
    let figure = |title: &str, slice: Slice, marked: Option<(&str, &Outcome)>| {
        let svg = gantt::draw(report, segments, slice, marked).inline();
        format!("<h3>{}</h3>\n<div class=\"gantt scroll\">{svg}</div>\n", escape(title))
    };
    let (detail, overview) = (Slice::first(report, DETAIL), Slice::first(report, OVERVIEW));
    let whole = overview.length().as_nanos() == report.cycle_ns;
    let name = |slice: Slice| words::short_time(slice.length().as_nanos());
    let worst = worst_job(report).map(|(task, job)| (task, job, Slice::around(report, job, detail)));
    let worst = worst.filter(|(_, job, slice)| job.missed() || slice.from >= detail.to);
    let mut body = legend(!segments.is_empty(), worst.is_some());
    if detail != overview {
        let what = if whole { "The first cycle".into() } else { format!("The first {}", name(overview)) };
        body.push_str(&figure(&what, overview, None));
    }
    body.push_str(&figure(&format!("The first {}", name(detail)), detail, None));
    if let Some((task, job, slice)) = worst {
        let what = match (job.end, job.missed()) {
            (None, _) => "A job that did not end",
            (_, true) => "The worst miss",
            (_, false) => "The closest to a deadline",
        };
        body.push_str(&figure(&format!("{what}: {task}, job {}", job.job), slice, Some((task, job))));
    }
    let note = if segments.is_empty() {
        "There is no trace: a bar spans from a job's first to its last instruction, preemptions included. Hold the \
         pointer over a bar for its numbers."
    } else {
        "With a trace, thick bars are the pieces in which a job had the CPU, and the thin bar joins them. Without a \
         trace, only the span from first to last instruction is known. Hold the pointer over a bar for its numbers."
    };
    section("Planned against actual", note, &body)
}

fn legend(trace: bool, framed: bool) -> String {
    let mut keys = vec![("window", "planned window"), ("ran", "ran"), ("ran late", "ran, and missed its deadline")];
    keys.push(("never", "never started"));
    keys.push(("missed", "missed deadline"));
    if trace {
        keys.push(("other", "everything else"));
    }
    if framed {
        keys.push(("framed", "the job that a heading names"));
    }
    let key = |&(class, text): &(&str, &str)| match class {
        "missed" => write::key("<path class=\"missed\" d=\"M13 11l-4 -7h8z\"/>", text),
        _ => write::bar_key(class, text),
    };
    write::keys(&keys.iter().map(key).collect::<Vec<_>>())
}

pub(super) fn distributions(report: &Report) -> String {
    let pairs: Vec<String> = report.tasks.iter().map(distribution).collect();
    section(
        "Distributions",
        "The number of jobs for each time. The count axis is logarithmic if some bins hold many more jobs than others. \
         The time axis is logarithmic if times differ widely. The dotted line is the median. Red marks the time to the \
         deadline and the jobs beyond it.",
        &format!("<div class=\"pairs\">\n{}</div>\n", pairs.concat()),
    )
}

fn distribution(task: &TaskReport) -> String {
    let plots: Vec<String> = [Metric::Lateness, Metric::Response]
        .iter()
        .map(|&metric| {
            let samples = task.samples(metric);
            let mut marks = Vec::new();
            if let Some(s) = task.statistics(metric) {
                marks.push(Mark { ns: s.p50_ns, label: "", class: "middle" });
            }
            let limits = if metric == Metric::Response { deadlines(task) } else { Vec::new() };
            // A deadline far beyond every sample would squeeze the histogram into a corner.
            let near = |&ns: &i64| samples.last().is_some_and(|&max| ns <= 2 * max);
            let labels = if limits.len() > 1 { ["shortest", "longest deadline"] } else { ["deadline", ""] };
            for (&ns, label) in limits.iter().zip(labels).filter(|(ns, _)| near(ns)) {
                marks.push(Mark { ns, label, class: "bound" });
            }
            let title = format!("{}: {}", task.name, metric.name());
            let limit = limits.last().copied();
            let plot = Histogram {
                title: &title,
                samples: &samples,
                marks: &marks,
                size: (560.0, 170.0),
                limit,
                unit: "jobs",
            };
            histogram::draw(&plot).inline()
        })
        .collect();
    plots.iter().map(|plot| format!("<div class=\"pair\">{plot}</div>\n")).collect()
}

pub(super) fn pools(report: &Report) -> String {
    if report.pools.is_empty() {
        return String::new();
    }
    section(
        "Pools [µs]",
        "Processor time of the pool's threads in their windows, and as a share of its budgets. Without slack, the time \
         outside comes from processes that end, and from groups' budgets.",
        &table(&pool_table(report)),
    )
}

pub(super) fn groups(report: &Report) -> String {
    if report.groups.is_empty() {
        return String::new();
    }
    section(
        "Groups [µs]",
        "Processor time that was charged to the group, and as a share of its budgets. The last columns are the number \
         of times a budget was exhausted, and the time that ready threads then waited for a refill.",
        &table(&group_table(report)),
    )
}

pub(super) fn chains(report: &Report) -> String {
    if report.chains.is_empty() {
        return String::new();
    }
    let plots: Vec<String> = report.chains.iter().map(chain_plots).collect();
    let body = format!("{}{}", table(&chain_table(report)), plots.concat());
    section(
        "Chains [µs]",
        "A job reads at its first instruction and writes at its last. Reaction time counts from the sampling that just \
         missed an input to the end of the first job of the last task that reflects the next sampling. Data age counts \
         from a sampling to the end of the last job that uses it (Feiertag et al. 2008, Becker et al. 2017).",
        &body,
    )
}

fn chain_plots(chain: &ChainReport) -> String {
    let plots: Vec<String> = chain
        .latencies()
        .iter()
        .map(|(name, latency)| {
            let bound = latency.bound_ns.map(|ns| Mark { ns, label: "bound", class: "bound" });
            let marks: Vec<Mark> = bound.into_iter().collect();
            let title = format!("{}: {name}", chain.name);
            let (samples, limit) = (&latency.samples, latency.bound_ns);
            let plot = Histogram { title: &title, samples, marks: &marks, size: (560.0, 170.0), limit, unit: "paths" };
            format!("<div class=\"pair\">{}</div>\n", histogram::draw(&plot).inline())
        })
        .collect();
    let path: Vec<String> = chain.path.iter().map(|task| escape(task)).collect();
    format!(
        "<h3>{}: <span class=\"faint\">{}</span></h3>\n<div class=\"pairs\">\n{}</div>\n",
        escape(&chain.name),
        path.join(" → "),
        plots.concat()
    )
}

pub(super) fn remarks(report: &Report) -> String {
    let remarks = match report.remarks.is_empty() {
        true => String::new(),
        false => section("Remarks", "", &list(&report.remarks)),
    };
    remarks + &section("Caveats", "", &list(&report.caveats))
}

pub(super) fn output(observation: &Observation) -> String {
    if observation.output.is_empty() {
        return String::new();
    }
    let entry = |output: &ProcessOutput| {
        let (name, text) = (escape(&output.name), escape(&visible(&output.text)));
        format!("<details><summary>{name}</summary>\n<pre>{text}</pre></details>\n")
    };
    section(
        "Output",
        "The standard output and error of the processes.",
        &observation.output.iter().map(entry).collect::<String>(),
    )
}

pub(super) fn surroundings(report: &Report, observation: &Observation) -> String {
    let facts = words::environment(report);
    let environment = definitions(facts.iter().map(|(name, value)| (name.as_str(), value.as_str())));
    let loads: Vec<(String, String)> = observation
        .plan
        .system
        .processes()
        .map(|process| {
            let (place, what) = (words::place(&process), words::load(&process.run));
            (process.name.clone(), format!("{} × {place}: {what}", process.count))
        })
        .collect();
    let background = match loads.is_empty() {
        true => "<p>No process: the tasks ran alone.</p>\n".into(),
        false => definitions(loads.iter().map(|(name, what)| (name.as_str(), what.as_str()))),
    };
    format!(
        "<div class=\"columns\">\n{}{}</div>\n",
        section("Environment", "", &environment),
        section("Beside the tasks", "", &background)
    )
}
