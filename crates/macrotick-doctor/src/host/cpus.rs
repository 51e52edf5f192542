//! Lists of CPUs in the kernel's format.

use std::collections::BTreeSet;

/// The most CPUs of a host (`NR_CPUS` of the largest configuration). A captured list names none above.
pub const CPUS: u32 = 8192;

/// Reads a list such as `0-2,5`. `None`: it is no list.
pub fn cpus_of(text: &str) -> Option<BTreeSet<u32>> {
    let mut cpus = BTreeSet::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.trim().parse::<u32>().ok()?, last.trim().parse::<u32>().ok()?);
        if last >= CPUS {
            return None;
        }
        cpus.extend(first..=last);
    }
    Some(cpus)
}

/// Writes a set in the same format, with ranges.
pub fn written(cpus: &BTreeSet<u32>) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for &cpu in cpus {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == cpu => *last = cpu,
            _ => ranges.push((cpu, cpu)),
        }
    }
    let words = ranges.iter().map(|(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    });
    words.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_written_as_it_is_read() {
        for text in ["", "0", "0-2,5", "1,3,5-7"] {
            assert_eq!(written(&cpus_of(text).unwrap()), text);
        }
        for other in ["x", "0-", "0-4294967295", "-1"] {
            assert_eq!(cpus_of(other), None, "{other}");
        }
    }
}
