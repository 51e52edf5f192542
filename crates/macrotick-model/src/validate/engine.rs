//! Rules of containers that a run starts.

use super::Rules;
use crate::system::{Background, ContainerLoad, ContainerRoot, Engine, Load};

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

    /// The kernel's rule of control groups: one has processes, or children with controllers (cgroup-v2.rst, "No Internal
    /// Process Constraint").
    pub(super) fn shares_with_containers(&mut self, path: &str, background: &Background) {
        let place = |load: &Background| (load.pool.clone(), load.group.clone());
        let is_container = |load: &Background| matches!(load.load, Load::Container(_));
        if place(background) == (None, None) {
            return;
        }
        let before = self.system.background.iter().take_while(|other| !std::ptr::eq(*other, background));
        let other = before
            .filter(|other| place(other) == place(background))
            .find(|other| is_container(other) != is_container(background));
        if let Some(other) = other {
            let (container, process) = match is_container(background) {
                true => (&background.name, &other.name),
                false => (&other.name, &background.name),
            };
            let text =
                format!("`{container}` is a container and `{process}` is none: a control group has one or the other");
            self.add(path, &[], text).hint = Some("give one of them a group or pool of its own".into());
        }
    }
}
