//! Where the lab finds its sources and keeps its artifacts.

use std::path::{Path, PathBuf};

use crate::error::LabError;
use crate::Flavor;

/// The directories of a checkout.
#[derive(Clone, Debug)]
pub struct Layout {
    root: PathBuf,
}

impl Layout {
    /// The checkout around the working directory, else the one this program was built from.
    pub fn find() -> Result<Layout, LabError> {
        let start = std::env::current_dir().unwrap_or_default();
        let built_from = Path::new(env!("CARGO_MANIFEST_DIR"));
        start
            .ancestors()
            .chain(built_from.ancestors())
            .find(|dir| dir.join("kernel/apply").is_file())
            .map(|root| Layout { root: root.to_owned() })
            .ok_or(LabError::NoCheckout { start: start.clone() })
    }

    /// The checkout's root.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The kernel part: overlay, hooks, configuration, `apply`.
    pub fn kernel(&self) -> PathBuf {
        self.root.join("kernel")
    }

    /// All artifacts. Removing it costs time, nothing else.
    pub fn build(&self) -> PathBuf {
        self.root.join("build")
    }

    /// The unpacked source, never written to after it was unpacked.
    pub fn source(&self) -> PathBuf {
        self.build().join("source")
    }

    /// The artifacts of one kernel.
    pub fn flavor(&self, flavor: Flavor) -> PathBuf {
        self.build().join(flavor.directory())
    }

    /// Images and the files of runs.
    pub fn lab(&self) -> PathBuf {
        self.build().join("lab")
    }
}
