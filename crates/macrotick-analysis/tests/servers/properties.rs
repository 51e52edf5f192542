//! Properties that hold for all numbers, and comparisons with brute force.

use macrotick_analysis::servers::*;
use macrotick_fixtures::ns;
use macrotick_model::{Duration, Window};

use crate::draw::{host, Form, Random};

const FORMS: [Form; 3] = [Form::Known, Form::AnyPhase, Form::Independent];

/// Returns the response time. A missing one, or a late one, counts as the longest.
fn nanos(task: &TaskAnalysis) -> i64 {
    task.response.filter(|_| task.meets()).map_or(i64::MAX, Duration::as_nanos)
}

/// Returns the response times of group `at`. Late ones count as the longest.
fn responses(host: &Host, at: usize) -> Vec<i64> {
    let analysis = analyse(host).unwrap();
    let name = &host.groups[at].name;
    let group = analysis.groups.iter().find(|group| group.name == *name).unwrap();
    group.servers[0].tasks.iter().map(nanos).collect()
}

fn is_no_longer(a: &[i64], b: &[i64]) -> bool {
    a.iter().zip(b).all(|(a, b)| a <= b)
}

fn with_budget(host: &Host, at: usize, budget: i64) -> Host {
    let mut host = host.clone();
    host.groups[at].servers[0].budget = ns(budget);
    host
}

fn meets(host: &Host, at: usize) -> bool {
    responses(host, at).iter().all(|&response| response < i64::MAX)
}

/// Bisection relies on this property, for every budget from 1 to the period.
#[test]
fn more_budget_of_its_own_makes_no_response_longer() {
    for form in FORMS {
        for seed in 0..500 {
            let host = host(seed, form);
            for at in 0..host.groups.len() {
                let mut before = vec![i64::MAX; host.groups[at].servers[0].tasks.len()];
                for budget in 1..=host.server_period.as_nanos() {
                    let after = responses(&with_budget(&host, at, budget), at);
                    assert!(is_no_longer(&after, &before), "seed {seed} ({form:?}), group {at}, budget {budget}");
                    before = after;
                }
            }
        }
    }
}

#[test]
fn more_budget_above_makes_no_response_shorter() {
    for form in FORMS {
        for seed in 1000..1500 {
            let host = host(seed, form);
            for lower in 1..host.groups.len() {
                let mut before = vec![0; host.groups[lower].servers[0].tasks.len()];
                for budget in 1..=host.server_period.as_nanos() {
                    let after = responses(&with_budget(&host, 0, budget), lower);
                    assert!(is_no_longer(&before, &after), "seed {seed} ({form:?}), group {lower}, budget {budget}");
                    before = after;
                }
            }
        }
    }
}

#[test]
fn a_lower_group_changes_nothing_above() {
    for seed in 2000..2300 {
        let host = host(seed, Form::Known);
        let last = host.groups.len() - 1;
        for at in 0..last {
            assert_eq!(responses(&host, at), responses(&with_budget(&host, last, 1), at), "seed {seed}");
        }
    }
}

#[test]
fn more_windows_and_less_knowledge_make_no_response_shorter() {
    for seed in 3000..4000 {
        let known = host(seed, Form::Known);
        let empty = Host { tables: Vec::new(), ..known.clone() };
        let any = Host { refill: Refill::Lockstep(Phase::Any), ..known.clone() };
        let own = Host { refill: Refill::Independent, ..known.clone() };
        let mut more = known.clone();
        more.tables[0].windows.extend(one_more_window(&known));
        for at in 0..known.groups.len() {
            let chain = [&empty, &known, &any, &own].map(|host| responses(host, at));
            // Without its own windows a group may have less.
            let from = usize::from(known.groups[at].windows.is_some());
            let rising = chain[from..].windows(2).all(|pair| is_no_longer(&pair[0], &pair[1]));
            assert!(rising, "seed {seed}, group {at}: {chain:?}");
            assert!(is_no_longer(&chain[1], &responses(&more, at)), "seed {seed}, group {at}");
        }
    }
}

