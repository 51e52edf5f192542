//! Why a system could not be planned.

use std::fmt;

use macrotick_model::{Duration, Finding, System};

/// What could not be planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A task.
    Task,
    /// A pool.
    Pool,
}

impl Kind {
    /// What is to be given within a length of time.
    fn length(self) -> &'static str {
        match self {
            Kind::Task => "wcet",
            Kind::Pool => "budget",
        }
    }

    /// What that is for.
    fn served(self) -> &'static str {
        match self {
            Kind::Task => "job",
            Kind::Pool => "threads",
        }
    }

    /// What that length of time is.
    fn limit(self) -> &'static str {
        match self {
            Kind::Task => "deadline",
            Kind::Pool => "period",
        }
    }

    /// The path of its name.
    fn place(self, system: &System, name: &str) -> String {
        match self {
            Kind::Task => named("tasks", system.tasks.iter().map(|task| &task.name), name, "name"),
            Kind::Pool => {
                let index = system.groups.iter().position(|group| group.pool_name().as_deref() == Some(name));
                index.map_or("groups".into(), |index| format!("groups[{index}].name"))
            }
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Kind::Task => "task",
            Kind::Pool => "pool",
        })
    }
}

/// Which bound of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// The reaction time.
    Reaction,
    /// The data age.
    Age,
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Bound::Reaction => "reaction time",
            Bound::Age => "data age",
        })
    }
}

/// Why a system could not be planned: what conflicts, and by how much.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// Periods whose common multiple exceeds the range.
    #[error("the system has no hyperperiod")]
    NoHyperperiod,
    /// `null` needs a table in the description.
    #[error("the null solver takes the table given in the description, and there is none")]
    NoTable,
    /// The wcet or budget rounded up to the grid exceeds the deadline rounded down to it.
    #[error(
        "{kind} `{task}`: its {} needs {wcet} on the grid, its {} leaves {deadline}",
        .kind.length(),
        .kind.limit()
    )]
    Grid {
        /// What it is.
        kind: Kind,
        /// The task or pool.
        task: String,
        /// The wcet or budget as planned: a multiple of the macrotick, at least the shortest window.
        wcet: Duration,
        /// The deadline as planned, a pool's period.
        deadline: Duration,
    },
    /// A window that is over before what it is for begins.
    #[error(
        "{kind} `{task}`: its {} of {wcet} would be over before the kernel has come to its {}: {least} are the least",
        .kind.length(),
        .kind.served()
    )]
    NoStart {
        /// What it is.
        kind: Kind,
        /// The task or pool.
        task: String,
        /// Its wcet or budget.
        wcet: Duration,
        /// The least that makes sense.
        least: Duration,
    },
    /// All tasks and pools together need more than all CPUs may give.
    #[error(
        "the tasks{} need {demand} of every {cycle}{}, {cpus} CPU(s) may give {capacity} ({} % of each)",
        if *.pools { " and pools" } else { "" },
        with_lead(.lead),
        crate::CAP_PERMILLE / 10
    )]
    Overload {
        /// Whether there are pools.
        pools: bool,
        /// Time needed in one cycle, leads included.
        demand: Duration,
        /// The lead of each job on the grid; zero where the system has none.
        lead: Duration,
        /// Time that may be planned in one cycle.
        capacity: Duration,
        /// The cycle.
        cycle: Duration,
        /// How many CPUs.
        cpus: usize,
    },
    /// A task or pool fits on none of its CPUs beside what is there already.
    #[error(
        "{kind} `{task}` needs {demand} of every {cycle}{}: CPU {cpu}, the emptiest it may use, has {free} left of \
         {capacity}",
        with_lead(.lead)
    )]
    NoRoom {
        /// What it is.
        kind: Kind,
        /// The task or pool.
        task: String,
        /// Time it needs in one cycle, leads included.
        demand: Duration,
        /// The lead of each job on the grid; zero where the system has none.
        lead: Duration,
        /// The cycle.
        cycle: Duration,
        /// The CPU with the most room among those it may use.
        cpu: u32,
        /// What is left there.
        free: Duration,
        /// What windows and leads may take there.
        capacity: Duration,
    },
    /// No phase gives all jobs of a task their start within the jitter bound and their time before the deadline.
    #[error(
        "task `{task}`: no phase on CPU {cpu} gives each job a start within its jitter bound and {wcet} of every \
         {period} before its deadline{}, beside {}",
        with_lead(.lead),
        list(.others)
    )]
    NoPhase {
        /// The task.
        task: String,
        /// The CPU tried last.
        cpu: u32,
        /// Time per job.
        wcet: Duration,
        /// The period.
        period: Duration,
        /// The lead of each job on the grid; zero where the system has none.
        lead: Duration,
        /// The tasks placed there before.
        others: Vec<String>,
    },
    /// A job of the task misses its deadline even under EDF, or a period of the pool has too little left.
    #[error(
        "{kind} `{task}`: a {} on CPU {cpu} does not get {wcet} within {deadline}{}, beside {}",
        if *.kind == Kind::Pool { "period" } else { "job" },
        with_lead(.lead),
        list(.others)
    )]
    Deadline {
        /// What it is.
        kind: Kind,
        /// The task or pool.
        task: String,
        /// The CPU tried last.
        cpu: u32,
        /// Time per job or period.
        wcet: Duration,
        /// From release to deadline, a pool's period.
        deadline: Duration,
        /// The lead of each job on the grid; zero where the system has none.
        lead: Duration,
        /// What else is on that CPU.
        others: Vec<String>,
    },
    /// The jobs of a task that may migrate are not done in time on several CPUs either.
    #[error(
        "task `{task}`: no pieces on several CPUs give each job {wcet} within {deadline}{}",
        with_lead(.lead)
    )]
    Pieces {
        /// The task.
        task: String,
        /// Time per job.
        wcet: Duration,
        /// From release to deadline.
        deadline: Duration,
        /// The lead of each job on the grid; zero where the system has none.
        lead: Duration,
    },
    /// There is no table with every task on one CPU, and none with those that may migrate on several.
    #[error("{whole}; with tasks on several CPUs: {split}")]
    Split {
        /// Why not with every task on one CPU.
        whole: Box<PlanError>,
        /// Why not with tasks on several, as last tried.
        split: Box<PlanError>,
    },
    /// Every table that was found exceeds a chain's bound.
    #[error("chain `{chain}`: the best {kind} found is {reached}, the bound is {bound}")]
    Chain {
        /// The chain.
        chain: String,
        /// Which bound.
        kind: Bound,
        /// The bound.
        bound: Duration,
        /// The best value reached.
        reached: Duration,
    },
    /// No CPU has room for a reservation of SCHED_DEADLINE.
    #[error("task `{task}` needs {need} % of a CPU for SCHED_DEADLINE, and {}", room(*.free))]
    NoBandwidth {
        /// The task.
        task: String,
        /// Its bandwidth in per cent of a CPU, rounded up.
        need: i64,
        /// What is left on the emptiest CPU that it may have alone, rounded down and at least 0; `None`: there is none.
        free: Option<i64>,
    },
    /// More windows than a table can hold.
    #[error("the tables need {windows} windows, at most {limit} are possible")]
    TooManyWindows {
        /// How many.
        windows: usize,
        /// `MACROTICK_MAX_WINDOWS`.
        limit: usize,
    },
}

