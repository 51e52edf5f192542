//! A set of CPUs, in the forms that people and files read.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The CPUs of a task or pool, in ascending order and without duplicates. Most sets have one CPU.
///
/// As text a set is `0` or `0, 1`, and `-` if it is empty. In JSON it is a number, a list, or `null`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "Written", into = "Written")]
pub struct CpuSet(Vec<u32>);

impl CpuSet {
    /// Returns all CPUs of the set.
    pub fn as_slice(&self) -> &[u32] {
        &self.0
    }

    /// Returns the lowest CPU.
    pub fn first(&self) -> Option<u32> {
        self.0.first().copied()
    }

    /// Whether the set has no CPU.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether `cpu` is in the set.
    pub fn contains(&self, cpu: u32) -> bool {
        self.0.binary_search(&cpu).is_ok()
    }

    /// Whether some CPUs of the set are in `other` and some are not.
    pub fn straddles(&self, other: &CpuSet) -> bool {
        let shared = self.0.iter().filter(|&&cpu| other.contains(cpu)).count();
        (1..self.0.len()).contains(&shared)
    }

    /// Whether the set has two or more CPUs.
    pub fn is_several(&self) -> bool {
        self.0.len() > 1
    }

    /// Returns the CPUs as in a sentence: `CPU 1`, or `the CPUs 0, 2`.
    pub fn words(&self) -> String {
        format!("{} {self}", if self.is_several() { "the CPUs" } else { "CPU" })
    }
}

impl FromIterator<u32> for CpuSet {
    fn from_iter<I: IntoIterator<Item = u32>>(cpus: I) -> Self {
        let mut cpus: Vec<u32> = cpus.into_iter().collect();
        cpus.sort_unstable();
        cpus.dedup();
        CpuSet(cpus)
    }
}

impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.pad("-");
        }
        f.pad(&self.0.iter().map(u32::to_string).collect::<Vec<_>>().join(", "))
    }
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Written {
    None(()),
    One(u32),
    Several(Vec<u32>),
}

impl From<Written> for CpuSet {
    fn from(written: Written) -> Self {
        match written {
            Written::None(()) => CpuSet::default(),
            Written::One(cpu) => CpuSet(vec![cpu]),
            Written::Several(cpus) => cpus.into_iter().collect(),
        }
    }
}

impl From<CpuSet> for Written {
    fn from(CpuSet(cpus): CpuSet) -> Self {
        match cpus.as_slice() {
            [] => Written::None(()),
            &[cpu] => Written::One(cpu),
            _ => Written::Several(cpus),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_straddles_what_it_is_only_partly_in() {
        let set = |cpus: &[u32]| cpus.iter().copied().collect::<CpuSet>();
        assert!(set(&[0, 1]).straddles(&set(&[1])) && set(&[0, 1]).straddles(&set(&[1, 2])));
        assert!(!set(&[1]).straddles(&set(&[0, 1])) && !set(&[0, 1]).straddles(&set(&[0, 1])));
        assert!(!set(&[0]).straddles(&set(&[1])) && !set(&[]).straddles(&set(&[1])));
    }

    #[test]
    fn every_form_is_written_and_read_back() {
        for (cpus, text, json) in
            [(vec![], "-", "null"), (vec![3], "3", "3"), (vec![2, 0, 2], "0, 2", "[0,2]"), (vec![1, 1], "1", "1")]
        {
            let set: CpuSet = cpus.into_iter().collect();
            assert_eq!((set.to_string(), serde_json::to_string(&set).unwrap()), (text.into(), json.into()));
            assert_eq!(serde_json::from_str::<CpuSet>(json).unwrap(), set);
        }
    }
}
