//! Valid and unique names.

use std::collections::{BTreeMap, BTreeSet};

/// The names that are in use.
#[derive(Default)]
pub struct Names {
    taken: BTreeSet<String>,
    /// The last number that each name has got.
    numbers: BTreeMap<String, u32>,
}

impl Names {
    /// Returns a free and valid name of at most `most` bytes that resembles the wanted one, and takes it.
    pub fn take(&mut self, wanted: &str, most: usize) -> String {
        self.take_with(wanted, most, |_| Vec::new())
    }

    /// Does the same for the name of several processes, each of which also has a name of its own.
    pub fn take_several(&mut self, wanted: &str, most: usize, count: u32) -> String {
        self.take_with(wanted, most, |name| match count {
            0 | 1 => Vec::new(),
            count => (0..count).map(|index| format!("{name}.{index}")).collect(),
        })
    }

    fn take_with(&mut self, wanted: &str, most: usize, derived: impl Fn(&str) -> Vec<String>) -> String {
        let first = cleaned(wanted, most);
        let last = self.numbers.entry(first.clone()).or_default();
        loop {
            *last += 1;
            let suffix = if *last == 1 { String::new() } else { format!("-{last}") };
            let name = cleaned(&first, most.saturating_sub(suffix.len())) + &suffix;
            let all: Vec<String> = [name.clone()].into_iter().chain(derived(&name)).collect();
            if all.iter().all(|one| !self.taken.contains(one)) {
                self.taken.extend(all);
                return name;
            }
        }
    }
}

/// Returns a valid name of at most `most` bytes: lower case, with `-` in place of characters that no name has.
pub fn cleaned(text: &str, most: usize) -> String {
    let kept = |c: char| match c.to_ascii_lowercase() {
        c if c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c) => c,
        _ => '-',
    };
    let name: String = text.trim_start_matches(['-', '.']).chars().map(kept).collect();
    let name: String = name.trim_start_matches(['-', '.']).chars().take(most).collect();
    match name.is_empty() {
        true => "unnamed".chars().take(most).collect(),
        false => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_valid() {
        assert_eq!(cleaned("AudioTick", 31), "audiotick");
        assert_eq!(cleaned("-.a b\u{e9}/c", 31), "a-b--c");
        assert_eq!(cleaned("\u{e9}", 31), "unnamed");
        assert_eq!(cleaned(&"x".repeat(40), 31).len(), 31);
    }

    #[test]
    fn names_become_unique() {
        let mut names = Names::default();
        let taken: Vec<String> = ["a", "A", "a"].map(|wanted| names.take(wanted, 31)).to_vec();
        assert_eq!(taken, ["a", "a-2", "a-3"]);
        assert_eq!(names.take(&"x".repeat(40), 4), "xxxx");
        assert_eq!(names.take(&"x".repeat(40), 4), "xx-2");
    }

    #[test]
    fn processes_also_take_the_names_of_each() {
        let mut names = Names::default();
        assert_eq!(names.take("n.1", 31), "n.1");
        assert_eq!(names.take_several("n", 31, 2), "n-2");
        assert_eq!(names.take("n-2.0", 31), "n-2.0-2");
    }
}
