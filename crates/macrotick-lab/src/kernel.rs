//! Builds kernels: one source, several flavours. A build is skipped if its inputs have not changed.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::cache::{self, Key, Lock};
use crate::command;
use crate::config;
use crate::error::{Context, LabError};
use crate::layout::Layout;
use crate::progress::Progress;
use crate::source::{self, Source};

/// Must change with each change of this file that builds a different kernel from the same inputs.
const RECIPE: &str = "2";
/// The lines of output of a whole build, until a build has recorded the true number.
const TYPICAL_LINES: u64 = 1400;
/// Fixed values, so the same inputs give the same image.
const REPRODUCIBLE: [&str; 4] = [
    "KBUILD_BUILD_TIMESTAMP=Thu Jan  1 00:00:00 UTC 2026",
    "KBUILD_BUILD_USER=macrotick",
    "KBUILD_BUILD_HOST=lab",
    "KBUILD_BUILD_VERSION=1",
];

/// The flavour of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Flavor {
    /// With overlay and hooks.
    Patched,
    /// The same tree and configuration without overlay and hooks.
    Pristine,
    /// Patched, with lock, memory and stall checks. Slow.
    Debug,
    /// Patched, preemptible without PREEMPT_RT.
    NonRt,
    /// [`Flavor::NonRt`] with the checks of the debug kernel.
    DebugNonRt,
    /// Patched, with the options that systemd and container engines need: for `crate::engines`.
    Engines,
    /// [`Flavor::Engines`] with the checks of the debug kernel.
    DebugEngines,
    /// Patched, with sched_ext.
    Scx,
    /// [`Flavor::Scx`] with the checks of the debug kernel.
    DebugScx,
    /// Patched, with network cards and the express path.
    Net,
    /// [`Flavor::Engines`] with the devices of virtual machines: for [`package`].
    Vm,
}

impl Flavor {
    /// All flavours.
    pub const ALL: [Flavor; 11] = [
        Flavor::Patched,
        Flavor::Pristine,
        Flavor::Debug,
        Flavor::NonRt,
        Flavor::DebugNonRt,
        Flavor::Engines,
        Flavor::DebugEngines,
        Flavor::Scx,
        Flavor::DebugScx,
        Flavor::Net,
        Flavor::Vm,
    ];

    /// Returns the name for the command line.
    pub fn name(self) -> &'static str {
        match self {
            Flavor::Patched => "patched",
            Flavor::Pristine => "pristine",
            Flavor::Debug => "debug",
            Flavor::NonRt => "nonrt",
            Flavor::DebugNonRt => "debug-nonrt",
            Flavor::Engines => "engines",
            Flavor::DebugEngines => "debug-engines",
            Flavor::Scx => "scx",
            Flavor::DebugScx => "debug-scx",
            Flavor::Net => "net",
            Flavor::Vm => "vm",
        }
    }

    /// Describes the flavour in a few words.
    pub fn about(self) -> &'static str {
        match self {
            Flavor::Patched => "With Macrotick",
            Flavor::Pristine => "Without",
            Flavor::Debug => "With Macrotick, lockdep, KASAN and other checks",
            Flavor::NonRt => "With Macrotick, without PREEMPT_RT",
            Flavor::Engines => "With Macrotick and the options that systemd and container engines need",
            Flavor::Scx => "With Macrotick and sched_ext",
            Flavor::Net => "With Macrotick, network cards and AF_XDP",
            Flavor::Vm => "With Macrotick and the devices of virtual machines",
            Flavor::DebugNonRt | Flavor::DebugEngines | Flavor::DebugScx => {
                "The same with the checks of the debug kernel"
            }
        }
    }

    /// Returns the flavour of that name.
    pub fn from_name(name: &str) -> Option<Flavor> {
        Flavor::ALL.into_iter().find(|flavor| flavor.name() == name)
    }

    /// Returns its directory below `build/`.
    pub fn directory(self) -> &'static str {
        match self {
            Flavor::Patched => "kernel",
            Flavor::Pristine => "kernel-pristine",
            Flavor::Debug => "kernel-debug",
            Flavor::NonRt => "kernel-nonrt",
            Flavor::DebugNonRt => "kernel-debug-nonrt",
            Flavor::Engines => "kernel-engines",
            Flavor::DebugEngines => "kernel-debug-engines",
            Flavor::Scx => "kernel-scx",
            Flavor::DebugScx => "kernel-debug-scx",
            Flavor::Net => "kernel-net",
            Flavor::Vm => "kernel-vm",
        }
    }

    /// Returns the part of `uname -r` after the point release.
    pub fn local_version(self) -> &'static str {
        match self {
            Flavor::Patched => "-macrotick",
            Flavor::Pristine => "-pristine",
            Flavor::Debug => "-macrotick-debug",
            Flavor::NonRt => "-macrotick-nonrt",
            Flavor::DebugNonRt => "-macrotick-debug-nonrt",
            Flavor::Engines => "-macrotick-engines",
            Flavor::DebugEngines => "-macrotick-debug-engines",
            Flavor::Scx => "-macrotick-scx",
            Flavor::DebugScx => "-macrotick-debug-scx",
            Flavor::Net => "-macrotick-net",
            Flavor::Vm => "-macrotick-vm",
        }
    }

    /// Returns the configuration fragments in `kernel/config/`; the last one has the highest priority.
    fn fragments(self) -> &'static [&'static str] {
        match self {
            Flavor::Patched => &["base", "macrotick"],
            Flavor::Pristine => &["base"],
            Flavor::Debug => &["base", "macrotick", "debug"],
            Flavor::NonRt => &["base", "macrotick", "non-rt"],
            Flavor::DebugNonRt => &["base", "macrotick", "debug", "non-rt"],
            Flavor::Engines => &["base", "macrotick", "engines"],
            Flavor::DebugEngines => &["base", "macrotick", "debug", "engines"],
            Flavor::Scx => &["base", "macrotick", "scx"],
            Flavor::DebugScx => &["base", "macrotick", "debug", "scx"],
            Flavor::Net => &["base", "macrotick", "net"],
            Flavor::Vm => &["base", "macrotick", "engines", "vm"],
        }
    }

    /// Whether it checks locks and memory; its paths are about ten times as long.
    pub fn is_debug(self) -> bool {
        matches!(self, Flavor::Debug | Flavor::DebugNonRt | Flavor::DebugEngines | Flavor::DebugScx)
    }

    /// Whether it describes its types (BTF). This needs debug information and a program that condenses it.
    fn has_btf(self) -> bool {
        matches!(self, Flavor::Scx | Flavor::DebugScx)
    }

    fn is_patched(self) -> bool {
        self != Flavor::Pristine
    }
}

