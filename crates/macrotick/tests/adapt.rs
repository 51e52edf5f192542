//! Reservations that adapt to unmodified programs, and the options of SCHED_DEADLINE: on this host the refusals, and in
//! the lab the runtimes beside hogs.
//!
//! The tests of this host need root. They are reported as skipped without it.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use macrotick_host::sys;

fn macrotick() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_macrotick"));
    command.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).stdin(Stdio::null());
    command
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// A started program ends with the command.
#[test]
fn programs_without_a_period_are_refused_with_the_reason() {
    let is_possible = || {
        let usual = ["reserve", "--runtime", "1ms", "--period", "100ms", "true"];
        sys::user() == 0 && macrotick().args(usual).output().unwrap().status.success()
    };
    if !is_possible() {
        return eprintln!("skipped: needs root and SCHED_DEADLINE");
    }
    let sleeps = ["sh", "-c", "exec sleep 30"];
    for (words, program, code, said) in [
        (&["--at-most", "5ms"][..], &["true"][..], 1, "error: the program ended after "),
        (
            &["--find-within", "300ms"],
            &sleeps,
            1,
            "error: no thread of the program is periodic: none was found within ",
        ),
        (&["--find-within", "300ms", "--period", "30ms"], &sleeps, 1, "error: no thread of the program wakes up with"),
        (&["--pid", "4194303"], &[], 2, "error: there is no process 4194303"),
        (&["--at-most", "5ms", "--period", "4ms"], &["true"], 2, "error: --at-most 5ms is longer than --period 4ms"),
        (&["--runtime", "6ms", "--at-most", "5ms"], &["true"], 2, "error: --runtime 6ms is longer than --at-most 5ms"),
        (&["--at-most", "5ms"], &["no-such-program"], 2, "error: there is no program `no-such-program` to execute"),
    ] {
        let output = macrotick().args(["reserve", "--adapt"]).args(words).args(program).output().unwrap();
        let told = text(&output);
        assert!(output.status.code() == Some(code) && told.contains(said), "{words:?} {:?}: {told}", output.status);
    }
}

/// Returns the program that is compiled from `adapt/frames.c`.
fn frames() -> String {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("frames");
    static COMPILED: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    let compiled = *COMPILED.get_or_init(|| {
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/adapt/frames.c");
        let mut command = Command::new("cc");
        let status = command.args(["-O2", "-Wall", "-Wextra", "-static", "-o"]).arg(&program).arg(source).status();
        status.expect("a C compiler").success()
    });
    assert!(compiled, "frames.c does not compile");
    program.display().to_string()
}

/// Runs a script in the lab beside six programs that never rest. `$frames` is the program.
fn in_lab(script: &str) -> String {
    let frames = frames();
    let script = format!(
        "frames={frames}; for hog in 1 2 3 4 5 6; do sh -c 'while :; do :; done' & done
        exec 2>&1
        {script}"
    );
    let mut command = macrotick();
    command.args(["lab", "exec", "--shift", "2", "--file", &frames, "--", "/bin/sh", "-c", &script]);
    text(&command.output().unwrap())
}

fn number(text: &str, key: &str) -> i64 {
    let line = text.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_else(|| panic!("no {key} in {text}"));
    line.split(' ').next().unwrap().trim_end_matches("us").parse().unwrap_or_else(|_| panic!("{line}: {text}"))
}

/// Returns the period that was found, in microseconds.
fn period_of(text: &str) -> i64 {
    let found = text
        .split(", with a period of ")
        .nth(1)
        .and_then(|rest| rest.lines().next())
        .unwrap_or_else(|| panic!("{text}"));
    let period: macrotick_model::Duration = found.parse().unwrap_or_else(|_| panic!("{text}"));
    period.as_nanos() / 1000
}

/// Returns the learned runtime in microseconds.
fn learned(text: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix("learned: ")).unwrap_or_else(|| panic!("{text}"));
    let length: macrotick_model::Duration = line.split(' ').next().unwrap().parse().unwrap();
    length.as_secs_f64() * 1e6
}

/// The least runtime is that of the longest jobs, by 2 % of jitter. The description passes `check`.
#[test]
#[ignore = "needs the lab"]
fn one_thread_gets_the_least_runtime_with_which_its_frames_are_on_time() {
    let text = in_lab(
        "(sleep 3; chrt -p $(pidof frames)) &
        macrotick reserve --adapt -o /tmp/frames.yaml -- $frames 41708 9000 2 120; echo \"exit: $?\"
        cat /tmp/frames.yaml; macrotick check /tmp/frames.yaml > /dev/null; echo \"check: $?\"",
    );
    assert_eq!((number(&text, "exit: "), number(&text, "check: ")), (0, 0), "{text}");
    let period = period_of(&text);
    assert!((41_290..=42_125).contains(&period) && text.contains(&format!("period: {period}us")), "{text}");
    let runtime = learned(&text) / (9000.0 * 1.02);
    assert!((1.0..1.05).contains(&runtime), "{runtime}: {text}");
    // The kernel has it, too.
    let times = text.lines().find(|line| line.contains("runtime/deadline/period")).unwrap_or_else(|| panic!("{text}"));
    let given = times.rsplit(' ').next().and_then(|times| times.split('/').next()?.parse::<f64>().ok());
    assert!(given.is_some_and(|given| (1.0..1.05).contains(&(given / 9_180_000.0))), "{text}");
    assert!(number(&text, "late: ") == 0 && number(&text, "frame time: ") <= 41_708 * 105 / 100, "{text}");
}

