//! The assignment of tasks and pools to CPUs.

use std::cmp::Reverse;

use macrotick_model::{CpuSet, Duration, SplitMix64, SyncWindow, System};

use crate::demand::Demand;
use crate::error::PlanError;
use crate::folded::Problem;
use crate::packing::{self, Packed};
use crate::room::beside_windows;
use crate::split::Splitting;
use crate::CAP_PERMILLE;

/// The load of each CPU while tasks are assigned and moved.
#[derive(Clone, Debug)]
pub(crate) struct Assignment {
    cycle: Duration,
    /// The time that windows and leads can take on each CPU in one cycle.
    capacity: Duration,
    cpus: Vec<u32>,
    load: Vec<Duration>,
    /// Whether some tasks of SCHED_DEADLINE have the CPU, and not all CPUs. Tasks do not migrate over it.
    apart: Vec<bool>,
    /// The index of the CPU of each task; zero for a task that is split.
    pub of: Vec<usize>,
    /// The time that each CPU gives to each job, for tasks that are split and placed.
    pub shares: Vec<Vec<Duration>>,
}

impl Assignment {
    /// Assigns tasks and pools to CPUs. It first spreads them (worst fit: each goes to the emptiest CPU). If this
    /// leaves no room for a big one, it packs them (best fit), and then searches for a packing. Pinned ones come first,
    /// then tasks before pools, then those with a larger demand. A split task has no CPU. Tasks that stay have theirs.
    ///
    /// Budgets of groups and given reservations take room. Only if this leaves too little, windows have all of it, and
    /// the judge decides.
    pub fn new(problem: &Problem) -> Result<Assignment, PlanError> {
        let Problem { ref demands, system, cycle, .. } = *problem;
        let (cpus, domains) = (&system.cpus, system.domains());
        let all: CpuSet = cpus.iter().copied().collect();
        let empty = Assignment {
            cycle,
            apart: cpus
                .iter()
                .map(|&cpu| domains.iter().any(|domain| domain.contains(cpu) && *domain != all))
                .collect(),
            capacity: capacity(system, cycle),
            cpus: cpus.clone(),
            load: problem.frozen.time(demands),
            of: (0..demands.len()).map(|task| problem.frozen.cpu(task, cpus).unwrap_or(0)).collect(),
            shares: vec![Vec::new(); demands.len()],
        };
        let mut order: Vec<usize> = (0..demands.len()).filter(|&task| problem.is_open(task)).collect();
        order.sort_by_key(|&task| {
            let demand = &demands[task];
            (demand.cpus.is_several(), demand.is_pool(), Reverse(demand.per_cycle(cycle)), task)
        });
        let others = beside_windows(system, cycle);
        let used = others.iter().any(|&load| load > Duration::ZERO);
        let beside = empty.clone().beside(&others);
        let found = used.then(|| beside.fit(demands, &order).ok()).flatten();
        found.map_or_else(|| empty.fit(demands, &order), Ok)
    }

    /// Assigns with draws: the order of the tasks, and whether they are spread or packed.
    pub fn drawn(problem: &Problem, random: &mut SplitMix64) -> Result<Assignment, PlanError> {
        let Problem { ref demands, system, cycle, .. } = *problem;
        let found = Assignment::new(problem)?;
        let mut order: Vec<(bool, Reverse<i128>, usize)> = (0..demands.len())
            .filter(|&task| problem.is_open(task))
            .map(|task| {
                let weight =
                    i128::from(demands[task].per_cycle(cycle).as_nanos()) * i128::from(50 + random.bits() % 100);
                (demands[task].cpus.is_several(), Reverse(weight), task)
            })
            .collect();
        order.sort_unstable();
        let order: Vec<usize> = order.into_iter().map(|(.., task)| task).collect();
        let empty = Assignment { load: problem.frozen.time(demands), ..found.clone() };
        let empty = empty.beside(&beside_windows(system, cycle));
        let drawn = empty.clone().fill(demands, &order, random.bits() % 4 == 0);
        drawn.or_else(|_| empty.searched(demands, &order, random).ok_or(())).or(Ok(found))
    }

    /// Adds load to each CPU.
    fn beside(mut self, others: &[Duration]) -> Assignment {
        self.load.iter_mut().zip(others).for_each(|(load, &other)| *load += other);
        self
    }

