//! Each check has a host in which it passes, and a change of that host with which it fails.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use macrotick_doctor::host::{
    Class, ClockState, Coalescing, Content, Interface, Kernel, Measured, Memory, Neighbour, Pause, Policy, Rings,
    Stamps, Thread, VlanState, VERSION,
};
use macrotick_doctor::{capture, checks, examine, Host, Needs, Verdict, Vlan};
use macrotick_model::Duration;

/// The needs that make every check apply: CPU 1 of two CPUs, gates on `eth0`, `CLOCK_TAI`, tasks up to priority 20.
/// `eth0` has classifiers, and VLAN 7 is above it.
fn needs() -> Needs {
    Needs {
        system: Some("all".into()),
        cpus: BTreeSet::from([1]),
        class: true,
        windows: true,
        budgets: true,
        reservations: false,
        tai: Some(Duration::from_micros(50)),
        network: true,
        gated: BTreeSet::from(["eth0".to_owned()]),
        vlans: vec![Vlan { below: "eth0".into(), number: 7, code_points: BTreeMap::from([(6, 5), (0, 0)]) }],
        classified: BTreeMap::from([("eth0".to_owned(), BTreeSet::from([6]))]),
        receivers: BTreeSet::from([RECEIVER]),
        fifo: 20,
    }
}

/// The receiver of the plan's frames.
const RECEIVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

fn thread(tid: i32, name: &str, policy: Policy) -> Thread {
    let is_kernel = name.contains('/') || name.starts_with("rcu");
    let memory = (!is_kernel && policy != Policy::Other).then_some(Memory {
        locked_kib: 4000,
        present_kib: 4000,
        major_faults: 0,
    });
    Thread { tid, process: tid, name: name.into(), is_kernel, policy, cpus: "0-1".into(), last: 0, memory }
}

