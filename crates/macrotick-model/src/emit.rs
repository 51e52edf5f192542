//! The normal form as text: a description that parses back to the same system, every default written out.

use crate::engine::{ContainerLoad, ContainerRoot};
use crate::system::{
    Background, Chain, ExecutionTime, GivenWindow, Group, GroupTask, GroupThread, Lead, Load, Namespace, Policy, Pool,
    SyncWindow, System, Task, Workload,
};
use crate::time::Duration;

impl System {
    /// The system as `system.yaml`.
    pub fn to_yaml(&self) -> String {
        let cpus: Vec<String> = self.cpus.iter().map(u32::to_string).collect();
        let mut text = format!("system: {}\nmacrotick: {}\n", scalar(&self.name), self.macrotick);
        if let Some(cycle) = self.cycle {
            text += &format!("cycle: {cycle}\n");
        }
        if let Some(lead) = self.lead {
            text += &format!("lead: {}\n", self::lead(lead));
        }
        if let Some(sync) = &self.sync {
            text += &format!("clock: tai\nsync: {}\n", sync_window(sync));
        }
        text += &format!("cpus: [{}]\nduration: {}\n", cpus.join(", "), self.duration);
        text += &section("tasks", &self.tasks, task);
        if !self.pools.is_empty() {
            text += &section("pools", &self.pools, pool);
        }
        if !self.groups.is_empty() || self.server_period != System::DEFAULT_SERVER_PERIOD {
            text += &format!("server-period: {}\n", self.server_period);
        }
        if !self.groups.is_empty() {
            text += &section("groups", &self.groups, group);
        }
        if !self.namespaces.is_empty() {
            text += &section("namespaces", &self.namespaces, namespace);
        }
        if !self.chains.is_empty() {
            text += &section("chains", &self.chains, chain);
        }
        if !self.background.is_empty() {
            text += &section("background", &self.background, background);
        }
        if let Some(table) = &self.table {
            text += &section("table", table, window);
        }
        if !self.files.is_empty() {
            text += &section("files", &self.files, |file| format!("  - {}\n", scalar(file)));
        }
        text
    }
}

impl Group {
    /// The group as an item of `groups:`.
    pub fn to_yaml(&self) -> String {
        group(self)
    }
}

fn section<T>(name: &str, items: &[T], item: fn(&T) -> String) -> String {
    items.iter().fold(format!("{name}:\n"), |text, entry| text + &item(entry))
}

fn lead(lead: Lead) -> String {
    match lead {
        Lead::Fixed(lead) => lead.to_string(),
        Lead::Auto { at_most } => format!("{{auto: {at_most}}}"),
    }
}

fn sync_window(sync: &SyncWindow) -> String {
    let SyncWindow { period, offset, length, bound } = sync;
    format!("{{period: {period}, offset: {offset}, length: {length}, bound: {bound}}}")
}

fn task(task: &Task) -> String {
    let mut text = format!(
        "  - name: {}\n    period: {}\n    wcet: {}\n    deadline: {}\n",
        scalar(&task.name),
        task.period,
        task.wcet,
        task.deadline
    );
    let optional = [
        ("offset", task.offset.map(|offset| offset.to_string())),
        ("jitter", task.jitter.map(|jitter| jitter.to_string())),
        ("cpu", task.cpu.map(|cpu| cpu.to_string())),
        ("migrate", task.migrate.then(|| "true".into())),
        ("priority", task.priority.map(|priority| priority.to_string())),
        (
            "on-miss",
            Some(task.on_miss).filter(|on_miss| !on_miss.is_default()).map(|on_miss| on_miss.name().to_string()),
        ),
        ("max-misses", task.max_misses.map(|misses| misses.to_string())),
        ("namespace", task.namespace.as_deref().map(scalar)),
        ("supply", task.reservation().map(|_| "deadline".into())),
        ("runtime", task.reservation().map(|reservation| reservation.runtime.to_string())),
        ("cpus", task.reservation().filter(|one| !one.cpus.is_empty()).map(|one| format!("[{}]", one.cpus))),
    ];
    for (key, value) in optional {
        if let Some(value) = value {
            text += &format!("    {key}: {value}\n");
        }
    }
    text + &format!("    workload: {}\n", workload(&task.workload))
}

fn workload(workload: &Workload) -> String {
    match workload {
        Workload::Spin(time) => format!("{{spin: {}}}", execution_time(time)),
        Workload::UdpSend { spin, to } => {
            format!("{{udp-send: {{spin: {}, to: {}}}}}", execution_time(spin), scalar(to))
        }
        Workload::UdpReceive { spin, at } => {
            format!("{{udp-receive: {{spin: {}, at: {}}}}}", execution_time(spin), scalar(at))
        }
        Workload::Program(command) => format!("{{program: {}}}", words(command)),
    }
}

fn execution_time(time: &ExecutionTime) -> String {
    match time {
        ExecutionTime::Fixed(time) => time.to_string(),
        ExecutionTime::Uniform { min, max } => format!("{{uniform: {{min: {min}, max: {max}}}}}"),
        ExecutionTime::Gumbel { mode, scale, max } => {
            format!("{{gumbel: {{mode: {mode}, scale: {scale}, max: {max}}}}}")
        }
    }
}

