//! SCHED_DS: control groups with a budget in each server period.

mod behind;
mod budget;
mod cpus;
mod crowd;
mod cycles;
mod kernel_threads;
mod lead;
mod locks;
mod membership;
mod mixed;
mod order;
mod refused;
mod relief;
mod sleeps;
pub(super) mod spans;
mod storm;

use std::fs;

use macrotick_uapi::{SCHED_DS, SCHED_TT};

use super::storm::{files, memory, network, pipes, processes, shared_memory};
use super::{is_slow, unit_ns, Scenario};
use crate::board::Board;
use crate::check::{Check, Explain};
use crate::group::Group;
use crate::process::{self, Child};
use crate::sys::{self, SchedAttr};
use crate::{ensure, ensure_eq};

pub const ALL: &[Scenario] = &[
    Scenario::new("group_has_its_budget", budget::has_its_budget).punctual(),
    Scenario::new("group_refilled_on_the_grid", budget::refilled_on_the_grid).punctual(),
    Scenario::new("group_refilled_beside_the_tick", budget::refilled_beside_the_tick),
    Scenario::new("group_refilled_after_another_period", budget::refilled_after_another_period),
    Scenario::new("group_keeps_its_budget", budget::keeps_its_budget).punctual(),
    Scenario::new("group_budget_changes", budget::budget_changes).punctual(),
    Scenario::new("group_killed_while_throttled", budget::killed_while_throttled),
    Scenario::new("group_given_up", budget::given_up),
    Scenario::new("group_is_charged", budget::is_charged),
    Scenario::new("group_priorities", order::priorities).punctual(),
    Scenario::new("group_priorities_inside", order::priorities_inside).punctual(),
    Scenario::new("group_fifo_inside", order::fifo_inside).punctual(),
    Scenario::new("group_preempted_inside_a_lock", order::preempted_inside),
    Scenario::new("group_precedence", order::precedence).punctual(),
    Scenario::new("group_after_windows", order::after_windows).punctual(),
    Scenario::new("group_children", membership::children).punctual(),
    Scenario::new("group_moves", membership::moves).punctual(),
    Scenario::new("group_takes_fifo", membership::takes_fifo).punctual(),
    Scenario::new("group_nested", membership::nested).punctual(),
    Scenario::new("group_inherits_inside", locks::inherits_inside).punctual(),
    Scenario::new("group_lends_its_budget", locks::lends_its_budget).punctual(),
    Scenario::new("group_lends_no_more_than_its_budget", locks::lends_no_more).punctual().fair(),
    Scenario::new("group_throttled_owner", locks::throttled_owner).punctual(),
    Scenario::new("group_offered_while_throttled", locks::offered_while_throttled).punctual(),
    Scenario::new("group_hands_on_its_locks", locks::handed_on).punctual(),
    Scenario::new("group_lends_behind_the_first", behind::lend).punctual(),
    Scenario::new("group_storm_of_locks_for_others", behind::storm).punctual(),
    Scenario::new("group_storm_of_offered_locks", crowd::are_offered_locks).punctual().within(60_000),
    Scenario::new("group_handed_on_owner", locks::handed_on_owner),
    Scenario::new("group_owner_leaves_deadline", locks::owner_leaves_deadline),
    Scenario::new("group_owner_leaves_fifo", locks::owner_leaves_fifo),
    Scenario::new("group_member_leaves_for_fifo", order::leaves_for_fifo).punctual(),
    Scenario::new("group_with_windows", mixed::has_both).punctual(),
    Scenario::new("group_wakes_between_windows", mixed::wakes_between_windows).punctual(),
    Scenario::new("group_with_windows_by_policy", mixed::changes::by_policy).punctual(),
    Scenario::new("group_with_windows_comes_and_goes", mixed::changes::comes_and_goes).punctual(),
    Scenario::new("group_with_windows_and_slack", mixed::with_slack).punctual(),
    Scenario::new("group_with_windows_children", mixed::children).punctual().within(90_000),
    Scenario::new("group_with_windows_policy_at_once", mixed::changes::policy_at_once).punctual(),
    Scenario::new("group_with_windows_priority_alone", mixed::changes::priority_alone),
    Scenario::new("group_with_windows_budget_while_asleep", mixed::changes::budget_while_asleep).punctual(),
    Scenario::new("group_with_windows_lends_its_lock", mixed::locks::lends_its_lock).punctual(),
    Scenario::new("group_with_windows_lends_no_more_outside", || mixed::locks::lends_no_more(2)).punctual().fair(),
    Scenario::new("group_with_windows_lends_no_more_inside", || mixed::locks::lends_no_more(12)).punctual().fair(),
    Scenario::new("group_with_windows_lends_no_priority_alone", mixed::locks::lends_no_priority_alone),
    Scenario::new("group_with_windows_waits_at_its_window", mixed::locks::waits_at_its_window).punctual(),
    Scenario::new("group_kept_in_the_kernel", relief::kept_in_the_kernel).punctual(),
    Scenario::new("group_kept_in_the_kernel_beside_idle_cpus", relief::kept_in_the_kernel).on(2),
    Scenario::new("group_killed_without_time", relief::killed).punctual(),
    Scenario::new("group_sleeps_under_another_policy", relief::slept_elsewhere).punctual(),
    Scenario::new("group_lead", lead::held).punctual(),
    Scenario::new("group_lead_never_early", lead::never_early),
    Scenario::new("group_lead_interrupted", lead::interrupted),
    Scenario::new("group_lead_taken_away", lead::taken_away),
    Scenario::new("group_sleeps_are_masked", sleeps::masked).punctual(),
    Scenario::new("group_sleeps_raised", sleeps::raised).punctual(),
    Scenario::new("group_sleeps_lowered", sleeps::lowered).punctual(),
    Scenario::new("group_sleeps_lowers_itself", sleeps::lowers_itself).punctual(),
    Scenario::new("group_sleeps_raised_by_another_cpu", sleeps::raised_by_another_cpu).on(2),
    Scenario::new("group_sleeps_lowered_by_another_cpu", sleeps::lowered_by_another_cpu).on(2),
    Scenario::new("group_sleeps_end_at_a_refill", sleeps::at_a_refill).punctual(),
    Scenario::new("group_sleeps_boosted", sleeps::boosted).punctual(),
    Scenario::new("group_sleeps_leaves", sleeps::leaves).punctual(),
    Scenario::new("group_refusals", refused::refusals),
    Scenario::new("group_beside_windows", refused::beside_windows),
    Scenario::new("group_beside_deadline", refused::beside_deadline).punctual(),
    Scenario::new("group_refused_claims_nothing", refused::claims_nothing).on(2),
    Scenario::new("group_of_another_user", refused::of_another_user),
    Scenario::new("group_delegated", refused::delegated),
    Scenario::new("group_on_two_cpus", cpus::on_two_cpus).on(2),
    Scenario::new("group_nothing_here", cpus::nothing_here).on(2),
    Scenario::new("group_moves_asleep", cpus::moves_asleep).on(2),
    Scenario::new("group_lends_to_another_cpu", cpus::lends_to_another).on(2),
    Scenario::new("group_off_line", cpus::off_line).on(2),
    Scenario::new("group_beside_hotplug", cpus::beside_hotplug).on(2),
    Scenario::new("group_of_a_softirq", kernel_threads::of_a_softirq).punctual(),
    Scenario::new("group_of_kernel_threads", kernel_threads::come_and_go),
    Scenario::new("group_of_an_interrupt", kernel_threads::of_an_interrupt),
    Scenario::new("group_of_kernel_threads_off_line", kernel_threads::off_line).on(2).within(60_000),
    Scenario::new("group_storm_files", || storm::storm(&[files, pipes], 4)).within(60_000),
    Scenario::new("group_storm_mixed", || storm::storm(&[network, memory, processes], 4)).within(60_000),
    Scenario::new("group_cycles", || cycles::cycles(60)).punctual(),
    Scenario::new("full_group_cycles", cycles::many_cycles).punctual().within(3_600_000),
    Scenario::new("full_group_storm", || storm::storm(&[files, pipes, memory, shared_memory, network, processes], 60))
        .within(600_000),
];

