//! The rows of a timetable and their bars.

use std::collections::BTreeMap;

use macrotick_model::visible::visible;
use macrotick_model::{CpuTable, Duration, GateList, Plan, Window};

/// A timetable shows at most about this many bars. More make a browser slow.
const MOST_BARS: usize = 5000;
/// The number of colours in `plot.css`.
const COLOURS: usize = 8;

/// All rows, from top to bottom.
pub(super) struct Rows {
    pub rows: Vec<Row>,
    /// The rows show `[0, until)`: the cycle, or less of a plan with too many windows.
    pub until: Duration,
    /// The jobs of each task and the windows of each pool that begin in this part, in the order of time.
    pub jobs: BTreeMap<String, Vec<Job>>,
}

/// A row: a CPU, or the gate of a traffic class.
pub(super) struct Row {
    pub label: String,
    pub bars: Vec<Bar>,
}

/// An interval of a row.
pub(super) struct Bar {
    pub from: Duration,
    pub to: Duration,
    /// The class for its style.
    pub class: String,
    /// The name of the task or pool; empty for bars that belong to none.
    pub name: String,
    pub hover: String,
}

/// A job of a task, from the start of its first window to the end of its last one.
pub(super) struct Job {
    /// The row and the start of the first window.
    pub start: (usize, Duration),
    /// The row and the end of the last window.
    pub end: (usize, Duration),
}

impl Rows {
    pub fn of(plan: &Plan) -> Rows {
        let until = until(plan);
        let mut rows: Vec<Row> = plan.tables.iter().map(|table| cpu(plan, table, until)).collect();
        let jobs = windows(plan, until, &mut rows);
        rows.extend(plan.gates.iter().flat_map(|list| gates(list, until)));
        Rows { rows, until, jobs }
    }
}

/// Returns the end of the part of the cycle that has at most [`MOST_BARS`] windows, and as many entries of gate lists.
fn until(plan: &Plan) -> Duration {
    let mut starts: Vec<Duration> =
        plan.tables.iter().flat_map(|table| &table.windows).map(|window| window.offset).collect();
    starts.sort_unstable();
    let windows = starts.get(MOST_BARS).copied().unwrap_or(plan.cycle);
    let entries: usize = plan.gates.iter().map(|list| list.entries.len()).sum();
    let longest = plan.gates.iter().map(|list| list.cycle).max().unwrap_or(plan.cycle);
    let lists = longest * (MOST_BARS / entries.max(1)).max(1) as i64;
    let until = if entries == 0 { windows } else { windows.min(lists) };
    until.clamp(Duration::from_nanos(1), plan.cycle.max(Duration::from_nanos(1)))
}

/// Returns the row of a CPU with what no task has: leads and sync windows.
fn cpu(plan: &Plan, table: &CpuTable, until: Duration) -> Row {
    let mut bars = Vec::new();
    let mut add = |from: Duration, to: Duration, class: &str, hover: String| {
        let (from, to) = (from.max(Duration::ZERO), to.min(until));
        if from < to {
            bars.push(Bar { from, to, class: class.into(), name: String::new(), hover });
        }
    };
    if let Some(sync) = plan.system.sync() {
        let count = until.as_nanos() / sync.period.as_nanos().max(1) + 1;
        for start in (0..count).map(|number| sync.offset + sync.period * number) {
            add(start, start + sync.length, "sync", format!("sync window\n{}", span(start, start + sync.length)));
        }
    }
    if let Some(lead) = plan.system.lead {
        for window in table.windows.iter().filter(|window| window.activate) {
            let hover = format!("lead of {}: at most {}", visible(&window.task), lead.reserved());
            add(window.offset - lead.reserved(), window.offset, "lead", hover);
        }
    }
    let host = plan.system.host_of_cpus(&[table.cpu]);
    let host = host.map_or(String::new(), |host| format!(" of {}", visible(&host.name)));
    Row { label: format!("CPU {}{host}", table.cpu), bars }
}

fn span(from: Duration, to: Duration) -> String {
    format!("{from} to {to}: {}", to - from)
}

