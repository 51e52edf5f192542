//! Replaying the windows of one task: which jobs they make, and whether these are what was asked for.

use std::collections::BTreeMap;

use macrotick_model::{Duration, Plan, Task, Window};

use crate::{TaskVerdict, Violation};

/// A job as the windows make it. Instants count from the cycle's start; a job that reaches over the cycle's end has
/// its end beyond the cycle.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Job {
    /// Start of the ACTIVATE window.
    pub start: Duration,
    /// End of the DEADLINE window.
    pub end: Duration,
    /// Sum of all its windows.
    pub given: Duration,
    /// Pieces of it: windows that abut are one.
    pub pieces: u32,
    /// The shortest of them.
    pub shortest: Duration,
}

/// What a job loses with each piece but the first, whose part is in its wcet: from the beginning of a window until its thread
/// runs, and from its end until another one does. In the lab it is 3 us. A job that moves between CPUs loses more, which is
/// its wcet's, too.
const RESUMING: Duration = Duration::from_micros(5);
/// So long the kernel takes at most, in the lab, from the beginning of a window until what it is for runs: in a shorter one
/// it never does. A lead saves some of that, and not all.
pub(crate) const LEAST_WINDOW: Duration = Duration::from_micros(6);
/// No piece of a job that is cut is shorter.
const SHORTEST_PIECE: Duration = Duration::from_micros(10);

/// The windows of one task with their CPUs, table by table.
pub(crate) type Served<'a> = Vec<(u32, &'a Window)>;

/// All windows by the name of the task or pool they serve.
pub(crate) fn by_task(plan: &Plan) -> BTreeMap<&str, Served<'_>> {
    let mut served: BTreeMap<&str, Served> = BTreeMap::new();
    for table in &plan.tables {
        for window in &table.windows {
            served.entry(&window.task).or_default().push((table.cpu, window));
        }
    }
    served
}

/// The jobs of a task in one cycle, in order of their starts.
///
/// The table runs for ever, so the walk goes once around the cycle from the first ACTIVATE.
pub(crate) fn replay(plan: &Plan, task: &Task, served: &[(u32, &Window)], violations: &mut Vec<Violation>) -> Vec<Job> {
    let name = || task.name.clone();
    let windows = windows_of(task, served, violations);
    if windows.is_empty() {
        violations.push(Violation::NoWindow { task: name() });
        return Vec::new();
    }
    let Some(first) = windows.iter().position(|window| window.activate) else {
        violations.push(Violation::NoJob { task: name(), offset: windows[0].offset });
        return Vec::new();
    };
    let (mut jobs, mut open): (Vec<Job>, Option<Job>) = (Vec::new(), None);
    // Of the piece that the last window is in.
    let mut piece = Duration::ZERO;
    for step in 0..windows.len() {
        let index = first + step;
        let window = windows[index % windows.len()];
        let offset = if index >= windows.len() { window.offset + plan.cycle } else { window.offset };
        if window.activate {
            if let Some(job) = open {
                violations.push(Violation::NoDeadline { task: name(), start: job.start });
            }
            let (given, shortest) = (Duration::ZERO, Duration::from_nanos(i64::MAX));
            open = Some(Job { start: offset, end: offset, given, pieces: 0, shortest });
        }
        let Some(job) = &mut open else {
            violations.push(Violation::NoJob { task: name(), offset: window.offset });
            continue;
        };
        if job.pieces == 0 || offset != job.end {
            job.pieces += 1;
            job.shortest = if job.pieces == 1 { job.shortest } else { job.shortest.min(piece) };
            piece = Duration::ZERO;
        }
        piece += window.length;
        job.given += window.length;
        job.end = offset + window.length;
        if window.deadline {
            job.shortest = job.shortest.min(piece);
            jobs.push(*job);
            open = None;
        }
    }
    if let Some(job) = open {
        violations.push(Violation::NoDeadline { task: name(), start: job.start });
    }
    jobs
}

/// The task's windows in order of time, with what is wrong about their CPUs.
fn windows_of<'a>(task: &Task, served: &[(u32, &'a Window)], violations: &mut Vec<Violation>) -> Vec<&'a Window> {
    let mut cpus: Vec<u32> = served.iter().map(|(cpu, _)| *cpu).collect();
    cpus.dedup();
    for (index, &cpu) in cpus.iter().enumerate() {
        if let Some(pinned) = task.cpu.filter(|&pinned| pinned != cpu) {
            violations.push(Violation::WrongCpu { task: task.name.clone(), cpu, pinned });
        }
        if index > 0 && !task.migrate {
            violations.push(Violation::Migrates { task: task.name.clone(), cpu, other: cpus[0] });
        }
    }
    let mut windows: Vec<&Window> = served.iter().map(|(_, window)| *window).collect();
    windows.sort_by_key(|window| window.offset);
    windows
}

