//! Reads the guest's console: complaints of the kernel, and its panic.

/// A complaint of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Its kind.
    pub kind: Complaint,
    /// The complaint's lines.
    pub excerpt: String,
}

/// Kinds of complaints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Complaint {
    /// The kernel panicked.
    Panic,
    /// A fault or BUG in the kernel.
    Bug,
    /// Wrong use of memory (KASAN, KCSAN, UBSAN, slab debugging).
    Memory,
    /// A broken lock rule or a risk of it (lockdep), or a sleep where it is forbidden.
    Locking,
    /// No progress: RCU stall, hung task, soft or hard lockup, workqueue stall.
    Stall,
    /// A WARN.
    Warning,
    /// A call trace without one of the headings above.
    Trace,
}

/// The texts of complaints, in the order of precedence. They are the kernel's own (`kernel/panic.c`,
/// `kernel/locking/lockdep.c`, `kernel/rcu/tree_stall.h`, `kernel/hung_task.c`, `kernel/watchdog.c`, `mm/`).
const PATTERNS: [(&str, Complaint); 29] = [
    ("Kernel panic", Complaint::Panic),
    ("BUG: KASAN", Complaint::Memory),
    ("BUG: KCSAN", Complaint::Memory),
    ("BUG: KFENCE", Complaint::Memory),
    ("UBSAN:", Complaint::Memory),
    ("ODEBUG:", Complaint::Memory),
    ("scheduling while atomic", Complaint::Locking),
    ("sleeping function called", Complaint::Locking),
    ("lock held when returning", Complaint::Locking),
    ("possible circular locking", Complaint::Locking),
    ("possible recursive locking", Complaint::Locking),
    ("inconsistent lock state", Complaint::Locking),
    ("possible irq lock inversion", Complaint::Locking),
    ("safe -> ", Complaint::Locking),
    ("Invalid wait context", Complaint::Locking),
    ("suspicious RCU usage", Complaint::Locking),
    ("bad unlock balance", Complaint::Locking),
    ("soft lockup", Complaint::Stall),
    ("hard LOCKUP", Complaint::Stall),
    ("workqueue lockup", Complaint::Stall),
    ("detected stalls", Complaint::Stall),
    ("self-detected stall", Complaint::Stall),
    ("blocked for more than", Complaint::Stall),
    ("sched: RT throttling", Complaint::Stall),
    ("BUG:", Complaint::Bug),
    ("kernel BUG at", Complaint::Bug),
    ("Oops", Complaint::Bug),
    ("general protection fault", Complaint::Bug),
    ("WARNING:", Complaint::Warning),
];
/// The most lines between a heading and the call trace that belongs to it.
const TRACE_DISTANCE: usize = 40;
/// Lines that are kept before a heading (lockdep frames its headings with `=====`), and from the heading on.
const LINES_BEFORE: usize = 1;
const LINES_FROM: usize = 30;

/// Returns the complaints on a console, in order. Lines within the excerpt of a complaint start another one only if
/// they are more serious.
pub fn scan(console: &str) -> Vec<Finding> {
    let lines: Vec<&str> = console.lines().map(str::trim_end).collect();
    let mut findings: Vec<(usize, Complaint)> = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let Some(kind) = classify(line) else { continue };
        match findings.last_mut() {
            Some((start, _)) if kind == Complaint::Trace && index - *start <= TRACE_DISTANCE => {}
            Some((start, last)) if index - *start < LINES_FROM => *last = (*last).min(kind),
            _ => findings.push((index, kind)),
        }
    }
    findings.iter().map(|&(start, kind)| Finding { kind, excerpt: excerpt(&lines, start) }).collect()
}

/// Returns the kernel's panic line, if there is one.
pub fn panic_line(console: &str) -> Option<String> {
    let line = console.lines().find(|line| line.contains("Kernel panic"))?;
    Some(line[line.find("Kernel panic").unwrap_or(0)..].trim_end().to_owned())
}

fn classify(line: &str) -> Option<Complaint> {
    let known = PATTERNS.iter().find(|(pattern, _)| line.contains(pattern)).map(|(_, kind)| *kind);
    known.or_else(|| line.contains("Call Trace:").then_some(Complaint::Trace))
}

fn excerpt(lines: &[&str], start: usize) -> String {
    let from = start.saturating_sub(LINES_BEFORE);
    let to = (start + LINES_FROM).min(lines.len());
    lines[from..to].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quiet_console_has_no_findings() {
        assert!(scan("").is_empty());
        assert!(scan("[    0.000000] Linux version 6.12\n[    0.1] random: crng init done\n").is_empty());
    }

    #[test]
    fn every_pattern_is_found_and_classified() {
        for (pattern, kind) in PATTERNS {
            let findings = scan(&format!("[    1.000000] {pattern} something\n"));
            assert_eq!(findings.len(), 1, "{pattern}");
            assert_eq!(findings[0].kind, kind, "{pattern}");
        }
    }

    #[test]
    fn a_lone_trace_is_a_finding() {
        assert_eq!(scan("x\n Call Trace:\n <TASK>\n")[0].kind, Complaint::Trace);
    }
}
