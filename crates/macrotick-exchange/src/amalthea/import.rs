//! The system of a model.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use macrotick_model::validate::MAX_TASKS;
use macrotick_model::{CpuSet, Duration, System, Task};

use super::activity::{Activities, Graph, Trigger};
use super::cost::Cost;
use super::document::{Parsed, Source};
use super::element::{Element, Key, Refusal};
use super::events::Owners;
use super::hardware::Hardware;
use super::mapping::Mapping;
use super::model::Model;
use super::requirements::{deadlines, Deadlines};
use super::stimuli::{release, Release};
use super::{chains, MAX_BYTES};
use crate::error::ImportError;
use crate::findings::{cut, Findings};
use crate::names::{cleaned, Names};

/// The longest name that the kernel stores.
const MAX_NAME: usize = 31;
/// The longest name of a system.
const MAX_LONG_NAME: usize = 230;

/// The choices of an import.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The names of tasks that do not become part of the system, such as tasks without a period.
    pub leave_out: Vec<String>,
}

/// Reads a model, and returns its system with remarks. The stem of the first file names the system.
///
/// Each task becomes a task with windows, on the CPUs of its allocation. Event chains with a bound on reaction time or
/// age become chains. A runnable is a part of its task, and accesses to labels take no time.
///
/// # Errors
///
/// If a file is too long or no XML, or if a reference names no element. Also if a task has no period or no execution
/// time, or if the system breaks rules.
pub fn import(files: &[Source], options: &Options) -> Result<(System, Vec<String>), ImportError> {
    let file = files.first().map(|file| file.name).unwrap_or_default();
    let most = MAX_BYTES;
    let mut bytes = 0usize;
    for source in files {
        bytes = bytes.saturating_add(source.text.len());
        if bytes > most {
            return Err(ImportError::Long { file: source.name.into(), most });
        }
    }
    let parsed = files.iter().enumerate().map(|(index, source)| Parsed::new(index, *source));
    let parsed = parsed.collect::<Result<Vec<_>, _>>()?;
    let mut findings = Findings::default();
    let system = Model::new(&parsed).and_then(|model| system(&model, file, options, &mut findings));
    let system = system.unwrap_or_else(|refusal| {
        findings.refuse(&refusal.place, refusal.reason);
        None
    });
    // Each place has the name of its file.
    let refused = |refusals| ImportError::Refused { file: String::new(), refusals };
    let remarks = findings.finish().map_err(refused)?;
    let system = system.expect("without a refusal there is a system");
    let problems = system.problems();
    if !problems.is_empty() {
        return Err(ImportError::Invalid { file: file.into(), problems });
    }
    Ok((system, remarks))
}

/// A task of the model and what belongs to it.
struct Found<'a> {
    element: Element<'a>,
    stimulus: Element<'a>,
    /// The release of the stimulus, or that of the task that triggers it.
    release: Option<Release>,
    /// The task that each job follows.
    after: Option<usize>,
    cost: Cost,
    graph: Graph<'a>,
}

