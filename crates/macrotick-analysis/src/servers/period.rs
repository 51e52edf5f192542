//! Proposes a shorter server period, if it leaves more of the CPU.
//!
//! A group may wait for its budget as long as a server period, and longer. If its tasks have short deadlines, it needs
//! a budget far beyond the time that it computes. The whole difference is for its worst case. With a shorter server
//! period, which all groups of a host share, it needs less. However, each period costs a refill.

use std::fmt;

use macrotick_model::Duration;
use serde::Serialize;

use super::{least_budgets, Arrival, Host, Phase, Refill, Server, TaskOrder};

/// The periods to try, from the longest. They suit budgets of some hundred microseconds.
const PERIODS: [Duration; 6] = [
    Duration::from_micros(5000),
    Duration::from_micros(2500),
    Duration::from_micros(2000),
    Duration::from_micros(1000),
    Duration::from_micros(500),
    Duration::from_micros(250),
];
/// The advice considers groups that need this much more of a CPU than they compute.
const EXCESS: f64 = 0.1;
/// A longer period is as good as a shorter one that leaves at most this much more of a CPU.
const EQUAL: f64 = 0.02;

/// A server period with which a group needs clearly less.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PeriodAdvice {
    /// The group.
    pub group: String,
    /// The CPU.
    pub cpu: u32,
    /// The share of the CPU that its tasks compute there.
    pub load: f64,
    /// The share that it needs with the present server period.
    pub needed: f64,
    /// The present server period.
    pub period: Duration,
    /// The share that it needs with the proposed server period.
    pub enough: f64,
    /// The proposed server period.
    pub proposed: Duration,
}

impl fmt::Display for PeriodAdvice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PeriodAdvice { group, cpu, load, needed, period, enough, proposed } = self;
        let percent = |share: &f64| share * 100.0;
        write!(
            f,
            "group `{group}` needs {:.0} % of CPU {cpu} with a server period of {period} for a load of {:.0} %: \
             `server-period: {proposed}` needs {:.0} % instead",
            percent(needed),
            percent(load),
            percent(enough)
        )
    }
}

/// Returns the advice for the group that would save most. Groups without tasks keep their share.
///
/// The function computes all budgets for each period. It takes several times as long as the search for budgets.
pub fn period_advice(host: &Host) -> Option<PeriodAdvice> {
    let excess = |server: &Server| share(server, host.server_period) - load(server);
    let mut servers = host.groups.iter().flat_map(|group| &group.servers).filter(|server| !server.tasks.is_empty());
    if !servers.any(|server| excess(server) > EXCESS) {
        return None;
    }
    let now = needs(host, host.server_period)?;
    let shorter = PERIODS.into_iter().filter(|period| *period < host.server_period);
    let tried: Vec<(Duration, Vec<Vec<f64>>)> =
        shorter.filter_map(|period| Some((period, needs(host, period)?))).collect();
    let mut best: Option<PeriodAdvice> = None;
    for (at, group) in host.groups.iter().enumerate() {
        for (place, server) in group.servers.iter().enumerate().filter(|(_, server)| !server.tasks.is_empty()) {
            let needed = now[at][place];
            let least = tried.iter().map(|(_, needs)| needs[at][place]).fold(needed, f64::min);
            let saved = needed - least;
            if saved <= EXCESS || best.as_ref().is_some_and(|best| best.needed - best.enough >= saved) {
                continue;
            }
            let (proposed, needs) = tried.iter().find(|(_, needs)| needs[at][place] <= least + EQUAL)?;
            best = Some(PeriodAdvice {
                group: group.name.clone(),
                cpu: server.cpu,
                load: load(server),
                needed,
                period: host.server_period,
                enough: needs[at][place],
                proposed: *proposed,
            });
        }
    }
    best
}

/// Returns the shares that all servers need with a server period, by group. `None`: there are no budgets with it.
fn needs(host: &Host, period: Duration) -> Option<Vec<Vec<f64>>> {
    let mut host = host.clone();
    let bound = |server: &Server| {
        let mut tasks = server.tasks.iter().filter(|task| task.arrival == Arrival::Bound);
        tasks.any(|task| !task.period.is_multiple_of(period))
    };
    if host.groups.iter().flat_map(|group| &group.servers).any(bound) {
        return None;
    }
    for server in host.groups.iter_mut().flat_map(|group| &mut group.servers) {
        let parts = i128::from(server.budget.as_nanos()) * i128::from(period.as_nanos());
        let budget = Duration::from_nanos((parts / i128::from(host.server_period.as_nanos())) as i64);
        server.budget = budget.max(host.least);
    }
    if let Refill::Lockstep(phase) = &mut host.refill {
        // If every cycle began with a refill, it still does so with a server period that divides the cycle.
        let still = *phase == Phase::At(Duration::ZERO) && host.cycle.is_multiple_of(period);
        *phase = if still { *phase } else { Phase::Any };
    }
    host.server_period = period;
    let found = least_budgets(&host, TaskOrder::Given).ok()?;
    Some(found.groups.iter().map(|group| group.servers.iter().map(|server| share(server, period)).collect()).collect())
}

fn share(server: &Server, period: Duration) -> f64 {
    server.budget.as_nanos() as f64 / period.as_nanos() as f64
}

fn load(server: &Server) -> f64 {
    server.tasks.iter().map(|task| task.wcet.as_nanos() as f64 / task.period.as_nanos() as f64).sum()
}
