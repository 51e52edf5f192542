//! Rules of containers that a run starts.

use super::Rules;
use crate::system::{ContainerLoad, ContainerRoot, Engine};

impl Rules<'_> {
    pub(super) fn container_load(&mut self, path: &str, container: &ContainerLoad) {
        let at = |key: &str| format!("{path}.{key}");
        match &container.root {
            ContainerRoot::Rootfs(root) => {
                if !root.starts_with('/') || root.contains('\0') {
                    self.add(at("rootfs"), &[], format!("`{root}` is not the absolute path of a directory"));
                }
                if container.program.is_empty() {
                    self.add(at("program"), &[path], "a directory does not say which `program` is to run in it");
                }
            }
            ContainerRoot::Image(image) => {
                if image.is_empty() || image.starts_with('-') || image.contains(char::is_control) {
                    self.add(at("image"), &[], format!("{image:?} is not the name of an image"));
                }
                if container.engine != Engine::Podman {
                    let text = format!("{} knows no images", container.engine.name());
                    self.add(at("engine"), &[path], text).hint =
                        Some("leave `engine` out: podman starts images; or give a `rootfs`".into());
                }
            }
        }
        if container.program.iter().any(|word| word.contains('\0')) {
            self.add(at("program"), &[], "a word of a command cannot hold a NUL character");
        }
    }
}
