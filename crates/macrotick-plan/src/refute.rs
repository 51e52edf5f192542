//! Quick proofs that a system has no table. Each one names what conflicts, with its numbers.
//!
//! A proof uses only rules that the judge checks, and never a result of the search. A system without such a proof
//! may still have no table.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use macrotick_model::{Chain, CpuSet, Duration, Group, SplitMix64};

use crate::assign::{capacity, within_all_cpus};
use crate::demand::Demand;
use crate::error::{Bound, Kind, PlanError};
use crate::folded::Problem;
use crate::packing::{self, Packed};
use crate::{reserve, LEAST_WINDOW};

/// The most steps of the search for an interval with too much demand.
const STEPS: usize = 4_000_000;

/// A proof that there is no table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refutation {
    /// The tasks that are pinned to a CPU need more than it can give.
    #[error("the tasks on CPU {cpu} need {demand} of every {cycle}, but it can give at most {capacity}: {}", list(.tasks))]
    Pinned {
        /// The CPU.
        cpu: u32,
        /// The needed time in one cycle, leads included.
        demand: Duration,
        /// The time that windows and leads can take.
        capacity: Duration,
        /// The cycle.
        cycle: Duration,
        /// Tasks that alone need more than that.
        tasks: Vec<String>,
    },
    /// No assignment of tasks to CPUs leaves each CPU enough time.
    #[error(
        "{} {} at most {capacity} of every {cycle}{}",
        list(.tasks),
        match .tasks.len() {
            1 => format!("fits on none of {cpus} CPUs, which give"),
            _ => format!("cannot be divided among {cpus} CPUs so that each needs"),
        },
        if .groups.is_empty() { String::new() } else { format!(", with the budgets of {} included", list(.groups)) }
    )]
    Packing {
        /// Tasks that alone cannot be divided.
        tasks: Vec<String>,
        /// The number of CPUs.
        cpus: usize,
        /// The time that windows and leads can take on each CPU, together with the budgets there.
        capacity: Duration,
        /// The cycle.
        cycle: Duration,
        /// The groups with budgets.
        groups: Vec<String>,
    },
    /// No assignment of tasks to CPUs leaves each CPU enough time for its jobs and for the cost of cutting them.
    #[error(
        "{} {} at most {capacity} of every {cycle}: some jobs must be cut, and each piece except the first costs {each}",
        list(.tasks),
        match *.cpus {
            1 => "need more on one CPU than it can give,".to_string(),
            cpus => format!("cannot be divided among {cpus} CPUs so that each needs"),
        }
    )]
    Pieces {
        /// Tasks that alone are too much.
        tasks: Vec<String>,
        /// The number of CPUs.
        cpus: usize,
        /// The time that windows can take on each CPU.
        capacity: Duration,
        /// The cycle.
        cycle: Duration,
        /// The time that each piece of a job costs, except the first.
        each: Duration,
    },
    /// The jobs with release and deadline in an interval need more than the CPUs can give there.
    #[error(
        "from {from} to {to} the jobs of {} need {demand}, but {} can give at most {supply}",
        list(.tasks),
        match .resource {
            Some(resource) => format!("`{resource}`, one at a time,"),
            None if *.cpus == 1 => "one CPU".to_string(),
            None => format!("{} CPUs", .cpus),
        }
    )]
    Demand {
        /// The resource that the jobs need, if it is in short supply instead of CPUs.
        resource: Option<String>,
        /// The number of CPUs.
        cpus: usize,
        /// The start of the interval.
        from: Duration,
        /// Its end.
        to: Duration,
        /// The needed time.
        demand: Duration,
        /// The time of the CPUs, without sync windows.
        supply: Duration,
        /// Tasks that alone need more than that.
        tasks: Vec<String>,
    },
    /// Two tasks with fixed starts begin at the same time on one CPU.
    #[error("tasks `{first}` and `{second}` must both start at {at} on one CPU, or less than {apart} apart")]
    Starts {
        /// The first task.
        first: String,
        /// The other task.
        second: String,
        /// The instant, modulo the common divisor of the periods.
        at: Duration,
        /// The shortest window.
        apart: Duration,
    },
    /// A job of a task without preemption finds no time in a row beside the jobs of another task on its CPU.
    #[error(
        "task `{task}` is not preemptible and takes {wcet}, but beside `{other}` on one CPU at most {free} are free in \
         a row{}",
        with_leads(.leads)
    )]
    Whole {
        /// The task without preemption.
        task: String,
        /// The time of its job.
        wcet: Duration,
        /// The other task.
        other: String,
        /// The longest time that the jobs of the other task leave, without leads.
        free: Duration,
        /// The leads of both tasks.
        leads: Duration,
    },
    /// The CPUs do not suffice for tasks that share none.
    #[error(
        "{} are apart, and have only {} together: no choice keeps each pair on different ones",
        list(.tasks),
        .cpus.words()
    )]
    Apart {
        /// The tasks.
        tasks: Vec<String>,
        /// The CPUs that any of them may have.
        cpus: CpuSet,
    },
    /// The jobs of the tasks with a resource need it for longer than there is time.
    #[error(
        "the tasks with `{resource}` need it for at least {demand} of every {cycle}, but one at a time they can have at \
         most {supply}: {}",
        list(.tasks)
    )]
    Exclusive {
        /// The resource.
        resource: String,
        /// The needed time in one cycle.
        demand: Duration,
        /// The time in which windows are possible.
        supply: Duration,
        /// The cycle.
        cycle: Duration,
        /// Tasks that alone need more than that.
        tasks: Vec<String>,
    },
    /// A job finds no time between the jobs of another task with the same resource.
    #[error("task `{task}` takes {wcet}, but at most {free} are free between two jobs of `{other}`, which also has `{resource}`")]
    Between {
        /// The task.
        task: String,
        /// The time of its job.
        wcet: Duration,
        /// The other task.
        other: String,
        /// The resource.
        resource: String,
        /// The longest time between two jobs of the other task.
        free: Duration,
    },
    /// Windows and budgets of a CPU take too much together.
    #[error(
        "CPU {cpu}: its windows take at least {} and the budgets of {} {}, but together they can take at most 95 %, in \
         whole parts of 1024",
        percent(*.windows),
        list(.groups),
        percent(*.budgets)
    )]
    Budgets {
        /// The CPU.
        cpu: u32,
        /// The share of windows and leads in thousandths, rounded up.
        windows: i64,
        /// The share of the budgets in thousandths, rounded up.
        budgets: i64,
        /// The groups with these budgets.
        groups: Vec<String>,
    },
    /// The kernel does not admit the reservations of a CPU beside what must be there.
    #[error(
        "SCHED_DEADLINE would promise {} of CPU {cpu}, but the kernel allows at most {} beside the tasks and groups \
         that must be there, and its own reserve: {}",
        percent(*.promised),
        percent(*.allowed),
        list(.tasks)
    )]
    Reserved {
        /// The CPU.
        cpu: u32,
        /// The share of the reservations in thousandths, rounded up.
        promised: i64,
        /// The share that the kernel allows, in thousandths, rounded down and at least 0.
        allowed: i64,
        /// The tasks with these reservations.
        tasks: Vec<String>,
    },
    /// A chain cannot keep its bound in any table.
    #[error("chain `{chain}`: the bound on the {kind} is {bound}, but no table has less than {least}: {reason}")]
    Chain {
        /// The chain.
        chain: String,
        /// The kind of the bound.
        kind: Bound,
        /// The bound.
        bound: Duration,
        /// The time that every table needs.
        least: Duration,
        /// The reason.
        reason: String,
    },
}

