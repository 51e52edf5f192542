//! One object of `tasks`, with its only phase.

use macrotick_model::validate::MAX_TASKS;

use super::events::{is_event, Events};
use super::fields::Field;
use super::json::Value;
use super::own::{self, Own};
use super::policy::{Class, Policy};
use crate::findings::Findings;

/// A thread of rt-app, or several with the same values.
pub struct Thread<'a> {
    /// Its key in `tasks`.
    pub name: &'a str,
    /// Its path in the file.
    pub path: String,
    /// The number of threads.
    pub instances: i64,
    /// The delay of the first round in microseconds.
    pub delay: i64,
    /// The policy.
    pub policy: Policy,
    /// The reservation of SCHED_DEADLINE.
    pub reserved: Reserved,
    /// The CPUs; `None` stands for all.
    pub cpus: Option<Vec<u32>>,
    /// The events of a round.
    pub events: Events,
    /// The values that rt-app lacks.
    pub own: Own,
}

/// The keys of a reservation, in microseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reserved {
    /// The budget in each period.
    pub runtime: Option<i64>,
    /// The period.
    pub period: Option<i64>,
    /// The deadline.
    pub deadline: Option<i64>,
}

/// The keys that a thread and its phases can have.
#[derive(Default)]
struct Properties<'a> {
    policy: Option<Field<'a>>,
    priority: Option<Field<'a>>,
    runtime: Option<Field<'a>>,
    period: Option<Field<'a>>,
    deadline: Option<Field<'a>>,
    cpus: Option<Field<'a>>,
}

/// Everything in a thread or in a phase.
#[derive(Default)]
struct Parts<'a> {
    properties: Properties<'a>,
    events: Vec<(&'a str, Field<'a>)>,
    instance: Option<Field<'a>>,
    delay: Option<Field<'a>>,
    phases: Option<Field<'a>>,
    own: Option<Field<'a>>,
}

impl<'a> Properties<'a> {
    /// Returns the values of a phase, and for those that it lacks the values of its thread.
    fn or(self, thread: Properties<'a>) -> Properties<'a> {
        Properties {
            policy: self.policy.or(thread.policy),
            priority: self.priority.or(thread.priority),
            runtime: self.runtime.or(thread.runtime),
            period: self.period.or(thread.period),
            deadline: self.deadline.or(thread.deadline),
            cpus: self.cpus.or(thread.cpus),
        }
    }
}

impl<'a> Parts<'a> {
    fn read(of: &Field<'a>, is_thread: bool, findings: &mut Findings) -> Parts<'a> {
        let mut parts = Parts::default();
        for (key, field) in of.entries(findings) {
            if is_event(key) {
                parts.events.push((key, field));
                continue;
            }
            let properties = &mut parts.properties;
            let slot = match key {
                "policy" => &mut properties.policy,
                "priority" => &mut properties.priority,
                "dl-runtime" => &mut properties.runtime,
                // The keys without `dl-` are those of older files.
                "dl-period" | "period" => &mut properties.period,
                "dl-deadline" | "deadline" => &mut properties.deadline,
                "cpus" => &mut properties.cpus,
                "instance" if is_thread => &mut parts.instance,
                "delay" if is_thread => &mut parts.delay,
                "phases" if is_thread => &mut parts.phases,
                own::KEY if is_thread => &mut parts.own,
                "loop" => {
                    rounds(&field, is_thread, findings);
                    continue;
                }
                "exec" => {
                    let text = "is a key of rt-app before phases and events: write `run` and `timer`";
                    findings.refuse(&field.path, text);
                    continue;
                }
                other => {
                    findings.remark(&field.path, without_counterpart(other));
                    continue;
                }
            };
            if slot.is_some() {
                findings.refuse(&field.path, "is given twice");
            }
            *slot = Some(field);
        }
        parts
    }
}

/// Notes that a thread ends by itself. The rounds of an only phase do not matter.
fn rounds(field: &Field, is_thread: bool, findings: &mut Findings) {
    let rounds = field.whole((-1, i64::from(i32::MAX)), findings);
    if is_thread && rounds.is_some_and(|rounds| rounds >= 0) {
        findings.remark(&field.path, "a task or process has no number of rounds and does not end by itself");
    }
}

fn without_counterpart(key: &str) -> &'static str {
    match key {
        "taskgroup" => "a task group becomes a group only with a budget or windows: add it by hand",
        "util_min" | "util_max" => "utilisation clamps have no counterpart and are left out",
        "membind_nodes" | "nodes_membind" => "the binding of memory has no counterpart and is left out",
        _ => "this key is unknown and is left out",
    }
}

impl<'a> Thread<'a> {
    /// Reads a thread. Returns `None` if it is refused.
    pub fn read(name: &'a str, field: &Field<'a>, default: Class, findings: &mut Findings) -> Option<Thread<'a>> {
        let before = findings.refused();
        let thread = Parts::read(field, true, findings);
        let (properties, events) = match &thread.phases {
            None => (thread.properties, thread.events),
            Some(phases) => {
                for (_, event) in &thread.events {
                    findings.remark(&event.path, "rt-app ignores an event beside `phases`");
                }
                let phase = only_phase(phases, findings)?;
                let phase = Parts::read(&phase, false, findings);
                (phase.properties.or(thread.properties), phase.events)
            }
        };
        let class = properties.policy.as_ref().map_or(Some(default), |policy| Class::read(policy, findings));
        let policy = Policy::read(class?, properties.priority.as_ref(), findings)?;
        let (reserved, events) = reserved(policy.class, &properties, events, findings);
        let mut all = Events::default();
        events.iter().for_each(|(key, event)| all.add(key, event, findings));
        let thread = Thread {
            name,
            path: field.path.clone(),
            instances: thread.instance.map_or(Some(1), |field| field.whole((0, MAX_TASKS as i64), findings))?,
            delay: thread.delay.map_or(Some(0), |field| field.micros(findings))?,
            policy,
            reserved,
            cpus: properties.cpus.as_ref().and_then(|cpus| cpus.cpus(findings)),
            events: all,
            own: thread.own.map(|field| Own::read(&field, findings)).unwrap_or_default(),
        };
        // A wrong value is reported once. Rules between values would report it again.
        (findings.refused() == before).then_some(thread)
    }
}

