//! The metrics: names, labels and units. All begin with `macrotick_`. Times are in seconds.

use std::fmt::Error;

use macrotick_model::Duration;
use macrotick_node::{EntityStatus, GroupStatus, LatenessStatus, Status};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

/// Returns the metrics of a status, in the text format of OpenMetrics. `None`: the kernel lacks the class, or its state
/// cannot be read.
pub fn text(status: Option<Status>) -> String {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Snapshot(status)));
    let mut text = String::new();
    encode(&mut text, &registry).expect("a string takes any text");
    text
}

/// The status at one instant.
#[derive(Debug)]
struct Snapshot(Option<Status>);

/// The labels of a value.
type Labels = Vec<(&'static str, String)>;

const NS: f64 = 1e-9;

impl Collector for Snapshot {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), Error> {
        let up = if self.0.is_some() { 1.0 } else { 0.0 };
        single(&mut encoder, "macrotick_up", "Whether the state of the kernel class can be read", up)?;
        let Some(status) = &self.0 else { return Ok(()) };
        let problems = status.problems.len() as f64;
        single(&mut encoder, "macrotick_problems", "Problems of `macrotick status`", problems)?;
        let running = status.table.as_ref().map_or(0.0, |table| f64::from(u8::from(table.running)));
        single(&mut encoder, "macrotick_table_running", "Whether a table runs", running)?;
        let entities = status.table.iter().flat_map(|table| &table.entities);
        jobs(&mut encoder, &entities.clone().filter(|entity| !entity.pool).collect::<Vec<_>>())?;
        windows(&mut encoder, &entities.collect::<Vec<_>>())?;
        groups(&mut encoder, &status.groups)
    }
}

/// The counters of tasks.
fn jobs(encoder: &mut DescriptorEncoder, tasks: &[&EntityStatus]) -> Result<(), Error> {
    type Value = fn(&EntityStatus) -> u64;
    let families: [(&str, &str, Value); 6] = [
        ("macrotick_jobs_released", "Released jobs", |task| task.released),
        ("macrotick_jobs_completed", "Completed jobs", |task| task.completed),
        ("macrotick_jobs_missed", "Jobs not complete at their deadline", |task| task.missed),
        ("macrotick_jobs_never_ran", "Missed jobs that had not started", |task| task.never_ran),
        ("macrotick_jobs_lost", "Jobs that were not released, because the one before had not started", |task| {
            task.lost
        }),
        ("macrotick_jobs_late", "Jobs for which the lead was too short", |task| task.late),
    ];
    for (name, help, value) in families {
        counter(encoder, name, help, tasks.iter().map(|task| (of_entity(task), value(task) as f64)))?;
    }
    let stopped = tasks.iter().map(|task| (of_entity(task), f64::from(u8::from(task.stopped))));
    gauge(encoder, "macrotick_task_stopped", "Whether a task was stopped after too many misses", stopped)?;
    let known = |value: fn(&LatenessStatus) -> i64| {
        // A product with 1e-9 is not the nearest number.
        let of = move |task: &&EntityStatus| Some((of_entity(task), value(task.lateness.as_ref()?) as f64 / 1e9));
        tasks.iter().filter_map(of)
    };
    let latest = known(|lateness| lateness.latest_ns);
    gauge(encoder, "macrotick_task_lateness_seconds", "Lateness of the latest job", latest)?;
    let worst = known(|lateness| lateness.worst_ns);
    gauge(encoder, "macrotick_task_worst_lateness_seconds", "Largest lateness since the process started", worst)
}

/// The counters of windows, of tasks and of pools.
fn windows(encoder: &mut DescriptorEncoder, entities: &[&EntityStatus]) -> Result<(), Error> {
    let each = |value: fn(&EntityStatus) -> f64| entities.iter().map(move |entity| (of_entity(entity), value(entity)));
    let overrun = each(|entity| entity.overrun as f64);
    counter(encoder, "macrotick_windows_overrun", "Threads preempted at the end of a window", overrun)?;
    let skipped = each(|entity| entity.skipped as f64);
    counter(encoder, "macrotick_windows_skipped", "Windows that had passed when their interrupt came", skipped)?;
    let time = each(|entity| entity.runtime_ns as f64 * NS);
    counter(encoder, "macrotick_windows_runtime_seconds", "Processor time received in windows", time)?;
    let threads = each(|entity| f64::from(entity.threads));
    gauge(encoder, "macrotick_entity_threads", "Threads that are bound", threads)
}

/// The counters of groups with a budget.
fn groups(encoder: &mut DescriptorEncoder, groups: &[GroupStatus]) -> Result<(), Error> {
    // Two groups can have the same name, but not the same directory.
    let label = |group: &GroupStatus| {
        vec![("group", escaped(&group.name)), ("path", escaped(&group.path.display().to_string()))]
    };
    let each = |value: fn(&GroupStatus) -> f64| groups.iter().map(move |group| (label(group), value(group)));
    let usage = each(|group| group.usage_ns as f64 * NS);
    counter(encoder, "macrotick_group_usage_seconds", "Processor time charged to the budgets", usage)?;
    let exhaustions = each(|group| group.exhaustions as f64);
    counter(encoder, "macrotick_group_exhaustions", "Budgets used up", exhaustions)?;
    let throttled = each(|group| group.throttled_ns as f64 * NS);
    counter(encoder, "macrotick_group_throttled_seconds", "Time without budget while threads were ready", throttled)?;
    gauge(encoder, "macrotick_group_threads", "Threads in the group", each(|group| f64::from(group.threads)))?;
    let budgets = groups.iter().flat_map(|group| {
        let of = |(cpu, budget): &(u32, Duration)| {
            (label(group).into_iter().chain([("cpu", cpu.to_string())]).collect(), budget.as_nanos() as f64 * NS)
        };
        group.budgets.iter().map(of).collect::<Vec<_>>()
    });
    gauge(encoder, "macrotick_group_budget_seconds", "Budget in each server period", budgets)
}

