//! `macrotick admit`

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use macrotick_analysis::servers::{self, Admission, Change, Host, HostError, Refusal, ServersError, TaskAnalysis};
use macrotick_model::{Container, Duration, Finding, Group, Plan};
use macrotick_report::output;
use serde::Serialize;

use crate::args::AdmitArgs;
use crate::described;
use crate::error::CliError;
use crate::host::Base;
use crate::Outcome;

/// Answers for containers; each answer counts the containers before it that were admitted.
pub fn execute(args: &AdmitArgs) -> Result<Outcome, CliError> {
    let containers = args.containers.iter().map(|path| Container::load(path)).collect::<Result<Vec<_>, _>>()?;
    let begun = Instant::now();
    let mut base = match &args.system {
        Some(path) => Base::described(path)?,
        None => Base::here()?,
    };
    let answers = args.containers.iter().zip(&containers).map(|(path, container)| answer(&mut base, path, container));
    let answers = answers.collect::<Result<Vec<_>, CliError>>()?;
    let took = Duration::from_nanos(begun.elapsed().as_nanos() as i64);
    let admitted = answers.iter().all(|answer| matches!(answer.verdict, Verdict::Admitted(_)));
    if args.json {
        let told = Told { against: &base.what, remarks: &base.remarks, containers: &answers, took };
        output::print_json(&format!("{}\n", serde_json::to_string_pretty(&told).expect("an answer is always JSON")));
    } else {
        output::print(describe(&base, &answers, took));
    }
    Ok(if admitted { Outcome::Done } else { Outcome::DoesNotHold })
}

/// All answers, for programs.
#[derive(Serialize)]
struct Told<'a> {
    against: &'a str,
    remarks: &'a [String],
    containers: &'a [Answer],
    /// Time for reading and analysing the host and for all answers.
    took: Duration,
}

/// The answer for one container.
#[derive(Serialize)]
struct Answer {
    #[serde(skip)]
    container: Container,
    name: String,
    #[serde(flatten)]
    verdict: Verdict,
}

#[derive(Serialize)]
#[serde(tag = "answer", rename_all = "kebab-case")]
enum Verdict {
    Admitted(Box<Place>),
    Refused { reasons: Vec<Reason> },
}

/// The place of a container, and the changes that it needs.
#[derive(Serialize)]
struct Place {
    cpu: u32,
    priority: u32,
    budget: Duration,
    tasks: Vec<TaskAnalysis>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    slots: Vec<SlotPlace>,
    changes: Vec<Change>,
    #[serde(skip)]
    host: Host,
    /// The container as a group of the system.
    #[serde(skip)]
    group: Group,
}

/// The place of a slot in the gates of the plan.
#[derive(Serialize)]
struct SlotPlace {
    interface: String,
    #[serde(flatten)]
    slot: macrotick_check::network::Slot,
}

#[derive(Serialize)]
struct Reason {
    text: String,
    /// The analysis's reason; `None`: the analysis has no objection, but there is no plan with the container.
    #[serde(flatten)]
    refusal: Option<Refusal>,
}

/// Admits a container to the host, if it fits there.
fn answer(base: &mut Base, path: &Path, container: &Container) -> Result<Answer, CliError> {
    if base.names.contains(&container.name) {
        let text = format!("duplicate name `{}`: another task, group or process has this name", container.name);
        return Err(refused(path, "container", text, Some("give it another one")));
    }
    if base.described.is_none() && !container.slots.is_empty() {
        let text = "slots need new gates, and so the description of the system".into();
        return Err(refused(path, "slots", text, Some("admit the container to a description with `--system`")));
    }
    let answer = match &mut base.described {
        Some(described) if container.priority.is_some() && described.by_criticality() => {
            let text = "the priorities of the system's groups follow from their criticality".into();
            return Err(refused(path, "priority", text, Some("leave it out: it follows from `criticality`")));
        }
        Some(described) => described.admit(container)?,
        None => here(&base.host, container),
    };
    let verdict = match answer {
        described::Answer::Admitted(admission, group) => {
            let Admission { cpu, priority, budget, tasks, changes, host } = *admission;
            base.host = host.clone();
            let changes = base.described.as_ref().map_or(changes.clone(), |described| described.to_change(&changes));
            let slots = base.described.as_ref().map_or(Vec::new(), |described| slots(described.plan(), container));
            Verdict::Admitted(Box::new(Place { cpu, priority, budget, tasks, slots, changes, host, group: *group }))
        }
        described::Answer::Refused(ServersError::Refused(refusals)) => {
            let reason = |refusal: Refusal| Reason { text: refusal.to_string(), refusal: Some(refusal) };
            Verdict::Refused { reasons: refusals.into_iter().map(reason).collect() }
        }
        described::Answer::Refused(ServersError::Invalid(error)) => return Err(misfit(path, container, &error)),
        described::Answer::NoPlan(why) => {
            Verdict::Refused { reasons: why.into_iter().map(|text| Reason { text, refusal: None }).collect() }
        }
    };
    Ok(Answer { container: container.clone(), name: container.name.clone(), verdict })
}

/// Returns the slots of a container in a plan.
fn slots(plan: &Plan, container: &Container) -> Vec<SlotPlace> {
    let all = macrotick_check::network::placed_slots(plan).into_iter();
    let own = all.filter(|(_, slot)| slot.group == container.name);
    own.map(|(interface, slot)| SlotPlace { interface, slot }).collect()
}

