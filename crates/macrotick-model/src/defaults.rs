//! Parts of a description in code: each with its defaults, which the table of keys has.
//!
//! A constructor takes what has no default: `System { cycle: Some(cycle), ..System::named("arm") }`.

use crate::keys::{beside_name, Field, Text};
use crate::parse::Context;
use crate::system::{Chain, GivenWindow, Group, GroupTask, Load, Process, Program, System, Task, Windows};
use crate::time::Duration;

/// What the decoder makes of these keys.
fn built<T: Field>(entries: Vec<(&'static str, Text)>) -> T {
    let mut cx = Context::default();
    let value = T::read(&mut cx, &Text::Map(entries).into(), "", &T::KIND);
    assert!(cx.findings.is_empty(), "{:?}", cx.findings);
    value
}

impl System {
    /// A system without any part, on CPU 0.
    pub fn named(name: impl Into<String>) -> System {
        built(vec![("system", name.into().write())])
    }
}

impl Task {
    /// A task with windows and its period as the deadline, which computes [`within`](crate::ExecutionTime::within) its WCET.
    pub fn named(name: impl Into<String>, period: Duration, wcet: Duration) -> Task {
        built(vec![("name", name.into().write()), ("period", period.write()), ("wcet", wcet.write())])
    }
}

impl Windows {
    /// Windows in which threads take turns.
    pub fn new(period: Duration, length: Duration) -> Windows {
        built(vec![("period", period.write()), ("length", length.write())])
    }
}

impl Group {
    /// A group on these CPUs without windows, whose priority and budget are left open. None stand for those that it has where a
    /// description leaves them out.
    pub fn named(name: impl Into<String>, cpus: Vec<u32>) -> Group {
        Group { cpus, ..built(vec![("name", name.into().write())]) }
    }
}

impl GroupTask {
    /// A task that arrives anywhere, with its period as the deadline and its priority left open. In a description the CPU
    /// may be left out, too: it is the group's first one.
    pub fn named(name: impl Into<String>, period: Duration, wcet: Duration, cpu: u32) -> GroupTask {
        let name = ("name", name.into().write());
        built(vec![name, ("period", period.write()), ("wcet", wcet.write()), ("cpu", cpu.write())])
    }
}

impl Process {
    /// One process of `SCHED_OTHER` at nice value 0, on any CPU.
    pub fn named(name: impl Into<String>, run: Load) -> Process {
        built(beside_name(vec![Some(("name", name.into().write()))], vec![run.write()]))
    }
}

impl Program {
    /// A command of which nothing else is said.
    pub fn new(command: impl IntoIterator<Item = impl Into<String>>) -> Program {
        let command: Vec<String> = command.into_iter().map(Into::into).collect();
        built(vec![("command", command.write())])
    }
}

impl Chain {
    /// A chain without a bound; a description gives it at least one.
    pub fn named(name: impl Into<String>, path: Vec<String>) -> Chain {
        built(vec![("name", name.into().write()), ("path", path.write())])
    }
}

impl GivenWindow {
    /// A window that neither releases a job nor is the last of one.
    pub fn new(task: impl Into<String>, cpu: u32, offset: Duration, length: Duration) -> GivenWindow {
        let task = ("task", task.into().write());
        built(vec![task, ("cpu", cpu.write()), ("offset", offset.write()), ("length", length.write())])
    }
}
