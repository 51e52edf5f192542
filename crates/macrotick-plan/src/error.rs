//! The reasons why a system cannot be planned.

use std::fmt;

use std::time::Duration as WallTime;

use macrotick_model::{Duration, Finding, System};

use crate::gates::GateError;
use crate::refute::Refutation;

/// The kind of an entity that cannot be planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A task.
    Task,
    /// A pool.
    Pool,
    /// The reserve of a CPU.
    Reserve,
}

impl Kind {
    /// Returns the name of the time that the entity needs.
    pub(crate) fn length(self) -> &'static str {
        match self {
            Kind::Task => "wcet",
            Kind::Pool => "budget",
            Kind::Reserve => "length",
        }
    }

    /// Returns the name of the threads or the job in its windows.
    fn served(self) -> &'static str {
        match self {
            Kind::Task => "job",
            Kind::Pool | Kind::Reserve => "threads",
        }
    }

    /// Returns the name of the time within which it needs that time.
    fn limit(self) -> &'static str {
        match self {
            Kind::Task => "deadline",
            Kind::Pool | Kind::Reserve => "period",
        }
    }

    /// Returns the path of its name.
    fn place(self, system: &System, name: &str) -> String {
        match self {
            Kind::Task => named("tasks", system.tasks.iter().map(|task| &task.name), name, "name"),
            Kind::Pool => {
                let index = system.groups.iter().position(|group| group.pool_name().as_deref() == Some(name));
                index.map_or("groups".into(), |index| format!("groups[{index}].name"))
            }
            Kind::Reserve => "reserve".into(),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Kind::Task => "task",
            Kind::Pool => "pool",
            Kind::Reserve => "free time",
        })
    }
}

/// A bound of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// The reaction time.
    Reaction,
    /// The data age.
    Age,
}

impl Bound {
    /// Returns the path of a chain's bound.
    fn place(self, system: &System, chain: &str) -> String {
        let key = match self {
            Bound::Reaction => "reaction",
            Bound::Age => "age",
        };
        named("chains", system.chains.iter().map(|one| &one.name), chain, key)
    }
}

impl Refutation {
    /// Returns the path of the first thing that conflicts.
    fn place(&self, system: &System) -> String {
        match self {
            Refutation::Pinned { tasks, .. }
            | Refutation::Demand { tasks, .. }
            | Refutation::Packing { tasks, .. }
            | Refutation::Pieces { tasks, .. }
            | Refutation::Apart { tasks, .. }
            | Refutation::Exclusive { tasks, .. }
            | Refutation::Reserved { tasks, .. } => {
                let task = tasks.iter().find(|name| system.task(name).is_some());
                task.map_or("tasks".into(), |task| Kind::Task.place(system, task))
            }
            Refutation::Starts { first: task, .. }
            | Refutation::Whole { task, .. }
            | Refutation::Between { task, .. } => Kind::Task.place(system, task),
            Refutation::Budgets { groups, .. } => {
                let first = groups.first().map_or("", |group| group);
                named("groups", system.groups.iter().map(|one| &one.name), first, "budget")
            }
            Refutation::Chain { chain, kind, .. } => kind.place(system, chain),
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Bound::Reaction => "reaction time",
            Bound::Age => "data age",
        })
    }
}

/// The answer to a system without a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// No plan exists.
    Impossible,
    /// No plan was found within the time limit; one may exist.
    NotFound,
    /// The question was wrong, and no plan was searched for.
    Unanswered,
}

/// The end of a search without a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The time limit.
    Time(WallTime),
    /// The most trials. More of them find nothing more.
    Trials(u64),
    /// The one that watches the search.
    Interrupted,
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ended::Time(limit) => write!(f, "in {limit:?}"),
            Ended::Trials(1) => write!(f, "in 1 trial"),
            Ended::Trials(trials) => write!(f, "in {trials} trials"),
            Ended::Interrupted => f.write_str("before the search was interrupted"),
        }
    }
}

