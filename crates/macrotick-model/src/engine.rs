//! Containers that a run starts, and what starts them.

use serde::{Deserialize, Serialize};

/// A container as a background load.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContainerLoad {
    /// Where its root file system comes from.
    pub root: ContainerRoot,
    /// The command and its arguments, in the container; empty: the image's own.
    pub program: Vec<String>,
    /// What makes it.
    pub engine: Engine,
}

/// A container's root file system. It is not written to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ContainerRoot {
    /// A directory.
    Rootfs(String),
    /// An image that podman has.
    Image(String),
}

/// A container engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Engine {
    /// `crun`.
    Crun,
    /// `runc`.
    Runc,
    /// `podman`.
    Podman,
}

impl Engine {
    /// All of them.
    pub const ALL: [Engine; 3] = [Engine::Crun, Engine::Runc, Engine::Podman];

    /// The word in a description, and the name of the program.
    pub fn name(self) -> &'static str {
        match self {
            Engine::Crun => "crun",
            Engine::Runc => "runc",
            Engine::Podman => "podman",
        }
    }
}