fn pool(pool: &Pool) -> String {
    let mut text = format!(
        "  - name: {}\n    period: {}\n    budget: {}\n    order: {}\n",
        scalar(&pool.name),
        pool.period,
        pool.budget,
        pool.order.name()
    );
    let optional = [
        ("slice", pool.order.slice().map(|slice| slice.to_string())),
        ("cpu", pool.cpu.map(|cpu| cpu.to_string())),
        ("cgroup", pool.cgroup.as_ref().map(|path| scalar(path))),
        ("kernel-threads", kernel_threads(pool.kernel_threads.iter().map(|thread| thread.name()))),
    ];
    for (key, value) in optional {
        if let Some(value) = value {
            text += &format!("    {key}: {value}\n");
        }
    }
    text + &format!("    slack: {}\n", pool.slack)
}

fn kernel_threads<'a>(names: impl Iterator<Item = &'a str>) -> Option<String> {
    let names: Vec<String> = names.map(scalar).collect();
    (!names.is_empty()).then(|| format!("[{}]", names.join(", ")))
}

fn group(group: &Group) -> String {
    let cpus: Vec<String> = group.cpus.iter().map(u32::to_string).collect();
    let mut text = format!("  - name: {}\n", scalar(&group.name));
    let optional = [
        ("criticality", group.criticality.map(|criticality| criticality.to_string())),
        ("priority", group.priority.map(|priority| priority.to_string())),
        ("budget", group.budget.map(|budget| budget.to_string())),
        ("may-grow", group.may_grow.then(|| "true".into())),
        ("cpus", Some(format!("[{}]", cpus.join(", ")))),
        ("fifo", Some(group.fifo.to_string())),
        ("lead", group.lead.map(|lead| lead.to_string())),
        ("cgroup", group.cgroup.as_deref().map(scalar)),
        ("pool", group.pool.as_deref().map(scalar)),
        ("kernel-threads", kernel_threads(group.kernel_threads.iter().map(GroupThread::name))),
    ];
    for (key, value) in optional {
        if let Some(value) = value {
            text += &format!("    {key}: {value}\n");
        }
    }
    if !group.tasks.is_empty() {
        text += "    tasks:\n";
    }
    group.tasks.iter().fold(text, |text, task| text + &group_task(task))
}

fn group_task(task: &GroupTask) -> String {
    let GroupTask { name, period, wcet, deadline, jitter, priority, cpu, bound } = task;
    let priority = priority.map_or(String::new(), |priority| format!("priority: {priority}, "));
    format!(
        "      - {{name: {}, period: {period}, wcet: {wcet}, deadline: {deadline}, jitter: {jitter}, \
         {priority}cpu: {cpu}, bound: {bound}}}\n",
        scalar(name)
    )
}

fn namespace(namespace: &Namespace) -> String {
    format!("  - {{name: {}, address: {}}}\n", scalar(&namespace.name), scalar(&namespace.address))
}

fn chain(chain: &Chain) -> String {
    let bound = |key: &str, bound: Option<Duration>| bound.map_or(String::new(), |bound| format!(", {key}: {bound}"));
    format!(
        "  - {{name: {}, path: {}{}{}}}\n",
        scalar(&chain.name),
        words(&chain.path),
        bound("reaction", chain.reaction),
        bound("age", chain.age)
    )
}

fn background(background: &Background) -> String {
    let load = match &background.load {
        Load::Hog => "hog".to_string(),
        Load::Syscalls => "syscalls".to_string(),
        Load::Periodic { period, run } => format!("{{periodic: {{period: {period}, run: {run}}}}}"),
        Load::PingFlood { to, bytes } => format!("{{ping-flood: {{to: {}, bytes: {bytes}}}}}", scalar(to)),
        Load::Program(command) => format!("{{program: {}}}", words(command)),
        Load::Container(container) => format!("{{container: {}}}", container_load(container)),
    };
    let place = match (&background.pool, background.policy) {
        (Some(pool), _) => format!("pool: {}", scalar(pool)),
        (None, Policy::Other(nice)) => format!("nice: {nice}"),
        (None, Policy::Fifo(priority)) => format!("fifo: {priority}"),
    };
    let place = match &background.group {
        Some(group) => format!("{place}, group: {}", scalar(group)),
        None => place,
    };
    let cpu = background.cpu.map_or(String::new(), |cpu| format!(", cpu: {cpu}"));
    let namespace =
        background.namespace.as_ref().map_or(String::new(), |name| format!(", namespace: {}", scalar(name)));
    let (name, count) = (scalar(&background.name), background.count);
    format!("  - {{name: {name}, load: {load}, {place}, count: {count}{cpu}{namespace}}}\n")
}

fn container_load(container: &ContainerLoad) -> String {
    let root = match &container.root {
        ContainerRoot::Rootfs(path) => format!("rootfs: {}", scalar(path)),
        ContainerRoot::Image(name) => format!("image: {}", scalar(name)),
    };
    let program = match &container.program[..] {
        [] => String::new(),
        program => format!(", program: {}", words(program)),
    };
    format!("{{{root}{program}, engine: {}}}", container.engine.name())
}

fn window(window: &GivenWindow) -> String {
    format!(
        "  - {{task: {}, cpu: {}, offset: {}, length: {}, activate: {}, deadline: {}}}\n",
        scalar(&window.task),
        window.cpu,
        window.offset,
        window.length,
        window.activate,
        window.deadline
    )
}

fn words(words: &[String]) -> String {
    let words: Vec<String> = words.iter().map(|word| scalar(word)).collect();
    format!("[{}]", words.join(", "))
}

/// Plain where YAML cannot read it as anything but this text, else in double quotes. JSON's escapes are YAML's.
fn scalar(text: &str) -> String {
    let plain = text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c))
        && !["null", "true", "false", "yes", "no", "on", "off"].contains(&text);
    if plain {
        text.into()
    } else {
        serde_json::Value::from(text).to_string()
    }
}