/// A host in which every check passes.
fn fit() -> Host {
    let cpu = "/sys/devices/system/cpu";
    let mut files: BTreeMap<String, Content> = BTreeMap::new();
    let mut put = |path: String, text: &str| drop(files.insert(path, Content::Text(format!("{text}\n"))));
    for (path, text) in [
        ("/sys/kernel/realtime", "1"),
        ("/sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc"),
        ("/sys/devices/system/clocksource/clocksource0/available_clocksource", "tsc hpet acpi_pm"),
        ("/proc/cpuinfo", "processor : 0\nflags : fpu tsc"),
        ("/sys/devices/system/cpu/vulnerabilities/meltdown", "Not affected"),
        ("/sys/firmware/efi/fw_platform_size", "64"),
        ("/sys/firmware/efi/runtime", "0x1"),
        ("/proc/cmdline", "root=/dev/sda efi=noruntime rcu_nocbs=1 audit=1"),
        ("/proc/irq/30/effective_affinity_list", "0"),
        ("/proc/irq/30/smp_affinity_list", "0"),
        ("/proc/irq/default_smp_affinity", "1"),
        ("/proc/sys/kernel/sched_rt_runtime_us", "1000000"),
        ("/proc/sys/kernel/sched_rt_period_us", "1000000"),
        ("/sys/kernel/debug/sched/fair_server/cpu1/runtime", "0"),
        ("/sys/devices/system/cpu/online", "0-1"),
        ("/sys/devices/system/cpu/isolated", "1"),
        ("/sys/devices/system/cpu/nohz_full", "1"),
        ("/proc/sys/kernel/timer_migration", "0"),
        ("/proc/sys/kernel/watchdog", "0"),
        ("/proc/sys/kernel/nmi_watchdog", "0"),
        ("/sys/devices/virtual/workqueue/cpumask", "1"),
        ("/sys/devices/virtual/workqueue/writeback/cpumask", "1"),
        ("/proc/sys/kernel/sched_autogroup_enabled", "0"),
        ("/sys/fs/cgroup/system.slice/cpuset.cpus.effective", "0"),
        ("/sys/devices/system/cpu/intel_pstate/no_turbo", "1"),
        ("/sys/devices/system/cpu/smt/active", "1"),
        ("/sys/module/pcie_aspm/parameters/policy", "default [performance] powersave"),
        ("/sys/class/net/eth0/device/power/control", "on"),
        ("/sys/devices/system/machinecheck/machinecheck0/check_interval", "0"),
        ("/proc/sys/vm/stat_interval", "10"),
        ("/sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]"),
        ("/sys/kernel/mm/ksm/run", "0"),
        ("/proc/swaps", "Filename Type Size Used Priority"),
        ("/proc/sys/kernel/numa_balancing", "0"),
        ("/proc/sys/vm/compaction_proactiveness", "0"),
        ("/proc/self/status", "CapEff:\t0000000000000000"),
        ("/proc/self/limits", "Max locked memory unlimited unlimited bytes\nMax realtime priority 98 98"),
        ("/sys/kernel/tracing/current_tracer", "nop"),
        ("/sys/kernel/tracing/set_event", ""),
        ("/proc/sys/kernel/printk", "4\t4\t1\t7"),
        ("/proc/consoles", "ttyS0 -W- (EC p a) 4:64"),
        ("/etc/audit/audit.rules", "-D\n-a never,task"),
        ("/sys/class/net/eth0/speed", "1000"),
        ("/sys/class/net/eth0/duplex", "full"),
        ("/sys/class/net/eth0/carrier", "1"),
        ("/sys/class/net/eth0/queues/rx-0/rps_cpus", "0"),
        ("/proc/sys/net/core/netdev_budget_usecs", "2000"),
        ("/proc/sys/net/core/busy_read", "0"),
        ("/proc/sys/net/core/busy_poll", "0"),
        ("/proc/net/packet", "sk RefCnt Type Proto Iface R Rmem User Inode"),
    ] {
        put(path.into(), text);
    }
    for number in 0..2 {
        put(format!("{cpu}/cpu{number}/cpufreq/scaling_governor"), "performance");
        put(format!("{cpu}/cpu{number}/cpufreq/energy_performance_preference"), "performance");
        put(format!("{cpu}/cpu{number}/cpuidle/state0/latency"), "0");
        put(format!("{cpu}/cpu{number}/cpuidle/state1/latency"), "133");
        put(format!("{cpu}/cpu{number}/cpuidle/state1/disable"), "1");
        put(format!("{cpu}/cpu{number}/topology/thread_siblings_list"), &number.to_string());
        put(format!("{cpu}/cpu{number}/thermal_throttle/core_throttle_count"), "0");
    }
    files.insert("/sys/class/net/eth0/device".into(), Content::Link { link: "../../../0000:00:03.0".into() });
    let options = ["PREEMPT_RT", "CPU_FREQ", "CPU_FREQ_DEFAULT_GOV_PERFORMANCE", "CPU_IDLE", "TRACING"];
    let options = options.iter().chain(&["EFI_DISABLE_RUNTIME"]);
    let measured = Measured {
        cpu: 1,
        spin_ns: 1_000_000_000,
        longest_gap_ns: 12_000,
        stolen_ns: 40_000,
        gaps: 3,
        sleeps: 400,
        sleep_median_ns: 3_000,
        sleep_worst_ns: 9_000,
        was_fifo: true,
    };
    Host {
        version: VERSION,
        kernel: Kernel {
            release: "6.13.1-macrotick".into(),
            version: "#1 SMP PREEMPT_RT Debian 6.13.1".into(),
            machine: "x86_64".into(),
        },
        files,
        options: Some(
            options
                .map(|name| (format!("CONFIG_{name}"), "y".to_owned()))
                .chain([("CONFIG_HZ".to_owned(), "1000".to_owned())])
                .collect(),
        ),
        threads: vec![
            thread(10, "ksoftirqd/1", Policy::Fifo(49)),
            thread(11, "ktimers/1", Policy::Fifo(49)),
            thread(12, "backlog_napi/1", Policy::Fifo(49)),
            thread(13, "rcu_preempt", Policy::Fifo(21)),
            thread(14, "irq/30-eth0", Policy::Fifo(50)),
            thread(15, "kauditd/x", Policy::Other),
            thread(100, "chronyd", Policy::Other),
            thread(101, "control", Policy::Fifo(20)),
            thread(102, "auditd", Policy::Other),
        ],
        interfaces: BTreeMap::from([("eth0".to_owned(), interface()), ("wire".to_owned(), vlan())]),
        clock: Some(ClockState { synchronised: true, estimated_error_us: Some(2), tai_offset_s: 37 }),
        class: Some(Class { table: Some(true) }),
        measured: vec![measured],
    }
}

