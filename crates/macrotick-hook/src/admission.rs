//! Computes the budget with which a container's tasks meet their deadlines beside the load of this host, and no other
//! task misses one.

use macrotick_analysis::servers::{self, Admission, ServersError};
use macrotick_host::present::{self, together};
use macrotick_model::{Container, Group};

use crate::error::HookError;
use crate::request::{Budget, Declared};

/// Returns the budget of the container's group, and the declaration that later admissions use.
pub fn admit(id: &str, declared: &Declared) -> Result<(Budget, Group), HookError> {
    let present = present::present().map_err(HookError::host)?;
    let host = present::analysed(&present, &together(&present.groups))?;
    let container = container(id, declared);
    match servers::admit(&host, &servers::Container::of(&container)) {
        Ok(admission) if admission.changes.is_empty() => Ok(given(&container, declared, &admission)),
        // The hook does not change the parameters of other groups.
        Ok(admission) => Err(HookError::NeedsChanges(lines(&admission.changes))),
        Err(ServersError::Refused(refusals)) => Err(HookError::Misses(lines(&refusals))),
        Err(ServersError::Invalid(error)) => Err(HookError::Misfit(error)),
    }
}

fn container(id: &str, declared: &Declared) -> Container {
    Container {
        name: id.into(),
        criticality: declared.criticality,
        priority: declared.priority,
        cpus: declared.cpus.clone(),
        budget: declared.budget,
        may_grow: false,
        lead: declared.lead,
        tasks: declared.tasks.clone(),
        slots: Vec::new(),
    }
}

fn given(container: &Container, declared: &Declared, admission: &Admission) -> (Budget, Group) {
    let &Declared { bind, fifo, lead, .. } = declared;
    let (length, cpus, priority) = (admission.budget, Some(admission.cpu.to_string()), admission.priority);
    (Budget { length, cpus, bind, priority, fifo, lead }, admission.group_of(container, fifo))
}

fn lines(all: &[impl ToString]) -> String {
    all.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use macrotick_analysis::servers::{Host, Phase, Refill};
    use macrotick_model::Duration;

    use super::*;

    fn idle() -> Host {
        let refill = Refill::Lockstep(Phase::At(Duration::ZERO));
        Host { refill, ..Host::idle(Duration::from_micros(2500)) }
    }

    #[test]
    fn a_container_gets_its_lead_and_the_budget_for_it() {
        let with = |lead| {
            let tasks = crate::tasks::decode("control wcet=200us period=5ms").unwrap();
            let (cpus, bind) = (Vec::new(), true);
            let declared =
                Declared { tasks, criticality: 1, priority: None, budget: None, cpus, bind, fifo: true, lead };
            let container = container("web", &declared);
            let admission = servers::admit(&idle(), &servers::Container::of(&container)).unwrap();
            given(&container, &declared, &admission)
        };
        let us = Duration::from_micros;
        let ((less, _), (more, group)) = (with(None), with(Some(us(20))));
        assert_eq!((less.length, less.lead), (us(100), None));
        assert_eq!((more.length, more.lead, group.lead), (us(110), Some(us(20)), Some(us(20))));
        assert_eq!(group.tasks[0].wcet, us(200), "what was declared stays");
    }
}
