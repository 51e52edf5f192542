//! Decodes the annotations.

use std::collections::BTreeMap;

use macrotick_host::sys::parse_cpu_list;
use macrotick_model::validate::{MIN_BUDGET, PRIORITIES};
use macrotick_model::{Duration, Group, GroupTask};

use crate::error::{AnnotationFault, HookError};
use crate::limits::Limits;
use crate::tasks;

/// The prefix of all annotations of Macrotick.
const PREFIX: &str = "macrotick.";
/// Processor time in each server period.
pub const BUDGET: &str = "macrotick.budget";
/// The pool that serves the container.
pub const POOL: &str = "macrotick.pool";
/// The CPUs with the budget.
pub const CPUS: &str = "macrotick.cpus";
/// The tasks of the container that must meet their deadlines.
pub const TASKS: &str = "macrotick.tasks";
/// The group with the slots that the container's frames leave in.
pub const SLOT: &str = "macrotick.slot";
const CRITICALITY: &str = "macrotick.criticality";
const PRIORITY: &str = "macrotick.priority";
const BIND: &str = "macrotick.bind";
const FIFO: &str = "macrotick.fifo";
const LEAD: &str = "macrotick.lead";
const RTPRIO: &str = "macrotick.rtprio";
const MEMLOCK: &str = "macrotick.memlock";
const DESCENDANTS: &str = "macrotick.descendants";
const KNOWN: [&str; 13] =
    [BUDGET, TASKS, CPUS, BIND, PRIORITY, CRITICALITY, FIFO, LEAD, POOL, SLOT, RTPRIO, MEMLOCK, DESCENDANTS];
/// The annotations that apply to a budget, also to the budget of tasks.
const OF_BUDGETS: [&str; 5] = [CPUS, BIND, PRIORITY, FIFO, LEAD];

/// The annotation with which containerd marks the container that only holds the namespaces of a pod. That container
/// also has the annotations of the pod.
const SANDBOX: (&str, &str) = ("io.kubernetes.cri.container-type", "sandbox");

/// The unit of the kernel's files.
const MICROSECOND: Duration = Duration::from_micros(1);
/// The default criticality. Groups without a declaration have 0.
const CRITICAL: u32 = 1;

/// The request of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The supply that serves it.
    pub supply: Supply,
    /// The group of the deployment with the slots for its frames; `None`: no slot.
    pub slot: Option<String>,
    /// The limits of its threads.
    pub limits: Limits,
}

/// The way to serve a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Supply {
    /// A deferrable server: the container is a group.
    Budget(Budget),
    /// The same, with the parameters that tasks need.
    Tasks(Declared),
    /// Windows of the table: the container is the pool of this name.
    Pool(String),
}

/// A group's parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Processor time in every server period.
    pub length: Duration,
    /// The CPUs with the budget, in the kernel's notation; `None`: all.
    pub cpus: Option<String>,
    /// Whether the container stays on these CPUs.
    pub bind: bool,
    /// The priority of the group.
    pub priority: u32,
    /// Whether SCHED_FIFO and SCHED_RR mean SCHED_DS in the group.
    pub fifo: bool,
    /// The time by which its threads wake up early from a sleep; the kernel then holds them. `None`: no lead.
    pub lead: Option<Duration>,
}

/// Tasks that must meet their deadlines, and the parameters of their group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declared {
    /// The tasks.
    pub tasks: Vec<GroupTask>,
    /// How bad a failure of the container would be.
    pub criticality: u32,
    /// The priority of the group; `None`: by criticality.
    pub priority: Option<u32>,
    /// Processor time in every server period; `None`: the least with which no task misses.
    pub budget: Option<Duration>,
    /// The CPUs from which the admission chooses one; empty: all.
    pub cpus: Vec<u32>,
    /// Whether the container stays on the chosen CPU.
    pub bind: bool,
    /// Whether SCHED_FIFO and SCHED_RR mean SCHED_DS in the group.
    pub fifo: bool,
    /// The time by which its threads wake up early from a sleep; the kernel then holds them. Tasks need it in addition
    /// to their WCET. `None`: no lead.
    pub lead: Option<Duration>,
}