fn interface() -> Interface {
    Interface {
        qdisc: Some("taprio".into()),
        queues: Some(4),
        most_queues: Some(4),
        coalescing: Some(Coalescing::default()),
        features: Some(BTreeSet::new()),
        eee: Some(false),
        pause: Some(Pause::default()),
        rings: Some(Rings { transmit: 64, receive: 256 }),
        stamps: Some(Stamps { hardware: true, clock: Some(0) }),
        size_table: Some(true),
        vlan: None,
        priorities: Some(BTreeSet::from([6])),
        neighbours: Some(BTreeMap::from([(RECEIVER.to_string(), neighbour(true))])),
    }
}

fn neighbour(permanent: bool) -> Neighbour {
    Neighbour { hardware: "02:00:00:00:00:02".into(), permanent }
}

/// The VLAN above `eth0`, under any name.
fn vlan() -> Interface {
    let state = VlanState { number: 7, below: Some("eth0".into()), code_points: BTreeMap::from([(6, 5)]) };
    Interface { vlan: Some(state), ..Interface::default() }
}

/// A change of the fit host with which one check fails.
struct Spoilt(&'static str, fn(&mut Host));

fn put(host: &mut Host, path: &str, text: &str) {
    host.files.insert(path.into(), Content::Text(text.into()));
}

fn option(host: &mut Host, name: &str) {
    host.options.as_mut().unwrap().insert(format!("CONFIG_{name}"), "y".into());
}

fn policy(host: &mut Host, name: &str, policy: Policy) {
    host.threads.iter_mut().find(|thread| thread.name == name).unwrap().policy = policy;
}

fn eth0(host: &mut Host) -> &mut Interface {
    host.interfaces.get_mut("eth0").unwrap()
}

fn spoilt() -> Vec<Spoilt> {
    vec![
        Spoilt("preempt-rt", |host| {
            put(host, "/sys/kernel/realtime", "0");
            host.kernel.version = "#1 SMP PREEMPT_DYNAMIC".into();
            host.options = None;
        }),
        Spoilt("class", |host| host.class = None),
        Spoilt("clocksource", |host| {
            put(host, "/sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet");
        }),
        Spoilt("rt-group-sched", |host| option(host, "RT_GROUP_SCHED")),
        Spoilt("debug-options", |host| option(host, "DEBUG_OBJECTS")),
        Spoilt("virtual-machine", |host| put(host, "/proc/cpuinfo", "flags : fpu hypervisor tsc")),
        Spoilt("container", |host| put(host, "/run/.containerenv", "")),
        Spoilt("mitigations", |host| {
            put(host, "/sys/devices/system/cpu/vulnerabilities/meltdown", "Mitigation: PTI");
        }),
        Spoilt("efi-runtime", |host| put(host, "/proc/cmdline", "efi=runtime")),
        Spoilt("kernel-options", |host| option(host, "LOCKUP_DETECTOR")),
        Spoilt("ksoftirqd", |host| policy(host, "ksoftirqd/1", Policy::Fifo(20))),
        Spoilt("ktimers", |host| policy(host, "ktimers/1", Policy::Fifo(1))),
        Spoilt("network-threads", |host| policy(host, "backlog_napi/1", Policy::Other)),
        Spoilt("rcu-threads", |host| policy(host, "rcu_preempt", Policy::Fifo(1))),
        Spoilt("priorities", |host| policy(host, "control", Policy::Rr(50))),
        Spoilt("interrupt-threads", |host| policy(host, "irq/30-eth0", Policy::Fifo(20))),
        Spoilt("interrupt-cpus", |host| {
            put(host, "/proc/irq/30/smp_affinity_list", "0-1");
            put(host, "/proc/irq/30/effective_affinity_list", "0-1");
        }),
        Spoilt("default-interrupt-cpus", |host| put(host, "/proc/irq/default_smp_affinity", "ff")),
        Spoilt("irqbalance", |host| host.threads.push(thread(103, "irqbalance", Policy::Other))),
        Spoilt("interrupt-thread-cpus", |host| {
            host.threads.iter_mut().find(|thread| thread.name == "irq/30-eth0").unwrap().last = 1;
        }),
        Spoilt("throttling", |host| {
            host.kernel.release = "6.11.2".into();
            put(host, "/proc/sys/kernel/sched_rt_runtime_us", "950000");
        }),
        Spoilt("fair-server", |host| put(host, "/sys/kernel/debug/sched/fair_server/cpu1/runtime", "50000000")),
        Spoilt("isolation", |host| put(host, "/sys/devices/system/cpu/isolated", "")),
        Spoilt("ticks", |host| put(host, "/proc/cmdline", "rcu_nocbs=0")),
        Spoilt("timer-migration", |host| put(host, "/proc/sys/kernel/timer_migration", "1")),
        Spoilt("watchdogs", |host| put(host, "/proc/sys/kernel/nmi_watchdog", "1")),
        Spoilt("workqueues", |host| put(host, "/sys/devices/virtual/workqueue/writeback/cpumask", "3")),
        Spoilt("autogroup", |host| put(host, "/proc/sys/kernel/sched_autogroup_enabled", "1")),
        Spoilt("slices", |host| put(host, "/sys/fs/cgroup/system.slice/cpuset.cpus.effective", "0-1")),
        Spoilt("governor", |host| put(host, &format!("{CPU}/cpufreq/scaling_governor"), "schedutil")),
        Spoilt("idle-states", |host| put(host, &format!("{CPU}/cpuidle/state1/disable"), "0")),
        Spoilt("energy-preference", |host| {
            put(host, &format!("{CPU}/cpufreq/energy_performance_preference"), "balance_power");
        }),
        Spoilt("turbo", |host| put(host, "/sys/devices/system/cpu/intel_pstate/no_turbo", "0")),
        Spoilt("siblings", |host| put(host, &format!("{CPU}/topology/thread_siblings_list"), "0-1")),
        Spoilt("device-power", |host| put(host, "/sys/class/net/eth0/device/power/control", "auto")),
        Spoilt("machine-checks", |host| {
            put(host, "/sys/devices/system/machinecheck/machinecheck0/check_interval", "12c");
        }),
        Spoilt("thermal-limits", |host| put(host, &format!("{CPU}/thermal_throttle/core_throttle_count"), "7")),
        Spoilt("statistics", |host| put(host, "/proc/sys/vm/stat_interval", "1")),
        Spoilt("huge-pages", |host| {
            put(host, "/sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never");
        }),
        Spoilt("same-pages", |host| put(host, "/sys/kernel/mm/ksm/run", "1")),
        Spoilt("swap", |host| put(host, "/proc/swaps", "Filename\n/dev/sda2 partition 1 0 -2")),
        Spoilt("numa-balancing", |host| put(host, "/proc/sys/kernel/numa_balancing", "1")),
        Spoilt("compaction", |host| put(host, "/proc/sys/vm/compaction_proactiveness", "20")),
        Spoilt("locked-memory", |host| {
            let control = host.threads.iter_mut().find(|thread| thread.name == "control").unwrap();
            control.memory = Some(Memory { locked_kib: 0, present_kib: 4000, major_faults: 3 });
        }),
        Spoilt("limits", |host| {
            put(host, "/proc/self/limits", "Max locked memory 65536 65536 bytes\nMax realtime priority 0 0")
        }),
        Spoilt("tai-offset", |host| host.clock.as_mut().unwrap().tai_offset_s = 0),
        Spoilt("synchronisation", |host| host.clock.as_mut().unwrap().estimated_error_us = Some(51)),
        Spoilt("clock-programs", |host| host.threads.push(thread(104, "phc2sys", Policy::Other))),
        Spoilt("stolen-time", |host| host.measured[0].longest_gap_ns = 150_000),
        Spoilt("op-tee", |host| put(host, "/sys/class/tee/tee0/dev", "247:0")),
        Spoilt("timer-latency", |host| host.measured[0].sleep_worst_ns = 900_000),
        Spoilt("tracers", |host| put(host, "/sys/kernel/tracing/current_tracer", "function")),
        Spoilt("console", |host| put(host, "/proc/sys/kernel/printk", "7\t4\t1\t7")),
        Spoilt("audit", |host| put(host, "/etc/audit/audit.rules", "-a always,exit -F arch=b64 -S open")),
        Spoilt("queues", |host| eth0(host).queues = Some(1)),
        Spoilt("qdiscs", |host| eth0(host).qdisc = Some("fq_codel".into())),
        Spoilt("link", |host| put(host, "/sys/class/net/eth0/speed", "-1")),
        Spoilt("coalescing", |host| eth0(host).coalescing.as_mut().unwrap().receive_us = 50),
        Spoilt("offloads", |host| eth0(host).features = Some(BTreeSet::from(["rx-gro".to_owned()]))),
        Spoilt("energy-efficient-ethernet", |host| eth0(host).eee = Some(true)),
        Spoilt("pause-frames", |host| eth0(host).pause.as_mut().unwrap().receive = true),
        Spoilt("rings", |host| eth0(host).rings.as_mut().unwrap().transmit = 256),
        Spoilt("hardware-stamps", |host| eth0(host).stamps.as_mut().unwrap().hardware = false),
        Spoilt("size-table", |host| eth0(host).size_table = Some(false)),
        Spoilt("vlan-priorities", |host| {
            host.interfaces.get_mut("wire").unwrap().vlan.as_mut().unwrap().code_points.insert(6, 6);
        }),
        Spoilt("classifiers", |host| eth0(host).priorities = Some(BTreeSet::from([5]))),
        Spoilt("neighbours", |host| {
            eth0(host).neighbours = Some(BTreeMap::from([(RECEIVER.to_string(), neighbour(false))]));
        }),
        Spoilt("packet-steering", |host| put(host, "/sys/class/net/eth0/queues/rx-0/rps_cpus", "2")),
        Spoilt("softirq-budget", |host| put(host, "/proc/sys/net/core/netdev_budget_usecs", "8000")),
        Spoilt("busy-polling", |host| put(host, "/proc/sys/net/core/busy_poll", "50")),
        Spoilt("bypassing-sockets", |host| put(host, "/proc/net/packet", "sk RefCnt\n0 3 3 0003 2 1 0 0 1")),
    ]
}

/// The directory of the CPU of the plan.
const CPU: &str = "/sys/devices/system/cpu/cpu1";

/// Checks that only tell a state, and those that a host without the thing passes by.
fn passes(name: &str, verdict: &Verdict) -> bool {
    let has_no_thing = ["op-tee"].contains(&name) && matches!(verdict, Verdict::Absent { .. });
    matches!(verdict, Verdict::Good { .. }) || has_no_thing
}

#[test]
fn each_check_passes_on_a_fit_host() {
    let examination = examine(&fit(), &needs());
    for examined in &examination.checks {
        assert!(passes(examined.name, &examined.verdict), "{}: {:?}", examined.name, examined.verdict);
    }
    assert!(examination.is_fit());
}

#[test]
fn each_check_fails_on_a_spoilt_host_and_alone() {
    let spoilt = spoilt();
    let names: BTreeSet<&str> = spoilt.iter().map(|Spoilt(name, _)| *name).collect();
    assert_eq!(names, checks::all().map(|check| check.name).collect());
    for Spoilt(name, spoil) in &spoilt {
        let mut host = fit();
        spoil(&mut host);
        for examined in &examine(&host, &needs()).checks {
            let fails = matches!(examined.verdict, Verdict::Bad(_) | Verdict::Noted { .. });
            // Without its configuration, a host is unknown in other points, too.
            assert_eq!(fails, examined.name == *name, "{name}: {}: {:?}", examined.name, examined.verdict);
        }
    }
}

/// The commands that mend the frames of flows.
#[test]
fn frames_are_mended_by_these_commands() {
    let mends = |name: &str, spoil: fn(&mut Host)| -> Vec<String> {
        let mut host = fit();
        spoil(&mut host);
        let examination = examine(&host, &needs());
        let found = examination.findings().find(|examined| examined.name == name);
        let verdict = found.unwrap_or_else(|| panic!("{name} has no finding")).verdict.finding();
        verdict.unwrap().mend.iter().map(ToString::to_string).collect()
    };
    let learned = |host: &mut Host| {
        eth0(host).neighbours = Some(BTreeMap::from([(RECEIVER.to_string(), neighbour(false))]));
    };
    let keep = "ip neighbour replace 10.0.0.2 lladdr 02:00:00:00:00:02 dev eth0 nud permanent";
    assert_eq!(mends("neighbours", learned), [keep]);
    let ask = "with the MAC of the receiver: ip neighbour replace 10.0.0.2 lladdr MAC dev DEVICE nud permanent";
    assert_eq!(mends("neighbours", |host| eth0(host).neighbours = Some(BTreeMap::new())), [ask]);
    let odd = |host: &mut Host| {
        let hardware = "$(reboot)".to_owned();
        let odd = Neighbour { hardware, permanent: false };
        eth0(host).neighbours = Some(BTreeMap::from([(RECEIVER.to_string(), odd)]));
    };
    assert_eq!(mends("neighbours", odd), [""; 0]);
    assert_eq!(
        mends("classifiers", |host| eth0(host).priorities = Some(BTreeSet::new())),
        ["macrotick apply SYSTEM.yaml"]
    );
}

/// A missing device or part is no finding.
#[test]
fn frames_without_their_devices_are_unknown() {
    let mut host = fit();
    host.interfaces.clear();
    for name in ["vlan-priorities", "classifiers", "neighbours", "size-table"] {
        let examination = examine(&host, &needs());
        let examined = examination.checks.iter().find(|examined| examined.name == name).unwrap();
        assert!(matches!(examined.verdict, Verdict::Unknown { .. }), "{name}: {:?}", examined.verdict);
    }
}

/// A check reads only what a capture has.
#[test]
fn a_capture_reads_all_files_of_the_checks() {
    for Spoilt(name, spoil) in &spoilt() {
        let mut host = fit();
        spoil(&mut host);
        for path in host.files.keys() {
            assert!(capture::reads(path), "{name}: {path}");
        }
    }
}

/// A host that a careless user or an attacker wrote: no check panics, whatever the files have.
#[test]
fn no_text_breaks_a_check() {
    let texts =
        ["", "\u{202e}\u{1b}[2J", "-1", "99999999999999999999", "0-4294967295", "[", "]", "=", "/", "\n\n", "0 0 0"];
    for text in texts {
        for needs in [needs(), Needs::default()] {
            let mut host = fit();
            for content in host.files.values_mut() {
                *content = Content::Text(text.into());
            }
            let named = |name: &str| Thread { name: format!("{name}{text}"), ..thread(1, "irq/", Policy::Fifo(99)) };
            host.threads = ["irq/", "", "ksoftirqd/", "napi/"].map(named).to_vec();
            host.interfaces = BTreeMap::from([(text.to_owned(), interface())]);
            let written = examine(&host, &needs).text(true, |_, word| word.to_owned());
            assert!(!written.contains(['\u{1b}', '\u{202e}']), "{text:?}");
        }
    }
}

/// A reading that failed is no finding.
#[test]
fn an_empty_capture_is_unknown_and_not_bad() {
    let host = Host { version: VERSION, ..Host::default() };
    let bad: Vec<&str> = examine(&host, &needs()).findings().map(|examined| examined.name).collect();
    assert_eq!(bad, ["preempt-rt", "class", "clock-programs"]);
}
