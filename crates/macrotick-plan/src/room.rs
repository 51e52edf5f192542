//! The time of each CPU that belongs to other than windows: budgets of groups, and reservations of SCHED_DEADLINE.

use macrotick_model::validate::MIN_BUDGET;
use macrotick_model::{Duration, Group, System};

use crate::demand::round_up;

/// The share that the kernel keeps free beside reservations: the server of its fair class, and a part of the rest
/// (`dl_server_start()`, `sched_rt_runtime_us`). In thousandths.
const FAIR_SERVER: i128 = 50;
const LIMIT: i128 = 950;

/// Returns the time in a cycle that is taken on each CPU, in the order of the system's CPUs. A reservation counts if it
/// has exactly one CPU, an open budget counts as zero.
pub(crate) fn beside_windows(system: &System, cycle: Duration) -> Vec<Duration> {
    system.cpus.iter().map(|&cpu| budgets(system, cpu, cycle) + reserved(system, cpu, cycle)).collect()
}

/// Returns the budgets of the groups on a CPU in one server period.
pub(crate) fn budget(system: &System, cpu: u32) -> Duration {
    let here = system.servers().filter(|group| group.cpus.contains(&cpu));
    here.filter_map(|group| group.budget).sum()
}

/// Returns the budgets of a CPU like [`budget`], with an estimate of those that are still open. Such a budget must serve
/// all tasks of its group before the first deadline. An arrival can be anywhere in a server period, which is then lost,
/// and windows can take half of the others.
pub(crate) fn expected_budget(system: &System, cpu: u32) -> Duration {
    let open = system.servers().filter(|group| group.budget.is_none() && group.cpus.contains(&cpu));
    let estimate = |group: &Group| {
        let here = || group.tasks.iter().filter(|task| task.cpu == cpu);
        let work: Duration = here().map(|task| task.wcet).sum();
        let first = here().map(|task| task.deadline).min().unwrap_or(system.server_period);
        let periods = ((first / system.server_period - 1) / 2).max(1);
        let least = Duration::from_nanos((work.as_nanos() + periods - 1) / periods).max(MIN_BUDGET);
        round_up(least, Duration::from_micros(1))
    };
    budget(system, cpu) + open.map(estimate).sum()
}

fn budgets(system: &System, cpu: u32, cycle: Duration) -> Duration {
    share(budget(system, cpu), system.server_period, cycle)
}

fn reserved(system: &System, cpu: u32, cycle: Duration) -> Duration {
    let here = system.reserved().filter(|(_, one)| !one.cpus.is_several() && one.cpus.contains(cpu));
    let bandwidth: Duration = here.map(|(task, one)| share(one.runtime, task.period, cycle)).sum();
    if bandwidth == Duration::ZERO {
        return Duration::ZERO;
    }
    let server = i128::from(cycle.as_nanos()) * FAIR_SERVER / 1000;
    Duration::from_nanos(((i128::from(bandwidth.as_nanos()) + server) * 1000 / LIMIT) as i64)
}

/// Returns `part` of every `whole` in a cycle.
fn share(part: Duration, whole: Duration, cycle: Duration) -> Duration {
    let share = i128::from(part.as_nanos()) * i128::from(cycle.as_nanos()) / i128::from(whole.as_nanos());
    Duration::from_nanos(share as i64)
}
