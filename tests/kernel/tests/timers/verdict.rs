//! Checks the programs' output, and describes their problems.

use std::collections::BTreeSet;

use serde_json::Value;

use super::program::{Latency, Program, Wants};

/// A latency that is absurd on any kernel, in microseconds.
const ABSURD_US: i64 = 1_000_000;

/// The end of a program, and its output.
pub struct Said<'a> {
    pub shield: &'a str,
    pub name: &'a str,
    pub status: i32,
    pub text: &'a str,
}

/// Parses the output of `run.sh` for each program, in order.
pub fn parse(output: &str) -> Vec<Said<'_>> {
    let parts = output.split("\n== ").filter_map(|part| part.strip_prefix("== ").unwrap_or(part).split_once('\n'));
    let said = |(head, text)| {
        let mut words = str::split(head, ' ');
        let (shield, name) = (words.next()?, words.next()?);
        Some(Said { shield, name, status: words.next()?.parse().ok()?, text })
    };
    parts.filter_map(said).collect()
}

/// Judges a program's output. The error describes the problem. Bounds only count where the clock is exact.
pub fn judge(program: &Program, said: &Said<'_>, exact: bool) -> Result<(), String> {
    let status = |wanted| match said.status == wanted {
        true => Ok(()),
        false => Err(format!("exit status {} instead of {wanted}", said.status)),
    };
    match program.wants {
        Wants::Parts { status: wanted, failed, skipped } => {
            let parts = Parts::read(said.text);
            same("fails", &parts.failed, failed)?;
            same("skipped", &parts.skipped, skipped)?;
            parts.are_complete()?;
            status(wanted)
        }
        Wants::Cycles { cycles, latency } => {
            status(0)?;
            each_thread(said.text, |number, thread| {
                let least = if number == 0 { cycles } else { 1 };
                at_least(&thread["cycles"], least)?;
                bounded(thread, latency, exact)
            })
        }
        Wants::Samples { samples, latency } => {
            status(0)?;
            each_thread(said.text, |_, thread| {
                at_least(&thread["sender"]["samples"], samples)?;
                bounded(&thread["receiver"], latency, exact)
            })
        }
        Wants::Says(text) => {
            status(0)?;
            said.text.contains(text).then_some(()).ok_or_else(|| format!("it does not say {text:?}"))
        }
        Wants::Counters => {
            let served = served(said.text).ok_or("no counters")?;
            let right = if said.shield == "1" { served > 0 } else { served == 0 };
            right.then_some(()).ok_or_else(|| format!("{served} timers served"))
        }
    }
}

/// The parts of a selftest in the Test Anything Protocol.
#[derive(Default)]
struct Parts<'a> {
    planned: usize,
    told: usize,
    failed: BTreeSet<&'a str>,
    skipped: BTreeSet<&'a str>,
}

