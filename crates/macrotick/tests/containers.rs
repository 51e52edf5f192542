//! The distribution's container engines, in the lab's image with engines.

mod frames;

use std::path::Path;
use std::process::{Command, Output};
use std::time::Instant;

use macrotick_model::Observation;

/// Runs a script in the lab.
fn lab(flavor: &str, shell: &str, script: &str) -> Output {
    command(&["--flavor", flavor], shell, script).output().unwrap()
}

fn command(options: &[&str], shell: &str, script: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_macrotick"));
    command.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    command.args(["lab", "exec"]).args(options).args(["--", shell, "-c", script]);
    command
}

/// Runs a script in the image with engines.
fn guest(script: &str) -> Output {
    lab("engines", "/bin/bash", script)
}

/// Runs a script after [`ENGINES`]; returns output and errors.
fn with_engines(script: &str) -> (String, String) {
    texts(&guest(&behind_engines(script)))
}

/// Does the same with the engines of the stable release, if the host's release is older.
fn with_newer_engines(script: &str) -> (String, String) {
    let mut command = command(&["--flavor", "engines"], "/bin/bash", &behind_engines(script));
    texts(&command.env("MACROTICK_DEBIAN", "trixie").output().unwrap())
}

fn behind_engines(script: &str) -> String {
    format!("{ENGINES}\n{script}")
}

/// Functions that start, find and remove containers of each engine.
const ENGINES: &str = include_str!("containers/engines.sh");

/// The engines of [`ENGINES`].
const NAMES: [&str; 6] = ["runc", "crun", "podman", "podman-runc", "containerd", "containerd-systemd"];

