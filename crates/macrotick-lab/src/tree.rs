//! Trees of kernel sources: a copy of the source with Macrotick in it, and its build.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::arch::Arch;
use crate::cache;
use crate::command;
use crate::error::{Context, LabError};
use crate::layout::Layout;
use crate::progress::Progress;
use crate::source::Source;

/// Fixed values, so the same inputs give the same image.
const REPRODUCIBLE: [&str; 4] = [
    "KBUILD_BUILD_TIMESTAMP=Thu Jan  1 00:00:00 UTC 2026",
    "KBUILD_BUILD_USER=macrotick",
    "KBUILD_BUILD_HOST=lab",
    "KBUILD_BUILD_VERSION=1",
];

/// Makes the tree `DIR/linux`, or updates that of the last build, and patches it if `is_patched`. It writes only files that
/// differ.
pub(crate) fn prepare(layout: &Layout, dir: &Path, is_patched: bool, source: &Source) -> Result<(), LabError> {
    let (tree, origin) = (dir.join("linux"), dir.join("origin"));
    if !cache::is_fresh(&origin, &source.key) {
        cache::remove(&origin)?;
        cache::remove(&tree)?;
        command::output(Command::new("cp").arg("-al").arg(&source.tree).arg(&tree))?;
        cache::remove(&dir.join("changed"))?;
        cache::stamp(&origin, &source.key)?;
    }
    if is_patched {
        let stage = dir.join("stage");
        cache::remove(&stage)?;
        command::output(Command::new(layout.kernel().join("apply")).arg(&source.tree).arg("--stage").arg(&stage))?;
        sync(&stage, &source.tree, &tree, &dir.join("changed"))?;
    }
    Ok(())
}

/// Copies the staged files into the tree. Files that an earlier call changed and this call does not change return to
/// the source's state. `changed` lists the files that differ from the source; it is written before the tree.
fn sync(stage: &Path, source: &Path, tree: &Path, changed: &Path) -> Result<(), LabError> {
    let staged = cache::files_below(stage)?;
    let before: Vec<PathBuf> = fs::read_to_string(changed).unwrap_or_default().lines().map(PathBuf::from).collect();
    let mut all: Vec<String> = before.iter().chain(&staged).map(|path| path.display().to_string()).collect();
    all.sort();
    all.dedup();
    fs::write(changed, all.join("\n")).context("write", changed)?;
    for path in before.iter().filter(|path| !staged.contains(path)) {
        match fs::read(source.join(path)) {
            // A copy, not a link: the source's time stamp is older than the object that was built from the changed
            // file.
            Ok(original) => drop(cache::write_if_changed(&tree.join(path), &original)?),
            Err(_) => cache::remove(&tree.join(path))?,
        }
    }
    for path in &staged {
        let content = fs::read(stage.join(path)).context("read", path)?;
        cache::write_if_changed(&tree.join(path), &content)?;
    }
    let lines: Vec<String> = staged.iter().map(|path| path.display().to_string()).collect();
    fs::write(changed, lines.join("\n")).context("write", changed)
}

/// Returns `make` in the tree of a directory. Trees have the same depth, and hashed paths are relative to the tree, so the
/// flavours share the compiler cache.
pub(crate) fn make(arch: Arch, dir: &Path) -> Result<Command, LabError> {
    let tree = dir.join("linux");
    let mut make = Command::new(command::find("make", "make")?);
    // Flags of an outer `make`, such as a dry run or its job server, must not apply to this one.
    make.current_dir(&tree).env_remove("MAKEFLAGS").env_remove("MAKELEVEL").env_remove("MFLAGS");
    make.env("CCACHE_BASEDIR", &tree).env("CCACHE_NOHASHDIR", "1").env("CCACHE_DEPEND", "1").env("LC_ALL", "C");
    make.args(REPRODUCIBLE).arg("LOCALVERSION=").args(arch.make());
    Ok(make)
}

/// The build of a tree.
pub(crate) struct Build<'a> {
    /// Its name in messages.
    pub name: &'static str,
    /// The directory of the tree and of the log.
    pub dir: &'a Path,
    /// The targets of `make`.
    pub targets: &'a [&'a str],
    /// The lines of output of a whole build, until a build has recorded the true number.
    pub typical_lines: u64,
    /// Whether a warning in the directory `kernel` of Linux fails the build.
    pub is_strict: bool,
}

