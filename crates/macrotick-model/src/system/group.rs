//! Groups.

use super::load::Process;
use super::pool::{KernelThread, Pool, Windows};
use super::{MAX_LONG_NAME, MAX_NAME};
use crate::keys::{object, Field, Forms, Found, Kind, Text};
use crate::parse::{Context, Form, Node};
use crate::time::Duration;
use crate::validate::PRIORITIES;

object! {
    /// The threads of a control group. Windows, a budget or both serve them.
    pub struct Group: "a group" {
        "name" name: String [Kind::Name { most: MAX_NAME }], required
            = "The unique name of the group, and with `windows` alone of their entity in the kernel.";
        "windows" windows: Option<Windows>, optional "none" = "The [windows](#windows) that serve the group.";
        "budget" budget: Option<Duration> [Kind::TIME], optional "none with `windows`; otherwise the least with which its tasks meet their deadlines"
            = "CPU time of its threads in each server period, on each of its CPUs: from 10 us to the server period, in whole microseconds.";
        "criticality" criticality: Option<u32>, optional "none" = "How severe its failure is: a higher number is more severe.";
        "priority" priority: Option<u32> [PRIORITY], optional "by criticality, see [What may be left out](#what-may-be-left-out)"
            = "Priority of the budget: a higher number runs first. No two groups can have the same.";
        "may-grow" may_grow: bool, optional "`false`"
            = "Whether [`macrotick admit`](../how-to/admit-one-more-container.md) can increase its budget to make room for a container of higher priority.";
        "host" host: Option<String> [Kind::Text("host")], optional "that of its CPUs or of its namespace" = "The name of its [host](#hosts).";
        "cpus" cpus: Vec<u32> [Kind::CPUS], optional "all of its host; with `windows` alone one, which the solver chooses"
            = "The CPUs of the system on which the group has its budget. Exactly one with `windows`.";
        "cgroup" cgroup: Option<String> [Kind::Text("directory")], optional "the runner makes one"
            = "An existing control group (v2) to use as the group.";
        "serve-fifo" serve_fifo: bool, optional "`false`" = "Whether the budget serves `SCHED_FIFO` and `SCHED_RR` threads of the group as if they had `SCHED_DS`.";
        "lead" lead: Option<Duration> [Group::LEAD], optional "none"
            = "How much earlier its threads wake up from `nanosleep(2)` and `clock_nanosleep(2)`: in whole microseconds, less than the server period. The kernel holds them until the sleep ends, see [Group budgets](../explanation/group-budgets.md#lead). Each sleep uses up to this much of the budget. The check adds it to the `wcet` of each job.";
        "kernel-threads" kernel_threads: Vec<GroupThread>, optional "none"
            = "Threads of its CPUs and of interrupts that the group serves, see [Kernel threads](#kernel-threads). With `windows` alone no threads of interrupts, with `windows` and a budget none.";
        "run" run: Vec<Process>, optional "none" = "The [processes](#load) that a run starts in the group.";
        "tasks" tasks: Vec<GroupTask>, optional "none" = "The tasks of its threads. The check verifies their deadlines. Needs a budget.";
    }
}

/// The range of priorities of threads and groups.
pub(crate) const PRIORITY: Kind = Kind::Integer { least: *PRIORITIES.start() as i64, most: *PRIORITIES.end() as i64 };

impl Group {
    /// The range of leads that the kernel accepts.
    pub(crate) const LEAD: Kind = Kind::Time { least: Group::MIN_LEAD, most: Group::MAX_LEAD };
    /// The shortest lead of a group.
    pub const MIN_LEAD: Duration = Duration::from_micros(1);
    /// The longest lead of a group.
    pub const MAX_LEAD: Duration = Duration::from_millis(1);

    /// Returns the group as an item of `groups:`.
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

    /// Whether a budget serves the group, given or still open.
    pub fn has_budget(&self) -> bool {
        self.windows.is_none() || self.budget.is_some() || self.priority.is_some() || self.criticality.is_some()
    }

    /// Returns the entity of its windows.
    pub fn pool(&self) -> Option<Pool> {
        let Windows { period, length, order, slack } = *self.windows.as_ref()?;
        let alone = !self.has_budget();
        let is_served = |thread: &&GroupThread| alone && !matches!(thread, GroupThread::Interrupt(_));
        Some(Pool {
            name: self.pool_name()?,
            period,
            length,
            cpu: self.cpus.first().copied(),
            host: self.host.clone(),
            order,
            slack,
            cgroup: self.cgroup.clone().filter(|_| alone),
            kernel_threads: self.kernel_threads.iter().filter(is_served).cloned().collect(),
        })
    }