    fn fit(self, demands: &[Demand], order: &[usize]) -> Result<Assignment, PlanError> {
        let spread = self.clone().fill(demands, order, false);
        let packed = spread.or_else(|error| self.clone().fill(demands, order, true).map_err(|_| error));
        packed.or_else(|error| self.searched(demands, order, &mut SplitMix64::new(1)).ok_or(error))
    }

    /// Searches for a packing of CPUs that are almost full.
    fn searched(mut self, demands: &[Demand], order: &[usize], random: &mut SplitMix64) -> Option<Assignment> {
        let sizes: Vec<i64> = order.iter().map(|&task| demands[task].per_cycle(self.cycle).as_nanos()).collect();
        let allowed: Vec<Vec<usize>> = order.iter().map(|&task| self.allowed(&demands[task]).collect()).collect();
        let room: Vec<i64> = self.free().iter().map(|free| free.as_nanos()).collect();
        let Packed::Found(found) = packing::pack(&sizes, &allowed, &room, random) else {
            return None;
        };
        for (&task, cpu) in order.iter().zip(found) {
            self.load[cpu] += demands[task].per_cycle(self.cycle);
            self.of[task] = cpu;
        }
        Some(self)
    }

    /// Moves a task to a CPU.
    pub fn put(&mut self, task: usize, demand: &Demand, cpu: usize) {
        let needed = demand.per_cycle(self.cycle);
        self.load[self.of[task]] -= needed;
        self.load[cpu] += needed;
        self.of[task] = cpu;
    }

    /// Returns the CPUs that a task may use and that have room for it besides its present one, the emptiest first.
    pub fn with_room<'a>(&'a self, task: usize, demand: &'a Demand) -> impl Iterator<Item = usize> + 'a {
        let needed = demand.per_cycle(self.cycle);
        let room = move |&cpu: &usize| cpu != self.of[task] && self.load[cpu] + needed <= self.capacity;
        let mut cpus: Vec<usize> = self.allowed(demand).filter(room).collect();
        cpus.sort_by_key(|&cpu| (self.load[cpu], cpu));
        cpus.into_iter()
    }

    /// Divides the jobs of a task among as few CPUs as possible, at least two, in proportion to their free time.
    /// Returns false if the CPUs have too little. A lead is kept free on each of them, because a job may start on any.
    pub fn share(&mut self, task: usize, demand: &Demand, macrotick: Duration, shortest: Duration) -> bool {
        let jobs = self.cycle / demand.period;
        let on_grid = |length: Duration| length - length % macrotick;
        let per_job = |free: Duration| on_grid(Duration::from_nanos(free.as_nanos() / jobs)) - demand.lead;
        let mut room: Vec<(Duration, usize)> = self.free_to_migrate().into_iter().map(per_job).zip(0..).collect();
        room.retain(|&(free, cpu)| free >= shortest && demand.cpus.contains(self.cpus[cpu]));
        room.sort_by_key(|&(free, cpu)| (Reverse(free), cpu));
        let enough = |count: &usize| room[..*count].iter().map(|&(free, _)| free).sum::<Duration>() >= demand.wcet;
        let Some(count) = (2..=room.len()).find(enough) else {
            return false;
        };
        room.truncate(count);
        let all: Duration = room.iter().map(|&(free, _)| free).sum();
        let mut shares = vec![Duration::ZERO; self.cpus.len()];
        let mut rest = demand.wcet;
        for &(free, cpu) in &room {
            let share = i128::from(demand.wcet.as_nanos()) * i128::from(free.as_nanos()) / i128::from(all.as_nanos());
            shares[cpu] = on_grid(Duration::from_nanos(share as i64));
            rest -= shares[cpu];
        }
        // The rounding left less than one macrotick on each CPU.
        for &(free, cpu) in &room {
            let more = rest.min(free - shares[cpu]);
            shares[cpu] += more;
            rest -= more;
        }
        for (cpu, &share) in shares.iter().enumerate().filter(|(_, &share)| share > Duration::ZERO) {
            self.load[cpu] += (share + demand.lead) * jobs;
        }
        self.shares[task] = shares;
        true
    }

    /// Whether a task is on a CPU, given by its index, or has a share there.
    pub fn has(&self, task: usize, cpu: usize, splitting: &Splitting) -> bool {
        match splitting.has(task) {
            true => self.shares[task].get(cpu).is_some_and(|&share| share > Duration::ZERO),
            false => self.of[task] == cpu,
        }
    }

