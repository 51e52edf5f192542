//! The kernel: version, class, options, command line.

use macrotick_host::environment::preemption;

use super::judging::{few, listed, release, short};
use super::options;
use crate::check::{Check, Mend, Verdict};
use crate::host::Host;
use crate::needs::Needs;

const CMDLINE: &str = "/proc/cmdline";
const CLOCKSOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
const EFI: &str = "/sys/firmware/efi/runtime";

/// Files that container engines and managers make.
const CONTAINER: [&str; 3] = ["/run/systemd/container", "/run/.containerenv", "/.dockerenv"];

pub(super) const CHECKS: [Check; 10] = [
    Check {
        name: "preempt-rt",
        rank: 1,
        states: "The kernel is preemptible (PREEMPT_RT).",
        why: "Without it, softirqs, spinlocks and interrupts of others delay a task by milliseconds.",
        source: "Documentation/core-api/real-time/kernel-configuration.rst",
        reads: &["/sys/kernel/realtime"],
        is_needed: |_| true,
        judge: preempt_rt,
    },
    Check {
        name: "class",
        rank: 2,
        states: "The kernel has the scheduling class of Macrotick.",
        why: "Without it, the user-space dispatcher runs the plan, and budgets of groups do not exist.",
        source: "include/uapi/linux/macrotick.h",
        reads: &[],
        is_needed: |needs| needs.class,
        judge: class,
    },
    Check {
        name: "clocksource",
        rank: 20,
        states: "The clock source is a register of the CPU.",
        why: "Another source takes microseconds for each reading, and the kernel reads it at each edge of a window.",
        source: "rtcqs",
        reads: &[CLOCKSOURCE, "/sys/devices/system/clocksource/clocksource0/available_clocksource"],
        is_needed: |_| true,
        judge: clocksource,
    },
    Check {
        name: "rt-group-sched",
        rank: 35,
        states: "The kernel has no budgets of real-time groups (RT_GROUP_SCHED).",
        why: "With them, a thread in a new control group cannot have SCHED_FIFO: the group's budget is 0.",
        source: "Documentation/scheduler/sched-rt-group.rst",
        reads: &[],
        is_needed: |needs| needs.fifo > 0 || needs.budgets,
        judge: rt_group_sched,
    },
    Check {
        name: "debug-options",
        rank: 38,
        states: "The kernel has no option for finding faults in the kernel.",
        why: "Such options make each lock, allocation or preemption several times slower.",
        source: "Documentation/core-api/real-time/kernel-configuration.rst",
        reads: &[],
        is_needed: |_| true,
        judge: debug_options,
    },
    Check {
        name: "virtual-machine",
        rank: 62,
        states: "The host is no virtual machine.",
        why: "A hypervisor can take the CPU away at any instant, so no bound on a delay exists.",
        source: "Documentation/virt/paravirt_ops.rst",
        reads: &["/proc/cpuinfo", "/sys/hypervisor/type"],
        is_needed: |_| true,
        judge: virtual_machine,
    },
    Check {
        name: "container",
        rank: 64,
        states: "The examination sees the whole host.",
        why: "In a container it sees only the container's threads, interfaces and settings.",
        source: "systemd, Container Interface",
        reads: &CONTAINER,
        is_needed: |_| true,
        judge: container,
    },
    Check {
        name: "mitigations",
        rank: 63,
        states: "The mitigations of CPU vulnerabilities are known.",
        why: "They lengthen system calls and interrupts. To switch them off is a decision about security.",
        source: "Documentation/admin-guide/hw-vuln",
        reads: &["/sys/devices/system/cpu/vulnerabilities/*"],
        is_needed: |_| false,
        judge: mitigations,
    },
    Check {
        name: "efi-runtime",
        rank: 66,
        states: "EFI runtime services are off.",
        why: "A call of the firmware runs with interrupts disabled, for milliseconds when it writes a variable.",
        source: "Documentation/core-api/real-time/kernel-configuration.rst",
        reads: &[EFI, "/sys/firmware/efi/fw_platform_size", CMDLINE],
        is_needed: |_| true,
        judge: efi_runtime,
    },
    Check {
        name: "kernel-options",
        rank: 69,
        states: "The options of the kernel are those of its real-time configuration guide.",
        why: "Each of the others adds interrupts or delays, or the plan needs what it leaves out.",
        source: "Documentation/core-api/real-time/kernel-configuration.rst",
        reads: &[],
        is_needed: |_| false,
        judge: options::judge,
    },
];

fn preempt_rt(host: &Host, _: &Needs) -> Verdict {
    let model = preemption(&host.kernel.version, host.text("/sys/kernel/realtime") == Some("1"));
    match model {
        "PREEMPT_RT" => Verdict::good(model),
        _ if host.option("CONFIG_PREEMPT_RT") == Some("y") => Verdict::good("PREEMPT_RT"),
        _ => {
            let change = Mend::Change("install a kernel with PREEMPT_RT, and reboot".into());
            let model = if model == "none" { "no preemption" } else { model };
            Verdict::bad(model, "PREEMPT_RT", [change])
        }
    }
}

fn class(host: &Host, needs: &Needs) -> Verdict {
    match host.class {
        Some(class) => Verdict::good(match class.table {
            Some(true) => "a table is installed",
            Some(false) => "no table is installed",
            None => "only root can read its table",
        }),
        None if needs.is_described() && !needs.class => {
            Verdict::absent("the plan has neither windows nor budgets of the kernel class")
        }
        None => Verdict::bad(
            "the kernel has no /dev/macrotick",
            "the scheduling class",
            [Mend::Change("install the kernel of Macrotick, and reboot".into())],
        ),
    }
}

