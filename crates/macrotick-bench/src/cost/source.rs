//! The source lines that the kernel part adds: hooks and overlay.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use macrotick_lab::cache;

use crate::error::BenchError;

/// The changes to the kernel's own files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hooks {
    /// Files that are changed.
    pub files: usize,
    /// Lines that are added.
    pub added: usize,
    /// Lines that are removed. A changed line counts as removed and as added.
    pub removed: usize,
}

/// Counts the patches in `kernel/hooks`, which has a folder for each version.
pub fn hooks(root: &Path) -> Result<Hooks, BenchError> {
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

/// Whether a file of the tree is documentation, a selftest, or the list of maintainers.
fn is_beside_the_code(path: &Path) -> bool {
    ["Documentation", "tools", "MAINTAINERS"].iter().any(|top| path.starts_with(top))
}

/// The files of the overlay without documentation and selftests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overlay {
    /// The number of files.
    pub files: usize,
    /// The number of all lines.
    pub lines: usize,
    /// The number of lines with code, in C files.
    pub code: usize,
    /// The part of [`Overlay::code`] in the two files that walk the windows and choose the next thread.
    pub dispatcher: usize,
}

/// Counts the overlay.
pub fn overlay(root: &Path) -> Result<Overlay, BenchError> {
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

/// Counts the lines that contain more than space and comments.
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
                    // The comment may end in the rest of the line, at its `*/`.
                    code |= !before.trim().is_empty();
                    (inside, rest) = (true, after);
                }
                None => return code | !rest_of_line.trim().is_empty(),
            }
        }
    };
    text.lines().filter(has_code).count()
}

fn read_all(dir: &Path) -> Result<Vec<(PathBuf, String)>, BenchError> {
    let read = |path: PathBuf| {
        let full = dir.join(&path);
        let text = fs::read_to_string(&full).map_err(|source| BenchError::Read { path: full, source })?;
        Ok((path, text))
    };
    cache::files_below(dir)?.into_iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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
