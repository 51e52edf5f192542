//! Groups.

use super::load::Process;
use super::pool::{KernelThread, Pool, Windows};
use super::{MAX_LONG_NAME, MAX_NAME};
use crate::keys::{object, Field, Forms, Found, Kind, Text};
use crate::parse::{Context, Form, Node};
use crate::time::Duration;
use crate::validate::PRIORITIES;

object! {
    /// Threads of a control group, which are served by windows, by a budget, or by both.
    pub struct Group: "a group" {
        "name" name: String [Kind::Name { most: MAX_NAME }], required
            = "Its name, unique; also that of its windows' entity in the kernel.";
        "windows" windows: Option<Windows>, optional "none" = "[Windows](#windows) that serve it.";
        "budget" budget: Option<Duration> [Kind::TIME], optional "none with `windows`; else the least with which its tasks meet their deadlines"
            = "What its threads may run in each server period, on each of its CPUs: 10 us to the server period, in whole microseconds.";
        "criticality" criticality: Option<u32>, optional "none told" = "How bad its failure would be: a higher number is worse.";
        "priority" priority: Option<u32> [PRIORITY], optional "by criticality, [see below](#what-may-be-left-out)"
            = "That of its budget: a higher number goes first, no two groups have the same.";
        "may-grow" may_grow: bool, optional "`false`"
            = "Whether [`macrotick admit`](feasibility.md#macrotick-admit) may give it a greater budget, to make room for a container above it.";
        "cpus" cpus: Vec<u32> [Kind::CPUS], optional "all of them; with `windows` alone one, which the solver chooses"
            = "CPUs with the budget, of those of the system; with `windows` just one.";
        "cgroup" cgroup: Option<String> [Kind::Text("directory")], optional "the runner makes one"
            = "An existing control group (v2), which is the group.";
        "serve-fifo" serve_fifo: bool, optional "`false`" = "Whether `SCHED_FIFO` and `SCHED_RR` mean `SCHED_DS` in it.";
        "lead" lead: Option<Duration> [Group::LEAD], optional "none"
            = "How much earlier its threads wake up from `nanosleep(2)` and `clock_nanosleep(2)`, to be held until the instant at which the sleep is to end ([how](groups.md#a-lead)): in whole microseconds, less than the server period. Each sleep costs up to as much of the budget, and each job of its tasks counts it to its `wcet`.";
        "kernel-threads" kernel_threads: Vec<GroupThread>, optional "none"
            = "Those of all its CPUs, and threads of interrupts: they are in it, too ([how](groups.md#interrupts)). With `windows` alone only those of CPUs ([why](pools.md#kernel-threads)), with both none.";
        "run" run: Vec<Process>, optional "none" = "The [processes](#load) that a run starts in it.";
        "tasks" tasks: Vec<GroupTask>, optional "none" = "What its threads do, as far as the check shall answer for it; needs a budget.";
    }
}

/// Of a thread, or of a group.
pub(crate) const PRIORITY: Kind = Kind::Integer { least: *PRIORITIES.start() as i64, most: *PRIORITIES.end() as i64 };

impl Group {
    /// What the kernel takes.
    pub(crate) const LEAD: Kind = Kind::Time { least: Group::MIN_LEAD, most: Group::MAX_LEAD };
    /// The shortest lead of a group.
    pub const MIN_LEAD: Duration = Duration::from_micros(1);
    /// The longest lead of a group.
    pub const MAX_LEAD: Duration = Duration::from_millis(1);

    /// The group as an item of `groups:`.
    pub fn to_yaml(&self) -> String {
        self.write().to_item()
    }

    pub(super) fn left_open(&self, path: &str) -> Vec<String> {
        if !self.has_budget() {
            return Vec::new();
        }
        let tasks = self.tasks.iter().enumerate().filter(|(_, task)| task.priority.is_none());
        let tasks = tasks.map(|(index, _)| format!("tasks[{index}].priority"));
        let priority = self.priority.is_none().then(|| "priority".into());
        let budget = self.budget.is_none().then(|| "budget".into());
        priority.into_iter().chain(budget).chain(tasks).map(|key: String| format!("{path}.{key}")).collect()
    }

    /// Whether it is served by a budget, given or to be found.
    pub fn has_budget(&self) -> bool {
        self.windows.is_none() || self.budget.is_some() || self.priority.is_some() || self.criticality.is_some()
    }

    /// The entity of its windows.
    pub fn pool(&self) -> Option<Pool> {
        let Windows { period, length, order, slack } = *self.windows.as_ref()?;
        let alone = !self.has_budget();
        let of_cpus = self.kernel_threads.iter().filter_map(|thread| match thread {
            GroupThread::EachCpu(thread) if alone => Some(*thread),
            _ => None,
        });
        Some(Pool {
            name: self.pool_name()?,
            period,
            length,
            cpu: self.cpus.first().copied(),
            order,
            slack,
            cgroup: self.cgroup.clone().filter(|_| alone),
            kernel_threads: of_cpus.collect(),
        })
    }