/// A built kernel.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Its flavour.
    pub flavor: Flavor,
    /// `uname -r`, such as `6.12.117-macrotick`.
    pub release: String,
    /// The bootable image.
    pub image: PathBuf,
    /// The linked kernel, for addresses.
    pub vmlinux: PathBuf,
    /// Its symbols.
    pub system_map: PathBuf,
    /// Its whole configuration.
    pub config: PathBuf,
    /// Whether this call built it; otherwise it was up to date.
    pub built: bool,
}

impl Kernel {
    /// Returns the version text of its C compiler, such as `gcc (Debian 12.2.0-14) 12.2.0`.
    pub fn compiler(&self) -> Result<String, LabError> {
        Ok(self.option("CONFIG_CC_VERSION_TEXT")?.unwrap_or_else(|| "unknown".into()))
    }

    /// Whether it has PREEMPT_RT.
    pub fn is_rt(&self) -> Result<bool, LabError> {
        Ok(self.option("CONFIG_PREEMPT_RT")?.is_some())
    }

    /// Returns the value of an option of its configuration; `None` if it is not set.
    fn option(&self, symbol: &str) -> Result<Option<String>, LabError> {
        Ok(config::value(&fs::read_to_string(&self.config).context("read", &self.config)?, symbol))
    }
}

/// Builds a kernel, unless it is up to date.
///
/// After the build, the directory `build/<flavour>/` has `bzImage`, `System.map`, `config`, `build.log`, and `linux/`.
/// This is the build's tree: hard links to the unpacked source, with the files of overlay and hooks in place.
pub fn build(layout: &Layout, flavor: Flavor, progress: &mut dyn Progress) -> Result<Kernel, LabError> {
    let dir = layout.flavor(flavor);
    let _lock = Lock::take(&dir.join("lock"))?;
    let key = key(layout, flavor)?;
    let fresh = cache::is_fresh(&dir.join("stamp"), &key);
    if !fresh {
        cache::remove(&dir.join("stamp"))?;
        let source = source::unpack(layout, progress)?;
        prepare_tree(layout, flavor, &source)?;
        configure(layout, flavor)?;
        compile(layout, flavor, &source, progress)?;
        for (from, to) in [
            ("linux/arch/x86/boot/bzImage", "bzImage"),
            ("linux/System.map", "System.map"),
            ("linux/.config", "config"),
        ] {
            fs::copy(dir.join(from), dir.join(to)).context("copy", &dir.join(from))?;
        }
        let release = format!("{}{}", source.release, flavor.local_version());
        fs::write(dir.join("release"), release).context("write", &dir.join("release"))?;
        cache::stamp(&dir.join("stamp"), &key)?;
    }
    describe(&dir, flavor, !fresh)
}