/// Returns a further window at the end of the cycle, if there is free time. It serves no group, and may abut other
/// windows.
fn one_more_window(host: &Host) -> Option<Window> {
    let last = host.tables[0].windows.last()?;
    let length = host.cycle - last.end();
    (length > Duration::ZERO).then(|| Window { offset: last.end(), length, task: "tt".into(), ..last.clone() })
}

#[test]
fn the_least_budgets_are_feasible_and_no_granule_less_is() {
    let mut found = 0;
    for form in FORMS {
        for seed in 4000..5500 {
            let host = host(seed, form);
            let Ok(least) = least_budgets(&host, TaskOrder::Given) else {
                continue;
            };
            found += 1;
            assert!(analyse(&least).unwrap().is_feasible(), "seed {seed} ({form:?})");
            for at in 0..least.groups.len() {
                let budget = least.groups[at].servers[0].budget.as_nanos();
                let less = budget > 1 && meets(&with_budget(&least, at, budget - 1), at);
                assert!(!less, "seed {seed} ({form:?}), group {at}: less than {budget} is enough");
            }
        }
    }
    println!("least budgets found for {found} hosts");
    assert!(found > 1000, "{found}");
}

/// On one CPU both functions give the same result, and given values do not change.
#[test]
fn completing_all_is_giving_the_least() {
    let (mut found, mut beside) = (0, 0);
    for seed in 3000..4000 {
        let host = host(seed, Form::Known);
        let open = |budget| vec![Open { budget, order: TaskOrder::Best }; host.groups.len()];
        let least = least_budgets(&host, TaskOrder::Best);
        let completed = complete(&host, &open(true));
        if let Ok(least) = least {
            found += 1;
            assert_eq!(completed.as_ref(), Ok(&least), "seed {seed}");
        }
        let ordered = complete(&host, &open(false)).ok();
        assert_eq!(ordered, assign_tasks(&host).ok(), "seed {seed}");
        let highest = host.by_priority()[0].name.clone();
        let mut only = open(false);
        for (open, group) in only.iter_mut().zip(&host.groups) {
            *open = Open { budget: group.name == highest, order: TaskOrder::Given };
        }
        if let Ok(completed) = complete(&host, &only) {
            beside += 1;
            let others =
                |host: &Host| host.groups.iter().filter(|group| group.name != highest).cloned().collect::<Vec<_>>();
            assert_eq!(others(&completed), others(&host), "seed {seed}");
        }
    }
    assert!(found > 100 && beside > 100, "{found}, {beside}");
}

/// Compares with all budgets of two groups.
#[test]
fn the_least_budgets_are_the_least_of_all_feasible_ones() {
    let (mut some, mut none) = (0, 0);
    for seed in 6000..9000 {
        let host = host(seed, Form::Known);
        if host.groups.len() != 2 || host.server_period > ns(10) {
            continue;
        }
        let period = host.server_period.as_nanos();
        let pairs = (1..=period).flat_map(|a| (1..=period).map(move |b| (a, b)));
        let feasible =
            |&(a, b): &(i64, i64)| analyse(&with_budget(&with_budget(&host, 0, a), 1, b)).unwrap().is_feasible();
        let all: Vec<(i64, i64)> = pairs.filter(feasible).collect();
        match least_budgets(&host, TaskOrder::Given) {
            Ok(least) => {
                some += 1;
                let budget = |at: usize| least.groups[at].servers[0].budget.as_nanos();
                assert!(all.contains(&(budget(0), budget(1))), "seed {seed}");
                assert!(all.iter().all(|&(a, b)| a >= budget(0) && b >= budget(1)), "seed {seed}: {all:?}");
            }
            Err(_) => {
                none += 1;
                assert!(all.is_empty(), "seed {seed}: {all:?}");
            }
        }
    }
    assert!(some > 50 && none > 50, "{some} feasible, {none} not");
}

