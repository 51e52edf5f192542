//! The results of a client: JSON as `cyclictest --json` has it, with what a network path has on top, and a table.

use std::collections::BTreeMap;

use macrotick_model::Duration;
use macrotick_report::table::{toned, Table, Tone};
use schemars::JsonSchema;
use serde::Serialize;

use crate::client::{Course, Outcome};
use crate::hello::Common;
use crate::ledger::Counts;
use crate::packet::ClockName;
use crate::samples::Sample;
use crate::times::{Histogram, Times};
use crate::trace::{Passed, POINTS};

/// The version of the document.
const VERSION: u32 = 1;

/// The kernel and the machine, as `uname(2)` tells them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SysInfo {
    /// The kernel.
    pub sysname: String,
    /// The host.
    pub nodename: String,
    /// The release of the kernel.
    pub release: String,
    /// The version of the kernel.
    pub version: String,
    /// The machine.
    pub machine: String,
    /// 1 for a kernel with PREEMPT_RT, else 0.
    pub realtime: u8,
}

/// The judged time of all packets in the form of a thread of `cyclictest`: whole microseconds, rounded down.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Thread {
    /// Packets per microsecond; empty bins are left out.
    pub histogram: BTreeMap<u64, u64>,
    /// Packets with this time.
    pub cycles: u64,
    /// The smallest one.
    pub min: i64,
    /// The largest one.
    pub max: i64,
    /// The mean.
    pub avg: f64,
    /// The CPU of the client; `None`: any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<u32>,
}

/// The options of the run that matter for its results.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(deny_unknown_fields)]
pub struct Setup {
    /// The server.
    pub destination: String,
    /// `socket`, `xdp-skb` or `xdp-native`, with `-zero-copy` if the device reads and writes the frames itself.
    pub path: String,
    /// Whether the packets went one way.
    pub one_way: bool,
    /// Bytes of UDP payload.
    pub size: usize,
    /// The cycle, in ns; `None`: the jobs of a task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval_ns: Option<i64>,
    /// Packets per cycle.
    pub burst: u32,
    /// The deadline after the nominal instant, in ns.
    pub deadline_ns: i64,
    /// The clock of the nominal instants.
    pub clock: ClockName,
}

/// The times of a kernel event, after the nominal instant.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(deny_unknown_fields)]
pub struct Event {
    /// Whether the answer met it, and not the packet itself.
    pub on_the_way_back: bool,
    /// The times.
    pub times: Times,
}

/// The results of a client.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Results {
    /// The version of this document.
    pub file_version: u32,
    /// The command line.
    pub cmdline: String,
    /// The begin of the run, in ns of `CLOCK_REALTIME`.
    pub start_time_ns: i64,
    /// The end of the run, in ns of `CLOCK_REALTIME`.
    pub end_time_ns: i64,
    /// 0 if no packet missed its deadline, else 1.
    pub return_code: u8,
    /// The kernel and the machine.
    pub sysinfo: SysInfo,
    /// The number of threads: 1.
    pub num_threads: u32,
    /// The width of a bin of the histogram, in ns.
    pub resolution_in_ns: u32,
    /// The judged time, under the name `0`: the round trip, or for one way the time to the server.
    pub thread: BTreeMap<String, Thread>,
    /// The options of the run.
    pub setup: Setup,
    /// Whether one-way times are known, and why.
    pub common_clock: Common,
    /// The same in words.
    pub common_clock_about: String,
    /// The counts.
    pub counts: Counts,
    /// The statistics of every known time.
    pub times: Vec<Times>,
    /// Judged times beyond the histogram.
    pub histogram_overflow: u64,
    /// Judged times below zero: packets that came before their nominal instant.
    pub histogram_below: u64,
    /// The kernel's events on the way of the packets.
    pub events: Vec<Event>,
    /// Remarks about this run for the user.
    pub remarks: Vec<String>,
}

