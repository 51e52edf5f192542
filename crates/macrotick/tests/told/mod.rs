//! Shell scripts in the lab's guest. Lines like `== name` divide their output into sections.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use macrotick_fixtures::repository;
use serde_json::Value;

/// The functions of all scripts.
const SHELL: &str = r#"
section() { echo "== $1"; }
plan() { # NAME TEXT
    printf "system: $1\n$2" > /tmp/$1.yaml
}
"#;

/// The output of a script, by section.
pub struct Told {
    pub sections: BTreeMap<String, String>,
    pub all: String,
}

impl Told {
    pub fn section(&self, name: &str) -> &str {
        self.sections.get(name).unwrap_or_else(|| panic!("no section {name} in\n{}", self.all))
    }

    pub fn json(&self, name: &str) -> Value {
        serde_json::from_str(self.section(name)).unwrap_or_else(|error| panic!("{name}: {error}\n{}", self.all))
    }
}

/// Makes a folder for one test, below the target folder.
pub fn folder(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}

/// Runs a script in the lab after these functions, with more options of `lab exec`.
pub fn run(options: &[&str], functions: &str, script: &str) -> Told {
    let mut command = Command::new(env!("CARGO_BIN_EXE_macrotick"));
    command.args(["lab", "exec"]).args(options).current_dir(repository("."));
    let result = command.args(["--", "/bin/sh", "-c", &format!("{SHELL}{functions}{script}")]).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (output, errors) = (text(&result.stdout), text(&result.stderr));
    let mut sections = BTreeMap::new();
    for part in output.split("== ").skip(1) {
        let (name, rest) = part.split_once('\n').unwrap_or((part, ""));
        sections.insert(name.to_string(), rest.to_string());
    }
    Told { sections, all: format!("{:?}\n{output}{errors}", result.status) }
}
