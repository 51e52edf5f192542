//! The CPUs of this host, and CPU lists in the kernel's format.

use std::path::Path;

use crate::error::HostFailure;
use crate::file;

/// Returns the CPUs of a list such as `0-2,5`.
pub fn parse_cpu_list(text: &str) -> Vec<u32> {
    let mut cpus = Vec::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.parse::<u32>(), last.parse::<u32>()) {
            cpus.extend(first..=last);
        }
    }
    cpus
}

/// Returns these CPUs as a list in the kernel's format.
pub fn cpu_list(cpus: &[u32]) -> String {
    cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}

/// Returns these CPUs as a mask in the kernel's format: groups of 32 bits in hexadecimal, the highest first.
pub fn cpu_mask(cpus: &[u32]) -> String {
    let mut groups = vec![0u32; 1 + cpus.iter().max().map_or(0, |&most| most as usize / 32)];
    cpus.iter().for_each(|&cpu| groups[cpu as usize / 32] |= 1 << (cpu % 32));
    let (last, rest) = groups.split_last().expect("a mask has a group");
    rest.iter().rev().fold(format!("{last:x}"), |text, group| format!("{text},{group:08x}"))
}

/// Returns the CPUs of a mask; `None` if the text is no mask.
pub fn parse_cpu_mask(text: &str) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    for (index, group) in text.trim().rsplit(',').enumerate() {
        let bits = u32::from_str_radix(group, 16).ok()?;
        let first = 32 * index as u32;
        cpus.extend((0..32).filter(|bit| bits >> bit & 1 == 1).map(|bit| first + bit));
    }
    Some(cpus)
}

/// Returns the online CPUs.
pub fn online_cpus() -> Result<Vec<u32>, HostFailure> {
    file::read(Path::new("/sys/devices/system/cpu/online")).map(|text| parse_cpu_list(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_lists() {
        assert_eq!(parse_cpu_list("0-2,5\n"), [0, 1, 2, 5]);
        assert_eq!(parse_cpu_list("0\n"), [0]);
        assert_eq!(cpu_list(&[0, 2]), "0,2");
    }

    #[test]
    fn cpu_masks() {
        let high = "80000000,00000000,00000000";
        for (cpus, mask) in [(&[][..], "0"), (&[0, 1], "3"), (&[4], "10"), (&[0, 35], "8,00000001"), (&[95], high)] {
            assert_eq!(cpu_mask(cpus), mask);
            assert_eq!(parse_cpu_mask(mask).as_deref(), Some(cpus));
        }
        assert_eq!(parse_cpu_mask("00000000,0000000f\n"), Some(vec![0, 1, 2, 3]));
        assert_eq!(parse_cpu_mask("x"), None);
    }
}
