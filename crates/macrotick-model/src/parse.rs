//! Reading `system.yaml`: from text to the normal form, with every error told at its place.
//!
//! Two passes. The first reads the syntax: keys, kinds and units; what it cannot read it reports and replaces by a
//! placeholder that is marked as broken. The second applies the rules of [`crate::validate`], except those that
//! depend on something broken, so that one mistake is told once and none is hidden behind another.

mod container;
mod context;
mod engine;
mod group;
mod load;
mod place;
mod pool;
mod supply;
mod sync;
mod yaml;

pub(crate) use context::nearest_name;
use context::{Context, Fields};
pub use place::Finding;
use supply::Reserved;
use yaml::{Node, Value};

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::system::{Chain, GivenWindow, Lead, Namespace, OnMiss, System, Task};
use crate::time::{Duration, ParseDurationError};
use crate::validate::{
    self, CPUS, CPU_RANGE, GROUP_NAMES, MISSES_RANGE, NAMESPACE_NAMES, PERIODS, POOL_NAMES, PRIORITY_RANGE, TASK_NAMES,
};

const SYSTEM_KEYS: [&str; 17] = [
    "system",
    "macrotick",
    "cycle",
    "lead",
    "clock",
    "sync",
    "cpus",
    "duration",
    "tasks",
    "pools",
    "server-period",
    "groups",
    "namespaces",
    "chains",
    "background",
    "table",
    "files",
];
const TASK_KEYS: [&str; 16] = [
    "name",
    "period",
    "wcet",
    "deadline",
    "offset",
    "jitter",
    "cpu",
    "migrate",
    "priority",
    "on-miss",
    "max-misses",
    "namespace",
    "supply",
    "runtime",
    "cpus",
    "workload",
];
const NAMESPACE_KEYS: [&str; 2] = ["name", "address"];
const CHAIN_KEYS: [&str; 4] = ["name", "path", "reaction", "age"];
const WINDOW_KEYS: [&str; 6] = ["task", "cpu", "offset", "length", "activate", "deadline"];

impl System {
    /// The macrotick where the description gives none.
    pub const DEFAULT_MACROTICK: Duration = Duration::from_micros(1);
    /// The duration where the description gives none.
    pub const DEFAULT_DURATION: Duration = Duration::from_secs(10);

    /// Reads a description. `path` is only used to name the place of an error. All errors are told at once.
    pub fn parse(source: &str, path: &str) -> Result<System, Diagnostics> {
        read(source, |cx, root| {
            let system = cx.system(root)?;
            validate::problems(&system).into_iter().for_each(|problem| cx.apply(problem));
            Some(system)
        })
        .map_err(|findings| Diagnostics::new(path, source, findings))
    }
}

/// What `decode` makes of a text, unless something was found.
fn read<T>(source: &str, decode: impl FnOnce(&mut Context, &Node) -> Option<T>) -> Result<T, Vec<Diagnostic>> {
    let root = yaml::load(source).map_err(|finding| vec![finding])?;
    let mut cx = Context::default();
    match decode(&mut cx, &root) {
        Some(decoded) if cx.findings.is_empty() => Ok(decoded),
        _ => Err(cx.findings),
    }
}

/// Stands for a time that could not be read; rules that depend on it are not applied.
const UNREAD: Duration = Duration::from_secs(1);

impl Context {
    fn system(&mut self, root: &Node) -> Option<System> {
        if matches!(root.value, Value::Null) {
            self.report(root.at, "the description is empty", None);
            return None;
        }
        let fields = self.fields(root, "", "the description", &SYSTEM_KEYS)?;
        let default = System::named(self.required_text(&fields, "system", "the description"));
        let cpus = match fields.get(CPUS) {
            Some(node) => self.cpu_list(node, CPUS),
            None => default.cpus.clone(),
        };
        let tasks = self.optional_items(&fields, "tasks", Self::task);
        let pools = self.optional_items(&fields, "pools", Self::pool);
        let mut groups = self.optional_items(&fields, "groups", Self::group);
        group::complete(&mut groups, &cpus);
        let namespaces = self.optional_items(&fields, "namespaces", Self::namespace);
        self.mark_sets("tasks", tasks.len(), TASK_NAMES);
        self.mark_sets("pools", pools.len(), POOL_NAMES);
        self.mark_names("groups", groups.len(), GROUP_NAMES);
        self.mark_names("namespaces", namespaces.len(), NAMESPACE_NAMES);
        Some(System {
            macrotick: self.optional_duration(&fields, "macrotick").unwrap_or(default.macrotick),
            cycle: self.optional_duration(&fields, "cycle"),
            lead: fields.get("lead").map(|node| self.lead(node, &fields.path_of("lead"))),
            sync: self.sync(&fields),
            cpus,
            duration: self.optional_duration(&fields, "duration").unwrap_or(default.duration),
            tasks,
            pools,
            server_period: self.optional_duration(&fields, "server-period").unwrap_or(default.server_period),
            groups,
            namespaces,
            chains: self.optional_items(&fields, "chains", Self::chain),
            background: self.optional_items(&fields, "background", Self::background),
            table: fields.get("table").map(|node| self.items(node, "table", "`table`", Self::window)),
            files: self.optional_items(&fields, "files", Self::word),
            ..default
        })
    }