    /// Returns the name of the entity of its windows.
    pub fn pool_name(&self) -> Option<String> {
        self.windows.as_ref()?;
        let beside = if self.has_budget() { Pool::BESIDE_A_BUDGET } else { "" };
        Some(format!("{}{beside}", self.name))
    }

    /// Fills in defaults: a group has all CPUs of its host, and a task the first CPU of its group.
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
    /// A sporadic task in a group. A thread of the group runs it with a fixed priority, and the check analyses it.
    #[derive(Eq)]
    pub struct GroupTask: "a task of a group" {
        "name" name: String [Kind::Name { most: MAX_LONG_NAME }], required = "The name of the task, unique in the group.";
        "period" period: Duration [GroupTask::LENGTH], required = "Minimum interval between two arrivals.";
        "wcet" wcet: Duration [GroupTask::LENGTH], required = "Worst-case execution time of a job.";
        "deadline" deadline: Duration [GroupTask::LENGTH], or "the period" { period }
            = "Deadline relative to the arrival of a job.";
        "release-jitter" release_jitter: Duration [GroupTask::JITTER], or "`0us`" { Duration::ZERO }
            = "Maximum delay from the arrival of a job to its release.";
        "priority" priority: Option<u32> [PRIORITY], optional "an order in which all tasks meet their deadlines"
            = "Priority inside the group: a higher number runs first.";
        "cpu" cpu: u32 [Kind::Cpu], or "the first CPU of the group" { GroupTask::FIRST_CPU } = "One of the group's CPUs.";
        "at-refills" at_refills: bool, optional "`false`: at any time"
            = "Whether jobs arrive exactly at refills. The period is then a multiple of the server period.";
    }
}

impl GroupTask {
    /// The longest time of such a task. The analysis of servers computes with sums and products of such times.
    pub const LONGEST: Duration = Duration::from_secs(1000);
    const LENGTH: Kind = Kind::Time { least: Duration::from_nanos(1), most: GroupTask::LONGEST };
    const JITTER: Kind = Kind::Time { least: Duration::ZERO, most: GroupTask::LONGEST };
    /// The placeholder for the first CPU of the group while a description is read. No CPU has this number.
    pub(crate) const FIRST_CPU: u32 = u32::MAX;
}

/// A kernel thread that a group serves, on all of the group's CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupThread {
    /// All threads of this kind on the CPUs of the group.
    EachCpu(KernelThread),
    /// The thread of an interrupt, with its name in the kernel: `irq/NUMBER-NAME`.
    Interrupt(String),
    /// The thread that opens the gates of an interface, with the name of the interface in the description.
    Gate(String),
}

impl GroupThread {
    /// The form of the name that the kernel gives to the thread of an interrupt.
    pub(crate) const INTERRUPT_FORM: &'static str = "irq/NUMBER-NAME";
    /// See [`Self::INTERRUPT_FORM`].
    pub(crate) const INTERRUPT_PREFIX: &'static str = "irq/";
    /// The form of the name of a gate thread.
    pub(crate) const GATE_FORM: &'static str = "gate/INTERFACE";
    const GATE_PREFIX: &'static str = "gate/";
    const FORMS: &'static Forms = &Forms {
        what: "a kernel thread",
        plain: Some((
            Kind::Text("irq/NUMBER-NAME or gate/INTERFACE"),
            "The thread of an interrupt, with its name in `ps -e`, or the [gate thread](#gate-threads) of an interface.",
        )),
        words: KernelThread::WORDS.words,
        keys: &[],
    };

    /// Returns the text in a description.
    pub fn name(&self) -> String {
        match self {
            GroupThread::EachCpu(thread) => thread.name().into(),
            GroupThread::Interrupt(name) => name.clone(),
            GroupThread::Gate(interface) => format!("{}{interface}", Self::GATE_PREFIX),
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
                if let Some(interface) = text.strip_prefix(Self::GATE_PREFIX) {
                    return GroupThread::Gate(interface.into());
                }
                let words = KernelThread::WORDS.words.iter().map(|(word, _)| *word);
                cx.unknown(node, path, "kernel thread", words.chain([Self::INTERRUPT_FORM, Self::GATE_FORM]).collect());
                Self::unread()
            }
            _ => Self::unread(),
        }
    }

    fn unread() -> Self {
        GroupThread::EachCpu(KernelThread::Ksoftirqd)
    }

    fn write(&self) -> Text {
        Text::Word(self.name())
    }

    fn check(&self, _: &str, _: &str, _: &Kind, _: &mut Found) {}
}
