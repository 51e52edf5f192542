//! What descriptions and plans say of a host, its groups and containers, as the analysis takes it.

use macrotick_model::validate::MIN_BUDGET;
use macrotick_model::{CpuSet, Duration, Plan, System};

use crate::kernel;
use crate::servers::{
    Admission, Arrival, Container, Domain, Group, GroupTask, Host, HostError, Phase, Refill, Reserved, Server,
    TaskOrder,
};

impl Host {
    /// What a plan and its system say of a host; beyond its own tasks SCHED_DEADLINE has nothing there.
    ///
    /// The runner starts a table at a refill. With a cycle of whole server periods every cycle begins with one; else, and
    /// where the table follows another clock, it is not relied on.
    ///
    /// # Errors
    ///
    /// Something of a group is left open: see [`assign`](crate::assign).
    pub fn of(plan: &Plan) -> Result<Host, HostError> {
        match plan.system.left_open().into_iter().next() {
            Some(path) => Err(HostError::LeftOpen { path }),
            None => Ok(Host::with_placeholders(plan)),
        }
    }

    /// The same with something that makes sense for whatever is left open.
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
    /// What the tasks of a description that have these CPUs are promised.
    fn of(system: &System, cpus: CpuSet) -> Domain {
        let here = system.reserved().filter(|(_, reservation)| reservation.cpus == cpus);
        let parts = here.map(|(task, reservation)| kernel::bandwidth(reservation.runtime, task.period)).sum();
        Domain::new(cpus, parts)
    }
}

impl Group {
    /// A group of a description. Without a criticality it is among the least critical. What is left open stands at its
    /// least.
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
    /// A task of a description, in a group or container with this lead. A priority that is left open stands at its least.
    ///
    /// A job that wakes up a lead earlier and is held until its instant is one that arrives the lead earlier and needs up to
    /// the lead more. What is computed counts from where it arrives, so that it is a bound on the time from its instant, which
    /// is the lead less. What a bound task is held for before a refill comes from the budget of the period before; here it is
    /// counted behind the refill.
    pub fn of(task: &macrotick_model::GroupTask, lead: Option<Duration>) -> GroupTask {
        // A sum beyond the range is of a time that is refused anyway.
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

/// Who orders the tasks that are declared together.
pub(crate) fn order_of(tasks: &[macrotick_model::GroupTask]) -> TaskOrder {
    match tasks.iter().any(|task| task.priority.is_none()) {
        true => TaskOrder::Best,
        false => TaskOrder::Given,
    }
}

impl Admission {
    /// The group that an admitted container becomes.
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
    /// A container of a description.
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
