//! Time for the budgets of groups beside windows.
//!
//! A group with declared tasks needs its budget in time, not only on average. So each server period keeps the budgets
//! of its CPU free: in the simulation they are a pool with the server period. Its pieces stay empty in the table.

use macrotick_model::{Duration, System};

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
}

/// Returns the budgets of the CPUs, given by their indices. CPUs without declared tasks of groups have none.
pub(crate) fn budgets(system: &System, cycle: Duration, cpus: &[usize]) -> Vec<Budget> {
    let of = |(index, &cpu): (usize, &usize)| {
        let cpu = system.cpus[cpu];
        let declared = system.servers().any(|group| group.cpus.contains(&cpu) && !group.tasks.is_empty());
        let length = budget(system, cpu);
        let aligned = cycle.is_multiple_of(system.server_period) && system.server_period.is_multiple_of(system.macrotick);
        let (period, macrotick) = (system.server_period, system.macrotick);
        (declared && aligned && length > Duration::ZERO).then_some(Budget { cpu: index, period, length, macrotick })
    };
    cpus.iter().enumerate().filter_map(of).collect()
}

/// Whether every period has the time of its budgets free.
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
        busy.into_iter().all(|busy| busy + budget.length <= budget.period)
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
            cpu: None,
            migrate: false,
        };
        jobs.add(demands.len(), &demand, budget.cpu, cycle, Duration::ZERO, (Duration::ZERO, budget.period));
        demands.push(demand);
        ranks.push(usize::MAX);
    }
    (demands, ranks, jobs)
}
