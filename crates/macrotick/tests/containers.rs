//! Container engines as the distribution has them, in the lab's image that has them.

use std::process::{Command, Output};

/// The command that runs a script in the image with engines.
fn guest(script: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_macrotick"));
    command.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    command.args(["lab", "exec", "--flavor", "engines", "--", "/bin/bash", "-c", script]);
    command
}

/// Its output, and errors.
fn texts(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

/// systemd has started all there is, the engines are there, and two runs are alike to the nanosecond.
#[test]
#[ignore = "needs the lab with container engines, takes long"]
fn full_debian_boots_with_its_engines_and_repeats() {
    let script = "systemctl is-active dbus containerd; systemctl --failed --no-legend
        for engine in runc crun podman containerd; do $engine --version > /dev/null && echo $engine; done
        grep -w now /proc/timer_list; cat /proc/sys/kernel/random/boot_id";
    let (output, errors) = texts(&guest(script).output().unwrap());
    let lines: Vec<&str> = output.lines().collect();
    let ["active", "active", "runc", "crun", "podman", "containerd", _now, _id] = lines[..] else {
        panic!("{output}{errors}")
    };
    assert_eq!(texts(&guest(script).output().unwrap()).0, output);
}
