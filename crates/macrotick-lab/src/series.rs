//! Builds every patch of the series that `kernel/apply --series` emits, as in a bisection: with the options off and on,
//! and without a warning.
//!
//! After each patch, the objects that the series concerns are built; after the last patch also with each option alone.
//! The whole kernel is built with the options off. With them on, it would be the patched kernel, because the series
//! ends with the same files. Our directories are also built with the extra warnings of compiler and kernel-doc (`W=1`),
//! and so are the selftests.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cache::{self, Lock};
use crate::command;
use crate::config;
use crate::error::{Context, LabError};
use crate::kernel::{self, Flavor};
use crate::layout::Layout;
use crate::progress::Progress;
use crate::source;
use crate::tree;

const MACROTICK: &str = "CONFIG_MACROTICK";
const TIMERSHIELD: &str = "CONFIG_TIMERSHIELD";
/// The options that are off, by tree: the trees of a bisection, then the trees that are built for the last patch only.
const TREES: [(&str, &[&str]); 4] = [
    ("series-off", &[MACROTICK, TIMERSHIELD]),
    ("series-on", &[]),
    ("series-windows", &[TIMERSHIELD]),
    ("series-timers", &[MACROTICK]),
];
/// Objects that include our headers, in addition to those that the series changes.
const OTHERS: [&str; 3] = ["init/init_task.o", "fs/proc/array.o", "kernel/fork.o"];
/// Directories with our files only.
const OURS: [&str; 2] = ["kernel/sched/macrotick/", "kernel/time/timershield/"];

/// Builds all trees, or one of them. An error names the patch, the options that are off, and make's messages.
pub fn build(layout: &Layout, only: Option<&str>, progress: &mut dyn Progress) -> Result<(), LabError> {
    let _lock = Lock::take(&layout.of_version().join("series.lock"))?;
    let source = source::unpack(layout, progress)?.tree;
    let patches = emit(layout, &source)?;
    let objects = concerned(&source, &patches)?;
    for (name, off) in TREES.into_iter().filter(|(name, _)| only.is_none_or(|only| *name == only)) {
        let tree = Tree { layout, name, off };
        tree.copy(&source)?;
        progress.begin(&format!("build the series, {}", tree.options()));
        for (i, patch) in patches.iter().enumerate() {
            progress.advance(i as u64, patches.len() as u64);
            tree.apply(patch)?;
            let is_last = i + 1 == patches.len();
            if tree.is_bisected() || is_last {
                tree.configure(is_last)?;
                tree.make(patch, &objects)?;
            }
        }
        tree.finish(&source, patches.last().expect("a series has patches"))?;
        progress.end();
        cache::remove(&tree.dir())?;
    }
    Ok(())
}

/// Whether a tree has that name.
pub fn is_tree(name: &str) -> bool {
    TREES.iter().any(|(tree, _)| *tree == name)
}

/// Emits the series; returns the patches in order, without the cover letter.
fn emit(layout: &Layout, source: &Path) -> Result<Vec<PathBuf>, LabError> {
    let dir = layout.of_version().join("series");
    cache::remove(&dir)?;
    command::output(Command::new(layout.kernel().join("apply")).arg(source).arg("--series").arg(&dir))?;
    let mut patches = cache::files_below(&dir)?;
    patches.retain(|path| !path.to_string_lossy().starts_with("0000-"));
    Ok(patches.into_iter().map(|path| dir.join(path)).collect())
}

/// Returns the parts of the tree to build: the directories and the single files that the patches change.
fn concerned(source: &Path, patches: &[PathBuf]) -> Result<Vec<String>, LabError> {
    let mut objects: BTreeSet<String> = OTHERS.into_iter().map(str::to_owned).collect();
    for patch in patches {
        let text = fs::read_to_string(patch).context("read", patch)?;
        objects.extend(changed(&text).filter(|path| source.join(path).is_file()).filter_map(target));
    }
    Ok(objects.into_iter().collect())
}

fn changed(patch: &str) -> impl Iterator<Item = &str> {
    patch.lines().filter_map(|line| line.strip_prefix("+++ b/"))
}

/// Returns the make target of a file: `kernel/sched/` for `kernel/sched/core.c`, `kernel/exit.o` for `kernel/exit.c`.
fn target(path: &str) -> Option<String> {
    let stem = path.strip_suffix(".c")?;
    Some(match path.match_indices('/').nth(1) {
        Some((end, _)) => path[..=end].to_owned(),
        None => format!("{stem}.o"),
    })
}

struct Tree<'a> {
    layout: &'a Layout,
    name: &'a str,
    off: &'a [&'a str],
}

