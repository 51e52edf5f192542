//! The size of a kernel at rest: segments of the kernel and its objects, sizes of its variables.

use std::path::Path;
use std::process::Command;

use macrotick_lab::{command, Kernel};

use crate::error::BenchError;

/// The segments of a linked kernel, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segments {
    /// Code and constants.
    pub text: u64,
    /// Initialised data.
    pub data: u64,
    /// Data that starts as zeroes.
    pub bss: u64,
}

impl Segments {
    /// Returns the sum of all segments.
    pub fn total(&self) -> u64 {
        self.text + self.data + self.bss
    }
}

/// Returns the segments of a kernel, from `size`.
pub fn segments(kernel: &Kernel) -> Result<Segments, BenchError> {
    segments_of(&kernel.vmlinux)
}

/// Returns the segments of a linked kernel or of one of its objects, from `size`.
pub fn segments_of(path: &Path) -> Result<Segments, BenchError> {
    let mut size = Command::new(command::find("size", "binutils")?);
    let output = command::output(size.arg(path))?;
    parse_size(&output).ok_or_else(|| unreadable("size", "segments", output))
}

/// Returns the bytes of instructions in an object, without constants and unwind tables.
pub fn code_of(path: &Path) -> Result<u64, BenchError> {
    let mut size = Command::new(command::find("size", "binutils")?);
    let output = command::output(size.args(["-A", "-d"]).arg(path))?;
    parse_sections(&output).ok_or_else(|| unreadable("size", "sections", output))
}

/// Parses lines `section size address`. Sections of code have `text` in their names.
fn parse_sections(output: &str) -> Option<u64> {
    let size = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.first()?.contains("text").then(|| words.get(1)?.parse::<u64>().ok())?
    };
    output.lines().skip(2).filter_map(size).reduce(|sum, size| sum + size)
}

/// Parses a head, then `text data bss dec hex filename`.
fn parse_size(output: &str) -> Option<Segments> {
    let mut numbers = output.lines().nth(1)?.split_whitespace().map_while(|word| word.parse().ok());
    Some(Segments { text: numbers.next()?, data: numbers.next()?, bss: numbers.next()? })
}

fn unreadable(command: &str, expected: &'static str, output: String) -> BenchError {
    BenchError::ToolOutput { command: command.into(), expected, output }
}

/// Returns the sizes in bytes of variables of a kernel.
pub fn variable_sizes<const N: usize>(kernel: &Kernel, names: [&'static str; N]) -> Result<[u64; N], BenchError> {
    let mut nm = Command::new(command::find("nm", "binutils")?);
    let output = command::output(nm.arg("--print-size").arg(&kernel.vmlinux))?;
    let mut sizes = [0; N];
    for (size, name) in sizes.iter_mut().zip(names) {
        *size = parse_nm(&output, name).ok_or_else(|| unreadable("nm", name, String::new()))?;
    }
    Ok(sizes)
}

/// Parses lines `address size kind name`.
fn parse_nm(output: &str, name: &str) -> Option<u64> {
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let line = output.lines().map(words).find(|words| words.len() == 4 && words[3] == name)?;
    u64::from_str_radix(&line[1], 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_and_nm_are_read() {
        let output = "   text\t   data\t    bss\t    dec\t    hex\tfilename\n10\t20\t30\t60\t3c\tvmlinux\n";
        let segments = parse_size(output).unwrap();
        assert_eq!(segments, Segments { text: 10, data: 20, bss: 30 });
        assert_eq!(segments.total(), 60);
        assert_eq!(parse_size("size: no such file\n"), None);
        let output = "ffffffff81000000 T _text\nffffffff82000000 0000000000000d80 D init_task\n";
        assert_eq!([parse_nm(output, "init_task"), parse_nm(output, "_text")], [Some(0xd80), None]);
    }

    #[test]
    fn code_is_what_has_text_in_its_name() {
        let output = "x/context.o  :\nsection size addr\n.text 804 0\n.init.text 20 0\n.orc_unwind 264 0\nTotal 1088\n";
        assert_eq!(parse_sections(output), Some(824));
        assert_eq!(parse_sections(""), None);
    }
}