/// The reason why a system cannot be planned: the conflict and its size.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The common multiple of the periods exceeds the range.
    #[error("the system has no hyperperiod")]
    NoHyperperiod,
    /// The solver `null` needs a table in the description.
    #[error("the solver `null` needs a `table`, and the description has none")]
    NoTable,
    /// The wcet or budget, rounded up to the grid, exceeds the deadline, rounded down to it.
    #[error(
        "{kind} `{task}`: its {} takes {wcet} on the grid, but its {} allows only {deadline}",
        .kind.length(),
        .kind.limit()
    )]
    Grid {
        /// The kind of the entity.
        kind: Kind,
        /// The task or pool.
        task: String,
        /// The planned wcet or budget: a multiple of the macrotick, at least the shortest window.
        wcet: Duration,
        /// The planned deadline, or the period of a pool.
        deadline: Duration,
    },
    /// A window ends before its job or threads run.
    #[error(
        "{kind} `{task}`: its {} of {wcet} is too short: a window of less than {least} ends before the kernel runs \
         its {}",
        .kind.length(),
        .kind.served()
    )]
    NoStart {
        /// The kind of the entity.
        kind: Kind,
        /// The task or pool.
        task: String,
        /// Its wcet or budget.
        wcet: Duration,
        /// The least useful length.
        least: Duration,
    },
    /// All tasks and pools together need more time than all CPUs can give.
    #[error(
        "the tasks{} need {demand} of every {cycle}{}, but {cpus} CPU(s) can give at most {capacity} ({})",
        if *.pools { " and pools" } else { "" },
        with_lead(.lead),
        of_each(*.capacity, *.cycle, *.cpus)
    )]
    Overload {
        /// Whether there are pools.
        pools: bool,
        /// The needed time in one cycle, leads included.
        demand: Duration,
        /// The lead of each job on the grid; zero if the system has none.
        lead: Duration,
        /// The time that can be planned in one cycle.
        capacity: Duration,
        /// The cycle.
        cycle: Duration,
        /// The number of CPUs.
        cpus: usize,
    },
    /// A task or pool fits on none of its CPUs, beside the others there.
    #[error(
        "{kind} `{task}` needs {demand} of every {cycle}{}: CPU {cpu}, the emptiest it may use, has {free} left of \
         {capacity}",
        with_lead(.lead)
    )]
    NoRoom {
        /// The kind of the entity.
        kind: Kind,
        /// The task or pool.
        task: String,
        /// The time that it needs in one cycle, leads included.
        demand: Duration,
        /// The lead of each job on the grid; zero if the system has none.
        lead: Duration,
        /// The cycle.
        cycle: Duration,
        /// The CPU with the most room among the allowed ones.
        cpu: u32,
        /// The free time there.
        free: Duration,
        /// The time that windows and leads can take there.
        capacity: Duration,
    },
    /// The search for CPUs of tasks that share none took too many steps.
    #[error("no CPUs were found for the tasks that are apart on {cpus} CPU(s): {}", list(.tasks))]
    NoColors {
        /// The tasks.
        tasks: Vec<String>,
        /// The number of CPUs.
        cpus: usize,
    },
    /// Two jobs have a resource at the same time.
    #[error("task `{task}`: a job starts while a job of `{other}` has `{resource}`")]
    Exclusive {
        /// The resource.
        resource: String,
        /// The task.
        task: String,
        /// The other task.
        other: String,
    },
    /// The windows of a frozen task cannot stay.
    #[error(
        "the windows of `{task}` cannot stay: a sync window, the reserve, a message, a task in its `after` or `apart`, \
         a resource, or another frozen window is in their way"
    )]
    Frozen {
        /// The task or pool.
        task: String,
    },
    /// No phase gives all jobs of a task a start within the jitter bound and their time before the deadline.
    #[error(
        "task `{task}`: found no phase on CPU {cpu} that gives each job a start within its jitter bound and {wcet} of \
         every {period} before its deadline{}{}, beside {}",
        in_one_window(.whole),
        with_lead(.lead),
        list(.others)
    )]
    NoPhase {
        /// The task.
        task: String,
        /// The last CPU that was tried.
        cpu: u32,
        /// The time per job.
        wcet: Duration,
        /// The period.
        period: Duration,
        /// The lead of each job on the grid; zero if the system has none.
        lead: Duration,
        /// Whether each job needs it in one window, because the task is not preemptible.
        whole: bool,
        /// The tasks that were placed there before.
        others: Vec<String>,
    },
    /// A job of the task misses its deadline even under EDF, or a period of the pool has too little free time.
    #[error(
        "{kind} `{task}`: a {} on CPU {cpu} does not get {wcet} within {deadline}{}{}, beside {}",
        if *.kind == Kind::Pool { "period" } else { "job" },
        in_one_window(.whole),
        with_lead(.lead),
        list(.others)
    )]
    Deadline {
        /// The kind of the entity.
        kind: Kind,
        /// The task or pool.
        task: String,
        /// The last CPU that was tried.
        cpu: u32,
        /// The time per job or period.
        wcet: Duration,
        /// The time from release to deadline, or the period of a pool.
        deadline: Duration,
        /// The lead of each job on the grid; zero if the system has none.
        lead: Duration,
        /// Whether each job needs it in one window, because the task is not preemptible.
        whole: bool,
        /// The other tasks and pools on that CPU.
        others: Vec<String>,
    },
    /// The jobs of a task that may migrate are not complete in time on several CPUs either.
    #[error(
        "task `{task}`: no pieces on several CPUs give each job {wcet} within {deadline}{}",
        with_lead(.lead)
    )]
    Pieces {
        /// The task.
        task: String,
        /// The time per job.
        wcet: Duration,
        /// The time from release to deadline.
        deadline: Duration,
        /// The lead of each job on the grid; zero if the system has none.
        lead: Duration,
    },
    /// No table has every task on one CPU, and no table was found with tasks on several CPUs.
    #[error("{whole}; with tasks on several CPUs: {split}")]
    Split {
        /// The reason without tasks on several CPUs.
        whole: Box<PlanError>,
        /// The reason with tasks on several CPUs, from the last try.
        split: Box<PlanError>,
    },
    /// Every table that was found exceeds a bound of a chain.
    #[error("chain `{chain}`: the best {kind} found is {reached}, but the bound is {bound}")]
    Chain {
        /// The chain.
        chain: String,
        /// The kind of the bound.
        kind: Bound,
        /// The bound.
        bound: Duration,
        /// The best time that was reached.
        reached: Duration,
    },
    /// No CPU has room for a reservation of SCHED_DEADLINE.
    #[error("task `{task}` needs {need} % of a CPU for SCHED_DEADLINE, but {}", room(*.cpu, *.free))]
    NoBandwidth {
        /// The task.
        task: String,
        /// Its bandwidth in percent of a CPU, rounded up.
        need: i64,
        /// The CPU that the description gives to the task, if any.
        cpu: Option<u32>,
        /// The free bandwidth on this CPU, or else on the emptiest CPU that the task can have alone, in percent. It is
        /// rounded down and at least 0; `None` if there is no such CPU.
        free: Option<i64>,
    },
    /// The tables need more windows than a table can hold.
    #[error("the tables need {windows} windows, but at most {limit} are possible")]
    TooManyWindows {
        /// The number of windows.
        windows: usize,
        /// `MACROTICK_MAX_WINDOWS`.
        limit: usize,
    },
    /// There is no table, for this reason.
    #[error(transparent)]
    Impossible(Refutation),
    /// The search found no table. The bottleneck is the reason of the first or the closest try.
    #[error("{bottleneck}")]
    NotFound {
        /// The reason why the search ended.
        ended: Ended,
        /// The bottleneck.
        bottleneck: Box<PlanError>,
    },
    /// The gates of an interface cannot be placed beside the windows.
    #[error(transparent)]
    Gates(GateError),
}

