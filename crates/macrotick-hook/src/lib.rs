//! The OCI hook: a container's annotations become a group with a budget, or a pool, before its program starts.
//!
//! A runtime (runc, crun) calls [`admit`] as a `createRuntime` hook, with the container's state on standard input: its
//! control group and its first process exist, and the program is not yet executed. What the hook refuses does not start.
//! The kernel frees a group's budget with the group. Settings of the host, which the container holds for as long as its group
//! is there, are given back by [`admit`] as a `poststop` hook, or by whoever looks next.
//!
//! | module | part |
//! |---|---|
//! | `state` | what the runtime tells |
//! | `request` | the annotations, decoded: all that can be refused before the host is looked at |
//! | `tasks` | the tasks that a container declares |
//! | `admission` | the budget with which they meet their deadlines beside what runs on this host |
//! | `cgroup` | the container's control group, and its files |
//! | `binding` | the CPUs that it may run on, and stays on |
//! | `room` | why a budget does not fit |
//! | `limits` | resource limits of the container's first process, and of its group |
//! | [`install`] | telling engines of the hook |
//! | [`preload`] | having a container preload a library |
//! | `config` | an OCI configuration |
//! | [`report`] | telling the user why a container is refused |

mod admission;
mod binding;
mod cgroup;
mod config;
mod error;
pub mod install;
mod limits;
pub mod preload;
pub mod report;
mod request;
mod room;
mod state;
mod tasks;

use std::io::Read;

use macrotick_host::budgets::{declare, microseconds, server_period, FIFO, LEAD, PRIORITY};
use macrotick_host::cgroup::{turn, Existing, ENTITY};
use macrotick_host::settings::{self, Held, Holder};
use macrotick_host::{device, Undo};
use macrotick_model::Duration;
use macrotick_uapi::POOL;

pub use error::{AnnotationFault, HookError};

use binding::Allowed;
use limits::Limits;
use request::{Budget, Request, Supply};
use state::State;

/// Admits the container whose state comes from the runtime, or gives back what it held if it is over. One without annotations of
/// ours is left alone.
pub fn admit(state: impl Read) -> Result<(), HookError> {
    let state = State::decode(state)?;
    if state.is_over() {
        settings::give_back_of_container(&state.id);
        return Ok(());
    }
    let refused = |source| HookError::Refused { container: state.id.clone(), source: Box::new(source) };
    let Some(request) = Request::decode(&state.annotations).map_err(refused)? else { return Ok(()) };
    serve(&state, &request).map_err(refused)
}

/// Checks the request against the host, then commits it.
fn serve(state: &State, request: &Request) -> Result<(), HookError> {
    let pid = state.pid()?;
    let group = cgroup::of(pid)?;
    // Whoever is refused disables the controllers that it had enabled: nobody is to begin to use them before that.
    let _turn = turn()?;
    let container = Container { name: &state.id, pid, limits: request.limits, group: &group };
    match &request.supply {
        Supply::Pool(name) => {
            check_pool(name)?;
            container.commit(|undo| cgroup::write(&group, ENTITY, name, undo))
        }
        Supply::Budget(budget) => {
            check_period(budget.length)?;
            let budget = Allowed::of(&group)?.budget(budget)?;
            container.commit(|undo| give(&group, &budget, undo))
        }
        Supply::Tasks(declared) => {
            declared.budget.map_or(Ok(()), check_period)?;
            let declared = Allowed::of(&group)?.declared(declared)?;
            let (budget, declaration) = admission::admit(&state.id, &declared)?;
            container.commit(|undo| {
                give(&group, &budget, undo)?;
                Ok(declare(group.path(), &declaration)?)
            })
        }
    }
}

/// A container that is to be served.
struct Container<'a> {
    name: &'a str,
    pid: i32,
    limits: Limits,
    group: &'a Existing,
}

impl Container<'_> {
    /// What `serve` writes is the last that is done of what can fail.
    fn commit(&self, serve: impl FnOnce(&mut Undo) -> Result<(), HookError>) -> Result<(), HookError> {
        let mut undo = Undo::default();
        self.group.enable("cpu", &mut undo)?;
        limits::raise(self.pid, self.limits, &mut undo)?;
        limits::bound(self.group, self.limits, &mut undo)?;
        let holder = Holder::group(self.name, self.group.path())?;
        serve(&mut undo)?;
        undo.forget();
        let held = Held::take(holder);
        held.set().iter().chain(held.lacking()).for_each(|text| report::remark(text));
        held.keep();
        Ok(())
    }
}

/// Whether a budget fits is the kernel's to say, so that it comes last but for the CPUs: a group in which processes are cannot be
/// told to have those of the group above again.
fn give(group: &Existing, budget: &Budget, undo: &mut Undo) -> Result<(), HookError> {
    cgroup::write(group, PRIORITY, &budget.priority.to_string(), undo)?;
    cgroup::write(group, FIFO, if budget.fifo { "1" } else { "0" }, undo)?;
    let lead = budget.lead.unwrap_or(Duration::ZERO);
    cgroup::write(group, LEAD, &microseconds(lead), undo)?;
    room::give(group, budget, undo)?;
    binding::bind(group, budget, undo)
}

/// A budget is of every server period.
fn check_period(budget: Duration) -> Result<(), HookError> {
    let period = server_period().map_err(HookError::host)?;
    match budget <= period {
        true => Ok(()),
        false => Err(HookError::annotation(request::BUDGET, budget, AnnotationFault::BeyondPeriod(period))),
    }
}

/// A name that the table does not have would be served by nobody.
fn check_pool(name: &str) -> Result<(), HookError> {
    let table = device::installed().map_err(HookError::host)?;
    let entities = table.map_or(Vec::new(), |(_, entities, _)| entities).into_iter();
    let pools: Vec<String> =
        entities.filter(|one| one.flags & POOL != 0).map(|pool| device::text(&pool.name)).collect();
    match pools.iter().any(|pool| pool == name) {
        true => Ok(()),
        false => Err(HookError::annotation(request::POOL, name, AnnotationFault::NoPool(pools))),
    }
}
