//! The reasons why a host is not feasible, or why one more container is refused.

use std::fmt;

use macrotick_model::{CpuSet, Duration};
use serde::{Deserialize, Serialize};

use super::{Bandwidth, Capacity, Permille, Server};
use crate::kernel::PARTS;

/// One reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "reason", rename_all = "kebab-case")]
#[allow(missing_docs)] // The message explains each field.
pub enum Refusal {
    /// A task that would miss its deadline. `over` is its lateness, `None` if that has no bound. `above` has the groups
    /// that come before it on this CPU.
    #[error(
        "CPU {cpu}: task `{task}` of group `{group}` {} with a budget of {budget}, its deadline is {deadline}{}",
        late(.over), list(", above it is ", .above)
    )]
    Misses {
        cpu: u32,
        group: String,
        task: String,
        budget: Duration,
        deadline: Duration,
        over: Option<Duration>,
        above: Vec<String>,
    },
    /// Tasks of a group of which none meets its deadline below the others: no order of priorities is feasible. Each has
    /// its lateness there, `None` if that has no bound.
    #[error(
        "CPU {cpu}: with a budget of {budget} group `{group}` has no order of tasks: none of {} can be lowest",
        each_late(.tasks)
    )]
    NoTaskOrder { cpu: u32, group: String, budget: Duration, tasks: Vec<(String, Option<Duration>)> },
    /// Groups of which none is feasible below the others.
    #[error("there is no order of groups: none of {} can be lowest", list("", .groups))]
    NoGroupOrder { groups: Vec<String> },
    /// The promises exceed a CPU.
    #[error(
        "CPU {cpu}: {}{}budgets of {} per {server_period} and a reserve of {} are \
         too much: budgets must sum up to {over} less",
        taken(.windows, .cycle), bandwidth(.deadline, .shared, .capacity), amounts(.budgets), .capacity.reserve()
    )]
    CpuFull {
        cpu: u32,
        windows: Duration,
        cycle: Duration,
        deadline: Bandwidth,
        shared: Option<Shared>,
        budgets: Vec<(String, Duration)>,
        server_period: Duration,
        capacity: Capacity,
        over: Duration,
    },
    /// Tasks of SCHED_DEADLINE behind windows and budgets, of which one may miss its deadline.
    #[error(
        "CPU {cpu}: SCHED_DEADLINE tasks {} behind windows and budgets of {budgets} per {server_period}: {error}",
        list("", .tasks)
    )]
    Demand { cpu: u32, tasks: Vec<String>, budgets: Duration, server_period: Duration, error: String },
    /// More groups or tasks than there are priorities.
    #[error("{count} {what} are too many for {priorities} priorities")]
    NoPriority { what: String, count: usize, priorities: u32 },
}

/// An account of SCHED_DEADLINE for several CPUs, from the view of one of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shared {
    /// The CPUs.
    pub cpus: CpuSet,
    /// The bandwidth promised on all of them together.
    pub promised: Bandwidth,
    /// The share of windows, leads and budgets on the other CPUs, in parts of 1024 of one CPU.
    pub elsewhere: i64,
}

impl Refusal {
    /// Makes the refusal for a task of `server` of `group` with this response time, below the groups `above`.
    pub(super) fn misses(
        group: &str,
        server: &Server,
        task: &str,
        response: Option<Duration>,
        deadline: Duration,
        above: Vec<String>,
    ) -> Refusal {
        Refusal::Misses {
            cpu: server.cpu,
            group: group.into(),
            task: task.into(),
            budget: server.budget,
            deadline,
            over: response.map(|response| response - deadline),
            above,
        }
    }
}

impl fmt::Display for Permille {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{} %", self.0 / 10, self.0 % 10)
    }
}

fn late(over: &Option<Duration>) -> String {
    over.map_or("has no bound on its response time".into(), |over| format!("is late by {over}"))
}

fn each_late(tasks: &[(String, Option<Duration>)]) -> String {
    let each: Vec<String> = tasks.iter().map(|(name, over)| format!("`{name}` (which {})", late(over))).collect();
    each.join(", ")
}

fn list(lead: &str, names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    if names.is_empty() {
        String::new()
    } else {
        format!("{lead}{}", names.join(", "))
    }
}

fn amounts(each: &[(String, Duration)]) -> String {
    let each: Vec<String> = each.iter().map(|(name, length)| format!("{length} (`{name}`)")).collect();
    if each.is_empty() {
        "nothing".into()
    } else {
        each.join(" + ")
    }
}

/// Returns no text for a CPU without windows, or a host without a table.
fn taken(windows: &Duration, cycle: &Duration) -> String {
    match *windows {
        Duration::ZERO => String::new(),
        windows => format!("windows of {windows} per {cycle}, "),
    }
}

fn bandwidth(deadline: &Bandwidth, shared: &Option<Shared>, capacity: &Capacity) -> String {
    let whole = Bandwidth::WHOLE.0;
    match (deadline, shared, capacity) {
        (Bandwidth(0), ..) => String::new(),
        (_, Some(Shared { cpus, promised, elsewhere }), _) => format!(
            "a SCHED_DEADLINE bandwidth of {}/{whole} on CPUs {cpus} (with the 5 % of the fair class on each at most \
             95 % of the time that windows and budgets leave), windows and budgets of {elsewhere}/{PARTS} on the other \
             CPUs, ",
            promised.0
        ),
        (Bandwidth(parts), None, Capacity::Kernel) => format!(
            "a SCHED_DEADLINE bandwidth of {parts}/{whole} (with the 5 % of the fair class at most 95 % of the time \
             that windows and budgets leave), "
        ),
        (Bandwidth(parts), None, Capacity::AllBut(_)) => format!("a SCHED_DEADLINE bandwidth of {parts}/{whole}, "),
    }
}
