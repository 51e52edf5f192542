//! The flight recorder in the lab: a task is late for a known cause, and the recording names it.

mod told;

use std::path::{Path, PathBuf};
use std::process::Command;

use macrotick_fixtures::repository;
use told::{folder, Told};

/// The causes, as the program knows them, and two parts of the sentence about each.
const CAUSES: [(&str, [&str; 2]); 20] = [
    ("compute", ["it computed ", " longer than its execution time;"]),
    ("fork", ["it computed ", " longer than its execution time"]),
    ("faults", ["it computed ", " page faults;"]),
    ("sleep", ["it slept for ", "until interrupt timer woke it;"]),
    ("timed", ["it slept for ", "until interrupt timer woke it;"]),
    ("poll", ["it slept for ", "until interrupt timer woke it;"]),
    ("pipe", ["it slept for ", "until `writer` ("]),
    ("socket", ["it slept for ", "until `sender` ("]),
    ("mutex", ["it slept for ", "until `holder` ("]),
    ("pi-mutex", ["it slept for ", "until `holder` ("]),
    ("pi-sleep", ["it slept for ", "until `holder` ("]),
    ("join", ["it slept for ", "until `sleeper` ("]),
    ("flock", ["it slept for ", "until `child` ("]),
    ("child", ["it slept for ", "until `child` ("]),
    ("freeze", ["it slept for ", "until `child` ("]),
    ("signal", ["it slept for ", "and nothing has woken it;"]),
    ("forever", ["it slept for ", "and nothing has woken it;"]),
    ("vfork", ["it waited in the kernel, without reaction to signals, for ", "until `misbehave` ("]),
    ("stop", ["a signal stopped it for ", "until `child` ("]),
    ("trace", ["a debugger stopped it for ", "until `child` ("]),
];

/// The functions of all scripts. `deploy CAUSE` runs the task until its miss is recorded, at most for 2 s.
const SHELL: &str = r#"
deploy() {
    plan s "tasks:\n  - {name: victim, period: 10ms, wcet: 150us, deadline: 2ms, cpu: 0, on-miss: record, run: {program: [$program, $1]}}\n"
    macrotick apply /tmp/s.yaml > /tmp/log 2>&1 &
    supervisor=$!
    for turn in $(seq 100); do
        grep -q "missed its deadline" /tmp/log && break
        sleep 0.02
    done
}
"#;

fn program(folder: &Path) -> PathBuf {
    let program = folder.join("misbehave");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorder/misbehave.c");
    let status = Command::new("cc")
        .args(["-O2", "-static", "-pthread", "-Wall", "-Wextra", "-Werror", "-o"])
        .args([&program, &source])
        .arg(format!("-I{}", repository("include").display()))
        .arg(format!("-I{}", repository("kernel/overlay/include/uapi").display()))
        .status()
        .unwrap();
    assert!(status.success(), "{} does not compile", source.display());
    program
}

fn run(program: &Path, script: &str) -> Told {
    let program = program.display().to_string();
    told::run(&["--smp", "1", "--file", &program], SHELL, &format!("program={program}\n{script}"))
}

#[test]
#[ignore = "needs the lab"]
fn each_cause_of_a_miss_is_named() {
    let program = program(&folder("recorder-causes"));
    let causes: Vec<&str> = CAUSES.iter().map(|(cause, _)| *cause).collect();
    let script = format!(
        r#"for cause in {}; do
    deploy $cause
    kill $supervisor; wait $supervisor
    section $cause
    grep "missed its deadline" /tmp/log
done"#,
        causes.join(" ")
    );
    let told = run(&program, &script);
    let wrong: Vec<String> = CAUSES
        .iter()
        .filter(|(cause, parts)| {
            let sentence = told.section(cause);
            !sentence.starts_with("job 20 of `victim` missed its deadline: ")
                || !parts.iter().all(|part| sentence.contains(part))
        })
        .map(|(cause, parts)| format!("{cause} ({parts:?}): {}", told.section(cause)))
        .collect();
    assert!(wrong.is_empty(), "{}\n{}", wrong.join(""), told.all);
}

#[test]
#[ignore = "needs the lab"]
fn a_recording_shows_the_cpus_around_the_miss() {
    let program = program(&folder("recorder-trace"));
    let script = r#"deploy pipe
sleep 0.1
section status; macrotick status
section trace; cat /var/lib/macrotick/recordings/victim-20.json
kill $supervisor; wait $supervisor
section left; ls /sys/kernel/tracing/instances | wc -l
section log; cat /tmp/log"#;
    let told = run(&program, script);
    let sentence = "job 20 of `victim` missed its deadline: it slept for ";
    assert!(told.section("status").contains(sentence), "{}", told.all);
    assert!(told.section("log").contains("recorded in /var/lib/macrotick/recordings/victim-20.json"), "{}", told.all);
    assert_eq!(told.section("left").trim(), "0", "{}", told.all);
    let trace = told.json("trace");
    assert!(trace["otherData"]["sentence"].as_str().is_some_and(|text| text.starts_with(sentence)));
    let events = trace["traceEvents"].as_array().unwrap();
    let named = |event: &serde_json::Value, name: &str| event.as_str().is_some_and(|text| text.starts_with(name));
    let has =
        |name: &str| events.iter().any(|event| named(&event["name"], name) || named(&event["args"]["name"], name));
    for name in [
        "CPU 0",
        "planned windows",
        "`writer` (",
        "`misbehave` (",
        "interrupt timer",
        "miss of victim",
        "job 20 of victim",
    ] {
        assert!(has(name), "{name} in\n{}", told.section("trace"));
    }
}
