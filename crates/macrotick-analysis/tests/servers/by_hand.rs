//! Examples small enough to be computed by hand, at least one for each term. The server period is 10 if nothing else is
//! given.

use macrotick_analysis::servers::*;
use macrotick_fixtures::{ns, tables, window};
use macrotick_model::{CpuSet, Duration};

/// An unbound task with its period as the deadline.
pub fn task(name: &str, wcet: i64, period: i64, priority: u32) -> GroupTask {
    GroupTask::unbound(name, ns(wcet), ns(period), priority)
}

/// The same as a bound task.
pub fn bound(name: &str, wcet: i64, period: i64, priority: u32) -> GroupTask {
    GroupTask { arrival: Arrival::Bound, ..task(name, wcet, period, priority) }
}

pub fn group(name: &str, priority: u32, budget: i64, tasks: Vec<GroupTask>) -> Group {
    Group { criticality: priority, ..Group::served(name, priority, vec![Server::fixed(0, ns(budget), tasks)]) }
}

/// An account of SCHED_DEADLINE.
pub fn of_cpus(cpus: &[u32], promised: u32) -> Domain {
    Domain { cpus: CpuSet::from_iter(cpus.iter().copied()), promised: Bandwidth(promised) }
}

/// A host with windows `(offset, length)`.
pub fn host(groups: Vec<Group>, cycle: i64, windows: &[(i64, i64)]) -> Host {
    let window = |&(offset, length): &(i64, i64)| window("tt", ns(offset), ns(length), "AD");
    Host {
        refill: Refill::Lockstep(Phase::At(Duration::ZERO)),
        granule: ns(1),
        least: ns(1),
        capacity: Capacity::AllBut(Permille(0)),
        cycle: ns(cycle),
        tables: tables(windows.iter().map(window)),
        groups,
        ..Host::idle(ns(10))
    }
}

fn found(host: &Host, group: &str, task: &str) -> (i64, Accuracy) {
    let analysis = analyse(host).unwrap();
    let task = analysis.task(group, task).unwrap();
    (task.response.unwrap().as_nanos(), task.accuracy)
}

/// Returns the response time of `t` of group `g`, which must be exact.
fn exact(host: &Host) -> i64 {
    let (response, accuracy) = found(host, "g", "t");
    assert_eq!(accuracy, Accuracy::Exact);
    response
}

#[test]
fn the_wcet_and_the_gap() {
    // Bound: 3 from the refill on. Unbound: in addition 10 - 4 before the refill.
    assert_eq!(exact(&host(vec![group("g", 1, 4, vec![bound("t", 3, 100, 1)])], 0, &[])), 3);
    assert_eq!(exact(&host(vec![group("g", 1, 4, vec![task("t", 3, 100, 1)])], 0, &[])), 6 + 3);
}

#[test]
fn further_server_periods() {
    // 9 = 4 + 4 + 1: two whole periods, and 1 in the third.
    assert_eq!(exact(&host(vec![group("g", 1, 4, vec![bound("t", 9, 100, 1)])], 0, &[])), 10 + 10 + 1);
    // 8 = 4 + 4: the last budget counts as used, not as a whole period.
    assert_eq!(exact(&host(vec![group("g", 1, 4, vec![bound("t", 8, 100, 1)])], 0, &[])), 10 + 4);
}

#[test]
fn budgets_of_higher_groups_count_once_in_lockstep() {
    let groups = |task| vec![group("a", 3, 2, vec![]), group("b", 2, 3, vec![]), group("g", 1, 4, vec![task])];
    // Equation 3: they count only in the last period. In whole periods they are part of the period.
    assert_eq!(exact(&host(groups(bound("t", 3, 100, 1)), 0, &[])), 5 + 3);
    assert_eq!(exact(&host(groups(bound("t", 9, 100, 1)), 0, &[])), 20 + 5 + 1);
    assert_eq!(exact(&host(groups(task("t", 9, 100, 1)), 0, &[])), 6 + 20 + 5 + 1);
}

