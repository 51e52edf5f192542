//! Programs measured from outside, on this host.
//!
//! The tests need root. They are reported as skipped without it.

use std::process::{Command, Output, Stdio};
use std::time::Duration;

use macrotick_host::sys::{self, SchedAttr, Standing};
use macrotick_model::Instant;
use serde_json::Value;

const PERIOD_NS: i64 = 10_000_000;
const WORK: Duration = Duration::from_millis(1);
/// The variable that makes [`ticks`] the measured program.
const TICKS: &str = "MACROTICK_TICKS";

/// Computes for 1 ms in each 10 ms, this many times. SCHED_FIFO keeps other programs of a busy host out.
fn tick(times: i64) {
    let _ = sys::set_sched_attr(0, &SchedAttr::new(Standing::Fifo(50), false));
    let begin = sys::now().as_nanos();
    for job in 0..times {
        sys::sleep_until(Instant::from_nanos(begin + job * PERIOD_NS));
        let work = std::time::Instant::now();
        while work.elapsed() < WORK {}
    }
}

/// The measured program of another test. Alone it is a short one.
#[test]
fn ticks() {
    tick(std::env::var(TICKS).ok().and_then(|times| times.parse().ok()).unwrap_or(3));
}

fn measure(words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_macrotick"));
    command.arg("measure").args(words).stdin(Stdio::null()).env(TICKS, "1000").output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Whether this user may see the events of the scheduler. If not, the test says so and ends.
fn may_measure() -> bool {
    let may = sys::user() == 0;
    if !may {
        eprintln!("skipped: needs root");
    }
    may
}

/// Measures a thread of this process, and returns the fault of the result.
fn measure_a_thread() -> Result<(), String> {
    let ticker = std::thread::Builder::new().name("ticker".into()).spawn(|| tick(350)).unwrap();
    let output = measure(&["--pid", &std::process::id().to_string(), "--for", "2s", "--json"]);
    ticker.join().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let measured: Value = serde_json::from_slice(&output.stdout).unwrap();
    let threads = measured["threads"].as_array().unwrap();
    let thread = threads.iter().find(|thread| thread["name"] == "ticker").ok_or(format!("{measured:#}"))?;
    let number = |part: &str, key: &str| thread[part][key].as_i64().unwrap_or(0);
    let is_right = (number("period", "length_ns") - PERIOD_NS).abs() < PERIOD_NS / 100
        && thread["jobs"].as_i64() > Some(150)
        && (500_000..2_000_000).contains(&number("execution", "median_ns"));
    is_right.then_some(()).ok_or(format!("{thread:#}"))
}

/// Other tests on the host may take the time of the thread, so it has three attempts.
#[test]
fn a_thread_of_a_running_process_has_its_period() {
    if !may_measure() {
        return;
    }
    let faults: Vec<String> = (0..3).map_while(|_| measure_a_thread().err()).collect();
    assert!(faults.len() < 3, "{}", faults.join("\n"));
}

#[test]
fn the_description_of_a_program_passes_the_check() {
    if !may_measure() {
        return;
    }
    let file = concat!(env!("CARGO_TARGET_TMPDIR"), "/measured.yaml");
    let own = std::env::current_exe().unwrap();
    let program = [own.to_str().unwrap(), "--exact", "ticks"];
    // An idle host's kernel may leave out that the program began to run, so there are three attempts.
    let mut attempts = (0..3).map(|_| measure(&[&["--for", "3s", "-o", file, "--"][..], &program].concat()));
    let output = attempts.find(|output| output.status.success()).expect("a description");
    let told = text(&output.stderr);
    assert!(told.contains("\nthread ticks (") && told.contains("\n  period "), "{told}");
    let described = std::fs::read_to_string(file).unwrap();
    assert!(described.contains("name: ticks"), "{described}");
    let check = Command::new(env!("CARGO_BIN_EXE_macrotick")).args(["check", file]).output().unwrap();
    assert_eq!(check.status.code(), Some(0), "{described}\n{}{}", text(&check.stdout), text(&check.stderr));
}

#[test]
fn what_cannot_be_measured_is_named() {
    if !may_measure() {
        return;
    }
    for (words, code, reason) in [
        (&["--pid", "4194303"][..], 2, "there is no process 4194303"),
        (&["--", "no-such-program"], 2, "cannot execute `no-such-program`"),
        (&["-o", "-", "--", "true"], 2, "`-`"),
    ] {
        let output = measure(words);
        assert_eq!(output.status.code(), Some(code), "{words:?}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains(reason), "{words:?}: {}", text(&output.stderr));
    }
    // A process that never waits has no jobs.
    let mut busy = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(100));
    let output = measure(&["--pid", &busy.id().to_string(), "--for", "200ms"]);
    busy.kill().and_then(|()| busy.wait()).unwrap();
    let told = text(&output.stderr);
    assert!(output.status.code() == Some(1) && told.contains("nothing to tell"), "{output:?}");
}

/// A killed measurement leaves its instance of tracefs, and the next one removes it.
#[test]
fn remains_of_killed_measurements_are_removed() {
    if !may_measure() {
        return;
    }
    let of = |process: u32| format!("/sys/kernel/tracing/instances/macrotick-measure-{process}");
    let exists = |process: u32| std::path::Path::new(&of(process)).exists();
    let mut command = Command::new(env!("CARGO_BIN_EXE_macrotick"));
    let own = std::process::id().to_string();
    let mut killed = command.args(["measure", "--pid", &own]).stdout(Stdio::null()).spawn().unwrap();
    let begin = std::time::Instant::now();
    while !exists(killed.id()) {
        assert!(begin.elapsed() < Duration::from_secs(20), "no instance");
        std::thread::sleep(Duration::from_millis(5));
    }
    killed.kill().and_then(|()| killed.wait()).unwrap();
    assert!(exists(killed.id()), "a killed process removes nothing");
    measure(&["--pid", &own, "--for", "100ms"]);
    assert!(!exists(killed.id()), "it is still there");
}
