//! CPUs of the plan, and the work of others on them.

use std::collections::BTreeSet;

use super::judging::{cpu_words, each, few, mask, off, release, short, without, without_cpus};
use crate::check::{Check, Mend, Verdict};
use crate::host::{cpus_of, written, Host};
use crate::needs::Needs;

const RUNTIME: &str = "/proc/sys/kernel/sched_rt_runtime_us";
const PERIOD: &str = "/proc/sys/kernel/sched_rt_period_us";
const FAIR: &str = "/sys/kernel/debug/sched/fair_server/cpu*/runtime";
const ISOLATED: &str = "/sys/devices/system/cpu/isolated";
const NOHZ: &str = "/sys/devices/system/cpu/nohz_full";
const WORKQUEUES: &str = "/sys/devices/virtual/workqueue/cpumask";
const WRITEBACK: &str = "/sys/devices/virtual/workqueue/writeback/cpumask";

pub(super) const CHECKS: [Check; 9] = [
    Check {
        name: "throttling",
        rank: 11,
        states: "The kernel does not throttle SCHED_FIFO and SCHED_RR.",
        why: "A throttled task waits for up to 50 ms of each second.",
        source: "Documentation/scheduler/sched-rt-group.rst",
        reads: &[RUNTIME, PERIOD],
        is_needed: |needs| needs.fifo > 0 || (needs.windows && !needs.class),
        judge: throttling,
    },
    Check {
        name: "fair-server",
        rank: 12,
        states: "The reservation for ordinary threads is off, or the plan leaves room for it.",
        why: "While ordinary threads starve, it takes 50 ms of each second from SCHED_FIFO.",
        source: "Linux 6.12, kernel/sched/deadline.c",
        reads: &[FAIR],
        is_needed: |needs| needs.fifo > 0 || (needs.windows && !needs.class),
        judge: fair_server,
    },
    Check {
        name: "isolation",
        rank: 13,
        states: "The CPUs of the plan are an isolated partition.",
        why: "The scheduler moves ordinary threads to other CPUs, and balances their load there.",
        source: "Documentation/admin-guide/cgroup-v2.rst, cpuset.cpus.partition",
        reads: &[ISOLATED, "/sys/fs/cgroup/*/cpuset.cpus.partition", "/sys/fs/cgroup/*/cpuset.cpus.effective"],
        is_needed: |needs| !needs.cpus.is_empty(),
        judge: isolation,
    },
    Check {
        name: "ticks",
        rank: 14,
        states: "nohz_full= covers the CPUs of the plan, and rcu_nocbs= covers nohz_full=.",
        why:
            "A CPU without ticks still runs the callbacks of RCU, and a planned CPU without them is only half isolated.",
        source: "Documentation/timers/no_hz.rst",
        reads: &[NOHZ, "/proc/cmdline"],
        is_needed: |_| false,
        judge: ticks,
    },
    Check {
        name: "timer-migration",
        rank: 24,
        states: "Timers stay on the CPU that armed them.",
        why: "Otherwise idle CPUs push their timers to a CPU that may belong to the plan.",
        source: "tuned, profile realtime",
        reads: &["/proc/sys/kernel/timer_migration"],
        is_needed: |_| true,
        judge: |host, _| off(host, "/proc/sys/kernel/timer_migration"),
    },
    Check {
        name: "watchdogs",
        rank: 25,
        states: "The soft and hard lockup detectors are off.",
        why: "Each has a timer or an interrupt on every CPU every few seconds.",
        source: "Documentation/core-api/real-time/kernel-configuration.rst",
        reads: &["/proc/sys/kernel/watchdog", "/proc/sys/kernel/nmi_watchdog"],
        is_needed: |_| true,
        judge: watchdogs,
    },
    Check {
        name: "workqueues",
        rank: 26,
        states: "Unbound work of the kernel, and that of writeback, stays off the CPUs of the plan.",
        why: "A worker thread of the kernel takes time between windows and delays interrupts.",
        source: "Documentation/core-api/workqueue.rst",
        reads: &[WORKQUEUES, WRITEBACK],
        is_needed: |needs| !needs.cpus.is_empty(),
        judge: workqueues,
    },
    Check {
        name: "autogroup",
        rank: 36,
        states: "Sessions do not share the CPU as groups.",
        why: "With autogroup, nice values count only inside a session: a plan's order of load has no effect.",
        source: "sched(7)",
        reads: &["/proc/sys/kernel/sched_autogroup_enabled"],
        is_needed: |_| false,
        judge: |host, _| off(host, "/proc/sys/kernel/sched_autogroup_enabled"),
    },
    Check {
        name: "slices",
        rank: 71,
        states: "The slices of systemd leave out the CPUs of the plan.",
        why: "Services that start later run on these CPUs.",
        source: "systemd.resource-control(5), AllowedCPUs=",
        reads: &["/sys/fs/cgroup/*.slice/cpuset.cpus.effective", "/sys/fs/cgroup/*.slice/cpuset.cpus"],
        is_needed: |needs| !needs.cpus.is_empty(),
        judge: slices,
    },
];

