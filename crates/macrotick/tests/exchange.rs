//! `macrotick import` and `export`: files, outputs, remarks and exit codes.

use std::path::{Path, PathBuf};
use std::process::Command;

use macrotick_fixtures::repository;

/// The exit code, standard output and standard error of a call.
fn call(words: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_macrotick")).args(words).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn input(name: &str) -> String {
    repository("crates/macrotick-exchange/tests").join(name).display().to_string()
}

#[test]
fn an_imported_file_is_a_description() {
    let folder = folder("exchange-rt-app");
    let (system, file) = (folder.join("system.yaml"), folder.join("back.json"));
    let (system, file) = (system.display().to_string(), file.display().to_string());
    let workload = input("rt_app/workload.json");

    let (code, printed, told) = call(&["import", "rt-app", &workload]);
    assert_eq!((code, printed.lines().next()), (0, Some("system: workload")), "{told}");
    assert_eq!(told, "remark: tasks.noise.sleep: a sleep becomes a period: the computing time and the sleep\n");
    let (code, nothing, same) = call(&["import", "rt-app", &workload, "-o", &system]);
    assert_eq!((code, nothing.as_str(), same), (0, "", told));
    assert_eq!(std::fs::read_to_string(&system).unwrap(), printed);
    let (code, _, told) = call(&["plan", &system]);
    assert_eq!(code, 0, "{told}");

    let (code, nothing, told) = call(&["export", "rt-app", &system, "-o", &file]);
    assert_eq!((code, nothing.as_str()), (0, ""), "{told}");
    let (code, again, _) = call(&["import", "rt-app", &file, "--as-load", "noise"]);
    assert_eq!((code, again.replace("system: back", "system: workload")), (0, printed));
    let (code, printed, _) = call(&["export", "rt-app", &system]);
    assert_eq!((code, printed), (0, std::fs::read_to_string(&file).unwrap()));
}

#[test]
fn an_instance_becomes_a_plan() {
    let system = folder("exchange-ctu-iig").join("system.yaml").display().to_string();
    let words = ["--cpus", "2", "--load", "40", "--latency", "2.5", "-o", &system];
    let (code, _, told) = call(&[&["import", "ctu-iig", &input("ctu_iig/small.dat")], &words[..]].concat());
    assert_eq!(code, 0, "{told}");
    let text = std::fs::read_to_string(&system).unwrap();
    assert!(text.contains("cpus: [0, 1]") && text.contains("reaction: 2500us"), "{text}");
    let (code, _, told) = call(&["plan", &system]);
    assert_eq!(code, 0, "{told}");
}

#[test]
fn a_model_becomes_a_plan() {
    let system = folder("exchange-amalthea").join("system.yaml").display().to_string();
    let (code, printed, told) = call(&["import", "amalthea", &input("amalthea/engine.amxmi"), "-o", &system]);
    assert_eq!((code, printed.as_str()), (0, ""), "{told}");
    assert!(told.contains("remark: tasks.Actuate, tasks.Log: a triggered task gets the period"), "{told}");
    let text = std::fs::read_to_string(&system).unwrap();
    assert!(text.contains("after: [control]") && text.contains("reaction: 25ms, age: 20ms"), "{text}");
    let (code, _, told) = call(&["plan", &system]);
    assert_eq!(code, 0, "{told}");

    // The files of a split model become one system. A part alone is refused.
    let part = |name: &str| input(&format!("amalthea/split/{name}.amxmi"));
    let files = [part("sw"), part("hw"), part("stimuli")];
    let words = ["import", "amalthea", &files[0], &files[1], &files[2]];
    let (code, printed, told) = call(&words);
    assert_eq!((code, printed.lines().next()), (0, Some("system: sw")), "{told}");
    let (code, printed, told) = call(&words[..3]);
    assert_eq!((code, printed.as_str()), (2, ""));
    let reason = "hwModel: the model has no processing unit";
    assert!(told.starts_with(&format!("error: {}: {reason}", files[0])), "{told}");
    let (code, _, told) = call(&["import", "amalthea", &input("amalthea/waters.amxmi"), "--leave-out", "ISR_1"]);
    assert!(code == 0 && told.contains("tasks.ISR_1: is left out"), "{told}");
}

#[test]
fn wrong_input_has_exit_code_2() {
    let folder = folder("exchange-wrong");
    let at = |name: &str| folder.join(name).display().to_string();
    let refused = |words: &[&str]| {
        let (code, printed, told) = call(words);
        assert_eq!((code, printed.as_str()), (2, ""), "{words:?}: {told}");
        told
    };
    let phases = input("refused/two_timers.json");
    let told = refused(&["import", "rt-app", &phases, "-o", &at("s.yaml")]);
    let reason = "tasks.a.timer: is the second timer of the thread: a task has one release in a period";
    assert_eq!(told, format!("error: {phases}: {reason}\n"));
    assert!(!folder.join("s.yaml").exists());

    assert!(refused(&["import", "rt-app", &at("missing")]).starts_with("error: cannot read "));
    std::fs::write(folder.join("bytes"), b"{\"\xff\"}").unwrap();
    assert!(refused(&["import", "rt-app", &at("bytes")]).contains("invalid utf-8"));
    assert!(refused(&["import", "rt-app", "/dev/zero"]).contains("the file is longer than 4194304 bytes"));
    let workload = input("rt_app/workload.json");
    assert!(refused(&["import", "rt-app", &workload, "-o", &workload]).contains("is given twice"));
    assert!(refused(&["import", "rt-app", &workload, "-o", "-"]).contains("`-` is no file here"));
    assert!(refused(&["import", "rt-app", &workload, "--as-load", "x"]).contains("no thread is named `x`"));
    assert!(refused(&["import", "ctu-iig", &workload]).contains("expected the name of an entry"));
    assert!(refused(&["import", "ctu-iig", &input("ctu_iig/small.dat"), "--latency", "0"]).contains("is no factor"));
    assert!(refused(&["import", "autosar", &workload]).contains("autosar"));

    let model = input("amalthea/engine.amxmi");
    assert!(refused(&["import", "amalthea"]).contains("<FILES>"));
    assert!(refused(&["import", "amalthea", &workload]).contains("workload.json:1:1: "));
    assert!(refused(&["import", "amalthea", "/dev/zero"]).contains("the file is longer than 16777216 bytes"));
    assert!(refused(&["import", "amalthea", &model, &model]).contains("another task has this name"));
    assert!(refused(&["import", "amalthea", &model, "-o", &model]).contains("is given twice"));
    assert!(refused(&["import", "amalthea", &model, "--leave-out", "x"]).contains("no task is named `x`"));
    let cycle = input("refused/calls.amxmi");
    let told = refused(&["import", "amalthea", &cycle, "-o", &at("m.yaml")]);
    assert!(told.contains(&format!("{cycle}:28: runnables.Itself: the runnable calls itself\n")), "{told}");
    assert!(!folder.join("m.yaml").exists());

    let odd = "system: s\nmacrotick: 1ns\ntasks:\n  - {name: a, period: 1000001ns, wcet: 10us}\n";
    std::fs::write(folder.join("odd.yaml"), odd).unwrap();
    let told = refused(&["export", "rt-app", &at("odd.yaml")]);
    let each = |key: &str| {
        let reason = "1000001ns is no whole number of microseconds, the unit of rt-app";
        format!("{}: tasks[0].{key}: {reason}\n", at("odd.yaml"))
    };
    assert_eq!(told, format!("error: {}{}", each("period"), each("deadline")));
}