/// Adds a bar for each window to its row. Returns the jobs.
fn windows(plan: &Plan, until: Duration, rows: &mut [Row]) -> BTreeMap<String, Vec<Job>> {
    let mut served: BTreeMap<&str, Vec<(usize, &Window)>> = BTreeMap::new();
    for (row, table) in plan.tables.iter().enumerate() {
        for window in table.windows.iter().filter(|window| window.offset < until) {
            served.entry(&window.task).or_default().push((row, window));
        }
    }
    let tasks = plan.system.tasks.iter().map(|task| task.name.clone());
    let names: Vec<String> = tasks.chain(plan.system.pools().map(|pool| pool.name)).collect();
    let colours: BTreeMap<&str, usize> =
        names.iter().enumerate().map(|(index, name)| (name.as_str(), index % COLOURS)).collect();
    let mut jobs = BTreeMap::new();
    for (name, mut windows) in served {
        windows.sort_by_key(|(_, window)| window.offset);
        let pool = windows.iter().all(|(_, window)| !window.activate);
        let colour = colours.get(name).map_or(String::new(), |colour| format!(" s{colour}"));
        let class = format!("series{colour}{}", if pool { " paper" } else { "" });
        let chunks: Vec<&[(usize, &Window)]> = match pool {
            true => windows.chunks(1).collect(),
            false => windows.chunk_by(|_, (_, next)| !next.activate).collect(),
        };
        for (chunk, what) in chunks.iter().zip(number(&chunks, pool)) {
            for (part, (row, window)) in (1..).zip(*chunk) {
                let of = match chunk.len() {
                    1 => String::new(),
                    parts => format!(", window {part} of {parts}"),
                };
                let (shown, times) = (visible(name), span(window.offset, window.end()));
                let hover = format!("{shown}, {what}{of}\n{times}");
                let (from, to) = (window.offset, window.end().min(until));
                rows[*row].bars.push(Bar { from, to, class: class.clone(), name: shown, hover });
            }
        }
        let whole = chunks.iter().filter(|chunk| pool || chunk[0].1.activate);
        let ends = whole.filter_map(|chunk| {
            let ((row, first), (last_row, last)) = (chunk.first()?, chunk.last()?);
            Some(Job { start: (*row, first.offset), end: (*last_row, last.end()) })
        });
        jobs.insert(name.to_owned(), ends.collect());
    }
    jobs
}

/// Returns the name of each job of a task, or of each window of a pool. Windows before the first job of the cycle belong
/// to the last one.
fn number(chunks: &[&[(usize, &Window)]], pool: bool) -> Vec<String> {
    let wraps = chunks.first().is_some_and(|chunk| !chunk[0].1.activate);
    let name = |index: usize| match (pool, wraps) {
        (true, _) => format!("window {}", index + 1),
        (false, true) if index == 0 => "the job that began in the cycle before".into(),
        (false, true) => format!("job {}", index - 1),
        (false, false) => format!("job {index}"),
    };
    (0..chunks.len()).map(name).collect()
}

/// Returns a row for each class of a gate list, with the intervals in which its gate is open.
fn gates(list: &GateList, until: Duration) -> Vec<Row> {
    let mut classes: Vec<&String> = list.entries.iter().flat_map(|entry| &entry.open).collect();
    classes.sort();
    classes.dedup();
    let row = |class: &String| {
        let mut open: Vec<(Duration, Duration)> = Vec::new();
        let mut at = Duration::ZERO;
        for entry in list.entries.iter().cycle().take_while(|_| !list.entries.is_empty()) {
            if at >= until {
                break;
            }
            let end = (at + entry.length).min(until);
            if entry.open.contains(class) {
                match open.last_mut().filter(|last| last.1 == at) {
                    Some(last) => last.1 = end,
                    None => open.push((at, end)),
                }
            }
            at += entry.length.max(Duration::from_nanos(1));
        }
        let (name, interface) = (visible(class), visible(&list.interface));
        let bar = |(from, to): (Duration, Duration)| {
            let hover = format!("gate of class {name} on {interface} is open\n{}", span(from, to));
            Bar { from, to, class: "gate".into(), name: String::new(), hover }
        };
        Row { label: format!("{interface}: {name}"), bars: open.into_iter().map(bar).collect() }
    };
    classes.into_iter().map(row).collect()
}
