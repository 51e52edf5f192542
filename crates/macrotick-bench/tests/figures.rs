//! The figures in README and documents equal the figures.json of the results.
//!
//! Each claim is the text with the figures in it, made from the files. Its document must contain it; line breaks do not
//! matter. After a new publication of a bench, this test lists the sentences that are no longer true.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The figures of a bench.
struct Figures(Vec<(String, String, f64)>);

impl Figures {
    fn of(bench: &str) -> Figures {
        let path = repository().join("docs/results").join(bench).join("figures.json");
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let all: Vec<BTreeMap<String, Value>> = serde_json::from_str(&text).unwrap();
        let word = |one: &BTreeMap<String, Value>, key: &str| one[key].as_str().unwrap().to_owned();
        let read =
            |one: &BTreeMap<String, Value>| Some((word(one, "figure"), word(one, "case"), one["value"].as_f64()?));
        Figures(all.iter().filter_map(read).collect())
    }

    fn one(&self, figure: &str, case: &str) -> f64 {
        let found = self.0.iter().find(|(name, of, _)| name == figure && of == case);
        found.unwrap_or_else(|| panic!("no figure `{figure}` of `{case}`")).2
    }

    /// Returns the values of all selected cases.
    fn all(&self, figure: &str, is_meant: impl Fn(&str) -> bool) -> Vec<f64> {
        let found: Vec<f64> = self
            .0
            .iter()
            .filter(|(name, case, _)| name == figure && is_meant(case))
            .map(|(.., value)| *value)
            .collect();
        assert!(!found.is_empty(), "no figure `{figure}`");
        found
    }

    fn least(&self, figure: &str, is_meant: impl Fn(&str) -> bool) -> f64 {
        self.all(figure, is_meant).into_iter().fold(f64::INFINITY, f64::min)
    }

    fn most(&self, figure: &str, is_meant: impl Fn(&str) -> bool) -> f64 {
        self.all(figure, is_meant).into_iter().fold(f64::NEG_INFINITY, f64::max)
    }
}

/// Formats a value to two significant figures, as a text does after "about".
fn about(value: f64) -> String {
    let unit = 10f64.powf(value.log10().floor() - 1.0);
    format!("{:.0}", (value / unit).round() * unit)
}

/// Returns the cells of a row of README's table; lateness in microseconds.
fn response_row(response: &Figures, name: &str, case: &str, paper: &str) -> String {
    let of = |figure: &str| response.one(figure, case);
    let digits = if of("lateness.mean") > 10.0 { 1 } else { 2 };
    let lateness = ["mean", "std", "max"].map(|what| format!("{:.digits$}", of(&format!("lateness.{what}"))));
    let cells = lateness.into_iter().chain([format!("{:.0}", of("misses"))]);
    let bold = if name.starts_with('*') { "**" } else { "" };
    let cells: String = cells.map(|cell| format!("{bold}{cell}{bold} | ")).collect();
    format!("| {name} | {cells}{paper}")
}

fn of_readme() -> Vec<String> {
    let (response, lead, cost, shield) =
        (Figures::of("response"), Figures::of("lead"), Figures::of("cost"), Figures::of("timershield"));
    let (leads, tt) = (|case: &str| case.ends_with(": tt, lead"), |case: &str| case.ends_with(": tt"));
    let spread = lead.0.iter().filter(|(name, case, _)| name == "lateness.max" && leads(case));
    let spread = spread.map(|(_, case, max)| max - lead.one("lateness.min", case)).fold(0.0, f64::max);
    // The handler skips windows of entities without threads there.
    let passes = |case: &str| case.starts_with("nothing changes") || case.starts_with("the only job");
    let picked = |case: &str| !case.starts_with("nothing changes");
    let more = |case: &str| shield.one("longest response, synchronised: more beside 100 than beside 1", case);
    assert!(more("on").abs() < 0.1, "TimerShield: {}", more("on"));
    let mut claims = vec![
        format!(
            "a job starts {:.2} to {:.2} us after this instant. The starts of a run lie within {spread:.2} us. Without a \
             lead it starts {:.1} to {:.1} us after it",
            lead.least("lateness.min", leads),
            lead.most("lateness.max", leads),
            // Rounded down and up, so both ends are inside.
            (lead.least("lateness.min", tt) * 10.0).floor() / 10.0,
            lead.most("lateness.max", tt),
        ),
        format!(
            "The class's part of the pick takes {:.0} to {:.0}",
            cost.least("own pick.min", picked),
            cost.most("own pick.max", picked)
        ),
        format!(
            "The interrupt handler takes about {} to {} instructions, and at most {} where it skips windows of entities \
             without threads",
            about(cost.least("handler.mean", |case| !passes(case))),
            about(cost.most("handler.max", |case| !passes(case))),
            about(cost.most("handler.max", |_| true)),
        ),
        format!(
            "lengthen its longest response by {:.0} us on the pristine kernel, compared with one such task",
            more("pristine")
        ),
    ];
    for (name, case, paper) in [
        ("SCHED_OTHER", "other", "67.4, 42.7"),
        ("SCHED_FIFO", "fifo", ""),
        ("SCHED_DEADLINE", "deadline", ""),
        ("user-space dispatcher", "user", "25.5, 2.8"),
        ("**SCHED_TT**", "kernel", "7.7, 1.7"),
    ] {
        claims.push(response_row(&response, name, case, paper));
    }
    claims.extend(overrun_rows());
    claims
}