fn percent(thousandths: i64) -> String {
    format!("{}.{} %", thousandths / 10, thousandths % 10)
}

/// Looks for a proof.
pub(crate) fn refute(problem: &Problem) -> Result<(), PlanError> {
    let refuted = chains(problem).or_else(|| starts(problem)).or_else(|| whole(problem));
    let refuted = refuted.or_else(|| pinned(problem)).or_else(|| exclusive(problem));
    if let Some(refutation) = refuted {
        return Err(PlanError::Impossible(refutation));
    }
    within_all_cpus(&problem.demands, problem.system, problem.cycle)?;
    let refuted = overload(problem).or_else(|| packing(problem));
    refuted.map_or(Ok(()), |refutation| Err(PlanError::Impossible(refutation)))
}

/// Proves that a bound of a chain is too short.
///
/// Between two jobs of task *i* in a row, which are at least its period apart in some place, no newer value passes. So
/// the reaction time is at least this period and the execution of all tasks. For the data age, the last task can use
/// the time between two of its own starts.
fn chains(problem: &Problem) -> Option<Refutation> {
    problem.system.chains.iter().zip(&problem.paths).find_map(|(chain, path)| chain_bound(problem, chain, path))
}

fn chain_bound(problem: &Problem, chain: &Chain, path: &[usize]) -> Option<Refutation> {
    let demand = |task: usize| &problem.demands[task];
    let work: Duration = path.iter().map(|&task| demand(task).wcet).sum();
    let slowest = path.iter().copied().max_by_key(|&task| (demand(task).period, Reverse(task)))?;
    let (name, period) = (&demand(slowest).name, demand(slowest).period);
    let refuted = |kind, bound: Option<Duration>, least: Duration, reason: String| {
        let chain = chain.name.clone();
        bound.filter(|&bound| bound < least).map(|bound| Refutation::Chain { chain, kind, bound, least, reason })
    };
    let waits = format!("an input waits for a period of `{name}`, {period}, and the jobs take {work}");
    let last = demand(path[path.len() - 1]);
    let (earliest, latest) =
        (Duration::ZERO, last.jitter.unwrap_or(last.deadline - last.wcet).min(last.deadline - last.wcet));
    let apart = last.period + latest - earliest;
    let aged = (period - apart).max(Duration::ZERO) + work;
    let ages = match period > apart {
        true => format!("a value of `{name}` is in use for its period, {period}, and the jobs take {work}"),
        false => format!("the jobs take {work}"),
    };
    refuted(Bound::Reaction, chain.reaction, period + work, waits)
        .or_else(|| refuted(Bound::Age, chain.age, aged, ages))
}