/// Builds a kernel as a Debian package by the kernel's own `bindeb-pkg`, and returns the package. Only the package of the
/// image: that of the headers for libc belongs to the distribution.
pub fn package(layout: &Layout, flavor: Flavor, progress: &mut dyn Progress) -> Result<PathBuf, LabError> {
    for (program, package) in [("dpkg-buildpackage", "dpkg-dev"), ("dh_builddeb", "debhelper")] {
        command::find(program, package)?;
    }
    let kernel = build(layout, flavor, progress)?;
    let dir = layout.flavor(flavor);
    let _lock = Lock::take(&dir.join("lock"))?;
    for old in debian_files(&dir)? {
        cache::remove(&old)?;
    }
    let (release, version) = (kernel.release.split('-').next().expect("not empty"), env!("CARGO_PKG_VERSION"));
    let mut make = make(&dir)?;
    make.arg(compiler(layout)).arg("bindeb-pkg").arg("DPKG_FLAGS=--rules-target=binary-image --no-check-builddeps");
    make.arg("KDEB_SOURCENAME=linux-macrotick").arg(format!("KDEB_PKGVERSION={release}+macrotick{version}-1"));
    make.arg("KDEB_CHANGELOG_DIST=unstable").env("DEBFULLNAME", "Macrotick developers");
    make.env("DEBEMAIL", "macrotick@example.org").env("KBUILD_VERBOSE", "0");
    progress.begin(&format!("package the {} kernel {release}", flavor.name()));
    let log = dir.join("package.log");
    let file = File::create(&log).context("create", &log)?;
    let errors = file.try_clone().context("open", &log)?;
    let status = make.stdin(Stdio::null()).stdout(file).stderr(errors).status().context("start", Path::new("make"))?;
    progress.end();
    let made = debian_files(&dir)?.into_iter().find(|path| path.extension().is_some_and(|kind| kind == "deb"));
    match (status.success(), made) {
        (true, Some(package)) => Ok(package),
        _ => Err(LabError::Build { flavor: flavor.name(), tail: complaints(&log), log }),
    }
}

/// Returns the files of earlier packages of a kernel.
fn debian_files(dir: &Path) -> Result<Vec<PathBuf>, LabError> {
    let entries = fs::read_dir(dir).context("list", dir)?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    Ok(paths.filter(|path| path.to_string_lossy().contains("/linux-image-")).collect())
}

fn describe(dir: &Path, flavor: Flavor, built: bool) -> Result<Kernel, LabError> {
    let release = dir.join("release");
    Ok(Kernel {
        flavor,
        release: fs::read_to_string(&release).context("read", &release)?,
        image: dir.join("bzImage"),
        vmlinux: dir.join("linux/vmlinux"),
        system_map: dir.join("System.map"),
        config: dir.join("config"),
        built,
    })
}

/// Directories of the overlay that do not influence the kernel.
const NOT_COMPILED: [&str; 2] = ["Documentation", "tools"];

/// Returns a hash of all inputs of the kernel.
fn key(layout: &Layout, flavor: Flavor) -> Result<String, LabError> {
    let compiler = command::output(Command::new(command::find("gcc", "gcc")?).arg("--version"))?;
    let mut key = Key::new().with(RECIPE).with(source::key()?).with(compiler).with(request(layout, flavor)?);
    if flavor.is_patched() {
        let kernel = layout.kernel();
        key = key
            .with_tree_but(&kernel.join("overlay"), &NOT_COMPILED)?
            .with_tree(&kernel.join("hooks"))?
            .with_file(&kernel.join("apply"))?;
    }
    Ok(key.finish())
}

/// Returns the requested configuration.
pub(crate) fn request(layout: &Layout, flavor: Flavor) -> Result<String, LabError> {
    let mut fragments = vec![format!("CONFIG_LOCALVERSION=\"{}\"\n", flavor.local_version())];
    for name in flavor.fragments() {
        let path = layout.kernel().join("config").join(format!("{name}.config"));
        fragments.push(fs::read_to_string(&path).context("read", &path)?);
    }
    Ok(config::join(&fragments))
}