/// Holds the jobs of a task against its period, wcet, deadline, offset and jitter bound.
pub(crate) fn judge(plan: &Plan, task: &Task, jobs: &[Job], violations: &mut Vec<Violation>) -> Option<TaskVerdict> {
    if jobs.is_empty() {
        return None;
    }
    let expected = plan.cycle / task.period;
    if jobs.len() as i64 != expected {
        violations.push(Violation::JobCount { task: task.name.clone(), jobs: jobs.len(), expected });
        return None;
    }
    let (release, numbers) = match (task.offset, task.jitter) {
        (None, Some(_)) => chosen_phase(task, jobs),
        (offset, _) => given_phase(plan, task, offset.unwrap_or(Duration::ZERO), jobs, violations),
    };
    let slack = deadlines(task, release, &numbers, jobs, violations);
    let phases = || jobs.iter().zip(&numbers).map(|(job, &number)| job.start - task.period * number);
    let (least, most) = (phases().min()?, phases().max()?);
    if let Some(bound) = task.jitter {
        // Against a given offset a start may also be late, not only vary.
        let from = if task.offset.is_some() { release } else { least };
        if most - from > bound {
            violations.push(Violation::Jitter { task: task.name.clone(), jitter: most - from, bound });
        }
    }
    let response = jobs.iter().map(|job| job.end - job.start).max()?;
    Some(TaskVerdict { name: task.name.clone(), jobs: jobs.len(), response, jitter: most - least, slack })
}

/// A task with a jitter bound and no offset is released on the phase the solver chose: that of its earliest start.
fn chosen_phase(task: &Task, jobs: &[Job]) -> (Duration, Vec<i64>) {
    let numbers: Vec<i64> = (0..jobs.len() as i64).collect();
    let phases = jobs.iter().zip(&numbers).map(|(job, &number)| job.start - task.period * number);
    (phases.min().unwrap_or(Duration::ZERO), numbers)
}

/// Any other task is released at its offset (zero where none is given): one job starts in each period from there.
fn given_phase(
    plan: &Plan,
    task: &Task,
    offset: Duration,
    jobs: &[Job],
    violations: &mut Vec<Violation>,
) -> (Duration, Vec<i64>) {
    let period = task.period.as_nanos();
    let numbers: Vec<i64> = jobs.iter().map(|job| (job.start - offset).as_nanos().div_euclid(period)).collect();
    let count = plan.cycle / task.period;
    let mut starts = vec![0usize; count as usize];
    for number in &numbers {
        starts[number.rem_euclid(count) as usize] += 1;
    }
    for (job, &starts) in starts.iter().enumerate().filter(|(_, &starts)| starts != 1) {
        violations.push(Violation::Slot { task: task.name.clone(), job: job as i64, starts });
    }
    (offset, numbers)
}

/// Each job gets its wcet before its deadline; the least slack.
fn deadlines(
    task: &Task,
    release: Duration,
    numbers: &[i64],
    jobs: &[Job],
    violations: &mut Vec<Violation>,
) -> Duration {
    let mut least = Duration::from_nanos(i64::MAX);
    for (job, &number) in jobs.iter().zip(numbers) {
        let name = || task.name.clone();
        let lost = if task.migrate { Duration::ZERO } else { RESUMING * i64::from(job.pieces - 1) };
        if job.given - lost < task.wcet {
            let (given, wcet, pieces) = (job.given, task.wcet, job.pieces);
            violations.push(Violation::Starved { task: name(), job: number, given, wcet, pieces, lost });
        }
        if job.pieces == 1 && job.given < LEAST_WINDOW {
            violations.push(Violation::NoStart { task: name(), job: number, given: job.given, limit: LEAST_WINDOW });
        }
        if job.pieces > 1 && job.shortest < SHORTEST_PIECE {
            let (length, limit) = (job.shortest, SHORTEST_PIECE);
            violations.push(Violation::ShortPiece { task: name(), job: number, length, limit });
        }
        let deadline = release + task.period * number + task.deadline;
        if job.end > deadline {
            violations.push(Violation::Late { task: name(), job: number, end: job.end, deadline });
        }
        least = least.min(deadline - job.end);
    }
    least
}