/// Returns the only CPU of a task, as an index.
fn only_cpu(problem: &Problem, demand: &Demand) -> Option<usize> {
    let mut cpus = demand.places(&problem.system.cpus);
    cpus.next().filter(|_| cpus.next().is_none())
}

/// Proves that two tasks with fixed starts collide.
fn starts(problem: &Problem) -> Option<Refutation> {
    let fixed =
        |demand: &&Demand| demand.jitter == Some(Duration::ZERO) && demand.offset.is_some() && !demand.is_pool();
    let fixed: Vec<&Demand> = problem.demands.iter().filter(fixed).collect();
    for (index, first) in fixed.iter().enumerate() {
        for second in &fixed[..index] {
            let (Some(cpu), Some(other)) = (only_cpu(problem, first), only_cpu(problem, second)) else { continue };
            let step = first.period.gcd(second.period);
            let apart = (first.release() - second.release()).as_nanos().rem_euclid(step.as_nanos());
            let apart = Duration::from_nanos(apart.min(step.as_nanos() - apart));
            if cpu == other && apart < LEAST_WINDOW {
                let (first, second, at) = (first.name.clone(), second.name.clone(), first.release() % step);
                return Some(Refutation::Starts { first, second, at, apart: LEAST_WINDOW });
            }
        }
    }
    None
}

/// Proves that a job without preemption is too long for the time between the jobs of another task on the same CPU.
fn whole(problem: &Problem) -> Option<Refutation> {
    (0..problem.system.cpus.len()).find_map(|cpu| {
        let here = |demand: &&Demand| only_cpu(problem, demand) == Some(cpu);
        let here: Vec<&Demand> = problem.demands.iter().filter(here).collect();
        between_jobs(&here).or_else(|| on_phases(&here))
    })
}

/// Compares the longest job with the least time between two jobs of another task.
///
/// A job ends its wcet after its start at the earliest, and the next one starts so much before its deadline at the
/// latest. With a jitter bound, starts are closer to each other. A preemptible job can also leave time within itself.
fn between_jobs(tasks: &[&Demand]) -> Option<Refutation> {
    let free = |demand: &Demand| {
        let Demand { period, wcet, deadline, .. } = *demand;
        let between = period + deadline - wcet * 2;
        let between = demand.jitter.map_or(between, |jitter| between.min(period + jitter - wcet));
        let within = if demand.preemptible { deadline - wcet } else { Duration::ZERO };
        between.max(within)
    };
    let mut longest: Vec<&Demand> = tasks.iter().filter(|demand| !demand.preemptible).copied().collect();
    longest.sort_by_key(|demand| (Reverse(demand.wcet + demand.lead), &demand.name));
    let mut tightest: Vec<&Demand> = tasks.iter().filter(|demand| !demand.is_pool()).copied().collect();
    tightest.sort_by_key(|demand| (free(demand) - demand.lead, &demand.name));
    // One of both pairs is in the way, if any is: a task is not in its own way.
    let pairs = longest.iter().take(2).flat_map(|task| tightest.iter().take(2).map(move |other| (*task, *other)));
    pairs.filter(|(task, other)| task.name != other.name).find_map(|(task, other)| too_long(task, other, free(other)))
}

