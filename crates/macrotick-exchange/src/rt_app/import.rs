//! Reads a file of rt-app.

use std::collections::BTreeMap;
use std::path::Path;

use macrotick_model::validate::MAX_TASKS;
use macrotick_model::{CpuSet, Process, System, Task};

use super::fields::Field;
use super::global::Global;
use super::json::{self, Value};
use super::policy::Class;
use super::thread::Thread;
use super::{load, own, task};
use crate::findings::{cut, Findings};
use crate::names::{cleaned, Names};
use crate::{ImportError, MAX_BYTES};

/// The longest name that the kernel stores.
const MAX_NAME: usize = 31;
/// The longest name of a process or system.
const MAX_LONG_NAME: usize = 230;
/// The most CPUs that all tasks list together.
const MOST_CPUS: i64 = 1 << 16;

/// The choices of an import.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The names of periodic threads that become load. Each other one becomes a task.
    pub load: Vec<String>,
}

/// Reads a file of rt-app, and returns its system with remarks. `file` names the file in errors, and its stem names the
/// system.
///
/// A periodic thread has a timer. It becomes a task with windows, or with a reservation if it has SCHED_DEADLINE. Other
/// threads become load.
///
/// # Errors
///
/// If the text is too long or has another grammar, or if a value is wrong. Also if a part without a counterpart changes
/// the meaning of a thread, or if the system breaks rules.
pub fn import(text: &str, file: &str, options: &Options) -> Result<(System, Vec<String>), ImportError> {
    if text.len() > MAX_BYTES {
        return Err(ImportError::Long { file: file.into(), most: MAX_BYTES });
    }
    let root = json::read(text).map_err(|fault| fault.within(file))?;
    let mut findings = Findings::default();
    let system = system(&root, file, options, &mut findings);
    let remarks = findings.finish().map_err(|refusals| ImportError::Refused { file: file.into(), refusals })?;
    let problems = system.problems();
    if !problems.is_empty() {
        return Err(ImportError::Invalid { file: file.into(), problems });
    }
    Ok((system, remarks))
}

fn system(root: &Value, file: &str, options: &Options, findings: &mut Findings) -> System {
    let stem = Path::new(file).file_stem().unwrap_or_default().to_string_lossy();
    let mut system = System::named(cleaned(&stem, MAX_LONG_NAME));
    let (mut threads, mut global, mut cpus) = (None, None, None);
    let root = Field { path: String::new(), value: root };
    if !matches!(root.value, Value::Object(_)) {
        findings.refuse("the file", format!("must be an object, this is {}", root.value.kind()));
        return system;
    }
    for (key, field) in root.entries(findings) {
        match key {
            "tasks" if threads.is_some() => findings.refuse(&field.path, "is given twice"),
            "global" if global.is_some() => findings.refuse(&field.path, "is given twice"),
            "tasks" => threads = Some(field),
            "global" => global = Some(Global::read(&field, findings)),
            "resources" => findings.remark(&field.path, "rt-app keeps it only for old files, and it is left out"),
            own::KEY => cpus = own::system_cpus(&field, findings),
            _ => findings.remark(&field.path, "this key is unknown and is left out"),
        }
    }
    let Some(threads) = threads else {
        findings.refuse("tasks", "the file has no threads");
        return system;
    };
    let global = global.unwrap_or_default();
    let threads = read(&threads, &global, findings);
    if !within_limits(&threads, findings) {
        return system;
    }
    let all_read = !findings.has_refusals();
    place(&mut system, &threads, options, findings);
    if all_read && !findings.has_refusals() && system.tasks.is_empty() {
        findings
            .refuse("tasks", "no thread becomes a task: a system needs one, such as a thread with `run` and `timer`");
    }
    system.experiment.duration = global.duration.unwrap_or(system.experiment.duration);
    system.cpus = all_cpus(&system, cpus, findings);
    system
}

fn read<'a>(threads: &Field<'a>, global: &Global, findings: &mut Findings) -> Vec<Thread<'a>> {
    let entries = threads.entries(findings);
    let threads = entries.iter().filter_map(|(name, field)| Thread::read(name, field, global.policy, findings));
    threads.collect()
}