/// The circumstances of a run, beside its outcome.
#[derive(Clone, Debug)]
pub struct Circumstances {
    /// The command line.
    pub cmdline: String,
    /// Begin and end of the run, in ns of `CLOCK_REALTIME`.
    pub span_ns: (i64, i64),
    /// The kernel and the machine.
    pub sysinfo: SysInfo,
    /// The CPU of the client.
    pub cpu: Option<u32>,
    /// The server.
    pub destination: String,
    /// The path of the packets.
    pub path: String,
    /// The cycle.
    pub interval: Option<Duration>,
    /// The bins of the histogram.
    pub bins: usize,
    /// Remarks for the user.
    pub remarks: Vec<String>,
}

impl Results {
    /// Computes the results of a run.
    pub fn new(course: &Course, outcome: &Outcome, circumstances: Circumstances) -> Results {
        let Circumstances { cmdline, span_ns, sysinfo, cpu, destination, path, interval, bins, mut remarks } =
            circumstances;
        let judged = || outcome.samples.iter().filter_map(|sample| sample.end(course.one_way));
        let histogram = Histogram::of(judged(), bins);
        if outcome.server_restarted {
            remarks.push("the server was restarted during the run: it lost its records from before".into());
        }
        if course.one_way && !outcome.common.holds() {
            remarks.push("without a common clock no one-way packet can be late: only its loss is known".into());
        }
        let setup = Setup {
            destination,
            path,
            one_way: course.one_way,
            size: course.size,
            interval_ns: interval.map(Duration::as_nanos),
            burst: course.burst,
            deadline_ns: course.deadline.as_nanos(),
            clock: course.clock,
        };
        Results {
            file_version: VERSION,
            cmdline,
            start_time_ns: span_ns.0,
            end_time_ns: span_ns.1,
            return_code: u8::from(outcome.counts.misses > 0),
            sysinfo,
            num_threads: 1,
            resolution_in_ns: 1_000,
            thread: thread(judged().collect(), &histogram, cpu).into_iter().map(|one| ("0".into(), one)).collect(),
            setup,
            common_clock: outcome.common,
            common_clock_about: outcome.common.words().into(),
            counts: outcome.counts,
            times: Times::all(&outcome.samples),
            histogram_overflow: histogram.overflow,
            histogram_below: histogram.below,
            events: events(&outcome.trace, &outcome.samples),
            remarks,
        }
    }

    /// Whether no packet missed its deadline.
    pub fn holds(&self) -> bool {
        self.return_code == 0
    }

    /// Returns the results as JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("numbers and texts") + "\n"
    }

    /// Returns the results for people, at most `width` columns wide if that is possible.
    pub fn table(&self, colour: bool, width: usize) -> String {
        let head = ["us", "count", "min", "mean", "p50", "p90", "p99", "p99.9", "max", "sd"];
        let mut table = Table::new(1, &head);
        for times in &self.times {
            table.rows.push(row(times.name.to_owned(), times));
        }
        for event in &self.events {
            let way = if event.on_the_way_back { "back: " } else { "there: " };
            table.rows.push(row(format!("{way}{}", event.times.name), &event.times));
        }
        let counts = self.counts_table().text(colour, width);
        let notes = std::iter::once(&self.common_clock_about).chain(&self.remarks);
        let notes: String = notes.map(|note| format!("{note}\n")).collect();
        format!("{}\n{counts}\n{notes}", table.text(colour, width))
    }

    fn counts_table(&self) -> Table {
        let counts = &self.counts;
        let bad = |count: u64| toned(count.to_string(), if count > 0 { Tone::Bad } else { Tone::Plain });
        let mut table = Table::new(1, &["packets", "count", "meaning"]);
        let deadline = Duration::from_nanos(self.setup.deadline_ns);
        let rows = [
            ("sent", counts.sent.to_string().into(), "the kernel took them".to_owned()),
            ("received", counts.received.to_string().into(), "came at least once".into()),
            ("misses", bad(counts.misses), format!("lost, or later than {deadline} after the nominal instant")),
            ("lost", bad(counts.lost), "did not come".into()),
            ("late", bad(counts.late), "came after the deadline".into()),
            ("premature", bad(counts.premature), "left the driver, or arrived, before the nominal instant".into()),
            ("duplicate", counts.duplicate.to_string().into(), "further copies".into()),
            ("reordered", counts.reordered.to_string().into(), "came after one that was sent later".into()),
            ("foreign", counts.foreign.to_string().into(), "no packets of this run, ignored".into()),
            ("unsent", bad(counts.unsent), "the queue was full, or the interface down".into()),
            ("refused", bad(counts.refused), "no program listened at the port".into()),
            ("launch-missed", bad(counts.launch_missed), "dropped because of their launch time".into()),
            ("skipped-cycles", bad(counts.skipped_cycles), "the client woke up a cycle or more too late".into()),
            ("clock-steps", bad(counts.clock_steps), "a clock was set".into()),
        ];
        for (index, (name, count, meaning)) in rows.into_iter().enumerate() {
            // The first three always; the others if there are any.
            if index < 3 || count.text != "0" {
                table.rows.push(vec![name.into(), count, meaning.into()]);
            }
        }
        let longest = table.rows.iter().map(|row| row[2].text.chars().count()).max().unwrap_or(0);
        for row in &mut table.rows {
            row[2].text = format!("{:<longest$}", row[2].text);
        }
        table.head[2] = format!("{:<longest$}", table.head[2]);
        table
    }
}

