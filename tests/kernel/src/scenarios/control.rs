//! A thread that starts or stops the table gets the policy of the class meanwhile, in which it would be frozen.

use macrotick_uapi::{Device, SCHED_TT};

use super::{is_slow, unit_ns, Scenario};
use crate::board::Board;
use crate::check::{Check, Explain};
use crate::process::{self, member, Child, Ended};
use crate::sys::{self, SchedAttr};
use crate::table::Table;
use crate::{ensure, ensure_eq};

pub const ALL: &[Scenario] = &[
    Scenario::new("control_enters_while_it_starts", || enters(Call::Start)).punctual().within(60_000),
    Scenario::new("control_enters_while_it_stops", || enters(Call::Stop)).punctual().within(60_000),
    Scenario::new("control_enters_while_it_waits", || enters(Call::StopWhileOneStarts)).punctual().within(60_000),
];

const SECOND: u64 = 1_000_000_000;
/// These threads make a start or a stop take long.
const OTHERS: usize = 40;
const ROUNDS: u64 = 60;
/// The same for slow kernels.
const OTHERS_IF_SLOW: usize = 8;
const ROUNDS_IF_SLOW: u64 = 15;

/// The words of the board.
const CALLS: usize = 0;
const DONE: usize = 1;
const AT: usize = 2;

/// The cycle, in units.
const CYCLE: u64 = 100;
/// The caller's window in the cycle, in units.
const WINDOW: u64 = 3;

/// Forks a thread that calls the device this long before the instant on the board, with a priority of SCHED_FIFO.
fn caller(priority: u32, board: Board, before: u64, call: impl FnOnce(&Device) -> i32) -> Check<Child> {
    let ready = Board::new(1);
    let child = process::fork(|| {
        let Ok(device) = Device::open() else { return 100 };
        sys::prefault();
        if device.bind(-1, "t").is_err() || sys::under_fifo_on(0, priority).is_err() {
            return 101;
        }
        ready.set(0, 1);
        while board.get(AT) == 0 {
            sys::sleep(unit_ns());
        }
        sys::sleep_until(board.get(AT) - before);
        call(&device)
    });
    ensure!(sys::eventually(SECOND, || ready.get(0) == 1), "it is not ready: {}", child.describe());
    Ok(child)
}

/// The call that a thread makes when it gets the policy.
#[derive(Clone, Copy)]
enum Call {
    Start,
    Stop,
    /// Another thread starts the table, and this call must first wait for it.
    StopWhileOneStarts,
}

impl Call {
    fn make(self, device: &Device) -> i32 {
        let result = match self {
            Call::Start => device.start(0).map(drop),
            Call::Stop | Call::StopWhileOneStarts => device.stop(),
        };
        result.err().unwrap_or(0)
    }
}

/// Gives a calling thread the policy of the class this long after the beginning of its call. The call must succeed.
/// Returns whether the thread was still in its call.
fn round(device: &Device, call: Call, before: u64, after: u64) -> Check<bool> {
    let (u, board) = (unit_ns(), Board::new(3));
    let other = match call {
        Call::Start => None,
        Call::Stop => device.start(0).explain("start").map(|_| None)?,
        Call::StopWhileOneStarts => Some(caller(50, board, before, |device| Call::Start.make(device))?),
    };
    let calling = caller(60, board, 0, |device| {
        board.set(CALLS, 1);
        board.set(DONE, 1 + call.make(device) as u64);
        sys::hog()
    })?;
    let at = sys::now_ns() + 10 * u;
    board.set(AT, at);
    sys::sleep_until(at);
    let calls = (0..1000).any(|_| {
        sys::sleep(u / 10);
        board.get(CALLS) == 1
    });
    ensure!(calls, "it does not call: {}", calling.describe());
    sys::sleep(after);
    let inside = board.get(DONE) == 0;
    sys::set_sched(calling.pid, SchedAttr::policy(SCHED_TT)).explain("SCHED_TT")?;
    let is_done = || board.get(DONE) != 0;
    ensure!(sys::eventually(SECOND, is_done), "frozen in its call, {after} ns after it: {}", calling.describe());
    // The thread may have got the policy just before the call.
    let errno = board.get(DONE) as i32 - 1;
    ensure!(errno == 0 || errno == libc::EDEADLK, "the call: errno {errno}");
    if let Some(other) = other {
        ensure_eq!(other.wait(SECOND)?, Ended::Exited(0), "the start");
    }
    goes_on_as_member(device)?;
    calling.kill(SECOND)?;
    Ok(inside && errno == 0)
}

/// Checks that the policy takes effect after the call. Then stops the table again.
fn goes_on_as_member(device: &Device) -> Check {
    let u = unit_ns();
    match device.start(0) {
        Ok(_) | Err(libc::EBUSY) => {}
        Err(errno) => return Err(format!("start: errno {errno}")),
    }
    let before = device.stats(0).explain("stats")?.runtime_ns;
    // The start may be a cycle away.
    sys::sleep(3 * CYCLE * u);
    let served = device.stats(0).explain("stats")?.runtime_ns - before;
    ensure!(served >= 2 * WINDOW * u * 9 / 10, "{served} ns in two windows of {WINDOW} units");
    device.stop().explain("stop")
}

fn enters(call: Call) -> Check {
    let (u, device) = (unit_ns(), Device::open()?);
    let table = Table::new(CYCLE * u).window("t", 0, 90 * u, WINDOW * u, 0);
    table.window("others", 0, 95 * u, u, 0).pool(0, 0).install(&device)?;
    let (others, rounds) = if is_slow() { (OTHERS_IF_SLOW, ROUNDS_IF_SLOW) } else { (OTHERS, ROUNDS) };
    for _ in 0..others {
        member("others", |_| loop {
            sys::sleep(SECOND);
        })?;
    }
    let mut inside = 0;
    for number in 0..rounds {
        inside += u64::from(round(&device, call, (number % 5) * u / 20, number * u / 50)?);
    }
    ensure!(inside > 0, "the policy never came in time");
    Ok(())
}
