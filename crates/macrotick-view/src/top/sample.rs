//! One reading of the status, and its difference to the one before.

use std::time::Duration as WallTime;

use macrotick_node::{EntityStatus, GroupStatus, LatenessStatus, Status};

/// A row of the view: a task, a pool or a group, with its counters since the reading before.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    pub kind: &'static str,
    pub name: String,
    pub cpus: String,
    pub threads: u32,
    /// The share of a CPU that it has by its windows or budgets, in percent.
    pub share: f64,
    /// The share of a CPU that it used since the reading before, in percent.
    pub load: f64,
    /// Jobs in a second; `None`: it has no jobs.
    pub rate: Option<f64>,
    /// Missed and lost jobs, or times that a budget was used up: all, and those since the reading before.
    pub bad: (u64, u64),
    /// The lateness of its jobs, if it is known.
    pub lateness: Option<LatenessStatus>,
    /// The other counters, for the view of one row.
    pub details: Vec<(&'static str, String)>,
}

/// Returns the rows of a status. `before` is the reading before, `elapsed` the time since then.
pub(crate) fn rows(status: &Status, before: Option<&Status>, elapsed: WallTime, server_period_ns: u64) -> Vec<Row> {
    let cycle = status.table.as_ref().map_or(1, |table| table.cycle_ns.max(1));
    let entities =
        |status: &'_ Status| status.table.iter().flat_map(|table| table.entities.clone()).collect::<Vec<_>>();
    let former = before.map(entities).unwrap_or_default();
    let of_entity = |now: EntityStatus| {
        let then = former.iter().find(|then| then.name == now.name && then.pool == now.pool);
        entity(&now, then, elapsed, cycle)
    };
    let of_group = |now: &GroupStatus| {
        let then = before.and_then(|before| before.groups.iter().find(|then| then.path == now.path));
        group(now, then, elapsed, server_period_ns)
    };
    entities(status).into_iter().map(of_entity).chain(status.groups.iter().map(of_group)).collect()
}

fn entity(now: &EntityStatus, then: Option<&EntityStatus>, elapsed: WallTime, cycle: u64) -> Row {
    let since = |value: fn(&EntityStatus) -> u64| then.map_or(0, |then| value(now).saturating_sub(value(then)));
    let per_second = |count: u64| count as f64 / elapsed.as_secs_f64().max(1e-9);
    let bad = |entity: &EntityStatus| entity.missed + entity.lost;
    Row {
        kind: if now.pool { "pool" } else { "task" },
        name: now.name.clone(),
        cpus: now.cpus.to_string(),
        threads: now.threads,
        share: now.window_ns as f64 * 100.0 / cycle as f64,
        load: per_second(since(|entity| entity.runtime_ns)) / 1e7,
        rate: (!now.pool).then(|| per_second(since(|entity| entity.released))),
        // A pool has no jobs.
        bad: if now.pool { (0, 0) } else { (bad(now), since(|entity| entity.missed + entity.lost)) },
        lateness: now.lateness,
        details: vec![
            ("windows in a cycle", now.windows.to_string()),
            ("released", now.released.to_string()),
            ("completed", now.completed.to_string()),
            ("missed", now.missed.to_string()),
            ("missed without a start", now.never_ran.to_string()),
            ("missed in a row", now.missed_in_row.to_string()),
            ("lost", now.lost.to_string()),
            ("overrun", now.overrun.to_string()),
            ("skipped windows", now.skipped.to_string()),
            ("late for the lead", now.late.to_string()),
            ("stopped", if now.stopped { "yes" } else { "no" }.into()),
        ],
    }
}

fn group(now: &GroupStatus, then: Option<&GroupStatus>, elapsed: WallTime, server_period_ns: u64) -> Row {
    let since = |value: fn(&GroupStatus) -> u64| then.map_or(0, |then| value(now).saturating_sub(value(then)));
    let budget: i64 = now.budgets.iter().map(|(_, budget)| budget.as_nanos()).sum();
    let cpus: Vec<String> = now.budgets.iter().map(|(cpu, _)| cpu.to_string()).collect();
    let budgets: Vec<String> = now.budgets.iter().map(|(cpu, budget)| format!("{budget} on CPU {cpu}")).collect();
    Row {
        kind: "group",
        name: now.name.clone(),
        cpus: cpus.join(", "),
        threads: now.threads,
        share: budget as f64 * 100.0 / server_period_ns.max(1) as f64,
        load: since(|group| group.usage_ns) as f64 / elapsed.as_secs_f64().max(1e-9) / 1e7,
        rate: None,
        bad: (now.exhaustions, since(|group| group.exhaustions)),
        lateness: None,
        details: vec![
            ("priority", now.priority.to_string()),
            ("budgets", budgets.join(", ")),
            ("used [ms]", format!("{:.3}", now.usage_ns as f64 / 1e6)),
            ("budgets used up", now.exhaustions.to_string()),
            ("without budget [ms]", format!("{:.3}", now.throttled_ns as f64 / 1e6)),
        ],
    }
}