fn row(name: String, times: &Times) -> Vec<macrotick_report::table::Cell> {
    let us = |ns: i64| format!("{}{}.{:03}", if ns < 0 { "-" } else { "" }, ns.abs() / 1_000, ns.abs() % 1_000);
    let mean = |tenths: macrotick_report::stats::Tenths| us((tenths.as_ns_f64()).round() as i64);
    let texts = [
        name,
        times.count.to_string(),
        us(times.min_ns),
        mean(times.mean_ns),
        us(times.p50_ns),
        us(times.p90_ns),
        us(times.p99_ns),
        us(times.p999_ns),
        us(times.max_ns),
        mean(times.deviation_ns),
    ];
    texts.into_iter().map(Into::into).collect()
}

fn thread(values: Vec<i64>, histogram: &Histogram, cpu: Option<u32>) -> Option<Thread> {
    let times = Times::of("0", "", values)?;
    let filled = histogram.bins.iter().enumerate().filter(|(_, count)| **count > 0);
    Some(Thread {
        histogram: filled.map(|(us, count)| (us as u64, *count)).collect(),
        cycles: times.count,
        min: times.min_ns.div_euclid(1_000),
        max: times.max_ns.div_euclid(1_000),
        avg: (times.mean_ns.as_us_f64() * 100.0).round() / 100.0,
        cpu,
    })
}

/// Returns the times of the kernel events.
fn events(trace: &[Passed], samples: &[Sample]) -> Vec<Event> {
    let mut values: BTreeMap<(bool, usize), Vec<i64>> = BTreeMap::new();
    for one in trace {
        if let Some(sample) = samples.get(one.sequence as usize) {
            values.entry((one.back, one.point)).or_default().push(one.at - sample.nominal);
        }
    }
    let event = |((on_the_way_back, point), values): ((bool, usize), Vec<i64>)| {
        let times = Times::of(POINTS[point], "nominal to this kernel event", values)?;
        Some(Event { on_the_way_back, times })
    };
    values.into_iter().filter_map(event).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_count_from_the_nominal_instant_of_each_packet() {
        let passed = |sequence, back, point, at| Passed { sequence, back, point, at };
        let trace =
            [passed(0, false, 0, 105), passed(0, true, 0, 120), passed(1, false, 0, 210), passed(9, false, 0, 1)];
        let samples = [Sample::sent(100, 100), Sample::sent(200, 200)];
        let all: Vec<(bool, &str, u64, i64)> = events(&trace, &samples)
            .iter()
            .map(|event| (event.on_the_way_back, event.times.name, event.times.count, event.times.max_ns))
            .collect();
        assert_eq!(all, [(false, "device-queue", 2, 10), (true, "device-queue", 1, 20)]);
    }
}
