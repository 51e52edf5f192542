//! The script `setup`, before commands that only pretend: nothing is installed, and no package list is fetched.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// What `setup` finds on a machine that has everything. `$HERE` is the folder of the pretended commands.
const COMMANDS: [(&str, &str); 9] = [
    ("uname", "echo x86_64"),
    ("id", "echo 0"),
    ("dpkg-query", "echo installed"),
    ("rustc", "echo 'rustc 1.99.0'"),
    // clippy and fmt are there, unless a test says that they must be installed first.
    ("cargo", r#"[ ! -e "$HERE/incomplete" ]"#),
    ("apt-get", APT_GET),
    ("apt-cache", "echo '  Candidate: 1.99.0'"),
    ("rustup", RUSTUP),
    // The kernel's source, which a machine that only runs the tests need not have.
    ("ls", "exit 0"),
];

const RUSTUP: &str = r#"
[ -e "$HERE/is-rustups" ] || exit 1
echo "rustup $*" >>"$HERE/log"
[ "$1" != component ] || rm "$HERE/incomplete""#;

const APT_GET: &str = r#"
echo "apt-get $*" >>"$HERE/log"
[ "$1" != install ] || rm "$HERE/incomplete""#;

/// A machine of its own per test, below the target folder.
struct Machine(PathBuf);

impl Machine {
    fn new(name: &str) -> Machine {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("setup").join(name);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        let machine = Machine(folder);
        COMMANDS.iter().for_each(|(command, script)| machine.pretend(command, script));
        machine
    }

    fn pretend(&self, command: &str, script: &str) {
        let path = self.0.join(command);
        fs::write(&path, format!("#!/bin/sh\nHERE={}\n{script}\n", self.0.display())).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn mark(&self, what: &str) {
        fs::write(self.0.join(what), "").unwrap();
    }

    fn set_up(&self) -> Output {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../setup");
        let path = format!("{}:/usr/bin:/bin", self.0.display());
        Command::new(script).env("PATH", path).env("HOME", &self.0).output().unwrap()
    }

    /// What was installed, and by what.
    fn log(&self) -> String {
        fs::read_to_string(self.0.join("log")).unwrap_or_default()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn nothing_is_done_where_nothing_is_missing() {
    let machine = Machine::new("complete");
    let output = machine.set_up();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!((text(&output.stdout), machine.log()), (String::new(), String::new()));
}

#[test]
fn another_architecture_is_refused_before_anything_is_done() {
    let machine = Machine::new("architecture");
    machine.pretend("uname", "echo aarch64");
    machine.pretend("dpkg-query", "exit 1");
    let output = machine.set_up();
    assert_eq!(output.status.code(), Some(1));
    let message = "setup: this machine is aarch64: Macrotick is built, run and tested on x86-64 only\n";
    assert_eq!((text(&output.stderr).as_str(), machine.log().as_str()), (message, ""));
}

#[test]
fn a_rust_without_linter_and_formatter_gets_them_from_apt() {
    let machine = Machine::new("apt");
    machine.mark("incomplete");
    let output = machine.set_up();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let log = machine.log();
    assert!(log.ends_with("install --yes --no-install-recommends cargo rustc rust-clippy rustfmt\n"), "{log}");
}

#[test]
fn rustups_rust_gets_them_from_rustup() {
    let machine = Machine::new("rustup");
    machine.mark("incomplete");
    machine.mark("is-rustups");
    let output = machine.set_up();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(machine.log(), "rustup which rustc\nrustup component add clippy rustfmt\n");
}

#[test]
fn an_installation_that_does_not_help_is_an_error() {
    let machine = Machine::new("no-help");
    machine.mark("incomplete");
    machine.pretend("apt-get", "exit 0");
    let output = machine.set_up();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("clippy and rustfmt were installed, but not for the cargo"));
}
