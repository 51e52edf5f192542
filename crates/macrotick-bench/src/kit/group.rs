//! Control groups with a budget, in the guest.

use std::path::Path;

use macrotick_host::budgets::{self, BUDGET, PRIORITY};
use macrotick_host::cgroup::{self, CONTROL, PROCESSES};
use macrotick_host::file;
use macrotick_model::{Duration, Instant};
use macrotick_uapi::SCHED_DS;

use crate::kit::process::set_policy;

pub use macrotick_host::cgroup::ROOT;

/// Sets the server period. The kernel refuses another one while a group has a budget.
pub fn set_period(us: u32) -> Result<(), String> {
    budgets::set_server_period(Duration::from_micros(us.into())).map_err(|failure| failure.to_string())?;
    write(&format!("{ROOT}/{CONTROL}"), "+cpu")
}

/// Returns the first refill at or after an instant, in nanoseconds.
pub fn next_refill(at: u64) -> Result<u64, String> {
    let refill = budgets::next_refill(Instant::from_nanos(at as i64));
    refill.map(|refill| refill.as_nanos() as u64).map_err(|error| error.to_string())
}

/// Makes a group with a budget on all CPUs, in microseconds per period.
pub fn make(name: &str, budget_us: u32, priority: u32) -> Result<(), String> {
    let path = format!("{ROOT}/{name}");
    create(&path)?;
    write(&format!("{path}/{PRIORITY}"), &priority.to_string())?;
    write(&format!("{path}/{BUDGET}"), &budget_us.to_string())
}

/// Removes a group without members.
pub fn remove(name: &str) -> Result<(), String> {
    let path = format!("{ROOT}/{name}");
    write(&format!("{path}/{BUDGET}"), "0")?;
    cgroup::remove_empty(Path::new(&path)).map_err(|failure| failure.to_string())
}

/// Moves the caller to a group, and sets its policy to SCHED_DS.
pub fn enter(name: &str, priority: u32) -> Result<(), String> {
    write(&format!("{ROOT}/{name}/{PROCESSES}"), "0")?;
    set_policy(SCHED_DS, priority)
}

/// Makes a control group without any settings.
pub fn create(path: &str) -> Result<(), String> {
    cgroup::create(Path::new(path)).map_err(|failure| failure.to_string())
}

/// Writes a file of a group or of the system. The guest's end undoes it.
pub fn write(path: &str, text: &str) -> Result<(), String> {
    file::write(Path::new(path), text).map_err(|failure| failure.to_string())
}
