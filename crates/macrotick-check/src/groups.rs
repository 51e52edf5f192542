//! Groups beside the windows of a plan: whether their tasks meet their deadlines, and whether there is room.

use macrotick_model::{Duration, Plan};

use crate::servers::{
    self, Arrival, Bandwidth, Cpu, Group, GroupTask, Host, HostError, Permille, Phase, Refill, Server,
};
use crate::violation::Violation;
use crate::Verdict;

/// What the kernel keeps of each CPU from windows and budgets (`MACROTICK_CAP_PERMILLE`).
const RESERVE: Permille = Permille(50);
/// The kernel's files count in microseconds.
const GRANULE: Duration = Duration::from_micros(1);

/// Analyses the groups, if there are any.
pub(crate) fn check(plan: &Plan, verdict: &mut Verdict) {
    if plan.system.groups.is_empty() {
        return;
    }
    match servers::analyse(&Host::of(plan)) {
        Ok(analysis) => {
            let refusals = analysis.refusals.iter().cloned();
            verdict.violations.extend(refusals.map(|refusal| Violation::Groups { refusal }));
            verdict.groups = Some(analysis);
        }
        Err(error) => verdict.violations.push(senseless(&error)),
    }
}

fn senseless(error: &HostError) -> Violation {
    Violation::GroupsUnknown { error: error.to_string() }
}

impl Host {
    /// What a plan and its system say of a host; SCHED_DEADLINE has nothing there.
    ///
    /// The runner starts a table at a refill. With a cycle of whole server periods every cycle begins with one; else, and
    /// where the table follows another clock, it is not relied on.
    pub fn of(plan: &Plan) -> Host {
        let system = &plan.system;
        let meets = system.sync.is_none() && plan.cycle.is_multiple_of(system.server_period);
        Host {
            server_period: system.server_period,
            refill: Refill::Lockstep(if meets { Phase::At(Duration::ZERO) } else { Phase::Any }),
            granule: GRANULE,
            reserve: RESERVE,
            cpus: system.cpus.iter().map(|&cpu| Cpu { cpu, deadline: Bandwidth(0) }).collect(),
            cycle: plan.cycle,
            lead: system.lead.map_or(Duration::ZERO, |lead| lead.reserved()),
            tables: plan.tables.clone(),
            groups: system.groups.iter().map(group).collect(),
            network: None,
        }
    }
}

fn group(group: &macrotick_model::Group) -> Group {
    let server = |&cpu: &u32| Server {
        cpu,
        budget: group.budget,
        may_grow: false,
        tasks: group.tasks.iter().filter(|task| task.cpu == cpu).map(task).collect(),
    };
    Group {
        name: group.name.clone(),
        criticality: 0,
        priority: group.priority,
        servers: group.cpus.iter().map(server).collect(),
    }
}

fn task(task: &macrotick_model::GroupTask) -> GroupTask {
    GroupTask {
        name: task.name.clone(),
        wcet: task.wcet,
        period: task.period,
        deadline: task.deadline,
        jitter: task.jitter,
        priority: task.priority,
        arrival: if task.bound { Arrival::Bound } else { Arrival::Unbound },
    }
}
