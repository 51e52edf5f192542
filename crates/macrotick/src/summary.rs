//! The tightest parts of a plan, in a few lines.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use macrotick_check::Verdict;
use macrotick_model::{Duration, Plan, Window};
use macrotick_plan::Moved;

/// The windows of each task and pool.
pub type Served<'a> = BTreeMap<&'a str, Vec<&'a Window>>;

/// Returns the windows of each task and pool, in one walk through the tables: a table can have a million windows.
pub fn served(plan: &Plan) -> Served<'_> {
    let mut served = Served::new();
    for window in plan.tables.iter().flat_map(|table| &table.windows) {
        served.entry(&window.task).or_default().push(window);
    }
    served
}

/// Returns a line each for the windows of jobs, the least slack, and the chain that is the closest to its bound.
pub fn summary(plan: &Plan, served: &Served, verdict: &Verdict) -> String {
    let mut text = String::new();
    let counts = plan.system.tasks.iter().filter_map(|task| {
        let windows = served.get(task.name.as_str())?;
        let jobs = windows.iter().filter(|window| window.activate).count();
        (jobs > 0).then_some((windows.len(), jobs, &task.name))
    });
    let counts: Vec<(usize, usize, &String)> = counts.collect();
    let most = counts.iter().max_by(|one, other| (one.0 * other.1).cmp(&(other.0 * one.1)));
    if let Some((windows, jobs, name)) = most.filter(|(windows, jobs, _)| windows > jobs) {
        let all: (usize, usize) = counts.iter().fold((0, 0), |sum, count| (sum.0 + count.0, sum.1 + count.1));
        let (mean, of_most) = (all.0 as f64 / all.1 as f64, *windows as f64 / *jobs as f64);
        let _ = writeln!(text, "windows per job: {mean:.2}, at most {of_most:.2} (task {name})");
    }
    if let Some(task) = verdict.tasks.iter().min_by_key(|task| task.slack) {
        let _ = writeln!(text, "least slack: {} (task {})", task.slack, task.name);
    }
    let bounds = verdict
        .chains
        .iter()
        .flat_map(|chain| chain.bounds().map(move |(kind, reached, bound)| (chain, kind, reached, bound)));
    let share = |(_, _, reached, bound): &(_, _, Duration, Duration)| {
        i128::from(reached.as_nanos()) * 1_000_000 / i128::from(bound.as_nanos()).max(1)
    };
    if let Some((chain, kind, reached, bound)) = bounds.max_by_key(share) {
        let _ = writeln!(text, "closest chain: {}, {kind} {reached} (bound {bound})", chain.name);
    }
    text
}

/// Tells what a change moved.
pub fn moved(moved: &Moved) -> String {
    let moves: Vec<String> = moved.moved.iter().map(|(name, windows)| format!("{name} ({windows} windows)")).collect();
    let kept = moved.kept.len();
    let all = kept + moves.len();
    let mut text = format!("former windows: {kept} of {all} tasks and groups keep them\n");
    for (what, names) in [("moved", &moves), ("new", &moved.added), ("removed", &moved.removed)] {
        if !names.is_empty() {
            let _ = writeln!(text, "{what}: {}", names.join(", "));
        }
    }
    text
}