/// Returns `None` if something is refused.
fn system<'a>(
    model: &Model<'a>,
    file: &str,
    options: &Options,
    findings: &mut Findings,
) -> Result<Option<System>, Refusal> {
    let stem = Path::new(file).file_stem().unwrap_or_default().to_string_lossy();
    let mut system = System::named(cleaned(&stem, MAX_LONG_NAME));
    let elements = tasks(model, options, findings)?;
    let hardware = Hardware::read(model, findings)?;
    let mapping = Mapping::read(model, &hardware, findings)?;
    let deadlines = deadlines(model, findings)?;
    system.cpus = (0..hardware.cpus.len() as u32).collect();
    let mut activities = Activities::new(model, &hardware);
    let mut found = Vec::new();
    for element in elements {
        let (cost, graph) = activities.task(element, findings);
        match stimulus(element, model).and_then(|stimulus| Ok((stimulus, release(element, stimulus, findings)?))) {
            Ok((stimulus, release)) => found.push(Found { element, stimulus, release, after: None, cost, graph }),
            Err(refusal) => refuse(refusal, findings),
        }
    }
    if findings.has_refusals() {
        return Ok(None);
    }
    // These come last: runnables that tasks share with them are known by now, with their remarks.
    let imported: BTreeSet<Key> = found.iter().map(|one| one.element.key()).collect();
    let processes = model.all("swModel", "tasks").chain(model.all("swModel", "isrs"));
    processes.filter(|one| !imported.contains(&one.key())).for_each(|one| activities.other(one));
    follow(&mut found, &activities, findings);
    if findings.has_refusals() {
        return Ok(None);
    }
    let mut owners = Owners::default();
    let (mut taken, mut names, mut kinds) = (Names::default(), Vec::new(), BTreeSet::new());
    for one in &found {
        owners.add(one.element.key(), one.stimulus.key(), &one.graph.calls, &activities.calls);
        names.push(name(one.element, &mut taken, findings));
    }
    let mut refusals = BTreeSet::new();
    for (one, name) in found.iter().zip(&names) {
        let cpus = mapping.cpus(one.element, findings);
        let task = cpus.and_then(|cpus| task(one, cpus, &hardware, &deadlines, &mut kinds, findings));
        match task {
            Ok(task) => {
                let after = one.after.map(|index| names[index].clone()).into_iter().collect();
                system.tasks.push(Task { name: name.clone(), after, ..task });
            }
            // Tasks can share a runnable that has no time on their CPUs.
            Err(refusal) => drop(refusals.insert(refusal)),
        }
    }
    refusals.into_iter().for_each(|refusal| refuse(refusal, findings));
    system.chains = chains::chains(model, &owners, &names, findings)?;
    grid(&mut system, findings);
    notes(model, &activities, &hardware, &kinds, findings);
    Ok(Some(system).filter(|_| !findings.has_refusals()))
}

fn refuse(refusal: Refusal, findings: &mut Findings) {
    findings.refuse(&refusal.place, refusal.reason);
}

/// Returns the tasks that become part of the system.
fn tasks<'a>(model: &Model<'a>, options: &Options, findings: &mut Findings) -> Result<Vec<Element<'a>>, Refusal> {
    let mut seen = BTreeSet::new();
    let mut tasks = Vec::new();
    for task in model.all("swModel", "tasks") {
        if !seen.insert(task.name()) {
            return Err(task.refusal("another task has this name"));
        }
        match options.leave_out.iter().any(|name| name == task.name()) {
            true => findings.remark(task.path(), "is left out: the table has no time for it"),
            false => tasks.push(task),
        }
        if tasks.len() > MAX_TASKS {
            return Err(task.refusal(format!("the model has more than {MAX_TASKS} tasks")));
        }
    }
    if let Some(name) = options.leave_out.iter().find(|name| !seen.contains(name.as_str())) {
        return Err(model.refusal("swModel", format!("no task is named `{}`", cut(name))));
    }
    if tasks.is_empty() {
        return Err(model.refusal("swModel", "the model has no task: give the file with `swModel`, too"));
    }
    for routine in model.all("swModel", "isrs") {
        findings.remark(routine.path(), "an interrupt routine is left out: see `reserve` of the description");
    }
    Ok(tasks)
}

/// Returns the one stimulus of a task.
fn stimulus<'a>(task: Element<'a>, model: &Model<'a>) -> Result<Element<'a>, Refusal> {
    match model.targets(task, "stimuli")?[..] {
        [stimulus] => Ok(stimulus),
        [] => Err(task.refusal("the task has no stimulus: name it with `--leave-out`")),
        _ => Err(task.refusal("the task has several stimuli, but one release in a period: name it with `--leave-out`")),
    }
}