#[test]
fn budgets_of_higher_groups_count_twice_with_refills_of_their_own() {
    let groups = vec![group("x", 2, 3, vec![]), group("g", 1, 2, vec![bound("t", 2, 100, 1)])];
    let lockstep = host(groups, 0, &[]);
    assert_eq!(exact(&lockstep), 3 + 2);
    // y = 2 + ceil((y + 7) / 10) 3: 2, 5, 8, 8.
    let independent = Host { refill: Refill::Independent, ..lockstep };
    assert_eq!(found(&independent, "g", "t"), (8, Accuracy::UpperBound(Why::OwnRefills)));
}

#[test]
fn higher_tasks_and_the_jitter_of_unbound_ones() {
    // The first case: 2 + 3 = 4 + 1, complete at 11, before the second job at 15 of a task that arrives at refills.
    let with = |higher| host(vec![group("g", 1, 4, vec![higher, bound("t", 3, 60, 1)])], 0, &[]);
    assert_eq!(exact(&with(bound("h", 2, 20, 2))), 11);
    // An unbound task may arrive 6 earlier. Then its second job comes at 9, and 2 + 2 + 3 = 4 + 3.
    assert_eq!(exact(&with(task("h", 2, 15, 2))), 13);
    // With a release jitter of 3 its third job comes at 2 * 12 - 6 - 3 = 15, and its second at 3: 13 as before.
    assert_eq!(exact(&with(GroupTask { jitter: ns(3), ..task("h", 2, 12, 2) })), 13);
    // At a period of 11 the third job comes at 22 - 9 = 13, just when all jobs are complete. At 10.5 it would come
    // earlier.
    assert_eq!(exact(&with(GroupTask { jitter: ns(3), ..task("h", 2, 11, 2) })), 13);
    assert_eq!(exact(&with(GroupTask { jitter: ns(4), ..task("h", 2, 11, 2) })), 21);
}

#[test]
fn release_jitter_of_the_task_itself() {
    let late = |arrival, jitter| GroupTask { jitter: ns(jitter), arrival, ..task("t", 3, 100, 1) };
    let host = |task| host(vec![group("g", 1, 4, vec![task])], 0, &[]);
    assert_eq!(exact(&host(late(Arrival::Unbound, 5))), 5 + 6 + 3);
    // A bound task with a release two periods later.
    assert_eq!(exact(&host(late(Arrival::Bound, 20))), 20 + 3);
    // Between refills the budget may be gone, and the task waits for the next refill: 10 from its arrival.
    let (response, accuracy) = found(&host(late(Arrival::Bound, 5)), "g", "t");
    assert_eq!((response, accuracy), (10 + 3, Accuracy::UpperBound(Why::BoundJitter)));
}

#[test]
fn windows_where_they_are() {
    let with = |task| host(vec![group("g", 1, 4, vec![task])], 20, &[(12, 3)]);
    // From the refill at 10, two units are before the window, and the third is after it.
    assert_eq!(exact(&with(bound("t", 2, 100, 1))), 2);
    assert_eq!(exact(&with(bound("t", 3, 100, 1))), 2 + 3 + 1);
    assert_eq!(exact(&with(task("t", 3, 100, 1))), 6 + 2 + 3 + 1);
    let analysis = analyse(&with(bound("t", 3, 100, 1))).unwrap();
    assert_eq!(analysis.task("g", "t").unwrap().refill, Some(ns(10)));
    // At any phase, the window may begin at the refill.
    let any = Host { refill: Refill::Lockstep(Phase::Any), ..with(bound("t", 2, 100, 1)) };
    assert_eq!(found(&any, "g", "t"), (5, Accuracy::UpperBound(Why::AnyPhase)));
    // A lead of 1 takes the CPU like the window.
    assert_eq!(exact(&Host { lead: ns(1), ..with(bound("t", 2, 100, 1)) }), 1 + 4 + 1);
}

