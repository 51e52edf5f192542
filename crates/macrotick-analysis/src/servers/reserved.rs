//! Tasks of SCHED_DEADLINE on one CPU, behind its windows and the budgets of its groups.

use macrotick_model::Duration;

use super::{sums, Host, Refusal, Reserved};
use crate::deadline::{demand, Left, Task};

/// Checks that they meet their deadlines, whatever groups do with their budgets. Adds a refusal for a miss.
pub(super) fn check(host: &Host, cpu: u32, refusals: &mut Vec<Refusal>) {
    let here: Vec<&Reserved> = host.reserved.iter().filter(|one| one.cpu == cpu).collect();
    if here.is_empty() {
        return;
    }
    let budgets: Duration = sums::budgets(host, cpu).into_iter().map(|(_, budget)| budget).sum();
    let table = host.tables.iter().find(|table| table.cpu == cpu);
    let tasks: Vec<Task> = here.iter().map(|one| one.task).collect();
    let left = Left::new(host.cycle, host.lead, table, host.server_period, budgets);
    if let Err(error) = left.and_then(|left| demand(&tasks, &left)) {
        let tasks = here.iter().map(|one| one.name.clone()).collect();
        let server_period = host.server_period;
        refusals.push(Refusal::Demand { cpu, tasks, budgets, server_period, error: error.to_string() });
    }
}