/// Answers for the present windows, which do not change.
fn here(host: &Host, container: &Container) -> described::Answer {
    match servers::admit(host, &servers::Container::of(container)) {
        Ok(admission) => {
            // As for the hook's containers: otherwise no budget would bound a thread under SCHED_FIFO.
            let group = admission.group_of(container, true);
            described::Answer::Admitted(Box::new(admission), Box::new(group))
        }
        Err(error) => described::Answer::Refused(error),
    }
}

/// Makes an error of a description that is wrong only on this host.
fn misfit(path: &Path, container: &Container, error: &HostError) -> CliError {
    let (at, hint) = match error {
        HostError::Twice { .. } => {
            ("container".to_string(), Some("the host has a group of that name: give it another one"))
        }
        HostError::UnknownCpu { .. } => ("cpus".into(), None),
        HostError::SamePriority { .. } => ("priority".into(), Some("leave it out: it follows from `criticality`")),
        HostError::BeyondPeriod { .. } => ("budget".into(), None),
        HostError::BoundPeriod { task, .. } => {
            let index = container.tasks.iter().position(|other| other.name == *task).unwrap_or(0);
            (format!("tasks[{index}].period"), None)
        }
        _ => ("container".into(), None),
    };
    refused(path, &at, error.to_string(), hint)
}

fn refused(path: &Path, at: &str, message: String, hint: Option<&str>) -> CliError {
    let finding = Finding { at: at.into(), message, hint: hint.map(String::from) };
    Container::refuse_file(path, vec![finding]).into()
}

fn describe(base: &Base, answers: &[Answer], took: Duration) -> String {
    let mut text = format!("{}\n", base.what);
    for remark in &base.remarks {
        let _ = writeln!(text, "{remark}");
    }
    for answer in answers {
        let _ = writeln!(text);
        match &answer.verdict {
            Verdict::Admitted(place) => admitted(&mut text, base, &answer.container, place),
            Verdict::Refused { reasons } => {
                let _ = writeln!(text, "{}: refused", answer.name);
                for reason in reasons {
                    let _ = writeln!(text, "  {}", reason.text);
                }
            }
        }
    }
    let _ = writeln!(text, "\nanswered in {} us", took.as_nanos() / 1000);
    text
}

fn admitted(text: &mut String, base: &Base, container: &Container, place: &Place) {
    let Place { cpu, priority, budget, tasks, slots, changes, host, group } = place;
    let _ = writeln!(
        text,
        "{}: admitted on CPU {cpu}, budget {budget} of every {}, priority {priority}",
        container.name, host.server_period
    );
    for task in tasks {
        let _ = writeln!(text, "  task {}: {task}", task.name);
    }
    for SlotPlace { interface, slot } in slots {
        let macrotick_check::network::Slot { class, period, offset, length, .. } = slot;
        let _ =
            writeln!(text, "  slot on {interface}: {length} of every {period} from {offset} on, for class `{class}`");
    }
    if let Some(advice) = servers::period_advice(host).filter(|advice| advice.group == container.name) {
        let _ = writeln!(text, "  remark: {advice}");
    }
    if !changes.is_empty() {
        let _ = writeln!(text, "  before it starts:");
        for change in changes {
            let _ = writeln!(text, "    {change}");
        }
    }
    match &base.directories {
        Some(directories) => commands(text, directories, place),
        None => {
            let _ = write!(text, "  as a group of the system:\n{}", group.to_yaml());
            let slots: String = container.slots().map(|slot| slot.to_yaml()).collect();
            if !slots.is_empty() {
                let _ = write!(text, "  with these slots of its network:\n{slots}");
            }
        }
    }
}

/// Prints the commands that write the groups' files. The container's group does not exist yet, or has a path of its
/// own.
fn commands(text: &mut String, directories: &[(String, Vec<PathBuf>)], place: &Place) {
    for change in &place.changes {
        let (Change::Budget { group, .. } | Change::Priority { group, .. }) = change;
        // Containers of this call have no directory yet.
        let known = directories.iter().find(|(name, _)| name == group);
        let known = known.map_or(vec![format!("({group})").into()], |(_, paths)| paths.clone());
        let (file, value) = match change {
            Change::Priority { to, .. } => ("cpu.ds.priority", to.to_string()),
            Change::Budget { .. } => ("cpu.ds.budget", budgets(&place.host, group)),
        };
        for directory in known {
            let _ = writeln!(text, "  echo {value} > {}/{file}", directory.display());
        }
    }
    let _ = writeln!(text, "  in its control group:");
    let _ = writeln!(text, "    echo {} > cpu.ds.priority", place.priority);
    let _ = writeln!(text, "    echo {} > cpu.ds.fifo", u8::from(place.group.serve_fifo));
    if let Some(lead) = place.group.lead {
        let _ = writeln!(text, "    echo {} > cpu.ds.lead", lead.as_nanos() / 1000);
    }
    let _ = writeln!(text, "    echo {}={} > cpu.ds.budget", place.cpu, place.budget.as_nanos() / 1000);
}

/// Returns the budgets of all CPUs: the file takes them at once.
fn budgets(host: &Host, group: &str) -> String {
    let servers = host.groups.iter().filter(|other| other.name == group).flat_map(|group| &group.servers);
    let each: Vec<String> =
        servers.map(|server| format!("{}={}", server.cpu, server.budget.as_nanos() / 1000)).collect();
    format!("'{}'", each.join(" "))
}
