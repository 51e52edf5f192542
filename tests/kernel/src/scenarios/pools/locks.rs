//! Locks of the threads of pools: the priority that waiters lend, and the time of threads that hand locks on.

use macrotick_uapi as abi;

use super::{hog_above_all, inside, Stage, SOON};
use crate::board::Board;
use crate::check::{Check, Explain};
use crate::ensure;
use crate::process;
use crate::scenarios::is_slow;
use crate::sys::{self, PiLock, SchedAttr};

fn lock_of(board: Board, word: usize) -> PiLock {
    PiLock(board.futex(word))
}

/// Hands two locks on to their waiters, in turn, and measures how much the pool runs outside its windows.
///
/// It looks for waiters often only while it is observed. Without PREEMPT_RT no other thread would make progress then:
/// its timer's interrupts take all the time that it leaves.
struct Hander {
    stage: &'static Stage,
    board: Board,
    last: Option<(u64, u64)>,
}

impl Hander {
    const HAS_FIRST: usize = 2;
    const EPOCH: usize = 3;
    const END: usize = 4;
    /// The pool's CPU time in these gaps, and their number.
    const OUTSIDE: usize = 5;
    const GAPS: usize = 6;

    fn hand_on(mut self) -> i32 {
        let [first, second] = [0, 1].map(|word| lock_of(self.board, word));
        let mut locked = first.lock();
        self.board.set(Self::HAS_FIRST, 1);
        while locked.is_ok() {
            self.await_waiter(&first);
            locked = second.lock().and(first.unlock());
            self.await_waiter(&second);
            locked = locked.and(first.lock()).and(second.unlock());
        }
        1
    }

    fn await_waiter(&mut self, lock: &PiLock) {
        while !lock.is_contended() {
            if sys::now_ns() < self.board.get(Self::END) {
                self.look();
                sys::sleep(5000);
            } else {
                sys::sleep(500_000);
            }
        }
    }

    /// Adds to the counters. If the last look was in the same gap, the run time since then lies in this gap. If it was
    /// in the gap before, the pool had a window in between.
    fn look(&mut self) {
        let (u, now) = (self.stage.u, sys::now_ns());
        let since_window = now - self.board.get(Self::EPOCH) + 12 * u;
        let (gap, phase) = (since_window / (20 * u), since_window % (20 * u));
        let Ok(stats) = self.stage.stats() else { return };
        if phase < u / 5 || phase > 15 * u {
            return;
        }
        match self.last {
            Some((last, runtime)) if last == gap => self.board.add(Self::OUTSIDE, stats.runtime_ns - runtime),
            Some((last, runtime)) if last + 1 == gap => {
                self.board.add(Self::OUTSIDE, (stats.runtime_ns - runtime).saturating_sub(4 * u));
                self.board.add(Self::GAPS, 1);
            }
            _ => self.board.add(Self::GAPS, 1),
        }
        self.last = Some((gap, stats.runtime_ns));
    }
}

/// Checks that a thread that is handed locks, one soon after the other, gets no more than its windows.
pub fn handed_on() -> Check {
    let stage: &Stage = Box::leak(Box::new(Stage::new(abi::RR, 0)?));
    let (u, board) = (stage.u, Board::new(7));
    // This process always has one of the locks, and the CPU whenever the pool does not.
    process::fork(|| {
        let _ = sys::set_sched(0, SchedAttr::fifo(50));
        Hander { stage, board, last: None }.hand_on()
    });
    ensure!(sys::eventually(SOON, || board.get(Hander::HAS_FIRST) == 1), "nobody has the first lock");
    inside(&stage.group, || {
        let takes = |word| lock_of(board, word).lock().and(lock_of(board, word).unlock());
        while takes(0).is_ok() {
            // This is less than the thread may run each time.
            sys::spin(8_000);
            if takes(1).is_err() {
                return 1;
            }
            sys::spin(8_000);
        }
        1
    })?;
    let epoch = stage.start()?;
    board.set(Hander::EPOCH, epoch);
    sys::sleep(20 * u);
    let (before, began) = (stage.stats()?.runtime_ns, sys::now_ns());
    let end = began + 100 * 20 * u;
    board.set(Hander::END, end);
    sys::sleep_until(end);
    let share = (stage.stats()?.runtime_ns - before) as f64 / (sys::now_ns() - began) as f64;
    let (outside, gaps) = (board.get(Hander::OUTSIDE), board.get(Hander::GAPS));
    // Its windows have 0.2, part of which it spends waiting for the locks. On a slow kernel the waits are longer.
    ensure!(share < 0.2 && (is_slow() || share > 0.1), "it has a share of {share}");
    ensure!(
        gaps >= 90 && outside < gaps * u * 3 / 5,
        "{outside} ns outside its windows, in {gaps} gaps, share {share}"
    );
    stage.ensure_undisturbed(epoch)
}

