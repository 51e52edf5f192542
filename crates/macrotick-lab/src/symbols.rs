//! The symbols of a built kernel: names to addresses, and addresses to names.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::error::{Context, LabError};

/// The functions of a kernel.
#[derive(Clone, Debug, Default)]
pub struct Symbols {
    by_address: BTreeMap<u64, String>,
}

impl Symbols {
    /// Reads a `System.map`.
    pub fn read(system_map: &Path) -> Result<Symbols, LabError> {
        Ok(Symbols::parse(&fs::read_to_string(system_map).context("read", system_map)?))
    }

    /// Parses the text of a `System.map`. Lines are `ffffffff81000000 T name`; symbols of data are ignored. If an
    /// address has several names (aliases), the first one counts.
    pub fn parse(text: &str) -> Symbols {
        let mut by_address = BTreeMap::new();
        for line in text.lines() {
            let mut words = line.split_whitespace();
            let (Some(address), Some(kind), Some(name)) = (words.next(), words.next(), words.next()) else { continue };
            let Ok(address) = u64::from_str_radix(address, 16) else { continue };
            if matches!(kind, "t" | "T" | "w" | "W") {
                by_address.entry(address).or_insert_with(|| name.to_owned());
            }
        }
        Symbols { by_address }
    }

    /// Returns the start address of a function.
    pub fn address(&self, name: &str) -> Option<u64> {
        self.by_address.iter().find(|(_, found)| *found == name).map(|(&address, _)| address)
    }

    /// Returns the function of an instruction.
    pub fn function(&self, address: u64) -> Option<&str> {
        self.by_address.range(..=address).next_back().map(|(_, name)| name.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_belong_to_the_function_before_them() {
        let symbols = Symbols::parse("10 T first\n20 t second\n20 t alias\n28 d data\nx\n");
        assert_eq!(symbols.address("second"), Some(0x20));
        assert_eq!([symbols.address("alias"), symbols.address("data")], [None, None]);
        assert_eq!(
            [0xf, 0x10, 0x1f, 0x30].map(|at| symbols.function(at)),
            [None, Some("first"), Some("first"), Some("second")]
        );
    }
}