pub(super) const SECOND: u64 = 1_000_000_000;
/// The server period, in units.
pub(super) const PERIOD: u64 = 25;

pub(super) fn ds(priority: u32) -> SchedAttr {
    SchedAttr { priority, ..SchedAttr::policy(SCHED_DS) }
}

pub(super) fn set_period(ns: u64) -> Check {
    let us = (ns / 1000).to_string();
    // A removed group disappears a little later.
    let set = || fs::write("/proc/sys/kernel/sched_ds_period_us", &us).is_ok();
    let patience = if is_slow() { 10 * SECOND } else { SECOND };
    ensure!(sys::eventually(patience, set), "the server period cannot be set to {us} us");
    Ok(())
}

fn write_fails(group: &Group, file: &str, value: &str) -> Option<i32> {
    fs::write(format!("{}/{file}", group.path()), value).err().and_then(|error| error.raw_os_error())
}

/// Makes a group with a budget in units.
pub(super) fn group(name: &str, budget: u64, priority: u32) -> Check<Group> {
    let group = Group::new(name)?;
    group.set("cpu.ds.priority", &priority.to_string())?;
    group.set("cpu.ds.budget", &(budget * unit_ns() / 1000).to_string())?;
    Ok(group)
}

pub(super) fn first_group(name: &str, budget: u64, priority: u32) -> Check<Group> {
    set_period(PERIOD * unit_ns())?;
    group(name, budget, priority)
}