impl Build<'_> {
    /// Compiles the kernel. Progress compares the lines of output with those of the last whole build.
    pub fn compile(&self, layout: &Layout, release: &str, progress: &mut dyn Progress) -> Result<(), LabError> {
        for (program, package) in
            [("flex", "flex"), ("bison", "bison"), ("bc", "bc"), ("ld", "binutils"), ("patch", "patch")]
        {
            command::find(program, package)?;
        }
        let (log_path, count_path) = (self.dir.join("build.log"), self.dir.join("lines"));
        let known = fs::read_to_string(&count_path).ok().and_then(|text| text.parse().ok());
        let total = known.unwrap_or(self.typical_lines);
        let mut log = File::create(&log_path).context("create", &log_path)?;
        let errors = log.try_clone().context("open", &log_path)?;
        let jobs = std::thread::available_parallelism().map_or(1, usize::from);
        let mut command = make(layout.arch(), self.dir)?;
        command.arg(format!("-j{jobs}")).arg(compiler(layout)).args(self.targets).stdin(Stdio::null());
        if !self.is_strict {
            command.env("MACROTICK_WARNINGS", "1");
        }
        progress.begin(&format!("build the {} kernel {release}", self.name));
        let mut child = command.stdout(Stdio::piped()).stderr(errors).spawn().context("start", Path::new("make"))?;
        let mut lines = 0;
        for line in BufReader::new(child.stdout.take().expect("stdout is a pipe")).lines().map_while(Result::ok) {
            writeln!(log, "{line}").context("write", &log_path)?;
            lines += 1;
            progress.advance(lines, total.max(lines));
        }
        let status = child.wait().context("wait for", Path::new("make"))?;
        progress.end();
        if !status.success() {
            return Err(LabError::Build { flavor: self.name, tail: complaints(&log_path), log: log_path });
        }
        if lines > total || !count_path.exists() {
            fs::write(&count_path, lines.to_string()).context("write", &count_path)?;
        }
        Ok(())
    }
}

/// Returns the compiler: through ccache if it is installed. A warning in our code fails a strict build.
pub(crate) fn compiler(layout: &Layout) -> String {
    format!("CC={}", layout.kernel().join("cc").display())
}

/// Returns the lines of a build log that show the error, else its end. In a parallel build, the error may be far above
/// the end.
pub(crate) fn complaints(log: &Path) -> String {
    let text = command::read_lossy(log);
    let telling = ["error", "warning: ", "Error ", "undefined reference", "***"];
    let found: Vec<&str> =
        text.lines().filter(|line| telling.iter().any(|word| line.contains(word))).take(30).collect();
    match found.is_empty() {
        true => command::tail(&text, 20),
        false => found.join("\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: PathBuf, text: &str) {
        cache::make_parent(&path).unwrap();
        fs::write(path, text).unwrap();
    }
    #[test]
    fn sync_changes_only_what_differs_and_takes_back_what_is_gone() {
        let dir = std::env::temp_dir().join(format!("macrotick-sync-{}", std::process::id()));
        let [source, tree, stage] = ["source", "tree", "stage"].map(|name| dir.join(name));
        for root in [&source, &tree] {
            write(root.join("kernel/core.c"), "core");
            write(root.join("kernel/exit.c"), "exit");
        }
        write(stage.join("kernel/core.c"), "core+hook");
        write(stage.join("kernel/tt.c"), "tt");
        sync(&stage, &source, &tree, &dir.join("changed")).unwrap();
        assert_eq!(fs::read_to_string(tree.join("kernel/core.c")).unwrap(), "core+hook");
        assert_eq!(fs::read_to_string(tree.join("kernel/tt.c")).unwrap(), "tt");
        let time = fs::metadata(tree.join("kernel/core.c")).unwrap().modified().unwrap();

        fs::remove_file(stage.join("kernel/tt.c")).unwrap();
        sync(&stage, &source, &tree, &dir.join("changed")).unwrap();
        assert!(!tree.join("kernel/tt.c").exists());
        assert_eq!(fs::metadata(tree.join("kernel/core.c")).unwrap().modified().unwrap(), time);

        fs::remove_file(stage.join("kernel/core.c")).unwrap();
        sync(&stage, &source, &tree, &dir.join("changed")).unwrap();
        assert_eq!(fs::read_to_string(tree.join("kernel/core.c")).unwrap(), "core");
        assert_eq!(fs::read_to_string(tree.join("kernel/exit.c")).unwrap(), "exit");
        fs::remove_dir_all(&dir).unwrap();
    }
}
