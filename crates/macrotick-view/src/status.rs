//! The text that describes the status of a host.

use macrotick_host::settings::SettingStatus;
use macrotick_host::sys::cpu_list;
use macrotick_model::{Duration, Reservation, Task};
use macrotick_node::{EntityStatus, GroupStatus, Status, TableStatus};
use macrotick_report::table::{toned, Cell, Table, Tone};

use crate::seconds;

/// Returns the status as text of at most `width` columns.
pub fn describe(status: &Status, colour: bool, width: usize) -> String {
    let mut text = String::new();
    for (what, value) in facts(status) {
        text.push_str(&format!("{} {value}\n", Tone::Faint.paint(&format!("{what:<10}"), colour)));
    }
    if let Some(table) = &status.table {
        text.push_str(&format!("\n{}", counters(table).text(colour, width)));
    }
    if !status.groups.is_empty() {
        text.push_str(&format!("\n{}", group_table(&status.groups).text(colour, width)));
    }
    let remarks = status.deployment.iter().flat_map(|deployed| &deployed.remarks);
    let problems = status.problems.iter().map(|problem| Tone::Bad.paint(problem, colour));
    for (index, line) in problems.chain(remarks.cloned()).enumerate() {
        text.push_str(if index == 0 { "\n" } else { "" });
        text.push_str(&format!("{line}\n"));
    }
    text
}

fn facts(status: &Status) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    if let Some(deployed) = &status.deployment {
        let changes = match deployed.changes {
            0 => String::new(),
            1 => ", changed once".into(),
            times => format!(", changed {times} times"),
        };
        facts.push(("deployment", format!("{}{changes}", deployed.system)));
    }
    let supervised = status.deployment.as_ref().is_some_and(|deployed| Some(deployed.supervisor) == status.owner);
    facts.push(match (status.owner, supervised) {
        (Some(process), true) => ("supervisor", format!("process {process}")),
        (Some(process), false) => ("runner", format!("process {process}")),
        (None, _) => ("supervisor", "none".into()),
    });
    let reserved = status.deployment.iter().flat_map(|deployed| &deployed.reserved);
    facts.extend(reserved.filter_map(|task| Some(("deadline", describe_reservation(task)?))));
    let gates = status.deployment.iter().flat_map(|deployed| macrotick_report::describe_gates(&deployed.gates));
    facts.extend(gates.map(|gates| ("gates", gates)));
    facts.extend(status.settings.iter().map(|setting| ("setting", describe_setting(setting))));
    let Some(table) = &status.table else {
        facts.push(("table", "none".into()));
        return facts;
    };
    facts.push(("table", describe_table(table)));
    if let Some(grid) = &table.grid {
        let length = |ns: u64| Duration::from_nanos(ns as i64);
        let (stretched, shrunk, rest) =
            (length(grid.stretched_ns), length(grid.shrunk_ns), Duration::from_nanos(grid.rest_ns));
        let corrections = grid.corrections;
        facts.push(("clock", format!("{corrections} corrections: +{stretched} -{shrunk}; still {rest} off")));
    }
    if let Some(coming) = status.deployment.as_ref().and_then(|deployed| deployed.coming.as_ref()) {
        facts.push(("change", format!("to {} at {} s of {}", coming.system, seconds(coming.instant_ns), table.clock)));
    }
    facts
}

fn describe_setting(setting: &SettingStatus) -> String {
    let SettingStatus { name, set, value, before, holders } = setting;
    let now = value.map_or("no longer there".into(), |value| value.to_string());
    let now = if *value == Some(*set) { now } else { format!("{now}, though set to {set}") };
    format!("{name} {now}, before {before}, for {}", holders.join(", "))
}

fn describe_reservation(task: &Task) -> Option<String> {
    let Reservation { runtime, cpus } = task.reservation()?;
    Some(format!("task {}, {runtime} by {} of every {} on CPU {cpus}", task.name, task.deadline, task.period))
}

fn describe_table(table: &TableStatus) -> String {
    let since = match table.running {
        true => format!("runs since {} s of {}", seconds(table.epoch_ns as i64), table.clock),
        false => format!("does not run, on {}", table.clock),
    };
    let lead = match table.lead_ns {
        0 => String::new(),
        lead => format!(", lead {}", Duration::from_nanos(lead as i64)),
    };
    format!("{since}, cycle {}{lead}", table.cycle())
}

fn counters(table: &TableStatus) -> Table {
    let head = [
        "",
        "CPU",
        "windows",
        "time",
        "threads",
        "released",
        "completed",
        "missed",
        "lost",
        "overrun",
        "skipped",
        "late",
        "used [ms]",
    ];
    let mut text = Table::new(1, &head);
    text.rows = table.entities.iter().map(row).collect();
    text
}

fn row(entity: &EntityStatus) -> Vec<Cell> {
    let name = format!("{} {}", if entity.pool { "pool" } else { "task" }, entity.name);
    // A pool has no jobs.
    let of_jobs = |count: u64| if entity.pool { "-".to_string() } else { count.to_string() };
    let bad = |count: u64| toned(of_jobs(count), if count > 0 { Tone::Bad } else { Tone::Plain });
    let nobody = entity.threads == 0 && !entity.pool || entity.stopped;
    let runtime = entity.runtime_ns / 1000;
    vec![
        name.into(),
        entity.cpus.to_string().into(),
        entity.windows.to_string().into(),
        Duration::from_nanos(entity.window_ns as i64).to_string().into(),
        toned(entity.threads.to_string(), if nobody { Tone::Bad } else { Tone::Plain }),
        of_jobs(entity.released).into(),
        of_jobs(entity.completed).into(),
        bad(entity.missed),
        bad(entity.lost),
        entity.overrun.to_string().into(),
        entity.skipped.to_string().into(),
        of_jobs(entity.late).into(),
        format!("{}.{:03}", runtime / 1000, runtime % 1000).into(),
    ]
}

