//! The OCI hook: a container's annotations become a group with a budget, or a pool, before its program starts.
//!
//! A runtime (runc, crun) calls [`admit`] as a `createRuntime` hook, with the container's state on standard input: its
//! control group and its first process exist, and the program is not yet executed. What the hook refuses does not start.
//! Nothing has to be taken back later: the kernel frees a group's budget with the group.
//!
//! | module | part |
//! |---|---|
//! | `state` | what the runtime tells |
//! | `request` | the annotations, decoded: all that can be refused before the host is looked at |
//! | `cgroup` | the container's control group, and its files |
//! | `room` | why a budget does not fit |
//! | `limits` | resource limits of the container's first process |
//! | `undo` | what was written is written back when something fails |
//! | [`install`] | telling engines of the hook |
//! | [`preload`] | having a container preload a library |
//! | `config` | an OCI configuration |
//! | [`report`] | telling the user why a container is refused |

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
mod undo;

use std::io::Read;

use macrotick_model::Duration;

pub use error::{AnnotationFault, HookError};

use cgroup::ControlGroup;
use request::{Request, Supply};
use state::State;
use undo::Undo;

/// Admits the container whose state comes from the runtime. One without annotations of ours is left alone.
pub fn admit(state: impl Read) -> Result<(), HookError> {
    let state = State::decode(state)?;
    let refused = |source| HookError::Refused { container: state.id.clone(), source: Box::new(source) };
    let Some(request) = Request::decode(&state.annotations).map_err(refused)? else { return Ok(()) };
    serve(&state, &request).map_err(refused)
}

/// Checks the request against the host, then commits it. Whether a budget fits is the kernel's to say, so that it comes last.
fn serve(state: &State, request: &Request) -> Result<(), HookError> {
    let pid = state.pid()?;
    match &request.supply {
        Supply::Budget(budget) => check_period(budget.length)?,
        Supply::Pool(name) => check_pool(name)?,
    }
    let group = ControlGroup::of(pid)?;
    let mut undo = Undo::default();
    group.enable_cpu(&mut undo)?;
    limits::raise(pid, request.limits, &mut undo)?;
    match &request.supply {
        Supply::Pool(name) => group.write("cpu.tt.entity", name, &mut undo)?,
        Supply::Budget(budget) => {
            group.write("cpu.ds.priority", &budget.priority.to_string(), &mut undo)?;
            group.write("cpu.ds.fifo", if budget.fifo { "1" } else { "0" }, &mut undo)?;
            room::give(&group, budget, &mut undo)?;
        }
    }
    undo.forget();
    Ok(())
}

/// A budget is of every server period.
fn check_period(budget: Duration) -> Result<(), HookError> {
    let period = room::server_period()?;
    match budget <= period {
        true => Ok(()),
        false => Err(HookError::annotation(request::BUDGET, budget, AnnotationFault::BeyondPeriod(period))),
    }
}

/// A name that the table does not have would be served by nobody.
fn check_pool(name: &str) -> Result<(), HookError> {
    let table = macrotick_node::status().map_err(|error| HookError::Status(Box::new(error)))?.table;
    let pools: Vec<String> =
        table.into_iter().flat_map(|table| table.entities).filter(|one| one.pool).map(|pool| pool.name).collect();
    match pools.iter().any(|pool| pool == name) {
        true => Ok(()),
        false => Err(HookError::annotation(request::POOL, name, AnnotationFault::NoPool(pools))),
    }
}