#[test]
fn windows_of_its_own() {
    let with = |task, windows: Option<&str>| {
        let group = Group { windows: windows.map(str::to_owned), ..group("g", 1, 2, vec![task]) };
        let mut host = host(vec![group], 10, &[(5, 3)]);
        (host.tables[0].windows[0].task, host.tables[0].windows[0].activate) = ("own".into(), false);
        host
    };
    // 2 of the budget at once, and 2 in the window, which is no part of the budget. Without own windows, the latter
    // come in the next period.
    let upper = Accuracy::UpperBound(Why::OwnWindows);
    assert_eq!(found(&with(bound("t", 4, 100, 1), Some("own")), "g", "t"), (5 + 2, upper));
    assert_eq!(found(&with(task("t", 4, 100, 1), Some("own")), "g", "t"), (8 + 5 + 2, upper));
    assert_eq!(found(&with(bound("t", 4, 100, 1), None), "g", "t"), (10 + 2, Accuracy::Exact));
    // 5 in each period of 10.
    assert_eq!(found(&with(bound("t", 24, 100, 1), Some("own")), "g", "t"), (40 + 5 + 2, upper));
    // At any phase the window comes as late as possible, behind the time that it takes from the budget.
    let any = Host { refill: Refill::Lockstep(Phase::Any), ..with(bound("t", 4, 100, 1), Some("own")) };
    assert_eq!(found(&any, "g", "t"), (9, Accuracy::UpperBound(Why::AnyPhase)));
    // The windows also serve the group if the budget never does, because of a group above.
    let mut below = with(bound("t", 4, 100, 1), Some("own"));
    below.groups.push(group("h", 2, 7, vec![]));
    assert_eq!(found(&below, "g", "t"), (10 + 6, Accuracy::UpperBound(Why::ShortPeriod)));
    // A window entity that the table does not have gives no own windows.
    below = with(bound("t", 4, 100, 1), Some("other"));
    assert_eq!(found(&below, "g", "t"), (10 + 2, Accuracy::Exact));
}

#[test]
fn windows_that_leave_too_little_of_a_period() {
    // In the period at 0 the window leaves 2 of a budget of 4. This is in time for 2, but not for 3.
    let with = |wcet| host(vec![group("g", 1, 4, vec![bound("t", wcet, 100, 1)])], 20, &[(0, 8)]);
    assert_eq!(found(&with(2), "g", "t"), (10, Accuracy::UpperBound(Why::ShortPeriod)));
    assert_eq!(found(&with(3), "g", "t"), (11, Accuracy::UpperBound(Why::ShortPeriod)));
    assert_eq!(analyse(&with(3)).unwrap().groups[0].servers[0].sure, ns(2));
}

#[test]
fn later_jobs_may_be_the_worst_where_deadlines_exceed_periods() {
    // v(q) = 12, 24, 41, 53, 65 for 7 q units in budgets of 5; R = v + 5 - 14 (q - 1) = 17, 15, 18, 16, 14.
    let long = GroupTask { deadline: ns(30), ..task("t", 7, 14, 1) };
    assert_eq!(exact(&host(vec![group("g", 1, 5, vec![long])], 0, &[])), 18);
}

#[test]
fn equal_priorities_count_as_higher() {
    let host = host(vec![group("g", 1, 5, vec![bound("t", 2, 100, 1), bound("u", 3, 100, 1)])], 0, &[]);
    assert_eq!(found(&host, "g", "t"), (5, Accuracy::UpperBound(Why::EqualPriority)));
}

/// The paper has no windows, so it lacks this case: an average is not enough.
#[test]
fn a_sum_that_fits_does_not_mean_that_the_budget_comes_in_time() {
    // Windows take half of the CPU, and the group needs the other half. But for 50 units no time is left.
    let host = host(vec![group("g", 1, 5, vec![bound("t", 5, 50, 1)])], 100, &[(0, 50)]);
    let analysis = analyse(&host).unwrap();
    assert_eq!(analysis.cpus[0].promised, 1.0);
    let [Refusal::Misses { cpu: 0, group, task, over: Some(over), .. }] = &analysis.refusals[..] else {
        panic!("{:?}", analysis.refusals);
    };
    assert_eq!((group.as_str(), task.as_str(), *over), ("g", "t", ns(5)));
}

/// The paper lacks this case, too: before the job arrives, empty windows are worse than full ones.
#[test]
fn the_gap_is_not_shortened_by_windows() {
    // If the window [0, 3) of every period were always used, a budget of 3 could be gone at 6 at the earliest. This
    // would be a gap of 4. But it may be gone at 3.
    let host = host(vec![group("g", 1, 3, vec![task("t", 1, 100, 1)])], 10, &[(0, 3)]);
    assert_eq!(exact(&host), 7 + 3 + 1);
}

