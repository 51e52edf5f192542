//! A kernel for a real machine: the configuration of its distribution with the options that Macrotick needs.
//!
//! The lab's flavours start from nothing, so that a guest boots fast. A real machine has drivers, file systems and security
//! modules, which its distribution has chosen already. [`configure`] takes these over ([`Base`]), sets the options in
//! [`options`], and lets the kernel's own `olddefconfig` complete them. [`build`] compiles the result.

mod base;
mod kconfig;
mod merge;
mod options;

use std::fs;
use std::path::{Path, PathBuf};

use crate::cache::Lock;
use crate::command;
use crate::config;
use crate::debian;
use crate::error::{Context, LabError};
use crate::layout::Layout;
use crate::progress::Progress;
use crate::source;
use crate::tree::{self, make, Build};

pub use base::Base;
pub use merge::{Change, Merge};

/// The name of the kernel in messages.
const NAME: &str = "machine";

/// A request for a kernel.
#[derive(Clone, Debug)]
pub struct MachineKernel {
    /// The configuration that it starts from.
    pub base: Base,
    /// Files with lines of a configuration that have the last word, except about what Macrotick needs.
    pub fragments: Vec<PathBuf>,
    /// Whether it keeps the debug information of the base.
    pub debug_information: bool,
    /// Whether the result is Debian packages.
    pub packages: bool,
}

/// A configured tree.
#[derive(Clone, Debug)]
pub struct Configured {
    /// The version, such as `6.12.117-macrotick`.
    pub release: String,
    /// The options that differ from the base, and the reason of each.
    pub merge: Merge,
    /// The whole configuration. The base is beside it, in the file `base`.
    pub config: PathBuf,
    source_release: String,
}

/// Makes the tree and its configuration, and compiles nothing.
pub fn configure(layout: &Layout, kernel: &MachineKernel, progress: &mut dyn Progress) -> Result<Configured, LabError> {
    let dir = layout.machine_kernel();
    let _lock = Lock::take(&dir.join("lock"))?;
    configure_locked(layout, &dir, kernel, progress)
}

fn configure_locked(
    layout: &Layout,
    dir: &Path,
    kernel: &MachineKernel,
    progress: &mut dyn Progress,
) -> Result<Configured, LabError> {
    let read = |path: &PathBuf| fs::read_to_string(path).context("read", path);
    let fragments = kernel.fragments.iter().map(read).collect::<Result<Vec<String>, LabError>>()?;
    let text = kernel.base.text(layout.arch())?;
    let source = source::unpack(layout, progress)?;
    tree::prepare(layout, dir, true, &source)?;
    let config = dir.join("linux/.config");
    let base = match text {
        Some(text) => text,
        None => {
            command::output(make(layout.arch(), dir)?.arg("-s").arg("defconfig"))?;
            read(&config)?
        }
    };
    let kept_base = dir.join("base");
    fs::write(&kept_base, &base).context("write", &kept_base)?;
    let request = merge::request(&base, &fragments, kernel.debug_information)?;
    let complete = |request: &str| {
        fs::write(&config, request).context("write", &config)?;
        command::output(make(layout.arch(), dir)?.arg("-s").arg("olddefconfig"))?;
        read(&config)
    };
    let without = complete(&config::join(&[request.clone(), options::WITHOUT.into()]))?;
    let result = complete(&request)?;
    let prompts = kconfig::prompts(&dir.join("linux"))?;
    let merge = Merge::between(&base, &fragments, &request, &result)?.with_lost(&base, &result, &without, &prompts);
    command::output(make(layout.arch(), dir)?.arg("-s").arg("syncconfig"))?;
    let release = command::output(make(layout.arch(), dir)?.arg("-s").arg("kernelrelease"))?.trim().to_owned();
    let kept = dir.join("config");
    fs::copy(&config, &kept).context("copy", &config)?;
    Ok(Configured { release, merge, config: kept, source_release: source.release })
}

/// Builds the kernel. Returns the configuration and the results: the image, or the packages of the image and the headers.
/// `told` gets the configuration before the long part begins.
pub fn build(
    layout: &Layout,
    kernel: &MachineKernel,
    progress: &mut dyn Progress,
    told: &mut dyn FnMut(&Configured),
) -> Result<Vec<PathBuf>, LabError> {
    if kernel.packages {
        debian::find_tools()?;
    }
    let dir = layout.machine_kernel();
    let _lock = Lock::take(&dir.join("lock"))?;
    let configured = configure_locked(layout, &dir, kernel, progress)?;
    told(&configured);
    let release = configured.source_release.as_str();
    let text = fs::read_to_string(&configured.config).context("read", &configured.config)?;
    let (typical_lines, has_modules) = (typical_lines(&text), config::value(&text, "CONFIG_MODULES").is_some());
    // Headers are for the build of modules.
    let arch = layout.arch();
    let (targets, kinds) = match has_modules {
        true => (vec![arch.image(), "modules"], &["image", "headers"][..]),
        false => (vec![arch.image()], &["image"][..]),
    };
    let build = Build { name: NAME, dir: &dir, targets: &targets, typical_lines, is_strict: false };
    build.compile(layout, release, progress)?;
    match kernel.packages {
        true => debian::package(layout, &dir, (NAME, release), kinds, progress),
        false => Ok(vec![dir.join("linux").join(arch.image_in_tree())]),
    }
}

/// Estimates the lines of output of a build. A kernel of the lab has 2.3 lines for each option that is on. Most modules of
/// a distribution have two files and a link.
fn typical_lines(config: &str) -> u64 {
    let on = |end: &str| config.lines().filter(|line| line.ends_with(end)).count() as u64;
    on("=y") * 9 / 4 + on("=m") * 4
}
