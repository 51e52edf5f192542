//! One plan for several hosts: what the verbs do with it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use macrotick_model::{Observation, Plan};
use macrotick_report::Report;

const EXAMPLE: &str = "examples/two-hosts.yaml";

/// Makes a folder for one test, below the target folder.
fn folder(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("hosts").join(name);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}

fn macrotick(arguments: &[&str]) -> Output {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    Command::new(env!("CARGO_BIN_EXE_macrotick")).args(arguments).current_dir(repository).output().unwrap()
}

/// Returns the last line on standard error of a call with wrong input.
fn refused(arguments: &[&str]) -> String {
    let output = macrotick(arguments);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    String::from_utf8_lossy(&output.stderr).trim_end().lines().last().unwrap().to_owned()
}

#[test]
fn all_hosts_deploy_one_plan_and_each_its_part() {
    let file = folder("part").join("plan.json");
    let plan = file.to_str().unwrap();
    let planned = macrotick(&["plan", EXAMPLE, "-o", plan]);
    assert!(planned.status.success(), "{planned:?}");
    let said = String::from_utf8_lossy(&planned.stdout).into_owned();
    assert!(said.contains("cpu 2 of arm: ") && said.contains("interface to-arm: "), "{said}");
    let whole = Plan::load(&file).unwrap();
    assert_eq!((whole.tables.len(), whole.gates.len()), (3, 2));
    assert!(macrotick(&["check", plan]).status.success());

    let dry = macrotick(&["apply", plan, "--host", "arm", "--dry-run"]);
    assert!(dry.status.success(), "{dry:?}");
    assert_eq!(String::from_utf8_lossy(&dry.stdout), "# nothing to set up\n");
    let unknown = refused(&["apply", plan, "--host", "leg", "--dry-run"]);
    assert_eq!(unknown, format!("error: {plan}: the plan has no host `leg`: its hosts are camera, arm"));
    let unnamed = refused(&["run", EXAMPLE, "--dry-run"]);
    assert_eq!(unnamed, format!("error: {EXAMPLE}: the plan is for the hosts camera, arm: name one of them"));
    let unplanned = refused(&["apply", EXAMPLE, "--host", "arm", "--dry-run"]);
    assert!(unplanned.contains("all must deploy the same plan"), "{unplanned}");
    let alone = refused(&["run", "examples/robot-arm.yaml", "--host", "arm", "--dry-run"]);
    assert!(alone.ends_with("the plan has no host `arm`, it is for one host without a name"), "{alone}");
}

#[test]
#[ignore = "needs the lab"]
fn a_part_runs_with_the_numbers_of_its_host() {
    let folder = folder("lab");
    let output = folder.to_str().unwrap();
    let run = macrotick(&["run", EXAMPLE, "--host", "arm", "--lab", "--duration", "500ms", "--output", output]);
    assert_eq!(run.status.code(), Some(0), "{run:?}");
    let report = Report::new(&Observation::load(&folder.join("observation.json")).unwrap());
    let tasks: Vec<(&str, &[u32], u64)> =
        report.tasks.iter().map(|task| (task.name.as_str(), task.cpus.as_slice(), task.missed)).collect();
    assert_eq!(tasks, [("move", &[1][..], 0), ("current", &[1][..], 0)]);
    assert!(report.tasks.iter().all(|task| task.released > 40 && task.completed == task.released));
}