/// A case in which equation 2 is not exact: a higher group uses its budget twice in a row in more than one period.
#[test]
fn the_general_form_counts_back_to_back_hits_that_exclude_each_other() {
    let groups = vec![group("x", 2, 3, vec![]), group("g", 1, 2, vec![task("h", 3, 33, 2), bound("t", 2, 100, 1)])];
    let host = Host { refill: Refill::Independent, ..host(groups, 0, &[]) };
    // 5 = 2 + 2 + 1 would be complete at 20 + 1 + 2 * 3 = 27. The second job of h comes at 33 - 8 = 25, so 8 is
    // complete at 30 + 2 + 2 * 3. But a group that has its budget at 20 and again at 23 does not have it at 30 and
    // again at 33.
    assert_eq!(found(&host, "g", "t").0, 38);
    let worst = (0..10).map(|refill| Adversary { refill }.latest(State { now: 0, x: 3, g: 2, h: 3, t: 2 })).max();
    assert_eq!(worst, Some(33));
}

/// A group above. In each unit of time it may run or not, and it chooses the worst refills.
struct Adversary {
    refill: i64,
}

/// The budgets of both groups, and the remaining work of tasks h and t.
#[derive(Clone, Copy)]
struct State {
    now: i64,
    x: i64,
    g: i64,
    h: i64,
    t: i64,
}

impl Adversary {
    /// Returns the latest end of t.
    fn latest(&self, mut state: State) -> i64 {
        if state.t == 0 {
            return state.now;
        }
        if state.now % 10 == 0 {
            state.g = 2;
        }
        if state.now % 10 == self.refill {
            state.x = 3;
        }
        if state.now == 25 {
            state.h += 3;
        }
        let mut idle = State { now: state.now + 1, ..state };
        if state.g > 0 {
            idle.g -= 1;
            *(if state.h > 0 { &mut idle.h } else { &mut idle.t }) -= 1;
        }
        let busy = (state.x > 0).then(|| self.latest(State { now: state.now + 1, x: state.x - 1, ..state }));
        self.latest(idle).max(busy.unwrap_or(0))
    }
}

#[test]
fn what_makes_no_sense_is_refused_by_name() {
    let good = host(vec![group("g", 1, 4, vec![task("t", 3, 100, 1)])], 20, &[(12, 3)]);
    let text = |host: &Host| analyse(host).unwrap_err().to_string();
    let with = |change: &dyn Fn(&mut Host)| {
        let mut host = good.clone();
        change(&mut host);
        text(&host)
    };
    for (refused, part) in [
        (with(&|host| host.server_period = ns(0)), "the server period is 0ns"),
        (with(&|host| host.granule = ns(11)), "longer than the server period of 10ns"),
        (with(&|host| host.groups[0].servers[0].budget = ns(11)), "the budget of `g` is 11ns"),
        (with(&|host| host.groups[0].servers[0].cpu = 7), "there is no CPU 7"),
        (with(&|host| host.groups.push(group("h", 1, 1, vec![]))), "groups `h` and `g` both have priority 1"),
        (with(&|host| host.groups.push(group("g", 2, 1, vec![]))), "there are two groups `g`"),
        (with(&|host| host.groups[0].priority = 100), "is 100: priorities are 1 to 99"),
        (with(&|host| host.tables[0].windows[0].length = ns(9)), "[12ns, 21ns) is not within the cycle of 20ns"),
        (with(&|host| host.groups[0].servers[0].tasks[0].deadline = ns(-1)), "the deadline of task `t` of `g`"),
        (with(&|host| host.groups[0].servers[0].tasks = vec![bound("t", 1, 25, 1)]), "period 25ns is no multiple"),
        (with(&|host| host.cpus.push(0)), "there are two CPUs 0"),
        (
            with(&|host| host.domains = vec![of_cpus(&[0], (1 << 20) + 1)]),
            "SCHED_DEADLINE has 1048577/1048576 of CPU 0",
        ),
        (with(&|host| host.domains = vec![of_cpus(&[1], 1)]), "a domain of SCHED_DEADLINE: there is no CPU 1"),
        (with(&|host| host.domains = vec![of_cpus(&[], 0)]), "a domain of SCHED_DEADLINE has no CPU"),
        (with(&|host| host.domains = vec![of_cpus(&[0], 1); 2]), "there are two domains of SCHED_DEADLINE with CPU 0"),
        (with(&|host| host.cycle = Duration::from_secs(2000)), "the cycle is 2000s"),
    ] {
        assert!(refused.contains(part), "{refused}");
    }
}

