//! Frequency, idle states, siblings, thermal limits.

use std::collections::BTreeSet;

use super::judging::{cpu_words, each, few, listed, short, without, without_network};
use crate::check::{Check, Mend, Verdict};
use crate::host::{cpus_of, Host, Match};
use crate::needs::Needs;

const GOVERNOR: &str = "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor";
const IDLE: &str = "/sys/devices/system/cpu/cpu*/cpuidle/state*/latency";
const EPP: &str = "/sys/devices/system/cpu/cpu*/cpufreq/energy_performance_preference";
const TURBO: &str = "/sys/devices/system/cpu/intel_pstate/no_turbo";
const BOOST: &str = "/sys/devices/system/cpu/cpufreq/boost";
const SMT: &str = "/sys/devices/system/cpu/smt/active";
const SIBLINGS: &str = "/sys/devices/system/cpu/cpu*/topology/thread_siblings_list";
const ASPM: &str = "/sys/module/pcie_aspm/parameters/policy";
const RUNTIME: &str = "/sys/class/net/*/device/power/control";
const MACHINE_CHECKS: &str = "/sys/devices/system/machinecheck/machinecheck*/check_interval";
const THERMAL: &str = "/sys/devices/system/cpu/cpu*/thermal_throttle/core_throttle_count";

pub(super) const CHECKS: [Check; 8] = [
    Check {
        name: "governor",
        rank: 15,
        states: "The frequency of the CPUs does not change.",
        why: "A job at a lower frequency takes longer than its measured execution time.",
        source: "Documentation/core-api/real-time/kernel-configuration.rst",
        reads: &[GOVERNOR, "/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver"],
        is_needed: |_| true,
        judge: governor,
    },
    Check {
        name: "idle-states",
        rank: 16,
        states: "CPUs use no idle state that they leave later than after 10 us.",
        why: "A wake-up from a deep idle state takes 50 us to 1 ms, and the caches are empty.",
        source: "Documentation/admin-guide/pm/cpuidle.rst",
        reads: &[IDLE, "/sys/devices/system/cpu/cpu*/cpuidle/state*/disable"],
        is_needed: |_| true,
        judge: idle_states,
    },
    Check {
        name: "energy-preference",
        rank: 17,
        states: "The preference of the hardware is performance.",
        why: "The hardware lowers the frequency by itself, whatever the governor says.",
        source: "Documentation/admin-guide/pm/intel_pstate.rst",
        reads: &[EPP],
        is_needed: |_| false,
        judge: |host, needs| {
            let expected = ("performance, or 0", "performance", "the CPUs have no such preference");
            each(&planned(host.matching(EPP), needs), |found| ["performance", "0"].contains(&found.text), expected)
        },
    },
    Check {
        name: "turbo",
        rank: 18,
        states: "Turbo frequencies are off.",
        why: "With them, the frequency depends on temperature and on the load of the other CPUs.",
        source: "Documentation/admin-guide/pm/intel_pstate.rst",
        reads: &[TURBO, BOOST],
        is_needed: |_| false,
        judge: turbo,
    },
    Check {
        name: "siblings",
        rank: 19,
        states: "No CPU of the plan shares its core with another one.",
        why: "Two threads of a core share its units and caches: each job takes up to twice as long.",
        source: "Documentation/admin-guide/cputopology.rst",
        reads: &[SMT, SIBLINGS],
        is_needed: |_| true,
        judge: siblings,
    },
    Check {
        name: "device-power",
        rank: 58,
        states: "Devices of the plan and their links stay powered.",
        why: "A frame waits while the link or the device wakes up.",
        source: "Documentation/core-api/real-time/hardware.rst",
        reads: &[ASPM, RUNTIME],
        is_needed: |needs| needs.network,
        judge: device_power,
    },
    Check {
        name: "machine-checks",
        rank: 59,
        states: "The kernel does not poll for machine checks.",
        why: "The poll is a timer on every CPU, every 5 min by default.",
        source: "Documentation/arch/x86/x86_64/machinecheck.rst",
        reads: &[MACHINE_CHECKS],
        is_needed: |_| false,
        judge: |host, _| {
            let expected = ("0, which is off", "0", "the CPUs have no machine checks");
            // Each CPU shows the same number.
            each(
                &host.matching(MACHINE_CHECKS).into_iter().take(1).collect::<Vec<_>>(),
                |found| found.text == "0",
                expected,
            )
        },
    },
    Check {
        name: "thermal-limits",
        rank: 61,
        states: "No CPU was slowed down because of its temperature.",
        why: "The hardware stops the clock of a hot CPU, without any interrupt.",
        source: "Documentation/arch/x86/x86_64/machinecheck.rst",
        reads: &[THERMAL],
        is_needed: |_| true,
        judge: thermal,
    },
];

/// Keeps the files of the CPUs of the plan, if there are such CPUs.
fn planned<'a>(found: Vec<Match<'a>>, needs: &Needs) -> Vec<Match<'a>> {
    let is_planned = |found: &Match| found.parts[0].parse().is_ok_and(|cpu| needs.cpus.contains(&cpu));
    found.into_iter().filter(|found| needs.cpus.is_empty() || is_planned(found)).collect()
}

fn governor(host: &Host, needs: &Needs) -> Verdict {
    let found = planned(host.matching(GOVERNOR), needs);
    // `userspace` and `powersave` of a driver without its own algorithm keep a frequency, too.
    let driver = host.text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver").unwrap_or_default();
    let is_fixed = |found: &Match| match found.text {
        "performance" | "userspace" => true,
        "powersave" => !driver.contains("pstate"),
        _ => false,
    };
    each(&found, is_fixed, ("performance", "performance", "the CPUs have one frequency"))
}