/// Compares the longest jobs of tasks that start exactly periodically. Such windows must be disjoint modulo the common
/// divisor of their periods.
fn on_phases(tasks: &[&Demand]) -> Option<Refutation> {
    let mut longest: BTreeMap<Duration, Vec<&Demand>> = BTreeMap::new();
    let exact = |demand: &&&Demand| !demand.preemptible && demand.jitter == Some(Duration::ZERO);
    for demand in tasks.iter().filter(exact).copied() {
        let of = longest.entry(demand.period).or_default();
        of.push(demand);
        of.sort_by_key(|demand| (Reverse(demand.wcet), &demand.name));
        of.truncate(2);
    }
    let all: Vec<&Demand> = longest.into_values().flatten().collect();
    let mut pairs =
        all.iter().enumerate().flat_map(|(index, task)| all[..index].iter().map(move |other| (*task, *other)));
    pairs.find_map(|(task, other)| too_long(task, other, task.period.gcd(other.period) - other.wcet))
}

fn too_long(task: &Demand, other: &Demand, free: Duration) -> Option<Refutation> {
    let leads = task.lead + other.lead;
    let (name, other) = (task.name.clone(), other.name.clone());
    (task.wcet + leads > free).then_some(Refutation::Whole { task: name, wcet: task.wcet, other, free, leads })
}

/// Proves that a resource is needed for too long: in a cycle, in an interval, or between the jobs of one of its tasks.
fn exclusive(problem: &Problem) -> Option<Refutation> {
    let (resources, cycle) = (&problem.resources, problem.cycle);
    resources.names.iter().enumerate().find_map(|(index, resource)| {
        let tasks: Vec<&Demand> = resources.tasks(index).iter().map(|&task| &problem.demands[task]).collect();
        let shares: Vec<(Duration, &str)> =
            tasks.iter().map(|task| (task.wcet * (cycle / task.period), task.name.as_str())).collect();
        let (demand, supply) =
            (shares.iter().map(|&(share, _)| share).sum(), cycle - synced(problem, Duration::ZERO, cycle));
        if demand > supply {
            let (demand, tasks) = least(shares, demand, supply);
            return Some(Refutation::Exclusive { resource: resource.clone(), demand, supply, cycle, tasks });
        }
        between_spans(&tasks, resource).or_else(|| match interval(problem, &tasks, 1)? {
            Refutation::Demand { cpus, from, to, demand, supply, tasks, .. } => {
                Some(Refutation::Demand { resource: Some(resource.clone()), cpus, from, to, demand, supply, tasks })
            }
            other => Some(other),
        })
    })
}

/// Compares the longest job of a resource with the longest time between two jobs of another of its tasks.
///
/// A job ends its wcet after its start at the earliest. With exact starts of both tasks, the time is even shorter: their
/// jobs are disjoint modulo the common divisor of the periods.
fn between_spans(tasks: &[&Demand], resource: &str) -> Option<Refutation> {
    let is_exact = |demand: &Demand| demand.jitter == Some(Duration::ZERO);
    let free = |task: &Demand, other: &Demand| {
        let Demand { period, wcet, deadline, .. } = *other;
        let between = period + deadline - wcet * 2;
        let between = other.jitter.map_or(between, |jitter| between.min(period + jitter - wcet));
        let exact = is_exact(task) && is_exact(other);
        if exact {
            between.min(task.period.gcd(period) - wcet)
        } else {
            between
        }
    };
    let each = tasks.iter().flat_map(|task| tasks.iter().map(move |other| (*task, *other)));
    each.filter(|(task, other)| task.name != other.name).take(STEPS).find_map(|(task, other)| {
        let free = free(task, other);
        (task.wcet > free).then(|| Refutation::Between {
            task: task.name.clone(),
            wcet: task.wcet,
            other: other.name.clone(),
            resource: resource.into(),
            free: free.max(Duration::ZERO),
        })
    })
}