#[test]
fn sums_are_exact_to_the_last_nanosecond() {
    // Windows have a third of the CPU, and SCHED_DEADLINE a quarter. Of 12, five are left, and 3.8 after a reserve of a
    // tenth.
    let base = host(vec![group("g", 1, 3, vec![])], 30, &[(0, 10)]);
    let mut full = Host {
        server_period: ns(12),
        capacity: Capacity::AllBut(Permille(100)),
        domains: vec![of_cpus(&[0], 1 << 18)],
        ..base
    };
    assert!(analyse(&full).unwrap().is_feasible());
    full.groups[0].servers[0].budget = ns(4);
    let refusals = analyse(&full).unwrap().refusals;
    let [Refusal::CpuFull { cpu: 0, windows, budgets, over, .. }] = &refusals[..] else {
        panic!("{refusals:?}");
    };
    assert_eq!((*windows, budgets.as_slice(), *over), (ns(10), &[("g".to_string(), ns(4))][..], ns(1)));
    // An exactly full CPU is not too much: 5 of 15, 2 of 10 twice, and a reserve of 26.6 %.
    let mut thirds = host(vec![group("g", 1, 2, vec![]), group("h", 2, 2, vec![])], 15, &[(0, 5)]);
    thirds.cpus.push(1);
    assert!(analyse(&Host { capacity: Capacity::AllBut(Permille(266)), ..thirds.clone() }).unwrap().is_feasible());
    assert!(!analyse(&Host { capacity: Capacity::AllBut(Permille(267)), ..thirds.clone() }).unwrap().is_feasible());
    // Of the bandwidth of migrating tasks each CPU has half, rounded up: of a sixteenth a 32nd, of one part more one
    // more.
    let beside = |promised| Host {
        capacity: Capacity::AllBut(Permille(235)),
        domains: vec![of_cpus(&[0, 1], promised)],
        ..thirds.clone()
    };
    assert!(analyse(&beside(1 << 16)).unwrap().is_feasible());
    assert_eq!(analyse(&beside((1 << 16) + 1)).unwrap().cpus[1].deadline, Bandwidth((1 << 15) + 1));
    assert!(!analyse(&beside(1 << 17)).unwrap().is_feasible());
}

#[test]
fn sums_are_the_kernels_where_it_admits() {
    let over = |budget, deadline| {
        let mut host = Host {
            server_period: Duration::from_micros(2500),
            capacity: Capacity::Kernel,
            domains: vec![of_cpus(&[0], deadline)],
            ..host(vec![group("g", 1, 1, vec![])], 0, &[])
        };
        host.groups[0].servers[0].budget = Duration::from_micros(budget);
        match &analyse(&host).unwrap().refusals[..] {
            [] => None,
            [full @ Refusal::CpuFull { over, .. }] => Some((over.as_nanos(), full.to_string())),
            other => panic!("{other:?}"),
        }
    };
    // 95 % are 972.8 of 1024 parts, which are 2373.05 us.
    assert_eq!((over(2373, 0), over(2374, 0).unwrap().0), (None, 954));
    // 40 % and the 5 % of the fair class are 95 % of 486 parts in 1024. 538 parts are left, which are 1313.5 us.
    let (ns, told) = over(1350, (1 << 20) * 2 / 5).unwrap();
    assert_eq!((over(1313, (1 << 20) * 2 / 5), ns), (None, 36_524));
    assert_eq!(
        told,
        "CPU 0: a SCHED_DEADLINE bandwidth of 419430/1048576 (with the 5 % of the fair class at most 95 % of the time that \
         windows and budgets leave), budgets of 1350us (`g`) per 2500us and a reserve of 5.0 % are too much: budgets must sum up \
         to 36524ns less"
    );
}

