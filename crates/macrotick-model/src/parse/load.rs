//! What tasks and background processes do.

use super::context::{Context, Fields};
use super::yaml::{Node, Value};
use super::UNREAD;
use crate::system::{Background, ExecutionTime, Load, Policy, Workload};
use crate::time::Duration;
use crate::validate::{COUNT_RANGE, CPU_RANGE, FIFO_RANGE, NICE_RANGE, PING_RANGE};

const WORKLOADS: [&str; 4] = ["spin", "udp-send", "udp-receive", "program"];
const DISTRIBUTIONS: [&str; 2] = ["uniform", "gumbel"];
const BACKGROUND_KEYS: [&str; 9] = ["name", "load", "nice", "fifo", "count", "cpu", "pool", "group", "namespace"];
const LOADS: [&str; 4] = ["periodic", "ping-flood", "program", "container"];
/// Data bytes of a ping where the description gives none, as ping(8) has it.
const PING_BYTES: u32 = 56;

impl Context {
    pub(super) fn workload(&mut self, node: Option<&Node>, path: &str, wcet: Duration) -> Workload {
        let fallback = Workload::Spin(ExecutionTime::within(wcet));
        let Some((form, node, path)) = node.and_then(|node| self.one_of(node, path, "a workload", &WORKLOADS)) else {
            return fallback;
        };
        match form {
            "spin" => Workload::Spin(self.execution_time(Some(node), &path, wcet)),
            "udp-send" => {
                self.udp(node, &path, wcet, "to").map_or(fallback, |(spin, to)| Workload::UdpSend { spin, to })
            }
            "udp-receive" => {
                self.udp(node, &path, wcet, "at").map_or(fallback, |(spin, at)| Workload::UdpReceive { spin, at })
            }
            _ => Workload::Program(self.command(node, &path)),
        }
    }

