//! The frames of flows in one cycle: when each is ready, and by when it must have arrived.

use macrotick_model::{Duration, Flow, Plan};

use super::Late;

/// A frame of a flow. All instants count from the start of the cycle, and may lie in a later cycle.
#[derive(Clone, Debug)]
pub(super) struct Frame<'a> {
    /// Its number among all frames of the network.
    pub number: usize,
    pub flow: &'a Flow,
    /// The period of its flow.
    pub period: Duration,
    /// The earliest instant at which it can be ready: the start of its sender's job.
    pub earliest: Duration,
    pub ready: Duration,
    /// The frame leaves up to this much earlier, and no gate holds it: its sender has an express socket.
    pub early: Duration,
    /// The latest instant at which the last interface may have sent it.
    pub limit: Duration,
    /// The rule with this limit.
    pub rule: Late,
}

/// Returns the frames of a flow in one cycle. Their numbers begin with 0.
pub(super) fn frames<'a>(plan: &Plan, flow: &'a Flow) -> Vec<Frame<'a>> {
    let receiver = flow.to.as_ref().filter(|to| plan.system.task(to).is_some_and(|task| task.supply.is_windows()));
    let starts: Vec<Duration> =
        receiver.map_or_else(Vec::new, |to| plan.jobs(to).iter().map(|job| job.nominal).collect());
    let all = ready(plan, flow);
    // The frames of a cycle have equal distances.
    let period = Duration::from_nanos(plan.cycle.as_nanos() / all.len().max(1) as i64);
    let frame = |(number, (earliest, ready)): (usize, (Duration, Duration))| {
        let deadline = ready + flow.deadline;
        let (limit, rule) = match (next(&starts, ready, plan.cycle), receiver) {
            (Some(start), Some(to)) if start < deadline => (start, Late::Receiver(to.clone())),
            _ => (deadline, Late::Deadline(flow.deadline)),
        };
        let early = if flow.express { ready - earliest } else { Duration::ZERO };
        Frame { number, flow, period, earliest, ready, early, limit, rule }
    };
    all.into_iter().enumerate().map(frame).collect()
}

/// Returns the first of the instants, which repeat with the cycle, at or after `from`.
fn next(instants: &[Duration], from: Duration, cycle: Duration) -> Option<Duration> {
    let after = |instant: &Duration| {
        let distance = (*instant - from).as_nanos().rem_euclid(cycle.as_nanos());
        from + Duration::from_nanos(distance)
    };
    instants.iter().map(after).min()
}

/// Returns the earliest and the latest instant at which each frame of one cycle is ready.
fn ready(plan: &Plan, flow: &Flow) -> Vec<(Duration, Duration)> {
    if plan.system.task(&flow.from).is_some() {
        let jobs = plan.jobs(&flow.from);
        let ready = |nominal: Duration, deadline: Duration| flow.after.map_or(deadline, |after| nominal + after);
        return jobs.iter().map(|job| (job.nominal, ready(job.nominal, job.deadline))).collect();
    }
    ready_of_group(plan, flow)
}

/// Does this for a group: a frame is ready in its period.
fn ready_of_group(plan: &Plan, flow: &Flow) -> Vec<(Duration, Duration)> {
    let group = plan.system.groups.iter().find(|group| group.name == flow.from);
    let windows = group.and_then(|group| group.windows.as_ref());
    let Some(period) = flow.period.or(windows.map(|windows| windows.period)) else { return Vec::new() };
    let starts = (0..plan.cycle / period).map(|number| period * number);
    match (flow.after, group.and_then(|group| group.pool_name())) {
        (None, Some(pool)) => {
            let end = |start| Some((start, end_of_windows(plan, &pool, start, start + period)?));
            starts.filter_map(end).collect()
        }
        (after, _) => starts.map(|start| (start, start + after.unwrap_or(Duration::ZERO))).collect(),
    }
}

/// Returns the end of the last window of a pool within a period.
fn end_of_windows(plan: &Plan, pool: &str, from: Duration, to: Duration) -> Option<Duration> {
    let windows = plan.tables.iter().flat_map(|table| &table.windows).filter(|window| window.task == pool);
    windows.filter(|window| window.offset < to && window.end() > from).map(|window| window.end().min(to)).max()
}
