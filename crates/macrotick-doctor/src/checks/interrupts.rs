//! Interrupts: their threads and CPUs.

use std::collections::BTreeSet;

use super::judging::{cpu_words, few, mask, short, without_cpus, without_network};
use super::threads::{is_above, judged, serving};
use crate::check::{Check, Mend, Verdict};
use crate::host::{cpus_of, written, Host, Thread};
use crate::needs::Needs;

const DEFAULT: &str = "/proc/irq/default_smp_affinity";

pub(super) const CHECKS: [Check; 5] = [
    Check {
        name: "interrupt-threads",
        rank: 7,
        states: "The threads of the network's interrupts run before the tasks that wait for them.",
        why: "A task above the thread of its own interrupt keeps it from the CPU, and its frames wait.",
        source: "docs/reference/system.md, profile",
        reads: &["/sys/class/net/*/device"],
        is_needed: |needs| needs.network,
        judge: interrupt_threads,
    },
    Check {
        name: "interrupt-cpus",
        rank: 8,
        states: "Interrupts of devices reach only CPUs that the plan leaves to others.",
        why: "Each interrupt takes the CPU from a window for its whole handler.",
        source: "Documentation/core-api/irq/irq-affinity.rst",
        reads: &["/proc/irq/*/smp_affinity_list", "/proc/irq/*/effective_affinity_list"],
        is_needed: |needs| !needs.cpus.is_empty(),
        judge: interrupt_cpus,
    },
    Check {
        name: "default-interrupt-cpus",
        rank: 9,
        states: "New interrupts start on CPUs that the plan leaves to others.",
        why: "A device that appears later disturbs the CPUs of the plan.",
        source: "Documentation/core-api/irq/irq-affinity.rst; irqaffinity= in kernel-parameters.txt",
        reads: &[DEFAULT],
        is_needed: |needs| !needs.cpus.is_empty(),
        judge: default_cpus,
    },
    Check {
        name: "irqbalance",
        rank: 10,
        states: "No program moves interrupts.",
        why: "irqbalance moves them back onto the CPUs of the plan every 10 s.",
        source: "rtcqs; Red Hat, Optimizing RHEL for Real Time",
        reads: &["/etc/default/irqbalance", "/etc/sysconfig/irqbalance"],
        is_needed: |_| true,
        judge: irqbalance,
    },
    Check {
        name: "interrupt-thread-cpus",
        rank: 68,
        states: "The thread of an interrupt is on the CPU that the interrupt reaches.",
        why: "Otherwise each interrupt wakes up another CPU, and the planned CPUs do the work of others.",
        source: "Documentation/core-api/real-time/differences.rst",
        reads: &["/proc/irq/*/effective_affinity_list"],
        is_needed: |needs| !needs.cpus.is_empty(),
        judge: thread_cpus,
    },
];

fn interrupt_threads(host: &Host, needs: &Needs) -> Verdict {
    if let Some(absent) = without_network(needs) {
        return absent;
    }
    let devices = host.hardware();
    let is_of_network = |thread: &&Thread| {
        let name = thread.name.split('-').nth(1).unwrap_or_default();
        devices.contains(&name)
    };
    let threads = host.kernel_threads("irq/*").filter(is_of_network);
    let priority = serving(needs, 2);
    let expected = format!("SCHED_FIFO {priority}, above the tasks that wait for them");
    judged(
        threads,
        |thread| is_above(thread, needs),
        (&expected, priority, "no interrupt of a network device has a thread"),
    )
}

