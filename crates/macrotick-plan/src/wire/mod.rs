//! Frames on the links of a switched network: a route and the instants of each flow.
//!
//! A frame never waits in a switch: it starts on the next link as soon as the switch can forward it. So a link carries
//! no two frames at a time, no queue holds two planned frames, and a lost frame moves no other one. A frame waits only at
//! its sender, and the planner chooses the instant there.
//!
//! Each link has folds of its busy time, as a CPU has ([`crate::occupancy`]). A flow takes the earliest instant at which
//! all links of its route are free, one after the other (`line.rs`, `fit.rs`). Flows with few instants to choose from
//! come first. A flow without a free instant on its routes (`routes.rs`) takes the place of others. It chooses flows that
//! were seldom ejected before (`search.rs`).

mod error;
mod fit;
mod line;
mod refute;
mod routes;
mod search;

#[cfg(test)]
mod tests;

use macrotick_model::wire::{Course, Wire, WireFlow};

use crate::options::{Clock, Options, Watch};

pub use error::WireError;

use routes::Routes;
use search::Search;

/// Plans all flows. Returns the course of each, in their order. The courses do not depend on this order.
///
/// # Errors
///
/// [`WireError`] names a flow or a link for which a plan is impossible, or a flow without room at the end of the search.
pub fn plan_wire(
    wire: &Wire,
    flows: &[WireFlow],
    options: Options,
    watch: &dyn Watch,
) -> Result<Vec<Course>, WireError> {
    plan_until(wire, flows, &Clock::start(options, watch))
}

/// Plans all flows like [`plan_wire`], until the clock is over.
pub(crate) fn plan_until(wire: &Wire, flows: &[WireFlow], clock: &Clock) -> Result<Vec<Course>, WireError> {
    let mut routes = Routes::new(wire);
    let mut order: Vec<usize> = (0..flows.len()).collect();
    order.sort_by_key(|number| &flows[*number].name);
    let by_name: Vec<WireFlow> = order.iter().map(|number| flows[*number].clone()).collect();
    refute::refute(wire, &by_name, &mut routes)?;
    let mut search = Search::new(wire, &by_name, routes, clock.options.seed);
    search.place_all(clock)?;
    let mut courses: Vec<(usize, Course)> = order.into_iter().zip(search.courses()).collect();
    courses.sort_by_key(|(number, _)| *number);
    Ok(courses.into_iter().map(|(_, course)| course).collect())
}

/// Places more flows beside planned ones, which do not move. Returns the courses of the additional flows, in their order.
///
/// `planned` has a course for each flow of `flows`.
///
/// # Errors
///
/// [`WireError`], as for [`plan_wire`]. A plan of all flows together can exist even then.
pub fn add_to_wire(
    wire: &Wire,
    (flows, planned): (&[WireFlow], &[Course]),
    more: &[WireFlow],
) -> Result<Vec<Course>, WireError> {
    let mut routes = Routes::new(wire);
    refute::refute(wire, more, &mut routes)?;
    let all: Vec<WireFlow> = more.iter().chain(flows).cloned().collect();
    let mut search = Search::new(wire, &all, routes, Options::SEED);
    for (number, course) in planned.iter().enumerate() {
        search.keep(more.len() + number, course.clone());
    }
    for number in 0..more.len() {
        search.place(number)?;
    }
    Ok(search.courses().into_iter().take(more.len()).collect())
}