/// Returns the phase if there is exactly one. Several are refused.
fn only_phase<'a>(phases: &Field<'a>, findings: &mut Findings) -> Option<Field<'a>> {
    if !matches!(phases.value, Value::Object(_)) {
        phases.entries(findings);
        return None;
    }
    let mut all = phases.entries(findings);
    if all.len() > 1 {
        let text = format!(
            "{} phases have no counterpart in a built-in job: write a program, or run rt-app in a group",
            all.len()
        );
        findings.refuse(&phases.path, text);
        return None;
    }
    let phase = all.pop();
    if phase.is_none() {
        findings.refuse(&phases.path, "has no phase");
    }
    Some(phase?.1)
}

/// The events of a phase with their keys.
type Keyed<'a> = Vec<(&'a str, Field<'a>)>;

/// Reads the keys of a reservation. Under another policy they have no effect on a task.
fn reserved<'a>(
    class: Class,
    properties: &Properties,
    mut events: Keyed<'a>,
    findings: &mut Findings,
) -> (Reserved, Keyed<'a>) {
    let Properties { runtime, period, deadline, .. } = properties;
    if class != Class::Deadline {
        for field in [runtime, period, deadline].into_iter().flatten() {
            findings.remark(&field.path, "has an effect only under SCHED_DEADLINE");
        }
        return (Reserved::default(), events);
    }
    let mut runtime = runtime.as_ref().and_then(|field| field.micros(findings));
    if runtime.is_none() {
        let of_old_files = events.iter().position(|(key, _)| *key == "runtime");
        let computes = events.iter().any(|(key, _)| key.starts_with("run") && *key != "runtime");
        if let Some(index) = of_old_files {
            let field = events[index].1.clone();
            runtime = field.micros(findings);
            if computes {
                findings.remark(&field.path, "is the runtime of the reservation, as in files before `dl-runtime`");
                events.remove(index);
            }
        }
    }
    let mut micros = |field: &Option<Field>| field.as_ref().and_then(|field| field.micros(findings));
    (Reserved { runtime, period: micros(period), deadline: micros(deadline) }, events)
}
