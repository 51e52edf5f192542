//! Judgements that several checks share.

use std::collections::{BTreeMap, BTreeSet};

use crate::check::{Finding, Mend, Verdict};
use crate::host::{written, Host, Match, CPUS};
use crate::needs::Needs;

/// Judges the number in a file. `mend` is the value that mends it.
pub(super) fn number(host: &Host, path: &str, is_good: impl Fn(i64) -> bool, expected: &str, mend: i64) -> Verdict {
    let Some(text) = host.text(path) else { return without(host, path) };
    match text.parse() {
        Ok(value) if is_good(value) => Verdict::good(text),
        Ok(_) => Verdict::bad(text, expected, [Mend::write(path, mend)]),
        Err(_) => Verdict::unknown(format!("{path} has no number: `{}`", short(text))),
    }
}

/// Judges a switch: 0 is off.
pub(super) fn off(host: &Host, path: &str) -> Verdict {
    match number(host, path, |value| value == 0, "off", 0) {
        Verdict::Good { .. } => Verdict::good("off"),
        Verdict::Bad(finding) => Verdict::Bad(Finding { observed: "on".into(), ..finding }),
        verdict => verdict,
    }
}

/// Returns the verdict about a file that the capture lacks.
pub(super) fn without(host: &Host, path: &str) -> Verdict {
    match host.refused(path) {
        Some(reason) => Verdict::unknown(format!("{path}: {reason}")),
        None => Verdict::absent(format!("there is no {path}")),
    }
}

/// Returns the verdict about a plan that does not use the network.
pub(super) fn without_network(needs: &Needs) -> Option<Verdict> {
    (needs.is_described() && !needs.network).then(|| Verdict::absent("the plan does not use the network"))
}

/// Returns the verdict if there are no CPUs of a plan, or none beside them.
pub(super) fn without_cpus(host: &Host, needs: &Needs) -> Option<Verdict> {
    if needs.cpus.is_empty() {
        return Some(Verdict::absent("no description names CPUs, and none is isolated"));
    }
    needs.others(host).is_empty().then(|| Verdict::absent("the plan uses every CPU of the host"))
}

/// Judges one value of each CPU, or of each other part of the host. A bad one is mended by writing `value` to its file.
pub(super) fn each<'a>(
    found: &[Match<'a>],
    is_good: impl Fn(&Match<'a>) -> bool,
    (expected, value, absent): (&str, &str, &str),
) -> Verdict {
    if found.is_empty() {
        return Verdict::absent(absent);
    }
    let bad: Vec<&Match> = found.iter().filter(|found| !is_good(found)).collect();
    if bad.is_empty() {
        return Verdict::good(listed(found.iter().map(|found| (named(found), found.text))));
    }
    let mend: Vec<Mend> = bad.iter().map(|found| Mend::write(found.path, value)).collect();
    Verdict::bad(listed(bad.iter().map(|found| (named(found), found.text))), expected, mend)
}

/// Returns the part of the host that a file is about: `CPU 1`, or the part of the path in the place of the first `*`.
fn named(found: &Match) -> String {
    let part = found.parts.first().copied().unwrap_or_default();
    let before = found.path.split(part).next().unwrap_or_default();
    match before.ends_with("/cpu") || before.ends_with("/machinecheck") {
        true => format!("CPU {part}"),
        false => part.to_owned(),
    }
}

/// Writes names with their values: names with the same value stand together, and CPUs as ranges.
pub(super) fn listed<'a>(items: impl Iterator<Item = (String, &'a str)>) -> String {
    let mut values: BTreeMap<&str, (BTreeSet<u32>, Vec<String>)> = BTreeMap::new();
    for (name, value) in items {
        let (cpus, names) = values.entry(value).or_default();
        match name.strip_prefix("CPU ").and_then(|cpu| cpu.parse().ok()) {
            Some(cpu) => drop(cpus.insert(cpu)),
            None => names.push(name),
        }
    }
    let words = values.into_iter().map(|(value, (cpus, names))| {
        let cpus = (!cpus.is_empty()).then(|| cpu_words(&cpus));
        let names: Vec<String> = cpus.into_iter().chain(few(names)).collect();
        format!("{}: {}", names.join(", "), short(value))
    });
    few(words.collect()).join("; ")
}

/// Writes CPUs: `CPU 1`, `CPUs 0-3`.
pub(super) fn cpu_words(cpus: &BTreeSet<u32>) -> String {
    format!("{} {}", if cpus.len() == 1 { "CPU" } else { "CPUs" }, written(cpus))
}

/// The most names in a list.
const MOST: usize = 8;

/// Keeps the first names, and counts the others.
pub(super) fn few(mut names: Vec<String>) -> Vec<String> {
    if names.len() > MOST {
        let more = names.len() - MOST;
        names.truncate(MOST);
        names.push(format!("{more} more"));
    }
    names
}

/// Shortens a text that a host wrote.
pub(super) fn short(text: &str) -> String {
    macrotick_model::visible::shortened(text).to_string()
}

/// Returns major and minor version of a kernel release.
pub(super) fn release(host: &Host) -> Option<(u32, u32)> {
    let mut numbers = host.kernel.release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// Reads a mask of CPUs in the kernel's format. `None`: it is none, or longer than that of the largest host.
pub(super) fn mask(text: &str) -> Option<BTreeSet<u32>> {
    let is_short = text.len() <= CPUS as usize / 32 * 9;
    is_short.then(|| macrotick_host::sys::parse_cpu_mask(text))?.map(|cpus| cpus.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_stand_together() {
        let items = [("CPU 0", "a"), ("CPU 1", "b"), ("CPU 2", "b"), ("eth0", "b")];
        assert_eq!(listed(items.iter().map(|(name, value)| ((*name).into(), *value))), "CPU 0: a; CPUs 1-2, eth0: b");
        assert_eq!(few((0..10).map(|n| n.to_string()).collect()).last().unwrap(), "2 more");
    }

    #[test]
    fn masks_are_bounded() {
        assert_eq!(mask("3"), Some(BTreeSet::from([0, 1])));
        assert_eq!(mask(&"f".repeat(100_000)), None);
    }
}
