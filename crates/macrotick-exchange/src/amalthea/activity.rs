//! The activity graphs of tasks and runnables: their ticks on the longest path, their calls, and their triggers.

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use super::bounds::most;
use super::cost::{Cost, Ticks};
use super::element::{Element, Key, Refusal};
use super::hardware::{Hardware, Kind, INSTRUCTIONS};
use super::model::Model;
use super::units::{whole, Ratio};
use crate::findings::{cut, Findings};

/// The graphs of a model. The cost of a runnable is computed once.
pub struct Activities<'m, 'a> {
    model: &'m Model<'a>,
    hardware: &'m Hardware,
    runnables: HashMap<Key, State>,
    /// The runnables that each runnable calls.
    pub calls: HashMap<Key, Vec<Key>>,
    /// The stimuli that something else than an imported task triggers, such as a runnable.
    pub triggered_elsewhere: BTreeSet<Key>,
    /// The kinds of CPU without a feature that counts instructions, where a runnable needs them.
    pub without_feature: BTreeSet<usize>,
    /// Whether a graph accesses labels.
    pub has_accesses: bool,
    /// The first access at a logical execution time.
    pub timed: Option<String>,
}

enum State {
    /// The cost is not complete: another call of the runnable comes from itself.
    Open,
    Done(Rc<Cost>),
}

/// The graph of a task or runnable.
#[derive(Default)]
pub struct Graph<'a> {
    /// The runnables that it calls.
    pub calls: Vec<Key>,
    /// The stimuli that it triggers.
    pub triggers: Vec<Trigger<'a>>,
}

/// An item that triggers a stimulus of other tasks.
pub struct Trigger<'a> {
    /// The stimulus.
    pub stimulus: Key,
    /// The item.
    pub item: Element<'a>,
    /// The number of jobs for each trigger.
    pub prescaler: i64,
}

/// The tags of graphs in all versions.
const GRAPHS: [&str; 2] = ["activityGraph", "callGraph"];
/// The tags of items in all versions.
const ITEMS: [&str; 4] = ["items", "graphEntries", "calls", "runnableItems"];
/// The most groups and calls within each other.
const MOST_LEVELS: usize = 64;

impl<'m, 'a> Activities<'m, 'a> {
    /// Begins without any graph.
    pub fn new(model: &'m Model<'a>, hardware: &'m Hardware) -> Activities<'m, 'a> {
        Activities {
            model,
            hardware,
            runnables: HashMap::new(),
            calls: HashMap::new(),
            triggered_elsewhere: BTreeSet::new(),
            without_feature: BTreeSet::new(),
            has_accesses: false,
            timed: None,
        }
    }

    /// Returns the cost of a task's jobs, and its graph.
    pub fn task(&mut self, task: Element<'a>, findings: &mut Findings) -> (Cost, Graph<'a>) {
        let mut graph = Graph::default();
        let cost = self.graph(task, 0, &mut graph, findings);
        (cost, graph)
    }

    /// Notes the triggers of a task or interrupt routine that is not imported. Its other items have no meaning here.
    pub fn other(&mut self, process: Element<'a>) {
        let (_, graph) = self.task(process, &mut Findings::default());
        self.triggered_elsewhere.extend(graph.triggers.iter().map(|trigger| trigger.stimulus));
    }

    /// Returns the cost of the graph of a task or runnable. Older runnables have items without a graph around them.
    fn graph(&mut self, owner: Element<'a>, level: usize, graph: &mut Graph<'a>, findings: &mut Findings) -> Cost {
        let mut cost = self.sequence(owner, level, graph, findings);
        for inner in owner.elements().filter(|element| GRAPHS.contains(&element.tag())) {
            let more = self.sequence(inner, level, graph, findings);
            cost.add(&more, || beyond(owner));
        }
        cost
    }

    /// Returns the cost of all items within an element.
    fn sequence(&mut self, parent: Element<'a>, level: usize, graph: &mut Graph<'a>, findings: &mut Findings) -> Cost {
        let mut cost = self.none();
        for item in parent.elements().filter(|element| ITEMS.contains(&element.tag())) {
            let more = match level < MOST_LEVELS {
                true => self.item(item, level, graph, findings),
                false => self.refused(item, format!("more than {MOST_LEVELS} groups and calls within each other")),
            };
            cost.add(&more, || beyond(parent));
        }
        cost
    }

    fn item(&mut self, item: Element<'a>, level: usize, graph: &mut Graph<'a>, findings: &mut Findings) -> Cost {
        if item.child("counter").is_some() && !is_trigger(item) {
            findings.remark(item.path(), "counts in each job, without its counter");
        }
        match item.kind() {
            "Ticks" => self.each(item, findings, |kind, entry| match entry {
                Some(entry) => most(entry).map_err(Rc::new),
                None => Err(item.shared_refusal(format!("there are no ticks for `{}`", cut(&kind.name)))),
            }),
            "RunnableInstructions" => self.instructions(item, findings),
            "ExecutionNeed" => self.needs(item, findings),
            "RunnableCall" | "TaskRunnableCall" => self.call(item, level, graph, findings),
            "Group" | "CallSequence" => self.sequence(item, level + 1, graph, findings),
            "WhileLoop" => self.refused(item, "a loop has no bound on its rounds"),
            kind if kind.ends_with("Switch") => self.switch(item, level, graph, findings),
            _ if is_trigger(item) => self.trigger(item, graph),
            _ => {
                self.without_time(item, findings);
                self.none()
            }
        }
    }

