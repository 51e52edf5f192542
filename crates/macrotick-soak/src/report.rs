//! The counts of a soak as text.

use std::time::{Duration as WallTime, UNIX_EPOCH};

use macrotick_report::table::{toned, Cell, Table, Tone};

use crate::counts::{Counts, GroupCounts, Pause, TaskCounts, Worst};
use crate::histogram::Histogram;

/// The quantiles of the report.
const QUANTILES: [(&str, f64); 4] = [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999), ("p99.99", 0.9999)];

/// Returns the counts as text of at most `width` columns. `runs`: the soak runs.
pub fn describe(counts: &Counts, runs: bool, colour: bool, width: usize) -> String {
    let mut text = String::new();
    for (what, value) in facts(counts, runs) {
        text.push_str(&format!("{} {value}\n", Tone::Faint.paint(&format!("{what:<10}"), colour)));
    }
    text.push_str(&format!("\n{}", jobs(&counts.tasks).text(colour, width)));
    let lateness = values("lateness [us]", &counts.tasks, |task| (&task.lateness, task.worst_lateness));
    text.push_str(&format!("\n{}", lateness.text(colour, width)));
    let response = values("response [us]", &counts.tasks, |task| (&task.response, task.worst_response));
    text.push_str(&format!("\n{}", response.text(colour, width)));
    if !counts.groups.is_empty() {
        text.push_str(&format!("\n{}", groups(&counts.groups).text(colour, width)));
    }
    let (verdict, tone) = verdict(counts);
    text + &format!("\n{}\n", tone.paint(&verdict, colour))
}

fn facts(counts: &Counts, runs: bool) -> Vec<(&'static str, String)> {
    let state = match (&counts.ended, runs) {
        (_, true) => "runs".into(),
        (Some(why), false) => format!("ended: {why}"),
        (None, false) => "cut off".into(),
    };
    let pauses = &counts.pauses;
    let mut facts = vec![
        ("soak", format!("{}, {state}", counts.soak)),
        ("since", instant(counts.began_unix_ns)),
        ("soaked", length(counts.soaked_ns)),
        ("saved", format!("{}; later counts are not in this report", instant(counts.saved_unix_ns))),
    ];
    if pauses.count > 0 {
        let unknown = match pauses.unknown {
            0 => String::new(),
            number => format!(" and {number} of unknown length"),
        };
        let (all, cuts, down) = (times(pauses.count), pauses.cuts, length(pauses.down_ns));
        facts.push(("paused", format!("{all}, {cuts} of them by a cut; {down} in all{unknown}")));
    }
    facts.extend(pauses.latest.last().map(|pause| ("last pause", describe_pause(pause))));
    let memory = counts.memory;
    facts.push((
        "memory",
        format!(
            "{} KiB now, {} KiB at the start, {} KiB at most",
            memory.latest_kib, memory.first_kib, memory.largest_kib
        ),
    ));
    facts
}

fn describe_pause(pause: &Pause) -> String {
    let why = pause.ended.as_ref().map_or("a cut".into(), |why| format!("ended: {why}"));
    let (from, until) = (instant(pause.from_unix_ns), instant(pause.until_unix_ns));
    match pause.length_ns() {
        Some(ns) => format!("{}, from {from} to {until}, {why}", length(ns)),
        None => format!("from {from}, {why}; the clock went back to {until}"),
    }
}

fn jobs(tasks: &[TaskCounts]) -> Table {
    let head = ["task", "activations", "completed", "missed", "lost", "late", "unrecorded", "restarted", "last miss"];
    let mut table = Table::new(1, &head);
    table.rows = tasks.iter().map(row).collect();
    table
}

fn row(task: &TaskCounts) -> Vec<Cell> {
    let bad = |count: u64| toned(count.to_string(), if count > 0 { Tone::Bad } else { Tone::Plain });
    vec![
        task.name.clone().into(),
        task.activations.to_string().into(),
        task.completed.to_string().into(),
        // The kernel counts the misses of jobs without a record, too.
        bad(task.missed.max(task.kernel_missed)),
        bad(task.kernel_lost),
        task.kernel_late.to_string().into(),
        (task.unrecorded + task.strange).to_string().into(),
        task.restarted.to_string().into(),
        task.missed_unix_ns.map_or("never".into(), instant).into(),
    ]
}

fn values(title: &str, tasks: &[TaskCounts], of: fn(&TaskCounts) -> (&Histogram, Option<Worst>)) -> Table {
    let head: Vec<&str> = [title].into_iter().chain(QUANTILES.map(|(name, _)| name)).chain(["worst", "at"]).collect();
    let mut table = Table::new(1, &head);
    let row = |task: &TaskCounts| {
        let (histogram, worst) = of(task);
        // A quantile is the upper end of its range of three digits, and the worst value is exact.
        let most = worst.map_or(i64::MAX, |worst| worst.ns);
        let quantiles = QUANTILES.map(|(_, share)| histogram.quantile(share).map(|ns| (ns as i64).min(most)));
        let quantiles = quantiles.map(|ns| micros(ns).into());
        let worst = [micros(worst.map(|worst| worst.ns)), worst.map_or("-".into(), |worst| instant(worst.at_unix_ns))];
        [task.name.clone().into()].into_iter().chain(quantiles).chain(worst.map(Cell::from)).collect()
    };
    table.rows = tasks.iter().map(row).collect();
    table
}

