//! The output and the exit codes of `plan` and `check` if there is no plan for a description.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn file(name: &str, text: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("verdicts");
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join(format!("{name}.yaml"));
    fs::write(&path, text).unwrap();
    path
}

/// Returns the exit status and the messages.
fn verdict(verb: &str, path: &Path) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_macrotick")).arg(verb).arg(path).output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

/// The judge's verdict counts, for every verb.
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

#[test]
fn a_refused_plan_is_not_written() {
    let text = "system: s\ntasks:\n  - {name: a, period: 10ms, wcet: 1ms}\ntable:\n  \
                - {cpu: 0, task: a, offset: 1ms, length: 500us, activate: true, deadline: true}\n";
    let (description, plan) = (file("refused", text), file("refused-plan", ""));
    fs::write(&plan, "kept").unwrap();
    let output =
        Command::new(env!("CARGO_BIN_EXE_macrotick")).arg("plan").arg(&description).arg("-o").arg(&plan).output();
    let output = output.unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("not feasible: 1 violation"), "{told}");
    assert!(told.contains("refused-plan.yaml is not written: the judge refuses the plan"), "{told}");
    assert!(
        output.stdout.starts_with(b"not found, the judge refuses this plan: cycle 10ms"),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
    assert_eq!(fs::read_to_string(&plan).unwrap(), "kept");
}

#[test]
fn a_plan_of_another_description_does_not_hold() {
    let text = "system: s\ntasks:\n  - {name: a, period: 10ms, wcet: 1ms}\n";
    let (description, other) = (file("own", text), file("other", &text.replace("1ms}", "2ms}")));
    let plan = description.with_extension("json");
    let macrotick = |words: &[&Path]| Command::new(env!("CARGO_BIN_EXE_macrotick")).args(words).output().unwrap();
    macrotick(&["plan".as_ref(), &description, "-o".as_ref(), &plan]);
    let against = |file: &Path| {
        let output = macrotick(&["check".as_ref(), &plan, "--against".as_ref(), file]);
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    assert_eq!(against(&description).0, Some(0));
    let (code, told) = against(&other);
    assert_eq!(code, Some(1), "{told}");
    assert!(told.contains("`tasks.a.wcet`: the description has `2ms`, but the plan has `1ms`"), "{told}");
}

/// A chain that no table keeps, which no quick proof shows. Each trial takes long, because there are many other jobs.
#[test]
fn an_interrupt_ends_the_search_with_an_answer() {
    let mut text = String::from(
        "system: s
cpus: [0, 1]
chains:
  - {name: c, path: [a, b], reaction: 1800us}
tasks:
  - {name: a, cpu: 0, period: 1ms, wcet: 200us, deadline: 220us}
  - {name: b, cpu: 0, period: 1ms, wcet: 250us, offset: 573us, deadline: 427us}
",
    );
    for number in 0..60 {
        let period = [7, 11, 13][number % 3];
        text += &format!("  - {{name: t{number}, cpu: 1, period: {period}ms, wcet: 100us}}\n");
    }
    let path = file("endless", &text);
    let mut search = Command::new(env!("CARGO_BIN_EXE_macrotick"));
    search.args(["plan", "--time-limit", "3600s"]).arg(&path).stderr(Stdio::piped()).stdout(Stdio::null());
    let mut search = search.spawn().unwrap();
    let caught = format!("/proc/{}/status", search.id());
    // Until it catches SIGINT, the signal would end it.
    while !fs::read_to_string(&caught).unwrap().lines().any(catches_interrupt) {
        assert_eq!(search.try_wait().unwrap(), None, "it ended by itself");
    }
    Command::new("kill").args(["-INT", &search.id().to_string()]).status().unwrap();
    let output = search.wait_with_output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{told}");
    let reason = "not found before the search was interrupted: chain `c`: the best reaction time found is";
    assert!(told.contains(reason), "{told}");
}

/// Whether a line of `/proc/PID/status` has the caught signals, SIGINT among them.
fn catches_interrupt(line: &str) -> bool {
    let mask = line.strip_prefix("SigCgt:").and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & 1 << (2 - 1) != 0)
}