fn interrupt_cpus(host: &Host, needs: &Needs) -> Verdict {
    if let Some(absent) = without_cpus(host, needs) {
        return absent;
    }
    let found = host.matching("/proc/irq/*/smp_affinity_list");
    if found.is_empty() {
        return Verdict::unknown("the capture has no interrupt");
    }
    let touches = |text: &str| cpus_of(text).is_some_and(|cpus| !cpus.is_disjoint(&needs.cpus));
    // Of the CPUs that it may reach, an interrupt reaches one. It leaves another one at its next occurrence.
    let reaches = |number: &str| {
        // The list of an interrupt without a handler is empty.
        host.text(&format!("/proc/irq/{number}/effective_affinity_list")).is_none_or(touches)
    };
    let on: Vec<_> = found.iter().filter(|found| touches(found.text) && reaches(found.parts[0])).collect();
    if on.is_empty() {
        return Verdict::good(format!("none of {} interrupts reaches {}", found.len(), cpu_words(&needs.cpus)));
    }
    let others = written(&needs.others(host));
    let mend: Vec<Mend> = on
        .iter()
        .map(|found| Mend::write(&format!("/proc/irq/{}/smp_affinity_list", found.parts[0]), &others))
        .collect();
    let names = few(on.iter().map(|found| found.parts[0].to_owned()).collect()).join(", ");
    let many = if on.len() == 1 { "interrupt" } else { "interrupts" };
    let observed = format!("{many} {names} on {}", cpu_words(&needs.cpus));
    Verdict::bad(observed, format!("only on {}", cpu_words(&needs.others(host))), mend)
}

fn default_cpus(host: &Host, needs: &Needs) -> Verdict {
    if let Some(absent) = without_cpus(host, needs) {
        return absent;
    }
    let Some(text) = host.text(DEFAULT) else { return super::judging::without(host, DEFAULT) };
    let Some(cpus) = mask(text) else { return Verdict::unknown(format!("{DEFAULT} has no mask: {}", short(text))) };
    // The mask may name CPUs that do not exist.
    let cpus: BTreeSet<u32> = cpus.intersection(&host.online()).copied().collect();
    match cpus.is_disjoint(&needs.cpus) {
        true => Verdict::good(cpu_words(&cpus)),
        false => {
            let others = needs.others(host);
            let list: Vec<u32> = others.iter().copied().collect();
            let write = Mend::write(DEFAULT, macrotick_host::sys::cpu_mask(&list));
            let boot = Mend::Boot(format!("irqaffinity={}", written(&others)));
            Verdict::bad(cpu_words(&cpus), cpu_words(&others), [write, boot])
        }
    }
}

fn irqbalance(host: &Host, needs: &Needs) -> Verdict {
    if !host.threads.iter().any(|thread| thread.name == "irqbalance") {
        return Verdict::good("irqbalance does not run");
    }
    let settings = ["/etc/default/irqbalance", "/etc/sysconfig/irqbalance"];
    let lines = settings.iter().filter_map(|path| host.text(path)).flat_map(str::lines);
    let banned = lines.filter_map(|line| line.trim().strip_prefix("IRQBALANCE_BANNED_CPULIST=")).next_back();
    let banned = banned.and_then(|list| cpus_of(list.trim_matches('"'))).unwrap_or_default();
    match !needs.cpus.is_empty() && needs.cpus.is_subset(&banned) {
        true => Verdict::good(format!("irqbalance leaves out {}", cpu_words(&needs.cpus))),
        false => Verdict::bad(
            "irqbalance runs",
            "it does not run, or leaves out the CPUs of the plan",
            [Mend::Run("systemctl disable --now irqbalance".into())],
        ),
    }
}

fn thread_cpus(host: &Host, needs: &Needs) -> Verdict {
    if let Some(absent) = without_cpus(host, needs) {
        return absent;
    }
    let effective = host.matching("/proc/irq/*/effective_affinity_list");
    let stray = host.kernel_threads("irq/*").filter_map(|thread| {
        let number = thread.name.strip_prefix("irq/")?.split('-').next()?;
        let cpus = cpus_of(effective.iter().find(|found| found.parts[0] == number)?.text)?;
        let is_stray = needs.cpus.contains(&thread.last) && !cpus.contains(&thread.last);
        is_stray
            .then(|| format!("{} ran on CPU {}, its interrupt reaches {}", thread.name, thread.last, cpu_words(&cpus)))
    });
    let stray: Vec<String> = stray.collect();
    if host.kernel_threads("irq/*").next().is_none() {
        return Verdict::absent("no interrupt has a thread");
    }
    match stray.is_empty() {
        true => Verdict::good("each thread follows its interrupt"),
        false => {
            let change =
                Mend::Change("set the interrupt's CPUs again: its thread follows at the next interrupt".into());
            Verdict::bad(few(stray).join("; "), "each thread on the CPU of its interrupt", [change])
        }
    }
}