impl Request {
    /// Returns `None` for a container without annotations of Macrotick, and for one that runs nothing.
    pub fn decode(annotations: &BTreeMap<String, String>) -> Result<Option<Request>, HookError> {
        if annotations.get(SANDBOX.0).is_some_and(|kind| kind == SANDBOX.1) {
            return Ok(None);
        }
        let ours = Annotations::new(annotations)?;
        if ours.0.is_empty() {
            return Ok(None);
        }
        let (tasks, budget, pool) = (ours.text(TASKS), ours.text(BUDGET), ours.text(POOL));
        if tasks.is_none() {
            ours.refuse_any(&[CRITICALITY], AnnotationFault::NeedsTasks)?;
        }
        let supply = match (tasks, budget, pool) {
            (None, None, pool) => {
                ours.refuse_any(&OF_BUDGETS, AnnotationFault::NeedsBudget)?;
                match pool {
                    Some(pool) => Supply::Pool(pool.to_owned()),
                    // Limits alone are no request: the engine sets the limits of a container without a supply.
                    None => return Err(ours.first_fault(AnnotationFault::NeedsBudget)),
                }
            }
            (_, _, Some(pool)) => return Err(HookError::annotation(POOL, pool, AnnotationFault::PoolAndBudget)),
            (Some(text), _, None) => Supply::Tasks(ours.declared(text)?),
            (None, Some(text), None) => Supply::Budget(ours.budget(text)?),
        };
        Ok(Some(Request { supply, slot: ours.value(SLOT, None, |text| slot(text).map(Some))?, limits: ours.limits()? }))
    }
}

/// The annotations of Macrotick.
struct Annotations<'a>(BTreeMap<&'a str, &'a str>);

impl<'a> Annotations<'a> {
    fn new(all: &'a BTreeMap<String, String>) -> Result<Annotations<'a>, HookError> {
        let ours = all.iter().filter(|(key, _)| key.starts_with(PREFIX));
        let ours: BTreeMap<&str, &str> = ours.map(|(key, value)| (key.as_str(), value.as_str())).collect();
        match ours.iter().find(|(key, _)| !KNOWN.contains(key)) {
            Some((key, value)) => Err(HookError::annotation(key, value, AnnotationFault::Unknown(KNOWN.join(", ")))),
            None => Ok(Annotations(ours)),
        }
    }

    fn text(&self, key: &str) -> Option<&'a str> {
        self.0.get(key).copied()
    }

    /// Returns the value of an annotation, or `missing` if there is none.
    fn value<T>(
        &self,
        key: &str,
        missing: T,
        read: impl Fn(&str) -> Result<T, AnnotationFault>,
    ) -> Result<T, HookError> {
        match self.text(key) {
            None => Ok(missing),
            Some(text) => read(text).map_err(|fault| HookError::annotation(key, text, fault)),
        }
    }

    fn budget(&self, text: &str) -> Result<Budget, HookError> {
        let chooses = self.text(CPUS).is_some();
        if !chooses {
            self.refuse_any(&[BIND], AnnotationFault::NeedsCpus)?;
        }
        Ok(Budget {
            length: length(text).map_err(|fault| HookError::annotation(BUDGET, text, fault))?,
            cpus: self.value(CPUS, None, |text| cpus(text).map(Some))?,
            bind: self.value(BIND, chooses, truth)?,
            priority: self.value(PRIORITY, *PRIORITIES.start(), priority)?,
            // Otherwise nothing would bound a thread under SCHED_FIFO.
            fifo: self.value(FIFO, true, truth)?,
            lead: self.lead()?,
        })
    }

