//! What makes no sense is refused before anything is computed.

use macrotick_model::{CpuSet, CpuTable, Duration, Window};

use super::{Arrival, Bandwidth, Domain, Group, GroupTask, Host, Phase, Refill, Server, PRIORITIES};

/// The longest time that is taken: with it no sum leaves the range of its type.
pub const LONGEST: Duration = Duration::from_secs(1000);

/// A host or container that makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // Each field is what the message says.
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
    /// A reserve of more than everything.
    #[error("a reserve of {permille} thousandths is more than all")]
    Reserve { permille: u16 },
    /// A bandwidth of more than its CPUs.
    #[error("SCHED_DEADLINE has {parts}/{} of CPU {cpus}, more than there is", Bandwidth::WHOLE.0)]
    Bandwidth { cpus: CpuSet, parts: u32 },
    /// A set of CPUs without any.
    #[error("{what} has no CPU")]
    NoCpus { what: String },
    /// Two of what must be unique.
    #[error("there are two {what}")]
    Twice { what: String },
    /// Something for a CPU that the host does not have.
    #[error("{what}: there is no CPU {cpu}")]
    UnknownCpu { what: String, cpu: u32 },
    /// A window not within the cycle.
    #[error("CPU {cpu}, window {window}: [{offset}, {end}) is not within the cycle of {cycle}")]
    OutsideCycle { cpu: u32, window: usize, offset: Duration, end: Duration, cycle: Duration },
    /// Two groups with one priority: nothing says who goes first.
    #[error("groups `{group}` and `{other}` both have priority {priority}")]
    SamePriority { group: String, other: String, priority: u32 },
    /// A priority out of range.
    #[error("{what} is {priority}: priorities are 1 to {PRIORITIES}")]
    Priority { what: String, priority: u32 },
    /// A bound task whose jobs cannot all arrive at refills.
    #[error(
        "task `{task}` of `{group}` arrives at refills: period {period} is no multiple of the server period of {server_period}"
    )]
    BoundPeriod { group: String, task: String, period: Duration, server_period: Duration },
    /// A description that leaves something to be found.
    #[error("`{path}` is left open: nobody has assigned it")]
    LeftOpen { path: String },
    /// A container without tasks and without a budget: nothing says how much it needs.
    #[error("container `{container}` has neither tasks nor a budget")]
    NothingAsked { container: String },
}

/// Whether a host makes sense.
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

/// Whether a budget makes sense.
pub(super) fn budget(host: &Host, group: &str, budget: Duration) -> Result<(), HostError> {
    let what = format!("the budget of `{group}`");
    positive(&what, budget)?;
    within_period(&what, budget, host)
}

/// Whether the tasks of one server make sense.
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

/// Whether the host has this CPU.
pub(super) fn known(host: &Host, what: &str, cpu: u32) -> Result<(), HostError> {
    match host.cpus.contains(&cpu) {
        true => Ok(()),
        false => Err(HostError::UnknownCpu { what: what.into(), cpu }),
    }
}

/// Whether a priority is in range.
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
