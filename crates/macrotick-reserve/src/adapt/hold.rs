//! The reservation of the program, and its changes. A refused change leaves the old one.

use macrotick_host::cgroup::ProgramGroup;
use macrotick_host::sys::Tid;
use macrotick_model::Duration;

use crate::budget::Budget;
use crate::error::ReserveError;
use crate::facts::Own;
use crate::refusal;
use crate::request::{Mechanism, Request, Times};
use crate::start::give;
use crate::{prepare_now, Plan, Prepared};

/// How long a change is tried. Meanwhile, no event is read.
const PATIENCE: Duration = Duration::from_millis(50);

/// A reservation that exists.
pub enum Hold<'a> {
    Thread(Tid),
    Group { group: &'a ProgramGroup, budget: Box<Budget> },
}

impl Hold<'_> {
    /// Gives the reservation other times, if the analysis and the kernel admit them.
    pub fn change(&mut self, request: &Request, times: Times) -> Result<(), ReserveError> {
        let request = Request { times, ..request.clone() };
        match self {
            Hold::Thread(thread) => {
                let request = Request { by: Some(Mechanism::Deadline), ..request };
                let Prepared { facts, plan, .. } = prepare_now(&request, Own::Thread(*thread))?;
                let Plan::Deadline { attr, pin } = plan else { unreachable!("the request names the mechanism") };
                let affinity = pin.as_ref().unwrap_or(&facts.affinity);
                refusal::reserve_within(PATIENCE, *thread, &attr, affinity, &facts)
            }
            Hold::Group { group, budget } => {
                // Its threads stay on the CPUs that they have.
                let cpus = Some(budget.cpus.iter().copied().collect());
                let request = Request { by: Some(Mechanism::Group), cpus, ..request };
                let Plan::Group(wanted) = prepare_now(&request, Own::Group(group.path()))?.plan else {
                    unreachable!("the request names the mechanism")
                };
                if wanted != *budget {
                    if let Err(failure) = give(group, &wanted) {
                        // The kernel had room for it before.
                        let _ = give(group, budget);
                        return Err(failure);
                    }
                    *budget = wanted;
                }
                Ok(())
            }
        }
    }
}

/// The shares of a period that a program has at most until its runtime is known, in percent.
const SHARES: [i64; 9] = [80, 70, 60, 50, 40, 30, 20, 10, 5];

/// Returns the greatest reservation with this period that is admitted now, up to a runtime.
pub fn generous(request: &Request, period: Duration, most: Duration) -> Result<Prepared, ReserveError> {
    let mut refused = None;
    for share in SHARES {
        let runtime = Duration::from_nanos(period.as_nanos() / 100 * share).min(most);
        let times = Times { runtime, period, deadline: period };
        let prepared = crate::prepare(&Request { times, ..request.clone() });
        match prepared.and_then(|prepared| prepared.foreseen().map_or(Ok(prepared), Err)) {
            Ok(prepared) => return Ok(prepared),
            Err(error) if error.is_a_refusal() => refused = Some(error),
            Err(error) => return Err(error),
        }
    }
    Err(refused.expect("a share was refused"))
}