/// Checks a waiter for the lock of a pool thread that itself waits for another pool thread's lock. Both get the
/// waiter's priority.
pub fn hands_on_what_it_is_lent() -> Check {
    let stage = Stage::new(abi::RR, 0)?;
    let (u, board) = (stage.u, Board::new(4));
    let (first, second, got) = (0, 1, 2);
    let at = sys::now_ns() / (20 * u) * 20 * u + 400 * 20 * u;
    inside(&stage.group, || {
        let taken = lock_of(board, first).lock();
        board.set(3, 1);
        while sys::now_ns() < at + 5 * u {}
        sys::spin(6 * u);
        i32::from(taken.is_err() || lock_of(board, first).unlock().is_err())
    })?;
    ensure!(sys::eventually(SOON, || board.get(3) == 1), "nobody has the first lock");
    inside(&stage.group, || {
        let taken = lock_of(board, second).lock().and(lock_of(board, first).lock());
        i32::from(taken.is_err() || lock_of(board, first).unlock().is_err() || lock_of(board, second).unlock().is_err())
    })?;
    ensure!(sys::eventually(SOON, || lock_of(board, first).is_contended()), "nobody waits for the first lock");
    let waiter = process::fork(|| {
        sys::prefault();
        // An earlier sleep would use a timer that depends on a thread below the hog.
        while sys::sched(0).map(|attr| attr.policy) != Ok(libc::SCHED_FIFO as u32) {}
        sys::sleep_until(at + 6 * u);
        let taken = lock_of(board, second).lock();
        board.set(got, sys::now_ns());
        i32::from(taken.is_err() || lock_of(board, second).unlock().is_err())
    });
    sys::set_sched(waiter.pid, SchedAttr::fifo(60)).explain("policy")?;
    hog_above_all()?;
    let epoch = stage.device.start(at).explain("start")?;
    ensure!(epoch == at, "it starts {} ns late", epoch - at);
    sys::sleep_until(at + 20 * u);
    // The lock comes after three units of work in the window and three outside, around a job of the witness.
    let got = board.get(got).wrapping_sub(at);
    ensure!((11 * u..17 * u).contains(&got), "the lock came after {got} ns");
    Ok(())
}

/// Checks that another policy of a waiter changes the priority of the owner.
pub fn changes_while_it_waits() -> Check {
    let stage = Stage::new(abi::RR, 0)?;
    let board = Board::new(2);
    let owner = process::fork(|| {
        let taken = lock_of(board, 0).lock();
        board.set(1, 1);
        sys::sleep_until(u64::MAX / 2);
        i32::from(taken.is_err())
    });
    ensure!(sys::eventually(SOON, || board.get(1) == 1), "nobody has the lock");
    let waiter = inside(&stage.group, || i32::from(lock_of(board, 0).lock().is_err()))?;
    let waits = || lock_of(board, 0).is_contended() && process::state(waiter.pid) == Some('S');
    ensure!(sys::eventually(SOON, waits), "nobody waits for the lock");
    let epoch = stage.start()?;
    for (attr, priority) in [(SchedAttr::fifo(30), -31), (SchedAttr::other(), 20), (SchedAttr::fifo(40), -41)] {
        sys::set_sched(waiter.pid, attr).explain("policy")?;
        let is = process::priority(owner.pid);
        ensure!(is == Some(priority), "its priority is {is:?}, not {priority}");
    }
    waiter.kill(SOON)?;
    owner.kill(SOON)?;
    stage.ensure_undisturbed(epoch)
}
