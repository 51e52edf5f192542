//! `macrotick compare`, as a user calls it, with recorded observations.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use macrotick_model::Observation;
use macrotick_report::Report;

fn data(backend: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../macrotick-report/tests/data/{backend}.observation.json"))
}

/// Makes a folder for one test, below the target folder.
fn folder(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("compare").join(name);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

/// Writes the files of a `macrotick run`.
fn run_folder(folder: &Path, backend: &str) -> PathBuf {
    let run = folder.join(format!("run-{backend}"));
    fs::create_dir(&run).unwrap();
    let text = fs::read_to_string(data(backend)).unwrap();
    let report = Report::new(&Observation::from_json(&text, backend).unwrap());
    fs::write(run.join("observation.json"), text).unwrap();
    fs::write(run.join("report.json"), report.to_json()).unwrap();
    run
}

fn compare(folder: &Path, results: &[&Path]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_macrotick"));
    command.arg("compare").args(results).current_dir(folder).env("COLUMNS", "100").output().unwrap()
}

/// Returns the error of a comparison that must fail.
fn refusal(folder: &Path, results: &[&Path]) -> String {
    let output = compare(folder, results);
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn folders_reports_and_observations_compare_alike() {
    let folder = folder("alike");
    let [other, kernel] = ["other", "kernel"].map(|backend| run_folder(&folder, backend));
    let golden = include_str!("../../macrotick-report/tests/data/compared.terminal.txt");
    let expected = format!("{golden}\ncomparison: build/compare/robot-arm.html\n");
    let given: [fn(&Path) -> PathBuf; 3] =
        [Path::to_path_buf, |run| run.join("report.json"), |run| run.join("observation.json")];
    for of in given {
        let output = compare(&folder, &[&of(&other), &of(&kernel)]);
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(0));
    }
    let html = fs::read_to_string(folder.join("build/compare/robot-arm.html")).unwrap();
    assert!(html.contains("other (SCHED_OTHER): 26 of 30 missed; kernel (SCHED_TT): none"));
}

#[test]
fn runs_that_share_a_backend_are_called_by_their_folders() {
    let folder = folder("labels");
    let kernel = run_folder(&folder, "kernel");
    fs::create_dir(folder.join("again")).unwrap();
    fs::copy(kernel.join("observation.json"), folder.join("again/observation.json")).unwrap();
    let output = compare(&folder, &[&kernel, &folder.join("again")]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("\nrun-kernel: none of 30 missed; again: none\n"), "{text}");
}

#[test]
fn what_cannot_be_compared_is_refused_with_its_reason() {
    let folder = folder("refused");
    let [other, kernel] = ["other", "kernel"].map(|backend| run_folder(&folder, backend));
    let missing = folder.join("missing.json");
    assert!(refusal(&folder, &[&kernel, &missing]).starts_with(&format!("error: cannot read {}: ", missing.display())));
    let text = folder.join("notes.json");
    for content in ["not JSON", "{\"version\": 1}", "[]"] {
        fs::write(&text, content).unwrap();
        let reason = refusal(&folder, &[&kernel, &text]);
        assert!(reason.contains("notes.json is not a result of `macrotick run`"), "{reason}");
    }
    fs::remove_file(other.join("observation.json")).unwrap();
    let reason = refusal(&folder, &[&kernel, &other.join("report.json")]);
    assert!(reason.contains("report.json has no records, and there is no "), "{reason}");
    let renamed = fs::read_to_string(data("other")).unwrap().replace("\"robot-arm\"", "\"crane\"");
    fs::write(other.join("observation.json"), renamed).unwrap();
    assert_eq!(
        refusal(&folder, &[&kernel, &other]),
        "error: kernel ran the system `robot-arm`, but other ran `crane`\n"
    );
    let only_one = refusal(&folder, &[&kernel]);
    assert!(only_one.contains("2"), "{only_one}");
}

fn report(folder: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_macrotick"));
    command.arg("report").args(words).current_dir(folder).env("COLUMNS", "100").output().unwrap()
}

#[test]
fn a_report_is_made_of_a_folder_a_report_or_an_observation() {
    let folder = folder("report");
    run_folder(&folder, "kernel");
    let expected = include_str!("../../macrotick-report/tests/data/kernel.terminal.txt");
    for given in ["run-kernel", "run-kernel/report.json", "run-kernel/observation.json"] {
        let output = report(&folder, &[given]);
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{given}");
    }
    fs::write(folder.join("broken.json"), "{\"version\": 2,\n").unwrap();
    let broken = report(&folder, &["broken.json"]);
    assert!(String::from_utf8_lossy(&broken.stderr).starts_with("error: broken.json:2:"), "{broken:?}");
}

#[test]
fn output_goes_to_no_file_but_those_of_the_plans_processes() {
    let folder = folder("strange");
    let run = run_folder(&folder, "kernel");
    let path = run.join("observation.json");
    let mut observation = Observation::from_json(&fs::read_to_string(&path).unwrap(), "kernel").unwrap();
    let mut told = |name: &str| {
        observation.output = vec![macrotick_model::ProcessOutput { name: name.into(), text: "text".into() }];
        fs::write(&path, observation.to_json()).unwrap();
        report(&folder, &["run-kernel", "-o", "out"])
    };
    for name in ["../escaped", "/tmp/macrotick-escaped", "logger.2", "logger", "x"] {
        let output = told(name);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{name}: {error}");
        assert!(error.contains(&format!("output[0]: `{name}` is not a task or process of the plan")), "{error}");
    }
    assert!(!folder.join("out").exists() && !folder.join("escaped.log").exists());
    for name in ["control", "logger.1"] {
        assert_eq!(told(name).status.code(), Some(0), "{name}");
        assert_eq!(fs::read_to_string(folder.join(format!("out/{name}.log"))).unwrap(), "text");
    }
}
