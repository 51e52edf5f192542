//! Windows beside reservations of `SCHED_DEADLINE`.

use macrotick_uapi::{error, Device};

use super::{unit_ns, Scenario};
use crate::board::Board;
use crate::check::{Check, Explain};
use crate::process::{self, Child};
use crate::sys::{self, SchedAttr};
use crate::table::{Refusal, Table};
use crate::{ensure, ensure_eq};

pub const ALL: &[Scenario] = &[
    Scenario::new("admission_of_deadline_tasks", of_deadline_tasks),
    Scenario::new("admission_of_a_table", of_a_table),
    Scenario::new("admission_of_a_swap", of_a_swap),
    Scenario::new("admission_unlimited", unlimited),
];

const SECOND: u64 = 1_000_000_000;
/// The value on the board for a task that was admitted. Other values are errnos.
const ADMITTED: u64 = 1 << 32;

/// Returns a table with this many of 20 units on every CPU.
fn table(units: u64) -> Table {
    let u = unit_ns();
    (0..sys::nr_cpus()).fold(Table::new(20 * u), |table, cpu| table.window(&format!("c{cpu}"), cpu, 0, units * u, 0))
}

/// Deadline tasks; the kernel may have refused some. For each CPU, one process asks for a percentage of it.
struct Promised {
    tasks: Vec<Child>,
    board: Board,
}

impl Promised {
    fn to_each(percent: u64) -> Check<Promised> {
        let board = Board::new(sys::nr_cpus() as usize);
        // Each task asks for itself. When another process changes the policy of a sleeping thread, Linux 6.12 fails to
        // release its bandwidth.
        let task = |index: usize| {
            process::fork(|| {
                let asked = sys::set_sched(0, SchedAttr::deadline(percent * 1_000_000, 100_000_000));
                board.set(index, asked.map_or_else(|errno| errno as u64, |()| ADMITTED));
                loop {
                    sys::sleep(1_000_000);
                }
            })
        };
        let tasks: Vec<Child> = (0..sys::nr_cpus() as usize).map(task).collect();
        let all = || (0..tasks.len()).all(|index| board.get(index) != 0);
        ensure!(sys::eventually(10 * SECOND, all), "deadline tasks do not answer");
        Ok(Promised { tasks, board })
    }

    fn all(&self) -> bool {
        (0..self.tasks.len()).all(|index| self.board.get(index) == ADMITTED)
    }

    /// Returns whether some tasks were refused, all of them with EBUSY.
    fn some_refused(&self) -> bool {
        let answers = || (0..self.tasks.len()).map(|index| self.board.get(index));
        answers().any(|one| one == libc::EBUSY as u64)
            && answers().all(|one| one == ADMITTED || one == libc::EBUSY as u64)
    }

    /// Ends the tasks. The kernel releases their bandwidth at the end of their period.
    fn dismiss(self) -> Check {
        for task in self.tasks {
            task.kill(SECOND)?;
        }
        sys::sleep(2 * 100_000_000);
        Ok(())
    }
}

/// Returns whether the kernel admits this percentage on all CPUs. The tasks end before the function returns.
fn are_promised(percent: u64) -> Check<bool> {
    let promised = Promised::to_each(percent)?;
    let all = promised.all();
    ensure!(all || promised.some_refused(), "deadline tasks are refused for another reason");
    promised.dismiss()?;
    Ok(all)
}

fn of_deadline_tasks() -> Check {
    let device = Device::open()?;
    ensure!(are_promised(50)?, "50 % without a table");
    table(12).install(&device)?;
    ensure!(!are_promised(50)?, "50 % beside windows of 60 %");
    ensure!(are_promised(20)?, "20 % beside windows of 60 %");
    device.remove().explain("remove")?;
    ensure!(are_promised(50)?, "50 % after the removal");
    Ok(())
}

fn of_a_table() -> Check {
    let device = Device::open()?;
    let promised = Promised::to_each(50)?;
    ensure!(promised.all(), "50 % without a table");
    // `other` is per mille of one CPU, summed over all CPUs.
    let other = 500 * sys::nr_cpus();
    let refusal = Refusal { errno: libc::EBUSY, error: error::BANDWIDTH, index: 0, other };
    ensure_eq!(table(12).try_install(&device), Err(refusal), "windows of 60 % beside 50 %");
    table(6).install(&device)?;
    device.remove().explain("remove")?;
    promised.dismiss()?;
    // A refused table takes no bandwidth.
    ensure!(are_promised(80)?, "80 % after the refusal");
    let _promised = Promised::to_each(20)?;
    table(12).install(&device)
}

fn of_a_swap() -> Check {
    let (u, device) = (unit_ns(), Device::open()?);
    table(4).install(&device)?;
    let promised = Promised::to_each(40)?;
    ensure!(promised.all(), "40 % beside windows of 20 %");
    device.start(sys::now_ns() + 10 * u).explain("start")?;
    let refused = table(14).swap(&device).map_err(|refusal| (refusal.errno, refusal.error));
    ensure_eq!(refused, Err((libc::EBUSY, error::BANDWIDTH)), "a swap to windows of 70 % beside 40 %");
    promised.dismiss()?;
    ensure!(are_promised(60)?, "60 % after the refusal");
    table(14).swap(&device).map_err(|refusal| format!("swap: {refusal:?}"))?;
    ensure!(!are_promised(60)?, "60 % beside windows of 70 %");
    table(4).swap(&device).map_err(|refusal| format!("swap back: {refusal:?}"))?;
    sys::sleep(100 * u);
    ensure!(are_promised(60)?, "60 % beside windows of 20 % again");
    Ok(())
}

/// Checks that windows need no admission against SCHED_DEADLINE where the administrator lifted the limit of real-time
/// tasks.
fn unlimited() -> Check {
    let device = Device::open()?;
    let limit = "/proc/sys/kernel/sched_rt_runtime_us";
    let before = std::fs::read_to_string(limit).map_err(|error| error.to_string())?;
    let set = |text: &str| std::fs::write(limit, text).map_err(|error| format!("{limit}: {error}"));
    set("-1")?;
    let promised = Promised::to_each(80)?;
    let beside = table(19).install(&device);
    let all = promised.all();
    promised.dismiss()?;
    set(before.trim())?;
    ensure!(all, "80 % without a limit");
    beside
}
