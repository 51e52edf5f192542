//! Refuses invalid input before any computation.

use macrotick_model::{CpuSet, CpuTable, Duration, Window};

use super::{Arrival, Bandwidth, Domain, Group, GroupTask, Host, Phase, Refill, Server, PRIORITIES};

/// The longest possible time. With it no sum leaves the range of its type.
pub const LONGEST: Duration = macrotick_model::GroupTask::LONGEST;

/// The fault of an invalid host or container.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // The message explains each field.
pub enum HostError {
    /// A length that must be positive and at most [`LONGEST`].
    #[error("{what} is {length}: it must be positive and at most {LONGEST}")]
    Length { what: String, length: Duration },
    /// A length that must not be negative, and at most [`LONGEST`].
    #[error("{what} is {length}: it must not be negative, and at most {LONGEST}")]
    Negative { what: String, length: Duration },
    /// A granule or budget that exceeds the server period.
    #[error("{what} is {length}, longer than the server period of {server_period}")]
    BeyondPeriod { what: String, length: Duration, server_period: Duration },
    /// A reserve of more than a whole CPU.
    #[error("a reserve of {permille} thousandths is more than a whole CPU")]
    Reserve { permille: u16 },
    /// A bandwidth of more than the whole CPUs.
    #[error("SCHED_DEADLINE has {parts}/{} of CPU {cpus}, more than there is", Bandwidth::WHOLE.0)]
    Bandwidth { cpus: CpuSet, parts: u32 },
    /// A set without CPUs.
    #[error("{what} has no CPU")]
    NoCpus { what: String },
    /// Two of a kind that must be unique.
    #[error("there are two {what}")]
    Twice { what: String },
    /// A reference to a CPU that the host does not have.
    #[error("{what}: there is no CPU {cpu}")]
    UnknownCpu { what: String, cpu: u32 },
    /// A window outside the cycle.
    #[error("CPU {cpu}, window {window}: [{offset}, {end}) is not within the cycle of {cycle}")]
    OutsideCycle { cpu: u32, window: usize, offset: Duration, end: Duration, cycle: Duration },
    /// Two groups with the same priority, and thus without an order.
    #[error("groups `{group}` and `{other}` both have priority {priority}")]
    SamePriority { group: String, other: String, priority: u32 },
    /// A priority out of range.
    #[error("{what} is {priority}: priorities are 1 to {PRIORITIES}")]
    Priority { what: String, priority: u32 },
    /// A bound task with jobs that cannot all arrive at refills.
    #[error(
        "task `{task}` of `{group}` arrives at refills: period {period} is no multiple of the server period of {server_period}"
    )]
    BoundPeriod { group: String, task: String, period: Duration, server_period: Duration },
    /// A description with an open value.
    #[error("`{path}` is left open: it needs a value")]
    LeftOpen { path: String },
    /// A container without tasks and without a budget: its need is unknown.
    #[error("container `{container}` has neither tasks nor a budget")]
    NothingAsked { container: String },
}

/// Checks that a host is valid.
pub(super) fn host(host: &Host) -> Result<(), HostError> {
    positive("the server period", host.server_period)?;
    positive("the granule", host.granule)?;
    within_period("the granule", host.granule, host)?;
    positive("the least budget", host.least)?;
    within_period("the least budget", host.least, host)?;
    not_negative("the lead", host.lead)?;
    if let Refill::Lockstep(Phase::At(phase)) = host.refill {
        not_negative("the phase of refills", phase)?;
    }
    let reserve = host.capacity.reserve();
    if reserve.0 > 1000 {
        return Err(HostError::Reserve { permille: reserve.0 });
    }
    if let Some((_, cpu)) = host.cpus.iter().enumerate().find(|(index, cpu)| host.cpus[..*index].contains(cpu)) {
        return Err(HostError::Twice { what: format!("CPUs {cpu}") });
    }
    for (index, domain) in host.domains.iter().enumerate() {
        self::domain(host, domain, &host.domains[..index])?;
    }
    for (index, table) in host.tables.iter().enumerate() {
        self::table(host, table, &host.tables[..index])?;
    }
    for (index, group) in host.groups.iter().enumerate() {
        self::group(host, group, &host.groups[..index])?;
    }
    Ok(())
}

fn domain(host: &Host, domain: &Domain, before: &[Domain]) -> Result<(), HostError> {
    let what = "a domain of SCHED_DEADLINE";
    if domain.cpus.is_empty() {
        return Err(HostError::NoCpus { what: what.into() });
    }
    for &cpu in domain.cpus.as_slice() {
        known(host, what, cpu)?;
        if before.iter().any(|other| other.cpus.contains(cpu)) {
            return Err(HostError::Twice { what: format!("domains of SCHED_DEADLINE with CPU {cpu}") });
        }
    }
    match domain.promised > domain.whole() {
        true => Err(HostError::Bandwidth { cpus: domain.cpus.clone(), parts: domain.promised.0 }),
        false => Ok(()),
    }
}