/// Gives each triggered task the release of the task that triggers it. The order of jobs keeps it behind that task.
fn follow(found: &mut [Found], activities: &Activities, findings: &mut Findings) {
    let senders = senders(found, activities, findings);
    for index in 0..found.len() {
        // From this task up to one with a release. A ring of triggers ends after as many tasks as there are.
        let (mut way, mut at) = (Vec::new(), index);
        while found[at].release.is_none() && way.len() < found.len() {
            let Some((sender, prescaler)) = senders[at] else { break };
            way.push((at, sender, prescaler));
            at = sender;
        }
        for (task, sender, prescaler) in way.into_iter().rev() {
            let release = found[sender].release;
            let period = release.and_then(|release| release.period.checked_mul(prescaler));
            let Some((release, period)) = release.zip(period) else { break };
            found[task].release = Some(Release { period, ..release });
            found[task].after = Some(sender).filter(|_| prescaler == 1);
            let path = found[task].element.path();
            findings.remark(&path, "a triggered task gets the period of the task that triggers it");
            if prescaler != 1 {
                findings.remark(path, "its jobs keep no order with those of the task that triggers it");
            }
        }
    }
    for one in found.iter().filter(|one| one.release.is_none()) {
        let text = match activities.triggered_elsewhere.contains(&one.stimulus.key()) {
            true => {
                "a runnable or a part that is left out triggers it, so its period is not known: name it with `--leave-out`"
            }
            false => "it needs one trigger, of a task with a period: name it with `--leave-out`",
        };
        refuse(one.element.refusal(text), findings);
    }
}

/// Returns the one task that triggers each task, with the prescaler of the trigger.
fn senders(found: &[Found], activities: &Activities, findings: &mut Findings) -> Vec<Option<(usize, i64)>> {
    let mut triggers = BTreeMap::<Key, Vec<(usize, i64)>>::new();
    for (index, one) in found.iter().enumerate() {
        for Trigger { stimulus, prescaler, item } in &one.graph.triggers {
            if *prescaler < 1 {
                refuse(item.refusal("the prescaler of a counter must be above zero"), findings);
            }
            triggers.entry(*stimulus).or_default().push((index, *prescaler));
        }
    }
    let sender = |one: &Found| match triggers.get(&one.stimulus.key()).map(Vec::as_slice) {
        Some([sender]) if !activities.triggered_elsewhere.contains(&one.stimulus.key()) => Some(*sender),
        _ => None,
    };
    found.iter().map(sender).collect()
}

fn name(task: Element, taken: &mut Names, findings: &mut Findings) -> String {
    let name = taken.take(task.name(), MAX_NAME);
    // Models write most names with capitals, which no name of a description has.
    if !name.eq_ignore_ascii_case(task.name()) {
        findings.remark(task.path(), format!("the name becomes `{name}`"));
    }
    name
}

/// Returns a task under another name.
fn task(
    found: &Found,
    cpus: Vec<u32>,
    hardware: &Hardware,
    deadlines: &Deadlines,
    kinds: &mut BTreeSet<usize>,
    findings: &mut Findings,
) -> Result<Task, Refusal> {
    let element = found.element;
    let Some(release) = found.release else { return Err(element.refusal("the task has no release")) };
    let wcet = wcet(found, &cpus, hardware, kinds, findings)?;
    let ns = Duration::from_nanos;
    let mut deadline = ns(release.period);
    if let Some((limit, requirement)) = deadlines.get(&element.key()) {
        if *limit > release.period {
            findings.remark(requirement.path(), "a deadline after the period becomes the period");
        }
        deadline = deadline.min(ns(*limit));
    }
    if wcet > deadline {
        return Err(element.refusal(format!("an execution time of {wcet} does not fit into {deadline}")));
    }
    let mut task = Task::named("unnamed", ns(release.period), wcet);
    task.deadline = deadline;
    task.offset = release.offset.map(ns);
    match cpus[..] {
        [cpu] => task.cpu = Some(cpu),
        _ if cpus.len() < hardware.cpus.len() => task.cpus = CpuSet::from_iter(cpus),
        _ => {}
    }
    match element.attribute("preemption") {
        Some("non_preemptive" | "nonPreemptive") => task.preemptible = Some(false),
        Some("cooperative" | "limited_preemptive") => {
            findings.remark(element.path(), "the table can interrupt the task at any place");
        }
        _ => {}
    }
    Ok(task)
}