#[test]
fn budgets_are_multiples_of_the_granule() {
    for seed in 9000..9500 {
        let fine = Host { granule: ns(1), ..host(seed, Form::Known) };
        let coarse = Host { granule: ns(3), ..fine.clone() };
        if let (Ok(fine), Ok(coarse)) =
            (least_budgets(&fine, TaskOrder::Given), least_budgets(&coarse, TaskOrder::Given))
        {
            let budget = |host: &Host| host.groups[0].servers[0].budget.as_nanos();
            // Only for the highest group, because the groups below depend on it.
            assert_eq!(budget(&coarse), (budget(&fine) + 2) / 3 * 3, "seed {seed}");
        }
    }
}

/// Returns all orders of `0..count`.
fn orders(count: usize) -> Vec<Vec<usize>> {
    if count == 0 {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for order in orders(count - 1) {
        for place in 0..count {
            let mut longer = order.clone();
            longer.insert(place, count - 1);
            all.push(longer);
        }
    }
    all
}

#[test]
fn the_order_of_tasks_is_found_whenever_there_is_one() {
    let (mut some, mut none) = (0, 0);
    for form in FORMS {
        for seed in 10_000..11_000 {
            let mut host = host(seed, form);
            host.groups.truncate(1);
            let count = host.groups[0].servers[0].tasks.len();
            let feasible = orders(count).into_iter().any(|order| {
                let mut host = host.clone();
                for (task, place) in host.groups[0].servers[0].tasks.iter_mut().zip(order) {
                    task.priority = place as u32 + 1;
                }
                meets(&host, 0)
            });
            match assign_tasks(&host) {
                Ok(assigned) => {
                    some += 1;
                    assert!(feasible && meets(&assigned, 0), "seed {seed} ({form:?})");
                }
                Err(_) => {
                    none += 1;
                    assert!(!feasible, "seed {seed} ({form:?})");
                }
            }
        }
    }
    assert!(some > 300 && none > 300, "{some} feasible, {none} not");
}

#[test]
fn the_order_of_groups_is_found_whenever_there_is_one() {
    let (mut some, mut none) = (0, 0);
    for seed in 12_000..15_000 {
        let host = host(seed, Form::Known);
        let count = host.groups.len();
        let all_meet = |host: &Host| (0..count).all(|at| meets(host, at));
        let feasible = orders(count).into_iter().any(|order| {
            let mut host = host.clone();
            for (group, place) in host.groups.iter_mut().zip(order) {
                group.priority = place as u32 + 1;
            }
            all_meet(&host)
        });
        match assign_groups(&host) {
            Ok(assigned) => {
                some += usize::from(count > 1);
                assert!(feasible && all_meet(&assigned), "seed {seed}");
            }
            Err(_) => {
                none += usize::from(count > 1);
                assert!(!feasible, "seed {seed}");
            }
        }
    }
    assert!(some > 100 && none > 100, "{some} feasible, {none} not");
}

#[test]
fn criticality_decides_among_orders_that_are_feasible() {
    let mut kept = 0;
    for seed in 16_000..16_500 {
        let host = host(seed, Form::Known);
        let by = Host { groups: by_criticality(&host.groups).unwrap(), ..host.clone() };
        if (0..by.groups.len()).all(|at| meets(&by, at)) {
            kept += 1;
            let assigned = assign_groups(&host).unwrap();
            assert_eq!(order(&assigned), order(&by), "seed {seed}");
        }
    }
    assert!(kept > 50, "{kept}");
}

fn order(host: &Host) -> Vec<&str> {
    host.by_priority().iter().map(|group| group.name.as_str()).collect()
}

#[test]
fn arguments_stay_and_answers_repeat() {
    let random = &mut Random::new(1);
    for _ in 0..50 {
        let host = host(random.between(0, 1000) as u64, Form::Known);
        let before = host.clone();
        assert_eq!(analyse(&host), analyse(&host));
        assert_eq!(least_budgets(&host, TaskOrder::Best), least_budgets(&host, TaskOrder::Best));
        assert_eq!(host, before);
    }
}