fn of_entity(entity: &EntityStatus) -> Labels {
    let kind = if entity.pool { "group" } else { "task" };
    vec![(kind, escaped(&entity.name)), ("cpu", entity.cpus.to_string())]
}

/// Escapes a label: a path of a control group may have any characters.
fn escaped(text: &str) -> String {
    text.replace('\\', r"\\").replace('"', r#"\""#).replace('\n', r"\n")
}

fn counter(
    encoder: &mut DescriptorEncoder,
    name: &str,
    help: &str,
    values: impl IntoIterator<Item = (Labels, f64)>,
) -> Result<(), Error> {
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    for (labels, value) in values {
        ConstCounter::new(value).encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}

fn gauge(
    encoder: &mut DescriptorEncoder,
    name: &str,
    help: &str,
    values: impl IntoIterator<Item = (Labels, f64)>,
) -> Result<(), Error> {
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for (labels, value) in values {
        ConstGauge::new(value).encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}

fn single(encoder: &mut DescriptorEncoder, name: &str, help: &str, value: f64) -> Result<(), Error> {
    ConstGauge::new(value).encode(encoder.encode_descriptor(name, help, None, MetricType::Gauge)?)
}

#[cfg(test)]
mod tests {
    use macrotick_node::TableStatus;

    use super::*;

    fn status() -> Status {
        let entity = |name: &str, pool| EntityStatus {
            name: name.into(),
            pool,
            cpus: [0, 2].into_iter().collect(),
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
            runtime_ns: 1_500_000_000,
            missed_in_row: 0,
            stopped: false,
            lateness: (!pool).then_some(LatenessStatus { latest_ns: 250, worst_ns: 3_000_000 }),
        };
        let entities = vec![entity("control", false), entity("web", true)];
        let (clock, cycle_ns, epoch_ns, lead_ns) = ("CLOCK_MONOTONIC", 20_000_000, 0, 0);
        let table = TableStatus { running: true, clock, cycle_ns, epoch_ns, lead_ns, grid: None, entities };
        let group = GroupStatus {
            name: "a\"b\\c\nd".into(),
            path: "/sys/fs/cgroup/web".into(),
            priority: 9,
            budgets: vec![(0, Duration::from_micros(400)), (2, Duration::from_micros(400))],
            cpus: [0, 2].into_iter().collect(),
            threads: 5,
            usage_ns: 7_000_000,
            exhaustions: 3,
            throttled_ns: 1000,
            astray: None,
        };
        let (owner, deployment, settings) = (None, None, Vec::new());
        let (groups, problems) = (vec![group], vec!["a problem".into()]);
        Status { version: Status::VERSION, table: Some(table), owner, deployment, groups, settings, problems }
    }

    #[test]
    fn counters_have_names_labels_and_units() {
        let text = text(Some(status()));
        for line in [
            "# TYPE macrotick_jobs_missed counter",
            "macrotick_up 1.0",
            "macrotick_problems 1.0",
            "macrotick_table_running 1.0",
            "macrotick_jobs_released_total{task=\"control\",cpu=\"0, 2\"} 12.0",
            "macrotick_jobs_missed_total{task=\"control\",cpu=\"0, 2\"} 1.0",
            "macrotick_task_lateness_seconds{task=\"control\",cpu=\"0, 2\"} 2.5e-7",
            "macrotick_task_worst_lateness_seconds{task=\"control\",cpu=\"0, 2\"} 0.003",
            "macrotick_windows_runtime_seconds_total{group=\"web\",cpu=\"0, 2\"} 1.5",
            "macrotick_group_exhaustions_total{group=\"a\\\"b\\\\c\\nd\",path=\"/sys/fs/cgroup/web\"} 3.0",
            "macrotick_group_budget_seconds{group=\"a\\\"b\\\\c\\nd\",path=\"/sys/fs/cgroup/web\",cpu=\"2\"} 0.0004",
            "# EOF",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        assert!(!text.contains("jobs_released_total{group"), "a pool has no jobs");
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            assert!(line.rsplit_once(' ').is_some_and(|(_, value)| value.parse::<f64>().is_ok()), "{line}");
        }
    }

    /// The dashboard asks for metrics that exist.
    #[test]
    fn the_dashboard_has_these_metrics() {
        let dashboard = include_str!("../../../packaging/grafana-dashboard.json");
        let text = text(Some(status()));
        let named = |word: &&str| word.starts_with("macrotick_");
        let words = dashboard.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(named);
        let words: std::collections::BTreeSet<&str> = words.collect();
        assert!(words.len() >= 9, "{words:?}");
        for word in words {
            assert!(text.lines().any(|line| line.split(['{', ' ']).next() == Some(word)), "{word}");
        }
    }

    #[test]
    fn a_host_without_the_class_is_down() {
        let text = text(None);
        assert!(text.contains("macrotick_up 0.0\n") && !text.contains("jobs"), "{text}");
    }
}
