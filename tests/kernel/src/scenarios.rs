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
mod refusals;
mod rttests;
mod scx;
mod shield;
mod storm;
mod suspend;
mod swap;

pub use fuzz::CALLS_OF;

use crate::check::Check;

/// Something that must hold.
#[derive(Clone, Copy)]
pub struct Scenario {
    /// What a result line begins with. `full_` begins those that take long.
    pub name: &'static str,
    /// How many CPUs it needs.
    pub cpus: u32,
    /// Whether it takes a CPU that runs when it should. With several CPUs the lab executes one at a time, for up to 100 ms.
    pub punctual: bool,
    /// Whether it takes what the fair class gives ordinary threads: turns of some milliseconds, by nice values, and a part of the
    /// time beside `SCHED_FIFO`. A scheduler of sched_ext need not, and that of the tests does not.
    pub fair: bool,
    /// When it counts as hanging, in milliseconds of virtual time.
    pub limit_ms: u64,
    /// The scenario.
    pub run: fn() -> Check,
}

impl Scenario {
    /// A scenario for any number of CPUs.
    pub const fn new(name: &'static str, run: fn() -> Check) -> Scenario {
        Scenario { name, cpus: 1, punctual: false, fair: false, limit_ms: 20_000, run }
    }

    /// It needs so many CPUs.
    pub const fn on(self, cpus: u32) -> Scenario {
        Scenario { cpus, ..self }
    }

    /// It takes a CPU that runs when it should: it is left out where there are several.
    pub const fn punctual(self) -> Scenario {
        Scenario { punctual: true, ..self }
    }

    /// It takes the fair class: it is left out where a scheduler of sched_ext serves ordinary threads.
    pub const fn fair(self) -> Scenario {
        Scenario { fair: true, ..self }
    }

    /// It takes up to so many milliseconds of virtual time.
    pub const fn within(self, limit_ms: u64) -> Scenario {
        Scenario { limit_ms, ..self }
    }

    /// Whether it is only for the long suite.
    pub fn is_long(&self) -> bool {
        self.name.starts_with("full_")
    }

    /// Whether it suspends the machine, which takes a kernel that can.
    pub fn suspends(&self) -> bool {
        self.name.starts_with("full_suspend_")
    }

    /// Whether it loads schedulers of sched_ext, which takes a kernel that has it.
    pub fn takes_scx(&self) -> bool {
        self.name.strip_prefix("full_").unwrap_or(self.name).starts_with("scx_")
    }
}

/// All of them, in the order in which they run.
pub fn all() -> Vec<Scenario> {
    let parts = [
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
        suspend::ALL,
        fuzz::ALL,
        shield::ALL,
        rttests::ALL,
        scx::ALL,
    ];
    parts.concat()
}

/// Names so many microseconds that pass before the first scenario: ticks and turns of virtual CPUs lie otherwise then.
pub const DELAY_US: &str = "MACROTICK_DELAY_US";
/// How many groups come and go in `full_group_cycles`.
pub const CYCLES: &str = "MACROTICK_CYCLES";

/// `loaded`: each scenario runs with a scheduler of sched_ext; `changes`: while schedulers come and go.
pub const SCX: &str = "MACROTICK_SCX";

/// The grid of the scenarios' tables, in nanoseconds: 100 us, or what `MACROTICK_UNIT_US` says for slow kernels.
pub fn unit_ns() -> u64 {
    let text = std::env::var("MACROTICK_UNIT_US").ok();
    text.and_then(|text| text.parse::<u64>().ok()).unwrap_or(100) * 1000
}

/// Whether the kernel is one whose paths are several times as long as usual.
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
