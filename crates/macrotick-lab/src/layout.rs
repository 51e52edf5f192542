//! The places of the lab's sources and artifacts.

use std::path::{Path, PathBuf};

use crate::arch::Arch;
use crate::error::LabError;
use crate::linux::Linux;
use crate::Flavor;

/// The directories of a checkout.
#[derive(Clone, Debug)]
pub struct Layout {
    root: PathBuf,
    arch: Arch,
    linux: Linux,
}

impl Layout {
    /// Finds the checkout around the working directory, else the one that this program was built from. The variable
    /// `MACROTICK_LINUX` chooses the version of Linux.
    pub fn find() -> Result<Layout, LabError> {
        let linux = Linux::from_environment()?;
        let start = std::env::current_dir().unwrap_or_default();
        let built_from = Path::new(env!("CARGO_MANIFEST_DIR"));
        start
            .ancestors()
            .chain(built_from.ancestors())
            .find(|dir| dir.join("kernel/apply").is_file())
            .map(|root| Layout { root: root.to_owned(), arch: Arch::default(), linux })
            .ok_or(LabError::NoCheckout { start: start.clone() })
    }

    /// Returns the places for another architecture. Kernels and images have other places, the source has the same.
    pub fn on(&self, arch: Arch) -> Layout {
        Layout { arch, ..self.clone() }
    }

    /// Returns the places for another version of Linux: that of kernels, images and the source.
    pub fn of_linux(&self, linux: Linux) -> Layout {
        Layout { linux, ..self.clone() }
    }

    /// Returns the version of Linux.
    pub fn linux(&self) -> Linux {
        self.linux
    }

    /// Returns the architecture of kernels and images.
    pub fn arch(&self) -> Arch {
        self.arch
    }

    /// Returns the checkout's root.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the kernel part: overlay, hooks, configuration, `apply`.
    pub fn kernel(&self) -> PathBuf {
        self.root.join("kernel")
    }

    /// Returns the hooks for the version of Linux.
    pub fn hooks(&self) -> PathBuf {
        self.kernel().join("hooks").join(self.linux.name())
    }

    /// Returns the directory of all artifacts. It can be removed; the only cost is time.
    pub fn build(&self) -> PathBuf {
        self.root.join("build")
    }

    /// Returns the unpacked source, which is never written after unpacking.
    pub fn source(&self) -> PathBuf {
        self.of_version().join("source")
    }

    /// Returns the directory of one kernel's artifacts.
    pub fn flavor(&self, flavor: Flavor) -> PathBuf {
        self.of_arch().join(flavor.directory())
    }

    /// Returns the directory of the artifacts of the kernel for a machine.
    pub fn machine_kernel(&self) -> PathBuf {
        self.of_arch().join("kernel-machine")
    }

    /// Returns the directory of images and of the files of runs.
    pub fn lab(&self) -> PathBuf {
        self.of_arch().join("lab")
    }

    fn of_arch(&self) -> PathBuf {
        match self.arch {
            Arch::X86_64 => self.of_version(),
            Arch::Arm64 => self.of_version().join(self.arch.name()),
        }
    }

    /// Returns the directory of all artifacts that depend on the version of Linux.
    pub fn of_version(&self) -> PathBuf {
        match self.linux == Linux::default() {
            true => self.build(),
            false => self.build().join(format!("linux-{}", self.linux.name())),
        }
    }
}
