//! A file for the collector `textfile` of the node exporter.

use std::fs;
use std::io;
use std::path::Path;

/// Replaces a file as a whole: a reader sees the old text or the new one.
pub fn replace(path: &Path, text: &str) -> io::Result<()> {
    // The collector reads files with the extension `prom` only.
    let partial = path.with_extension("prom.partial");
    fs::write(&partial, text)?;
    fs::rename(&partial, path)
}