const NOBODY: u32 = 65_534;

/// Moves the caller into a group. The caller becomes an unprivileged user that may use priorities up to a limit there.
pub(super) fn become_user_in(group: &Group, limit: u32) -> Check {
    group.take(0)?;
    let limit = libc::rlimit { rlim_cur: limit.into(), rlim_max: limit.into() };
    // SAFETY: reads the limits; takes numbers.
    let changed = unsafe { libc::setrlimit(libc::RLIMIT_RTPRIO, &limit) | libc::setgid(NOBODY) | libc::setuid(NOBODY) };
    ensure_eq!(changed, 0, "becoming somebody else");
    Ok(())
}

/// Forks a process, moves it into a group and sets SCHED_DS from here. The process has taken its page faults by then.
/// Its policy may already be SCHED_TT when it looks, because its group is in a pool.
pub(super) fn run_in(group: &Group, priority: u32, body: impl FnOnce() -> i32) -> Check<Child> {
    let ready = Board::new(1);
    let child = process::fork(|| {
        sys::prefault();
        while !sys::sched(0).is_ok_and(|attr| [SCHED_DS, SCHED_TT].contains(&attr.policy)) {
            ready.set(0, 1);
        }
        body()
    });
    ensure!(sys::eventually(10 * SECOND, || ready.get(0) == 1), "the process does not begin: {}", child.describe());
    group.take(child.pid)?;
    sys::set_sched(child.pid, ds(priority)).explain("SCHED_DS")?;
    Ok(child)
}

/// Forks a process in a group that computes endlessly. It starts on CPU 1, and may also run on CPU 0.
pub(super) fn hog_from_cpu_1(group: &Group, priority: u32) -> Check<Child> {
    run_in(group, priority, || {
        let _ = sys::set_affinity(0, &[1]);
        let _ = sys::set_affinity(0, &[0, 1]);
        sys::hog()
    })
}

fn budget_of(group: &Group) -> Check<String> {
    Ok(group.get("cpu.ds.budget")?.trim().to_owned())
}

/// Returns the sum of a number of `cpu.ds.stat` over the CPUs: a thread that is not pinned uses budgets of several.
pub(super) fn stat(group: &Group, key: &str) -> Check<u64> {
    let text = group.get("cpu.ds.stat")?;
    let values = text.split_whitespace().filter_map(|word| word.strip_prefix(key)?.strip_prefix('='));
    let values: Option<Vec<u64>> = values.map(|value| value.parse().ok()).collect();
    let values = values.filter(|values| !values.is_empty()).ok_or_else(|| format!("no {key} in {text:?}"))?;
    Ok(values.iter().sum())
}