/// Two CPUs with a server period of 2.5 ms. The first has 60 % of windows. Each has a group's budget in microseconds.
fn two_cpus(domains: Vec<Domain>, budgets: [i64; 2]) -> Host {
    let named = |cpu: usize, name| {
        let mut group = group(name, cpu as u32 + 1, 1, vec![]);
        group.servers[0] =
            Server { cpu: cpu as u32, budget: Duration::from_micros(budgets[cpu]), ..group.servers[0].clone() };
        group
    };
    Host {
        server_period: Duration::from_micros(2500),
        capacity: Capacity::Kernel,
        cpus: vec![0, 1],
        domains,
        ..host(vec![named(0, "g"), named(1, "h")], 10, &[(0, 6)])
    }
}

#[test]
fn a_domain_of_sched_deadline_has_one_account() {
    // Two roaming tasks of 40 % each must keep 971 parts. A budget of 100 us is on CPU 0. Both CPUs together leave 2048
    // - 615 - 41 - 971 = 421 parts, which are 1027.8 us.
    let fits = |domains: &[Domain], budget| analyse(&two_cpus(domains.to_vec(), [100, budget])).unwrap().is_feasible();
    let both = [of_cpus(&[0, 1], 838_860)];
    assert_eq!([1027, 1028].map(|budget| fits(&both, budget)), [true, false]);
    let sum = analyse(&two_cpus(both.to_vec(), [100, 1027])).unwrap().cpus.remove(1);
    assert_eq!((sum.deadline, sum.promised, sum.capacity), (Bandwidth(419_430), 1027.0 / 2500.0, 421.0 / 1024.0));
    // If each task has its own CPU, CPU 0 has no room for it. But 538 parts are left of CPU 1, which are 1313.5 us.
    let mut apart = two_cpus(vec![of_cpus(&[0], 419_430), of_cpus(&[1], 419_430)], [100, 1313]);
    let cpus_of = |host: &Host| {
        let refusals = analyse(host).unwrap().refusals;
        refusals.iter().map(|one| matches!(one, Refusal::CpuFull { cpu: 1, .. })).collect::<Vec<_>>()
    };
    assert_eq!(cpus_of(&apart), [false]);
    apart.groups[1].servers[0].budget = Duration::from_micros(1314);
    assert_eq!(cpus_of(&apart), [false, true]);
    let refusals = analyse(&two_cpus(both.to_vec(), [100, 1028])).unwrap().refusals;
    let told = "CPU 1: a SCHED_DEADLINE bandwidth of 838860/1048576 on CPUs 0, 1 (with the 5 % of the fair class on each at \
                most 95 % of the time that windows and budgets leave), windows and budgets of 656/1024 on the other CPUs, \
                budgets of 1028us (`h`) per 2500us and a reserve of 5.0 % are too much: budgets must sum up to 168ns less";
    assert_eq!(refusals[1].to_string(), told);
}

#[test]
fn an_account_counts_what_was_promised_to_the_last_part() {
    // The account keeps ceil((tasks + 2 * 52428) * 1024 / 996147) parts of 2048 - 615, also if the number of parts is
    // odd.
    let most = |tasks| {
        let host = two_cpus(vec![of_cpus(&[0, 1], tasks)], [0, 0]);
        let fits = |budget| {
            let mut host = host.clone();
            host.groups.remove(0);
            host.groups[0].servers[0].budget = Duration::from_micros(budget);
            analyse(&host).unwrap().is_feasible()
        };
        (1..2500).rev().find(|&budget| fits(budget)).unwrap()
    };
    // It keeps 975 parts, then 976. Then 458 and 457 of 1024 parts of 2.5 ms are left.
    assert_eq!([843_623, 843_624].map(most), [1118, 1115]);
}

#[test]
fn budgets_that_are_to_be_found_take_nothing_of_a_domain() {
    let mut host = two_cpus(vec![of_cpus(&[0, 1], 838_860)], [2000, 2000]);
    for group in &mut host.groups {
        group.servers[0].tasks = vec![bound("t", 1000, 10_000_000, 1)];
    }
    assert_eq!(analyse(&host).unwrap().refusals.len(), 2);
    let least = least_budgets(&host, TaskOrder::Given).unwrap();
    let open = vec![Open { budget: true, order: TaskOrder::Given }; 2];
    for found in [least, complete(&host, &open).unwrap()] {
        assert_eq!(analyse(&found).unwrap().refusals, []);
    }
}