    /// Rules about all names or all periods are not applied when one of them could not be read.
    fn mark_sets(&mut self, list: &str, count: usize, names: &str) {
        for index in 0..count {
            for (key, set) in [("name", names), ("period", PERIODS)] {
                if self.is_broken(&format!("{list}[{index}].{key}")) {
                    self.mark_broken(set);
                }
            }
        }
        if self.is_broken(list) {
            self.mark_broken(names);
            self.mark_broken(PERIODS);
        }
    }

    fn mark_names(&mut self, list: &str, count: usize, names: &str) {
        let broken = |index: usize| self.is_broken(&format!("{list}[{index}].name"));
        if self.is_broken(list) || (0..count).any(broken) {
            self.mark_broken(names);
        }
    }

    fn items<T>(&mut self, node: &Node, path: &str, what: &str, item: fn(&mut Self, &Node, &str) -> T) -> Vec<T> {
        let Some(list) = self.list(node, path, what) else {
            return Vec::new();
        };
        let mut items = Vec::with_capacity(list.len());
        for (index, node) in list.iter().enumerate() {
            let path = format!("{path}[{index}]");
            self.place(&path, node.at);
            items.push(item(self, node, &path));
        }
        items
    }

    fn optional_items<T>(&mut self, fields: &Fields, key: &str, item: fn(&mut Self, &Node, &str) -> T) -> Vec<T> {
        match fields.get(key) {
            Some(node) => self.items(node, &fields.path_of(key), &format!("`{key}`"), item),
            None => Vec::new(),
        }
    }

    fn optional_duration(&mut self, fields: &Fields, key: &str) -> Option<Duration> {
        let node = fields.get(key)?;
        Some(self.duration(node, &fields.path_of(key)).unwrap_or(UNREAD))
    }

    fn required_duration(&mut self, fields: &Fields, key: &str, what: &str) -> Duration {
        let node = self.require(fields, key, what);
        node.and_then(|node| self.duration(node, &fields.path_of(key))).unwrap_or(UNREAD)
    }

    fn required_text(&mut self, fields: &Fields, key: &str, what: &str) -> String {
        let node = self.require(fields, key, what);
        node.and_then(|node| self.text(node, &fields.path_of(key))).unwrap_or("unread").to_string()
    }

    fn optional_text(&mut self, fields: &Fields, key: &str) -> Option<String> {
        fields.get(key).and_then(|node| self.text(node, &fields.path_of(key)).map(str::to_string))
    }

    /// `true` or `false`, which is the default.
    fn flag(&mut self, fields: &Fields, key: &str) -> bool {
        fields.get(key).and_then(|node| self.boolean(node, &fields.path_of(key))).unwrap_or_default()
    }

    fn cpu_list(&mut self, node: &Node, path: &str) -> Vec<u32> {
        let list = self.list(node, path, "`cpus`").unwrap_or_default();
        let mut cpus: Vec<u32> = list.iter().filter_map(|node| self.integer(node, path, CPU_RANGE)).collect();
        cpus.sort_unstable();
        cpus
    }

    /// A time, `auto`, or `auto` with a bound.
    fn lead(&mut self, node: &Node, path: &str) -> Lead {
        match &node.value {
            Value::Map(_) => {
                let fields = self.fields(node, path, "`lead`", &["auto"]);
                let at_most = fields.map(|fields| self.required_duration(&fields, "auto", "`lead`"));
                Lead::Auto { at_most: at_most.unwrap_or(UNREAD) }
            }
            Value::Scalar(text) if text == "auto" => Lead::Auto { at_most: Lead::DEFAULT_AT_MOST },
            Value::Scalar(text) => Lead::Fixed(text.parse().unwrap_or_else(|error: ParseDurationError| {
                let hint = Some("write a time such as `6us`, `auto` or `{auto: 50us}`".into());
                self.refuse(path, node.at, error.to_string(), hint);
                UNREAD
            })),
            _ => Lead::Fixed(self.duration(node, path).unwrap_or(UNREAD)),
        }
    }