    fn declared(&self, text: &str) -> Result<Declared, HookError> {
        let numbers = |text: &str| cpus(text).map(|text| parse_cpu_list(&text));
        Ok(Declared {
            tasks: tasks::decode(text).map_err(|fault| HookError::annotation(TASKS, text, fault))?,
            criticality: self.value(CRITICALITY, CRITICAL, |text| number(text, 0, u32::MAX))?,
            priority: self.value(PRIORITY, None, |text| priority(text).map(Some))?,
            budget: self.value(BUDGET, None, |text| length(text).map(Some))?,
            cpus: self.value(CPUS, Vec::new(), numbers)?,
            bind: self.value(BIND, true, truth)?,
            fifo: self.value(FIFO, true, truth)?,
            lead: self.lead()?,
        })
    }

    fn lead(&self) -> Result<Option<Duration>, HookError> {
        self.value(LEAD, None, |text| lead(text).map(Some))
    }

    fn limits(&self) -> Result<Limits, HookError> {
        let rtprio = self.value(RTPRIO, *PRIORITIES.end(), |text| number(text, 0, *PRIORITIES.end()))?;
        let memlock = self.value(MEMLOCK, None, bytes)?;
        let descendants = self.value(DESCENDANTS, None, |text| number(text, 0, i32::MAX as u32).map(Some))?;
        Ok(Limits { rtprio: rtprio.into(), memlock, descendants })
    }

    /// Fails with the first of these annotations that exists.
    fn refuse_any(&self, keys: &[&str], fault: AnnotationFault) -> Result<(), HookError> {
        match keys.iter().find_map(|key| self.text(key).map(|text| (key, text))) {
            Some((key, text)) => Err(HookError::annotation(key, text, fault)),
            None => Ok(()),
        }
    }

    fn first_fault(&self, fault: AnnotationFault) -> HookError {
        let (key, value) = self.0.first_key_value().expect("there is an annotation");
        HookError::annotation(key, value, fault)
    }
}

fn time(text: &str) -> Result<Duration, AnnotationFault> {
    text.parse().map_err(|error| AnnotationFault::Length(format!("{error}")))
}

fn length(text: &str) -> Result<Duration, AnnotationFault> {
    let length = time(text)?;
    match length >= MIN_BUDGET && length.is_multiple_of(MICROSECOND) {
        true => Ok(length),
        false => Err(AnnotationFault::Granule),
    }
}

fn lead(text: &str) -> Result<Duration, AnnotationFault> {
    let lead = time(text)?;
    match (Group::MIN_LEAD..=Group::MAX_LEAD).contains(&lead) && lead.is_multiple_of(MICROSECOND) {
        true => Ok(lead),
        false => Err(AnnotationFault::Lead),
    }
}

fn slot(text: &str) -> Result<String, AnnotationFault> {
    match text.is_empty() || text.chars().any(|c| c.is_whitespace() || c.is_control()) {
        true => Err(AnnotationFault::SlotName),
        false => Ok(text.to_owned()),
    }
}

fn number(text: &str, least: u32, most: u32) -> Result<u32, AnnotationFault> {
    let number = text.parse().ok().filter(|number| (least..=most).contains(number));
    number.ok_or(AnnotationFault::Range(least, most))
}

fn priority(text: &str) -> Result<u32, AnnotationFault> {
    number(text, *PRIORITIES.start(), *PRIORITIES.end())
}

fn truth(text: &str) -> Result<bool, AnnotationFault> {
    text.parse().map_err(|_| AnnotationFault::Truth)
}

/// Returns `None` for no limit.
fn bytes(text: &str) -> Result<Option<u64>, AnnotationFault> {
    match text {
        "unlimited" => Ok(None),
        text => text.parse().map(Some).map_err(|_| AnnotationFault::Bytes),
    }
}