#[test]
fn criticality_becomes_priority() {
    let critical = |name: &str, criticality| Group { criticality, ..group(name, 1, 1, vec![]) };
    let groups = [critical("a", 1), critical("b", 5), critical("c", 1), critical("d", 3)];
    let priorities: Vec<u32> = by_criticality(&groups).unwrap().iter().map(|group| group.priority).collect();
    // The order is b, d, a, c: of a and c, the first in the list comes first.
    assert_eq!(priorities, [40, 80, 20, 60]);
    let many: Vec<Group> = (0..99).map(|index| critical(&index.to_string(), 99 - index)).collect();
    let priorities: Vec<u32> = by_criticality(&many).unwrap().iter().map(|group| group.priority).collect();
    assert_eq!(priorities, (1..=99).rev().collect::<Vec<u32>>());
    assert!(by_criticality(&[many, vec![critical("x", 0)]].concat()).is_err());
}

#[test]
fn windows_of_one_cpu_are_nothing_to_another() {
    // Beside windows of 4, t takes 7. On CPU 1 this would be late.
    let mut g = group("g", 1, 4, vec![bound("t", 3, 100, 1)]);
    let soon = GroupTask { deadline: ns(5), ..bound("u", 3, 100, 1) };
    g.servers.push(Server::fixed(1, ns(4), vec![soon]));
    let mut host = host(vec![g], 10, &[(0, 4)]);
    host.cpus.push(1);
    assert_eq!((found(&host, "g", "t").0, found(&host, "g", "u").0), (7, 3));
    assert!(assign_tasks(&host).is_ok() && assign_groups(&host).is_ok());
    let least = least_budgets(&host, TaskOrder::Given).unwrap();
    assert_eq!(least.groups[0].on(1).unwrap().budget, ns(3));
}

#[test]
fn more_tasks_than_priorities_share_the_lowest() {
    let tasks = (0..150).map(|index| task(&format!("t{index}"), 1, 10_000 + index, 1)).collect();
    let assigned = assign_tasks(&host(vec![group("g", 1, 5, tasks)], 0, &[])).unwrap();
    let priorities: Vec<u32> = assigned.groups[0].servers[0].tasks.iter().map(|task| task.priority).collect();
    assert_eq!(
        (priorities.iter().max(), priorities.iter().filter(|priority| **priority == 1).count()),
        (Some(&99), 52)
    );
    assert!(priorities.windows(2).all(|pair| pair[0] == pair[1] && pair[0] == 1 || pair[0] == pair[1] + 1));
    assert!(analyse(&assigned).unwrap().is_feasible());
    // Each of the 100 tasks can only come after those before it, so 99 priorities cannot be enough.
    let tight = (0..100).map(|index| GroupTask { deadline: ns(index + 1), ..task(&format!("t{index}"), 1, 10_000, 1) });
    let refused = assign_tasks(&host(vec![group("g", 1, 10, tight.collect())], 0, &[])).unwrap_err();
    assert_eq!(refused.to_string(), "100 tasks of group `g` are too many for 99 priorities");
}

/// A loop of 1 kHz waits for its budget for up to a server period. The time that it computes must fit into each
/// millisecond of one.
#[test]
fn a_shorter_server_period_is_advised_where_it_leaves_more() {
    let us = |us: i64| us * 1000;
    let with = |wcet, period| {
        let group = group("ecat", 50, us(1950), vec![task("loop", us(wcet), us(period), 1)]);
        let host = host(vec![group], us(10_000), &[(us(20), us(300))]);
        Host { server_period: ns(us(2500)), granule: ns(us(10)), least: ns(us(10)), capacity: Capacity::Kernel, ..host }
    };
    let told = period_advice(&with(150, 1000)).map(|advice| advice.to_string());
    let text =
        "group `ecat` needs 78 % of CPU 0 with a server period of 2500us for a load of 15 %: `server-period: 500us` \
                needs 26 % instead";
    assert_eq!(told.as_deref(), Some(text));
    assert_eq!(period_advice(&with(1500, 10_000)), None);
}