    fn task(&mut self, node: &Node, path: &str) -> Task {
        let Some(fields) = self.fields(node, path, "a task", &TASK_KEYS) else {
            return Task::named("unread", UNREAD, UNREAD);
        };
        let name = self.required_text(&fields, "name", "the task");
        let what = format!("task `{name}`");
        let period = self.required_duration(&fields, "period", &what);
        let wcet = self.required_duration(&fields, "wcet", &what);
        let default = Task::named(name, period, wcet);
        let deadline = self.optional_duration(&fields, "deadline").unwrap_or(default.deadline);
        let cpu = fields.get("cpu").and_then(|node| self.integer(node, &fields.path_of("cpu"), CPU_RANGE));
        let supply = self.supply(&fields, Reserved { what: &what, wcet, deadline, cpu });
        Task {
            deadline,
            offset: self.optional_duration(&fields, "offset"),
            jitter: self.optional_duration(&fields, "jitter"),
            cpu: cpu.filter(|_| supply.is_windows()),
            migrate: self.flag(&fields, "migrate"),
            priority: fields
                .get("priority")
                .and_then(|node| self.integer(node, &fields.path_of("priority"), PRIORITY_RANGE)),
            on_miss: fields
                .get("on-miss")
                .map_or(default.on_miss, |node| self.on_miss(node, &fields.path_of("on-miss"))),
            max_misses: fields
                .get("max-misses")
                .and_then(|node| self.integer(node, &fields.path_of("max-misses"), MISSES_RANGE)),
            namespace: self.optional_text(&fields, "namespace"),
            workload: self.workload(fields.get("workload"), &fields.path_of("workload"), wcet),
            supply,
            ..default
        }
    }

    fn namespace(&mut self, node: &Node, path: &str) -> Namespace {
        let Some(fields) = self.fields(node, path, "a namespace", &NAMESPACE_KEYS) else {
            return Namespace { name: "unread".into(), address: String::new() };
        };
        let name = self.required_text(&fields, "name", "the namespace");
        let address = self.required_text(&fields, "address", &format!("namespace `{name}`"));
        Namespace { name, address }
    }

    fn on_miss(&mut self, node: &Node, path: &str) -> OnMiss {
        let Some(text) = self.text(node, path) else { return OnMiss::default() };
        OnMiss::ALL.into_iter().find(|on_miss| on_miss.name() == text).unwrap_or_else(|| {
            let hint = context::similar(text, &OnMiss::ALL.map(OnMiss::name));
            self.refuse(path, node.at, format!("unknown reaction to a miss `{text}`"), Some(hint));
            OnMiss::default()
        })
    }

    fn chain(&mut self, node: &Node, path: &str) -> Chain {
        let Some(fields) = self.fields(node, path, "a chain", &CHAIN_KEYS) else {
            return Chain::named("unread", Vec::new());
        };
        let name = self.required_text(&fields, "name", "the chain");
        let tasks = self.require(&fields, "path", &format!("chain `{name}`"));
        let tasks = tasks.map(|node| self.items(node, &fields.path_of("path"), "`path`", Self::word));
        Chain {
            reaction: self.optional_duration(&fields, "reaction"),
            age: self.optional_duration(&fields, "age"),
            ..Chain::named(name, tasks.unwrap_or_default())
        }
    }

    fn word(&mut self, node: &Node, path: &str) -> String {
        self.text(node, path).unwrap_or_default().to_string()
    }

    fn window(&mut self, node: &Node, path: &str) -> GivenWindow {
        let Some(fields) = self.fields(node, path, "a window", &WINDOW_KEYS) else {
            return GivenWindow::new("unread", 0, UNREAD, UNREAD);
        };
        let cpu = self.require(&fields, "cpu", "the window");
        let cpu = cpu.and_then(|node| self.integer(node, &fields.path_of("cpu"), CPU_RANGE)).unwrap_or(0);
        let task = self.required_text(&fields, "task", "the window");
        let offset = self.required_duration(&fields, "offset", "the window");
        let length = self.required_duration(&fields, "length", "the window");
        GivenWindow {
            activate: self.flag(&fields, "activate"),
            deadline: self.flag(&fields, "deadline"),
            ..GivenWindow::new(task, cpu, offset, length)
        }
    }
}
