//! Work of a known length.

use super::clock::now_ns;

/// Rounds by which the length of one is found.
const TRIAL: u64 = 500;
const TRIALS: usize = 50;

/// Instructions that do nothing are emulated much faster than others, and count as much.
fn round() {
    // SAFETY: has no effect.
    unsafe { std::arch::asm!(".rept 240", "nop", ".endr", options(nomem, nostack, preserves_flags)) };
}

/// So many rounds. Not inlined, so that it is the same code wherever it is called.
#[inline(never)]
pub fn work(rounds: u64) {
    (0..rounds).for_each(|_| round());
}

/// Picoseconds that a round takes when nothing interferes: the shortest of some trials.
pub fn round_ps() -> u64 {
    let trial = |_| {
        let begin = now_ns();
        work(TRIAL);
        (now_ns() - begin) * 1000 / TRIAL
    };
    (0..TRIALS).map(trial).min().unwrap_or(1).max(1)
}
