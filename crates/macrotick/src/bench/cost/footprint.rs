//! What the kernel part adds at rest: to the linked kernel, to its structures, and to the source.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use macrotick_lab::{cache, command, Kernel};

use crate::error::CliError;

/// The segments of a linked kernel, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segments {
    /// Code and constants.
    pub text: u64,
    /// Initialised data.
    pub data: u64,
    /// Data that begins as zeroes.
    pub bss: u64,
}

impl Segments {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.text + self.data + self.bss
    }
}

/// What `size` says of a kernel.
pub fn segments(kernel: &Kernel) -> Result<Segments, CliError> {
    segments_of(&kernel.vmlinux)
}

/// What `size` says of a linked kernel, or of an object of it.
pub fn segments_of(path: &Path) -> Result<Segments, CliError> {
    let mut size = Command::new(command::find("size", "binutils")?);
    let output = command::output(size.arg(path))?;
    parse_size(&output).ok_or_else(|| unreadable("size", "segments", output))
}

/// The bytes of instructions in an object, without constants and what tells the stack's layout.
pub fn code_of(path: &Path) -> Result<u64, CliError> {
    let mut size = Command::new(command::find("size", "binutils")?);
    let output = command::output(size.args(["-A", "-d"]).arg(path))?;
    parse_sections(&output).ok_or_else(|| unreadable("size", "sections", output))
}

/// Lines `section size address`; those of code have `text` in their names.
fn parse_sections(output: &str) -> Option<u64> {
    let size = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.first()?.contains("text").then(|| words.get(1)?.parse::<u64>().ok())?
    };
    output.lines().skip(2).filter_map(size).reduce(|sum, size| sum + size)
}

/// A head, then `text data bss dec hex filename`.
fn parse_size(output: &str) -> Option<Segments> {
    let mut numbers = output.lines().nth(1)?.split_whitespace().map_while(|word| word.parse().ok());
    Some(Segments { text: numbers.next()?, data: numbers.next()?, bss: numbers.next()? })
}

fn unreadable(command: &str, expected: &'static str, output: String) -> CliError {
    CliError::ToolOutput { command: command.into(), expected, output }
}

/// The sizes in bytes of variables of a kernel.
pub fn variable_sizes<const N: usize>(kernel: &Kernel, names: [&'static str; N]) -> Result<[u64; N], CliError> {
    let mut nm = Command::new(command::find("nm", "binutils")?);
    let output = command::output(nm.arg("--print-size").arg(&kernel.vmlinux))?;
    let mut sizes = [0; N];
    for (size, name) in sizes.iter_mut().zip(names) {
        *size = parse_nm(&output, name).ok_or_else(|| unreadable("nm", name, String::new()))?;
    }
    Ok(sizes)
}

/// Lines are `address size kind name`.
fn parse_nm(output: &str, name: &str) -> Option<u64> {
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let line = output.lines().map(words).find(|words| words.len() == 4 && words[3] == name)?;
    u64::from_str_radix(&line[1], 16).ok()
}

/// How far the kernel's own files are changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hooks {
    /// Files that are touched.
    pub files: usize,
    /// Lines that are added.
    pub added: usize,
    /// Lines that are removed; one that is changed is both.
    pub removed: usize,
}

/// Counts the patches in `kernel/hooks`, of which there is a folder for each version.
pub fn hooks(root: &Path) -> Result<Hooks, CliError> {
    let texts = read_all(&root.join("kernel/hooks"))?;
    Ok(count_hooks(texts.iter().map(|(_, text)| text.as_str())))
}

fn count_hooks<'a>(patches: impl Iterator<Item = &'a str>) -> Hooks {
    let mut files = BTreeSet::new();
    let mut hooks = Hooks::default();
    let mut is_code = false;
    for line in patches.flat_map(str::lines) {
        if let Some(file) = line.strip_prefix("+++ b/") {
            is_code = !is_beside_the_code(Path::new(file));
            if is_code {
                files.insert(file);
            }
        } else if !is_code {
            continue;
        } else if line.starts_with('+') {
            hooks.added += 1;
        } else if line.starts_with('-') && !line.starts_with("---") {
            hooks.removed += 1;
        }
    }
    hooks.files = files.len();
    hooks
}

/// Whether a file of the tree is documentation, a selftest, or says who maintains what.
fn is_beside_the_code(path: &Path) -> bool {
    ["Documentation", "tools", "MAINTAINERS"].iter().any(|top| path.starts_with(top))
}

/// The files of the overlay, documentation and selftests apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overlay {
    /// How many.
    pub files: usize,
    /// All their lines.
    pub lines: usize,
    /// Lines with code, in C files.
    pub code: usize,
    /// Those of them in the two files that walk the windows and say what runs next.
    pub dispatcher: usize,
}

/// Counts the overlay.
pub fn overlay(root: &Path) -> Result<Overlay, CliError> {
    let mut overlay = Overlay::default();
    for (path, text) in read_all(&root.join("kernel/overlay"))? {
        if is_beside_the_code(&path) {
            continue;
        }
        overlay.files += 1;
        overlay.lines += text.lines().count();
        if path.extension().is_some_and(|kind| kind == "c" || kind == "h") {
            let code = code_lines(&text);
            overlay.code += code;
            let dispatches = ["window.c", "class.c"].iter().any(|file| path.ends_with(file));
            overlay.dispatcher += if dispatches { code } else { 0 };
        }
    }
    Ok(overlay)
}

/// Lines with something else than space and comments.
fn code_lines(text: &str) -> usize {
    let mut inside = false;
    let has_code = |line: &&str| {
        let mut rest = *line;
        let mut code = false;
        loop {
            if inside {
                let Some((_, after)) = rest.split_once("*/") else { return code };
                (inside, rest) = (false, after);
            }
            let rest_of_line = rest.split("//").next().unwrap_or("");
            match rest_of_line.split_once("/*") {
                Some((before, after)) => {
                    code |= !before.trim().is_empty();
                    (inside, rest) = (true, after);
                }
                None => return code | !rest_of_line.trim().is_empty(),
            }
        }
    };
    text.lines().filter(has_code).count()
}

fn read_all(dir: &Path) -> Result<Vec<(PathBuf, String)>, CliError> {
    let read = |path: PathBuf| {
        let full = dir.join(&path);
        let text = fs::read_to_string(&full).map_err(|source| CliError::Read { path: full, source })?;
        Ok((path, text))
    };
    cache::files_below(dir)?.into_iter().map(read).collect()
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

    #[test]
    fn hook_lines_are_counted_once() {
        let patch = "Subject: x\n---\n--- a/one.c\n+++ b/one.c\n@@ -1 +1,2 @@\n same\n+new\n-old\n+changed\n";
        let other = "--- a/one.c\n+++ b/one.c\n+more\n--- a/two.c\n+++ b/two.c\n-gone\n";
        let words =
            "--- a/MAINTAINERS\n+++ b/MAINTAINERS\n+M:\n--- a/Documentation/x.rst\n+++ b/Documentation/x.rst\n-x\n";
        assert_eq!(count_hooks([patch, words, other].into_iter()), Hooks { files: 2, added: 3, removed: 2 });
    }

    #[test]
    fn comments_and_empty_lines_are_no_code() {
        let text = "/* one\n * two\n */ int a;\n\nint b; /* b */\n// c\n\t/* d */\nint e; // e\n} /* f\n*/\n";
        assert_eq!(code_lines(text), 4);
    }
}