fn throttling(host: &Host, needs: &Needs) -> Verdict {
    let Some(runtime) = host.number(RUNTIME) else { return without(host, RUNTIME) };
    let throttles = host.option("CONFIG_RT_GROUP_SCHED") == Some("y");
    if release(host).is_some_and(|release| release >= (6, 12)) && !throttles {
        return Verdict::good(format!("{runtime} us: since Linux 6.12 it bounds only admission to SCHED_DEADLINE"));
    }
    if runtime == -1 || runtime >= host.number(PERIOD).unwrap_or(1_000_000) {
        return Verdict::good(format!("{runtime} us"));
    }
    if needs.reservations {
        return Verdict::noted(format!("{runtime} us: the value is also the bound of SCHED_DEADLINE, so it stays"));
    }
    Verdict::bad(format!("{runtime} us"), "-1, which is off", [Mend::write(RUNTIME, -1)])
}

fn fair_server(host: &Host, _: &Needs) -> Verdict {
    let found = host.matching(FAIR);
    if found.is_empty() {
        return match release(host).is_some_and(|release| release < (6, 12)) {
            true => Verdict::absent("kernels before 6.12 have none"),
            false => Verdict::unknown("/sys/kernel/debug/sched/fair_server: not mounted, or no permission"),
        };
    }
    let absent = "the kernel has none";
    match each(&found, |found| found.text == "0", ("0 ns", "0", absent)) {
        Verdict::Good { .. } => Verdict::good("off"),
        verdict => verdict,
    }
}

fn isolation(host: &Host, needs: &Needs) -> Verdict {
    if needs.cpus.is_empty() {
        return Verdict::absent("no description names CPUs");
    }
    let mut isolated = host.text(ISOLATED).and_then(cpus_of).unwrap_or_default();
    for found in host.matching("/sys/fs/cgroup/*/cpuset.cpus.partition") {
        if found.text == "isolated" {
            let path = format!("/sys/fs/cgroup/{}/cpuset.cpus.effective", found.parts[0]);
            isolated.extend(host.text(&path).and_then(cpus_of).unwrap_or_default());
        }
    }
    let missing: BTreeSet<u32> = needs.cpus.difference(&isolated).copied().collect();
    if missing.is_empty() {
        return Verdict::good(format!("{} isolated", cpu_words(&needs.cpus)));
    }
    if needs.others(host).is_empty() {
        return Verdict::noted("the plan uses every CPU of the host, so none can be isolated");
    }
    let boot = Mend::Boot(format!("isolcpus=domain,managed_irq,{}", written(&needs.cpus)));
    let key = Mend::Change("or set `profile: {partition: true}` in the description".into());
    Verdict::bad(
        format!("{} not isolated", cpu_words(&missing)),
        format!("{} isolated", cpu_words(&needs.cpus)),
        [boot, key],
    )
}