/// The hint of a refusal is true for `plan` and `check`, and `plan` answers with a plan after it.
#[test]
fn the_change_that_a_refusal_names_gives_a_plan() {
    let text = "system: s\ntasks:\n  - {name: a, period: 20ms, wcet: 5ms, deadline: 8ms}\n  \
                - {name: b, period: 20ms, wcet: 4ms, deadline: 8ms}\n";
    let path = file("nearest", text);
    for verb in ["plan", "check"] {
        let (code, words) = verdict(verb, &path);
        assert_eq!(code, Some(1), "{words}");
        let hint =
            "= hint: there is a plan with `deadline: 9ms` for task `a` (8ms now), or with `deadline: 9ms` for task `b`";
        assert!(words.contains(hint), "{words}");
    }
    let longer = file("nearest-longer", &text.replace("5ms, deadline: 8ms", "5ms, deadline: 9ms"));
    assert_eq!(verdict("plan", &longer).0, Some(0));
}

/// Each with the line and column of the problem, and words of the reason.
const INFEASIBLE: [(&str, &str, &str, &str); 9] = [
    (
        "overload",
        "3:3",
        "the tasks need 13ms of every 10ms, but 1 CPU(s) can give at most 9500us",
        "
tasks:
  - {name: a, period: 10ms, wcet: 6ms}
  - {name: b, period: 10ms, wcet: 7ms}
",
    ),
    (
        "chain",
        "6:39",
        "the bound on the reaction time is 1ms, but no table has less than 12ms",
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
        "the bound on the data age is 1ms, but no table has less than 2ms",
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
        "3:12",
        "the tasks on CPU 0 need 12ms of every 10ms",
        "
tasks:
  - {name: a, period: 10ms, wcet: 6ms, cpu: 0}
  - {name: b, period: 10ms, wcet: 6ms, cpu: 0}
cpus: [0, 1]
",
    ),
    (
        "a job",
        "3:12",
        "from 0ns to 2ms the jobs of `a`, `b` need 4ms",
        "
tasks:
  - {name: a, period: 10ms, wcet: 2ms, deadline: 2ms, offset: 0ms}
  - {name: b, period: 10ms, wcet: 2ms, deadline: 2ms, offset: 0ms}
",
    ),
    (
        "short",
        "3:34",
        "its wcet of 5us is too short: a window of less than 6us ends before the kernel runs its job",
        "
tasks:
  - {name: a, period: 1ms, wcet: 5us, run: {spin: 100ns}}
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
cpus: [0, 1]
",
    ),
    (
        "reservation-of-one-cpu",
        "3:12",
        "proved impossible: SCHED_DEADLINE would promise 99.0 % of CPU 0",
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

/// A loop of 1 kHz waits for its budget for up to a server period.
#[test]
fn a_shorter_server_period_is_proposed_where_it_leaves_more() {
    let with = |head: &str| {
        file(
            "period",
            &format!(
                "system: s\n{head}tasks:\n  - {{name: w, period: 10ms, wcet: 300us}}\ngroups:\n  \
                 - {{name: ecat, priority: 50, serve-fifo: true, tasks: [{{name: loop, period: 1ms, wcet: 150us}}]}}\n"
            ),
        )
    };
    for verb in ["plan", "check"] {
        let (code, told) = verdict(verb, &with(""));
        let text = "remark: group `ecat` needs 78 % of CPU 0 with a server period of 2500us for a load of 15 %: \
                    `server-period: 500us` needs 26 % instead\n";
        assert_eq!((code, told.as_str()), (Some(0), text), "{verb}");
        assert_eq!(verdict(verb, &with("server-period: 500us\n")), (Some(0), String::new()), "{verb}");
    }
}

/// A name with control characters has no effect on the terminal.
#[test]
fn names_of_others_do_not_steer_the_terminal() {
    let named = |name: &str| format!("system: s\ntasks:\n  - {{name: \"{name}\", period: 10ms, wcet: 1ms}}\n");
    let escaped = file("escaped", &named("a\\e[2J\\u202eb"));
    let raw = file("raw", &named("a\u{202e}b"));
    let key = Path::new("a\u{1b}[2J\u{202e}");
    let elsewhere = Path::new("/no/a\u{1b}[2J\u{202e}.yaml");
    for (verb, what) in [("plan", escaped.as_path()), ("plan", &raw), ("check", elsewhere), ("explain", key)] {
        let (code, told) = verdict(verb, what);
        assert_eq!(code, Some(2), "{told:?}");
        assert!(!told.contains(['\u{1b}', '\u{202e}']) && told.contains("\\u{202e}"), "{told:?}");
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

/// Returns the output of a verb for a feasible description.
fn printed(words: &[&str], path: &Path) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_macrotick")).args(words).arg(path).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_plan_says_what_its_letters_and_numbers_mean() {
    let path = file(
        "explained",
        "system: explained
cpus: [0]
tasks:
  - {name: control, period: 1ms, wcet: 150us}
  - {name: camera, period: 20ms, wcet: 3ms}
  - {name: alone, period: 33ms, wcet: 3ms, supply: deadline}
  - {name: late, period: 47ms, deadline: 30ms, wcet: 2ms, supply: {deadline: {runtime: 2500us}}}
",
    );
    let plan = printed(&["plan", "--windows"], &path);
    for line in [
        "planned: cycle 20ms, solver folded",
        "deadline task alone: 3070us of 33ms on CPU 0",
        "deadline task late: 2500us by 30ms of 47ms on CPU 0",
        "A releases a job, D is its deadline",
        "camera: 3010us for a wcet of 3ms: each window of a job except the first has 5us more, in whole macroticks",
    ] {
        assert!(plan.lines().any(|other| other == line), "{line} in\n{plan}");
    }
    let share = |text: &str| {
        text.lines().find(|line| line.starts_with("cpu 0: ")).unwrap().rsplit(' ').nth(1).map(str::to_owned)
    };
    let check = printed(&["check"], &path);
    assert_eq!((share(&plan), share(&check)), (Some("30.0".into()), Some("30.0".into())), "{plan}{check}");
    assert!(!check.ends_with("\n\n"), "{check:?}");
}

#[test]
fn no_written_file_replaces_another_file_of_the_call() {
    const TEXT: &str = "system: kept\ncpus: [0]\ntasks:\n  - {name: t, period: 1ms, wcet: 100us}\n";
    let path = file("kept", TEXT);
    let other = path.with_extension("svg");
    let link = path.with_extension("link");
    let _ = std::fs::remove_file(&link);
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let [own, other, link] = [&path, &other, &link].map(|path| path.to_str().unwrap());
    let twice = "is given twice";
    let refused: [(&[&str], &str); 8] = [
        (&["check", own, "--html", own, "--svg", other], twice),
        (&["check", own, "--html", other, "--svg", other], twice),
        (&["plan", own, "--html", own, "--svg", other], twice),
        (&["plan", own, "-o", other, "--svg", other], twice),
        (&["plan", own, "-o", own], twice),
        (&["plan", own, "-o", link], twice),
        (&["observe", own, "-o", own], twice),
        (&["plan", own, "--svg", "-"], "`-` is no file here"),
    ];
    for (arguments, reason) in refused {
        let output = Command::new(env!("CARGO_BIN_EXE_macrotick")).args(arguments).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(reason), "{said}");
        assert!(!std::path::Path::new(other).exists());
        assert_eq!(std::fs::read_to_string(own).unwrap(), TEXT);
    }
    // The new plan of a change may replace the former one.
    let plan = path.with_extension("json");
    let plan = plan.to_str().unwrap();
    for arguments in [&["plan", own, "-o", plan][..], &["plan", own, "--from", plan, "-o", plan]] {
        let output = Command::new(env!("CARGO_BIN_EXE_macrotick")).args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
