//! The preload library: unmodified programs that know only SCHED_FIFO run under SCHED_DS in a group with a budget.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A group with 500 of 2500 us in which SCHED_FIFO does not mean SCHED_DS, and functions that run programs.
const GUEST: &str = r#"
    g=/sys/fs/cgroup/g; echo +cpu > /sys/fs/cgroup/cgroup.subtree_control; mkdir $g
    echo 500 > $g/cpu.ds.budget; echo 9 > $g/cpu.ds.priority
    library=$(macrotick rt-lib)
    inside() { sh -c 'echo 0 > /sys/fs/cgroup/g/cgroup.procs; exec "$@"' sh "$@"; }
    preloaded() { inside env LD_PRELOAD="$library" "$@"; }
    policies() { for one in /proc/"$1"/task/*/stat; do sed 's,.*) ,,' "$one" | cut -d ' ' -f 38,39; done; }
"#;

/// Returns the program that is compiled from `rt_lib/posix.c`, once for all tests.
fn posix() -> String {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("posix-{}", std::process::id()));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/rt_lib/posix.c");
    static COMPILED: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    let compiled = *COMPILED.get_or_init(|| {
        let status = Command::new("cc").args(["-O2", "-Wall", "-Wextra", "-o"]).arg(&program).arg(&source).status();
        status.expect("a C compiler").success()
    });
    assert!(compiled, "{} does not compile", source.display());
    program.display().to_string()
}

fn macrotick() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_macrotick"));
    command.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    command
}

/// Runs a script after [`GUEST`], with files of the host; returns output and errors.
fn lab(flavor: &str, files: &[&str], script: &str) -> (String, String) {
    let files = files.iter().flat_map(|file| ["--file", file]);
    let mut command = macrotick();
    command.args(["lab", "exec", "--flavor", flavor]).args(files).args(["--", "/bin/sh", "-c"]);
    texts(command.arg(format!("{GUEST}\n{script}")).output().unwrap())
}

fn texts(output: Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

/// The value of `key=value` in a line of `cpu.ds.stat`.
fn stat(line: &str, key: &str) -> u64 {
    let word = line.split(' ').find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
    word.unwrap_or_else(|| panic!("no {key} in {line}")).parse().unwrap()
}

#[test]
fn the_library_is_written_whole_over_an_old_one() {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("rt-lib/libmacrotick-rt.so");
    for _ in 0..2 {
        let (output, errors) = texts(macrotick().arg("rt-lib").arg(&path).output().unwrap());
        assert_eq!(output, format!("{}\n", path.display()), "{errors}");
        assert!(std::fs::read(&path).unwrap().starts_with(b"\x7fELF"));
    }
    let beside: Vec<PathBuf> =
        std::fs::read_dir(path.parent().unwrap()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(beside, [path]);
    let output = macrotick().args(["rt-lib", "/proc/no/x.so"]).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert!(texts(output).1.contains("cannot write /proc/no"));
}

/// Every way to ask for SCHED_FIFO and SCHED_RR. The program reads the same values as without the library, and the
/// kernel has SCHED_DS in each case.
#[test]
#[ignore = "needs the lab"]
fn a_posix_program_is_told_what_it_asked_for_and_has_sched_ds() {
    let program = posix();
    let script = format!("inside {program}; echo ---; preloaded {program}; echo \"status $?\"");
    let (output, errors) = lab("patched", &[&program], &script);
    let (without, with) = output.split_once("---\n").unwrap_or_else(|| panic!("{output}{errors}"));
    let expected = without.replace("is 1/", "is 17/").replace("is 2/", "is 17/");
    assert!(without.matches("is 1/").count() >= 10 && without.contains("is 2/"), "{without}{errors}");
    assert!(without.contains("EPERM") && without.contains("signals handled in them: 4"), "{without}");
    assert_eq!(with, format!("{expected}status 0\n"), "{errors}");
    assert_eq!(errors, "");
}

/// By default a request fails with a message. With a variable, the program gets its own request, without a budget.
#[test]
#[ignore = "needs the lab"]
fn without_a_budget_it_is_refused_or_as_without_the_library() {
    let program = posix();
    let script = format!(
        "echo 0 > $g/cpu.ds.budget; echo x; preloaded {program} refused; echo y
        inside env LD_PRELOAD=$library MACROTICK_RT=fifo {program} > /tmp/with; inside {program} > /tmp/without
        cmp /tmp/with /tmp/without && grep -c 'is 1/' /tmp/with"
    );
    let reason = |why| {
        format!(
            "libmacrotick-rt: SCHED_FIFO and SCHED_RR are refused: {why}; MACROTICK_RT=fifo allows them, without any \
             bound\n"
        )
    };
    let (output, errors) = lab("patched", &[&program], &script);
    let refused = |errno: &str| {
        format!("refused: create {errno}, setschedparam {errno}, sched_setscheduler {errno}, priority 0 EINVAL\n")
    };
    let rest = output.strip_prefix(&format!("x\n{}y\n", refused("ENOTCONN")));
    let fifos: u64 = rest.unwrap_or_else(|| panic!("{output}{errors}")).trim().parse().unwrap();
    assert!(fifos >= 10, "{output}");
    assert_eq!(errors, reason("the control group has no budget (cpu.ds.budget)"));

    // The pristine kernel has no such groups.
    let script = format!("LD_PRELOAD=$library {program} refused; MACROTICK_RT=fifo LD_PRELOAD=$library {program} fifo");
    let (output, errors) = lab("pristine", &[&program], &script);
    assert!(output.starts_with(&refused("EINVAL")), "{output}{errors}");
    assert!(output.ends_with("setschedparam 0, sched_setscheduler 0, priority 0 EINVAL\n"), "{output}{errors}");
    assert!(errors.ends_with(&reason("this kernel has no SCHED_DS")), "{errors}");
}

/// rt-tests of the distribution: all its real-time threads are under SCHED_DS, and it does its work.
#[test]
#[ignore = "needs the lab"]
fn cyclictest_runs_in_the_budget_of_its_group() {
    let script = "preloaded cyclictest -q -m -p 80 -t 2 -i 2500 -l 200 & sleep 0.2; pid=$(pidof cyclictest)
        policies $pid | sort; cat $g/cpu.ds.stat; wait";
    let (output, errors) = lab("patched", &[], script);
    let lines: Vec<&str> = output.lines().filter(|line| !line.is_empty()).collect();
    let ["0 0", "80 17", "80 17", used, first, second] = lines[..] else { panic!("{output}{errors}") };
    assert!(stat(used, "usage_usec") > 0, "{used}");
    assert!(first.contains("C:    200"), "{first}");
    for line in [first, second] {
        let max = line.rsplit(' ').next().and_then(|max| max.parse::<u64>().ok());
        assert!(max.is_some_and(|max| max < 50), "{line}");
    }
}

/// rt-app calls sched_setattr(2) by its number, because its libc lacks the function. Its endless thread gets the budget
/// and no more.
#[test]
#[ignore = "needs the lab"]
fn rt_app_has_the_budget_of_its_group_and_no_more() {
    let load = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/rt_lib/hog.json");
    let script = format!(
        "preloaded rt-app {load} > /tmp/log 2>&1 & sleep 0.5; pid=$(pidof rt-app); policies $pid | sort
        cat $g/cpu.ds.stat; sleep 0.5; cat $g/cpu.ds.stat; kill -9 $pid; grep -i error /tmp/log"
    );
    let (output, errors) = lab("patched", &["/usr/bin/rt-app", load], &script);
    let lines: Vec<&str> = output.lines().collect();
    let ["0 0", "30 17", before, after] = lines[..] else { panic!("{output}{errors}") };
    let [used, refills] = ["usage_usec", "refills"].map(|key| stat(after, key) - stat(before, key));
    assert!((199..=202).contains(&refills), "{output}");
    assert!((refills * 490..=refills * 510).contains(&used), "{used} us in {refills} periods");
}