/// Whether the threads are few enough to be written one by one.
fn within_limits(threads: &[Thread], findings: &mut Findings) -> bool {
    let mut all = 0i64;
    let mut cpus = 0i64;
    for thread in threads {
        all = all.saturating_add(thread.instances);
        let listed = thread.cpus.as_ref().map_or(0, Vec::len) as i64;
        cpus = cpus.saturating_add(thread.instances.saturating_mul(listed));
        if all > MAX_TASKS as i64 {
            let text = format!("{all} threads are too many, the limit is {MAX_TASKS}");
            findings.refuse(&format!("{}.instance", thread.path), text);
            return false;
        }
        if cpus > MOST_CPUS {
            let text = format!("the threads list more than {MOST_CPUS} CPUs together");
            findings.refuse(&format!("{}.cpus", thread.path), text);
            return false;
        }
    }
    true
}

/// Makes each thread tasks or load.
fn place(system: &mut System, threads: &[Thread], options: &Options, findings: &mut Findings) {
    shared_timers(threads, findings);
    for name in &options.load {
        let is_known = findings.has_refusals() || threads.iter().any(|thread| thread.name == name);
        if !is_known {
            findings.refuse("tasks", format!("no thread is named `{}`", cut(name)));
        }
    }
    let mut names = Names::default();
    for thread in threads {
        if thread.instances == 0 {
            findings.remark(format!("{}.instance", thread.path), "without an instance there is no thread");
            continue;
        }
        let is_load = options.load.iter().any(|name| name == thread.name);
        let is_periodic = thread.events.timer.is_some() || thread.policy.class == Class::Deadline;
        if is_periodic && !is_load {
            let Some(task) = task::task(thread, findings) else { continue };
            for index in 0..thread.instances {
                let name = task_name(thread, index, &mut names, findings);
                system.tasks.push(Task { name, ..task.clone() });
            }
        } else if let Some(process) = load::process(thread, findings) {
            let name = names.take_several(thread.name, MAX_LONG_NAME - ".999".len(), process.count);
            renamed(thread, thread.name, &name, findings);
            system.load.push(Process { name, ..process });
        }
    }
}

fn task_name(thread: &Thread, index: i64, names: &mut Names, findings: &mut Findings) -> String {
    if thread.instances == 1 {
        let name = names.take(thread.name, MAX_NAME);
        renamed(thread, thread.name, &name, findings);
        return name;
    }
    let suffix = format!("-{index}");
    let stem = cleaned(thread.name, MAX_NAME - suffix.len());
    if index == 0 {
        renamed(thread, thread.name, &stem, findings);
    }
    let wanted = stem + &suffix;
    let name = names.take(&wanted, MAX_NAME);
    renamed(thread, &wanted, &name, findings);
    name
}

fn renamed(thread: &Thread, from: &str, to: &str, findings: &mut Findings) {
    if from != to {
        findings.remark(&thread.path, format!("the name becomes `{to}`"));
    }
}

/// Notes timers that several threads wait for. In rt-app one thread then moves the releases of another.
fn shared_timers(threads: &[Thread], findings: &mut Findings) {
    let mut users: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for thread in threads {
        let Some(timer) = &thread.events.timer else { continue };
        let Some(name) = &timer.shared else { continue };
        let times = thread.instances.min(2) as usize;
        users.entry(name).or_default().extend(std::iter::repeat_n(timer.path.as_str(), times));
    }
    for mut paths in users.into_values().filter(|paths| paths.len() > 1) {
        paths.dedup();
        let text = "threads share this timer, but each task has releases of its own";
        paths.into_iter().for_each(|path| findings.remark(path, text));
    }
}

/// Returns the CPUs of the system: those of the file's own key, and all that tasks name.
fn all_cpus(system: &System, own: Option<Vec<u32>>, findings: &mut Findings) -> Vec<u32> {
    let of_reservations = system.reserved().flat_map(|(_, reservation)| reservation.cpus.as_slice());
    let of_windows = system.tasks.iter().flat_map(|task| task.cpu.iter().chain(task.cpus.as_slice()));
    let named = of_windows.chain(of_reservations).chain(own.iter().flatten()).copied();
    let cpus = CpuSet::from_iter(named);
    if cpus.is_empty() {
        let text = "no thread names CPUs: all tasks are on CPU 0, unless you list more in `cpus` of the description";
        findings.remark("tasks", text);
        return vec![0];
    }
    cpus.as_slice().to_vec()
}