impl PlanError {
    /// Whether there is no plan for what was described. Else something else is wrong: no plan was looked for.
    pub fn is_infeasible(&self) -> bool {
        !matches!(self, PlanError::NoHyperperiod | PlanError::NoTable)
    }

    /// The same, at its place in the system's description.
    pub fn finding(&self, system: &System) -> Finding {
        let (at, hint) = match self {
            PlanError::Split { whole, .. } => (whole.finding(system).at, None),
            PlanError::Overload { .. } => ("tasks".into(), Some(greatest(system))),
            PlanError::Chain { chain, kind, .. } => {
                let key = match kind {
                    Bound::Reaction => "reaction",
                    Bound::Age => "age",
                };
                (named("chains", system.chains.iter().map(|one| &one.name), chain, key), None)
            }
            PlanError::Grid { kind, task, .. }
            | PlanError::NoRoom { kind, task, .. }
            | PlanError::Deadline { kind, task, .. } => (kind.place(system, task), None),
            PlanError::NoStart { kind, task, .. } => {
                let name = kind.place(system, task);
                let key = match kind {
                    Kind::Task => "wcet",
                    Kind::Pool => "windows.length",
                };
                (name.replace(".name", &format!(".{key}")), Some(format!("a longer `{key}`")))
            }
            PlanError::NoPhase { task, .. } | PlanError::Pieces { task, .. } | PlanError::NoBandwidth { task, .. } => {
                (Kind::Task.place(system, task), None)
            }
            PlanError::NoHyperperiod | PlanError::NoTable | PlanError::TooManyWindows { .. } => ("tasks".into(), None),
        };
        Finding { at, message: self.to_string(), hint }
    }

    /// The task or pool that there is no place or time for.
    pub(crate) fn unplaced(&self) -> Option<&str> {
        use PlanError::*;
        match self {
            NoRoom { task, .. } | NoPhase { task, .. } | Deadline { task, .. } | Pieces { task, .. } => Some(task),
            NoHyperperiod
            | NoTable
            | NoStart { .. }
            | Grid { .. }
            | Overload { .. }
            | Chain { .. }
            | NoBandwidth { .. }
            | TooManyWindows { .. }
            | Split { .. } => None,
        }
    }
}

/// The path of a key of what has a name.
fn named<'a>(list: &str, mut names: impl Iterator<Item = &'a String>, name: &str, key: &str) -> String {
    names.position(|other| other == name).map_or(list.into(), |index| format!("{list}[{index}].{key}"))
}

/// Who needs most.
fn greatest(system: &System) -> String {
    const SHOWN: usize = 3;
    let share = |length: Duration, period: Duration| 100.0 * length.as_nanos() as f64 / period.as_nanos() as f64;
    let tasks = system.tasks.iter().filter(|task| task.supply.is_windows());
    let tasks = tasks.map(|task| (share(task.wcet, task.period), task.name.clone()));
    let pools = system.pools().map(|pool| (share(pool.length, pool.period), pool.name));
    let mut all: Vec<(f64, String)> = tasks.chain(pools).collect();
    all.sort_by(|a, b| b.0.total_cmp(&a.0));
    let most: Vec<String> = all.iter().take(SHOWN).map(|(share, name)| format!("`{name}` {share:.1} %")).collect();
    format!("most of a CPU is needed by {}", most.join(", "))
}

/// What the lead adds to what jobs need.
fn with_lead(lead: &Duration) -> String {
    match *lead {
        Duration::ZERO => String::new(),
        lead => format!(", with a lead of {lead} for each job"),
    }
}

fn room(free: Option<i64>) -> String {
    match free {
        Some(free) => format!("the emptiest has {free} % left beside windows, leads, budgets and other tasks of it"),
        None => "there is none that it could have alone".into(),
    }
}

/// The first few names, and how many more there are.
fn list(names: &[String]) -> String {
    const SHOWN: usize = 5;
    match names {
        [] => "no other task".into(),
        names if names.len() <= SHOWN => names.join(", "),
        names => format!("{} and {} more", names[..SHOWN].join(", "), names.len() - SHOWN),
    }
}
