//! The check whether a running deployment can become another one.

use std::collections::BTreeSet;

use macrotick_model::{Group, Plan, Pool};

use crate::deployment::network::fixed as fixed_network;
use crate::error::ChangeFault;

/// The condition of a running task or process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// It is in order.
    Sound,
    /// Its process, or one of its processes, has ended.
    Dead,
    /// The kernel stopped it after too many misses.
    Stopped,
}

/// Returns an error if the kernel, or a part that is set only at the start, does not allow the change. `condition`
/// returns the condition of a running task.
pub fn refuse(running: &Plan, wanted: &Plan, condition: &dyn Fn(&str) -> Condition) -> Result<(), ChangeFault> {
    let (old, new) = (&running.system, &wanted.system);
    if old.has_windows() != new.has_windows() {
        return Err(ChangeFault::Windows { running: old.has_windows() });
    }
    if old.sync().is_some() != new.sync().is_some() {
        return Err(ChangeFault::Clock { running: clock(running), wanted: clock(wanted) });
    }
    if old.namespaces != new.namespaces {
        return Err(ChangeFault::Namespaces);
    }
    if fixed_network(running) != fixed_network(wanted) {
        return Err(ChangeFault::Network);
    }
    if old.profile != new.profile {
        return Err(ChangeFault::Profile);
    }
    if !old.servers().map(fixed).eq(new.servers().map(fixed)) || old.server_period != new.server_period {
        return Err(ChangeFault::Groups);
    }
    if !old.reserved().map(|(task, _)| task).eq(new.reserved().map(|(task, _)| task)) {
        return Err(ChangeFault::Reservations);
    }
    let meets = |plan: &Plan| plan.cycle.is_multiple_of(plan.system.server_period);
    if new.servers().next().is_some() && meets(wanted) && !meets(running) {
        return Err(ChangeFault::Refills);
    }
    let pools = |plan: &Plan| plan.system.pools().map(|pool| pool.name).collect::<BTreeSet<_>>();
    let tasks = |plan: &Plan| plan.system.tasks.iter().map(|task| task.name.clone()).collect::<BTreeSet<_>>();
    let turned = |from: BTreeSet<String>, to: BTreeSet<String>| from.intersection(&to).next().cloned();
    if let Some(name) = turned(tasks(running), pools(wanted)).or_else(|| turned(pools(running), tasks(wanted))) {
        return Err(ChangeFault::Kind(name));
    }
    for pool in new.pools() {
        if let Some(former) = old.pools().find(|former| former.name == pool.name) {
            refuse_pool(&former, &pool)?;
        }
    }
    let with_threads = new.tasks.iter().map(|task| &task.name).filter(|name| condition(name) != Condition::Dead);
    let pools: Vec<String> = new.pools().map(|pool| pool.name).collect();
    with_threads.chain(&pools).try_for_each(|name| refuse_move(running, wanted, name))
}

/// Returns the fixed part of a group with a budget: all except its windows, which belong to the table, and its
/// processes, which may change.
fn fixed(group: &Group) -> (Group, bool) {
    (Group { windows: None, run: Vec::new(), ..group.clone() }, group.windows.is_some())
}

fn refuse_pool(former: &Pool, pool: &Pool) -> Result<(), ChangeFault> {
    let same = [
        ("cgroup", former.cgroup == pool.cgroup),
        ("kernel-threads", former.kernel_threads == pool.kernel_threads),
        ("slack", former.slack == pool.slack),
    ];
    match same.into_iter().find(|(_, same)| !same) {
        Some((key, _)) => Err(ChangeFault::Pool { pool: pool.name.clone(), key }),
        None => Ok(()),
    }
}

fn refuse_move(running: &Plan, wanted: &Plan, name: &str) -> Result<(), ChangeFault> {
    let (from, to) = (running.cpus(name), wanted.cpus(name));
    match from.is_empty() || to.is_empty() || from == to {
        true => Ok(()),
        false => Err(ChangeFault::Moves { name: name.into(), running: from, wanted: to }),
    }
}

/// Returns the clock of a plan's table.
pub fn clock(plan: &Plan) -> &'static str {
    plan.system.sync().map_or("CLOCK_MONOTONIC", |_| "CLOCK_TAI")
}

#[cfg(test)]
mod tests {
    use macrotick_fixtures::{self as fixtures, sync, us};
    use macrotick_model::{Clock, Duration, PoolOrder, Profile, SetUp};

    use super::*;
    use crate::live::difference::tests::{between, two};
    use crate::live::difference::{Fate, Kind};

    const MS: Duration = Duration::from_millis(1);

    fn pool(name: &str) -> Group {
        fixtures::pool(name, MS, us(100))
    }

    fn group() -> Group {
        fixtures::group("g", 1, us(100))
    }

    #[test]
    fn what_the_kernel_would_refuse_is_refused_before() {
        let mut following = two();
        following.system.clock = Clock::Tai(sync(MS, us(900), us(100), us(50)));
        let fault = ChangeFault::Clock { running: "CLOCK_MONOTONIC", wanted: "CLOCK_TAI" };
        assert_eq!(between(&two(), &following), Err(fault));

        let mut empty = two();
        empty.system.tasks.clear();
        assert_eq!(between(&two(), &empty), Err(ChangeFault::Windows { running: true }));
        assert_eq!(between(&empty, &two()), Err(ChangeFault::Windows { running: false }));

        let mut connected = two();
        connected.system.namespaces = vec![fixtures::namespace("n", "10.0.0.1/24")];
        assert_eq!(between(&two(), &connected), Err(ChangeFault::Namespaces));

        let mut set_up = two();
        set_up.system.profile = Some(Profile::like(SetUp::RealTime));
        assert_eq!(between(&two(), &set_up), Err(ChangeFault::Profile));
        assert!(between(&set_up, &set_up).is_ok());

        let mut slower = two();
        slower.system.server_period = MS;
        assert_eq!(between(&two(), &slower), Err(ChangeFault::Groups));

        let mut led = two();
        led.system.groups = vec![group()];
        assert!(between(&led, &led).is_ok());
        let running = led.clone();
        led.system.groups[0].lead = Some(us(20));
        assert_eq!(between(&running, &led), Err(ChangeFault::Groups));
        assert_eq!(between(&led, &running), Err(ChangeFault::Groups));

        let mut pooled = two();
        pooled.system.tasks.remove(1);
        pooled.system.groups.push(pool("b"));
        assert_eq!(between(&two(), &pooled), Err(ChangeFault::Kind("b".into())));
        assert_eq!(between(&pooled, &two()), Err(ChangeFault::Kind("b".into())));

        let mut other = pooled.clone();
        other.system.groups[0].windows.as_mut().unwrap().order = PoolOrder::RoundRobin(MS);
        assert_eq!(between(&pooled, &other).unwrap().fate(Kind::Pool, "b"), Some(Fate::Kept));
        other.system.groups[0].windows.as_mut().unwrap().slack = true;
        assert_eq!(between(&pooled, &other), Err(ChangeFault::Pool { pool: "b".into(), key: "slack" }));
        other.system.groups[0].cgroup = Some("/sys/fs/cgroup/x".into());
        assert_eq!(between(&pooled, &other), Err(ChangeFault::Pool { pool: "b".into(), key: "cgroup" }));
    }
}
