//! The budget of a group that is enough for a reservation. With it a task of this runtime meets its deadline on each
//! CPU, beside windows and other groups. It is the least such budget.

use macrotick_analysis::servers::{self, Admission, ServersError};
use macrotick_host::budgets::{budgets, microseconds};
use macrotick_host::cgroup::ROOT;
use macrotick_host::sys::cpu_list;
use macrotick_model::{Container, CpuSet, Duration, Group, GroupTask};

use crate::error::ReserveError;
use crate::facts::Facts;
use crate::request::{Request, Times};

/// The budget of a group.
#[derive(Clone, Debug, PartialEq)]
pub struct Budget {
    /// The CPUs that have it. The group is bound to them.
    pub cpus: Vec<u32>,
    /// The length in each server period, on each of the CPUs.
    pub length: Duration,
    /// The server period.
    pub server_period: Duration,
    /// The group priority.
    pub priority: u32,
    /// The declaration for later admissions.
    pub declared: Group,
}

impl Budget {
    /// Returns it in the kernel's format.
    pub fn text(&self) -> String {
        format!("{}={}", cpu_list(&self.cpus), microseconds(self.length))
    }

    /// Returns its share of a CPU in percent.
    pub fn percent(&self) -> f64 {
        self.length.as_secs_f64() * 100.0 / self.server_period.as_secs_f64()
    }
}

/// The name of the group in the analysis. The space keeps it apart from the groups of a deployment.
const NAME: &str = "this program";
/// The name in the declaration.
const DECLARED: &str = "reserve";

/// Returns the budget. If the request names no CPUs, the group gets the CPU that needs the least budget.
///
/// # Errors
///
/// The tasks that would miss their deadlines, or the times that suit no budget.
pub fn admit(request: &Request, cpus: &CpuSet, facts: &Facts) -> Result<Budget, ReserveError> {
    let host = facts.served.as_ref().ok_or(crate::choice::Misfit::NoGroup(crate::choice::NoGroups::NoClass))?;
    let one_of = |cpus: Vec<u32>| container(request.times, cpus);
    let (cpus, admission) = if request.cpus.is_none() {
        let admission = on(host, &one_of(cpus.as_slice().to_vec()))?;
        (vec![admission.cpu], admission)
    } else {
        (cpus.as_slice().to_vec(), on_each(host, cpus.as_slice(), request.times)?)
    };
    let container = one_of(vec![cpus[0]]);
    let of_first = admission.group_of(&container, true);
    let tasks = cpus.iter().flat_map(|&cpu| {
        let on_cpu = move |task: &GroupTask| GroupTask { cpu, name: format!("program-{cpu}"), ..task.clone() };
        of_first.tasks.iter().map(on_cpu).collect::<Vec<_>>()
    });
    let declared = Group { name: DECLARED.into(), tasks: tasks.collect(), cpus: cpus.clone(), ..of_first.clone() };
    let Admission { budget: length, priority, .. } = admission;
    Ok(Budget { cpus, length, server_period: host.server_period, priority, declared })
}

/// Returns an admission that holds on each of these CPUs: with one priority, and the greatest budget.
fn on_each(host: &servers::Host, cpus: &[u32], times: Times) -> Result<Admission, ReserveError> {
    let mut known = Container { ..container(times, vec![cpus[0]]) };
    let mut admission = on(host, &known)?;
    known.priority = Some(admission.priority);
    for &cpu in &cpus[1..] {
        let other = on(host, &Container { cpus: vec![cpu], ..known.clone() })?;
        admission.budget = admission.budget.max(other.budget);
    }
    known.budget = Some(admission.budget);
    for &cpu in cpus {
        on(host, &Container { cpus: vec![cpu], ..known.clone() })?;
    }
    Ok(admission)
}