/// Returns the rows of README's first table.
fn overrun_rows() -> Vec<String> {
    let overrun = Figures::of("overrun");
    let row = |(name, case): (&str, &str)| {
        let (misses, jobs) = (overrun.one("misses of the others", case), overrun.one("jobs of the others", case));
        assert!((jobs - 10_800.0).abs() < 0.5, "{jobs} jobs");
        let spread = overrun.one("worst start spread of the others", case);
        let digits = if spread < 0.1 { 2 } else { 1 };
        let bold = if name.starts_with('*') { "**" } else { "" };
        format!("| {name} | {bold}{misses:.0}{bold} | {bold}{spread:.digits$} us{bold} |")
    };
    let rows = [
        ("SCHED_FIFO, at the plan's instants", "SCHED_FIFO, at the plan's instants"),
        ("SCHED_DEADLINE", "SCHED_DEADLINE"),
        ("user-space dispatcher", "user-space dispatcher"),
        ("**SCHED_TT**", "SCHED_TT"),
        ("**SCHED_TT with a lead**", "SCHED_TT, lead"),
    ];
    rows.map(row).to_vec()
}

fn of_timershield() -> Vec<String> {
    let shield = Figures::of("timershield");
    let row = |text: &str, figure: &str, tasks: u32| {
        let of = |kernel: &str| shield.one(figure, &format!("{tasks} lower tasks, {kernel}"));
        format!("{text} | {:.0} | {:.0} | {:.0} |", of("pristine"), of("off"), of("on"))
    };
    let more = |figure: &str, case: &str| shield.one(&format!("{figure}: more than on the pristine kernel"), case);
    let lowest = |between: u32| more(&format!("mean response of the lowest task, {between} in between"), "on");
    let (sleep, switch) = ("a sleep's timer, enqueue and expiry", "a switch that leaves the event device alone");
    vec![
        row("alone on its CPU: `enqueue_hrtimer()`", "enqueue.p50", 0),
        row("alone on its CPU: `hrtimer_interrupt()` to `hrtimer_wakeup()`", "expiry.p50", 0),
        row("alone on its CPU: a switch, including 23 of TimerShield's own", "switch.p50", 0),
        row("beside 50 lower tasks: `enqueue_hrtimer()`", "enqueue.p50", 50),
        row("beside 50 lower tasks: `hrtimer_interrupt()` to `hrtimer_wakeup()`", "expiry.p50", 50),
        row("beside 50 lower tasks: a switch, 95th percentile, which reprograms the event device", "switch.p95", 50),
        format!("| a sleep, alone on its CPU | 120 instructions | {:.0} | met |", more(sleep, "on")),
        format!(
            "| a switch | 40 instructions | {:.0}, of which `SCHED_TT` and `SCHED_DS` add {:.0} | missed |",
            more(switch, "on"),
            more(switch, "off")
        ),
        format!(
            "{:.1} % with one task in between, {:.1} % with 30, {:.1} % with 50",
            lowest(1),
            lowest(30),
            lowest(50)
        ),
    ]
}

#[test]
fn documents_say_what_was_measured() {
    let mut wrong = Vec::new();
    for (document, claims) in [("README.md", of_readme()), ("docs/explanation/timershield.md", of_timershield())] {
        let text = fs::read_to_string(repository().join(document)).unwrap();
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let missing = claims.into_iter().filter(|claim| !text.contains(claim.trim_end()));
        wrong.extend(missing.map(|claim| format!("{document} does not say: {claim}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
