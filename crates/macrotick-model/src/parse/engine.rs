//! Containers that a run starts.

use super::context::{similar, Context, Fields};
use super::yaml::Node;
use crate::engine::{ContainerLoad, ContainerRoot, Engine};
use crate::system::Load;

const KEYS: [&str; 4] = ["rootfs", "image", "program", "engine"];
const WHAT: &str = "`container`";

impl Context {
    pub(super) fn container_load(&mut self, node: &Node, path: &str) -> Option<Load> {
        let fields = self.fields(node, path, WHAT, &KEYS)?;
        let root = self.container_root(&fields, path)?;
        let fallback = match root {
            ContainerRoot::Rootfs(_) => Engine::Crun,
            ContainerRoot::Image(_) => Engine::Podman,
        };
        let engine = fields.get("engine").and_then(|node| self.engine(node, &fields.path_of("engine")));
        let program = fields.get("program").map(|node| self.command(node, &fields.path_of("program")));
        Some(Load::Container(ContainerLoad {
            root,
            program: program.unwrap_or_default(),
            engine: engine.unwrap_or(fallback),
        }))
    }

    fn container_root(&mut self, fields: &Fields, path: &str) -> Option<ContainerRoot> {
        match (fields.get("rootfs"), fields.get("image")) {
            (Some(node), None) => Some(ContainerRoot::Rootfs(self.text(node, &fields.path_of("rootfs"))?.into())),
            (None, Some(node)) => Some(ContainerRoot::Image(self.text(node, &fields.path_of("image"))?.into())),
            (None, None) if fields.has_misspelt() => {
                self.mark_broken(path);
                None
            }
            (rootfs, image) => {
                let both = rootfs.and(image);
                let at = both.map_or(fields.at(), |node| node.at);
                let text = if both.is_some() { "has both `rootfs` and `image`" } else { "has no root file system" };
                let hint = "give the directory `rootfs`, or the `image` that podman has".into();
                self.refuse(path, at, format!("{WHAT} {text}"), Some(hint));
                None
            }
        }
    }

    fn engine(&mut self, node: &Node, path: &str) -> Option<Engine> {
        let text = self.text(node, path)?;
        let engine = Engine::ALL.into_iter().find(|engine| engine.name() == text);
        if engine.is_none() {
            let hint = similar(text, &Engine::ALL.map(Engine::name));
            self.refuse(path, node.at, format!("unknown engine `{text}`"), Some(hint));
        }
        engine
    }
}