fn group_table(groups: &[GroupStatus]) -> Table {
    let head = ["", "CPU", "budget", "priority", "threads", "used [ms]", "used up", "waited [ms]"];
    let mut text = Table::new(1, &head);
    text.rows = groups.iter().map(group_row).collect();
    text
}

fn group_row(group: &GroupStatus) -> Vec<Cell> {
    let ms = |ns: u64| format!("{}.{:03}", ns / 1_000_000, ns / 1000 % 1000);
    let cpus: Vec<u32> = group.budgets.iter().map(|(cpu, _)| *cpu).collect();
    let mut budgets: Vec<Duration> = group.budgets.iter().map(|(_, budget)| *budget).collect();
    budgets.dedup();
    let budgets: Vec<String> = budgets.iter().map(Duration::to_string).collect();
    let astray = if group.astray.is_some() { Tone::Bad } else { Tone::Plain };
    vec![
        format!("group {}", group.name).into(),
        toned(cpu_list(&cpus), astray),
        budgets.join(", ").into(),
        group.priority.to_string().into(),
        group.threads.to_string().into(),
        ms(group.usage_ns).into(),
        group.exhaustions.to_string().into(),
        ms(group.throttled_ns).into(),
    ]
}

#[cfg(test)]
mod tests {
    use macrotick_host::state::{Coming, Deployed};

    use super::*;

    fn status() -> Status {
        let entity = |name: &str, pool| EntityStatus {
            name: name.into(),
            pool,
            cpus: [0].into_iter().collect(),
            windows: 2,
            window_ns: 300_000,
            threads: 1,
            released: 12,
            completed: 11,
            missed: 1,
            never_ran: 0,
            lost: 0,
            overrun: 3,
            skipped: 0,
            late: 0,
            runtime_ns: 1_234_567,
            missed_in_row: 0,
            stopped: false,
            lateness: None,
        };
        Status {
            version: Status::VERSION,
            table: Some(TableStatus {
                running: true,
                clock: "CLOCK_MONOTONIC",
                cycle_ns: 20_000_000,
                epoch_ns: 12_400_000_000,
                lead_ns: 6000,
                grid: None,
                entities: vec![entity("control", false), entity("web", true)],
            }),
            owner: Some(77),
            deployment: Some(Deployed {
                supervisor: 77,
                system: "pendulum".into(),
                entities: Vec::new(),
                groups: Vec::new(),
                slots: Vec::new(),
                slot_devices: Vec::new(),
                reserved: Vec::new(),
                changes: 1,
                coming: Some(Coming { system: "next".into(), entities: Vec::new(), instant_ns: 13_000_000_001 }),
                gates: vec![macrotick_fixtures::exact_gates("left", Duration::from_micros(60))],
                promised: Vec::new(),
                blocks: Vec::new(),
                remarks: vec!["a remark".into()],
            }),
            groups: vec![GroupStatus {
                name: "web".into(),
                path: "/sys/fs/cgroup/web".into(),
                priority: 9,
                budgets: vec![(0, Duration::from_micros(400)), (2, Duration::from_micros(400))],
                cpus: [0, 2].into_iter().collect(),
                threads: 5,
                usage_ns: 7_654_321,
                exhaustions: 3,
                throttled_ns: 1000,
                astray: None,
            }],
            settings: vec![SettingStatus {
                name: "kernel.timershield".into(),
                set: 1,
                value: Some(1),
                before: 0,
                holders: vec!["pendulum (process 77)".into(), "container web".into()],
            }],
            problems: vec!["a problem".into()],
        }
    }

    fn lines(status: &Status) -> Vec<String> {
        let squeeze = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        describe(status, false, 200).lines().map(squeeze).collect()
    }

    #[test]
    fn a_deployment_is_shown_whole() {
        assert_eq!(
            lines(&status()),
            [
                "deployment pendulum, changed once",
                "supervisor process 77",
                "gates left (eth0 in macrotick-left): exact gates with a lead of 60us; not there: hardware",
                "setting kernel.timershield 1, before 0, for pendulum (process 77), container web",
                "table runs since 12.400000000 s of CLOCK_MONOTONIC, cycle 20ms, lead 6us",
                "change to next at 13.000000001 s of CLOCK_MONOTONIC",
                "",
                "CPU windows time threads released completed missed lost overrun skipped late used [ms]",
                "task control 0 2 300us 1 12 11 1 0 3 0 0 1.234",
                "pool web 0 2 300us 1 - - - - 3 0 - 1.234",
                "",
                "CPU budget priority threads used [ms] used up waited [ms]",
                "group web 0,2 400us 9 5 7.654 3 0.001",
                "",
                "a problem",
                "a remark",
            ]
        );
    }

    #[test]
    fn without_a_table_there_is_little_to_show() {
        let nothing = Status {
            version: Status::VERSION,
            table: None,
            owner: None,
            deployment: None,
            groups: Vec::new(),
            settings: Vec::new(),
            problems: Vec::new(),
        };
        assert_eq!(lines(&nothing), ["supervisor none", "table none"]);
        let run = Status { owner: Some(5), ..nothing };
        assert_eq!(lines(&run)[0], "runner process 5");
        let [setting] = &status().settings[..] else { panic!() };
        let other = SettingStatus { value: Some(0), holders: vec!["container web".into()], ..setting.clone() };
        assert_eq!(describe_setting(&other), "kernel.timershield 0, though set to 1, before 0, for container web");
    }
}
