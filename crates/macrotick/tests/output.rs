//! Verbs with output that cannot be written: the reader has gone, or the disk is full; and output with text of other
//! programs.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use macrotick_model::Observation;

const CONTAINER: &str = "container: c\ncriticality: 9\ntasks:\n  - {name: t, period: 10ms, wcet: 100us}\n";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Makes a folder for one test, with the files that the verbs need.
fn folder(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("output").join(name);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    let data = root().join("crates/macrotick-report/tests/data/kernel.observation.json");
    let text = fs::read_to_string(data).unwrap();
    Observation::from_json(&text, "kernel").unwrap();
    fs::write(path.join("observation.json"), text).unwrap();
    fs::write(path.join("container.yaml"), CONTAINER).unwrap();
    path
}

fn system() -> String {
    root().join("examples/robot-arm.yaml").display().to_string()
}

/// Verbs that run anywhere, and their verdicts.
fn calls() -> Vec<(Vec<String>, i32)> {
    let system = system();
    let call = |words: &[&str], code| (words.iter().map(|word| word.replace("SYSTEM", &system)).collect(), code);
    vec![
        call(&["plan", "SYSTEM"], 0),
        call(&["explain"], 0),
        call(&["explain", "deadline"], 0),
        call(&["plan", "--json", "SYSTEM"], 0),
        call(&["check", "SYSTEM"], 0),
        call(&["check", "--json", "SYSTEM"], 0),
        call(&["admit", "--system", "SYSTEM", "container.yaml"], 1),
        call(&["admit", "--json", "--system", "SYSTEM", "container.yaml"], 1),
        call(&["report", "observation.json"], 0),
        call(&["report", "--json", "observation.json"], 0),
        call(&["compare", "observation.json", "observation.json"], 0),
        call(&["compare", "--json", "observation.json", "observation.json"], 0),
        call(&["man", "pages"], 0),
        call(&["rt-lib", "library.so"], 0),
        call(&["hook", "install", "--directory", "hooks.d"], 0),
    ]
}

fn run(folder: &Path, words: &[String], stdout: Stdio, stderr: Stdio) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_macrotick"));
    command.args(words).current_dir(folder).stdout(stdout).stderr(stderr).output().unwrap()
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Output without a reader.
fn unread() -> Stdio {
    let (reader, writer) = UnixStream::pair().unwrap();
    drop(reader);
    OwnedFd::from(writer).into()
}

#[test]
fn a_reader_that_is_gone_changes_no_verdict() {
    let folder = folder("unread");
    for (words, code) in calls() {
        let expected = run(&folder, &words, Stdio::null(), Stdio::piped());
        assert_eq!(expected.status.code(), Some(code), "{words:?}: {}", errors(&expected));
        let output = run(&folder, &words, unread(), Stdio::piped());
        assert_eq!(output.status.code(), Some(code), "{words:?}: {}", errors(&output));
        assert_eq!(errors(&output), errors(&expected), "{words:?}");
    }
}

#[test]
fn a_full_disk_is_told_in_one_line() {
    let folder = folder("full");
    let full = || Stdio::from(File::options().write(true).open("/dev/full").unwrap());
    for (words, _) in calls() {
        let before = errors(&run(&folder, &words, Stdio::null(), Stdio::piped()));
        let output = run(&folder, &words, full(), Stdio::piped());
        assert_eq!(output.status.code(), Some(3), "{words:?}: {}", errors(&output));
        let told = "error: cannot write standard output: No space left on device (os error 28)\n";
        assert_eq!(errors(&output), format!("{before}{told}"), "{words:?}");
    }
}

#[test]
fn errors_that_nobody_reads_keep_their_status() {
    let folder = folder("errors");
    for (words, code) in [(["plan", "nowhere.yaml"], 2), (["report", "container.yaml"], 2)] {
        let words = words.map(String::from);
        for nowhere in [unread(), Stdio::from(File::options().write(true).open("/dev/full").unwrap())] {
            assert_eq!(run(&folder, &words, Stdio::null(), nowhere).status.code(), Some(code), "{words:?}");
        }
    }
}

/// The whole output of a verb is written before it ends, or its status reports the error.
#[test]
fn help_ends_quietly_as_well() {
    let folder = folder("help");
    for words in [vec!["--help".to_owned()], vec!["run".into(), "--help".into()], vec!["--version".into()]] {
        let output = run(&folder, &words, unread(), Stdio::piped());
        assert_eq!((output.status.code(), errors(&output).as_str()), (Some(0), ""), "{words:?}");
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = run(&folder, &words, full.into(), Stdio::piped());
        assert_eq!(output.status.code(), Some(3), "{words:?}");
        assert!(errors(&output).starts_with("error: cannot write standard output: No space left"), "{words:?}");
    }
}

