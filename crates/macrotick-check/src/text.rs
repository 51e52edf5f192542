//! The verdict as text.

use std::fmt;

use macrotick_analysis::servers::{Analysis, ServerAnalysis, TaskAnalysis};
use macrotick_model::Duration;

use crate::network;
use crate::{ChainVerdict, Deadlines, DomainVerdict, PoolVerdict, Verdict};

/// The number of violations in the text. More are only counted.
const SHOWN: usize = 20;

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.violations.len() {
            0 => writeln!(f, "feasible")?,
            1 => writeln!(f, "not feasible: 1 violation")?,
            count => writeln!(f, "not feasible: {count} violations")?,
        }
        for violation in self.violations.iter().take(SHOWN) {
            writeln!(f, "  {violation}")?;
        }
        if self.violations.len() > SHOWN {
            writeln!(f, "  and {} more", self.violations.len() - SHOWN)?;
        }
        for cpu in &self.cpus {
            write!(f, "cpu {}: windows take {}", cpu.cpu, percent(cpu.utilisation))?;
            match cpu.leads {
                Duration::ZERO => writeln!(f)?,
                _ => writeln!(f, ", leads {}", percent(cpu.lead_share))?,
            }
        }
        let width = self.tasks.iter().map(|task| task.name.len()).max().unwrap_or(0).max("task".len());
        if !self.tasks.is_empty() {
            writeln!(f, "{:<width$} {:>6} {:>12} {:>12} {:>12}", "task", "jobs", "response", "jitter", "slack")?;
        }
        for task in &self.tasks {
            let (name, jobs) = (&task.name, task.jobs);
            writeln!(f, "{name:<width$} {jobs:>6} {:>12} {:>12} {:>12}", task.response, task.jitter, task.slack)?;
        }
        self.pools.iter().try_for_each(|pool| pool_line(f, pool))?;
        self.chains.iter().try_for_each(|chain| line(f, chain))?;
        self.groups.iter().try_for_each(|analysis| groups(f, analysis))?;
        self.domains.iter().try_for_each(|verdict| domain(f, verdict))?;
        network::loads(f, &self.interfaces, &self.flows)
    }
}

/// Formats a share of 0 to 1 in tenths of a percent, rounded down as in the timeline of a plan. The small addend keeps
/// a tenth that a float represents slightly too small.
fn percent(share: f64) -> String {
    format!("{:.1} %", (share * 1000.0 + 1e-6).floor() / 10.0)
}

fn domain(f: &mut fmt::Formatter<'_>, verdict: &DomainVerdict) -> fmt::Result {
    let DomainVerdict { cpus, tasks, promised, capacity, deadlines } = verdict;
    let (promised, capacity) = (promised * 100.0, capacity * 100.0);
    let deadlines = match deadlines {
        Deadlines::Met => "every deadline is met".into(),
        Deadlines::Missed => "a deadline may be missed".into(),
        Deadlines::Late(bounds) => {
            let each = tasks.iter().zip(bounds).map(|(task, bound)| format!("{task} by {bound}"));
            format!("jobs may be late, at most {}", each.collect::<Vec<_>>().join(", "))
        }
        Deadlines::Unknown(why) => format!("no result for their deadlines: {why}"),
    };
    writeln!(
        f,
        "deadline tasks on CPU {cpus}: {}: {promised:.1} % of one CPU, at most {capacity:.1} %; {deadlines}",
        tasks.join(", ")
    )
}

fn pool_line(f: &mut fmt::Formatter<'_>, pool: &PoolVerdict) -> fmt::Result {
    let PoolVerdict { name, cpu, windows, given, budget, period, gap } = pool;
    let noun = if *windows == 1 { "window" } else { "windows" };
    let asked = if given == budget { String::new() } else { format!(" ({budget} required)") };
    writeln!(
        f,
        "pool {name}: {windows} {noun} on CPU {cpu}, {given} of every {period}{asked}, at most {gap} without a window"
    )
}

fn line(f: &mut fmt::Formatter<'_>, chain: &ChainVerdict) -> fmt::Result {
    let time = |time: Option<Duration>| time.map_or("unknown".to_string(), |time| time.to_string());
    let bound = |bound: Option<Duration>| bound.map_or("no bound".to_string(), |bound| format!("bound {bound}"));
    writeln!(
        f,
        "chain {}: reaction {} ({}), age {} ({})",
        chain.name,
        time(chain.reaction),
        bound(chain.reaction_bound),
        time(chain.age),
        bound(chain.age_bound)
    )
}

/// Writes the guaranteed time of each group, and the worst case of its tasks.
fn groups(f: &mut fmt::Formatter<'_>, analysis: &Analysis) -> fmt::Result {
    for group in &analysis.groups {
        for server in &group.servers {
            let ServerAnalysis { cpu, budget, tasks, .. } = server;
            let name = &group.name;
            let priority = group.priority;
            let promised = promise(server);
            writeln!(f, "group {name}: priority {priority}, budget {budget} on CPU {cpu}, guaranteed {promised}")?;
            tasks.iter().try_for_each(|task| task_line(f, name, task))?;
        }
    }
    Ok(())
}

/// Returns the guaranteed time of a server, and the reason if it is less than the budget.
fn promise(server: &ServerAnalysis) -> String {
    let ServerAnalysis { budget, sure, tasks, .. } = server;
    let mut text = format!("{sure} in each server period");
    if *sure == Duration::ZERO {
        text += ": windows and groups of higher priority may take a whole period";
    }
    if sure < budget && tasks.is_empty() {
        text += ", without a task that has a deadline";
    }
    text
}

fn task_line(f: &mut fmt::Formatter<'_>, group: &str, task: &TaskAnalysis) -> fmt::Result {
    writeln!(f, "group {group}: task {}: {task}", task.name)
}
