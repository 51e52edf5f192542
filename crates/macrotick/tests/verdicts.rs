//! What `plan` and `check` say, and end with, where there is no plan for a description: as a user calls them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn file(name: &str, text: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("verdicts");
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join(format!("{name}.yaml"));
    fs::write(&path, text).unwrap();
    path
}

/// The exit status, and what is told to people.
fn verdict(verb: &str, path: &Path) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_macrotick")).arg(verb).arg(path).output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

/// The judge's, whatever is asked of the plan.
#[test]
fn a_plan_that_was_changed_by_hand_is_not_run() {
    let description = file("by-hand", "system: s\ntasks:\n  - {name: a, period: 10ms, wcet: 1ms}\n");
    let (plan, output) = (description.with_extension("json"), description.with_extension("out"));
    let macrotick = |words: &[&str]| Command::new(env!("CARGO_BIN_EXE_macrotick")).args(words).output().unwrap();
    let (plan, output) = (plan.to_str().unwrap(), output.to_str().unwrap());
    macrotick(&["plan", description.to_str().unwrap(), "-o", plan]);
    let text = fs::read_to_string(plan).unwrap();
    for (from, to) in [("\"length\":\"", "\"length\":\"-"), ("\"task\":\"a\"", "\"task\":\"other\"")] {
        assert!(text.contains(from), "{text}");
        fs::write(plan, text.replace(from, to)).unwrap();
        let ends = [vec!["run", plan, "-o", output], vec!["observe", plan, "-o", output]]
            .map(|words| macrotick(&words).status.code());
        assert_eq!(ends, [Some(1); 2], "{to}");
    }
}

/// Each with the line and column of what cannot be, and words of the reason.
const INFEASIBLE: [(&str, &str, &str, &str); 7] = [
    (
        "overload",
        "3:3",
        "needed by `b` 70.0 %, `a` 60.0 %",
        "
tasks:
  - {name: a, period: 10ms, wcet: 6ms}
  - {name: b, period: 10ms, wcet: 7ms}
",
    ),
    (
        "chain",
        "6:39",
        "the best reaction time found is 12ms, the bound is 1ms",
        "
tasks:
  - {name: a, period: 10ms, wcet: 1ms}
  - {name: b, period: 10ms, wcet: 1ms}
chains:
  - {name: c, path: [a, b], reaction: 1ms}
",
    ),
    (
        "age",
        "6:34",
        "the best data age found is",
        "
tasks:
  - {name: a, period: 10ms, wcet: 1ms}
  - {name: b, period: 10ms, wcet: 1ms}
chains:
  - {name: c, path: [a, b], age: 1ms}
",
    ),
    (
        "no room",
        "4:12",
        "`b` needs",
        "
tasks:
  - {name: a, period: 10ms, wcet: 6ms, cpu: 0}
  - {name: b, period: 10ms, wcet: 6ms, cpu: 0}
cpus: [0, 1]
",
    ),
    (
        "a job",
        "4:12",
        "does not get 2ms within 2ms",
        "
tasks:
  - {name: a, period: 10ms, wcet: 2ms, deadline: 2ms, offset: 0ms}
  - {name: b, period: 10ms, wcet: 2ms, deadline: 2ms, offset: 0ms}
",
    ),
    (
        "reservation",
        "3:12",
        "of a CPU for SCHED_DEADLINE",
        "
tasks:
  - {name: a, period: 10ms, wcet: 9ms, supply: {deadline: {runtime: 9900us}}}
  - {name: b, period: 10ms, wcet: 1ms}
",
    ),
    (
        "group",
        "5:46",
        "no budget is enough for group `g`",
        "
tasks:
  - {name: a, period: 10ms, wcet: 1ms}
groups:
  - {name: g, criticality: 5, tasks: [{name: t, period: 10ms, wcet: 9500us}]}
",
    ),
];

#[test]
fn no_plan_is_a_verdict_with_its_place() {
    for (name, place, words, text) in INFEASIBLE {
        let path = file(name, &format!("system: s{text}"));
        for verb in ["plan", "check"] {
            let (code, told) = verdict(verb, &path);
            assert_eq!(code, Some(1), "{name}: {told}");
            assert!(told.contains(&format!("{}:{place}\n", path.display())), "{name}: {told}");
            assert!(told.contains(words), "{name}: {told}");
        }
    }
}

#[test]
fn what_cannot_be_read_is_wrong_input() {
    let wrong = ["system: s\n", "system: s\ntasks:\n  - {name: a, period: 10ms, wcet: 11ms}\n", "tasks: ["];
    for text in wrong {
        let (code, told) = verdict("plan", &file("wrong", text));
        assert_eq!(code, Some(2), "{text}: {told}");
    }
    assert_eq!(verdict("check", Path::new("/nowhere.yaml")).0, Some(2));
}
