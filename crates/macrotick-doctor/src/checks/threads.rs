//! The kernel's threads, and priorities.

use macrotick_host::sys::Standing;

use super::judging::{few, listed, release, without_network};
use crate::check::{Check, Mend, Verdict};
use crate::host::{Host, Policy, Thread};
use crate::needs::Needs;

pub(super) const CHECKS: [Check; 5] = [
    Check {
        name: "ksoftirqd",
        rank: 3,
        states: "ksoftirqd has SCHED_FIFO on the CPUs of a plan that uses the network.",
        why: "Otherwise every real-time thread delays frames and their gates, by up to 3 ms in our measurements.",
        source: "docs/explanation/network.md",
        reads: &[],
        is_needed: |needs| needs.network,
        judge: |host, needs| softirq_thread(host, needs, "ksoftirqd/*"),
    },
    Check {
        name: "ktimers",
        rank: 4,
        states: "ktimers has at least the priority of ksoftirqd.",
        why: "Otherwise a flood of frames delays the timers of all sleeps that do not expire in the interrupt.",
        source: "Linux 6.13, kernel/softirq.c",
        reads: &[],
        is_needed: |_| true,
        judge: ktimers,
    },
    Check {
        name: "network-threads",
        rank: 5,
        states: "The network's own threads (napi, backlog_napi) have SCHED_FIFO on the CPUs of the plan.",
        why: "A received frame waits for them, and they wait for every real-time thread.",
        source: "net/core/dev.c",
        reads: &["/sys/class/net/*/threaded"],
        is_needed: |needs| needs.network,
        judge: network_threads,
    },
    Check {
        name: "rcu-threads",
        rank: 6,
        states: "The threads of RCU have SCHED_FIFO above the tasks that can starve them.",
        why: "A starved thread of RCU keeps memory, and after 21 s the kernel reports a stall.",
        source: "Documentation/admin-guide/kernel-parameters.txt, rcutree.kthread_prio",
        reads: &[],
        is_needed: |needs| needs.fifo > 0,
        judge: rcu_threads,
    },
    Check {
        name: "priorities",
        rank: 40,
        states: "No thread of user space has the highest priority, or that of the threads of interrupts.",
        why: "Priority 99 delays migration and watchdog threads; 50 takes turns with the handling of interrupts.",
        source: "sched(7); kernel/irq/manage.c",
        reads: &[],
        is_needed: |_| false,
        judge: priorities,
    },
];

/// The priority of the threads of interrupts (`sched_set_fifo` in `kernel/sched/syscalls.c`).
pub(super) const INTERRUPTS: u8 = 50;
/// The highest priority that a mend gives.
const MOST: u8 = 98;

/// Returns the priority of serving threads: `above` the highest of the plan.
pub(super) fn serving(needs: &Needs, above: u8) -> u8 {
    needs.fifo.max(INTERRUPTS - 2).saturating_add(above).min(MOST)
}

/// Whether a thread runs before the tasks of the plan, or is as high as a serving thread can be.
pub(super) fn is_above(thread: &Thread, needs: &Needs) -> bool {
    thread.policy.priority() > needs.fifo || thread.policy.priority() >= MOST
}

/// Returns the threads on CPUs of the plan; without such CPUs, all of them.
fn planned<'a>(host: &'a Host, needs: &'a Needs, pattern: &'a str) -> impl Iterator<Item = &'a Thread> {
    let cpu = |thread: &Thread| thread.name.rsplit('/').next().and_then(|cpu| cpu.parse().ok());
    host.kernel_threads(pattern)
        .filter(move |thread| needs.cpus.is_empty() || cpu(thread).is_none_or(|cpu| needs.cpus.contains(&cpu)))
}

/// Makes the step that gives a kernel thread a priority.
pub(super) fn raise(thread: &Thread, priority: u8) -> Mend {
    Mend::Policy { tid: thread.tid, name: thread.name.clone(), standing: Standing::Fifo(priority) }
}