fn ticks(host: &Host, needs: &Needs) -> Verdict {
    let without_ticks = host.text(NOHZ).and_then(cpus_of).unwrap_or_default();
    let callbacks: BTreeSet<u32> = host.parameters("rcu_nocbs").filter_map(cpus_of).flatten().collect();
    if without_ticks.is_empty() && callbacks.is_empty() {
        return Verdict::absent("neither is set; a plan needs neither");
    }
    let told = |cpus: &BTreeSet<u32>| if cpus.is_empty() { "none".to_owned() } else { written(cpus) };
    let observed = format!("nohz_full={}, rcu_nocbs={}", told(&without_ticks), told(&callbacks));
    // The kernel offloads the callbacks of all CPUs without ticks by itself.
    let is_good = (callbacks.is_empty() || callbacks.is_superset(&without_ticks))
        && (needs.cpus.is_empty() || without_ticks.is_empty() || without_ticks.is_superset(&needs.cpus));
    match is_good {
        true => Verdict::good(observed),
        false => {
            let wanted: BTreeSet<u32> = if needs.cpus.is_empty() { without_ticks } else { needs.cpus.clone() };
            let list = written(&wanted);
            let expected = format!("both {list}");
            Verdict::bad(observed, expected, [Mend::Boot(format!("nohz_full={list} rcu_nocbs={list}"))])
        }
    }
}

fn watchdogs(host: &Host, _: &Needs) -> Verdict {
    // The first switch turns off the second as well, so it comes last: an undo restores each.
    let paths = ["/proc/sys/kernel/nmi_watchdog", "/proc/sys/kernel/watchdog"];
    let on: Vec<&str> = paths.into_iter().filter(|path| host.number(path).is_some_and(|value| value != 0)).collect();
    if paths.iter().all(|path| host.text(path).is_none()) {
        return Verdict::absent("the kernel has no lockup detector");
    }
    match on.is_empty() {
        true => Verdict::good("off"),
        false => {
            let names = on.iter().filter_map(|path| path.rsplit('/').next()).collect::<Vec<_>>().join(", ");
            let mend: Vec<Mend> = on.iter().map(|path| Mend::write(path, 0)).collect();
            Verdict::bad(format!("{names} on"), "off", mend)
        }
    }
}

fn workqueues(host: &Host, needs: &Needs) -> Verdict {
    if let Some(absent) = without_cpus(host, needs) {
        return absent;
    }
    let others = needs.others(host);
    let masks = [WORKQUEUES, WRITEBACK].into_iter().filter_map(|path| Some((path, mask(host.text(path)?)?)));
    let masks: Vec<(&str, BTreeSet<u32>)> = masks.collect();
    if masks.is_empty() {
        return without(host, WORKQUEUES);
    }
    let wrong: Vec<&str> =
        masks.iter().filter(|(_, cpus)| !cpus.is_disjoint(&needs.cpus)).map(|(path, _)| *path).collect();
    if wrong.is_empty() {
        return Verdict::good(format!("not on {}", cpu_words(&needs.cpus)));
    }
    let value = macrotick_host::sys::cpu_mask(&others.iter().copied().collect::<Vec<u32>>());
    let mend: Vec<Mend> = wrong.iter().map(|path| Mend::write(path, &value)).collect();
    Verdict::bad(format!("may run on {}", cpu_words(&needs.cpus)), format!("only on {}", cpu_words(&others)), mend)
}

fn slices(host: &Host, needs: &Needs) -> Verdict {
    if needs.cpus.is_empty() {
        return Verdict::absent("no description names CPUs, and none is isolated");
    }
    let found = host.matching("/sys/fs/cgroup/*.slice/cpuset.cpus.effective");
    if found.is_empty() {
        return Verdict::absent("there are no slices with CPUs");
    }
    let others = needs.others(host);
    let on = |text: &str| cpus_of(text).is_some_and(|cpus| !cpus.is_disjoint(&needs.cpus));
    let names = found.iter().filter(|found| on(found.text)).map(|found| format!("{}.slice", found.parts[0]));
    let names: Vec<String> = names.collect();
    if names.is_empty() {
        return Verdict::good("no slice has them");
    }
    if others.is_empty() {
        return Verdict::noted("the plan uses every CPU of the host, so the slices keep them");
    }
    let command =
        |name: &String| Mend::Run(format!("systemctl set-property --runtime {name} AllowedCPUs={}", written(&others)));
    let mend: Vec<Mend> = names.iter().filter(|name| is_name(name)).map(command).collect();
    Verdict::bad(few(names).join(", "), format!("slices only on {}", cpu_words(&others)), mend)
}

/// Whether a name of a host can stand in a command as it is.
fn is_name(name: &str) -> bool {
    name.chars().all(|c| c.is_ascii_alphanumeric() || "._-@".contains(c)) && short(name) == *name
}