/// Returns the longest execution time on any CPU that the task can have.
fn wcet(
    found: &Found,
    cpus: &[u32],
    hardware: &Hardware,
    used: &mut BTreeSet<usize>,
    findings: &mut Findings,
) -> Result<Duration, Refusal> {
    let kinds: BTreeSet<usize> = match cpus.is_empty() {
        true => (0..hardware.kinds.len()).collect(),
        false => cpus.iter().map(|cpu| hardware.cpus[*cpu as usize]).collect(),
    };
    let mut times = BTreeSet::new();
    for kind in kinds {
        used.insert(kind);
        let ticks = found.cost.of(kind).clone().map_err(|refusal| (*refusal).clone())?;
        if ticks == 0 {
            return Err(found.element.refusal("no item of the task takes time: name it with `--leave-out`"));
        }
        let hertz = hardware.kinds[kind].hertz.clone().map_err(|refusal| (*refusal).clone())?;
        let time = i128::from(ticks).checked_mul(1_000_000_000).and_then(|ticks| hertz.divide(ticks));
        let Some(time) = time.and_then(|time| i64::try_from(time).ok()) else {
            return Err(found.element.refusal(format!("{ticks} ticks are too long")));
        };
        times.insert(Duration::from_nanos(time));
    }
    if times.len() > 1 {
        findings.remark(found.element.path(), "the execution time is that on the slowest CPU of the task");
    }
    times.last().copied().ok_or_else(|| found.element.refusal("the task has no CPU"))
}

/// Makes the macrotick finer if a period or an offset is no multiple of it.
fn grid(system: &mut System, findings: &mut Findings) {
    let times = system.tasks.iter().flat_map(|task| [Some(task.period), task.offset]).flatten();
    let is_on_grid = times.into_iter().all(|time| time.is_multiple_of(system.macrotick));
    if !is_on_grid {
        system.macrotick = Duration::from_nanos(1);
        findings.remark("stimuli", "a time is no whole number of microseconds: the macrotick becomes 1ns");
    }
}

/// Notes the parts of the model that have a meaning for times, but no counterpart.
fn notes(
    model: &Model,
    activities: &Activities,
    hardware: &Hardware,
    kinds: &BTreeSet<usize>,
    findings: &mut Findings,
) {
    for kind in activities.without_feature.intersection(kinds) {
        let path = format!("hwModel.{}", cut(&hardware.kinds[*kind].name));
        findings.remark(path, "has no feature for instructions: each counts one tick");
    }
    let latencies = ["accessLatency", "readLatency", "writeLatency", "latencies"];
    let mut parts = model.part("hwModel").flat_map(Element::descendants);
    if activities.has_accesses && parts.any(|element| latencies.contains(&element.tag())) {
        findings.remark("hwModel", "accesses to labels take no time: add the latencies of memories to `wcet` by hand");
    }
    if let Some(path) = &activities.timed {
        let text = "an access at a logical execution time becomes one at the start or the end of a job";
        findings.remark(path, text);
    }
    for overhead in model.all("osModel", "osOverheads") {
        findings.remark(overhead.path(), "the overhead of the operating system is left out");
    }
    for tag in ["affinityConstraints", "runnableSequencingConstraints", "dataAgeConstraints"] {
        for constraint in model.all("constraintsModel", tag) {
            findings.remark(constraint.path(), "the constraint is left out");
        }
    }
}