fn on(host: &servers::Host, container: &Container) -> Result<Admission, ReserveError> {
    match servers::admit(host, &servers::Container::of(container)) {
        Ok(admission) if admission.changes.is_empty() => Ok(admission),
        // A reservation does not change the parameters of other groups.
        Ok(admission) => Err(ReserveError::NeedsChanges(lines(&admission.changes))),
        Err(ServersError::Refused(refusals)) => Err(ReserveError::Misses(lines(&refusals))),
        Err(ServersError::Invalid(error)) => Err(ReserveError::NoBudget(error)),
    }
}

fn container(times: Times, cpus: Vec<u32>) -> Container {
    let task = GroupTask {
        name: "program".into(),
        period: times.period,
        wcet: times.runtime,
        deadline: times.deadline,
        release_jitter: Duration::ZERO,
        priority: None,
        cpu: cpus.first().copied().unwrap_or(0),
        at_refills: false,
    };
    Container {
        name: NAME.into(),
        criticality: 1,
        priority: None,
        cpus,
        budget: None,
        may_grow: false,
        lead: None,
        tasks: vec![task],
        slots: Vec::new(),
    }
}

fn lines(all: &[impl ToString]) -> String {
    all.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// Returns the error of a budget that the kernel refuses with EBUSY.
pub fn no_room(budget: &Budget) -> ReserveError {
    let mut present = budgets().unwrap_or_default();
    present.sort();
    let each = present.iter().map(|(group, budget)| {
        let name = group.strip_prefix(ROOT).unwrap_or(group).display();
        format!("{name} has {budget}")
    });
    let taken = match present.is_empty() {
        true => "No other group has a budget: look at the windows (macrotick status) and SCHED_DEADLINE".into(),
        false => format!("In microseconds per server period: {}", each.collect::<Vec<_>>().join("; ")),
    };
    ReserveError::NoRoom { budget: budget.length, server_period: budget.server_period, taken }
}

#[cfg(test)]
mod tests {
    use macrotick_analysis::servers::{Host, Phase, Refill};
    use macrotick_fixtures::us;

    use super::*;

    fn idle() -> Host {
        let refill = Refill::Lockstep(Phase::At(Duration::ZERO));
        Host { refill, cpus: vec![0, 1], ..Host::idle(us(2500)) }
    }

    fn times(runtime: i64, deadline: i64, period: i64) -> Times {
        Times { runtime: us(runtime), deadline: us(deadline), period: us(period) }
    }

    #[test]
    fn a_budget_gives_at_least_the_share_and_not_much_more() {
        for (runtime, deadline, period) in [(10_000, 41_708, 41_708), (2_000, 10_000, 10_000), (5_000, 20_000, 50_000)]
        {
            let times = times(runtime, deadline, period);
            let admission = on(&idle(), &container(times, vec![0, 1])).unwrap();
            let share = admission.budget.as_secs_f64() * 100.0 / 2500e-6;
            let wanted = runtime as f64 * 100.0 / deadline as f64;
            assert!((wanted..wanted * 1.5).contains(&share), "{times:?}: {share} % for {wanted} %");
        }
    }

    #[test]
    fn one_budget_holds_on_each_cpu() {
        let times = times(2000, 10_000, 10_000);
        let one = on(&idle(), &container(times, vec![0])).unwrap();
        let each = on_each(&idle(), &[0, 1], times).unwrap();
        assert_eq!((each.budget, each.priority), (one.budget, one.priority));
    }

    #[test]
    fn what_fits_no_budget_is_refused_with_the_reason() {
        let said = |runtime, period| on(&idle(), &container(times(runtime, period, period), vec![0])).unwrap_err();
        assert!(matches!(said(990, 1000), ReserveError::Misses(text) if text.contains("group `this program`")));
        assert!(matches!(said(9900, 10_000), ReserveError::Misses(_)));
    }

    #[test]
    fn a_budget_is_written_as_the_kernel_reads_it() {
        let declared = Group::named(NAME, vec![0, 2]);
        let budget = Budget { cpus: vec![0, 2], length: us(640), server_period: us(2500), priority: 3, declared };
        assert_eq!((budget.text().as_str(), budget.percent()), ("0,2=640", 25.6));
    }
}
