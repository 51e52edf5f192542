//! Time for the budgets of groups beside windows.
//!
//! A group with declared tasks needs its budget in time, not only on average. A server period is *good* if it has the
//! budgets of the CPU free. Before the deadline of each declared task, there must be enough good ones. Otherwise every
//! server period keeps the budgets free: in the simulation they are a pool, and its pieces stay empty in the table.

use macrotick_model::{CpuSet, Duration, Group, System};

use crate::demand::Demand;
use crate::edf::jobs::Jobs;
use crate::error::Kind;
use crate::room::budget;
use crate::table::Piece;

/// The budgets of a CPU in each of some periods.
pub(crate) struct Budget {
    /// The index among the CPUs of the simulation.
    cpu: usize,
    period: Duration,
    length: Duration,
    macrotick: Duration,
    /// For each declared task, the server periods before its deadline, and how many of them must be good.
    needs: Vec<(usize, usize)>,
}

/// Returns the budgets of the CPUs, given by their indices. CPUs without declared tasks of groups have none.
pub(crate) fn budgets(system: &System, cycle: Duration, cpus: &[usize]) -> Vec<Budget> {
    let of = |(index, &cpu): (usize, &usize)| {
        let cpu = system.cpus[cpu];
        let needs: Vec<(usize, usize)> = system.servers().flat_map(|group| needs(system, group, cpu)).collect();
        let length = budget(system, cpu);
        let aligned =
            cycle.is_multiple_of(system.server_period) && system.server_period.is_multiple_of(system.macrotick);
        let (period, macrotick) = (system.server_period, system.macrotick);
        (!needs.is_empty() && aligned).then_some(Budget { cpu: index, period, length, macrotick, needs })
    };
    cpus.iter().enumerate().filter_map(of).collect()
}

/// Returns the server periods before the deadlines of a group's tasks on a CPU, and how many must be good. All tasks of
/// the group come before each of them. The first period is lost, because an arrival can be anywhere in it.
fn needs(system: &System, group: &Group, cpu: u32) -> Vec<(usize, usize)> {
    let Some(budget) = group.budget.filter(|_| group.cpus.contains(&cpu)) else { return Vec::new() };
    let here = || group.tasks.iter().filter(|task| task.cpu == cpu);
    let work: Duration = here().map(|task| task.wcet).sum();
    let full = (work.as_nanos() + budget.as_nanos() - 1) / budget.as_nanos();
    here().map(|task| (((task.deadline / system.server_period) - 1).max(1) as usize, full as usize)).collect()
}

/// Whether whole tables have enough good periods before each deadline. `pieces` has those of each CPU.
pub(crate) fn leave_enough(system: &System, cycle: Duration, pieces: &[Vec<Piece>]) -> bool {
    let cpus: Vec<usize> = (0..pieces.len()).collect();
    kept(&budgets(system, cycle, &cpus), cycle, &vec![Vec::new(); pieces.len()], pieces)
}

/// Whether there are enough good periods before each deadline.
pub(crate) fn kept(budgets: &[Budget], cycle: Duration, taken: &[Vec<Piece>], pieces: &[Vec<Piece>]) -> bool {
    budgets.iter().all(|budget| {
        let mut busy = vec![Duration::ZERO; (cycle / budget.period) as usize];
        for piece in taken[budget.cpu].iter().chain(&pieces[budget.cpu]) {
            let mut from = piece.start;
            while from < piece.end() {
                let number = from / budget.period;
                let until = piece.end().min(budget.period * (number + 1));
                busy[number as usize % (cycle / budget.period) as usize] += until - from;
                from = until;
            }
        }
        let good: Vec<bool> = busy.into_iter().map(|busy| busy + budget.length <= budget.period).collect();
        budget.needs.iter().all(|&(periods, full)| {
            let in_a_row = |from: usize| (from..from + periods).filter(|number| good[number % good.len()]).count();
            (0..good.len()).all(|from| in_a_row(from) >= full.min(periods))
        })
    })
}

/// Returns demands, ranks and jobs with the budgets as pools behind the others.
pub(crate) fn beside(
    budgets: &[Budget],
    demands: &[Demand],
    ranks: &[usize],
    jobs: &Jobs,
    cycle: Duration,
) -> (Vec<Demand>, Vec<usize>, Jobs) {
    let (mut demands, mut ranks, mut jobs) = (demands.to_vec(), ranks.to_vec(), jobs.clone());
    for budget in budgets {
        let length = crate::demand::round_up(budget.length, budget.macrotick);
        let demand = Demand {
            kind: Kind::Pool,
            name: String::new(),
            period: budget.period,
            wcet: length,
            needed: length,
            deadline: budget.period,
            offset: None,
            jitter: None,
            lead: Duration::ZERO,
            // No grid: its starts are not starts of jobs.
            common_grid: budget.period * 2,
            // The simulation has its CPU.
            cpus: CpuSet::default(),
            migrate: false,
            preemptible: true,
        };
        jobs.add(demands.len(), &demand, budget.cpu, cycle, Duration::ZERO, (Duration::ZERO, budget.period));
        demands.push(demand);
        ranks.push(usize::MAX);
    }
    (demands, ranks, jobs)
}
