//! The time that the work of a job takes on this CPU. With it a job is an amount of work, not of wall time.

use macrotick_host::sys;
use macrotick_model::Duration;
use serde::{Deserialize, Serialize};

use crate::block::abi;

/// The speed of `macrotick_node_spin` (`c/node.c`): a number of rounds, and the time that they took.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Calibration {
    rounds: u64,
    ns: u64,
}

/// The rounds of one measurement: 16 instructions each, about a millisecond in the lab.
const ROUNDS: u64 = 1 << 16;
/// The number of measurements. The shortest counts, because disturbances only make the loop slower.
const MEASUREMENTS: u32 = 20;

impl Calibration {
    /// Measures this CPU. The runner does it once, before it starts any process.
    pub fn measure() -> Calibration {
        let shortest = (0..MEASUREMENTS).map(|_| measure_once()).min().unwrap_or(1);
        Calibration { rounds: ROUNDS, ns: shortest.max(1) }
    }

    /// Returns the number of rounds that take `time`.
    pub fn rounds(self, time: Duration) -> u64 {
        let ns = time.as_nanos().max(0) as u128;
        (ns * u128::from(self.rounds) / u128::from(self.ns)) as u64
    }
}

fn measure_once() -> u64 {
    let begin = sys::now();
    spin(ROUNDS);
    (sys::now() - begin).as_nanos() as u64
}

/// Does the work.
pub fn spin(rounds: u64) {
    // SAFETY: a loop without side effects.
    unsafe { abi::macrotick_node_spin(rounds) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_are_proportional() {
        let calibration = Calibration { rounds: 1000, ns: 2000 };
        assert_eq!(calibration.rounds(Duration::from_micros(100)), 50_000);
        assert_eq!(calibration.rounds(Duration::ZERO), 0);
    }

    #[test]
    fn a_measurement_counts_every_round() {
        let calibration = Calibration::measure();
        // No machine does a round in a hundredth of a nanosecond. This shows that the compiler did not remove the loop.
        assert!(calibration.ns > ROUNDS / 100, "{calibration:?}");
    }
}