    /// The name of the entity of its windows.
    pub fn pool_name(&self) -> Option<String> {
        self.windows.as_ref()?;
        let beside = if self.has_budget() { Pool::BESIDE_A_BUDGET } else { "" };
        Some(format!("{}{beside}", self.name))
    }

    /// What the description leaves out: a group has all CPUs of the system, and a task the first one of its group.
    pub(super) fn complete(&mut self, cpus: &[u32]) {
        if self.cpus.is_empty() && self.has_budget() {
            self.cpus = cpus.to_vec();
        }
        let first = self.cpus.first().copied().unwrap_or(0);
        let unsaid = self.tasks.iter_mut().filter(|task| task.cpu == GroupTask::FIRST_CPU);
        unsaid.for_each(|task| task.cpu = first);
    }
}

object! {
    /// A sporadic task in a group, which somebody there runs with a fixed priority. The check analyses it.
    #[derive(Eq)]
    pub struct GroupTask: "a task of a group" {
        "name" name: String [Kind::Name { most: MAX_LONG_NAME }], required = "Its name, unique in the group.";
        "period" period: Duration, required = "The least time between two arrivals.";
        "wcet" wcet: Duration, required = "The longest execution time of a job.";
        "deadline" deadline: Duration, or "the period" { period } = "From a job's arrival to when it must be done.";
        "release-jitter" release_jitter: Duration [NOT_NEGATIVE], or "`0us`" { Duration::ZERO }
            = "The longest time from a job's arrival to its release.";
        "priority" priority: Option<u32> [PRIORITY], optional "an order with which none misses"
            = "Inside the group: a higher number goes first.";
        "cpu" cpu: u32 [Kind::Cpu], or "its first one" { GroupTask::FIRST_CPU } = "One of the group's CPUs.";
        "at-refills" at_refills: bool, optional "`false`: anywhere"
            = "Whether its jobs arrive exactly at refills; then the period is a multiple of the server period.";
    }
}

const NOT_NEGATIVE: Kind = Kind::Time { least: Duration::ZERO, most: Duration::from_nanos(i64::MAX) };

impl GroupTask {
    /// Stands for the first CPU of the group while a description is read; no CPU has that number.
    pub(crate) const FIRST_CPU: u32 = u32::MAX;
}

/// A kernel thread that a group serves, on all of the group's CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupThread {
    /// Those of this kind, of all the group's CPUs.
    EachCpu(KernelThread),
    /// The thread of an interrupt, `irq/NUMBER-NAME` as the kernel calls it.
    Interrupt(String),
}

impl GroupThread {
    /// What the kernel calls the threads of interrupts.
    pub(crate) const INTERRUPT_FORM: &'static str = "irq/NUMBER-NAME";
    /// See [`Self::INTERRUPT_FORM`].
    pub(crate) const INTERRUPT_PREFIX: &'static str = "irq/";
    const FORMS: &'static Forms = &Forms {
        what: "a thread of the kernel",
        plain: Some((Kind::Text("irq/NUMBER-NAME"), "The thread of an interrupt, as `ps -e` has it.")),
        words: KernelThread::WORDS.words,
        keys: &[],
    };

    /// The word in a description.
    pub fn name(&self) -> &str {
        match self {
            GroupThread::EachCpu(thread) => thread.name(),
            GroupThread::Interrupt(name) => name,
        }
    }
}

impl Field for GroupThread {
    const KIND: Kind = Kind::Forms(Self::FORMS);

    fn read(cx: &mut Context, node: &Node, path: &str, _: &Kind) -> Self {
        match cx.form(node, path, Self::FORMS) {
            Form::Word(word) => {
                let thread = KernelThread::ALL.iter().find(|thread| thread.name() == word);
                GroupThread::EachCpu(*thread.expect("a word of the table"))
            }
            Form::Plain => {
                let text = String::read(cx, node, path, &String::KIND);
                if text.starts_with(Self::INTERRUPT_PREFIX) || cx.is_broken(path) {
                    return GroupThread::Interrupt(text);
                }
                let words = KernelThread::WORDS.words.iter().map(|(word, _)| *word);
                cx.unknown(node, path, "kernel thread", words.chain([Self::INTERRUPT_FORM]).collect());
                Self::unread()
            }
            _ => Self::unread(),
        }
    }

    fn unread() -> Self {
        GroupThread::EachCpu(KernelThread::Ksoftirqd)
    }

    fn write(&self) -> Text {
        Text::Word(self.name().into())
    }

    fn check(&self, _: &str, _: &str, _: &Kind, _: &mut Found) {}
}
