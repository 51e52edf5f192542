//! Plans with gates: commands of a dry run, and runs and deployments in the lab.

mod frames;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use macrotick_model::{Duration, GateList, GateTier, Observation};

use frames::{compile, frames};

const EXAMPLE: &str = "examples/two-containers-and-a-gate.yaml";
/// The cycle of the example.
const CYCLE: Duration = Duration::from_millis(1);

/// Makes a folder for one test, below the target folder.
fn folder(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("gates").join(name);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn macrotick(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_macrotick")).args(arguments).current_dir(repository()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_dry_run_prints_the_commands() {
    let printed = macrotick(&["run", EXAMPLE, "--dry-run"]);
    let printed = format!("{}{}", text(&printed.stdout), text(&printed.stderr));
    let veth = "ip link add mtick-0 numtxqueues 2 numrxqueues 2 type veth peer name eth0 numtxqueues 2 numrxqueues 2 \
                address 02:00:00:00:00:00 netns macrotick-sensing";
    let gates =
        "tc -netns macrotick-sensing qdisc add dev eth0 root handle 4d00: stab overhead 24 taprio num_tc 2 map 0 \
                 0 0 0 0 0 1 0 0 0 0 0 0 0 0 0 queues 1@0 1@1 base-time 0 cycle-time 1000000 ";
    let tail = " flags 0x4 lead 100000 clockid CLOCK_MONOTONIC";
    let lines: Vec<&str> = printed.lines().collect();
    assert!(lines.contains(&veth), "{printed}");
    assert!(lines.iter().any(|line| line.starts_with(gates) && line.ends_with(tail)), "{printed}");
    assert_eq!(lines.iter().filter(|line| line.starts_with("# or, if refused (software gates): tc")).count(), 1);
}

/// Plans and runs a description in the lab. Time stamps of the kernel are switched on by a kernel worker, which a flood
/// would keep from the CPU: so another capture runs before.
fn observed(cpus: &str, program: &str, file: &str) -> Observation {
    let told = script_on(
        cpus,
        &[program, file],
        &format!(
            "{program} lo 5000 1000000 & sleep 0.1
            macrotick plan {file} --output /tmp/plan.json > /tmp/timeline
            macrotick observe /tmp/plan.json --output /tmp/observation.json --duration 500ms && cat /tmp/observation.json"
        ),
    );
    let line = told.lines().find(|line| line.starts_with("{\"version\"")).unwrap_or_else(|| panic!("{told}"));
    Observation::from_json(line, "the observation").unwrap()
}

/// Returns when the gate of the class `control` opens and closes.
fn control_gate(list: &GateList) -> (Duration, Duration) {
    let gate = list.entries.iter().position(|entry| entry.open == ["control"]).expect("a gate");
    let opens: Duration = list.entries[..gate].iter().map(|entry| entry.length).sum();
    (opens, opens + list.entries[gate].length)
}

/// The frames of the sensor leave in their gate, also beside the flood.
#[test]
#[ignore = "needs the lab"]
fn frames_leave_in_their_gates() {
    let folder = folder("frames");
    let program = compile(&folder);
    let program = program.to_str().unwrap();
    let description = std::fs::read_to_string(repository().join(EXAMPLE)).unwrap();
    let capture = format!("  - {{name: capture, program: [{program}, mtick-0, \"5000\", \"1000000\"], fifo: 50}}\n");
    let file = folder.join("system.yaml");
    std::fs::write(&file, description.replace("load:\n", &format!("load:\n{capture}"))).unwrap();
    let observation = observed("1", program, file.to_str().unwrap());
    let gates = observation.gates.first().expect("gates");
    assert_eq!((gates.tier, gates.lead), (GateTier::Exact, Some(Duration::from_micros(100))));
    let list = &observation.plan.gates[0];
    let (opens, closes) = control_gate(list);
    let told = observation.output.iter().find(|output| output.name == "capture").expect("an output");
    let (count, least, most) = frames(&told.text);
    assert_eq!(list.cycle, CYCLE);
    assert!(count >= 384, "{count} frames");
    assert!(opens.as_nanos() <= least && most <= closes.as_nanos(), "{opens} .. {closes}: {}", told.text);
    assert!(most - least <= 200, "{}", told.text);
    // The gate thread ran in its windows, and no job was late.
    let pool = observation.pools.iter().find(|pool| pool.name == "gate-sensing").expect("the pool of the gate thread");
    assert!(pool.threads == 1 && pool.runtime_ns >= count * 20_000, "{pool:?}");
    let missed: Vec<u64> = observation.tasks.iter().filter_map(|task| Some(task.counters?.missed)).collect();
    assert_eq!((missed, &observation.remarks), (vec![0, 0], &Vec::new()));
}

/// Each of two interfaces has its gate thread on another CPU. Messages go both ways, and leave in the gates of their
/// sender's interface, beside a flood from one side.
#[test]
#[ignore = "needs the lab"]
fn gate_threads_of_two_cpus_open_their_gates() {
    let folder = folder("two-cpus");
    let program = compile(&folder);
    let program = program.to_str().unwrap();
    let description = format!(
        "system: s\nmacrotick: 1us\ncpus: [0, 1]
namespaces: [{{name: left, address: 10.0.0.1/24}}, {{name: right, address: 10.0.0.2/24}}]
tasks:
  - {{name: ask, period: 1ms, wcet: 200us, cpu: 0, namespace: left, run: {{udp-send: {{spin: 80us, to: \"10.0.0.2:5000\"}}}}}}
  - {{name: hear, period: 1ms, wcet: 200us, cpu: 0, namespace: left, run: {{udp-receive: {{spin: 80us, at: \"10.0.0.1:5001\"}}}}}}
  - {{name: answer, period: 1ms, wcet: 200us, cpu: 1, namespace: right, run: {{udp-send: {{spin: 80us, to: \"10.0.0.1:5001\"}}}}}}
  - {{name: read, period: 1ms, wcet: 200us, cpu: 1, namespace: right, run: {{udp-receive: {{spin: 80us, at: \"10.0.0.2:5000\"}}}}}}
network:
  classes: [{{name: control, priority: 6}}, {{name: rest}}]
  interfaces:
    - {{name: left, namespace: left, speed: 1Gb/s, gates: planned, lead: 100us}}
    - {{name: right, namespace: right, speed: 1Gb/s, gates: planned, lead: 100us}}
  flows:
    - {{name: question, from: ask, to: read, size: 64B, class: control, deadline: 300us}}
    - {{name: reply, from: answer, to: hear, size: 64B, class: control, deadline: 300us}}
load:
  - {{name: of-left, program: [{program}, mtick-0, \"5000\", \"1000000\"], fifo: 50}}
  - {{name: of-right, program: [{program}, mtick-1, \"5001\", \"1000000\"], fifo: 50}}
  - {{name: flood, ping-flood: {{to: 10.0.0.2, bytes: 1400}}, namespace: left, fifo: 40}}
"
    );
    let file = folder.join("system.yaml");
    std::fs::write(&file, description).unwrap();
    let observation = observed("2", program, file.to_str().unwrap());
    // The instructions of both CPUs count in the lab's time, so a CPU can stand still between a gate and the time stamp.
    let pause = Duration::from_micros(20);
    for (cpu, side) in ["left", "right"].into_iter().enumerate() {
        let gates = observation.gates.iter().find(|gates| gates.interface == side).expect("gates");
        assert_eq!((gates.tier, gates.lead), (GateTier::Exact, Some(Duration::from_micros(100))));
        let name = format!("gate-{side}");
        let table = observation.plan.tables.iter().find(|table| table.cpu as usize == cpu).expect("a table");
        assert!(table.windows.iter().any(|window| window.task == name), "{name} has no window on CPU {cpu}");
        let pool = observation.pools.iter().find(|pool| pool.name == name).expect("the pool of the thread");
        let output = observation.output.iter().find(|output| output.name == format!("of-{side}")).expect("an output");
        let (count, least, most) = frames(&output.text);
        let list = observation.plan.gates.iter().find(|list| list.interface == side).expect("a list");
        let (opens, closes) = control_gate(list);
        let latest = closes + pause;
        assert!(count >= 384, "{side}: {count} frames");
        assert!(opens.as_nanos() <= least && most <= latest.as_nanos(), "{side}, {opens} .. {latest}: {}", output.text);
        assert!(pool.threads == 1 && pool.runtime_ns >= count * 20_000, "{pool:?}");
    }
    assert_eq!(observation.remarks, Vec::<String>::new());
}

/// Everything on the host that a deployment with gates could leave.
const HOST: &str = "host() {
    /sbin/ip -details link show; /sbin/ip netns list; /sbin/tc qdisc show
    for process in /proc/[0-9]*; do read name < $process/comm && echo $name; done 2> /dev/null | grep gate/
    true
}
";

/// Runs a script in the lab, with files of the host.
fn script(files: &[&str], text_of_script: &str) -> String {
    script_on("1", files, text_of_script)
}

/// Does the same with some CPUs.
fn script_on(cpus: &str, files: &[&str], text_of_script: &str) -> String {
    let script = format!("{HOST}{text_of_script}");
    let files = files.iter().flat_map(|file| ["--file", file]);
    let arguments: Vec<&str> =
        ["lab", "exec", "--smp", cpus].into_iter().chain(files).chain(["--", "/bin/sh", "-c", &script]).collect();
    let result = macrotick(&arguments);
    format!("{:?}\n{}{}", result.status.code(), text(&result.stdout), text(&result.stderr))
}

/// Another list changes together with the tables, without a frame outside both gates. At the end, the host is as before.
#[test]
#[ignore = "needs the lab"]
fn a_deployment_changes_its_gates_and_leaves_nothing() {
    let folder = folder("deployment");
    let program = compile(&folder);
    let example = repository().join(EXAMPLE);
    let (program, example) = (program.to_str().unwrap(), example.to_str().unwrap());
    let told = script(
        &[program, example],
        &format!(
            "host > /tmp/before
            grep -v -e flood -e '^load' {example} > /tmp/first.yaml
            sed 's/wcet: 200us/wcet: 300us/' /tmp/first.yaml > /tmp/second.yaml
            sed 's/priority: 6/priority: 5/' /tmp/first.yaml > /tmp/third.yaml
            macrotick apply /tmp/first.yaml > /tmp/log 2>&1 & supervisor=$!
            until grep -q ' run from ' /tmp/log; do kill -0 $supervisor || {{ cat /tmp/log; exit 1; }}; sleep 0.02; done
            {program} mtick-0 5000 1000000 > /tmp/frames & capture=$!
            sleep 0.3; macrotick apply /tmp/second.yaml; sleep 0.3; kill $capture
            {program} mtick-0 5000 1000000 > /tmp/later & capture=$!
            sleep 0.3; kill $capture
            macrotick apply /tmp/third.yaml
            macrotick status | grep -e gates -e missed
            macrotick stop; wait $supervisor
            host > /tmp/after; diff /tmp/before /tmp/after && echo as before
            tail -n 1 /tmp/frames; echo later; tail -n 1 /tmp/later; cat /tmp/log"
        ),
    );
    for line in [
        "  gates: other lists on sensing",
        "gates      sensing (eth0 in macrotick-sensing): exact gates with a lead of 100us",
        "interfaces and traffic classes are set up at the start, and the new ones differ: run `macrotick stop` first",
        "as before",
    ] {
        assert!(told.contains(line), "no `{line}` in\n{told}");
    }
    let (both, later) = told.split_once("\nlater\n").unwrap_or_else(|| panic!("{told}"));
    let ((count, least, most), (after, from, to)) = (frames(both), frames(later));
    // The first gate opens 100 us after a window of 200 us, the second one 100 us later.
    assert!(count >= 384 && after >= 128, "{told}");
    assert!(to - from <= 200 && most <= to + 200 && most - least < 100_200 && least + 99_800 < from, "{told}");
}

/// A flood of pings has the rate of its class, and not more of the link than the shaper's credit beyond it. It does so
/// behind gates, without gates, and as the only class.
#[test]
#[ignore = "needs the lab"]
fn a_class_with_a_rate_has_that_much_of_the_link() {
    const RATE: f64 = 40e6;
    let folder = folder("rate");
    let head = "system: s\nmacrotick: 1us\ncpus: [0]
namespaces: [{name: left, address: 10.0.0.1/24}, {name: right, address: 10.0.0.2/24}]
load: [{name: flood, ping-flood: {to: 10.0.0.2, bytes: 1400}, namespace: left}]
tasks:
  - {name: s, period: 1ms, wcet: 200us, namespace: left, run: {udp-send: {spin: 80us, to: \"10.0.0.2:5000\"}}}
  - {name: r, period: 1ms, wcet: 250us, namespace: right, run: {udp-receive: {spin: 80us, at: \"10.0.0.2:5000\"}}}
network:\n";
    let control = "{name: control, priority: 6}";
    let gated = "  flows: [{name: f, from: s, to: r, size: 64B, class: control, deadline: 150us}]
  interfaces: [{name: left, namespace: left, speed: 1Gb/s, gates: planned, lead: 100us}]\n";
    let open = "  interfaces: [{name: left, namespace: left, speed: 1Gb/s}]\n";
    for (name, classes, rest, limit) in [
        ("free", format!("[{control}, {{name: rest}}]"), gated, f64::INFINITY),
        ("gates", format!("[{control}, {{name: rest, rate: 40Mb/s}}]"), gated, RATE),
        ("classes", format!("[{control}, {{name: rest, rate: 40Mb/s}}]"), open, RATE),
        ("alone", "[{name: rest, rate: 40Mb/s}]".into(), open, RATE),
    ] {
        let file = folder.join(format!("{name}.yaml"));
        std::fs::write(&file, format!("{head}  classes: {classes}\n{rest}")).unwrap();
        let file = file.to_str().unwrap();
        let told = script(
            &[file],
            &format!(
                "bytes() {{ echo counted $(cut -d ' ' -f 1 /proc/uptime) $(cat /sys/class/net/mtick-0/statistics/rx_bytes); }}
                macrotick run {file} --duration 2s -o /tmp/out > /tmp/log 2>&1 & run=$!
                sleep 1; bytes; sleep 0.5; bytes
                wait $run; cat /tmp/log"
            ),
        );
        let counted = told.lines().filter_map(|line| line.strip_prefix("counted ")?.split_once(' '));
        let seen: Vec<(f64, f64)> = counted.map(|(at, bytes)| (at.parse().unwrap(), bytes.parse().unwrap())).collect();
        let [(from, before), (until, after)] = seen[..] else { panic!("{name}: {told}") };
        let rate = (after - before) * 8.0 / (until - from);
        assert!(told.contains("report: /tmp/out/report.html"), "{name}: {told}");
        match limit.is_finite() {
            // The uptime has steps of 10 ms. A ping of 1442 bytes counts 24 more behind gates.
            true => assert!((0.92..1.03).contains(&(rate / limit)), "{name}: {rate}\n{told}"),
            false => assert!(rate > 2.0 * RATE, "{name}: {rate}\n{told}"),
        }
    }
}

/// netdevsim takes gates in hardware, and refuses limits of frames. It has no speed, so the kernel takes 10 Mb/s.
#[test]
#[ignore = "needs the lab and the kernel net"]
fn full_gates_are_in_hardware_where_the_device_has_them() {
    let folder = folder("hardware");
    let of = |name: &str, control: &str, speed: &str| {
        let file = folder.join(format!("{name}.yaml"));
        let text = format!(
            "system: s\nmacrotick: 1us\ncpus: [0]\nclock: {{tai: {{period: 10ms, length: 200us, bound: 50us}}}}
tasks: [{{name: s, period: 1ms, wcet: 200us, run: {{udp-send: {{spin: 80us, to: \"10.0.0.2:5000\"}}}}}}]
network:
  classes: [{{name: control, priority: 6{control}}}, {{name: rest}}]
  interfaces: [{{name: wire, device: eth0, speed: {speed}, gates: planned}}]
  flows: [{{name: f, from: s, via: [wire], size: 64B, class: control, deadline: 400us}}]\n"
        );
        std::fs::write(&file, text).unwrap();
        file.to_str().unwrap().to_owned()
    };
    let [free, limited, fast] =
        [of("free", "", "10Mb/s"), of("limited", ", max-size: 400B", "10Mb/s"), of("fast", "", "1Gb/s")];
    let mut arguments = vec!["lab", "exec", "--flavor", "net"];
    [&free, &limited, &fast].into_iter().for_each(|file| arguments.extend(["--file", file]));
    let script = format!(
        "echo '1 1 4' > /sys/bus/netdevsim/new_device; ip=/sbin/ip
        $ip link set eth0 up; $ip addr add 10.0.0.1/24 dev eth0; $ip neigh add 10.0.0.2 lladdr 02:00:00:00:00:01 dev eth0
        /sbin/tc qdisc show > /tmp/before
        for file in {free} {limited} {fast}; do
            macrotick run $file --duration 500ms -o /tmp/out 2>&1 | grep -e '  gates ' -e error; cat /tmp/out/observation.json
            echo; rm -r /tmp/out; /sbin/tc qdisc show | cmp /tmp/before - && echo as before
        done"
    );
    arguments.extend(["--", "/bin/sh", "-c", &script]);
    let told = macrotick(&arguments);
    let told = text(&told.stdout) + &text(&told.stderr);
    let observations: Vec<Observation> = told
        .lines()
        .filter(|line| line.starts_with("{\"version\""))
        .map(|line| Observation::from_json(line, "the observation").unwrap())
        .collect();
    let [free, limited] = &observations[..] else { panic!("{told}") };
    assert_eq!(free.gates[0].tier, GateTier::Hardware, "{told}");
    assert_eq!(free.tasks[0].counters.map(|counters| counters.missed), Some(0), "{told}");
    assert_eq!(limited.gates[0].tier, GateTier::Exact, "{told}");
    assert!(told.contains("Device does not handle queueMaxSDU"), "{told}");
    let slow =
        "error: device `eth0`: cannot use its link: its driver tells no speed, so the kernel takes 10Mb/s, and its \
                description has 1Gb/s; is the link up?";
    assert!(told.contains(slow), "{told}");
    assert_eq!(told.matches("as before").count(), 3, "{told}");
}

/// Frames of a VLAN carry the code point of their class, leave in their gate, and arrive at the far end.
#[test]
#[ignore = "needs the lab"]
fn frames_of_a_vlan_have_the_code_point_of_their_class() {
    let folder = folder("vlan");
    let program = compile(&folder);
    let program = program.to_str().unwrap();
    let file = folder.join("system.yaml");
    let description = "system: s\nmacrotick: 1us\ncpus: [0]
tasks: [{name: s, period: 1ms, wcet: 200us, run: {udp-send: {spin: 80us, to: \"10.0.0.2:5000\"}}}]
network:
  classes: [{name: control, priority: 6, pcp: 5}, {name: rest}]
  interfaces: [{name: wire, device: eth1, vlan: 7, speed: 1Gb/s, lead: 60us, gates: planned}]
  flows: [{name: f, from: s, via: [wire], size: 64B, class: control, deadline: 400us}]\n";
    std::fs::write(&file, description).unwrap();
    let file = file.to_str().unwrap();
    let told = script(
        &[program, file],
        &format!(
            "ip=/sbin/ip
            $ip link add eth1 numtxqueues 2 numrxqueues 2 type veth peer name eth2 numtxqueues 2 numrxqueues 2
            for end in 1 2; do $ip link set eth$end up; done
            macrotick run {file} 2>&1 | tail -n 1
            for end in 1 2; do $ip link add link eth$end name eth$end.7 type vlan id 7; done
            $ip addr add 10.0.0.1/24 dev eth1.7; $ip neigh add 10.0.0.2 lladdr 02:00:00:00:00:02 dev eth1.7
            $ip link set eth2.7 type vlan ingress-qos-map 5:5 6:6; $ip link set eth2.7 address 02:00:00:00:00:02
            for end in 1 2; do $ip link set eth$end.7 up; done
            host > /tmp/before
            {program} lo 5000 1000000 & {program} eth2.7 5000 1000000 > /tmp/frames & capture=$!
            sleep 0.1; macrotick plan {file} -o /tmp/plan.json > /dev/null
            macrotick observe /tmp/plan.json -o /tmp/observation.json --duration 500ms & run=$!
            sleep 0.3; $ip -details link show eth1.7 | grep egress; wait $run; cat /tmp/observation.json; echo
            kill $capture; host > /tmp/after; diff /tmp/before /tmp/after && echo as before; tail -n 1 /tmp/frames"
        ),
    );
    assert!(told.contains("create it: `ip link add link eth1 name eth1.7 type vlan id 7`"), "{told}");
    assert!(told.contains("egress-qos-map") && told.contains("6:5"), "{told}");
    let line = told.lines().find(|line| line.starts_with("{\"version\"")).unwrap_or_else(|| panic!("{told}"));
    let observation = Observation::from_json(line, "the observation").unwrap();
    assert_eq!(observation.gates[0].tier, GateTier::Exact, "{told}");
    let list = &observation.plan.gates[0];
    let gate = list.entries.iter().position(|entry| entry.open == ["control"]).expect("a gate");
    let opens: Duration = list.entries[..gate].iter().map(|entry| entry.length).sum();
    let (count, least, most) = frames(&told);
    let closes = opens + list.entries[gate].length;
    assert!(count >= 256 && opens.as_nanos() <= least && most <= closes.as_nanos(), "{opens} .. {closes}: {told}");
    assert!(told.contains("as before"), "{told}");
}