/// Returns a list in the kernel's notation. The kernel itself checks that the CPUs exist.
fn cpus(text: &str) -> Result<String, AnnotationFault> {
    let cpu = |text: &str| text.parse::<u16>().ok();
    let is_range = |range: &str| match range.split_once('-') {
        None => cpu(range).is_some(),
        Some((first, last)) => cpu(first).zip(cpu(last)).is_some_and(|(first, last)| first <= last),
    };
    match text.split(',').all(is_range) {
        true => Ok(text.to_owned()),
        false => Err(AnnotationFault::Cpus),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(pairs: &[(&str, &str)]) -> Result<Option<Request>, HookError> {
        Request::decode(&pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect())
    }

    #[test]
    fn a_budget_alone_is_enough() {
        let limits = Limits { rtprio: 99, memlock: None, descendants: None };
        let length = Duration::from_millis(1);
        let budget = Budget { length, cpus: None, bind: false, priority: 1, fifo: true, lead: None };
        let request = decode(&[("macrotick.budget", "1ms"), ("other.budget", "?")]).unwrap().unwrap();
        assert_eq!(request, Request { supply: Supply::Budget(budget), slot: None, limits });
    }

    #[test]
    fn all_of_it_is_understood() {
        let pairs = [
            (BUDGET, "250us"),
            (CPUS, "0,2-3"),
            (PRIORITY, "40"),
            (FIFO, "false"),
            (LEAD, "20us"),
            (RTPRIO, "50"),
            (MEMLOCK, "1048576"),
            (DESCENDANTS, "200"),
        ];
        let request = decode(&pairs).unwrap().unwrap();
        let cpus = Some("0,2-3".to_owned());
        let (length, lead) = (Duration::from_micros(250), Some(Duration::from_micros(20)));
        let budget = Budget { length, cpus, bind: true, priority: 40, fifo: false, lead };
        assert_eq!(request.supply, Supply::Budget(budget.clone()));
        let roams = decode(&[&pairs[..], &[(BIND, "false")]].concat()).unwrap().unwrap();
        assert_eq!(roams.supply, Supply::Budget(Budget { bind: false, ..budget }));
        assert_eq!(request.limits, Limits { rtprio: 50, memlock: Some(1 << 20), descendants: Some(200) });
        assert_eq!(decode(&[(POOL, "web")]).unwrap().unwrap().supply, Supply::Pool("web".into()));
        let with_slot = decode(&[(POOL, "web"), (SLOT, "vendor-a")]).unwrap().unwrap();
        assert_eq!(with_slot.slot.as_deref(), Some("vendor-a"));
    }

    #[test]
    fn tasks_come_with_what_is_said_of_their_group() {
        let decoded = |pairs: &[(&str, &str)]| match decode(pairs).unwrap().unwrap().supply {
            Supply::Tasks(declared) => declared,
            other => panic!("{other:?}"),
        };
        let alone = decoded(&[(TASKS, "loop wcet=200us period=5ms")]);
        assert_eq!((alone.tasks.len(), alone.tasks[0].name.as_str()), (1, "loop"));
        let rest = (alone.criticality, alone.priority, alone.budget, &alone.cpus[..], alone.bind, alone.fifo);
        assert_eq!(rest, (1, None, None, &[][..], true, true));
        assert_eq!(alone.lead, None);
        let pairs = [
            (TASKS, "loop wcet=200us period=5ms"),
            (BUDGET, "1ms"),
            (CPUS, "0,2-3"),
            (CRITICALITY, "7"),
            (BIND, "false"),
            (FIFO, "false"),
            (LEAD, "1ms"),
        ];
        let all = decoded(&pairs);
        let rest = (all.criticality, all.budget, &all.cpus[..], all.bind, all.fifo);
        assert_eq!(rest, (7, Some(Duration::from_millis(1)), &[0, 2, 3][..], false, false));
        assert_eq!(all.lead, Some(Duration::from_millis(1)));
    }

    #[test]
    fn who_has_no_annotation_of_ours_is_left_alone() {
        assert_eq!(decode(&[]).unwrap(), None);
        assert_eq!(decode(&[("io.budget", "1"), ("macrotick", "yes")]).unwrap(), None);
        assert_eq!(decode(&[(BUDGET, "1ms"), SANDBOX]).unwrap(), None);
        assert!(decode(&[(BUDGET, "1ms"), (SANDBOX.0, "container")]).unwrap().is_some());
    }

    #[test]
    fn what_is_wrong_is_named_with_its_reason() {
        for (pairs, said) in [
            (&[(BUDGET, "1")][..], "annotation macrotick.budget: 1: "),
            (&[(BUDGET, "5us")], "annotation macrotick.budget: 5us: a budget is a whole number of microseconds"),
            (&[(BUDGET, "100500ns")], "whole number of microseconds"),
            (&[(BUDGET, "-1ms")], "whole number of microseconds"),
            (
                &[(BUDGET, "1ms"), (PRIORITY, "100")],
                "annotation macrotick.priority: 100: it must be a whole number from 1",
            ),
            (&[(BUDGET, "1ms"), (FIFO, "1")], "annotation macrotick.fifo: 1: it must be `true` or `false`"),
            (
                &[(BUDGET, "1ms"), (LEAD, "1001us")],
                "annotation macrotick.lead: 1001us: a lead is a whole number of microseconds, 1us to 1ms",
            ),
            (&[(BUDGET, "1ms"), (LEAD, "1500ns")], "a lead is a whole number of microseconds"),
            (&[(BUDGET, "1ms"), (LEAD, "0us")], "a lead is a whole number of microseconds"),
            (&[(BUDGET, "1ms"), (LEAD, "-1us")], "a lead is a whole number of microseconds"),
            (&[(BUDGET, "1ms"), (LEAD, "20")], "annotation macrotick.lead: 20: "),
            (&[(BUDGET, "1ms"), (CPUS, "3-2")], "annotation macrotick.cpus: 3-2: it must be a list of CPUs"),
            (&[(BUDGET, "1ms"), (CPUS, "0=1")], "it must be a list of CPUs"),
            (&[(BUDGET, "1ms"), (BIND, "false")], "annotation macrotick.bind: false: it needs macrotick.cpus"),
            (&[(BUDGET, "1ms"), (CPUS, "")], "it must be a list of CPUs"),
            (&[(BUDGET, "1ms"), (RTPRIO, "-1")], "annotation macrotick.rtprio: -1: it must be a whole number from 0"),
            (&[(BUDGET, "1ms"), (MEMLOCK, "1G")], "annotation macrotick.memlock: 1G: it must be a number of bytes"),
            (&[(BUDGET, "1ms"), (POOL, "web")], "a container has a pool or a budget, not both"),
            (&[(POOL, "web"), (PRIORITY, "3")], "annotation macrotick.priority: 3: it needs macrotick.budget"),
            (&[(POOL, "web"), (LEAD, "20us")], "annotation macrotick.lead: 20us: it needs macrotick.budget"),
            (&[(TASKS, "a"), (POOL, "web")], "a container has a pool or a budget, not both"),
            (&[(TASKS, "a wcet=1ms")], "annotation macrotick.tasks: a wcet=1ms: cannot decode the tasks:\nerror: "),
            (&[(BUDGET, "1ms"), (CRITICALITY, "3")], "annotation macrotick.criticality: 3: it needs macrotick.tasks"),
            (&[(TASKS, "a wcet=1ms period=9ms"), (BUDGET, "1")], "annotation macrotick.budget: 1: "),
            (&[(SLOT, "web")], "annotation macrotick.slot: web: it needs macrotick.budget"),
            (&[(POOL, "web"), (SLOT, "")], "annotation macrotick.slot: : it must be the name of a group with slots"),
            (&[(POOL, "web"), (SLOT, "1ms of 6ms")], "it must be the name of a group with slots"),
            (&[(RTPRIO, "3")], "annotation macrotick.rtprio: 3: it needs macrotick.budget"),
            (
                &[("macrotick.bugdet", "1ms")],
                "annotation macrotick.bugdet: 1ms: unknown annotation; the known annotations are",
            ),
        ] {
            let error = decode(pairs).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
