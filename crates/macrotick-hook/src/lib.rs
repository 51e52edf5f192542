//! The OCI hook: a container's annotations become a group with a budget, or a pool, before its program starts.
//!
//! A runtime (runc, crun) calls [`admit`] as a `createRuntime` hook, with the container's state on standard input. At
//! that time its control group and its first process exist, but the program does not run. If the hook refuses a
//! container, it does not start.
//!
//! The kernel frees a group's budget with the group. The container holds settings of the host for as long as its group
//! exists. [`admit`] gives them back as a `poststop` hook; otherwise the next program that looks for unused settings
//! does.
//!
//! | module | part |
//! |---|---|
//! | `state` | the container's state, from the runtime |
//! | `request` | decodes the annotations, and refuses all faults that do not depend on the host |
//! | `tasks` | the tasks that a container declares |
//! | `admission` | the budget with which they meet their deadlines beside the load of this host |
//! | `cgroup` | the container's control group, and its files |
//! | `binding` | the CPUs of the container, and the binding to them |
//! | `room` | gives the budget, or explains why it does not fit |
//! | `slot` | claims the slots of the deployment, and gives the container's frames their priority |
//! | `limits` | resource limits of the container's first process, and of its group |
//! | [`install`] | adds the hook to engines |
//! | [`preload`] | makes a container preload a library |
//! | `config` | an OCI configuration |
//! | [`report`] | reports to the user why a container is refused |

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
mod slot;
mod state;
mod tasks;

use std::io::Read;

use macrotick_host::budgets::{declare, microseconds, server_period, FIFO, LEAD, PRIORITY};
use macrotick_host::cgroup::{turn, Existing, ENTITY};
use macrotick_host::net::slots;
use macrotick_host::settings::{self, Held, Holder};
use macrotick_host::{device, Undo};
use macrotick_model::Duration;
use macrotick_uapi::POOL;

pub use error::{AnnotationFault, HookError};

use binding::Allowed;
use limits::Limits;
use request::{Budget, Request, Supply};
use state::State;

/// Admits the container with this state, or gives back its settings if it has ended. Ignores a container without
/// annotations of Macrotick.
pub fn admit(state: impl Read) -> Result<(), HookError> {
    let state = State::decode(state)?;
    if state.is_over() {
        settings::give_back_of_container(&state.id);
        slots::release(&state.id);
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
    // A hook that refuses a container disables the controllers that it has enabled. The turn keeps other programs from
    // using these controllers before that.
    let _turn = turn()?;
    let slot = request.slot.as_deref();
    let container = Container { name: &state.id, pid, limits: request.limits, slot, group: &group };
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

/// A container that gets a budget or a pool.
struct Container<'a> {
    name: &'a str,
    pid: i32,
    limits: Limits,
    slot: Option<&'a str>,
    group: &'a Existing,
}

impl Container<'_> {
    /// Prepares the container, and runs `serve` as the last step that can fail.
    fn commit(&self, serve: impl FnOnce(&mut Undo) -> Result<(), HookError>) -> Result<(), HookError> {
        let mut undo = Undo::default();
        self.group.enable("cpu", &mut undo)?;
        limits::raise(self.pid, self.limits, &mut undo)?;
        limits::bound(self.group, self.limits, &mut undo)?;
        let holder = Holder::group(self.name, self.group.path())?;
        // The priority of the frames ends with this value, unless the container starts.
        let classified = self.slot.map(|name| slot::claim(name, self.pid, self.group, &holder)).transpose()?;
        serve(&mut undo)?;
        undo.forget();
        let held = match classified {
            Some(classified) => {
                classified.keep();
                Held::take_with_slots(holder)
            }
            None => Held::take(holder),
        };
        held.set().iter().chain(held.lacking()).for_each(|text| report::remark(text));
        held.keep();
        Ok(())
    }
}

/// Writes the parameters. The budget is last, because only the kernel decides whether it fits. The CPUs follow it,
/// because their undo is impossible: a group with processes cannot return to the CPUs of its parent.
fn give(group: &Existing, budget: &Budget, undo: &mut Undo) -> Result<(), HookError> {
    cgroup::write(group, PRIORITY, &budget.priority.to_string(), undo)?;
    cgroup::write(group, FIFO, if budget.fifo { "1" } else { "0" }, undo)?;
    let lead = budget.lead.unwrap_or(Duration::ZERO);
    cgroup::write(group, LEAD, &microseconds(lead), undo)?;
    room::give(group, budget, undo)?;
    binding::bind(group, budget, undo)
}

/// Checks that a budget is at most the server period.
fn check_period(budget: Duration) -> Result<(), HookError> {
    let period = server_period().map_err(HookError::host)?;
    match budget <= period {
        true => Ok(()),
        false => Err(HookError::annotation(request::BUDGET, budget, AnnotationFault::BeyondPeriod(period))),
    }
}

/// Checks that the table has a pool of that name. Otherwise no window would serve the container.
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
