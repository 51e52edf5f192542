//! Work of a known length.

use super::clock::now_ns;

/// Rounds of a trial that measures the length of a round.
const TRIAL: u64 = 500;
const TRIALS: usize = 50;

/// Executes `nop` instructions. The emulator executes them much faster than others, and counts them alike.
fn round() {
    // SAFETY: has no effect.
    unsafe { std::arch::asm!(".rept 240", "nop", ".endr", options(nomem, nostack, preserves_flags)) };
}

/// Works for a number of rounds. It is not inlined: all callers execute the same code.
#[inline(never)]
pub fn work(rounds: u64) {
    (0..rounds).for_each(|_| round());
}

/// Returns the picoseconds of a round without interference: the shortest of some trials.
pub fn round_ps() -> u64 {
    let trial = |_| {
        let begin = now_ns();
        work(TRIAL);
        (now_ns() - begin) * 1000 / TRIAL
    };
    (0..TRIALS).map(trial).min().unwrap_or(1).max(1)
}
