//! Work of a known length.

use super::clock::now_ns;

/// Rounds by which the length of one is found.
const TRIAL: u64 = 500;
const TRIALS: usize = 50;

/// Instructions that do nothing are emulated much faster than others, and count as much.
#[inline]
pub fn round() {
    // SAFETY: has no effect.
    unsafe { std::arch::asm!(".rept 240", "nop", ".endr", options(nomem, nostack, preserves_flags)) };
}

/// Picoseconds that a round takes when nothing interferes: the shortest of some trials.
pub fn round_ps() -> u64 {
    let trial = |_| {
        let begin = now_ns();
        (0..TRIAL).for_each(|_| round());
        (now_ns() - begin) * 1000 / TRIAL
    };
    (0..TRIALS).map(trial).min().unwrap_or(1).max(1)
}
