//! Page faults, and the work of the memory management.

use super::judging::{few, number, off, short, without};
use crate::check::{Check, Mend, Verdict};
use crate::host::{Host, Memory, Thread};
use crate::needs::Needs;

const STAT: &str = "/proc/sys/vm/stat_interval";
const HUGE: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
const SWAPS: &str = "/proc/swaps";

pub(super) const CHECKS: [Check; 8] = [
    Check {
        name: "statistics",
        rank: 27,
        states: "The kernel collects memory statistics of the CPUs every 10 s or less often.",
        why: "A worker runs on every CPU at this interval, 1 s by default.",
        source: "Documentation/admin-guide/sysctl/vm.rst",
        reads: &[STAT],
        is_needed: |_| false,
        judge: |host, _| number(host, STAT, |seconds| seconds >= 10, "10 s or more", 10),
    },
    Check {
        name: "huge-pages",
        rank: 28,
        states: "The kernel does not make huge pages by itself.",
        why: "khugepaged copies pages of running programs, and stops them meanwhile.",
        source: "Documentation/admin-guide/mm/transhuge.rst",
        reads: &[HUGE],
        is_needed: |_| false,
        judge: huge_pages,
    },
    Check {
        name: "same-pages",
        rank: 29,
        states: "The kernel does not merge equal pages.",
        why: "A write to a merged page is a page fault with a copy.",
        source: "Documentation/admin-guide/mm/ksm.rst",
        reads: &["/sys/kernel/mm/ksm/run"],
        is_needed: |_| true,
        // 2 ends the merging, and takes merged pages apart.
        judge: |host, _| number(host, "/sys/kernel/mm/ksm/run", |run| run != 1, "0 or 2, which are off", 2),
    },
    Check {
        name: "swap",
        rank: 30,
        states: "There is no swap.",
        why: "A page of a program that is not locked can move to a disk, and its next use takes milliseconds.",
        source: "rtcqs",
        reads: &[SWAPS],
        is_needed: |_| false,
        judge: swap,
    },
    Check {
        name: "numa-balancing",
        rank: 31,
        states: "The kernel does not move pages between NUMA nodes.",
        why: "It takes pages away to see which CPU uses them: each use is a page fault.",
        source: "Documentation/admin-guide/sysctl/kernel.rst",
        reads: &["/proc/sys/kernel/numa_balancing"],
        is_needed: |_| true,
        judge: |host, _| off(host, "/proc/sys/kernel/numa_balancing"),
    },
    Check {
        name: "compaction",
        rank: 32,
        states: "The kernel does not compact memory ahead of need.",
        why: "kcompactd moves pages of running programs, and stops them meanwhile.",
        source: "Documentation/admin-guide/sysctl/vm.rst, compaction_proactiveness",
        reads: &["/proc/sys/vm/compaction_proactiveness"],
        is_needed: |_| false,
        judge: |host, _| off(host, "/proc/sys/vm/compaction_proactiveness"),
    },
    Check {
        name: "locked-memory",
        rank: 33,
        states: "Real-time programs have locked their memory.",
        why: "A page fault in a job takes microseconds, and milliseconds if a disk is read.",
        source: "mlockall(2)",
        reads: &[],
        is_needed: |_| true,
        judge: locked_memory,
    },
    Check {
        name: "limits",
        rank: 34,
        states: "The user of the programs may have real-time priorities and locked memory.",
        why: "Otherwise the kernel refuses the policy or mlockall().",
        source: "getrlimit(2), RLIMIT_RTPRIO and RLIMIT_MEMLOCK",
        reads: &["/proc/self/limits", "/proc/self/status"],
        is_needed: |_| false,
        judge: limits,
    },
];

fn huge_pages(host: &Host, _: &Needs) -> Verdict {
    let Some(text) = host.text(HUGE) else { return without(host, HUGE) };
    match text.split_whitespace().find_map(|word| word.strip_prefix('[')?.strip_suffix(']')) {
        Some(word @ ("never" | "madvise")) => Verdict::good(word),
        Some(word) => Verdict::bad(short(word), "never", [Mend::write(HUGE, "never")]),
        None => Verdict::unknown(format!("{HUGE} has no choice: {}", short(text))),
    }
}

fn swap(host: &Host, _: &Needs) -> Verdict {
    let Some(text) = host.text(SWAPS) else { return without(host, SWAPS) };
    let areas: Vec<String> =
        text.lines().skip(1).filter_map(|line| line.split_whitespace().next()).map(short).collect();
    match areas.is_empty() {
        true => Verdict::good("none"),
        false => Verdict::bad(few(areas).join(", "), "none", [Mend::Run("swapoff -a".into())]),
    }
}

/// Whether the memory stays: locked memory counts pages that are not present, too.
fn is_locked(memory: &Memory) -> bool {
    memory.locked_kib * 10 >= memory.present_kib * 9
}

fn locked_memory(host: &Host, _: &Needs) -> Verdict {
    let mut seen = std::collections::BTreeSet::new();
    let real_time = |thread: &&Thread| !thread.is_kernel && thread.policy.is_real_time() && thread.memory.is_some();
    let processes: Vec<&Thread> =
        host.threads.iter().filter(real_time).filter(|thread| seen.insert(thread.process)).collect();
    if processes.is_empty() {
        return Verdict::absent("no program has a real-time policy now");
    }
    let loose = processes.iter().filter_map(|thread| {
        let memory = thread.memory.filter(|memory| !is_locked(memory))?;
        Some(format!(
            "{} ({}): {} of {} KiB locked, {} faults read a disk",
            short(&thread.name),
            thread.process,
            memory.locked_kib,
            memory.present_kib,
            memory.major_faults
        ))
    });
    let loose: Vec<String> = loose.collect();
    match loose.is_empty() {
        true => Verdict::good(format!("{} of {}", processes.len(), processes.len())),
        false => {
            let change =
                Mend::Change("let the programs call mlockall(MCL_CURRENT | MCL_FUTURE) when they start".into());
            Verdict::bad(few(loose).join("; "), "all of it locked", [change])
        }
    }
}

/// The capabilities that replace the limits: `CAP_IPC_LOCK` and `CAP_SYS_NICE`.
const CAPABILITIES: u64 = 1 << 14 | 1 << 23;

fn limits(host: &Host, _: &Needs) -> Verdict {
    let status = host.text("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    if effective & CAPABILITIES == CAPABILITIES {
        return Verdict::good("the user has the capabilities for both");
    }
    let Some(text) = host.text("/proc/self/limits") else { return without(host, "/proc/self/limits") };
    let soft = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next());
    let (priority, memory) = (soft("Max realtime priority"), soft("Max locked memory"));
    let (Some(priority), Some(memory)) = (priority, memory) else { return Verdict::unknown("the limits are unknown") };
    let observed = format!("real-time priority at most {}, locked memory at most {}", short(priority), short(memory));
    match (priority.parse::<u32>(), memory) {
        (Ok(98..), "unlimited") => Verdict::good(observed),
        _ => {
            let service = Mend::Change("set LimitRTPRIO=98 and LimitMEMLOCK=infinity in the service".into());
            let user = Mend::Change(
                "or `rtprio 98` and `memlock unlimited` in /etc/security/limits.d, and log in again".into(),
            );
            Verdict::bad(observed, "98, and unlimited", [service, user])
        }
    }
}
