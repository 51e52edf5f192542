//! Converts descriptions and plans to the hosts, groups and containers of the analysis.

use macrotick_model::validate::MIN_BUDGET;
use macrotick_model::{CpuSet, Duration, Plan, System};

use crate::kernel;
use crate::servers::{
    Admission, Arrival, Container, Domain, Group, GroupTask, Host, HostError, Phase, Refill, Reserved, Server,
    TaskOrder,
};

impl Host {
    /// Returns the host of a plan and its system. SCHED_DEADLINE has no other tasks there than those of the plan.
    ///
    /// The runner starts a table at a refill. If the cycle is a whole number of server periods, every cycle begins with
    /// a refill. Otherwise, or if the table follows another clock, the phase counts as unknown.
    ///
    /// # Errors
    ///
    /// A value of a group is left open: see [`assign`](crate::assign).
    pub fn of(plan: &Plan) -> Result<Host, HostError> {
        match plan.system.left_open().into_iter().next() {
            Some(path) => Err(HostError::LeftOpen { path }),
            None => Ok(Host::with_placeholders(plan)),
        }
    }

    /// Does the same, with a valid placeholder for each open value.
    pub(crate) fn with_placeholders(plan: &Plan) -> Host {
        let system = &plan.system;
        let meets = system.sync().is_none() && plan.cycle.is_multiple_of(system.server_period);
        Host {
            refill: Refill::Lockstep(if meets { Phase::At(Duration::ZERO) } else { Phase::Any }),
            cpus: system.cpus.clone(),
            domains: system.domains().into_iter().map(|cpus| Domain::of(system, cpus)).collect(),
            cycle: plan.cycle,
            lead: system.lead.map_or(Duration::ZERO, |lead| lead.reserved()),
            tables: plan.tables.clone(),
            groups: system.servers().map(Group::of).collect(),
            reserved: Reserved::of(&system.tasks),
            ..Host::idle(system.server_period)
        }
    }
}

impl Domain {
    /// Returns the domain of these CPUs, with the bandwidth of a description's tasks there.
    fn of(system: &System, cpus: CpuSet) -> Domain {
        let here = system.reserved().filter(|(_, reservation)| reservation.cpus == cpus);
        let parts = here.map(|(task, reservation)| kernel::bandwidth(reservation.runtime, task.period)).sum();
        Domain::new(cpus, parts)
    }
}

impl Group {
    /// Returns a group of a description. A group without a criticality is among the least critical. Open values have
    /// their least value.
    pub fn of(group: &macrotick_model::Group) -> Group {
        let of = |task| GroupTask::of(task, group.lead);
        let server = |&cpu: &u32| Server {
            cpu,
            budget: group.budget.unwrap_or(MIN_BUDGET),
            may_grow: group.may_grow,
            tasks: group.tasks.iter().filter(|task| task.cpu == cpu).map(of).collect(),
        };
        Group {
            name: group.name.clone(),
            criticality: group.criticality.unwrap_or(0),
            priority: group.priority.unwrap_or(1),
            servers: group.cpus.iter().map(server).collect(),
            windows: group.pool_name(),
        }
    }
}

impl GroupTask {
    /// Returns a task of a description, in a group or container with this lead. An open priority has its least value.
    ///
    /// The kernel wakes a job up earlier by the lead, and holds it until its instant. The analysis treats this as a job
    /// that arrives earlier by the lead and needs up to the lead more. The computed response time counts from that
    /// arrival. It is a bound on the time from the instant, which is shorter by the lead.
    ///
    /// If a bound task is held before a refill, the budget of the period before pays for the hold. The analysis counts
    /// this hold after the refill.
    pub fn of(task: &macrotick_model::GroupTask, lead: Option<Duration>) -> GroupTask {
        // If the sum is beyond the range, the WCET is so long that validation refuses it.
        let held = lead.and_then(|lead| task.wcet.checked_add(lead));
        GroupTask {
            name: task.name.clone(),
            wcet: held.unwrap_or(task.wcet),
            period: task.period,
            deadline: task.deadline,
            jitter: task.release_jitter,
            priority: task.priority.unwrap_or(1),
            arrival: if task.at_refills { Arrival::Bound } else { Arrival::Unbound },
        }
    }
}

/// Returns the source of the order of tasks that are declared together.
pub(crate) fn order_of(tasks: &[macrotick_model::GroupTask]) -> TaskOrder {
    match tasks.iter().any(|task| task.priority.is_none()) {
        true => TaskOrder::Best,
        false => TaskOrder::Given,
    }
}

impl Admission {
    /// Returns the group that an admitted container becomes.
    pub fn group_of(&self, container: &macrotick_model::Container, fifo: bool) -> macrotick_model::Group {
        let priority = |name: &str| self.tasks.iter().find(|task| task.name == name).map(|task| task.priority);
        let mut tasks = container.tasks.clone();
        for task in &mut tasks {
            task.cpu = self.cpu;
            task.priority = priority(&task.name);
        }
        macrotick_model::Group {
            criticality: Some(container.criticality),
            priority: Some(self.priority),
            budget: Some(self.budget),
            may_grow: container.may_grow,
            serve_fifo: fifo,
            lead: container.lead,
            tasks,
            ..macrotick_model::Group::named(&container.name, vec![self.cpu])
        }
    }
}

impl Container {
    /// Returns a container of a description.
    pub fn of(container: &macrotick_model::Container) -> Container {
        Container {
            name: container.name.clone(),
            criticality: container.criticality,
            priority: container.priority,
            cpus: container.cpus.clone(),
            budget: container.budget,
            may_grow: container.may_grow,
            tasks: container.tasks.iter().map(|task| GroupTask::of(task, container.lead)).collect(),
            order: order_of(&container.tasks),
        }
    }
}