impl PlanError {
    /// Whether the system has no plan. Otherwise the error has another cause, and no plan was searched for.
    pub fn is_infeasible(&self) -> bool {
        !matches!(self, PlanError::NoHyperperiod | PlanError::NoTable)
    }

    /// Returns the answer: only a proof says that there is no plan.
    pub fn answer(&self) -> Answer {
        use PlanError::*;
        match self {
            NoHyperperiod | NoTable => Answer::Unanswered,
            Impossible(_) | Overload { .. } | Grid { .. } | NoStart { .. } => Answer::Impossible,
            _ => Answer::NotFound,
        }
    }

    /// Returns the answer in words, before the reason.
    fn words(&self) -> String {
        match (self.answer(), self) {
            (Answer::Impossible, _) => "proved impossible: ".into(),
            (_, PlanError::NotFound { ended, .. }) => format!("not found {ended}: "),
            (Answer::NotFound, _) => "not found: ".into(),
            (Answer::Unanswered, _) => String::new(),
        }
    }

    /// Returns the error with its place in the description of the system.
    pub fn finding(&self, system: &System) -> Finding {
        let (at, hint) = self.place(system);
        let message = match self {
            PlanError::Gates(error) => return error.finding(system),
            _ => format!("{}{self}", self.words()),
        };
        Finding { at, message, hint }
    }