/// Judges threads by their priorities.
pub(super) fn judged<'a>(
    threads: impl Iterator<Item = &'a Thread>,
    is_good: impl Fn(&Thread) -> bool,
    (expected, priority, absent): (&str, u8, &str),
) -> Verdict {
    let threads: Vec<&Thread> = threads.collect();
    let told = |threads: &[&Thread]| {
        let policies: Vec<(String, String)> =
            threads.iter().map(|thread| (thread.name.clone(), thread.policy.to_string())).collect();
        listed(policies.iter().map(|(name, policy)| (name.clone(), policy.as_str())))
    };
    let bad: Vec<&Thread> = threads.iter().copied().filter(|thread| !is_good(thread)).collect();
    match (threads.is_empty(), bad.is_empty()) {
        (true, _) => Verdict::absent(absent),
        (false, true) => Verdict::good(told(&threads)),
        (false, false) => {
            let mend: Vec<Mend> = bad.iter().map(|thread| raise(thread, priority)).collect();
            Verdict::bad(told(&bad), expected, mend)
        }
    }
}

fn softirq_thread(host: &Host, needs: &Needs, pattern: &str) -> Verdict {
    let above = |thread: &Thread| is_above(thread, needs);
    let priority = serving(needs, 1);
    let expected = format!("SCHED_FIFO {priority}, above the tasks that wait for it");
    let absent = "the capture has no such thread";
    without_network(needs)
        .unwrap_or_else(|| judged(planned(host, needs, pattern), above, (&expected, priority, absent)))
}

fn ktimers(host: &Host, needs: &Needs) -> Verdict {
    // A mend of ksoftirqd raises it: then ktimers must be as high.
    let mended = if softirq_thread(host, needs, "ksoftirqd/*").is_bad() { serving(needs, 1) } else { 0 };
    let least =
        host.kernel_threads("ksoftirqd/*").map(|thread| thread.policy.priority()).max().unwrap_or(0).max(mended);
    let is_older = release(host).is_some_and(|release| release < (6, 13));
    let absent = if is_older { "kernels before 6.13 have no ktimers" } else { "the kernel has no ktimers" };
    let expected = format!("SCHED_FIFO {}", least.max(1));
    let is_good = |thread: &Thread| thread.policy.priority() >= least.max(1);
    judged(planned(host, needs, "ktimers/*"), is_good, (&expected, least.max(1), absent))
}

fn network_threads(host: &Host, needs: &Needs) -> Verdict {
    if let Some(absent) = without_network(needs) {
        return absent;
    }
    let threads = planned(host, needs, "backlog_napi/*").chain(host.kernel_threads("napi/*"));
    let priority = serving(needs, 1);
    let expected = format!("SCHED_FIFO {priority}");
    let absent = "softirqs do the work of the network; see ksoftirqd";
    judged(threads, |thread| is_above(thread, needs), (&expected, priority, absent))
}

fn rcu_threads(host: &Host, needs: &Needs) -> Verdict {
    let threads = ["rcuc/*", "rcub/*", "rcu_preempt", "rcuog/*", "rcuop/*"];
    let threads: Vec<&Thread> = threads.into_iter().flat_map(|name| host.kernel_threads(name)).collect();
    let starved = threads.iter().filter(|thread| thread.policy.priority() <= needs.fifo && needs.fifo > 0);
    let starved: Vec<String> = starved.map(|thread| format!("{}: {}", thread.name, thread.policy)).collect();
    match (threads.is_empty(), starved.is_empty()) {
        (true, _) => Verdict::absent("the capture has no thread of RCU"),
        (_, true) => Verdict::good("above the threads of the plan"),
        _ => {
            let priority = needs.fifo.saturating_add(1).min(MOST);
            let mend = Mend::Boot(format!("rcutree.kthread_prio={priority}"));
            Verdict::bad(few(starved).join("; "), format!("SCHED_FIFO {priority}"), [mend])
        }
    }
}

fn priorities(host: &Host, _: &Needs) -> Verdict {
    let others = host.threads.iter().filter(|thread| !thread.is_kernel);
    let odd: Vec<String> = others
        .filter_map(|thread| {
            let reason = match thread.policy {
                Policy::Fifo(99) | Policy::Rr(99) => "above the kernel's own threads",
                Policy::Fifo(INTERRUPTS) | Policy::Rr(INTERRUPTS) => "equal to the threads of interrupts",
                _ => return None,
            };
            Some(format!("{} ({}): {}, {reason}", thread.name, thread.tid, thread.policy))
        })
        .collect();
    match odd.is_empty() {
        true => Verdict::good("no such thread"),
        false => {
            let change = Mend::Change("give these threads another priority where they are started".into());
            Verdict::bad(few(odd).join("; "), "a priority from 1 to 98, and not 50", [change])
        }
    }
}