fn texts(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

/// Without any engine: control groups and processes made by hand, and states as runtimes write them.
#[test]
#[ignore = "needs the lab"]
fn a_hook_that_refuses_takes_back_what_it_did() {
    let script = r#"g=/sys/fs/cgroup; mkdir -p $g/a/b $g/c/d $g/e
        sleep 99 & one=$!; echo $one > $g/a/b/cgroup.procs; sleep 99 & two=$!; echo $two > $g/c/d/cgroup.procs
        hook() { echo "{\"id\":\"x\",\"pid\":$1,\"annotations\":{\"macrotick.budget\":\"$2\"}}" | macrotick hook run; echo "status $?"; }
        limits() { grep -c 'Max realtime priority  *99 ' /proc/$1/limits; }
        hook $one 2ms; cat $g/a/cgroup.subtree_control $g/a/b/cpu.ds.budget; limits $one
        hook $two 1ms; echo "[$(cat $g/c/cgroup.subtree_control)]"; ls $g/c/d | grep cpu.ds; limits $two
        kill $one; wait $one; rmdir $g/a/b; mkdir $g/a/b; sleep 99 & one=$!; echo $one > $g/a/b/cgroup.procs
        hook $two 1ms; cat $g/c/cgroup.subtree_control $g/c/d/cpu.ds.budget; limits $two
        hook $$ 1ms; hook $one '1ms","macrotick.cpus":"7'; cat $g/a/b/cpu.ds.budget; echo $$ > $g/e/cgroup.procs; hook $$ 1ms"#;
    let (output, errors) = texts(&lab("patched", "/bin/sh", script));
    let lines: Vec<&str> = output.lines().collect();
    let given = |budget| ["status 0", "cpu", budget, "1"];
    // A refused container has no files of the group either.
    let expected =
        [&given("2000")[..], &["status 1", "[]", "0"], &given("1000"), &["status 1", "status 1", "0", "status 1"]]
            .concat();
    assert_eq!(lines, expected, "{errors}");
    for text in [
        "In microseconds per period: a/b has 2000.",
        "the container is in the root of the control groups",
        "annotation macrotick.cpus: 7: the container may run only on CPU 0",
        "the container is in /sys/fs/cgroup/e together with its engine",
    ] {
        assert!(errors.contains(text), "no `{text}` in\n{errors}");
    }
}

/// The hook waits for room before it refuses. Meanwhile another group uses the controller that the hook has enabled.
#[test]
#[ignore = "needs the lab"]
fn a_hook_that_refuses_takes_no_budget_of_others() {
    let script = r#"g=/sys/fs/cgroup; mkdir -p $g/a/b $g/c/d $g/c/other
        hook() { sleep 99 & pid=$!; echo $pid > $g/$1/cgroup.procs
            echo "{\"id\":\"x\",\"pid\":$pid,\"annotations\":{\"macrotick.budget\":\"$2\"}}" | macrotick hook run; echo "status $?"; }
        hook a/b 2ms
        { until { echo 100 > $g/c/other/cpu.ds.budget; } 2> /dev/null; do sleep 0.001; done; } & user=$!
        hook c/d 1ms; wait $user; cat $g/c/cgroup.subtree_control $g/c/other/cpu.ds.budget $g/c/d/cpu.ds.budget"#;
    let (output, errors) = texts(&lab("patched", "/bin/sh", script));
    assert_eq!(output, "status 0\nstatus 1\ncpu\n100\n0\n", "{errors}");
}

/// A thread may set any affinity. It does not reach CPUs where the container has no budget, unless the container allows
/// this. A binding by the engine, or by a group above, also limits the budget.
#[test]
#[ignore = "needs the lab"]
fn a_container_stays_on_the_cpus_of_its_budget() {
    let script = r#"g=/sys/fs/cgroup; echo +cpuset > $g/cgroup.subtree_control
        hook() { mkdir -p $g/$1; sleep 99 & pid=$!; echo $pid > $g/$1/cgroup.procs
            echo "{\"id\":\"$1\",\"pid\":$pid,\"annotations\":{$2}}" | macrotick hook run; status=$?
            taskset -p 3 $pid > /dev/null 2>&1; echo "$1 $status: $(grep Cpus_allowed_list /proc/$pid/status | cut -f 2), $(cat $g/$1/cpu.ds.budget)"; }
        budget='"macrotick.budget":"500us"'
        hook bound/one "$budget,\"macrotick.cpus\":\"1\""; hook two "$budget,\"macrotick.cpus\":\"1\",\"macrotick.bind\":\"false\""; hook all "$budget"
        hook tasks '"macrotick.tasks":"control wcet=200us period=5ms"'
        mkdir $g/half; echo 1 > $g/half/cpuset.cpus; hook half/all "$budget"; hook half/tasks '"macrotick.tasks":"control wcet=200us period=5ms"'
        hook half/other "$budget,\"macrotick.cpus\":\"0-1\""
        hook much '"macrotick.budget":"2ms","macrotick.cpus":"0"'; echo "[$(cat $g/much/cpuset.cpus)]""#;
    let (output, errors) = texts(&command(&["--smp", "2"], "/bin/sh", script).output().unwrap());
    let expected = "bound/one 0: 1, 1=500\ntwo 0: 0-1, 1=500\nall 0: 0-1, 500\ntasks 0: 0, 0=100\n\
                    half/all 0: 1, 1=500\nhalf/tasks 0: 1, 1=100\nhalf/other 1: 1, 0\nmuch 1: 0-1, 0\n[]\n";
    assert_eq!(output, expected, "{errors}");
    let refused = "annotation macrotick.cpus: 0-1: the container may run only on CPU 1";
    assert!(errors.contains(refused), "no `{refused}` in\n{errors}");
}

/// Prints, after a word, the status of `status`, and the groups that `status` and `admit` report outside of their CPUs,
/// with the CPUs.
const ASTRAY: &str = r#"printf '%s\n' 'container: c' 'criticality: 0' 'budget: 10us' > /tmp/c.yaml
    astray() { grep -o 'group `.*CPU [0-9-]*, where it has no budget' | sed 's/its processes may run on //; s/, where.*//' | sort; }
    told() { macrotick status > /tmp/told; echo "$1: status $?"; astray < /tmp/told | tee /tmp/astray
        macrotick admit /tmp/c.yaml | astray | cmp - /tmp/astray && echo same; }"#;

/// A user who may write to a container's group can change its CPUs after the admission. The container is reported as
/// long as it has CPUs without its budget. A container that must not be bound may have such CPUs; it is reported only
/// if it has no other.
#[test]
#[ignore = "needs the lab"]
fn a_container_that_left_the_cpus_of_its_budget_is_named() {
    let script = r#"g=/sys/fs/cgroup; echo +cpuset > $g/cgroup.subtree_control
        hook() { mkdir -p $g/$1; sleep 99 & pid=$!; echo $pid > $g/$1/cgroup.procs
            echo "{\"id\":\"$1\",\"pid\":$pid,\"annotations\":{$2,\"macrotick.cpus\":\"1\"}}" | macrotick hook run || echo refused; }
        budget='"macrotick.budget":"100us"'; tasks='"macrotick.tasks":"control wcet=100us period=5ms"'
        hook web "$budget"; hook tasks "$tasks"
        hook open "$budget,\"macrotick.bind\":\"false\""; hook free "$tasks,\"macrotick.bind\":\"false\""
        told admitted
        echo 0 > $g/web/cpuset.cpus; echo 0 > $g/free/cpuset.cpus; told moved
        echo 0-1 > $g/web/cpuset.cpus; echo 0-1 > $g/tasks/cpuset.cpus; echo 0-1 > $g/free/cpuset.cpus; told widened
        echo 1 > $g/web/cpuset.cpus; echo 1 > $g/tasks/cpuset.cpus; told back"#;
    let script = format!("{ASTRAY}\n{script}");
    let (output, errors) = texts(&command(&["--smp", "2"], "/bin/sh", &script).output().unwrap());
    let expected = "admitted: status 0\nsame\nmoved: status 1\ngroup `/free`: CPU 0\ngroup `/web`: CPU 0\nsame\n\
                    widened: status 1\ngroup `/tasks`: CPU 0\ngroup `/web`: CPU 0\nsame\nback: status 0\nsame\n";
    assert_eq!(output, expected, "{errors}");
}

/// The same, caused by an engine.
#[test]
#[ignore = "needs the lab with container engines, takes long"]
fn full_a_container_that_its_engine_moves_off_its_budget_is_named() {
    let script = r#"start podman y "macrotick.budget=500us macrotick.cpus=1" "sleep 99" > /dev/null; told admitted
        for cpus in 0 0-1 1; do podman update --cpuset-cpus $cpus y > /dev/null; told $cpus; done"#;
    let script = behind_engines(&format!("{ASTRAY}\n{script}"));
    let (output, errors) =
        texts(&command(&["--flavor", "engines", "--smp", "2"], "/bin/bash", &script).output().unwrap());
    // Sorted by the container's number.
    let said: Vec<&str> = output.lines().map(|line| line.rsplit(": ").next().unwrap_or(line)).collect();
    let named = ["status 1", "CPU 0", "same"];
    let expected = [&["status 0", "same"][..], &named, &named, &["status 0", "same"]].concat();
    assert_eq!(said, expected, "{output}{errors}");
}

/// Containers that were admitted before count as long as their control group exists.
#[test]
#[ignore = "needs the lab"]
fn tasks_get_the_budget_that_they_need_or_are_refused() {
    let script = r#"g=/sys/fs/cgroup
        hook() { mkdir -p $g/$1; sleep 99 & pid=$!; echo $pid > $g/$1/cgroup.procs
            echo "{\"id\":\"$1\",\"pid\":$pid,\"annotations\":{$2}}" | macrotick hook run; echo "$1 $?"; }
        look() { cat $g/$1/cpu.ds.budget $g/$1/cpu.ds.priority $g/$1/cpu.ds.fifo | tr '\n' ' '; echo; }
        hook one '"macrotick.tasks":"control wcet=200us period=5ms"'; look one
        hook slow '"macrotick.tasks":"slow wcet=4800us period=5ms"'; ls $g/slow | grep -c cpu.ds.budget; look slow
        hook little '"macrotick.tasks":"late wcet=200us period=5ms","macrotick.budget":"50us"'
        hook above '"macrotick.tasks":"big wcet=900us period=2500us","macrotick.budget":"2ms","macrotick.criticality":"5"'
        hook two '"macrotick.tasks":"[{name: a, wcet: 50us, period: 50ms, priority: 9}, {name: b, wcet: 50us, period: 50ms, priority: 8}]"'
        look two; printf '%s\n' 'container: c' 'criticality: 0' 'budget: 100us' > /tmp/c.yaml; macrotick admit /tmp/c.yaml | head -n -1
        kill %1; wait %1; rmdir $g/one $g/above $g/slow 2> /dev/null; sleep 0.1
        hook above '"macrotick.tasks":"big wcet=900us period=2500us","macrotick.budget":"2ms","macrotick.criticality":"5"'; look above
        hook odd '"macrotick.tasks":"a wcet=1ms; b"'"#;
    let (output, errors) = texts(&lab("patched", "/bin/sh", script));
    // 100 us in each of two budgets: the first comes after 2400 us at most.
    let expected = "one 0\n100 50 1 \nslow 1\n1\n0 1 0 \nlittle 1\nabove 1\ntwo 0\n10 49 1 \n\
                    this host: 1 CPU, no windows, 2 groups with budgets of 2500us\n\n\
                    c: admitted on CPU 0, budget 100us of every 2500us, priority 24\n  in its control group:\n    \
                    echo 24 > cpu.ds.priority\n    echo 1 > cpu.ds.fifo\n    \
                    echo 0=100 > cpu.ds.budget\n\nabove 0\n2000 74 1 \nodd 1\n";
    assert_eq!(output, expected, "{errors}");
    let refused = |container: &str| {
        format!("container `{container}` is refused: macrotick.tasks: not all deadlines would be met: ")
    };
    for text in [
        refused("slow")
            + "CPU 0: task `slow` of group `slow` has no bound on its response time with a budget of 2273us, its deadline is 5ms",
        refused("little") + "CPU 0: task `late` of group `little` has no bound on its response time with a budget of 50us",
        refused("above") + "CPU 0: task `control` of group `/one` is late by 2ms with a budget of 100us",
        "error: task `b` has no `wcet`\n --> macrotick.tasks:2:3\n".into(),
    ] {
        assert!(errors.contains(&text), "no `{text}` in\n{errors}");
    }
}

/// Budgets around the maximum, with and without tasks of SCHED_DEADLINE, which stay on a CPU or migrate.
#[test]
#[ignore = "needs the lab"]
fn what_is_admitted_is_what_the_kernel_gives() {
    let script = r#"g=/sys/fs/cgroup; echo +cpu > $g/cgroup.subtree_control; mkdir $g/probe $g/other
        given() { echo $cpu=$1 > $g/probe/cpu.ds.budget && echo 0 > $g/probe/cpu.ds.budget; }
        admitted() { printf '%s\n' 'container: c' 'criticality: 0' "cpus: [$cpu]" "budget: $1us" > /tmp/c.yaml
            macrotick admit /tmp/c.yaml > /dev/null; }
        look() { for budget in $*; do
            given $budget 2> /dev/null; echo "$budget $? $(admitted $budget; echo $?)"; done; }
        deadline() { chrt -d -T $1 -D 10000000 -P 10000000 0 sleep 99 & sleep 0.1; }
        "#;
    let look = |cpus: &str, looks: &str| {
        let options = ["--flavor", "patched", "--smp", cpus, "--file", "/usr/bin/chrt"];
        let (output, errors) = texts(&command(&options, "/bin/sh", &format!("{script}{looks}")).output().unwrap());
        println!("{errors}");
        output
    };
    let alone = "cpu=0; look 2372 2373 2374 2375; deadline 4000000; look 1312 1313 1314 1315";
    let expected = "2372 0 0\n2373 0 0\n2374 1 1\n2375 1 1\n1312 0 0\n1313 0 0\n1314 1 1\n1315 1 1\n";
    assert_eq!(look("1", alone), expected);
    // It migrates: CPU 0 could not keep its half. Its number of parts is odd, one less than what costs a part of 1024
    // more.
    let two = "cpu=1; echo 0=1500 > $g/other/cpu.ds.budget; deadline 7999030; look 1129 1130 1131 1132";
    assert_eq!(look("2", two), "1129 0 0\n1130 0 0\n1131 1 1\n1132 1 1\n");
}

/// systemd has started all units, the engines are installed, and two runs are identical to the nanosecond.
#[test]
#[ignore = "needs the lab with container engines, takes long"]
fn full_debian_boots_with_its_engines_and_repeats() {
    let script = "systemctl is-active dbus containerd; systemctl --failed --no-legend
        for engine in runc crun podman containerd; do $engine --version > /dev/null && echo $engine; done
        grep -w now /proc/timer_list; cat /proc/sys/kernel/random/boot_id";
    let (output, errors) = texts(&guest(script));
    let lines: Vec<&str> = output.lines().collect();
    let ["active", "active", "runc", "crun", "podman", "containerd", _now, _id] = lines[..] else {
        panic!("{output}{errors}")
    };
    assert_eq!(texts(&guest(script)).0, output);
}

/// The value of `key=value` in a line of `cpu.ds.stat`.
fn stat(line: &str, key: &str) -> u64 {
    let word = line.split(' ').find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
    word.unwrap_or_else(|| panic!("no {key} in {line}")).parse().unwrap()
}

/// A container of every engine runs an endless program under SCHED_FIFO without privilege. The test checks the group,
/// the limits, the processor time, and the settings of the host that it holds during its life.
const EVERY_ENGINE: &str = r#"settings="/proc/sys/kernel/timershield /proc/sys/kernel/perf_event_paranoid"
    for engine in $engines; do
        start $engine one "macrotick.budget=1ms macrotick.priority=7" "chrt -f 50 sh -c '$spin'" > /dev/null || exit 1
        sleep 0.1; budgets | sed 's,.* ,,'
        group=$(served); cat "$group"/cpu.ds.priority "$group"/cpu.ds.fifo
        pid=$(head -n 1 "$group"/cgroup.procs); chrt -p "$pid" | grep -o 'SCHED_.*'
        sed -n 's/^Max \(realtime priority\|locked memory\)  *\([^ ]*\) .*/\2/p' /proc/"$pid"/limits
        cat "$group"/cpu.ds.stat; sleep 0.5; cat "$group"/cpu.ds.stat
        cat "$group"/cgroup.max.descendants $settings
        remove $engine one > /dev/null || exit 2
        budgets; cat $settings; echo "end $engine"
    done"#;

fn assert_every_engine((output, errors): &(String, String)) {
    let lines: Vec<&str> = output.lines().collect();
    assert_eq!(lines.len(), 14 * NAMES.len(), "{output}{errors}");
    for (engine, lines) in NAMES.into_iter().zip(lines.chunks(14)) {
        let ["1000", "7", "1", "SCHED_FIFO", "unlimited", "99", before, after, "16", "1", "3", "0", "2", end] = lines
        else {
            panic!("{engine}: {lines:?}\n{errors}")
        };
        assert_eq!(*end, format!("end {engine}"));
        let [used, refills] = ["usage_usec", "refills"].map(|key| stat(after, key) - stat(before, key));
        assert!((195..=210).contains(&refills), "{engine}: {before} {after}");
        let allowed = refills * 1000;
        assert!((allowed * 98 / 100..=allowed * 102 / 100).contains(&used), "{engine}: {before} {after}");
    }
}

#[test]
#[ignore = "needs the lab with container engines, takes long"]
fn full_a_container_of_every_engine_has_its_budget_and_no_more() {
    assert_every_engine(&with_engines(EVERY_ENGINE));
}

#[test]
#[ignore = "needs the lab with container engines, takes long"]
fn full_a_container_of_every_newer_engine_has_its_budget_and_no_more() {
    let versions = "for engine in runc crun podman containerd; do $engine --version; done >&2";
    let (output, errors) = with_newer_engines(&format!("{versions}\n{EVERY_ENGINE}"));
    for version in ["runc version 1.1.15", "crun version 1.21", "podman version 5.4", "containerd/containerd 1.7."] {
        assert!(errors.contains(version), "no `{version}` in\n{errors}");
    }
    assert_every_engine(&(output, errors));
}

/// A program in a container preloads the library, with `macrotick.fifo=false`: podman gets it by its options, crun by
/// the configuration.
#[test]
#[ignore = "needs the lab with container engines, takes long"]
fn full_a_program_in_a_container_preloads_the_library() {
    let script = r#"library=$(macrotick rt-lib); both="macrotick.budget=1ms macrotick.fifo=false"
        configure "$both" "exec /usr/bin/chrt -f 50 sh -c '$spin'"
        share < config.json | macrotick hook add --rt-lib "$library" > new.json || exit 1
        mv new.json config.json
        look() { group=$(served); cat "$group"/cpu.ds.fifo; sleep 0.1
            sed 's,.*) ,,' /proc/"$(head -n 1 "$group"/cgroup.procs)"/stat | cut -d ' ' -f 38,39
            cat "$group"/cpu.ds.stat; sleep 0.5; cat "$group"/cpu.ds.stat; }
        crun --systemd-cgroup run --detach one < /dev/null > /dev/null && look; remove crun one > /dev/null
        podman run --detach --name two --network none --annotation macrotick.budget=1ms --annotation macrotick.fifo=false \
            --env LD_PRELOAD="$library" --volume "$library:$library:ro" $(printf -- '--volume %s:%s:ro ' \
            /usr /usr /lib /lib /lib64 /lib64) --rootfs /srv/busybox /usr/bin/chrt -f 50 sh -c "$spin" > /dev/null && look
        remove podman two > /dev/null; budgets"#;
    let (output, errors) = with_engines(script);
    let lines: Vec<&str> = output.lines().collect();
    assert_eq!(lines.len(), 8, "{output}{errors}");
    for lines in lines.chunks(4) {
        let ["0", "50 17", before, after] = lines else { panic!("{output}{errors}") };
        let [used, refills] = ["usage_usec", "refills"].map(|key| stat(after, key) - stat(before, key));
        assert!((195..=210).contains(&refills), "{before} {after}");
        assert!((refills * 980..=refills * 1020).contains(&used), "{before} {after}");
    }
}

/// Unmodified programs of the distribution that know only SCHED_FIFO: they ask for it, and the budget serves them.
#[test]
#[ignore = "needs the lab with container engines, takes long"]
fn full_cyclictest_and_rt_app_run_in_a_container() {
    let load = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/rt_lib/hog.json");
    let script = format!(
        r#"cp {load} /srv/busybox/load.json
        run() {{
            configure "macrotick.budget=1ms macrotick.priority=7" "exec $3"; share < config.json > new.json; mv new.json config.json
            $1 --systemd-cgroup run --detach $2 < /dev/null > /tmp/$2.log 2>&1 || cat /tmp/$2.log; sleep 0.5; group=$(served)
            pid=$(pidof "${{3%% *}}"); cat "$group"/cpu.ds.fifo
            for one in /proc/$pid/task/*/stat; do sed 's,.*) ,,' $one | cut -d ' ' -f 38,39; done | sort -u
            grep -o 'CapEff.*' /proc/$pid/status; cat "$group"/cpu.ds.stat; sleep 0.5; cat "$group"/cpu.ds.stat
        }}
        run crun cyclic "/usr/bin/cyclictest -q -m -p 80 -t 2 -i 2500 -l 400"; sleep 0.5; cat /tmp/cyclic.log; remove crun cyclic
        run runc app "/usr/bin/rt-app /load.json"; remove runc app; budgets"#
    );
    let files = ["--file", "/usr/bin/cyclictest", "--file", "/usr/bin/rt-app", "--file", load];
    let options = [&["--flavor", "engines"][..], &files].concat();
    let (output, errors) = texts(&command(&options, "/bin/bash", &behind_engines(&script)).output().unwrap());
    let lines: Vec<&str> = output.lines().filter(|line| !line.is_empty() && !line.starts_with("WARN")).collect();
    // The programs read SCHED_FIFO as their policy; they have no CAP_SYS_NICE.
    let ["1", "0 0", "80 1", rights, before, after, first, second, ref rest @ ..] = lines[..] else {
        panic!("{output}{errors}")
    };
    assert_eq!(u64::from_str_radix(rights.trim_start_matches("CapEff:").trim(), 16).unwrap() >> 23 & 1, 0, "{rights}");
    assert!(stat(after, "usage_usec") > stat(before, "usage_usec"), "{output}");
    assert!(first.contains("C:    400"), "{output}");
    for line in [first, second] {
        let max = line.rsplit(' ').next().and_then(|max| max.parse::<u64>().ok());
        assert!(max.is_some_and(|max| max < 50), "{line}");
    }
    let ["1", "0 0", "30 1", _, before, after] = rest[..] else { panic!("{output}{errors}") };
    let [used, refills] = ["usage_usec", "refills"].map(|key| stat(after, key) - stat(before, key));
    assert!((195..=210).contains(&refills) && (refills * 980..=refills * 1020).contains(&used), "{output}");
}

/// Every engine prints the reason, and no part of the container runs or remains.
#[test]
#[ignore = "needs the lab with container engines, takes long"]
fn full_a_container_that_asks_too_much_does_not_start_and_says_why() {
    assert_refusals(&with_engines(REFUSALS));
}

#[test]
#[ignore = "needs the lab with container engines, takes long"]
fn full_a_container_of_newer_engines_that_asks_too_much_does_not_start_and_says_why() {
    assert_refusals(&with_newer_engines(REFUSALS));
}

const REFUSALS: &str = r#"start runc first macrotick.budget=1500us "$spin" > /dev/null
        for engine in $engines; do
            start $engine second macrotick.budget=1ms "touch /started; $spin" 2>&1 > /dev/null | cat
            echo "status ${PIPESTATUS[0]}"
            remove $engine second > /dev/null 2>&1; ls /srv/busybox | grep started; budgets; find $groups -name '*second*'
        done
        start crun third "macrotick.bugdet=1ms" "$spin" 2>&1 | cat
        start podman fourth "macrotick.budget=3ms" "$spin" 2>&1 | cat
        start runc fifth "macrotick.pool=web" "$spin" 2>&1 | cat
        podman run --cgroups disabled --annotation macrotick.budget=1ms --network none --rootfs /srv/busybox true 2>&1 | cat
        start podman sixth "" "touch /started" > /dev/null; podman wait sixth; ls /srv/busybox | grep started"#;

fn assert_refusals((output, errors): &(String, String)) {
    let reason = "container `second` is refused: macrotick.budget: 1ms of every 2500us does not fit";
    let group = "system.slice/runc-first.scope";
    // podman's name for a container is a long number.
    let reason_of_any = reason.split_once(" is ").unwrap().1;
    let refusals: Vec<&str> = output.split(&format!("{group} 1500\n")).collect();
    assert_eq!(refusals.len(), NAMES.len() + 1, "{output}{errors}");
    for (engine, said) in NAMES.into_iter().zip(&refusals) {
        assert!(said.contains(reason_of_any), "{engine}: {said}");
        assert!(engine.starts_with("podman") || said.contains(reason), "{engine}: {said}");
        assert!(said.contains(&format!("{group} has 1500.")), "{engine}: {said}");
        // The rest of the output shows the state afterwards: no trace of the program, no further group.
        let status = said.lines().last().and_then(|line| line.strip_prefix("status "));
        assert!(status.is_some_and(|status| status != "0"), "{engine}: {said}");
    }
    for text in [
        "annotation macrotick.bugdet: 1ms: unknown annotation; the known annotations are macrotick.budget, ",
        "annotation macrotick.budget: 3ms: a budget cannot exceed the server period, 2500us",
        "annotation macrotick.pool: web: the installed table has no such pool",
        "lab.service together with its engine: give it a cgroup of its own",
    ] {
        assert!(output.contains(text), "no `{text}` in\n{output}");
    }
    assert!(output.ends_with("\n0\nstarted\n"), "{output}{errors}");
}

/// systemd writes to its groups and to those above. It does not change budgets and the CPUs of budgets, under either
/// driver.
#[test]
#[ignore = "needs the lab with container engines, takes long"]
fn full_systemd_leaves_budgets_alone() {
    let script = r#"start runc r "macrotick.budget=500us macrotick.cpus=0" "sleep 99"; start crun s macrotick.budget=300us "sleep 99"
        start containerd t macrotick.budget=100us "sleep 99"
        start podman u "macrotick.budget=100us macrotick.cpus=0" "sleep 99" > /dev/null
        podman --cgroup-manager cgroupfs run --detach --annotation macrotick.budget=200us --network none \
            --rootfs /srv/busybox sh -c "sleep 99" > /dev/null
        bound() { find $groups -name cpuset.cpus -exec grep -Hx 0 {} +; }
        (budgets; bound) | sort > /tmp/before; budgets | sed 's,.* ,,'; bound | wc -l
        systemctl daemon-reload; systemctl daemon-reexec; systemd-run --quiet --property CPUWeight=50 --wait true
        systemctl set-property --runtime system.slice CPUWeight=200
        systemctl set-property --runtime runc-r.scope CPUWeight=50
        (budgets; bound) | sort | cmp - /tmp/before && echo kept
        systemctl stop runc-r.scope; budgets | grep -c 500"#;
    let (output, errors) = with_engines(script);
    let mut lines: Vec<&str> = output.lines().collect();
    lines[..5].sort();
    assert_eq!(lines, ["100", "100", "200", "300", "500", "2", "kept", "0"], "{errors}");
}

/// A container that windows serve: the table has a pool of that name.
#[test]
#[ignore = "needs the lab with container engines, takes long"]
fn full_a_container_is_a_pool() {
    let script = r#"printf '%s\n' 'system: s' 'cpus: [0]' 'tasks:' '  - {name: control, period: 5ms, wcet: 500us}' 'groups:' \
            '  - {name: web, windows: {period: 5ms, length: 1ms}}' > /tmp/s.yaml
        systemd-run --quiet --service-type=notify --unit deployed macrotick apply /tmp/s.yaml || exit 1
        start podman wrong macrotick.pool=other "$spin" 2>&1 | grep -o 'annotation.*'
        start podman one macrotick.pool=web "$spin" > /dev/null
        group=$(find $groups -path '*libpod*/cpu.tt.entity' -exec grep -lx web {} + | head -n 1); dirname "${group#$groups}"
        used() { sed -n 's/usage_usec //p' "${group%/*}/cpu.stat"; }
        before=$(used); sleep 1; echo $(($(used) - before))
        podman rm --force --time 0 one > /dev/null; macrotick stop > /dev/null; find $groups -name '*libpod*'"#;
    let (output, errors) = with_engines(script);
    let lines: Vec<&str> = output.lines().collect();
    let [refused, group, used] = lines[..] else { panic!("{output}{errors}") };
    assert_eq!(refused, "annotation macrotick.pool: other: the installed table has no such pool; it has web");
    assert!(group.starts_with("/machine.slice/libpod-"), "{group}");
    let used: u64 = used.parse().unwrap();
    assert!((190_000..=215_000).contains(&used), "{used} us in a second");
}

/// Frames of a container that has slots by its annotation leave in them, with every engine. A container without the
/// annotation sends at any time outside, in the same network. Meanwhile no other container gets the slots.
#[test]
#[ignore = "needs the lab with container engines, takes long"]
fn full_frames_of_a_container_of_every_engine_leave_in_its_slots() {
    let script = r#"printf '%s\n' 'system: s' 'cpus: [0]' 'groups: [{name: vendor, criticality: 2, budget: 500us}]' \
            'network:' '  classes: [{name: vendor, priority: 6}, {name: rest}]' '  interfaces:' \
            '    - {name: wire, device: wire, speed: 100Mb/s, gates: planned}' '  slots:' \
            '    - {group: vendor, period: 10ms, length: 2ms, offset: 4ms}' > /tmp/s.yaml
        ip link add bridge up type bridge; ip link set lo up; ip netns add far; ip netns add near
        ip link add wire numtxqueues 2 numrxqueues 2 type veth peer name eth0 netns far
        ip link add end type veth peer name eth0 netns near
        for one in wire end; do ip link set $one master bridge up; done
        for one in "far 1" "near 2"; do set -- $one
            ip -netns $1 addr add 10.9.0.$2/24 dev eth0; ip -netns $1 link set eth0 up; done
        systemd-run --quiet --service-type=notify --unit deployed macrotick apply /tmp/s.yaml || exit 1
        epoch=$(tc qdisc show dev wire | sed -n 's/.*base-time \([0-9]*\) .*/\1/p')
        cp --parents /usr/bin/bash $(ldd /usr/bin/bash | grep -o '/[^ ]*') /srv/busybox
        sends="exec /usr/bin/bash -c 'while :; do echo x; usleep 7300; done > /dev/udp/10.9.0.1/5000'"
        seen() { ip netns exec far timeout 2 FRAMES eth0 5000 10000000 $1 | tail -n 1; }
        filters() { tc filter show dev end ingress | grep -c skbedit; }
        network=near
        for engine in $engines; do
            echo "engine $engine"
            start $engine one "macrotick.budget=500us macrotick.slot=vendor" "$sends" > /dev/null; filters; seen $epoch
            start crun two "macrotick.budget=100us macrotick.slot=vendor" "$sends" 2>&1 | grep -o 'no two containers.*'
            remove $engine one > /dev/null; filters
            start $engine one "macrotick.budget=500us" "$sends" > /dev/null; filters; seen $((epoch + 6000000))
            remove $engine one > /dev/null
        done"#;
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("slots-of-engines");
    std::fs::create_dir_all(&folder).unwrap();
    let program = frames::compile(&folder).display().to_string();
    let script = behind_engines(&script.replace("FRAMES", &program));
    let files = ["/usr/sbin/ip", "/usr/sbin/tc", &program].map(|file| ["--file", file]).concat();
    let options = [&["--flavor", "engines"][..], &files].concat();
    let (output, errors) = texts(&command(&options, "/bin/bash", &script).output().unwrap());
    let mut engines = Vec::new();
    for part in output.split("engine ").skip(1) {
        let lines: Vec<&str> = part.lines().collect();
        let [engine, "1", inside, "no two containers share slots", "0", "0", outside] = lines[..] else {
            panic!("{output}{errors}")
        };
        let (count, first, last) = frames::frames(inside);
        assert!(count >= 128 && first >= 4_000_000 && last < 6_001_500, "{engine}: {inside}");
        // Counted from the end of a slot to the next one.
        let (count, first, last) = frames::frames(outside);
        assert!(count >= 128 && last < 8_000_000 && last - first > 7_000_000, "{engine}: {outside}");
        engines.push(engine);
    }
    assert_eq!(engines, NAMES, "{errors}");
}

/// After any of its processes was killed and the container was removed, its whole budget is free again.
#[test]
#[ignore = "needs the lab with container engines, takes long"]
fn full_what_killed_engines_leave_goes_with_the_container() {
    assert_nothing_is_left(&with_engines(KILLED));
}

#[test]
#[ignore = "needs the lab with container engines, takes long"]
fn full_what_killed_newer_engines_leave_goes_with_the_container() {
    assert_nothing_is_left(&with_newer_engines(KILLED));
}

const KILLED: &str = r#"kill_all() { for pid in $(pidof "$@"); do kill -9 "$pid"; done; }
        whole() { start runc whole macrotick.budget=2370us "$spin" > /dev/null && remove runc whole && echo "$1 is free"; }
        configure macrotick.budget=2ms "$spin"
        runc --systemd-cgroup run one < /dev/null > /dev/null 2>&1 & sleep 1
        budgets; kill -9 $!; wait $! 2> /dev/null; budgets; runc delete --force one; budgets; whole runc
        start podman one macrotick.budget=2ms "$spin" > /dev/null; budgets | sed 's,.* ,,'
        kill_all conmon podman; sleep 0.1; budgets | sed 's,.* ,,'
        podman rm --force --time 0 one > /dev/null 2>&1; budgets; whole podman
        start containerd one macrotick.budget=2ms "$spin"; budgets | sed 's,.* ,,'
        kill_all containerd; until ctr version > /dev/null 2>&1; do sleep 0.5; done; budgets | sed 's,.* ,,'
        kill_all containerd-shim-runc-v2; sleep 2
        ctr tasks rm --force one > /dev/null 2>&1; ctr containers rm one; budgets; whole containerd
        start crun one macrotick.budget=2ms "$spin"; budgets | sed 's,.* ,,'
        kill -9 $(head -n 1 $(served)/cgroup.procs); sleep 0.1; crun delete one; budgets; whole crun
        for engine in runc crun; do
            configure macrotick.budget=2ms "$spin"; $engine --systemd-cgroup create one < /dev/null > /dev/null 2>&1
            budgets | sed 's,.* ,,'
            kill -9 $(head -n 1 $(served)/cgroup.procs); sleep 0.1; $engine start one 2> /dev/null && echo "$engine started a corpse"
            $engine delete --force one; budgets; whole "$engine before its start"
        done
        find $groups -name '*one*'"#;

fn assert_nothing_is_left((output, errors): &(String, String)) {
    let expected = "system.slice/runc-one.scope 2000\nsystem.slice/runc-one.scope 2000\nrunc is free\n\
                    2000\n2000\npodman is free\n2000\n2000\ncontainerd is free\n2000\ncrun is free\n\
                    2000\nrunc before its start is free\n2000\ncrun before its start is free\n";
    assert_eq!(output, expected, "{errors}");
}

/// Containers with random budgets are created, started, killed and deleted while others run. At all times the admitted
/// budgets are those in the kernel. Afterwards the whole budget is free again, and no group remains.
///
/// `MACROTICK_CYCLES=n` sets the number of containers, `MACROTICK_SEED=n` the seed, and
/// `MACROTICK_FLAVOR=debug-engines` the kernel. In that kernel an interrupt that ends a budget takes most of another
/// budget of 200 us. It boots for minutes, and each container takes about one minute.
#[test]
#[ignore = "needs the lab with container engines, takes long"]
fn full_containers_come_and_go_and_budgets_sum_right() {
    let given = |name: &str, otherwise: &str| std::env::var(name).unwrap_or_else(|_| otherwise.to_owned());
    let (flavor, seed) = (given("MACROTICK_FLAVOR", "engines"), given("MACROTICK_SEED", "7"));
    let cycles: u64 = given("MACROTICK_CYCLES", "100").parse().expect("a number of cycles");
    let (most, each) = if flavor.starts_with("debug") { (2.0, 120) } else { (1.05, 10) };
    let script = r#"mkdir $groups/probe; probe() { echo "$1" > $groups/probe/cpu.ds.budget; } 2> /dev/null
        dying() { sed -n 's/nr_dying_descendants //p' $groups/cgroup.stat; }
        for ((whole = 2400; whole > 2300; whole--)); do probe $whole && break; done; probe 0; echo "$whole"
        busy="chrt -f 50 sh -c '$spin'"; begun=$(dying)
        start runc steady "macrotick.budget=200us macrotick.priority=99" "$busy" > /dev/null; steady=$(served)
        left() { ls $groups/system.slice | grep -c -- '-c[0-9]*.scope'; }
        declare -A live; sum=200; admitted=0; refused=0; RANDOM=SEED
        remove_one() {
            local names=("${!live[@]}"); local name=${names[RANDOM % ${#names[@]}]}; local engine=${live[$name]% *}
            $engine kill "$name" KILL || echo "kill $name"
            $engine delete --force "$name" || echo "delete $name"
            ((sum -= ${live[$name]#* })); unset "live[$name]"
        }
        cat "$steady"/cpu.ds.stat
        for ((i = 0; i < CYCLES; i++)); do
            budget=$((10 + RANDOM % 1400)); priority=$((1 + RANDOM % 50)); engine=crun; ((i % 3)) || engine=runc
            program="sleep 999"; ((budget < 150)) && program=$busy
            configure "macrotick.budget=${budget}us macrotick.priority=$priority" "$program"
            $engine --systemd-cgroup create c$i < /dev/null > /tmp/said 2>&1; status=$?
            if ((sum + budget > whole)); then
                ((status != 0)) && grep -q "does not fit" /tmp/said || { echo "c$i: $budget beside $sum"; cat /tmp/said; }
                $engine delete --force c$i > /dev/null 2>&1; ((refused++)); remove_one
            else
                ((status == 0)) && $engine start c$i || { echo "c$i: no $budget beside $sum"; cat /tmp/said; }
                live[c$i]="$engine $budget"; ((sum += budget, admitted++))
                ((${#live[@]} < 5)) || remove_one
            fi
        done
        cat "$steady"/cpu.ds.stat
        while ((${#live[@]})); do remove_one; done
        remove runc steady; sleep 1; echo "$admitted $refused"; left; budgets
        probe $((whole + 1)) && echo "more than there is"; probe $whole && echo whole; probe 0; rmdir $groups/probe
        for ((i = 0; i < 20; i++)); do (($(dying) <= begun)) && break; sleep 0.5; done; echo "$(($(dying) - begun))"; exit 0"#;
    let script = behind_engines(&script.replace("CYCLES", &cycles.to_string()).replace("SEED", &seed));
    let options = ["--wall-limit", &format!("{}s", 600 + each * cycles), "--flavor", &flavor];
    let begin = Instant::now();
    let (output, errors) = texts(&command(&options, "/bin/bash", &script).output().unwrap());
    println!("{cycles} containers in {:.0?}:\n{output}", begin.elapsed());
    let lines: Vec<&str> = output.lines().collect();
    let [whole, before, after, counts, "0", "whole", dying] = lines[..] else { panic!("{output}{errors}") };
    let whole: u64 = whole.parse().unwrap();
    assert!((2350..=2375).contains(&whole), "{whole} us of 2500 us can be had");
    let [used, refills] = ["usage_usec", "refills"].map(|key| stat(after, key) - stat(before, key));
    let share = used as f64 / (refills * 200) as f64;
    assert!((0.975..=most).contains(&share), "{used} us in {refills} periods of 200 us each");
    let counts: Vec<u64> = counts.split(' ').map(|count| count.parse().unwrap()).collect();
    // systemd, or its work in a group, keeps some groups a little longer.
    let dying: i64 = dying.parse().unwrap();
    assert!(dying <= 5, "{dying} groups of {cycles} are still there");
    assert!(counts[0] >= cycles * 45 / 100 && counts[1] >= cycles * 15 / 100, "{counts:?} admitted and refused");
}

/// Returns the groups of an observation: their processor time in microseconds, and the number of refills.
fn groups_of(observation: &str) -> Vec<(String, u64, u64)> {
    let observation = Observation::from_json(observation, "observation.json").unwrap();
    assert_eq!(observation.remarks, Vec::<String>::new());
    observation.groups.into_iter().map(|group| (group.name, group.usage_ns / 1000, group.refills)).collect()
}

/// Functions that run a description, and print the files and containers that remain.
const RUNS: &str = r#"observe() { macrotick plan "/tmp/$1.yaml" -o "/tmp/$1.json" > /dev/null && run_plan "$@"; }
    run_plan() { local name=$1; shift; macrotick observe "/tmp/$name.json" --output "/tmp/$name-o.json" "$@" > /dev/null; }
    # The lock files are never removed.
    left() { find $groups /run -maxdepth 1 -name 'macrotick-*' ! -name macrotick-admission.lock ! -name macrotick-settings.lock; crun list -q; runc list -q; podman ps --all --quiet; echo "left $1"; }
    # The first processes may be the runtime's.
    first() { until process=$(head -n 1 $groups/$1/cgroup.procs 2> /dev/null) && [ "$process" ]; do sleep 0.01; done; }"#;

/// The containers run in their groups, have their budgets, and leave no trace.
#[test]
#[ignore = "needs the lab with container engines, takes long"]
fn full_a_run_starts_containers_and_removes_them() {
    let by_podman = "system: p
tasks: [{name: a, period: 10ms, wcet: 500us, run: {spin: 100us}}]
groups:
  - name: w
    windows: {period: 5ms, length: 1ms}
    run: [{name: d, container: {rootfs: /srv/busybox, program: [sh, -c, \"while :; do :; done\"]}}]
  - name: g
    priority: 9
    budget: 500us
    serve-fifo: true
    run:
      - name: c
        container: {engine: podman, rootfs: /srv/busybox, program: [chrt, -f, \"50\", sh, -c, \"while :; do :; done\"]}
";
    let script = format!(
        "{RUNS}\ncat > /tmp/e.yaml <<'END'\n{}\nEND\ncat > /tmp/p.yaml <<'END'\n{by_podman}\nEND\n{}",
        include_str!("../../../examples/containers.yaml"),
        r#"observe e --backend kernel --duration 2s & first macrotick-guests/macrotick-guest; sleep 1
        first macrotick-guests/macrotick-guest
        chrt -p $process | grep -o 'SCHED_.*\|priority: .*'
        sed -n 's/^Max \(realtime priority\|locked memory\)  *\([^ ]*\) .*/\2/p' /proc/"$process"/limits
        wait $!; echo "status $?"; left e
        observe p --backend kernel --duration 500ms; echo "status $?"; left p
        cat /tmp/e-o.json; echo ---; cat /tmp/p-o.json"#
    );
    let (output, errors) = with_engines(&script);
    let expected = "SCHED_FIFO\npriority: 80\nunlimited\n99\nstatus 0\nleft e\nstatus 0\nleft p\n";
    let observations = output.strip_prefix(expected).unwrap_or_else(|| panic!("{output}{errors}"));
    let (example, by_podman) = observations.split_once("---\n").unwrap();
    let observed = Observation::from_json(by_podman, "observation.json").unwrap();
    // In its windows, and not outside.
    let pool = &observed.pools[0];
    assert!((98_000_000..=102_000_000).contains(&pool.usage_ns), "{pool:?}");
    for (group, budget) in [(&groups_of(example)[1], 750), (&groups_of(by_podman)[0], 500)] {
        let (name, usage, refills) = group;
        let allowed = refills * budget;
        assert!(*refills >= 195 && (allowed * 98 / 100..=allowed * 102 / 100).contains(usage), "{name}: {group:?}");
    }
}

/// An image of podman, with its own program and variables.
#[test]
#[ignore = "needs the lab with container engines, takes long"]
fn full_a_run_starts_an_image() {
    let script = format!(
        "{RUNS}\n{}",
        r#"tar -C /srv/busybox -c . | podman import --quiet --change 'CMD ["sh", "-c", "while :; do :; done"]' \
            --change 'ENV OF_THE_IMAGE=1' - localhost/spins > /dev/null
        cat > /tmp/i.yaml <<'END'
system: i
tasks: [{name: a, period: 10ms, wcet: 500us, run: {spin: 100us}}]
groups: [{name: g, priority: 9, budget: 500us, serve-fifo: true, run: [{name: c, container: {image: localhost/spins}}]}]
END
        observe i --backend kernel --duration 2s & first 'macrotick-g/libpod-*'; sleep 1
        first 'macrotick-g/libpod-*'; grep -xz OF_THE_IMAGE=1 /proc/$process/environ | tr '\0' '\n'
        wait %1; echo "status $?"; left i; podman images --quiet localhost/spins | wc -l
        cat /tmp/i-o.json"#
    );
    let (output, errors) = with_engines(&script);
    let expected = "OF_THE_IMAGE=1\nstatus 0\nleft i\n1\n";
    let observation = output.strip_prefix(expected).unwrap_or_else(|| panic!("{output}{errors}"));
    let (name, usage, refills) = &groups_of(observation)[0];
    assert!((refills * 490..=refills * 510).contains(usage), "{name}: {usage} us in {refills} periods of 500 us each");
}

/// An error names its load, and no container runs on.
#[test]
#[ignore = "needs the lab with container engines, takes long"]
fn full_containers_of_a_run_that_fails_or_is_killed_are_removed() {
    let system = |name: &str, container: &str| {
        format!(
            "cat > /tmp/{name}.yaml <<'END'\nsystem: s\ntasks: [{{name: a, period: 10ms, wcet: 500us, run: {{spin: 100us}}}}]\ngroups: [{{name: g, priority: 9, \
             budget: 500us, run: [{{name: c, container: {container}}}]}}]\nEND\n"
        )
    };
    let script = [
        RUNS,
        "\n",
        &system("runs", r#"{rootfs: /srv/busybox, program: [sleep, "99"]}"#),
        &system("ends", "{rootfs: /srv/busybox, engine: runc, program: [\"true\"]}"),
        &system("program", "{rootfs: /srv/busybox, program: [no-such]}"),
        &system("image", "{image: no-such}"),
        &system("rootfs", "{rootfs: /no/such, program: [sh]}"),
        r#"for one in program image rootfs; do observe $one --backend kernel; echo "status $?"; left $one; done
        macrotick plan /tmp/runs.yaml -o /tmp/runs.json > /dev/null
        observe ends --backend kernel --duration 1s; grep -o 'container `c`: the container.s program has ended' /tmp/ends-o.json | head -n 1; left ends
        macrotick observe /tmp/runs.json --backend kernel --output /tmp/o.json > /dev/null & first macrotick-g/macrotick-c; kill $!; wait $!; left interrupted
        macrotick observe /tmp/runs.json --backend kernel --output /tmp/o.json > /dev/null & first macrotick-g/macrotick-c; sleep 1; first macrotick-g/macrotick-c; kill -9 $!
        while [ -e /proc/$process ]; do sleep 0.1; done; sleep 2; left killed
        observe runs --backend other --duration 200ms; echo "status $?"; left other; macrotick stop > /dev/null; left stopped
        macrotick apply /tmp/runs.yaml > /dev/null & first macrotick-g/macrotick-c; sleep 1; macrotick stop > /dev/null; wait $!; left applied"#,
    ]
    .concat();
    let (output, errors) = with_engines(&script);
    let refused = "status 3\nleft program\nstatus 3\nleft image\nstatus 3\nleft rootfs\n";
    let ended = "container `c`: the container's program has ended\nleft ends\nleft interrupted\n";
    // The kernel's state for a killed runner remains until `macrotick stop`.
    let group = "/sys/fs/cgroup/macrotick-g\n/run/macrotick-settings.json\n";
    let killed = format!("{group}left killed\nstatus 0\n{group}left other\nleft stopped\nleft applied\n");
    assert_eq!(output, [refused, ended, &killed].concat(), "{errors}");
    for text in [
        "container `c`: crun failed to create the container",
        "container `c`: podman failed to create the container",
        "container `c`: there is no directory /no/such",
    ] {
        assert!(errors.contains(text), "no `{text}` in\n{errors}");
    }
}

/// The new container is created while the old one runs, and replaces it.
#[test]
#[ignore = "needs the lab with container engines, takes long"]
fn full_a_container_is_replaced_by_a_change() {
    let script = [
        RUNS,
        r#"
        for number in 91 92 93; do cat > /tmp/$number.yaml <<END
system: s
tasks: [{name: a, period: 10ms, wcet: 500us, run: {spin: 100us}}]
groups: [{name: g, priority: 9, budget: 500us, run: [{name: c, container: {rootfs: /srv/busybox, program: [sleep, "$number"]}}]}]
END
        done
        running() { sleep 1; for one in /proc/[0-9]*/cmdline; do tr '\0' ' ' < $one 2> /dev/null | grep -o '^sleep 9[0-9]'; done; }
        macrotick apply /tmp/91.yaml > /dev/null & first macrotick-g/macrotick-c; running
        for number in 92 93; do macrotick apply /tmp/$number.yaml > /dev/null; echo "status $?"; running; done
        macrotick stop > /dev/null; wait $!; left stopped"#,
    ]
    .concat();
    let (output, errors) = with_engines(&script);
    assert_eq!(output, "sleep 91\nstatus 0\nsleep 92\nstatus 0\nsleep 93\nleft stopped\n", "{errors}");
}

/// The container's budget is what its tasks need. Each engine passes the tasks to the hook. A container with a task
/// that would be late does not start.
#[test]
#[ignore = "needs the lab with container engines, takes long"]
fn full_a_container_is_admitted_for_its_tasks() {
    let script = r#"asks() { IFS='|' start "$1" "$2" "macrotick.tasks=$3" "$4"; }
        for engine in $engines; do
            asks $engine one "control wcet=200us period=5ms priority=50; log wcet=100us period=100ms priority=9" "$spin" > /dev/null || exit 1
            budgets | sed 's,.* ,,'; group=$(served); cat "$group"/cpu.ds.priority "$group"/cpu.ds.fifo
            asks $engine two "slow wcet=4800us period=5ms" "touch /started; $spin" 2>&1 > /dev/null | grep -o 'CPU 0: task `slow`'
            remove $engine two > /dev/null 2>&1; ls /srv/busybox | grep started
            remove $engine one > /dev/null || exit 2; budgets; echo "end $engine"
        done"#;
    let (output, errors) = with_engines(script);
    // The first task takes two budgets of 100 us in 5 ms. With 103 us, the other task has 102 us in 17 times that time.
    let each = NAMES.map(|engine| format!("103\n50\n1\nCPU 0: task `slow`\nend {engine}\n"));
    assert_eq!(output, each.concat(), "{errors}");
}
