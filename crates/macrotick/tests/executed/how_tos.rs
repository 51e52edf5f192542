//! The how-tos, each with the assumptions that it makes about the reader's machine.
//!
//! Commands that need a terminal, a real machine or hours have the reason, and the test that does the same.

use macrotick_fixtures::{pages, read_tree};

use crate::how_to::Page;
use crate::page::{steps, Step};

#[test]
#[ignore = "needs the lab"]
fn admit_one_more_container() {
    Page::of("how-to/admit-one-more-container")
        .in_guest(&["--file", "examples/container.yaml"])
        .after(
            "macrotick admit --system plant.yaml logger.yaml | sed -n '/^  - name/,/^$/p' >> plant.yaml",
            "macrotick check plant.yaml",
        )
        .execute(1);
}

#[test]
#[ignore = "needs the sources of the kernel"]
fn build_a_kernel() {
    Page::of("how-to/build-a-kernel")
        .not_here("./setup packages", "another test installs the packages")
        .not_here("macrotick kernel build --deb", "hours")
        .not_here("./setup arm64", "the suite for arm64 does it")
        .not_here("macrotick kernel build --arch arm64", "hours")
        .not_here("apt install ./linux-image-", "needs a machine")
        .not_here("reboot", "needs a machine")
        .not_here("macrotick doctor", "the page of the doctor does it")
        .execute(1);
}

#[test]
#[ignore = "needs the lab"]
fn change_a_running_system() {
    Page::of("how-to/change-a-running-system").in_guest(&[]).stays("macrotick apply system.yaml").execute(1);
}

#[test]
#[ignore = "needs the lab with container engines, takes long"]
fn full_deploy_as_a_service() {
    Page::of("how-to/deploy-as-a-service")
        .in_guest(&["--flavor", "engines", "--file", "examples/robot-arm.yaml"])
        .replaced("target/x86_64-unknown-linux-gnu/release/macrotick", "/tmp/macrotick")
        .after("mv $(command -v macrotick) /tmp/macrotick", "cp target/")
        .no_output("setting ")
        .execute(0);
}

#[test]
#[ignore = "needs the lab"]
fn examine_a_host() {
    Page::of("how-to/examine-a-host")
        .in_guest(&[])
        .first("printf 'system: a\\ntasks:\\n  - {name: t, period: 10ms, wcet: 1ms}\\n' > system.yaml")
        .ends("macrotick doctor system.yaml --fix", 0)
        .ends("macrotick doctor system.yaml", 1)
        .execute(0);
}

#[test]
#[ignore = "needs the lab"]
fn find_out_why_a_job_missed() {
    Page::of("how-to/find-out-why-a-job-missed")
        .first(
            "macrotick run examples/robot-arm.yaml --lab --backend other; macrotick run examples/robot-arm.yaml --lab",
        )
        .replaced("--trace 100ms", "--lab --trace 100ms")
        .replaced(
            "macrotick status",
            "macrotick lab exec --file examples/robot-arm.yaml -- /bin/sh -c \
             'macrotick apply examples/robot-arm.yaml & sleep 2; macrotick status'",
        )
        .depends("macrotick report", "the misses under SCHED_OTHER depend on the build")
        .execute(1);
}

#[test]
#[ignore = "needs the lab with container engines, takes long"]
fn full_give_a_container_a_budget() {
    Page::of("how-to/give-a-container-a-budget")
        .in_guest(&["--flavor", "engines"])
        .first(
            r#"mkdir /tmp/bundle && cd /tmp/bundle && runc spec && sed -i 's,"path": "rootfs","path": "/srv/busybox",
                s,"terminal": true,"terminal": false,; s,"readonly": true,"readonly": false,; s,"sh"$,"true",' config.json"#,
        )
        .replaced("IMAGE", "--network none --rootfs /srv/busybox true")
        .replaced("NAME", "one")
        .after("runc delete --force one", "ctr run --config config.json NAME")
        .after(
            r#"ctr containers rm one; sed -i 's,"linux": {,&"cgroupsPath": "system.slice:ctr:one"\,,' config.json"#,
            "ctr run --config config.json --runc-systemd-cgroup",
        )
        .no_output("Error: OCI runtime error")
        .execute(0);
}

#[test]
#[ignore = "needs the lab"]
fn give_a_group_a_budget() {
    Page::of("how-to/give-a-group-a-budget").in_guest(&[]).execute(0);
}

