//! All scenarios.

mod admission;
mod bounded;
mod budgets;
mod clock;
mod containers;
mod control;
mod death;
mod domains;
mod forking;
mod fuzz;
mod gates;
mod inherit;
mod jobs;
mod kernel_threads;
mod large;
mod late;
mod lead;
mod members;
mod migrate;
mod misses;
mod partitions;
mod policy;
mod pools;
mod recorder;
mod refusals;
mod rttests;
mod scx;
mod shield;
mod storm;
mod suspend;
mod swap;

pub use fuzz::CALLS_OF;

use crate::check::Check;

/// A scenario: a property that must hold.
#[derive(Clone, Copy)]
pub struct Scenario {
    /// The name at the beginning of the result line. The names of long scenarios begin with `full_`.
    pub name: &'static str,
    /// The number of CPUs that it needs.
    pub cpus: u32,
    /// Whether it needs CPUs that execute without delay. With several CPUs the lab executes one at a time, for up to
    /// 100 ms.
    pub punctual: bool,
    /// Whether it needs the fair class for ordinary threads: turns of some milliseconds, nice values, and a share
    /// beside `SCHED_FIFO`. A scheduler of sched_ext need not provide this, and that of the tests does not.
    pub fair: bool,
    /// The time after which it counts as hung, in milliseconds of virtual time.
    pub limit_ms: u64,
    /// The function of the scenario.
    pub run: fn() -> Check,
}

impl Scenario {
    /// Describes a scenario for any number of CPUs.
    pub const fn new(name: &'static str, run: fn() -> Check) -> Scenario {
        Scenario { name, cpus: 1, punctual: false, fair: false, limit_ms: 20_000, run }
    }

    /// Makes the scenario need this many CPUs.
    pub const fn on(self, cpus: u32) -> Scenario {
        Scenario { cpus, ..self }
    }

    /// Makes the scenario need CPUs that execute without delay: with several CPUs it does not run.
    pub const fn punctual(self) -> Scenario {
        Scenario { punctual: true, ..self }
    }

    /// Makes the scenario need the fair class: it does not run where a scheduler of sched_ext serves ordinary threads.
    pub const fn fair(self) -> Scenario {
        Scenario { fair: true, ..self }
    }

    /// Lets the scenario take up to this many milliseconds of virtual time.
    pub const fn within(self, limit_ms: u64) -> Scenario {
        Scenario { limit_ms, ..self }
    }

    /// Whether the scenario runs only in the long suite.
    pub fn is_long(&self) -> bool {
        self.name.starts_with("full_")
    }

    /// Whether the scenario suspends the machine, which needs kernel support.
    pub fn suspends(&self) -> bool {
        self.name.starts_with("full_suspend_")
    }

    /// Whether the scenario loads schedulers of sched_ext, which needs kernel support.
    pub fn takes_scx(&self) -> bool {
        self.name.strip_prefix("full_").unwrap_or(self.name).starts_with("scx_")
    }
}

/// Returns all scenarios, in the order in which they run.
pub fn all() -> Vec<Scenario> {
    let parts = [
        recorder::ALL,
        refusals::ALL,
        jobs::ALL,
        late::ALL,
        large::ALL,
        lead::ALL,
        misses::ALL,
        swap::ALL,
        clock::ALL,
        members::ALL,
        control::ALL,
        policy::ALL,
        admission::ALL,
        domains::ALL,
        migrate::ALL,
        containers::ALL,
        pools::ALL,
        budgets::ALL,
        bounded::ALL,
        kernel_threads::ALL,
        partitions::ALL,
        death::ALL,
        forking::ALL,
        inherit::ALL,
        storm::ALL,
        gates::ALL,
        suspend::ALL,
        fuzz::ALL,
        shield::ALL,
        rttests::ALL,
        scx::ALL,
    ];
    parts.concat()
}

/// The variable for a delay before the first scenario, in microseconds. It moves the ticks and the turns of virtual
/// CPUs.
pub const DELAY_US: &str = "MACROTICK_DELAY_US";
/// The variable for the number of groups that `full_group_cycles` makes and removes.
pub const CYCLES: &str = "MACROTICK_CYCLES";

/// The variable for a scheduler of sched_ext. `loaded`: each scenario runs with one; `changes`: schedulers come and go.
pub const SCX: &str = "MACROTICK_SCX";

/// Returns the grid of the scenarios' tables, in nanoseconds: 100 us by default. `MACROTICK_UNIT_US` sets it for slow
/// kernels.
pub fn unit_ns() -> u64 {
    let text = std::env::var("MACROTICK_UNIT_US").ok();
    text.and_then(|text| text.parse::<u64>().ok()).unwrap_or(100) * 1000
}

/// Whether the paths of the kernel are several times as long as usual.
pub fn is_slow() -> bool {
    unit_ns() > 100_000
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = super::all().iter().map(|scenario| scenario.name).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
