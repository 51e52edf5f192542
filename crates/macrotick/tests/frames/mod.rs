//! A program that prints when frames arrive at a device.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Compiles the program, and returns its path.
pub fn compile(folder: &Path) -> PathBuf {
    let program = folder.join("frames");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/frames/frames.c");
    let status = Command::new("cc").args(["-O2", "-static", "-o"]).args([&program, &source]).status().unwrap();
    assert!(status.success(), "{} does not compile", source.display());
    program
}

/// Returns the number of frames, and the first and the last instant of the cycle, from the last line of the program.
pub fn frames(output: &str) -> (u64, i64, i64) {
    let line =
        output.lines().rfind(|line| line.starts_with("frames ")).unwrap_or_else(|| panic!("no line in {output:?}"));
    let words: Vec<&str> = line.split(' ').collect();
    let ["frames", count, "from", least, "to", most] = words[..] else { panic!("{line}") };
    (count.parse().unwrap(), least.parse().unwrap(), most.parse().unwrap())
}