    /// Returns the place in the description, and a hint.
    fn place(&self, system: &System) -> (String, Option<String>) {
        match self {
            PlanError::Gates(_) => (String::new(), None),
            PlanError::NotFound { bottleneck, .. } => bottleneck.place(system),
            PlanError::Impossible(refutation) => (refutation.place(system), None),
            PlanError::Split { whole, .. } => (whole.place(system).0, None),
            PlanError::Overload { .. } => ("tasks".into(), Some(greatest(system))),
            PlanError::Chain { chain, kind, .. } => (kind.place(system, chain), None),
            PlanError::Grid { kind, task, .. }
            | PlanError::NoRoom { kind, task, .. }
            | PlanError::Deadline { kind, task, .. } => (kind.place(system, task), None),
            PlanError::NoStart { kind, task, .. } => {
                let name = kind.place(system, task);
                let key = match kind {
                    Kind::Task => "wcet",
                    Kind::Pool => "windows.length",
                    Kind::Reserve => "reserve.length",
                };
                let place = if *kind == Kind::Reserve { key.into() } else { name.replace(".name", &format!(".{key}")) };
                (place, Some(format!("set a longer `{key}`")))
            }
            PlanError::NoPhase { task, .. }
            | PlanError::Pieces { task, .. }
            | PlanError::NoBandwidth { task, .. }
            | PlanError::Exclusive { task, .. }
            | PlanError::Frozen { task } => (Kind::Task.place(system, task), None),
            PlanError::NoHyperperiod
            | PlanError::NoTable
            | PlanError::NoColors { .. }
            | PlanError::TooManyWindows { .. } => ("tasks".into(), None),
        }
    }

    /// Returns the task or pool without a place or time.
    pub(crate) fn unplaced(&self) -> Option<&str> {
        use PlanError::*;
        match self {
            NoRoom { task, .. } | NoPhase { task, .. } | Deadline { task, .. } | Pieces { task, .. } => Some(task),
            NoHyperperiod
            | NoTable
            | NoColors { .. }
            | NoStart { .. }
            | Grid { .. }
            | Overload { .. }
            | Chain { .. }
            | Exclusive { .. }
            | Frozen { .. }
            | NoBandwidth { .. }
            | TooManyWindows { .. }
            | Gates(_)
            | Impossible(_)
            | Split { .. } => None,
            NotFound { bottleneck, .. } => bottleneck.unplaced(),
        }
    }
}

/// Returns the share of each CPU that windows can take.
fn of_each(capacity: Duration, cycle: Duration, cpus: usize) -> String {
    let all = i128::from(cycle.as_nanos()) * cpus as i128;
    let permille = (i128::from(capacity.as_nanos()) * 1000 / all.max(1)) as i64;
    match permille + 1 >= crate::CAP_PERMILLE {
        true => format!("{} % of each", crate::CAP_PERMILLE / 10),
        // Sync windows and the reserve take the rest.
        false => format!("{}.{} % of each", permille / 10, permille % 10),
    }
}

/// Returns the path of a key of the item with this name.
fn named<'a>(list: &str, mut names: impl Iterator<Item = &'a String>, name: &str, key: &str) -> String {
    names.position(|other| other == name).map_or(list.into(), |index| format!("{list}[{index}].{key}"))
}

/// Returns a hint with the tasks and pools that need most.
fn greatest(system: &System) -> String {
    const SHOWN: usize = 3;
    let share = |length: Duration, period: Duration| 100.0 * length.as_nanos() as f64 / period.as_nanos() as f64;
    let tasks = system.tasks.iter().filter(|task| task.supply.is_windows());
    let tasks = tasks.map(|task| (share(task.wcet, task.period), task.name.clone()));
    let pools = system.pools().map(|pool| (share(pool.length, pool.period), pool.name));
    let mut all: Vec<(f64, String)> = tasks.chain(pools).collect();
    all.sort_by(|a, b| b.0.total_cmp(&a.0));
    let most: Vec<String> = all.iter().take(SHOWN).map(|(share, name)| format!("`{name}` {share:.1} %")).collect();
    format!("the largest shares of a CPU: {}", most.join(", "))
}

/// Returns the words about the lead that the needed time includes.
fn with_lead(lead: &Duration) -> String {
    match *lead {
        Duration::ZERO => String::new(),
        lead => format!(", with a lead of {lead} for each job"),
    }
}

/// Returns the words about a task that is not preemptible.
fn in_one_window(whole: &bool) -> &'static str {
    if *whole {
        ", in one window because it is not preemptible"
    } else {
        ""
    }
}

fn room(cpu: Option<u32>, free: Option<i64>) -> String {
    let which = cpu.map_or("the emptiest CPU".into(), |cpu| format!("CPU {cpu}"));
    match free {
        Some(free) => format!("{which} has {free} % left beside windows, leads, budgets and other such tasks"),
        None => "there is no CPU that it can have alone".into(),
    }
}

/// Returns the first few names and the number of the others.
fn list(names: &[String]) -> String {
    const SHOWN: usize = 5;
    match names {
        [] => "no other task".into(),
        names if names.len() <= SHOWN => names.join(", "),
        names => format!("{} and {} more", names[..SHOWN].join(", "), names.len() - SHOWN),
    }
}