impl Tree<'_> {
    fn dir(&self) -> PathBuf {
        self.layout.of_version().join(self.name)
    }

    fn is_bisected(&self) -> bool {
        ["series-off", "series-on"].contains(&self.name)
    }

    /// Builds the parts that are built for the last patch only.
    fn finish(&self, source: &Path, patch: &Path) -> Result<(), LabError> {
        match self.name {
            "series-off" => self.make(patch, &["vmlinux".to_owned()]),
            "series-on" => {
                self.compare(source)?;
                self.make(patch, &["W=1"].into_iter().chain(OURS).map(str::to_owned).collect::<Vec<_>>())?;
                self.make_selftests(patch)
            }
            _ => Ok(()),
        }
    }

    /// Checks that the series ends with the files of the patched kernel, except the maintainer, which `kernel/apply`
    /// fills in.
    fn compare(&self, source: &Path) -> Result<(), LabError> {
        let stage = self.dir().join("stage");
        command::output(Command::new(self.layout.kernel().join("apply")).arg(source).arg("--stage").arg(&stage))?;
        for path in cache::files_below(&stage)?.into_iter().filter(|path| path != Path::new("MAINTAINERS")) {
            let mut cmp = Command::new(command::find("cmp", "diffutils")?);
            command::output(cmp.arg(stage.join(&path)).arg(self.dir().join("linux").join(&path)))?;
        }
        Ok(())
    }

    fn options(&self) -> String {
        match self.off {
            [] => "all options on".into(),
            off => format!("without {}", off.join(" and ")),
        }
    }

    fn copy(&self, source: &Path) -> Result<(), LabError> {
        let dir = self.dir();
        cache::remove(&dir)?;
        fs::create_dir_all(&dir).context("create", &dir)?;
        command::output(Command::new("cp").arg("-al").arg(source).arg(dir.join("linux"))).map(drop)
    }

    fn apply(&self, patch: &Path) -> Result<(), LabError> {
        let mut command = Command::new(command::find("patch", "patch")?);
        command.args(["-p1", "-s", "--forward", "--fuzz=0", "--no-backup-if-mismatch", "-i"]).arg(patch).arg("-d");
        command::output(command.arg(self.dir().join("linux"))).map(drop)
    }

    /// Configures the tree like the patched kernel; before the last patch some options do not exist.
    fn configure(&self, is_complete: bool) -> Result<(), LabError> {
        let off: Vec<String> = self.off.iter().map(|symbol| format!("# {symbol} is not set\n")).collect();
        let wanted = config::join(&[kernel::request(self.layout, Flavor::Patched)?, off.concat()]);
        let path = self.dir().join("request.config");
        fs::write(&path, &wanted).context("write", &path)?;
        let mut make = tree::make(self.layout.arch(), &self.dir())?;
        command::output(make.arg("-s").arg(format!("KCONFIG_ALLCONFIG={}", path.display())).arg("allnoconfig"))?;
        let config = self.dir().join("linux/.config");
        let missing = config::missing(&wanted, &fs::read_to_string(&config).context("read", &config)?);
        match missing.is_empty() || !is_complete {
            true => Ok(()),
            false => Err(LabError::Config { missing }),
        }
    }

    fn make(&self, patch: &Path, targets: &[String]) -> Result<(), LabError> {
        let jobs = std::thread::available_parallelism().map_or(1, usize::from);
        let mut make = tree::make(self.layout.arch(), &self.dir())?;
        make.arg(format!("-j{jobs}")).arg(tree::compiler(self.layout)).args(targets);
        self.run(patch, &mut make)
    }

    fn make_selftests(&self, patch: &Path) -> Result<(), LabError> {
        self.run(patch, tree::make(self.layout.arch(), &self.dir())?.arg("-s").arg("headers"))?;
        let mut make = tree::make(self.layout.arch(), &self.dir())?;
        self.run(
            patch,
            make.args(["-s", "-C", "tools/testing/selftests", "TARGETS=sched_macrotick", "USERCFLAGS=-Werror"]),
        )
    }

    fn run(&self, patch: &Path, make: &mut Command) -> Result<(), LabError> {
        let output = make.output().context("start", Path::new("make"))?;
        let log = self.dir().join("build.log");
        let text = [output.stdout, output.stderr].concat();
        fs::write(&log, &text).context("write", &log)?;
        let text = String::from_utf8_lossy(&text);
        let patch = patch.file_name().unwrap_or_default().to_string_lossy();
        match output.status.success() && !text.contains("warning: ") {
            true => Ok(()),
            false => Err(LabError::Series {
                patch: patch.into_owned(),
                options: self.options(),
                tail: tree::complaints(&log),
                log,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_files_become_targets() {
        let patch = "--- a/kernel/sched/core.c\n+++ b/kernel/sched/core.c\n+++ b/kernel/exit.c\n+++ b/init/Kconfig\n";
        let targets: Vec<_> = changed(patch).filter_map(target).collect();
        assert_eq!(targets, ["kernel/sched/", "kernel/exit.o"]);
        assert_eq!(target("kernel/time/timershield/late.c").as_deref(), Some("kernel/time/"));
    }
}
