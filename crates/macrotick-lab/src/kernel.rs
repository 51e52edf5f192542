//! Builds kernels: one source, several flavours. A build is skipped if its inputs have not changed.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::cache::{self, Key, Lock};
use crate::command;
use crate::config;
use crate::debian;
use crate::error::{Context, LabError};
use crate::layout::Layout;
use crate::progress::Progress;
use crate::source;
use crate::tree::{self, make, Build};

/// Must change with each change of this file that builds a different kernel from the same inputs.
const RECIPE: &str = "2";
/// The lines of output of a whole build, until a build has recorded the true number.
const TYPICAL_LINES: u64 = 1400;
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
/// After the build, the directory `build/<flavour>/` has the image, `System.map`, `config`, `build.log`, and `linux/`.
/// This is the build's tree: hard links to the unpacked source, with the files of overlay and hooks in place.
pub fn build(layout: &Layout, flavor: Flavor, progress: &mut dyn Progress) -> Result<Kernel, LabError> {
    let (arch, dir) = (layout.arch(), layout.flavor(flavor));
    let _lock = Lock::take(&dir.join("lock"))?;
    let key = key(layout, flavor)?;
    let fresh = cache::is_fresh(&dir.join("stamp"), &key);
    if !fresh {
        cache::remove(&dir.join("stamp"))?;
        let source = source::unpack(layout, progress)?;
        tree::prepare(layout, &dir, flavor.is_patched(), &source)?;
        configure(layout, flavor)?;
        if flavor.has_btf() {
            command::find("pahole", "dwarves")?;
        }
        let (name, typical_lines) = (flavor.name(), TYPICAL_LINES);
        let build = Build { name, dir: &dir, targets: &[arch.image()], typical_lines, is_strict: true };
        build.compile(layout, &source.release, progress)?;
        for (from, to) in [(arch.image_in_tree(), arch.image()), ("System.map", "System.map"), (".config", "config")] {
            let from = dir.join("linux").join(from);
            fs::copy(&from, dir.join(to)).context("copy", &from)?;
        }
        let release = format!("{}{}", source.release, flavor.local_version());
        fs::write(dir.join("release"), release).context("write", &dir.join("release"))?;
        cache::stamp(&dir.join("stamp"), &key)?;
    }
    describe(layout, flavor, !fresh)
}

/// Builds a kernel and its Debian package, and returns the package. Only that of the image.
pub fn package(layout: &Layout, flavor: Flavor, progress: &mut dyn Progress) -> Result<PathBuf, LabError> {
    debian::find_tools()?;
    let kernel = build(layout, flavor, progress)?;
    let dir = layout.flavor(flavor);
    let _lock = Lock::take(&dir.join("lock"))?;
    let release = kernel.release.split('-').next().expect("not empty");
    let packages = debian::package(layout, &dir, (flavor.name(), release), &["image"], progress)?;
    Ok(packages.into_iter().next().expect("one of each kind"))
}

fn describe(layout: &Layout, flavor: Flavor, built: bool) -> Result<Kernel, LabError> {
    let dir = layout.flavor(flavor);
    let release = dir.join("release");
    Ok(Kernel {
        flavor,
        release: fs::read_to_string(&release).context("read", &release)?,
        image: dir.join(layout.arch().image()),
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
    let (gcc, package) = layout.arch().tool("gcc");
    let compiler = command::output(Command::new(command::find(&gcc, package)?).arg("--version"))?;
    let mut key = Key::new().with(RECIPE).with(source::key(layout)?).with(compiler).with(request(layout, flavor)?);
    if flavor.is_patched() {
        let kernel = layout.kernel();
        key = key
            .with_tree_but(&kernel.join("overlay"), &NOT_COMPILED)?
            .with_tree(&layout.hooks())?
            .with_file(&kernel.join("apply"))?;
    }
    Ok(key.finish())
}

/// Returns the requested configuration.
pub(crate) fn request(layout: &Layout, flavor: Flavor) -> Result<String, LabError> {
    let mut fragments = vec![format!("CONFIG_LOCALVERSION=\"{}\"\n", flavor.local_version())];
    let path = |name: &str| layout.kernel().join("config").join(format!("{name}.config"));
    let version = Some(path(&format!("linux-{}", layout.linux().name()))).filter(|path| path.is_file());
    let names = [layout.arch().name()].into_iter().chain(flavor.fragments().iter().copied());
    for path in version.into_iter().chain(names.map(path)) {
        fragments.push(fs::read_to_string(&path).context("read", &path)?);
    }
    Ok(config::join(&fragments))
}

/// Writes `.config` and checks that every requested line holds.
fn configure(layout: &Layout, flavor: Flavor) -> Result<(), LabError> {
    let dir = layout.flavor(flavor);
    let wanted = request(layout, flavor)?;
    let path = dir.join("request.config");
    fs::write(&path, &wanted).context("write", &path)?;
    command::output(
        make(layout.arch(), &dir)?.arg("-s").arg(format!("KCONFIG_ALLCONFIG={}", path.display())).arg("allnoconfig"),
    )?;
    let config = dir.join("linux/.config");
    let missing = config::missing(&wanted, &fs::read_to_string(&config).context("read", &config)?);
    match missing.is_empty() {
        true => Ok(()),
        false => Err(LabError::Config { missing }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
