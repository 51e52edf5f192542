//! Control groups with a budget, in the guest.

use std::fs;

use macrotick_model::Instant;
use macrotick_uapi::SCHED_DS;

use crate::kit::process::set_policy;

/// The hierarchy of control groups.
pub const ROOT: &str = "/sys/fs/cgroup";
const PERIOD: &str = "/proc/sys/kernel/sched_ds_period_us";

/// Sets the server period, which cannot become another one while a group has a budget.
pub fn set_period(us: u32) -> Result<(), String> {
    let is = fs::read_to_string(PERIOD).map_err(|error| format!("{PERIOD}: {error}"))?;
    if is.trim() != us.to_string() {
        write(PERIOD, &us.to_string())?;
    }
    write(&format!("{ROOT}/cgroup.subtree_control"), "+cpu")
}

/// The first refill at or after an instant, in nanoseconds.
pub fn next_refill(at: u64) -> Result<u64, String> {
    let refill = macrotick_node::next_refill(Instant::from_nanos(at as i64));
    refill.map(|refill| refill.as_nanos() as u64).map_err(|error| error.to_string())
}

/// Makes a group with a budget on all CPUs, in microseconds per period.
pub fn make(name: &str, budget_us: u32, priority: u32) -> Result<(), String> {
    let path = format!("{ROOT}/{name}");
    fs::create_dir(&path).map_err(|error| format!("{path}: {error}"))?;
    write(&format!("{path}/cpu.ds.priority"), &priority.to_string())?;
    write(&format!("{path}/cpu.ds.budget"), &budget_us.to_string())
}

/// Removes a group that nobody is in any longer.
pub fn remove(name: &str) -> Result<(), String> {
    let path = format!("{ROOT}/{name}");
    write(&format!("{path}/cpu.ds.budget"), "0")?;
    fs::remove_dir(&path).map_err(|error| format!("{path}: {error}"))
}

/// The caller enters a group, and is under SCHED_DS.
pub fn enter(name: &str, priority: u32) -> Result<(), String> {
    write(&format!("{ROOT}/{name}/cgroup.procs"), "0")?;
    set_policy(SCHED_DS, priority)
}

/// Writes a file, of a group or of the system.
pub fn write(path: &str, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{path}: {error}"))
}
