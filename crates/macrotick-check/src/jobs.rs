//! Replay of the windows of one task: finds its jobs and compares them with the description.

use std::collections::BTreeMap;

use macrotick_model::{CpuSet, Duration, Plan, Task, Window};

use crate::{TaskVerdict, Violation};

/// A job according to the windows. Instants count from the start of the cycle. A job that continues over the end of the
/// cycle has its end beyond the cycle.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Job {
    /// The start of the ACTIVATE window.
    pub start: Duration,
    /// The end of the DEADLINE window.
    pub end: Duration,
    /// The sum of all its windows.
    pub given: Duration,
    /// The number of its pieces. Adjacent windows are one piece.
    pub pieces: u32,
    /// The length of the shortest piece.
    pub shortest: Duration,
}

/// The time that each piece of a job costs. It is the time from the start of a window until the thread runs, and from its
/// end until another thread runs. In the lab it is 3 us. The cost of the first piece is in the wcet. A job that moves
/// between CPUs loses more, which is also part of its wcet.
const RESUMING: Duration = Duration::from_micros(5);
/// The longest time in the lab from the start of a window until its job or threads run. In a shorter window they never
/// run. A lead saves some of this time, but not all.
pub(crate) const LEAST_WINDOW: Duration = Duration::from_micros(6);
/// The shortest piece of a job that is cut.
const SHORTEST_PIECE: Duration = Duration::from_micros(10);

/// The windows of one task with their CPUs, table by table.
pub(crate) type Served<'a> = Vec<(u32, &'a Window)>;

/// Returns the windows by the name of their task or pool. A window that is not within the cycle is reported as such, and
/// serves nothing here. So no sum of times in a replay leaves its range.
pub(crate) fn by_task(plan: &Plan) -> BTreeMap<&str, Served<'_>> {
    let within = |window: &&Window| {
        let end = window.offset.checked_add(window.length);
        window.offset >= Duration::ZERO && window.length > Duration::ZERO && end.is_some_and(|end| end <= plan.cycle)
    };
    let mut served: BTreeMap<&str, Served> = BTreeMap::new();
    for table in &plan.tables {
        for window in table.windows.iter().filter(within) {
            served.entry(&window.task).or_default().push((table.cpu, window));
        }
    }
    served
}

/// Returns the jobs of a task in one cycle, in the order of their starts.
///
/// The table repeats, so the walk goes once around the cycle from the first ACTIVATE.
pub(crate) fn replay(plan: &Plan, task: &Task, served: &[(u32, &Window)], violations: &mut Vec<Violation>) -> Vec<Job> {
    let name = || task.name.clone();
    let windows = windows_of(plan, task, served, violations);
    if windows.is_empty() {
        violations.push(Violation::NoWindow { task: name() });
        return Vec::new();
    }
    let Some(first) = windows.iter().position(|window| window.activate) else {
        violations.push(Violation::NoJob { task: name(), offset: windows[0].offset });
        return Vec::new();
    };
    let (mut jobs, mut open): (Vec<Job>, Option<Job>) = (Vec::new(), None);
    // The length of the piece that contains the last window.
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

/// Returns the CPUs of something with this CPU and this host, each if it is given. Without both, it may use any: `None`.
pub(crate) fn allowed(plan: &Plan, cpu: Option<u32>, host: Option<&String>) -> Option<CpuSet> {
    let host = || plan.system.hosts.iter().find(|other| Some(&other.name) == host);
    match cpu {
        Some(cpu) => Some(CpuSet::from_iter([cpu])),
        None => host().map(|host| host.cpus.iter().copied().collect()),
    }
}

/// Returns the windows of the task in order of time, and reports errors of their CPUs.
fn windows_of<'a>(
    plan: &Plan,
    task: &Task,
    served: &[(u32, &'a Window)],
    violations: &mut Vec<Violation>,
) -> Vec<&'a Window> {
    let mut cpus: Vec<u32> = served.iter().map(|(cpu, _)| *cpu).collect();
    cpus.dedup();
    let allowed = match task.cpus.is_empty() {
        true => allowed(plan, task.cpu, task.host.as_ref()),
        false => Some(task.cpus.clone()),
    };
    for (index, &cpu) in cpus.iter().enumerate() {
        if let Some(allowed) = allowed.clone().filter(|allowed| !allowed.contains(cpu)) {
            violations.push(Violation::WrongCpu { task: task.name.clone(), cpu, allowed });
        }
        if index > 0 && !task.migrate {
            violations.push(Violation::Migrates { task: task.name.clone(), cpu, other: cpus[0] });
        }
    }
    let mut windows: Vec<&Window> = served.iter().map(|(_, window)| *window).collect();
    windows.sort_by_key(|window| window.offset);
    windows
}

/// Compares the jobs of a task with its period, wcet, deadline, offset and jitter bound.
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
        // With an offset, a start may also be late, not only vary.
        let from = if task.offset.is_some() { release } else { least };
        if most - from > bound {
            violations.push(Violation::Jitter { task: task.name.clone(), jitter: most - from, bound });
        }
    }
    let response = jobs.iter().map(|job| job.end - job.start).max()?;
    Some(TaskVerdict { name: task.name.clone(), jobs: jobs.len(), response, jitter: most - least, slack })
}

/// Returns the release of a task with a jitter bound and no offset. It is the phase that the solver chose: the phase of
/// the earliest start.
fn chosen_phase(task: &Task, jobs: &[Job]) -> (Duration, Vec<i64>) {
    let numbers: Vec<i64> = (0..jobs.len() as i64).collect();
    let phases = jobs.iter().zip(&numbers).map(|(job, &number)| job.start - task.period * number);
    (phases.min().unwrap_or(Duration::ZERO), numbers)
}

/// Returns the release of any other task: its offset, or zero without one. Exactly one job starts in each period from
/// there.
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

/// Checks that each job gets its wcet before its deadline. Returns the least slack.
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