/// Ten frames of the example's flow, each in its window, with the epoch and the clocks of the page.
const CAPTURE: &str = r#"
macrotick plan examples/two-containers-and-a-gate.yaml -o plan.json
python3 - <<'END'
import json, struct
duration = lambda text: int(text.removesuffix("ns"))
gates = json.load(open("plan.json"))["gates"][0]["entries"]
opens = [one["open"] for one in gates].index(["control"])
at = sum(duration(before["length"]) for before in gates[:opens])
with open("frames.pcap", "wb") as file:
    file.write(struct.pack("<IHHiIII", 0xa1b23c4d, 2, 4, 0, 0, 65535, 1))
    for number in range(10):
        ip = bytes([69, 0, 0, 44, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2])
        frame = bytes([2] * 12 + [8, 0]) + ip + struct.pack(">HHHH", 4000, 5000, 24, 0) + struct.pack("<QQ", number, 0)
        instant = 12400000000 + 1732784000123456789 + number * 1000000 + at + 2000
        file.write(struct.pack("<IIII", instant // 10**9, instant % 10**9, len(frame), len(frame)) + frame)
END
"#;

#[test]
fn judge_a_capture() {
    Page::of("how-to/judge-a-capture")
        .first(CAPTURE)
        .not_here("ip netns exec macrotick-sensing tcpdump", "needs a device")
        .not_here("macrotick check plan.json --capture frames.pcap --epoch deployed", "needs the capture of a device")
        .execute(0);
}

#[test]
#[ignore = "needs the lab"]
fn measure_a_network_path() {
    Page::of("how-to/measure-a-network-path")
        .in_guest(&["--smp", "2"])
        .first(
            "/sbin/ip netns add server; /sbin/ip link add eth1 type veth peer name eth1 netns server
             /sbin/ip addr add 10.0.0.1/24 dev eth1; /sbin/ip link set eth1 up; /sbin/ip link set lo up
             /sbin/ip -n server addr add 10.0.0.2/24 dev eth1; /sbin/ip -n server link set eth1 up",
        )
        .replaced("macrotick probe serve", "/sbin/ip netns exec server macrotick probe serve")
        .replaced("--count 60000", "--count 300")
        .stays("macrotick probe serve")
        .not_here("macrotick probe serve --xdp", "the kernel has no AF_XDP: `bench udp` takes this path")
        .not_here("macrotick probe run 10.0.0.2 --xdp", "the same")
        .execute(0);
}

#[test]
#[ignore = "needs the lab"]
fn measure_any_program() {
    Page::of("how-to/measure-any-program")
        .in_guest(&["--file", "control"])
        .with_program("control", include_str!("control.c"))
        .first("cp control /usr/bin/control; control & running=$!")
        .replaced("4711", "$running")
        .depends("macrotick measure --for 10s -- ", "the counts depend on the instant at which the program begins")
        .execute(0);
}

#[test]
fn move_from_amalthea() {
    Page::of("how-to/move-from-amalthea").execute(1);
}

#[test]
#[ignore = "needs the lab"]
fn move_from_rt_app() {
    Page::of("how-to/move-from-rt-app")
        .in_guest(&["--file", "/usr/bin/rt-app", "--file", "/lib/x86_64-linux-gnu/libgcc_s.so.1"])
        .after(
            "g=/sys/fs/cgroup; echo +cpu > $g/cgroup.subtree_control; mkdir $g/a; echo 500 > $g/a/cpu.ds.budget
             echo $$ > $g/a/cgroup.procs",
            "LD_PRELOAD=",
        )
        .execute(1);
}

#[test]
#[ignore = "needs the lab"]
fn plan_several_hosts() {
    Page::of("how-to/plan-several-hosts")
        .in_guest(&["--smp", "2", "--file", "examples/two-hosts.yaml"])
        .stays("macrotick apply plan.json")
        .after("macrotick plan examples/two-hosts.yaml -o plan.json", "macrotick run plan.json")
        .execute(0);
}

#[test]
#[ignore = "needs the lab"]
fn put_a_program_on_the_timetable() {
    Page::of("how-to/put-a-program-on-the-timetable")
        .in_guest(&[])
        .after(
            "printf 'system: a\\ngroups:\\n  - {name: tools, windows: {period: 10ms, length: 2ms}}\\n' > tools.yaml
             macrotick apply tools.yaml & sleep 2",
            "mkdir /sys/fs/cgroup/tools",
        )
        .execute(0);
}

#[test]
#[ignore = "needs the lab"]
fn reserve_for_any_program() {
    Page::of("how-to/reserve-for-any-program")
        .in_guest(&["--smp", "2", "--file", "frames"])
        .with_program("frames", include_str!("../adapt/frames.c"))
        .first(
            "cp frames /bin/frames; printf '#!/bin/sh\\nexec frames 40000 4000 0 100 > /dev/null\\n' > /bin/mpv
             printf '#!/bin/sh\\nsleep 1\\n' > /bin/make; chmod +x /bin/mpv /bin/make
             sleep 100 & player=$!; frames 40000 4000 0 10000 & other=$!",
        )
        .replaced("--at-most 20ms --pid 4711", "--at-most 20ms --pid $other")
        .replaced("4711", "$player")
        .stays("macrotick reserve --runtime 10ms --period 40ms --pid")
        .stays("macrotick reserve --adapt --period 40ms")
        .no_output("8ms in each 10ms")
        .not_here("systemctl enable --now macrotick-grant.socket", "needs systemd")
        .no_output("10ms in each 40ms (25.0 % of a CPU), on the CPUs 0, 1")
        .execute(2);
}

#[test]
#[ignore = "needs the lab"]
fn serve_kernel_threads() {
    Page::of("how-to/serve-kernel-threads")
        .in_guest(&[])
        .first(
            "g=/sys/fs/cgroup; echo +cpu > $g/cgroup.subtree_control; mkdir $g/network
             echo 500 > $g/network/cpu.ds.budget
             pgrep() { for one in /proc/[0-9]*; do [ \"$(cat $one/comm)\" = $2 ] && echo ${one#/proc/}; done; return 0; }",
        )
        .execute(0);
}

#[test]
#[ignore = "needs the lab"]
fn set_up_the_host_for_udp() {
    Page::of("how-to/set-up-the-host-for-udp")
        .in_guest(&["--smp", "2"])
        .first("/sbin/ip link add eth1 type veth peer name eth2")
        .execute(0);
}

#[test]
#[ignore = "needs the lab and the pristine kernel, takes long"]
fn full_use_the_lab() {
    page_with_tasks("how-to/use-the-lab")
        .first("mkdir -p target/x86_64-unknown-linux-gnu/release")
        .not_here("cargo build --release", "the user of the test has built it")
        .not_here("alias macrotick=", "the search path has it")
        .replaced(
            "cargo run --release -p macrotick-lab --",
            concat!("env -C ", env!("CARGO_MANIFEST_DIR"), "/../.. cargo run --release -p macrotick-lab --"),
        )
        .not_here("MACROTICK_LAB_GDB=4477", "waits for a debugger")
        .not_here("gdb ", "needs a debugger")
        .execute(0);
}

#[test]
#[ignore = "needs the lab"]
fn soak_a_deployment() {
    Page::of("how-to/soak-a-deployment")
        .in_guest(&["--file", "examples/robot-arm.yaml"])
        .replaced("--state /var/lib/macrotick/soak", "--state /var/lib/macrotick/soak --save-every 1s")
        .stays("macrotick soak run")
        .after("sleep 6", "macrotick soak report /var/lib/macrotick/soak")
        .depends("macrotick soak report", "the report is of any second")
        .not_here("systemctl", "needs systemd")
        .execute(1);
}

#[test]
#[ignore = "needs the lab"]
fn watch_a_deployment() {
    Page::of("how-to/watch-a-deployment")
        .in_guest(&["--file", "examples/robot-arm.yaml"])
        .first("macrotick apply examples/robot-arm.yaml & sleep 2; mkdir -p /var/lib/prometheus/node-exporter")
        .not_here("macrotick top", "needs a terminal: the tests of the crate `macrotick-view` draw it")
        .stays("macrotick export metrics --")
        .execute(1);
}

/// A page that builds the tasks. Tests that run at once share them.
fn page_with_tasks(page: &'static str) -> Page {
    Page::of(page).replaced("make tasks", "flock examples/tasks make -C examples/tasks")
}

/// A page about a task in a language.
fn language(page: &'static str) -> Page {
    page_with_tasks(page).replaced("--backend fifo", "--lab --backend fifo")
}

#[test]
#[ignore = "needs the lab"]
fn write_a_task_in_c() {
    language("how-to/write-a-task-in-c").execute(0);
}

#[test]
#[ignore = "needs the lab"]
fn write_a_task_in_python() {
    language("how-to/write-a-task-in-python").execute(0);
}

#[test]
#[ignore = "needs the lab"]
fn write_a_task_in_rust() {
    language("how-to/write-a-task-in-rust").execute(0);
}

/// Pages that another test executes, because they need a whole machine.
const ELSEWHERE: [(&str, &str); 1] = [("install-on-a-machine", "crates/macrotick/tests/packages.rs")];

#[test]
fn each_how_to_with_commands_is_executed() {
    let (tests, mut with_commands) = (read_tree("crates/macrotick/tests/executed/how_tos.rs"), 0);
    for path in pages() {
        let Ok(page) = path.strip_prefix("docs/how-to") else { continue };
        let name = page.file_stem().and_then(|name| name.to_str()).expect("a name of ours");
        let steps = steps(&read_tree(path.to_str().expect("a name of ours")));
        if !steps.iter().any(|step| matches!(step, Step::Run(_))) {
            continue;
        }
        with_commands += 1;
        let is_executed = tests.contains(&format!("(\"how-to/{name}\")"));
        let elsewhere = ELSEWHERE.iter().find(|(page, _)| *page == name);
        assert!(is_executed != elsewhere.is_some(), "{name}");
        elsewhere.into_iter().for_each(|(_, test)| drop(read_tree(test)));
    }
    assert!(with_commands > 18, "only {with_commands} how-tos have commands");
}
