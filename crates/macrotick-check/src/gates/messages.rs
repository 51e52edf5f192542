//! The messages of flows in one cycle: when each can be ready, and by when it must have arrived.

use std::collections::BTreeMap;

use macrotick_model::{Flow, Network, Plan};

use crate::jobs::{Job, Served};

/// A message in one cycle. Instants are nanoseconds since the start of the cycle, and can lie in a later cycle.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message<'a> {
    /// The earliest instant at which it is ready: the start of the sender's job.
    pub earliest: i64,
    /// The latest instant, from which its deadline counts.
    pub ready: i64,
    /// The instant by which the last interface must have sent it.
    pub limit: i64,
    /// The task with a window that starts at the limit; `None` if the limit is the deadline.
    pub receiver: Option<&'a str>,
}

/// A flow with its way and its messages.
pub(super) struct Planned<'a> {
    pub flow: &'a Flow,
    /// The interfaces that send its frames, as places in the network.
    pub way: Vec<usize>,
    /// The place of its class among all classes.
    pub class: usize,
    pub messages: Vec<Message<'a>>,
}

/// Returns the flows that a known interface sends, with a known class. The description has no others.
pub(super) fn flows<'a>(
    plan: &'a Plan,
    network: &'a Network,
    jobs: &[Vec<Job>],
    served: &BTreeMap<&str, Served>,
) -> Vec<Planned<'a>> {
    let planned = |flow: &'a Flow| {
        let way = plan.system.way(network, flow);
        let place = |name: &str| network.interfaces.iter().position(|interface| interface.name == name);
        let way: Vec<usize> = way.iter().filter_map(|interface| place(&interface.name)).collect();
        let class = network.class_names().position(|class| class == flow.class)?;
        let messages = messages(plan, flow, jobs, served);
        (!way.is_empty()).then_some(Planned { flow, way, class, messages })
    };
    network.flows.iter().filter_map(planned).collect()
}

fn messages<'a>(plan: &Plan, flow: &'a Flow, jobs: &[Vec<Job>], served: &BTreeMap<&str, Served>) -> Vec<Message<'a>> {
    let of_task = |name: &str| {
        let place = plan.system.tasks.iter().position(|task| task.name == name && task.supply.is_windows())?;
        Some(&jobs[place])
    };
    let instants = match of_task(&flow.from) {
        Some(jobs) => of_jobs(flow, jobs),
        None => of_group(plan, flow, served),
    };
    let receiver = flow.to.as_deref().and_then(|to| Some((to, of_task(to)?)));
    let message = |(earliest, ready): (i64, i64)| {
        let deadline = ready + flow.deadline.as_nanos();
        let cycle = plan.cycle.as_nanos();
        let next = |start: i64| ready + (start - ready).rem_euclid(cycle);
        let window = receiver.and_then(|(to, jobs)| {
            let starts = jobs.iter().map(|job| next(job.start.as_nanos()));
            Some((starts.min()?, to))
        });
        match window.filter(|(start, _)| *start < deadline) {
            Some((start, to)) => Message { earliest, ready, limit: start, receiver: Some(to) },
            None => Message { earliest, ready, limit: deadline, receiver: None },
        }
    };
    instants.into_iter().map(message).collect()
}

/// Returns the earliest and the latest instant of each message of a task.
fn of_jobs(flow: &Flow, jobs: &[Job]) -> Vec<(i64, i64)> {
    let instants = |job: &Job| {
        let ready = flow.after.map_or(job.end, |after| job.start + after);
        (job.start.as_nanos(), ready.as_nanos())
    };
    jobs.iter().map(instants).collect()
}

/// Returns the same for a group. Without `after`, a message is ready at the end of the last window in its period.
fn of_group(plan: &Plan, flow: &Flow, served: &BTreeMap<&str, Served>) -> Vec<(i64, i64)> {
    let group = plan.system.groups.iter().find(|group| group.name == flow.from);
    let pool = group.and_then(|group| group.pool_name());
    let windows = group.and_then(|group| group.windows.as_ref()).map(|windows| windows.period);
    let Some(period) = flow.period.or(windows).map(|period| period.as_nanos()).filter(|period| *period > 0) else {
        return Vec::new();
    };
    let served = pool.and_then(|pool| served.get(pool.as_str()));
    let instants = |start: i64| match (flow.after, served) {
        (None, Some(windows)) => {
            let spans = windows.iter().map(|(_, window)| (window.offset.as_nanos(), window.end().as_nanos()));
            let inside = spans.filter(|(from, to)| *from < start + period && *to > start);
            inside.map(|(_, to)| to.min(start + period)).max().map(|end| (start, end))
        }
        (after, _) => Some((start, start + after.map_or(0, |after| after.as_nanos()))),
    };
    (0..plan.cycle.as_nanos() / period).filter_map(|number| instants(number * period)).collect()
}
