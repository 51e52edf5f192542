//! Constructors for parts of a description in code. Their defaults come from the table of keys.
//!
//! A constructor takes the values that have no default: `System { cycle: Some(cycle), ..System::named("arm") }`.

use crate::keys::{beside_name, Field, Text};
use crate::parse::Context;
use crate::system::{
    Chain, GivenWindow, Group, GroupTask, Load, Process, Profile, Program, SetUp, System, Task, Windows,
};
use crate::time::Duration;

/// Builds a value with the decoder, from these keys.
fn built<T: Field>(entries: Vec<(&'static str, Text)>) -> T {
    let mut cx = Context::default();
    let value = T::read(&mut cx, &Text::Map(entries).into(), "", &T::KIND);
    assert!(cx.findings.is_empty(), "{:?}", cx.findings);
    value
}

impl System {
    /// Makes a system without any part, on CPU 0.
    pub fn named(name: impl Into<String>) -> System {
        built(vec![("system", name.into().write())])
    }
}

impl Task {
    /// Makes a task with windows. Its deadline is the period, and it computes [`within`](crate::ExecutionTime::within)
    /// its WCET.
    pub fn named(name: impl Into<String>, period: Duration, wcet: Duration) -> Task {
        built(vec![("name", name.into().write()), ("period", period.write()), ("wcet", wcet.write())])
    }
}

impl Profile {
    /// Makes a profile with the values of a set-up.
    pub fn like(like: SetUp) -> Profile {
        built(vec![("like", like.write())])
    }
}

impl Windows {
    /// Makes windows in which threads take turns.
    pub fn new(period: Duration, length: Duration) -> Windows {
        built(vec![("period", period.write()), ("length", length.write())])
    }
}

impl Group {
    /// Makes a group on these CPUs, without windows. Its priority and budget are open. If `cpus` is empty, the group
    /// has the CPUs that it has where a description leaves them out.
    pub fn named(name: impl Into<String>, cpus: Vec<u32>) -> Group {
        Group { cpus, ..built(vec![("name", name.into().write())]) }
    }
}

impl GroupTask {
    /// Makes a task with arrivals at any instant. Its deadline is the period, and its priority is open. In a
    /// description the CPU has a default, too: the first one of the group.
    pub fn named(name: impl Into<String>, period: Duration, wcet: Duration, cpu: u32) -> GroupTask {
        let name = ("name", name.into().write());
        built(vec![name, ("period", period.write()), ("wcet", wcet.write()), ("cpu", cpu.write())])
    }
}

impl Process {
    /// Makes one process of `SCHED_OTHER` at nice value 0, on any CPU.
    pub fn named(name: impl Into<String>, run: Load) -> Process {
        built(beside_name(vec![Some(("name", name.into().write()))], vec![run.write()]))
    }
}

impl Program {
    /// Makes a program from its command, with defaults for everything else.
    pub fn new(command: impl IntoIterator<Item = impl Into<String>>) -> Program {
        let command: Vec<String> = command.into_iter().map(Into::into).collect();
        built(vec![("command", command.write())])
    }
}

impl Chain {
    /// Makes a chain without a bound. A description must give at least one.
    pub fn named(name: impl Into<String>, path: Vec<String>) -> Chain {
        built(vec![("name", name.into().write()), ("path", path.write())])
    }
}

impl GivenWindow {
    /// Makes a window without the flags ACTIVATE and DEADLINE.
    pub fn new(task: impl Into<String>, cpu: u32, offset: Duration, length: Duration) -> GivenWindow {
        let task = ("task", task.into().write());
        built(vec![task, ("cpu", cpu.write()), ("offset", offset.write()), ("length", length.write())])
    }
}
