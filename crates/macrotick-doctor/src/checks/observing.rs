//! Tracers, consoles, audit.

use super::judging::{few, short, without};
use crate::check::{Check, Mend, Verdict};
use crate::host::Host;
use crate::needs::Needs;

const TRACING: &str = "/sys/kernel/tracing";
const PRINTK: &str = "/proc/sys/kernel/printk";
const CONSOLES: &str = "/proc/consoles";

pub(super) const CHECKS: [Check; 3] = [
    Check {
        name: "tracers",
        rank: 37,
        states: "No tracer and no trace event is left on.",
        why: "Each event costs time in the path that it observes; a latency tracer makes every lock slower.",
        source: "Documentation/core-api/real-time/kernel-configuration.rst",
        reads: &[
            "/sys/kernel/tracing/current_tracer",
            "/sys/kernel/tracing/set_event",
            "/sys/kernel/tracing/tracing_on",
        ],
        is_needed: |_| true,
        judge: tracers,
    },
    Check {
        name: "console",
        rank: 39,
        states: "The kernel prints only errors to a serial console.",
        why: "A line of 80 characters takes 7 ms at 115200 baud, with interrupts disabled on most kernels.",
        source: "Documentation/admin-guide/serial-console.rst",
        reads: &[PRINTK, CONSOLES],
        is_needed: |_| true,
        judge: console,
    },
    Check {
        name: "audit",
        rank: 65,
        states: "No audit rule is in the path of system calls.",
        why: "Every system call of every program then looks through the rules.",
        source: "auditctl(8), `-a never,task`",
        reads: &["/proc/cmdline", "/etc/audit/audit.rules"],
        is_needed: |_| false,
        judge: audit,
    },
];

fn tracers(host: &Host, _: &Needs) -> Verdict {
    let path = |name: &str| format!("{TRACING}/{name}");
    let Some(tracer) = host.text(&path("current_tracer")) else { return without(host, &path("current_tracer")) };
    let events = host.text(&path("set_event")).unwrap_or_default().lines().filter(|line| !line.is_empty());
    // The deployment itself observes in an instance of its own.
    let events: Vec<String> = events.map(short).collect();
    if tracer == "nop" && events.is_empty() {
        return Verdict::good("none");
    }
    let mut observed = Vec::new();
    let mut mend = Vec::new();
    if tracer != "nop" {
        observed.push(format!("tracer {}", short(tracer)));
        mend.push(Mend::write(&path("current_tracer"), "nop"));
    }
    if !events.is_empty() {
        observed.push(format!("events {}", few(events).join(", ")));
        mend.push(Mend::Run(format!("echo > {}", path("set_event"))));
    }
    Verdict::bad(observed.join("; "), "none", mend)
}

fn console(host: &Host, _: &Needs) -> Verdict {
    let Some(consoles) = host.text(CONSOLES) else { return without(host, CONSOLES) };
    let names = consoles.lines().filter_map(|line| line.split_whitespace().next());
    // A virtual console has a number: `tty0`. A serial one has letters first: `ttyS0`.
    let is_serial = |name: &&str| name.strip_prefix("tty").is_some_and(|rest| rest.starts_with(char::is_alphabetic));
    let slow: Vec<&str> = names.filter(is_serial).collect();
    if slow.is_empty() {
        return Verdict::good("no serial console");
    }
    let Some(level) = host.text(PRINTK).and_then(|text| text.split_whitespace().next()?.parse::<u32>().ok()) else {
        return without(host, PRINTK);
    };
    let observed = format!("{}: messages up to level {}", slow.join(", "), level.saturating_sub(1));
    match level <= 4 {
        true => Verdict::good(observed),
        false => Verdict::bad(observed, "up to level 3, errors", [Mend::write(PRINTK, 4)]),
    }
}

fn audit(host: &Host, _: &Needs) -> Verdict {
    if host.parameters("audit").last() == Some("0") {
        return Verdict::good("off at boot");
    }
    if !host.threads.iter().any(|thread| thread.name == "auditd" || thread.name == "kauditd") {
        return Verdict::absent("the kernel does not audit");
    }
    let Some(rules) = host.text("/etc/audit/audit.rules") else {
        return match host.refused("/etc/audit/audit.rules") {
            Some(reason) => Verdict::unknown(format!("/etc/audit/audit.rules: {reason}")),
            None => Verdict::good("no rules"),
        };
    };
    let is_rule = |line: &&str| line.starts_with("-a") && line.contains("-S") && !line.contains("never,");
    let count = rules.lines().map(str::trim).filter(is_rule).count();
    match count {
        0 => Verdict::good("no rule about system calls"),
        _ => {
            let mend = Mend::Change("add `-a never,task` before the other rules, or boot with audit=0".into());
            Verdict::bad(format!("{count} rules about system calls"), "none", [mend])
        }
    }
}
