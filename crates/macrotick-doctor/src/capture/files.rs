//! Reads the files of patterns.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use crate::host::{Content, Pattern};

/// The most bytes of a file. Lists of settings are shorter.
const MOST: u64 = 64 * 1024;
/// The most files of one pattern.
const FILES: usize = 20_000;

/// Returns the contents of all files of the patterns.
pub(super) fn read<'a>(patterns: impl IntoIterator<Item = &'a str>) -> BTreeMap<String, Content> {
    let mut found = BTreeMap::new();
    for pattern in patterns {
        for path in matching(pattern) {
            if let (Some(text), Some(content)) = (path.to_str(), content(&path)) {
                found.entry(text.to_owned()).or_insert(content);
            }
        }
    }
    found
}

/// Returns the paths of a pattern. They need not exist.
fn matching(pattern: &str) -> Vec<PathBuf> {
    let mut paths = vec![PathBuf::from("/")];
    for part in pattern.split('/').filter(|part| !part.is_empty()) {
        paths = match part.contains('*') {
            false => paths.into_iter().map(|path| path.join(part)).collect(),
            true => paths.iter().flat_map(|path| children(path, part)).take(FILES).collect(),
        };
    }
    paths
}

fn children(path: &Path, part: &str) -> Vec<PathBuf> {
    let pattern = Pattern::new(part);
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let named = entries.filter(|entry| entry.file_name().to_str().is_some_and(|name| pattern.is(name)));
    named.map(|entry| entry.path()).collect()
}

/// Returns the contents of a path. `None`: there is no such path.
fn content(path: &Path) -> Option<Content> {
    let meta = fs::symlink_metadata(path).ok()?;
    if meta.is_symlink() {
        let link = fs::read_link(path).ok()?;
        // A link to a directory is a fact by itself; a link to a file is read.
        if fs::metadata(path).is_ok_and(|meta| meta.is_dir()) {
            return Some(Content::Link { link: link.to_string_lossy().into_owned() });
        }
    }
    let meta = fs::metadata(path).ok()?;
    if meta.is_dir() || meta.file_type().is_fifo() || meta.file_type().is_char_device() {
        return None;
    }
    let mut bytes = Vec::new();
    match File::open(path).and_then(|file| file.take(MOST).read_to_end(&mut bytes)) {
        Ok(_) => Some(Content::Text(String::from_utf8_lossy(&bytes).into_owned())),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => Some(Content::Refused { refused: error.to_string() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_read_with_what_is_there() {
        let found =
            read(["/proc/self/limits", "/proc/cmdline", "/sys/devices/system/cpu/cpu*/topology/core_id", "/no/such/*"]);
        assert!(matches!(found.get("/proc/self/limits"), Some(Content::Text(text)) if text.contains("Max")));
        assert!(found.keys().all(|path| !path.starts_with("/no")));
    }
}