fn clocksource(host: &Host, _: &Needs) -> Verdict {
    let Some(source) = host.text(CLOCKSOURCE) else { return super::judging::without(host, CLOCKSOURCE) };
    match source {
        "tsc" | "tsc-early" | "arch_sys_counter" | "arch_mem_timer" | "riscv_clocksource" | "kvm-clock" => {
            Verdict::good(source)
        }
        _ => {
            let available = host.text("/sys/devices/system/clocksource/clocksource0/available_clocksource");
            let has_tsc = available.is_some_and(|names| names.split_whitespace().any(|name| name == "tsc"));
            let mend = match (has_tsc, host.kernel.machine.starts_with("x86")) {
                (true, _) => Mend::write(CLOCKSOURCE, "tsc"),
                (false, true) => Mend::Change(
                    "look in the kernel's log for the reason why it left the TSC; `tsc=reliable` ends the check of the \
                     clock, and is right only if the clock is"
                        .into(),
                ),
                (false, false) => Mend::Change("use a kernel with the driver of this architecture's counter".into()),
            };
            Verdict::bad(short(source), "tsc, or the counter of the architecture", [mend])
        }
    }
}

fn rt_group_sched(host: &Host, _: &Needs) -> Verdict {
    match host.option("CONFIG_RT_GROUP_SCHED") {
        None => Verdict::unknown("the kernel's configuration is unknown"),
        Some("y") if !group_budgets_at_boot(host) => Verdict::good("off at boot"),
        Some("y") => {
            let mend = match release(host).is_some_and(|release| release >= (6, 16)) {
                true => Mend::Boot("rt_group_sched=0".into()),
                false => Mend::Change("install a kernel without RT_GROUP_SCHED, and reboot".into()),
            };
            Verdict::bad("RT_GROUP_SCHED", "a kernel without it, or with it off", [mend])
        }
        Some(_) => Verdict::good("no RT_GROUP_SCHED"),
    }
}

/// Whether a kernel with RT_GROUP_SCHED starts with it. The parameter is that of Linux 6.16 and later.
fn group_budgets_at_boot(host: &Host) -> bool {
    match host.parameters("rt_group_sched").last() {
        Some(value) => value != "0",
        None => host.option("CONFIG_RT_GROUP_SCHED_DEFAULT_DISABLED") != Some("y"),
    }
}

fn debug_options(host: &Host, _: &Needs) -> Verdict {
    if host.options.is_none() {
        return Verdict::unknown("the kernel's configuration is unknown");
    }
    let names = options::SLOW.iter().filter(|name| host.option(&format!("CONFIG_{name}")) == Some("y"));
    let names: Vec<String> = names.map(|name| (*name).to_owned()).collect();
    match names.is_empty() {
        true => Verdict::good("none"),
        false => {
            let change = Mend::Change("install a kernel without them, and reboot".into());
            Verdict::bad(few(names).join(", "), "none", [change])
        }
    }
}

fn virtual_machine(host: &Host, _: &Needs) -> Verdict {
    let Some(cpuinfo) = host.text("/proc/cpuinfo") else { return super::judging::without(host, "/proc/cpuinfo") };
    let flags = cpuinfo.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
    let hypervisor = host.text("/sys/hypervisor/type");
    if let Some(kind) = hypervisor {
        return Verdict::noted(format!("a virtual machine of {}: no delay has a bound", short(kind)));
    }
    match flags.split_whitespace().any(|flag| flag == "hypervisor") {
        true => Verdict::noted("a virtual machine: no delay has a bound"),
        false => Verdict::good("no hypervisor is seen"),
    }
}

fn container(host: &Host, _: &Needs) -> Verdict {
    match CONTAINER.into_iter().find(|path| host.files.contains_key(*path)) {
        Some(path) => Verdict::noted(format!("a container ({path} exists): examine the host outside of it, too")),
        // The first kernel thread is a child of none, and no container sees it.
        None if !host.threads.is_empty() && !host.threads.iter().any(|thread| thread.is_kernel) => {
            Verdict::noted("a container (it sees no kernel thread): examine the host outside of it, too")
        }
        None => Verdict::good("no container"),
    }
}

fn mitigations(host: &Host, _: &Needs) -> Verdict {
    let found = host.matching("/sys/devices/system/cpu/vulnerabilities/*");
    if found.is_empty() {
        return Verdict::absent("the kernel reports no vulnerabilities");
    }
    let affected = found.iter().filter(|found| found.text.starts_with("Mitigation"));
    let affected: Vec<(String, &str)> = affected.map(|found| (found.parts[0].to_owned(), found.text)).collect();
    match affected.is_empty() {
        true => Verdict::good("no mitigation is on"),
        false => Verdict::noted(listed(affected.into_iter())),
    }
}

fn efi_runtime(host: &Host, _: &Needs) -> Verdict {
    if host.text("/sys/firmware/efi/fw_platform_size").is_none() && host.text(EFI).is_none() {
        return Verdict::absent("the firmware is no EFI");
    }
    let last = host.parameters("efi").last().unwrap_or_default();
    let has = |word: &str| last.split(',').any(|part| part == word);
    let is_off = has("noruntime")
        || host.parameters("noefi").next().is_some()
        || (!has("runtime") && (host.option("CONFIG_EFI_DISABLE_RUNTIME") == Some("y")));
    match is_off {
        true => Verdict::good("off"),
        // PREEMPT_RT has them off by default.
        false if host.options.is_none() && !has("runtime") => Verdict::unknown("the kernel's configuration is unknown"),
        false => Verdict::bad("on", "off", [Mend::Boot("efi=noruntime".into())]),
    }
}