fn table(host: &Host, table: &CpuTable, before: &[CpuTable]) -> Result<(), HostError> {
    known(host, "a table", table.cpu)?;
    if before.iter().any(|other| other.cpu == table.cpu) {
        return Err(HostError::Twice { what: format!("tables of CPU {}", table.cpu) });
    }
    if !table.windows.is_empty() {
        positive("the cycle", host.cycle)?;
    }
    table.windows.iter().enumerate().try_for_each(|(index, window)| self::window(host, table.cpu, index, window))
}

fn window(host: &Host, cpu: u32, index: usize, window: &Window) -> Result<(), HostError> {
    positive(&format!("CPU {cpu}, window {index}: the length"), window.length)?;
    let (offset, cycle) = (window.offset, host.cycle);
    let end = offset.checked_add(window.length).unwrap_or(Duration::from_nanos(i64::MAX));
    if offset < Duration::ZERO || end > cycle {
        return Err(HostError::OutsideCycle { cpu, window: index, offset, end, cycle });
    }
    Ok(())
}

fn group(host: &Host, group: &Group, before: &[Group]) -> Result<(), HostError> {
    priority(&format!("the priority of group `{}`", group.name), group.priority)?;
    for other in before {
        if other.name == group.name {
            return Err(HostError::Twice { what: format!("groups `{}`", group.name) });
        }
        if other.priority == group.priority {
            let (group, other, priority) = (group.name.clone(), other.name.clone(), group.priority);
            return Err(HostError::SamePriority { group, other, priority });
        }
    }
    for (index, server) in group.servers.iter().enumerate() {
        if group.servers[..index].iter().any(|other| other.cpu == server.cpu) {
            return Err(HostError::Twice { what: format!("budgets of group `{}` on CPU {}", group.name, server.cpu) });
        }
        self::server(host, &group.name, server)?;
    }
    Ok(())
}

fn server(host: &Host, group: &str, server: &Server) -> Result<(), HostError> {
    known(host, &format!("group `{group}`"), server.cpu)?;
    budget(host, group, server.budget)?;
    tasks(host, group, &server.tasks)
}

/// Checks that a budget is valid.
pub(super) fn budget(host: &Host, group: &str, budget: Duration) -> Result<(), HostError> {
    let what = format!("the budget of `{group}`");
    positive(&what, budget)?;
    within_period(&what, budget, host)
}

/// Checks that the tasks of one server are valid.
pub(super) fn tasks(host: &Host, group: &str, tasks: &[GroupTask]) -> Result<(), HostError> {
    for (index, task) in tasks.iter().enumerate() {
        if tasks[..index].iter().any(|other| other.name == task.name) {
            return Err(HostError::Twice { what: format!("tasks `{}` of `{group}`", task.name) });
        }
        self::task(host, group, task)?;
    }
    Ok(())
}

fn task(host: &Host, group: &str, task: &GroupTask) -> Result<(), HostError> {
    let what = |what: &str| format!("the {what} of task `{}` of `{group}`", task.name);
    positive(&what("wcet"), task.wcet)?;
    positive(&what("period"), task.period)?;
    positive(&what("deadline"), task.deadline)?;
    not_negative(&what("jitter"), task.jitter)?;
    priority(&what("priority"), task.priority)?;
    let server_period = host.server_period;
    if task.arrival == Arrival::Bound && !task.period.is_multiple_of(server_period) {
        let (group, period) = (group.into(), task.period);
        return Err(HostError::BoundPeriod { group, task: task.name.clone(), period, server_period });
    }
    Ok(())
}

/// Checks that the host has this CPU.
pub(super) fn known(host: &Host, what: &str, cpu: u32) -> Result<(), HostError> {
    match host.cpus.contains(&cpu) {
        true => Ok(()),
        false => Err(HostError::UnknownCpu { what: what.into(), cpu }),
    }
}

/// Checks that a priority is in range.
pub(super) fn priority(what: &str, priority: u32) -> Result<(), HostError> {
    match (1..=PRIORITIES).contains(&priority) {
        true => Ok(()),
        false => Err(HostError::Priority { what: what.into(), priority }),
    }
}

fn within_period(what: &str, length: Duration, host: &Host) -> Result<(), HostError> {
    match length <= host.server_period {
        true => Ok(()),
        false => Err(HostError::BeyondPeriod { what: what.into(), length, server_period: host.server_period }),
    }
}

fn positive(what: &str, length: Duration) -> Result<(), HostError> {
    match length > Duration::ZERO && length <= LONGEST {
        true => Ok(()),
        false => Err(HostError::Length { what: what.into(), length }),
    }
}

fn not_negative(what: &str, length: Duration) -> Result<(), HostError> {
    match length >= Duration::ZERO && length <= LONGEST {
        true => Ok(()),
        false => Err(HostError::Negative { what: what.into(), length }),
    }
}
