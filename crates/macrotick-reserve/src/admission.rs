//! Whether deadlines are met beside the other reservations of SCHED_DEADLINE. The kernel admits by sums only.

use macrotick_analysis::deadline::{self, density_test, tardiness_bounds, DeadlineError, Processor, Task};
use macrotick_model::Duration;

use crate::error::ReserveError;
use crate::request::Times;

/// The CPU time for deadline tasks in a domain.
pub struct Supply {
    /// The number of CPUs.
    pub cpus: u32,
    /// The present reservations.
    pub tasks: Vec<Task>,
    /// Whether each CPU has a server of the fair class, which is a deadline task itself.
    pub servers: bool,
    /// The load that comes before them.
    pub behind: Behind,
}

/// The load that comes before deadline tasks.
pub enum Behind {
    /// They come first.
    Nothing,
    /// Windows and budgets on the only CPU: this is what they leave.
    One(Box<dyn deadline::Supply>),
    /// Windows or budgets on several CPUs, for which no test is known.
    Several,
}

/// The statement of the analysis about the runtime in each period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Guarantee {
    /// It is there by the deadline.
    Deadlines,
    /// It may come this much later than the deadline.
    Late(Duration),
    /// No test applies, for this reason. The kernel still admits by sums.
    Unknown(&'static str),
}

/// The server of the fair class on each CPU (`dl_server_start()`).
const FAIR: Task = Task {
    wcet: Duration::from_millis(50),
    period: Duration::from_millis(1000),
    deadline: Duration::from_millis(1000),
};

/// Asks the analysis.
///
/// # Errors
///
/// On one CPU the analysis is exact, so the reservation is refused if a deadline may be missed.
pub fn admit(times: Times, supply: &Supply) -> Result<Guarantee, ReserveError> {
    let servers = if supply.servers { supply.cpus as usize } else { 0 };
    let mut tasks = supply.tasks.clone();
    tasks.extend(std::iter::repeat_n(FAIR, servers));
    let without = tasks.clone();
    tasks.push(times.task());
    match (&supply.behind, supply.cpus) {
        (Behind::Several, _) => Ok(Guarantee::Unknown("windows and budgets come first on its CPUs")),
        (Behind::One(left), _) => on_one(&without, &tasks, left.as_ref()),
        (Behind::Nothing, 1) => on_one(&without, &tasks, &Processor),
        (Behind::Nothing, cpus) => on_several(&tasks, cpus),
    }
}

fn on_one(without: &[Task], tasks: &[Task], supply: &dyn deadline::Supply) -> Result<Guarantee, ReserveError> {
    match deadline::demand(tasks, supply) {
        Ok(()) => Ok(Guarantee::Deadlines),
        Err(DeadlineError::Undecided | DeadlineError::Length { .. }) => {
            Ok(Guarantee::Unknown("the periods have no common multiple that can be examined"))
        }
        // Another program has promised too much already; this one is not the reason.
        Err(_) if deadline::demand(without, supply).is_err() => {
            Ok(Guarantee::Unknown("the present reservations alone may miss deadlines"))
        }
        Err(error) => Err(ReserveError::Late(error)),
    }
}

fn on_several(tasks: &[Task], cpus: u32) -> Result<Guarantee, ReserveError> {
    if density_test(tasks, cpus) == Ok(true) {
        return Ok(Guarantee::Deadlines);
    }
    match tardiness_bounds(tasks, cpus) {
        Ok(Some(bounds)) => Ok(Guarantee::Late(bounds.last().copied().unwrap_or(Duration::ZERO))),
        Ok(None) => Ok(Guarantee::Unknown("the reservations together are more than the CPUs")),
        Err(_) => Ok(Guarantee::Unknown("the density test does not pass, and some deadlines are not periods")),
    }
}

#[cfg(test)]
mod tests {
    use macrotick_fixtures::us;

    use super::*;

    fn times(runtime: i64, deadline: i64, period: i64) -> Times {
        Times { runtime: us(runtime), deadline: us(deadline), period: us(period) }
    }

    fn supply(cpus: u32, tasks: Vec<Task>) -> Supply {
        Supply { cpus, tasks, servers: false, behind: Behind::Nothing }
    }

    #[test]
    fn one_cpu_is_examined_exactly() {
        let task = |runtime, deadline, period| times(runtime, deadline, period).task();
        let with = |tasks| supply(1, tasks);
        assert_eq!(admit(times(20, 30, 100), &with(vec![])).unwrap(), Guarantee::Deadlines);
        assert_eq!(admit(times(20, 40, 100), &with(vec![task(20, 30, 100)])).unwrap(), Guarantee::Deadlines);
        let refused = admit(times(20, 30, 100), &with(vec![task(20, 30, 100)])).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "a deadline may be missed beside the present reservations: in 30us the tasks may need 40us, and are sure \
             to get 30us"
        );
        // Others that miss already are no reason to refuse this one.
        let others = vec![task(20, 30, 100), task(20, 30, 100)];
        assert!(matches!(admit(times(1, 100, 100), &with(others)).unwrap(), Guarantee::Unknown(_)));
        let server = Supply { servers: true, ..with(vec![]) };
        assert!(admit(times(95, 100, 100), &server).is_ok() && admit(times(96, 100, 100), &server).is_err());
    }

    #[test]
    fn several_cpus_have_a_bound() {
        let task = |runtime, deadline, period| times(runtime, deadline, period).task();
        assert_eq!(admit(times(20, 100, 100), &supply(2, vec![])).unwrap(), Guarantee::Deadlines);
        let heavy = supply(2, vec![task(60, 100, 100), task(60, 100, 100)]);
        assert!(matches!(admit(times(60, 100, 100), &heavy).unwrap(), Guarantee::Late(late) if late > us(0)));
        let short = supply(2, vec![task(60, 90, 100), task(60, 90, 100)]);
        assert!(matches!(admit(times(60, 90, 100), &short).unwrap(), Guarantee::Unknown(_)));
        let behind = Supply { behind: Behind::Several, ..supply(2, vec![]) };
        assert!(matches!(admit(times(1, 100, 100), &behind).unwrap(), Guarantee::Unknown(_)));
    }
}