#[test]
#[ignore = "needs the lab"]
fn a_step_of_the_load_is_followed_within_twenty_periods() {
    let text = in_lab(
        "macrotick reserve --adapt --period 20ms -- $frames 20000 4000 2 160 7000 80; echo \"exit: $?\"
        macrotick reserve --adapt -- sh -c \"$frames 20000 1000 2 120 > /dev/null & sleep 4\" > /tmp/child 2>&1
        echo \"child: $?\"; sed 's/^learned/of the child/' /tmp/child",
    );
    assert!(number(&text, "child: ") == 0 && text.contains(" has ended, and the program goes on"), "{text}");
    assert_eq!(number(&text, "exit: "), 0, "{text}");
    let runtime = learned(&text) / (7000.0 * 1.02);
    assert!((1.0..1.05).contains(&runtime), "{runtime}: {text}");
    // The runtime of before is too short for the first frames after the step.
    assert!((1..=20).contains(&number(&text, "late: ")), "{text}");
}

#[test]
#[ignore = "needs the lab"]
fn the_exit_code_is_that_of_the_program() {
    let text = in_lab(
        "adapt=\"macrotick reserve --adapt --period 20ms --all-threads\"
        $adapt -- sh -c \"$frames 20000 1000 2 60 > /dev/null; exit 7\"; echo \"exit: $?\"
        $adapt -- sh -c \"$frames 20000 1000 2 60 > /dev/null; kill -9 \\$\\$\"; echo \"signal: $?\"
        $adapt -- $frames 20000 1000 2 5000 & command=$!; sleep 3; kill -INT $command; wait $command
        echo \"asked: $?\"",
    );
    let code = |key: &str| number(&text, key);
    assert_eq!((code("exit: "), code("signal: "), code("asked: ")), (7, 128 + 9, 0), "{text}");
}

/// A running process gets its policy back. A runtime that is not admitted is refused, and the old one stays.
#[test]
#[ignore = "needs the lab"]
fn what_is_not_admitted_is_refused_and_a_process_is_as_before() {
    let text = in_lab(
        "macrotick reserve --runtime 60ms --period 100ms -- sleep 1000 & sleep 0.5
        chrt -b 0 $frames 20000 2000 2 500 12000 300 > /tmp/frames & process=$!
        sleep 0.1; chrt -p $process | head -1 > /tmp/before
        macrotick reserve --adapt --pid $process & command=$!
        sleep 8; chrt -p $process | head -1; kill -INT $command; wait $command; echo \"exit: $?\"
        chrt -p $process | head -1 | cmp - /tmp/before && echo as before",
    );
    assert_eq!(number(&text, "exit: "), 0, "{text}");
    assert!(text.contains("SCHED_DEADLINE") && text.contains("as before"), "{text}");
    assert!(text.contains("refused: ") && text.contains("SCHED_DEADLINE has no room"), "{text}");
    // 30 % of the CPU are free.
    assert!((5000.0..=6000.0).contains(&learned(&text)), "{text}");
}

/// The group ends with its program.
#[test]
#[ignore = "needs the lab"]
fn a_group_gets_its_budget() {
    let text = in_lab(
        "(sleep 3; echo \"budget: $(sed s/.*=// /sys/fs/cgroup/macrotick.reserve-*/cpu.ds.budget)\") &
        macrotick reserve --adapt --all-threads --period 40ms -- $frames 40000 9000 2 120; echo \"exit: $?\"
        sleep 1; echo \"groups: $(ls -d /sys/fs/cgroup/macrotick.reserve-* 2> /dev/null | wc -l)\"",
    );
    assert_eq!((number(&text, "exit: "), number(&text, "groups: ")), (0, 0), "{text}");
    let runtime = learned(&text) / (9000.0 * 1.02);
    assert!((1.0..1.1).contains(&runtime), "{runtime}: {text}");
    assert!(number(&text, "frame time: ") <= 42_000, "{text}");
    // It is 23 % of the server period, and a little more for the phase.
    assert!((570..640).contains(&number(&text, "budget: ")), "{text}");
}

/// A thread that never rests has 20 % of the CPU, beside a reservation of 40 % that uses half of it. By reclaiming it gets
/// more. The signal of an overrun can be handled, and ends a program that does not.
#[test]
#[ignore = "needs the lab"]
fn a_greedy_thread_gets_the_rest_by_reclaiming_and_a_signal_at_an_overrun() {
    let text = in_lab(
        r#"reserve="macrotick reserve --period 100ms"
        $reserve --runtime 40ms -- $frames 100000 20000 0 120 > /dev/null 2>&1 & half=$!
        usage() { set -- $(sed 's/.*) //' /proc/$greedy/stat); echo $((${12} + ${13})); }
        now() { cut -d ' ' -f 1 /proc/uptime | tr -d .; }
        for option in "" --reclaim; do
            $reserve --runtime 20ms $option -- sh -c 'while :; do :; done' 2> /dev/null & greedy=$!
            sleep 1; from=$(now); before=$(usage); sleep 4
            echo "greedy$option: $((1000 * ($(usage) - before) / ($(now) - from)))"; kill $greedy; wait $greedy
        done
        wait $half
        over="$reserve --runtime 10ms --overrun-signal -- sh -c"
        echo "handled: $($over 'trap "echo over" XCPU; while [ $((i += 1)) -lt 9000 ]; do :; done' 2> /dev/null | wc -l)"
        timeout 20 $over 'while :; do :; done' 2> /dev/null; echo "unhandled: $?""#,
    );
    let (without, with) = (number(&text, "greedy: "), number(&text, "greedy--reclaim: "));
    // By SCHED_FLAG_RECLAIM it is 31 % while the other one counts as active, and 80 % while it does not.
    assert!((190..=205).contains(&without) && (400..=810).contains(&with), "{without}, {with}: {text}");
    assert!(number(&text, "handled: ") > 0, "{text}");
    assert_eq!(number(&text, "unhandled: "), 128 + 24, "{text}");
}
