//! Gives a group its budget. When programs write budgets at the same time, the kernel decides for all of them. It
//! reports only EBUSY, so this module reads the budgets back to explain the refusal.
//!
//! This check covers sums only. The module `admission` has already checked whether tasks meet their deadlines within
//! budgets.

use macrotick_host::budgets::{budgets, microseconds, server_period, BUDGET};
use macrotick_host::cgroup::{Existing, ROOT};
use macrotick_host::Undo;
use macrotick_model::Duration;

use crate::cgroup;
use crate::error::HookError;
use crate::request::Budget;

/// The pause between tries. The kernel frees the budget of a removed group a little later, after the last reference to
/// the group is gone.
const PAUSE: std::time::Duration = std::time::Duration::from_millis(10);
const TRIES: u32 = 20;

/// Gives a group its budget, or returns the reason why it does not fit.
pub fn give(group: &Existing, budget: &Budget, undo: &mut Undo) -> Result<(), HookError> {
    let mut tries = TRIES;
    let mut write = || cgroup::write(group, BUDGET, &text_of(budget), undo);
    let mut written = write();
    while tries > 0
        && matches!(&written, Err(HookError::File { source, .. }) if source.raw_os_error() == Some(libc::EBUSY))
    {
        std::thread::sleep(PAUSE);
        tries -= 1;
        written = write();
    }
    match written {
        Err(HookError::File { source, .. }) if source.raw_os_error() == Some(libc::EBUSY) => {
            let period = server_period().map_err(HookError::host)?;
            Err(HookError::NoRoom { budget: budget.length, period, taken: taken(budget.length, period) })
        }
        other => other,
    }
}

/// Returns the budget in the kernel's format: microseconds, with the CPUs if it is not on all of them.
fn text_of(budget: &Budget) -> String {
    let microseconds = microseconds(budget.length);
    match &budget.cpus {
        None => microseconds,
        Some(cpus) => format!("{cpus}={microseconds}"),
    }
}

/// The limit for the sum of windows and budgets on a CPU, in the kernel's unit of 1/1024.
const MOST: i64 = 1024 * 95 / 100;

/// Whether the budget alone exceeds the limit of a CPU.
fn is_too_much(budget: Duration, period: Duration) -> bool {
    budget * 1024 > period * MOST
}

/// Returns all groups with a budget, in words.
fn taken(budget: Duration, period: Duration) -> String {
    if is_too_much(budget, period) {
        return "This budget alone exceeds the limit.".into();
    }
    let mut budgets = budgets().unwrap_or_default();
    budgets.sort();
    match budgets.is_empty() {
        true => "No other group has a budget: check the windows (`macrotick status`) and SCHED_DEADLINE.".into(),
        false => {
            let each = budgets.iter().map(|(group, budget)| {
                let name = group.strip_prefix(ROOT).unwrap_or(group).display();
                format!("{name} has {budget}")
            });
            format!("In microseconds per period: {}.", each.collect::<Vec<_>>().join("; "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_has_972_of_1024_parts() {
        let period = Duration::from_micros(2500);
        assert_eq!([2373, 2374].map(|budget| is_too_much(Duration::from_micros(budget), period)), [false, true]);
    }

    #[test]
    fn budgets_are_written_as_the_kernel_reads_them() {
        let length = Duration::from_millis(1);
        let all = Budget { length, cpus: None, bind: false, priority: 1, fifo: true, lead: None };
        assert_eq!(text_of(&all), "1000");
        assert_eq!(text_of(&Budget { cpus: Some("0,2-3".into()), ..all }), "0,2-3=1000");
    }
}
