//! Complete descriptions in the README and the documentation hold without a change.

use std::path::{Path, PathBuf};
use std::process::Command;

use macrotick_fixtures::{pages, repository};
use macrotick_model::System;

/// Returns every block that begins with the system's name, with its document. The tutorials are left out, because some
/// of their descriptions must not hold.
fn descriptions() -> Vec<(PathBuf, String)> {
    let blocks = |path: PathBuf| {
        let text = std::fs::read_to_string(repository("").join(&path)).unwrap();
        let blocks = text.split("```yaml\n").skip(1).map(|rest| rest.split("```").next().unwrap().to_owned());
        blocks.filter(|block| block.starts_with("system:")).map(|block| (path.clone(), block)).collect::<Vec<_>>()
    };
    pages().into_iter().filter(|path| !path.starts_with("docs/tutorials")).flat_map(blocks).collect()
}

/// Runs the description in the test's own folder and checks that it holds, on each of its hosts.
fn assert_held(folder: &str, document: &Path, description: &str) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("system.yaml");
    std::fs::write(&path, description).unwrap();
    let hosts = System::load(&path).unwrap_or_else(|error| panic!("{error}")).hosts;
    let parts = hosts.iter().map(|host| vec!["--host", host.name.as_str()]);
    let parts: Vec<Vec<&str>> = parts.chain(hosts.is_empty().then(Vec::new)).collect();
    for part in parts {
        let mut command = Command::new(env!("CARGO_BIN_EXE_macrotick"));
        command.arg("run").arg(&path).args(["--lab", "--duration", "500ms", "--output"]).arg(folder.join("run"));
        let output = command.args(part).output().unwrap();
        let told = [output.stdout, output.stderr].concat();
        let told = String::from_utf8_lossy(&told);
        assert_eq!(output.status.code(), Some(0), "{}:\n{description}\n{told}", document.display());
    }
}

#[test]
#[ignore = "needs the lab"]
fn whole_descriptions_of_the_documents_hold() {
    let all = descriptions();
    assert!(all.len() >= 6, "only {} found", all.len());
    all.iter().for_each(|(document, description)| assert_held("whole", document, description));
}

/// A job computes within its wcet if the description states no work for it.
#[test]
#[ignore = "needs the lab"]
fn the_shortest_descriptions_hold() {
    let tasks = [
        "{name: t, period: 10ms, wcet: 1ms}",
        "{name: t, period: 10ms, wcet: 100us}",
        "{name: t, period: 10ms, wcet: 20us}",
        "{name: w, period: 5ms, wcet: 50us}\n  - {name: t, period: 10ms, wcet: 1ms, supply: deadline}",
        "{name: t, period: 10ms, wcet: 1ms, run: {udp-send: {to: '127.0.0.1:5000'}}}",
    ];
    for task in tasks {
        assert_held("shortest", Path::new("the shortest"), &format!("system: a\ntasks:\n  - {task}\n"));
    }
}
