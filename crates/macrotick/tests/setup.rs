//! The script `setup` with pretended commands: it installs no package, and fetches no package list.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use macrotick_fixtures::{read_tree, repository};

/// The commands of a machine that lacks nothing. `$HERE` is the folder of the pretended commands.
const COMMANDS: [(&str, &str); 10] = [
    ("uname", "echo x86_64"),
    ("id", "echo 0"),
    ("dpkg-query", "echo installed"),
    ("rustc", "echo 'rustc 1.99.0'"),
    // clippy and fmt are installed, unless a test makes them missing.
    ("cargo", r#"[ ! -e "$HERE/incomplete" ]"#),
    ("apt-get", APT_GET),
    ("apt-cache", "echo '  Candidate: 1.99.0'"),
    ("rustup", RUSTUP),
    ("python3", PYTHON),
    // The kernel's source; a machine that only runs the tests may lack it.
    ("ls", "exit 0"),
];

const RUSTUP: &str = r#"
[ -e "$HERE/is-rustups" ] || exit 1
echo "rustup $*" >>"$HERE/log"
[ "$1" != component ] || rm "$HERE/incomplete""#;

/// Makes an environment of Python. Its `pip` and `go` log their calls.
const PYTHON: &str = r#"
mkdir -p "$3/bin"
for command in pip go; do
    printf '#!/bin/sh\necho "%s $1 $2" >>"%s/log"\n' $command "$HERE" >"$3/bin/$command"
    chmod +x "$3/bin/$command"
done"#;

const APT_GET: &str = r#"
echo "apt-get $*" >>"$HERE/log"
[ "$1" != install ] || rm "$HERE/incomplete""#;

/// A machine for one test, below the target folder.
struct Machine(PathBuf);

impl Machine {
    fn new(name: &str) -> Machine {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("setup").join(name);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        let machine = Machine(folder);
        COMMANDS.iter().for_each(|(command, script)| machine.pretend(command, script));
        for file in ["setup", "Cargo.toml"] {
            std::os::unix::fs::symlink(repository(file), machine.0.join(file)).unwrap();
        }
        machine
    }

    fn pretend(&self, command: &str, script: &str) {
        let path = self.0.join(command);
        fs::write(&path, format!("#!/bin/sh\nHERE={}\n{script}\n", self.0.display())).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// The file in which `setup` notes the linters that it has installed.
    fn linters(&self) -> PathBuf {
        self.0.join("build/tools/versions")
    }

    fn mark(&self, what: &str) {
        fs::write(self.0.join(what), "").unwrap();
    }

    fn set_up(&self) -> Output {
        self.run(&[])
    }

    fn set_up_linters(&self) -> Output {
        self.run(&["linters"])
    }

    fn run(&self, words: &[&str]) -> Output {
        let path = format!("{}:/usr/bin:/bin", self.0.display());
        Command::new(self.0.join("setup")).args(words).env("PATH", path).env("HOME", &self.0).output().unwrap()
    }

    /// Returns the log of installations.
    fn log(&self) -> String {
        fs::read_to_string(self.0.join("log")).unwrap_or_default()
    }
}

/// The versions of the linters, as `setup` has them.
fn versions() -> String {
    let setup = read_tree("setup");
    let version = |name: &str| {
        let found = setup.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix("_version="));
        found.unwrap_or_else(|| panic!("no version of {name}")).to_owned()
    };
    format!("codespell {}, vale {}\n", version("codespell"), version("vale"))
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

#[test]
fn linters_are_installed_once_and_again_for_another_version() {
    let machine = Machine::new("linters");
    fs::create_dir_all(machine.linters().parent().unwrap()).unwrap();
    fs::write(machine.linters(), "codespell 0, vale 0\n").unwrap();
    let output = machine.set_up_linters();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(fs::read_to_string(machine.linters()).unwrap(), versions());
    let log = machine.log();
    let calls: Vec<&str> = log.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(calls, ["pip", "go", "pip"], "{log}");
    assert!(machine.set_up_linters().status.success());
    assert_eq!(machine.log(), log);
}

#[test]
fn tools_for_packages_are_installed_for_packages_only() {
    let machine = Machine::new("packages");
    machine.pretend("dpkg-query", "case $* in *debhelper*|*lintian*) exit 1;; esac; echo installed");
    machine.pretend("apt-get", r#"echo "apt-get $*" >>"$HERE/log""#);
    assert!(machine.set_up().status.success());
    assert_eq!(machine.log(), "");
    assert!(machine.run(&["packages"]).status.success());
    let log = machine.log();
    assert!(log.ends_with("install --yes --no-install-recommends debhelper lintian\n"), "{log}");
}