/// Proves that a CPU is overloaded by the tasks that can use no other one.
fn pinned(problem: &Problem) -> Option<Refutation> {
    let capacity = capacity(problem.system, problem.cycle);
    let cpus = problem.system.cpus.iter().enumerate();
    for (index, &cpu) in cpus.filter(|_| problem.system.cpus.len() > 1) {
        let of = |demand: &&Demand| only_cpu(problem, demand) == Some(index);
        let mut shares: Vec<(Duration, &str)> = Vec::new();
        for demand in problem.demands.iter().filter(of) {
            shares.push((demand.per_cycle(problem.cycle), &demand.name));
        }
        let demand = shares.iter().map(|&(share, _)| share).sum();
        if demand > capacity {
            let (demand, tasks) = least(shares, demand, capacity);
            return Some(Refutation::Pinned { cpu, demand, capacity, cycle: problem.cycle, tasks });
        }
    }
    None
}

/// Removes the smallest shares while the rest exceeds the limit. Returns the sum of the rest, and its names.
fn least(mut shares: Vec<(Duration, &str)>, mut demand: Duration, limit: Duration) -> (Duration, Vec<String>) {
    shares.sort_by_key(|&(share, name)| (Reverse(share), name));
    while let Some(&(share, _)) = shares.last().filter(|&&(share, _)| demand - share > limit) {
        demand -= share;
        shares.pop();
    }
    (demand, shares.into_iter().map(|(_, name)| name.to_owned()).collect())
}

/// Proves that the jobs within an interval need too much: on each CPU with its pinned tasks, and on all CPUs together.
fn overload(problem: &Problem) -> Option<Refutation> {
    let cpus = problem.system.cpus.len();
    let all: Vec<&Demand> = problem.demands.iter().collect();
    let of = |cpu: usize| {
        let here = |demand: &&&Demand| only_cpu(problem, demand) == Some(cpu);
        all.iter().filter(here).copied().collect::<Vec<&Demand>>()
    };
    let one = (0..cpus).filter(|_| cpus > 1).find_map(|cpu| interval(problem, &of(cpu), 1));
    one.or_else(|| interval(problem, &all, cpus))
}

/// The release and the deadline of a job, its time, and its task.
type Job = (Duration, Duration, Duration, usize);

fn interval(problem: &Problem, demands: &[&Demand], cpus: usize) -> Option<Refutation> {
    let fixed = |demand: &Demand| demand.offset.is_some() || demand.jitter.is_none();
    let mut jobs: Vec<Job> = Vec::new();
    for (index, demand) in demands.iter().enumerate().filter(|(_, demand)| fixed(demand)) {
        for number in 0..2 * (problem.cycle / demand.period) {
            let release = demand.release() + demand.period * number;
            jobs.push((release, release + demand.deadline, demand.wcet, index));
        }
        if jobs.len() > STEPS {
            return None;
        }
    }
    let begins: BTreeSet<Duration> = jobs.iter().map(|job| job.0).filter(|&release| release < problem.cycle).collect();
    jobs.sort_by_key(|job| job.1);
    let mut steps = 0;
    for from in begins {
        steps += jobs.len();
        if steps > STEPS {
            return None;
        }
        let mut demand = Duration::ZERO;
        for (position, &(release, to, wcet, _)) in jobs.iter().enumerate() {
            if release < from {
                continue;
            }
            demand += wcet;
            if to > from + problem.cycle || jobs.get(position + 1).is_some_and(|next| next.1 == to) {
                continue;
            }
            if let Some(found) = exceeded(problem, demands, cpus, &jobs, (from, to), demand) {
                return Some(found);
            }
        }
    }
    None
}

/// Returns the refutation of an interval if the jobs in it need more than the CPUs have. `demand` is that of jobs with
/// a known release.
fn exceeded(
    problem: &Problem,
    demands: &[&Demand],
    cpus: usize,
    jobs: &[Job],
    (from, to): (Duration, Duration),
    demand: Duration,
) -> Option<Refutation> {
    let length = to - from;
    let supply = (length - synced(problem, from, to)) * cpus as i64;
    // Wherever the solver puts the release, so many jobs lie within the interval.
    let chosen = |demand: &Demand| {
        let own = demand.offset.is_none() && demand.jitter.is_some() && length >= demand.deadline;
        demand.wcet * if own { (length - demand.deadline) / demand.period } else { 0 }
    };
    let free: Duration = demands.iter().map(|demand| chosen(demand)).sum();
    if demand + free <= supply {
        return None;
    }
    let mut shares: Vec<(Duration, &str)> =
        demands.iter().map(|demand| (chosen(demand), demand.name.as_str())).collect();
    for &(release, deadline, wcet, index) in jobs {
        if release >= from && deadline <= to {
            shares[index].0 += wcet;
        }
    }
    shares.retain(|&(share, _)| share > Duration::ZERO);
    let (demand, tasks) = least(shares, demand + free, supply);
    Some(Refutation::Demand { resource: None, cpus, from, to, demand, supply, tasks })
}

