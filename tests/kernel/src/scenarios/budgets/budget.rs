//! The budget of a single group.

use super::spans::{ensure_spans, later, next_refill, phase_ns, Spans};
use super::{budget_of, first_group, group, run_in, set_period, stat, PERIOD, SECOND};
use crate::check::Check;
use crate::group::Group;
use crate::process;
use crate::scenarios::unit_ns;
use crate::sys;
use crate::{ensure, ensure_eq};

/// Checks that a hog gets its budget and no more, beside any other load. Other threads get the rest.
pub(super) fn has_its_budget() -> Check {
    let u = unit_ns();
    let group = first_group("a", 5, 1)?;
    let child = run_in(&group, 10, || sys::hog())?;
    sys::sleep_until(next_refill());
    let (before, refills) = (stat(&group, "usage_usec")?, stat(&group, "refills")?);
    let began = sys::now_ns();
    sys::sleep(100 * PERIOD * u);
    let (used, long) = ((stat(&group, "usage_usec")? - before) * 1000, sys::now_ns() - began);
    let share = used as f64 / long as f64;
    ensure!((0.199..0.207).contains(&share), "a share of {share} instead of 0.2");
    let times = stat(&group, "refills")? - refills;
    ensure!((99..=102).contains(&times), "{times} refills in 100 periods");
    ensure!(stat(&group, "exhaustions")? >= 100, "{}", group.get("cpu.ds.stat")?);
    let idle = stat(&group, "throttled_usec")? * 1000;
    ensure!(idle >= long / 100 * 78, "throttled for {idle} ns of {long}");
    child.kill(SECOND)
}

pub(super) fn refilled_on_the_grid() -> Check {
    let group = first_group("a", 5, 1)?;
    let [spans] = Spans::several();
    run_in(&group, 10, || spans.hog())?;
    let from = next_refill();
    sys::sleep_until(from + 50 * PERIOD * unit_ns());
    let seen = spans.since(from - unit_ns());
    ensure!(seen.len() >= 49, "{} spans in 50 periods", seen.len());
    ensure_spans(&seen, 0, 5)
}

/// Checks that refills are as far as possible from the tick, which comes each millisecond.
pub(super) fn refilled_beside_the_tick() -> Check {
    for (period_us, phase) in [(2500, 250_000), (10_000, 500_000), (1100, 50_000), (333, 500)] {
        set_period(period_us * 1000)?;
        ensure_eq!(phase_ns(), phase, "the phase of refills every {period_us} us");
    }
    Ok(())
}

/// Checks that a refill timer of a removed group, with another server period, does not delay the refills of the next
/// group.
pub(super) fn refilled_after_another_period() -> Check {
    let u = unit_ns();
    set_period(SECOND)?;
    // With its budget, the group starts to wait for a refill.
    group("a", 5, 1)?.remove()?;
    let group = first_group("b", 5, 1)?;
    let child = run_in(&group, 10, || sys::hog())?;
    sys::sleep(10 * PERIOD * u);
    let times = stat(&group, "refills")?;
    ensure!(times >= 9, "{times} refills in ten periods");
    child.kill(SECOND)
}

/// Checks that a group keeps its unused budget until the next refill, and no longer.
pub(super) fn keeps_its_budget() -> Check {
    let u = unit_ns();
    let group = first_group("a", 5, 1)?;
    let [spans] = Spans::several();
    let start = later();
    run_in(&group, 10, || {
        spans.touch();
        sys::sleep_until(start + 17 * u);
        spans.hog()
    })?;
    sys::sleep_until(start + 4 * PERIOD * u);
    let seen = spans.since(0);
    ensure!(seen.len() >= 2, "{seen:?}");
    ensure_spans(&seen[..1], 17, 5)?;
    ensure_spans(&seen[1..], 0, 5)?;
    // Across a refill, a thread gets the rest of one period and all of the next.
    let [spans] = Spans::several();
    let start = later();
    let late = run_in(&group, 20, || {
        sys::sleep_until(start - 2 * u);
        spans.hog()
    })?;
    let hog = sys::now_ns();
    ensure!(hog < start, "too late");
    sys::sleep_until(start + 2 * PERIOD * u);
    late.kill(SECOND)
}

pub(super) fn budget_changes() -> Check {
    let u = unit_ns();
    let group = first_group("a", 5, 1)?;
    let [spans] = Spans::several();
    run_in(&group, 10, || spans.hog())?;
    for budget in [5, 9, 2, 12, 1] {
        group.set("cpu.ds.budget", &(budget * u / 1000).to_string())?;
        ensure_eq!(budget_of(&group)?, (budget * u / 1000).to_string(), "the budget, read");
        let from = next_refill();
        sys::sleep_until(from + 5 * PERIOD * u);
        let seen = spans.since(from - u);
        ensure!(seen.len() >= 4, "{} spans", seen.len());
        ensure_spans(&seen, 0, budget)?;
    }
    Ok(())
}

pub(super) fn killed_while_throttled() -> Check {
    let group = first_group("a", 1, 1)?;
    for _ in 0..20 {
        let child = run_in(&group, 10, || sys::hog())?;
        sys::sleep(2 * PERIOD * unit_ns());
        child.kill(SECOND)?;
    }
    Ok(())
}

/// Checks that a thread that sets its own group's budget to 0 continues to run.
pub(super) fn given_up() -> Check {
    let u = unit_ns();
    let group = first_group("a", 5, 1)?;
    let child = run_in(&group, 10, || {
        for _ in 0..5 {
            if group.set("cpu.ds.budget", "0").is_err() {
                return 1;
            }
            sys::spin(30 * u);
            if group.set("cpu.ds.budget", &(5 * u / 1000).to_string()).is_err() {
                return 2;
            }
            sys::spin(10 * u);
        }
        0
    })?;
    child.succeed(20 * SECOND)
}

/// Checks that the kernel charges its memory for groups to the memory group of the writer, as for control groups.
pub(super) fn is_charged() -> Check {
    const GROUPS: u64 = 64;
    set_period(PERIOD * unit_ns())?;
    Group::root().set("cgroup.subtree_control", "+memory")?;
    let payer = Group::new("payer")?;
    let groups: Vec<Group> = (0..GROUPS).map(|index| Group::new(&format!("g{index}"))).collect::<Check<_>>()?;
    let kernel_memory = || {
        let stat = payer.get("memory.stat")?;
        let number = stat.lines().find_map(|line| line.strip_prefix("kernel ")?.parse::<u64>().ok());
        number.ok_or_else(|| format!("no kernel memory in {stat:?}"))
    };
    let charged = process::check_in_child(10 * SECOND, || {
        payer.take(0)?;
        let before = kernel_memory()?;
        groups.iter().try_for_each(|group| group.set("cpu.ds.budget", "10"))?;
        let charged = kernel_memory()?.saturating_sub(before);
        // The kernel has a list for each priority, on one CPU at least.
        ensure!(charged >= GROUPS * 100 * 16, "{charged} bytes are charged for {GROUPS} groups");
        Ok(())
    });
    groups.iter().try_for_each(Group::remove)?;
    sys::eventually(SECOND, || Group::root().set("cgroup.subtree_control", "-memory").is_ok());
    charged
}
