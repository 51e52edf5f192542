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
}