/// Returns the time of sync windows in an interval.
fn synced(problem: &Problem, from: Duration, to: Duration) -> Duration {
    let Some(sync) = problem.system.sync() else { return Duration::ZERO };
    let before = |instant: Duration| {
        let (whole, rest) = (instant / sync.period, instant % sync.period);
        sync.length * whole + (rest - sync.offset).max(Duration::ZERO).min(sync.length)
    };
    before(to) - before(from)
}

/// Proves that the tasks cannot be divided among the CPUs, beside the budgets there. A task that may migrate can be
/// divided.
fn packing(problem: &Problem) -> Option<Refutation> {
    let (system, cycle) = (problem.system, problem.cycle);
    let (cpus, capacity) = (system.cpus.len(), capacity(system, cycle));
    if cpus == 1 || problem.demands.iter().any(|demand| demand.migrate) {
        return None;
    }
    // The kernel counts leads in nanoseconds.
    let lead = system.lead.map_or(Duration::ZERO, |lead| lead.reserved());
    let size = |demand: &Demand| {
        if demand.kind == Kind::Reserve {
            return 0;
        }
        let lead = if demand.is_pool() { Duration::ZERO } else { lead };
        ((demand.wcet + lead) * (cycle / demand.period)).as_nanos()
    };
    let sizes: Vec<i64> = problem.demands.iter().map(size).collect();
    let room = |cpu: &u32| reserve::room_for_windows(system, *cpu, cycle).as_nanos();
    let room: Vec<i64> = system.cpus.iter().map(room).collect();
    // With much room everywhere, there is a packing, and the search finds it.
    let (needed, largest) = (sizes.iter().sum::<i64>(), sizes.iter().max().copied().unwrap_or(0));
    let least = room.iter().min().copied().unwrap_or(0);
    let is_free = |demand: &Demand| [1, cpus].contains(&demand.places(&system.cpus).count());
    if problem.demands.iter().all(is_free) && needed + largest * cpus as i64 <= least * cpus as i64 {
        return None;
    }
    let impossible = |tasks: &[usize]| {
        let sizes: Vec<i64> = tasks.iter().map(|&task| sizes[task]).collect();
        let allowed: Vec<Vec<usize>> =
            tasks.iter().map(|&task| problem.demands[task].places(&system.cpus).collect()).collect();
        packing::pack(&sizes, &allowed, &room, &mut SplitMix64::new(1)) == Packed::Impossible
    };
    let mut tasks: Vec<usize> = (0..sizes.len()).collect();
    tasks.sort_by_key(|&task| (sizes[task], task));
    if !impossible(&tasks) {
        return None;
    }
    // Each task that is not necessary for the conflict is left out. Small ones come first.
    for task in tasks.clone() {
        let without: Vec<usize> = tasks.iter().copied().filter(|&other| other != task).collect();
        if impossible(&without) {
            tasks = without;
        }
    }
    tasks.sort_unstable();
    let tasks = tasks.into_iter().map(|task| problem.demands[task].name.clone()).collect();
    let has_budget = |group: &&Group| group.budget.is_some() && system.cpus.iter().any(|cpu| group.cpus.contains(cpu));
    let groups = system.servers().filter(has_budget).map(|group| group.name.clone()).collect();
    Some(Refutation::Packing { tasks, cpus, capacity, cycle, groups })
}

/// Returns the words about leads.
fn with_leads(leads: &Duration) -> String {
    match *leads {
        Duration::ZERO => String::new(),
        leads => format!(", and their leads take {leads}"),
    }
}

/// Returns the names, as in a sentence.
fn list(names: &[String]) -> String {
    const SHOWN: usize = 6;
    let quoted: Vec<String> = names.iter().take(SHOWN).map(|name| format!("`{name}`")).collect();
    match names.len() > SHOWN {
        true => format!("{} and {} more", quoted.join(", "), names.len() - SHOWN),
        false => quoted.join(", "),
    }
}