/// The longest latency of an idle state, in microseconds: that of C1 is below it.
const LATENCY: i64 = 10;

fn idle_states(host: &Host, needs: &Needs) -> Verdict {
    let found = planned(host.matching(IDLE), needs);
    if found.is_empty() {
        return Verdict::absent("the CPUs have no idle states");
    }
    let is_deep = |found: &&Match| {
        let disable = found.path.replace("/latency", "/disable");
        found.text.parse::<i64>().is_ok_and(|us| us > LATENCY) && host.number(&disable) != Some(1)
    };
    let deep: Vec<&Match> = found.iter().filter(is_deep).collect();
    if deep.is_empty() {
        return Verdict::good(format!("none above {LATENCY} us is on"));
    }
    let states: Vec<(String, String)> = deep
        .iter()
        .map(|found| (format!("CPU {}", found.parts[0]), format!("state {}, {} us", found.parts[1], found.text)))
        .collect();
    let observed = listed(states.iter().map(|(cpu, state)| (cpu.clone(), state.as_str())));
    let mend: Vec<Mend> =
        deep.iter().map(|found| Mend::write(&found.path.replace("/latency", "/disable"), 1)).collect();
    Verdict::bad(observed, format!("at most {LATENCY} us"), mend)
}

fn turbo(host: &Host, _: &Needs) -> Verdict {
    let (path, off) = if host.text(TURBO).is_some() { (TURBO, 1) } else { (BOOST, 0) };
    match host.number(path) {
        None => Verdict::absent("the CPUs have no such frequencies"),
        Some(value) if value == off => Verdict::good("off"),
        Some(_) => Verdict::bad("on", "off", [Mend::write(path, off)]),
    }
}

fn siblings(host: &Host, needs: &Needs) -> Verdict {
    match host.text(SMT) {
        None => return without(host, SMT),
        Some("0") => return Verdict::good("each core has one thread"),
        Some(_) => {}
    }
    let found = host.matching(SIBLINGS);
    let shares = planned(found, needs).into_iter().filter_map(|found| {
        let cpu: u32 = found.parts[0].parse().ok()?;
        let mut others = cpus_of(found.text)?;
        others.remove(&cpu);
        others.retain(|other| host.online().contains(other));
        (!others.is_empty()).then_some((cpu, others))
    });
    let shares: Vec<_> = shares.collect();
    if shares.is_empty() {
        return Verdict::good("no CPU of the plan has a sibling that is online");
    }
    let cores: BTreeSet<BTreeSet<u32>> =
        shares.iter().map(|(cpu, others)| others.iter().copied().chain([*cpu]).collect()).collect();
    let observed = format!("cores with several threads: {}", few(cores.iter().map(cpu_words).collect()).join("; "));
    if needs.cpus.is_empty() {
        return Verdict::bad(
            observed,
            "one thread on each core",
            [Mend::write("/sys/devices/system/cpu/smt/control", "off")],
        );
    }
    let idle = shares.iter().flat_map(|(_, others)| others).filter(|other| !needs.cpus.contains(other));
    let mut mend: Vec<Mend> =
        idle.map(|cpu| Mend::write(&format!("/sys/devices/system/cpu/cpu{cpu}/online"), 0)).collect();
    if mend.is_empty() {
        mend.push(Mend::Change("plan with one CPU of each core".into()));
    }
    Verdict::bad(observed, "the other threads of these cores off line", mend)
}

fn device_power(host: &Host, needs: &Needs) -> Verdict {
    if let Some(absent) = without_network(needs) {
        return absent;
    }
    let mut mend = Vec::new();
    let mut observed = Vec::new();
    if let Some(policy) = host.text(ASPM) {
        let chosen = policy.split_whitespace().find_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
        if chosen != Some("performance") {
            observed.push(format!("policy of PCIe links: {}", short(chosen.unwrap_or(policy))));
            mend.push(Mend::write(ASPM, "performance"));
        }
    }
    let is_used = |found: &&Match| needs.gated.is_empty() || needs.gated.contains(found.parts[0]);
    let controls = host.matching(RUNTIME);
    for found in controls.iter().filter(is_used).filter(|found| found.text == "auto") {
        observed.push(format!("{} may sleep", short(found.parts[0])));
        mend.push(Mend::write(found.path, "on"));
    }
    match (observed.is_empty(), host.text(ASPM).is_none() && controls.is_empty()) {
        (_, true) => Verdict::absent("no link or device of the network saves power"),
        (true, _) => Verdict::good("on"),
        (false, _) => Verdict::bad(observed.join("; "), "always on", mend),
    }
}

fn thermal(host: &Host, _: &Needs) -> Verdict {
    let found = host.matching(THERMAL);
    let hot: Vec<(String, &str)> = found
        .iter()
        .filter(|found| found.text != "0")
        .map(|found| (format!("CPU {}", found.parts[0]), found.text))
        .collect();
    match (found.is_empty(), hot.is_empty()) {
        (true, _) => Verdict::absent("the CPUs do not count it"),
        (_, true) => Verdict::good("never since the start"),
        _ => {
            let change = Mend::Change("improve the cooling, or lower the frequency".into());
            Verdict::bad(format!("{} times", listed(hot.into_iter())), "never", [change])
        }
    }
}