#[test]
fn arguments_may_be_anything() {
    let folder = folder("arguments");
    for words in
        [&[b"\xff".as_slice()][..], &[b"plan", b"\xff"], &[b"run", b"x", b"--backend", b"\x1b[2J\r\xe2\x80\xae"]]
    {
        let words: Vec<&OsStr> = words.iter().map(|word| OsStr::from_bytes(word)).collect();
        let output = Command::new(env!("CARGO_BIN_EXE_macrotick")).args(&words).current_dir(&folder).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {}", errors(&output));
        assert!(!errors(&output).contains(['\u{1b}', '\r', '\u{202e}']), "{}", errors(&output));
    }
}

#[test]
fn a_device_stays_a_device() {
    let folder = folder("device");
    let words = ["plan", "SYSTEM", "-o", "/dev/full"].map(|word| word.replace("SYSTEM", &system()));
    let output = run(&folder, &words, Stdio::piped(), Stdio::piped());
    assert_eq!(output.status.code(), Some(3), "{}", errors(&output));
    assert!(fs::metadata("/dev/full").unwrap().file_type().is_char_device());
    let words = ["plan", "SYSTEM", "-o", "nowhere/plan.json"].map(|word| word.replace("SYSTEM", &system()));
    assert_eq!(run(&folder, &words, Stdio::piped(), Stdio::piped()).status.code(), Some(3));
}

/// A process may have any name, and the author of an annotation chooses its text.
#[test]
fn names_of_others_steer_no_terminal() {
    let folder = folder("foreign");
    let path = folder.join("observation.json");
    let text = fs::read_to_string(&path).unwrap();
    let mut run = Observation::from_json(&text, "kernel").unwrap();
    run.remarks = vec!["process 7 (`\u{1b}[2J\u{9b}`), which a task had left behind, was killed at the end".into()];
    fs::write(&path, run.to_json()).unwrap();
    for words in [&["report", "observation.json"][..], &["report", "--json", "observation.json"]] {
        let words: Vec<String> = words.iter().map(ToString::to_string).collect();
        let output = run_to_end(&folder, &words);
        assert!(output.contains("[2J") && !output.contains(['\u{1b}', '\u{9b}']), "{output}");
    }
}

fn run_to_end(folder: &Path, words: &[String]) -> String {
    String::from_utf8(run(folder, words, Stdio::piped(), Stdio::piped()).stdout).unwrap()
}

#[test]
fn a_refused_annotation_steers_no_terminal() {
    let state = r#"{"id": "c", "pid": 1, "annotations": {"macrotick.budget": "\u001b[2J"}}"#;
    let mut hook = Command::new(env!("CARGO_BIN_EXE_macrotick"));
    let mut hook = hook.args(["hook", "run"]).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    hook.stdin.take().unwrap().write_all(state.as_bytes()).unwrap();
    let told = errors(&hook.wait_with_output().unwrap());
    assert!(told.contains("annotation macrotick.budget: \\u{1b}[2J: ") && !told.contains('\u{1b}'), "{told}");
}

/// A result needs a place before the work begins, and a measured program does not start without it.
#[test]
fn a_place_that_is_missing_is_reported_before_the_work() {
    let folder = folder("places");
    let system = system();
    let calls: [&[&str]; 6] = [
        &["plan", &system, "-o", "PLACE"],
        &["plan", &system, "--html", "PLACE"],
        &["check", &system, "--svg", "PLACE"],
        &["generate", "--seed", "1", "-o", "PLACE"],
        &["measure", "-o", "PLACE", "--", "touch", "started"],
        &["probe", "run", "127.0.0.1", "--csv", "PLACE"],
    ];
    let places = [
        ("missing/file", "cannot write missing/file: No such file or directory"),
        ("observation.json/file", "cannot write observation.json/file: not a directory"),
        (".", "cannot write .: is a directory"),
    ];
    for words in calls {
        for (place, expected) in places {
            let words: Vec<String> = words.iter().map(|word| word.replace("PLACE", place)).collect();
            let output = run(&folder, &words, Stdio::piped(), Stdio::piped());
            let errors = errors(&output);
            assert!(
                output.status.code() == Some(3) && errors.contains(expected),
                "{words:?}: {:?} {errors}",
                output.status
            );
        }
    }
    assert!(!folder.join("started").exists() && !folder.join("missing").exists());
}