    /// Returns the free time for windows and leads on each CPU in one cycle.
    pub fn free(&self) -> Vec<Duration> {
        self.load.iter().map(|&load| self.capacity - load).collect()
    }

    /// Returns the free time for tasks that migrate.
    pub fn free_to_migrate(&self) -> Vec<Duration> {
        self.free()
            .into_iter()
            .zip(&self.apart)
            .map(|(free, &apart)| if apart { Duration::ZERO } else { free })
            .collect()
    }

    pub fn cpu(&self, task: usize) -> u32 {
        self.cpus[self.of[task]]
    }

    pub fn len(&self) -> usize {
        self.cpus.len()
    }

    fn fill(mut self, demands: &[Demand], order: &[usize], pack: bool) -> Result<Assignment, PlanError> {
        for &task in order {
            let demand = demands[task].per_cycle(self.cycle);
            let mut allowed: Vec<usize> = self.allowed(&demands[task]).collect();
            allowed.sort_by_key(|&cpu| (self.load[cpu], cpu));
            let emptiest = *allowed.first().expect("a validated system has the CPU of each task");
            if pack {
                allowed.reverse();
            }
            let Some(cpu) = allowed.into_iter().find(|&cpu| self.load[cpu] + demand <= self.capacity) else {
                return Err(PlanError::NoRoom {
                    kind: demands[task].kind,
                    task: demands[task].name.clone(),
                    demand,
                    lead: demands[task].lead,
                    cycle: self.cycle,
                    cpu: self.cpus[emptiest],
                    free: self.capacity - self.load[emptiest],
                    capacity: self.capacity,
                });
            };
            self.load[cpu] += demand;
            self.of[task] = cpu;
        }
        Ok(self)
    }

    /// Returns the CPUs that a task may use.
    pub fn allowed<'a>(&'a self, demand: &'a Demand) -> impl Iterator<Item = usize> + 'a {
        demand.places(&self.cpus)
    }

    /// Moves a task to the emptiest other CPU that has room and was not `tried`. Returns false if there is none.
    pub fn relocate(&mut self, task: usize, demand: &Demand, tried: &[usize]) -> bool {
        let needed = demand.per_cycle(self.cycle);
        let room = |&cpu: &usize| self.load[cpu] + needed <= self.capacity;
        let other = |&cpu: &usize| cpu != self.of[task] && !tried.contains(&cpu);
        let target = self.allowed(demand).filter(other).filter(room).min_by_key(|&cpu| (self.load[cpu], cpu));
        let Some(cpu) = target else {
            return false;
        };
        self.load[self.of[task]] -= needed;
        self.load[cpu] += needed;
        self.of[task] = cpu;
        true
    }
}

/// Returns an error if all tasks and pools together need more than all CPUs have.
pub(crate) fn within_all_cpus(demands: &[Demand], system: &System, cycle: Duration) -> Result<(), PlanError> {
    let demand: Duration = demands.iter().map(|task| task.per_cycle(cycle)).sum();
    let capacity = capacity(system, cycle) * system.cpus.len() as i64;
    if demand <= capacity {
        return Ok(());
    }
    let lead = demands.first().map_or(Duration::ZERO, |task| task.lead);
    let pools = demands.iter().any(Demand::is_pool);
    Err(PlanError::Overload { pools, demand, lead, capacity, cycle, cpus: system.cpus.len() })
}

/// Returns the time of a cycle that windows can take: that of the kernel with all sync windows at their shortest, and
/// without the reserve. The sync windows themselves are not part of it.
pub(crate) fn capacity(system: &System, cycle: Duration) -> Duration {
    let sync = system.sync();
    let all = |of: fn(&SyncWindow) -> Duration| {
        sync.map_or(Duration::ZERO, |sync| of(&sync) * sync.starts(cycle).count() as i64)
    };
    let shortest = cycle - all(|sync| sync.bound);
    let reserved = system.reserve.map_or(Duration::ZERO, |reserve| reserve.length * (cycle / reserve.period));
    let free = cycle - all(|sync| sync.length) - reserved;
    Duration::from_nanos(shortest.as_nanos() / 1000 * CAP_PERMILLE).min(free).max(Duration::ZERO)
}
