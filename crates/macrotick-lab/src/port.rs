//! Counts what the hooks change in each version of Linux: the page `docs/results/port.md`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use crate::cache;
use crate::error::{Context, LabError};
use crate::layout::Layout;
use crate::linux::Linux;

/// The overlay's header with the differences between the versions.
const DIFFERENCES: &str = "overlay/include/linux/macrotick_linux.h";
/// The hooks from this number on have documentation and selftests, and no code.
const FIRST_WITHOUT_CODE: u32 = 21;

/// The changes of the hooks in one version.
struct Hooks {
    /// The changed files of Linux, each with its added and removed lines.
    files: BTreeMap<String, usize>,
    /// How often each added line with text is there, over all files.
    added: BTreeMap<String, usize>,
    patches: usize,
}

impl Hooks {
    fn read(layout: &Layout) -> Result<Hooks, LabError> {
        let dir = layout.hooks();
        let mut hooks = Hooks { files: BTreeMap::new(), added: BTreeMap::new(), patches: 0 };
        for path in cache::files_below(&dir)? {
            let number = path.to_string_lossy().split('-').next().and_then(|number| number.parse::<u32>().ok());
            if number.is_some_and(|number| number < FIRST_WITHOUT_CODE) {
                let path = dir.join(path);
                hooks.add(&fs::read_to_string(&path).context("read", &path)?);
            }
        }
        Ok(hooks)
    }

    fn add(&mut self, patch: &str) {
        self.patches += 1;
        let mut file = None;
        for line in patch.lines() {
            if let Some(path) = line.strip_prefix("+++ b/") {
                file = Some(path.to_owned());
            } else if let (Some(file), false) = (&file, line.starts_with("--- ")) {
                self.add_line(file, line);
            }
        }
    }

    fn add_line(&mut self, file: &str, line: &str) {
        if !line.starts_with(['+', '-']) {
            return;
        }
        *self.files.entry(file.to_owned()).or_default() += 1;
        if let Some(text) = line.strip_prefix('+').map(str::trim).filter(|text| !text.is_empty()) {
            *self.added.entry(text.to_owned()).or_default() += 1;
        }
    }

    fn lines(&self) -> usize {
        self.added.values().sum()
    }

    /// Returns the added lines that another version does not have.
    fn lines_missing_in(&self, other: &Hooks) -> usize {
        let missing = |(line, count): (&String, &usize)| count.saturating_sub(*other.added.get(line).unwrap_or(&0));
        self.added.iter().map(missing).sum()
    }
}

/// Returns the lines with code of a C file: not empty, and no comment.
fn code_lines(path: &Path) -> Result<usize, LabError> {
    let text = fs::read_to_string(path).context("read", path)?;
    let is_code = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with(['/', '*']);
    Ok(text.lines().filter(is_code).count())
}

/// Returns the page.
pub fn page(layout: &Layout) -> Result<String, LabError> {
    let default = Hooks::read(&layout.of_linux(Linux::default()))?;
    let mut page = String::from(
        "# Hooks by version of Linux\n\n\
         Hooks are the lines that the patches of `kernel/hooks` add to files of Linux, without documentation and\n\
         selftests. Everything else is the overlay, which is the same for all versions. `macrotick-lab port` makes\n\
         this page.\n\n\
         | Linux | patches | files | lines of hooks | not in 6.12 | only in 6.12 |\n|---|---|---|---|---|---|\n",
    );
    for linux in Linux::ALL {
        let hooks = Hooks::read(&layout.of_linux(linux))?;
        let (new, gone) = (hooks.lines_missing_in(&default), default.lines_missing_in(&hooks));
        let (name, patches, files, lines) = (linux.name(), hooks.patches, hooks.files.len(), hooks.lines());
        let _ = writeln!(page, "| {name} | {patches} | {files} | {lines} | {new} | {gone} |");
    }
    let header = code_lines(&layout.kernel().join(DIFFERENCES))?;
    let _ = write!(
        page,
        "\nThe header with all other differences, `{DIFFERENCES}`, has {header} lines of code.\n\n\
         ## Changed lines by file\n\nThe lines that the hooks add or remove.\n\n| file |"
    );
    by_file(layout, &mut page)?;
    page.push_str(WHAT_CHANGED);
    Ok(page)
}

fn by_file(layout: &Layout, page: &mut String) -> Result<(), LabError> {
    let all = Linux::ALL.map(|linux| Hooks::read(&layout.of_linux(linux)));
    let all = all.into_iter().collect::<Result<Vec<Hooks>, LabError>>()?;
    for linux in Linux::ALL {
        let _ = write!(page, " {} |", linux.name());
    }
    let _ = writeln!(page, "\n|---|{}", "---|".repeat(all.len()));
    let files: BTreeMap<&String, ()> = all.iter().flat_map(|hooks| hooks.files.keys().map(|file| (file, ()))).collect();
    for file in files.keys() {
        let _ = write!(page, "| `{file}` |");
        for hooks in &all {
            let cell = hooks.files.get(*file).map_or("-".to_owned(), usize::to_string);
            let _ = write!(page, " {cell} |");
        }
        page.push('\n');
    }
    Ok(())
}

const WHAT_CHANGED: &str = "
## What changed between 6.12 and 7.3

* **Scheduling classes**: `pick_task()` has the flags of the run queue, `balance()` has no previous task, and
  `prio_changed()` has a 64-bit priority. Every change of a thread's class goes through `sched_change`.
* **Timers of the scheduler's clock**: the nodes of a queue are linked, and a base knows its first expiry. A
  timer that stays in its place is not queued again. The event device is programmed after the interrupt, often
  by `__schedule()`.
* **Servers of fair classes**: sched_ext has one, too. Linux itself counts them after a change of cpusets.
* **CPUs that go offline**: SCHED_DEADLINE checks this while the CPU is still active.
* **cpusets** (7.3): threads can move to several cpusets at once. The hook looks at each thread.
* **sched_ext**: it is a directory, it runs the callbacks of run queues, and it waits for the work of an error.
  One patch for 6.12 is therefore not needed.
* **Configuration**: `CONFIG_SYSCTL` replaces `CONFIG_PROC_SYSCTL`.
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_files_are_counted() {
        let mut one = Hooks { files: BTreeMap::new(), added: BTreeMap::new(), patches: 0 };
        one.add("Subject: x\n- a list\n---\n--- a/k/a.c\n+++ b/k/a.c\n@@ -1 +1,3 @@\n-old\n+new();\n+\n+}\n+}\n");
        assert_eq!((one.files["k/a.c"], one.lines()), (5, 3));
        let mut other = Hooks { files: BTreeMap::new(), added: BTreeMap::new(), patches: 0 };
        other.add("--- a/k/b.c\n+++ b/k/b.c\n@@ -1 +1,3 @@\n+new();\n+}\n");
        assert_eq!((one.lines_missing_in(&other), other.lines_missing_in(&one)), (1, 0));
    }
}