    /// A mapping with exactly one key, which says what the value is: key, value and path of the value.
    fn one_of<'a>(
        &mut self,
        node: &'a Node,
        path: &str,
        what: &str,
        forms: &[&str],
    ) -> Option<(&'a str, &'a Node, String)> {
        let fields = self.fields(node, path, what, forms)?;
        match fields.entries() {
            [(form, value)] => Some((form, value, fields.path_of(form))),
            [] if fields.has_misspelt() => {
                self.mark_broken(path);
                None
            }
            [] => {
                let hint = Some(format!("write one of {}", forms.join(", ")));
                self.refuse(path, node.at, format!("{what} says what it does"), hint);
                None
            }
            [(first, _), (second, extra), ..] => {
                let text = format!("{what} has two forms at once: `{first}` and `{second}`");
                self.refuse(path, extra.at, text, Some("keep one of them".into()));
                None
            }
        }
    }

    fn udp(&mut self, node: &Node, path: &str, wcet: Duration, key: &str) -> Option<(ExecutionTime, String)> {
        let what = &path[path.rfind('.').map_or(0, |dot| dot + 1)..];
        let fields = self.fields(node, path, &format!("`{what}`"), &["spin", key])?;
        let spin = self.execution_time(fields.get("spin"), &fields.path_of("spin"), wcet);
        let address = self.require(&fields, key, &format!("`{what}`"))?;
        Some((spin, self.text(address, &fields.path_of(key))?.to_string()))
    }

    fn execution_time(&mut self, node: Option<&Node>, path: &str, wcet: Duration) -> ExecutionTime {
        let Some(node) = node else {
            return ExecutionTime::within(wcet);
        };
        if !matches!(node.value, Value::Map(_)) {
            return ExecutionTime::Fixed(self.duration(node, path).unwrap_or(UNREAD));
        }
        let form = self.one_of(node, path, "a distribution", &DISTRIBUTIONS);
        form.and_then(|(form, node, path)| self.distribution(form, node, &path)).unwrap_or(ExecutionTime::Fixed(UNREAD))
    }

    fn distribution(&mut self, form: &str, node: &Node, path: &str) -> Option<ExecutionTime> {
        let keys: &[&str] = if form == "uniform" { &["min", "max"] } else { &["mode", "scale", "max"] };
        let what = format!("`{form}`");
        let fields = self.fields(node, path, &what, keys)?;
        let mut time = |key| self.required_duration(&fields, key, &what);
        Some(match form {
            "uniform" => ExecutionTime::Uniform { min: time("min"), max: time("max") },
            _ => ExecutionTime::Gumbel { mode: time("mode"), scale: time("scale"), max: time("max") },
        })
    }

    pub(super) fn command(&mut self, node: &Node, path: &str) -> Vec<String> {
        let words = self.list(node, path, "`program`").unwrap_or_default();
        words.iter().map(|word| self.text(word, path).unwrap_or_default().to_string()).collect()
    }

    pub(super) fn background(&mut self, node: &Node, path: &str) -> Background {
        let Some(fields) = self.fields(node, path, "a background load", &BACKGROUND_KEYS) else {
            return Background::named("unread", Load::Hog);
        };
        let name = self.required_text(&fields, "name", "the background load");
        let mut background = Background::named(name, Load::Hog);
        let what = format!("background load `{}`", background.name);
        if let Some(load) = self.require(&fields, "load", &what) {
            background.load = self.load(load, &fields.path_of("load"));
        }
        if let Some(node) = fields.get("count") {
            background.count = self.integer(node, &fields.path_of("count"), COUNT_RANGE).unwrap_or(1);
        }
        background.namespace = self.optional_text(&fields, "namespace");
        background.group = self.optional_text(&fields, "group");
        if let Some(node) = fields.get("pool") {
            background.pool = self.text(node, &fields.path_of("pool")).map(str::to_string);
            self.only_in_pool(&fields, &what);
            return background;
        }
        if let Some(node) = fields.get("cpu") {
            background.cpu = self.integer(node, &fields.path_of("cpu"), CPU_RANGE);
        }
        match (fields.get("nice"), fields.get("fifo")) {
            (Some(_), Some(fifo)) => {
                let hint = Some("`nice` means SCHED_OTHER, `fifo` means SCHED_FIFO: keep one of them".into());
                self.report(fifo.at, format!("{what} has both `nice` and `fifo`"), hint);
            }
            (Some(node), None) => {
                let nice = self.integer(node, &fields.path_of("nice"), NICE_RANGE);
                background.policy = Policy::Other(nice.unwrap_or(0));
            }
            (None, Some(node)) => {
                let fifo = self.integer(node, &fields.path_of("fifo"), FIFO_RANGE);
                background.policy = Policy::Fifo(fifo.unwrap_or(1));
            }
            (None, None) => {}
        }
        background
    }

    /// What is in a pool has its CPU and no policy of the description's.
    fn only_in_pool(&mut self, fields: &Fields, what: &str) {
        for key in ["nice", "fifo", "cpu"] {
            if let Some(node) = fields.get(key) {
                let hint = Some(format!("the pool says where and when it runs: keep `pool` or `{key}`"));
                self.report(node.at, format!("{what} has both `pool` and `{key}`"), hint);
            }
        }
    }

    fn load(&mut self, node: &Node, path: &str) -> Load {
        if let Value::Scalar(text) = &node.value {
            match text.as_str() {
                "hog" => return Load::Hog,
                "syscalls" => return Load::Syscalls,
                other => {
                    let known = [&["hog", "syscalls"], &LOADS[..]].concat();
                    let hint = super::context::similar(other, &known);
                    self.refuse(path, node.at, format!("unknown load `{other}`"), Some(hint));
                    return Load::Hog;
                }
            }
        }
        let form = self.one_of(node, path, "a load", &LOADS);
        form.and_then(|(form, node, path)| self.load_form(form, node, &path)).unwrap_or(Load::Hog)
    }

    fn load_form(&mut self, form: &str, node: &Node, path: &str) -> Option<Load> {
        if form == "program" {
            return Some(Load::Program(self.command(node, path)));
        }
        if form == "ping-flood" {
            return self.ping_flood(node, path);
        }
        if form == "container" {
            return self.container_load(node, path);
        }
        let fields = self.fields(node, path, "`periodic`", &["period", "run"])?;
        Some(Load::Periodic {
            period: self.required_duration(&fields, "period", "`periodic`"),
            run: self.required_duration(&fields, "run", "`periodic`"),
        })
    }

    fn ping_flood(&mut self, node: &Node, path: &str) -> Option<Load> {
        let fields = self.fields(node, path, "`ping-flood`", &["to", "bytes"])?;
        let bytes = fields.get("bytes").and_then(|node| self.integer(node, &fields.path_of("bytes"), PING_RANGE));
        let to = self.required_text(&fields, "to", "`ping-flood`");
        Some(Load::PingFlood { to, bytes: bytes.unwrap_or(PING_BYTES) })
    }
}
