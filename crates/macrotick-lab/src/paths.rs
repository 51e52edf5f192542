//! Records paths of the guest's kernel, instruction by instruction, without any effect on the guest.
//!
//! QEMU loads a plugin (`paths.c`) that keeps the addresses of the kernel's instructions from an entry to the next
//! return to user space. The lab's clock counts instructions, so the length of a path is its time.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Context, LabError};
use crate::layout::Layout;
use crate::plugin;

const SOURCE: &str = include_str!("paths.c");

/// The paths to record: from an entry that interrupts user space to the return to user space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathRequest {
    /// Address of the entry's first instruction.
    pub entry: u64,
    /// An address that a path must contain.
    pub through: u64,
    /// The number of matching paths before the first recorded one.
    pub skip: u64,
    /// The most paths to record.
    pub count: u64,
}

/// Builds the plugin, unless it is up to date.
pub fn build(layout: &Layout) -> Result<PathBuf, LabError> {
    plugin::build(layout, "paths", SOURCE)
}

/// Returns the argument of QEMU that loads the plugin.
pub(crate) fn argument(plugin: &Path, request: &PathRequest, dir: &Path) -> String {
    let PathRequest { entry, through, skip, count } = request;
    let (plugin, output) = (plugin.display(), file(dir));
    format!("{plugin},entry={entry:#x},through={through:#x},skip={skip},count={count},output={}", output.display())
}

fn file(dir: &Path) -> PathBuf {
    dir.join("paths")
}

/// Returns the recorded paths: the addresses of their instructions in the order of execution.
pub(crate) fn read(dir: &Path) -> Result<Vec<Vec<u64>>, LabError> {
    let path = file(dir);
    Ok(decode(&fs::read(&path).context("read", &path)?))
}

/// Splits the addresses into paths. Each path ends with a zero.
fn decode(bytes: &[u8]) -> Vec<Vec<u64>> {
    let words = bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")));
    let words: Vec<u64> = words.collect();
    words.split_inclusive(|&word| word == 0).filter_map(|path| path.strip_suffix(&[0])).map(<[u64]>::to_vec).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_paths_are_read_and_a_cut_one_is_left_out() {
        let bytes: Vec<u8> = [5u64, 6, 0, 7, 0, 8].iter().flat_map(|word| word.to_le_bytes()).collect();
        assert_eq!(decode(&bytes), [vec![5, 6], vec![7]]);
        assert_eq!(decode(&bytes[..20]), [[5u64, 6]; 0]);
        assert!(decode(&[]).is_empty());
    }
}
