//! The host operator's part of an attack: groups, a pool, and budgets that come and go.

use std::time::Duration;

use macrotick_uapi::{self as abi, Device, Entity, Window};

use super::rivals::Program;
use crate::kit::clock::now_ns;
use crate::kit::group::{self, write};
use crate::kit::process;

/// The pool has a twenty-fifth of the time in windows, and unused time.
const POOL: &str = "crowd";
const CYCLE_NS: u64 = 2_500_000;
const WINDOW_NS: u64 = 100_000;
/// The time until the table starts.
const HEAD_START_NS: u64 = 10_000_000;
/// The least budget, in microseconds. It requires a long server period.
const LEAST_BUDGET_US: u32 = 10;
const PAUSE: Duration = Duration::from_millis(7);
/// Higher than every thread outside of groups.
const PRIORITY: u32 = 50;

/// A server period, and the budgets of victim and rival in it, in microseconds.
pub struct Budgets {
    pub period_us: u32,
    pub victim_us: u32,
    pub rival_us: u32,
}

/// Returns the budgets: two fifths of the CPU for the victim, and three tenths for a rival with a budget of its own. A
/// pool has no budget. With [`Program::Groups`], child groups have the rest of the three tenths.
pub fn budgets(program: &Program) -> Budgets {
    match program {
        Program::Groups(_) => Budgets { period_us: 25_000, victim_us: 10_000, rival_us: 2500 },
        Program::Pool(_) => Budgets { period_us: 2500, victim_us: 1000, rival_us: 0 },
        _ => Budgets { period_us: 2500, victim_us: 1000, rival_us: 750 },
    }
}

/// Prepares the rival's group, which exists, before any process runs.
pub fn prepare(program: &Program, group: &str) -> Result<(), String> {
    match program {
        Program::Groups(groups) => make_groups(group, *groups),
        Program::Pool(_) => serve(group),
        _ => Ok(()),
    }
}

fn make_groups(group: &str, groups: usize) -> Result<(), String> {
    write(&format!("{group}/cgroup.subtree_control"), "+cpu")?;
    for index in 0..groups {
        let path = format!("{group}/{index}");
        group::create(&path)?;
        let values = [
            ("cgroup.type", "threaded".into()),
            ("cpu.ds.fifo", "1".into()),
            ("cpu.ds.budget", LEAST_BUDGET_US.to_string()),
        ];
        values.iter().try_for_each(|(file, value)| write(&format!("{path}/{file}"), value))?;
        super::victim::give_away(&path)?;
    }
    Ok(())
}

fn serve(group: &str) -> Result<(), String> {
    let device = Device::open().map_err(|error| error.to_string())?;
    let entity = Entity { name: abi::name(POOL), flags: abi::POOL | abi::SLACK | abi::RR, ..Default::default() };
    let window = Window { offset_ns: CYCLE_NS / 2, length_ns: WINDOW_NS, ..Default::default() };
    process::install(&device, &[entity], &[window], CYCLE_NS, 0)?;
    let epoch = group::next_refill(now_ns() + HEAD_START_NS)?;
    device.start(epoch).map_err(|errno| format!("cannot start: errno {errno}"))?;
    write(&format!("{group}/cpu.tt.entity"), &format!("{POOL}\n"))
}

/// Removes the rival's budget and gives it back, without end.
pub fn take_and_give(group: &str, budget_us: u32) -> Result<(), String> {
    process::set_policy(libc::SCHED_FIFO as u32, PRIORITY)?;
    loop {
        for budget in [0, budget_us] {
            write(&format!("{group}/cpu.ds.budget"), &budget.to_string())?;
            std::thread::sleep(PAUSE);
        }
    }
}