/// Makes the flavour's tree, or updates the tree of the last build. It writes only files that differ.
fn prepare_tree(layout: &Layout, flavor: Flavor, source: &Source) -> Result<(), LabError> {
    let dir = layout.flavor(flavor);
    let (tree, origin) = (dir.join("linux"), dir.join("origin"));
    if !cache::is_fresh(&origin, &source.key) {
        cache::remove(&origin)?;
        cache::remove(&tree)?;
        command::output(Command::new("cp").arg("-al").arg(&source.tree).arg(&tree))?;
        cache::remove(&dir.join("changed"))?;
        cache::stamp(&origin, &source.key)?;
    }
    if flavor.is_patched() {
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

/// Writes `.config` and checks that every requested line holds.
fn configure(layout: &Layout, flavor: Flavor) -> Result<(), LabError> {
    let dir = layout.flavor(flavor);
    let wanted = request(layout, flavor)?;
    let path = dir.join("request.config");
    fs::write(&path, &wanted).context("write", &path)?;
    command::output(make(&dir)?.arg("-s").arg(format!("KCONFIG_ALLCONFIG={}", path.display())).arg("allnoconfig"))?;
    let config = dir.join("linux/.config");
    let missing = config::missing(&wanted, &fs::read_to_string(&config).context("read", &config)?);
    match missing.is_empty() {
        true => Ok(()),
        false => Err(LabError::Config { missing }),
    }
}

/// Returns `make` in the flavour's tree. Trees have the same depth, and hashed paths are relative to the tree, so the
/// flavours share the compiler cache.
pub(crate) fn make(dir: &Path) -> Result<Command, LabError> {
    let tree = dir.join("linux");
    let mut make = Command::new(command::find("make", "make")?);
    // Flags of an outer `make`, such as a dry run or its job server, must not apply to this one.
    make.current_dir(&tree).env_remove("MAKEFLAGS").env_remove("MAKELEVEL").env_remove("MFLAGS");
    make.env("CCACHE_BASEDIR", &tree).env("CCACHE_NOHASHDIR", "1").env("CCACHE_DEPEND", "1").env("LC_ALL", "C");
    make.args(REPRODUCIBLE).arg("LOCALVERSION=");
    Ok(make)
}

/// Compiles the kernel. Progress compares the lines of output with those of the last whole build.
fn compile(layout: &Layout, flavor: Flavor, source: &Source, progress: &mut dyn Progress) -> Result<(), LabError> {
    for (program, package) in
        [("flex", "flex"), ("bison", "bison"), ("bc", "bc"), ("ld", "binutils"), ("patch", "patch")]
    {
        command::find(program, package)?;
    }
    if flavor.has_btf() {
        command::find("pahole", "dwarves")?;
    }
    let dir = layout.flavor(flavor);
    let (log_path, count_path) = (dir.join("build.log"), dir.join("lines"));
    let total = fs::read_to_string(&count_path).ok().and_then(|text| text.parse().ok()).unwrap_or(TYPICAL_LINES);
    let mut log = File::create(&log_path).context("create", &log_path)?;
    let errors = log.try_clone().context("open", &log_path)?;
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let mut command = make(&dir)?;
    command.arg(format!("-j{jobs}")).arg(compiler(layout)).arg("bzImage").stdin(Stdio::null());
    progress.begin(&format!("build the {} kernel {}", flavor.name(), source.release));
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
        return Err(LabError::Build { flavor: flavor.name(), tail: complaints(&log_path), log: log_path });
    }
    if lines > total || !count_path.exists() {
        fs::write(&count_path, lines.to_string()).context("write", &count_path)?;
    }
    Ok(())
}

/// Returns the compiler: through ccache if it is installed. A warning in our code fails the build.
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

    /// The package has devices, and the kernel for network cards has PCI.
    #[test]
    fn only_the_kernel_for_packages_has_devices_and_mitigations() {
        let layout = Layout::find().unwrap();
        for flavor in Flavor::ALL.into_iter().filter(|flavor| !flavor.is_debug()) {
            let request = request(&layout, flavor).unwrap();
            for option in ["CONFIG_PCI", "CONFIG_VIRTIO_BLK", "CONFIG_CPU_MITIGATIONS"] {
                let is_on = config::value(&request, option).as_deref() == Some("y");
                let has_cards = flavor == Flavor::Net && option == "CONFIG_PCI";
                assert_eq!(is_on, flavor == Flavor::Vm || has_cards, "{option} of {}", flavor.name());
            }
        }
    }

    #[test]
    fn flavours_have_distinct_names_directories_and_versions() {
        for (index, flavor) in Flavor::ALL.into_iter().enumerate() {
            assert_eq!(Flavor::from_name(flavor.name()), Some(flavor));
            for other in &Flavor::ALL[..index] {
                assert_ne!(flavor.directory(), other.directory());
                assert_ne!(flavor.local_version(), other.local_version());
            }
        }
    }
}
