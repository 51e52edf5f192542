//! The output of a run's programs, in its folder and on the report's page.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn folder() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("program_output");
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Runs a task and two loads of this script; returns the terminal's text.
fn run(script: &str) -> String {
    let description = folder().join("system.yaml");
    let load = format!("{{name: talk, count: 2, program: [/bin/sh, -c, '{script}']}}");
    let text = format!(
        "system: s\ntasks:\n  - {{name: a, period: 50ms, wcet: 10ms, run: {{spin: 1us}}}}\n\
         load:\n  - {load}\nexperiment: {{duration: 100ms}}\n"
    );
    fs::write(&description, text).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_macrotick"));
    command.arg("run").arg(&description).args(["--backend", "other", "-o"]).arg(folder().join("out"));
    let output = command.output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn what_programs_write_is_in_the_folder_and_on_the_page() {
    let terminal = run(r#"echo hello; printf "\033[31m<b>\n" >&2; exec sleep 9"#);
    let log = |name: &str| folder().join("out").join(name);
    let text = fs::read_to_string(log("talk.1.log")).unwrap();
    assert_eq!(text, "hello\n\u{1b}[31m<b>\n");
    assert_eq!(fs::read_to_string(log("talk.0.log")).unwrap(), text);
    assert!(!log("a.log").exists());
    let named = format!("output: {} and {}\n", log("talk.0.log").display(), log("talk.1.log").display());
    assert!(terminal.ends_with(&named), "{terminal}");
    assert!(terminal.contains("trace.json, for https://ui.perfetto.dev\n"), "{terminal}");
    let page = fs::read_to_string(log("report.html")).unwrap();
    assert!(page.contains("hello\n\\u{1b}[31m&lt;b&gt;\n"), "{page}");

    run("exec sleep 9");
    assert!(!log("talk.1.log").exists(), "what an earlier run wrote stands beside this one's report");
}