fn groups(groups: &[GroupCounts]) -> Table {
    let mut table = Table::new(1, &["group", "used up", "used [s]", "waited [s]"]);
    let seconds = |ns: u64| format!("{}.{:03}", ns / 1_000_000_000, ns / 1_000_000 % 1000);
    let row = |group: &GroupCounts| {
        let texts = [group.exhaustions.to_string(), seconds(group.usage_ns), seconds(group.throttled_ns)];
        [group.name.clone().into()].into_iter().chain(texts.map(Cell::from)).collect()
    };
    table.rows = groups.iter().map(row).collect();
    table
}

fn verdict(counts: &Counts) -> (String, Tone) {
    let sum = |of: fn(&TaskCounts) -> u64| counts.tasks.iter().map(of).sum::<u64>();
    let activations = sum(|task| task.activations);
    match sum(|task| task.missed.max(task.kernel_missed + task.kernel_lost)) {
        0 => (format!("no miss in {activations} activations"), Tone::Good),
        1 => (format!("one miss in {activations} activations"), Tone::Bad),
        missed => (format!("{missed} misses in {activations} activations"), Tone::Bad),
    }
}

fn micros(ns: Option<i64>) -> String {
    ns.map_or("-".into(), |ns| format!("{:.3}", ns as f64 / 1000.0))
}

/// Returns an instant in UTC.
fn instant(unix_ns: i64) -> String {
    let at = UNIX_EPOCH + WallTime::from_nanos(unix_ns.max(0).unsigned_abs());
    humantime::format_rfc3339_millis(at).to_string()
}

/// Returns a length with a precision of milliseconds.
fn length(ns: u64) -> String {
    humantime::format_duration(WallTime::from_millis(ns / 1_000_000)).to_string()
}

fn times(count: u64) -> String {
    match count {
        1 => "once".into(),
        count => format!("{count} times"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_has_all_counts() {
        let mut task = TaskCounts {
            name: "control".into(),
            activations: 12,
            completed: 11,
            missed: 1,
            kernel_lost: 1,
            restarted: 2,
            missed_unix_ns: Some(1_700_000_000_000_000_000),
            worst_lateness: Some(Worst { ns: 2345, at_unix_ns: 1_700_000_000_123_000_000 }),
            ..TaskCounts::default()
        };
        (0..11).for_each(|_| task.lateness.record(234));
        let group = GroupCounts { name: "web".into(), exhaustions: 3, usage_ns: 1_234_567_890, throttled_ns: 5 };
        let mut counts = Counts::new("plant".into(), String::new(), 1_699_999_999_000_000_000);
        (counts.soaked_ns, counts.saved_unix_ns) = (90_061_001_000_000, 1_700_000_001_000_000_000);
        counts.resume(1_700_000_004_000_000_000);
        counts.note_memory(4100);
        counts.note_memory(4096);
        (counts.tasks, counts.groups) = (vec![task], vec![group]);
        let squeeze = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let lines: Vec<String> = describe(&counts, false, false, 200).lines().map(squeeze).collect();
        assert_eq!(
            lines,
            [
                "soak plant, cut off",
                "since 2023-11-14T22:13:19.000Z",
                "soaked 1day 1h 1m 1s 1ms",
                "saved 2023-11-14T22:13:21.000Z; later counts are not in this report",
                "paused once, 1 of them by a cut; 3s in all",
                "last pause 3s, from 2023-11-14T22:13:21.000Z to 2023-11-14T22:13:24.000Z, a cut",
                "memory 4096 KiB now, 4100 KiB at the start, 4100 KiB at most",
                "",
                "task activations completed missed lost late unrecorded restarted last miss",
                "control 12 11 1 1 0 0 2 2023-11-14T22:13:20.000Z",
                "",
                "lateness [us] p50 p99 p99.9 p99.99 worst at",
                "control 0.234 0.234 0.234 0.234 2.345 2023-11-14T22:13:20.123Z",
                "",
                "response [us] p50 p99 p99.9 p99.99 worst at",
                "control - - - - - -",
                "",
                "group used up used [s] waited [s]",
                "web 3 1.234 0.000",
                "",
                "one miss in 12 activations",
            ]
        );
        counts.tasks[0] = TaskCounts { name: "control".into(), activations: 12, ..TaskCounts::default() };
        counts.resume(5);
        let text = describe(&counts, true, false, 200);
        assert!(text.contains("plant, runs") && text.ends_with("\nno miss in 12 activations\n"), "{text}");
        assert!(text.contains("the clock went back to 1970-01-01T00:00:00.000Z"), "{text}");
        assert!(describe(&counts, true, false, 100).lines().all(|line| line.chars().count() <= 110));
    }
}