impl<'a> Parts<'a> {
    fn read(text: &'a str) -> Parts<'a> {
        let mut parts = Parts::default();
        for line in text.lines() {
            if let Some(count) = line.strip_prefix("1..").and_then(|count| count.parse::<usize>().ok()) {
                parts.planned += count;
            } else if let Some(name) = line.strip_prefix("not ok ").map(without_number) {
                parts.told += 1;
                parts.failed.insert(name);
            } else if let Some(name) = line.strip_prefix("ok ").map(without_number) {
                parts.told += 1;
                parts.skipped.extend(name.strip_prefix("# SKIP ").map(str::trim));
            } else if line.contains("[UNSUPPORTED]") {
                parts.skipped.extend(line.split_whitespace().next());
            }
        }
        parts
    }

    fn are_complete(&self) -> Result<(), String> {
        let whole = self.planned == self.told;
        whole.then_some(()).ok_or_else(|| format!("{} parts of {} told", self.told, self.planned))
    }
}

fn without_number(line: &str) -> &str {
    line.trim_start_matches(|c: char| c.is_ascii_digit()).trim()
}

fn same(what: &str, found: &BTreeSet<&str>, wanted: &[&str]) -> Result<(), String> {
    let wanted: BTreeSet<&str> = wanted.iter().copied().collect();
    match *found == wanted {
        true => Ok(()),
        false => Err(format!("{what}: {found:?} instead of {wanted:?}")),
    }
}

/// Applies a check to each thread of a program's results in JSON, which follow its other output.
fn each_thread(text: &str, check: impl Fn(usize, &Value) -> Result<(), String>) -> Result<(), String> {
    let json = text.find("\n{").map(|at| &text[at..]).ok_or("no results")?;
    let results: Value = serde_json::from_str(json).map_err(|error| format!("results: {error}"))?;
    let threads = results["thread"].as_object().filter(|threads| !threads.is_empty()).ok_or("no threads")?;
    for (name, thread) in threads {
        let number = name.parse().map_err(|_| format!("thread {name}"))?;
        check(number, thread).map_err(|problem| format!("thread {name}: {problem}"))?;
    }
    Ok(())
}

fn at_least(count: &Value, least: u64) -> Result<(), String> {
    match count.as_u64().is_some_and(|count| count >= least) {
        true => Ok(()),
        false => Err(format!("{count} cycles of {least}")),
    }
}

fn bounded(latencies: &Value, latency: Latency, exact: bool) -> Result<(), String> {
    let bound = match latency {
        Latency::Any => return Ok(()),
        Latency::AtMost(bound) if exact => bound,
        Latency::AtMost(_) => ABSURD_US,
    };
    let (min, max) = (latencies["min"].as_i64().unwrap_or(-1), latencies["max"].as_i64().unwrap_or(i64::MAX));
    let right = 0 <= min && min <= max && max <= bound;
    right.then_some(()).ok_or_else(|| format!("latencies from {min} to {max} us, at most {bound} wanted"))
}

/// Returns how many timers all CPUs have served: the sum of the third column.
fn served(text: &str) -> Option<u64> {
    let lines = text.lines().skip(1).filter(|line| !line.is_empty());
    lines.map(|line| line.split_whitespace().nth(2)?.parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(status: i32, text: &str) -> Said<'_> {
        Said { shield: "1", name: "x", status, text }
    }

    #[test]
    fn programs_are_told_apart() {
        let output = "== 0 a 0\nok\n\n== 1 b-c 137\nKilled\n== not a head\n";
        let parsed = parse(output);
        let heads: Vec<_> = parsed.iter().map(|one| (one.shield, one.name, one.status)).collect();
        assert_eq!(heads, [("0", "a", 0), ("1", "b-c", 137)]);
        assert_eq!(parsed[0].text, "ok\n");
    }

    #[test]
    fn parts_must_fail_and_skip_as_expected() {
        let program = Program::selftest("x", "./x", 1).fails(&["b"]).skips(&["c"]);
        let text = "TAP version 13\n1..3\nok 1 a\nnot ok 2 b\nok 3 # SKIP c   \n";
        assert_eq!(judge(&program, &said(1, text), true), Ok(()));
        assert!(judge(&program, &said(0, text), true).is_err(), "status");
        assert!(judge(&program, &said(1, &text.replace("not ok", "ok")), true).is_err(), "passes");
        assert!(judge(&program, &said(1, &text.replace("ok 1 a", "ok 1 # SKIP a")), true).is_err(), "skips more");
        assert!(judge(&program, &said(1, &text.replace("ok 1 a\n", "")), true).is_err(), "tells less");
    }

    #[test]
    fn latencies_must_be_complete_and_within_their_bounds() {
        let wants = Wants::Cycles { cycles: 10, latency: Latency::AtMost(20) };
        let program = Program::rttest("x", "x", wants);
        let text = |cycles, min, max| {
            format!("T: 0\n{{\"thread\": {{\"0\": {{\"cycles\": {cycles}, \"min\": {min}, \"max\": {max}}}}}}}\n")
        };
        let ok = |text: &str, exact| judge(&program, &said(0, text), exact).is_ok();
        assert!(ok(&text(10, 1, 20), true));
        assert!(!ok(&text(9, 1, 20), true));
        assert!(!ok(&text(10, -1, 20), false));
        assert!(!ok(&text(10, 1, 21), true));
        assert!(ok(&text(10, 1, 21), false));
        assert!(!ok("T: 0\n", true));
    }

    #[test]
    fn counters_show_that_it_was_on() {
        let program = Program::rttest("x", "x", Wants::Counters);
        let text = |served| format!("cpu pending served deferred masked stopped moved\n0 1 {served} 0 0 0 0\n\n");
        assert!(judge(&program, &said(0, &text(3)), true).is_ok());
        assert!(judge(&program, &said(0, &text(0)), true).is_err());
        let off = |served| judge(&program, &Said { shield: "0", ..said(0, &text(served)) }, true);
        assert!(off(0).is_ok() && off(3).is_err());
    }
}