    /// Returns the cost of the longest branch.
    fn switch(&mut self, item: Element<'a>, level: usize, graph: &mut Graph<'a>, findings: &mut Findings) -> Cost {
        findings.remark(item.path(), "each job has the time of the longest branch");
        let mut cost = self.none();
        for entry in item.elements().filter(|element| ["entries", "defaultEntry"].contains(&element.tag())) {
            let branch = self.sequence(entry, level + 1, graph, findings);
            cost.or(&branch);
        }
        cost
    }

    /// Returns the cost of a called runnable. A statistic can say how often it is called.
    fn call(&mut self, item: Element<'a>, level: usize, graph: &mut Graph<'a>, findings: &mut Findings) -> Cost {
        let runnable = match self.model.target_of(item, "runnable") {
            Ok(Some(runnable)) => runnable,
            Ok(None) => return self.refused(item, "the call names no runnable"),
            Err(refusal) => return Cost::refused(self.hardware.kinds.len(), Rc::new(refusal)),
        };
        graph.calls.push(runnable.key());
        let mut cost = (*self.runnable(runnable, level + 1, findings)).clone();
        match rounds(item) {
            Ok(1) => {}
            Ok(rounds) => {
                findings.remark(item.path(), format!("counts {rounds} times, as its statistic says"));
                cost.repeat(rounds, || beyond(item));
            }
            Err(refusal) => cost = Cost::refused(self.hardware.kinds.len(), Rc::new(refusal)),
        }
        cost
    }

    fn runnable(&mut self, runnable: Element<'a>, level: usize, findings: &mut Findings) -> Rc<Cost> {
        match self.runnables.get(&runnable.key()) {
            Some(State::Done(cost)) => return cost.clone(),
            Some(State::Open) => return Rc::new(self.refused(runnable, "the runnable calls itself")),
            None => {}
        }
        self.runnables.insert(runnable.key(), State::Open);
        let mut graph = Graph::default();
        let cost = Rc::new(self.graph(runnable, level, &mut graph, findings));
        self.calls.insert(runnable.key(), graph.calls);
        self.triggered_elsewhere.extend(graph.triggers.iter().map(|trigger| trigger.stimulus));
        self.runnables.insert(runnable.key(), State::Done(cost.clone()));
        cost
    }

