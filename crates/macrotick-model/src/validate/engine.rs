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
                if container.program.is_none() {
                    self.add(at("program"), &[path], "a container with `rootfs` needs a `program`");
                }
            }
            ContainerRoot::Image(image) => {
                if image.is_empty() || image.starts_with('-') || image.contains(char::is_control) {
                    self.add(at("image"), &[], format!("{image:?} is not the name of an image"));
                }
                if container.engine != Engine::Podman {
                    let text = format!("{} does not support images", container.engine.name());
                    self.add(at("engine"), &[path], text).hint =
                        Some("leave out `engine` to use podman, or give a `rootfs`".into());
                }
            }
        }
        let Some(program) = &container.program else { return };
        self.program(&at("program"), program);
        let named = program.user.as_ref().filter(|user| user.parse::<u32>().is_err());
        if let (Some(user), ContainerRoot::Rootfs(_)) = (named, &container.root) {
            let text = format!("the user name `{user}` cannot be resolved with `rootfs`");
            self.add(at("program.user"), &[path], text).hint = Some("write the number of the user".into());
        }
    }
}