    /// Returns the cost of an item with entries for each kind of CPU: the extended one of its definition, or the default.
    /// An item without any entry has no ticks, which a remark names.
    fn each(
        &self,
        item: Element<'a>,
        findings: &mut Findings,
        ticks: impl Fn(&Kind, Option<Element<'a>>) -> Ticks,
    ) -> Cost {
        let mut extended = Vec::new();
        for entry in item.children("extended") {
            match self.model.target_of(entry, "key") {
                Ok(definition) => extended.push((definition.map(|definition| definition.key()), entry)),
                Err(refusal) => return Cost::refused(self.hardware.kinds.len(), Rc::new(refusal)),
            }
        }
        if extended.is_empty() && item.elements().next().is_none() {
            findings.remark(item.path(), "this item has no entry and counts no time");
            return self.none();
        }
        Cost::each(self.hardware.kinds.iter().map(|kind| {
            let special = extended.iter().find(|(key, _)| key.is_some() && *key == kind.definition);
            ticks(kind, special.and_then(|(_, entry)| entry.child("value")).or(item.child("default")))
        }))
    }

    /// Returns the ticks of the instructions of older models.
    fn instructions(&mut self, item: Element<'a>, findings: &mut Findings) -> Cost {
        self.note_feature(INSTRUCTIONS);
        self.each(item, findings, |kind, entry| match entry {
            Some(entry) => in_ticks(kind, INSTRUCTIONS, entry, entry),
            None => Err(item.shared_refusal(format!("there are no instructions for `{}`", cut(&kind.name)))),
        })
    }

    /// Returns the ticks of execution needs. Older models have `default` and `extended` around them.
    fn needs(&mut self, item: Element<'a>, findings: &mut Findings) -> Cost {
        let is_need = |element: &Element| ["needs", "default"].contains(&element.tag());
        let is_counted = item.descendants().any(|need| is_need(&need) && need.attribute("key") == Some(INSTRUCTIONS));
        if is_counted {
            self.note_feature(INSTRUCTIONS);
        }
        let is_extended = item.child("extended").is_some();
        self.each(item, findings, |kind, entry| {
            // The default entries are needs themselves, and stand directly in the item.
            let holder = entry.filter(|entry| is_extended && entry.tag() == "value").unwrap_or(item);
            let mut needs = holder.elements().filter(is_need).peekable();
            if needs.peek().is_none() {
                return Err(item.shared_refusal(format!("there are no needs for `{}`", cut(&kind.name))));
            }
            let mut sum = 0i64;
            for need in needs {
                let key = need.attribute("key").unwrap_or_default();
                let value = need.child("value").ok_or_else(|| need.shared_refusal("the need has no value"))?;
                let ticks = in_ticks(kind, key, need, value)?;
                sum = sum.checked_add(ticks).ok_or_else(|| beyond(item))?;
            }
            Ok(sum)
        })
    }

    fn note_feature(&mut self, need: &str) {
        let kinds = self.hardware.kinds.iter().enumerate();
        self.without_feature.extend(kinds.filter(|(_, kind)| kind.feature(need).is_none()).map(|(index, _)| index));
    }

    fn trigger(&mut self, item: Element<'a>, graph: &mut Graph<'a>) -> Cost {
        let prescaler = item.child("counter").map_or(Ok(None), |counter| whole(counter, "prescaler"));
        match (self.model.target_of(item, "stimulus"), prescaler) {
            (Ok(Some(stimulus)), Ok(prescaler)) => {
                let prescaler = prescaler.unwrap_or(1);
                graph.triggers.push(Trigger { stimulus: stimulus.key(), item, prescaler });
                self.none()
            }
            (Ok(None), _) => self.refused(item, "the trigger names no stimulus"),
            (Err(refusal), _) | (_, Err(refusal)) => Cost::refused(self.hardware.kinds.len(), Rc::new(refusal)),
        }
    }

    /// Notes an item that has no time in a table.
    fn without_time(&mut self, item: Element<'a>, findings: &mut Findings) {
        match item.kind() {
            "LabelAccess" => {
                self.has_accesses = true;
                if item.attribute("implementation") == Some("timed") && self.timed.is_none() {
                    self.timed = Some(item.path());
                }
            }
            kind if kind.ends_with("Access") && kind != "SemaphoreAccess" => self.has_accesses = true,
            kind if kind.starts_with("SenderReceiver") || kind.starts_with("Channel") => self.has_accesses = true,
            kind if WITHOUT_TIME.contains(&kind) => {}
            kind => {
                let known = LEFT_OUT.iter().find(|(other, _)| *other == kind).map(|(_, reason)| *reason);
                findings.remark(item.path(), known.unwrap_or("this item is unknown and counts no time"));
            }
        }
    }

    fn none(&self) -> Cost {
        Cost::none(self.hardware.kinds.len())
    }

    fn refused(&self, element: Element, reason: impl Into<String>) -> Cost {
        Cost::refused(self.hardware.kinds.len(), element.shared_refusal(reason))
    }
}

/// Items that need no counterpart.
const WITHOUT_TIME: [&str; 8] = [
    "ClearEvent",
    "CustomEventTrigger",
    "EventActivation",
    "LocalModeLabelAssignment",
    "ModeLabelAssignment",
    "SchedulePoint",
    "SetEvent",
    "TerminateProcess",
];

/// Items without a counterpart, each with the reason.
const LEFT_OUT: [(&str, &str); 6] = [
    ("WaitEvent", WAIT),
    ("GetResultServerCall", WAIT),
    ("SynchronousServerCall", "the time of a server is not counted"),
    ("AsynchronousServerCall", "the time of a server is not counted"),
    ("SemaphoreAccess", "a semaphore is left out: see `exclusive` of the description"),
    ("EnforcedMigration", "a migration is left out: the planner chooses the CPU"),
];
const WAIT: &str = "a wait is left out: see `after` of the description";

fn is_trigger(item: Element) -> bool {
    ["InterProcessTrigger", "InterProcessActivation"].contains(&item.kind())
}

fn beyond(element: Element) -> Rc<Refusal> {
    element.shared_refusal("the sum of ticks is too large")
}

/// Returns how often a runnable is called: the most of the statistic, and at least once.
fn rounds(item: Element) -> Result<i64, Refusal> {
    let Some(statistic) = item.child("statistic") else { return Ok(1) };
    let statistic = statistic.child("statistic").unwrap_or(statistic);
    let Some(text) = statistic.attribute("max").or(statistic.attribute("value")) else { return Ok(1) };
    match Ratio::parse(text).and_then(|number| i64::try_from(number.ceil()).ok()) {
        Some(rounds) => Ok(rounds.max(1)),
        None => Err(statistic.refusal(format!("`{}` is no number of calls", cut(text)))),
    }
}

/// Returns the ticks of a need: its upper bound, divided by the feature of the CPU, and rounded up to whole ticks.
fn in_ticks(kind: &Kind, key: &str, need: Element, value: Element) -> Ticks {
    let work = most(value).map_err(Rc::new)?;
    let one = Ratio { above: 1, below: 1 };
    let Some(feature) = kind.feature(key).or(Some(one).filter(|_| key == INSTRUCTIONS)) else {
        let reason = format!("`{}` has no feature of the category `{}`", cut(&kind.name), cut(key));
        return Err(need.shared_refusal(reason));
    };
    let ticks = feature.divide(work.into()).and_then(|ticks| i64::try_from(ticks).ok());
    ticks.ok_or_else(|| beyond(need))
}
