//! What the fuzzers called, and how often it was taken.

use crate::board::Board;

/// Kinds of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Install, swap, start, stop, remove.
    Table,
    /// Bind, unbind, wait.
    Member,
    /// Get, statistics, eventfds.
    Read,
    /// Any of the device's calls with an argument that makes little sense.
    Garbage,
    /// Files of control groups.
    Group,
    /// `sched_setattr(2)`, `sched_yield(2)`.
    Policy,
    /// `sched_setaffinity(2)`.
    Affinity,
    /// `fork(2)`, `clone3(2)` into a group, threads.
    Birth,
    /// Fatal ones, ones with a handler, stop and go.
    Signal,
    /// CPUs come and go.
    Hotplug,
    /// A lock with priority inheritance.
    Lock,
    /// The clock is set.
    Clock,
    /// Files of control groups' budgets.
    Budget,
    /// `sched_setattr(2)` with SCHED_DS.
    Served,
}

const ALL: [(Kind, &str); 14] = [
    (Kind::Table, "table"),
    (Kind::Member, "member"),
    (Kind::Read, "read"),
    (Kind::Garbage, "garbage"),
    (Kind::Group, "group"),
    (Kind::Policy, "policy"),
    (Kind::Affinity, "affinity"),
    (Kind::Birth, "birth"),
    (Kind::Signal, "signal"),
    (Kind::Hotplug, "hotplug"),
    (Kind::Lock, "lock"),
    (Kind::Clock, "clock"),
    (Kind::Budget, "budget"),
    (Kind::Served, "served"),
];

impl Kind {
    /// Whether it is the class's own interface: a call of the device, or a file of a control group.
    fn is_interface(self) -> bool {
        matches!(self, Kind::Table | Kind::Member | Kind::Read | Kind::Garbage | Kind::Group | Kind::Budget)
    }
}

/// Counters that all processes of a fuzzer share.
#[derive(Clone, Copy)]
pub struct Tally(Board);

impl Tally {
    /// Nothing was called.
    pub fn new() -> Tally {
        Tally(Board::new(2 * ALL.len()))
    }

    /// Makes a call; what does not come back was called, too.
    pub fn count<T, E>(&self, kind: Kind, call: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        self.0.add(2 * kind as usize, 1);
        let result = call();
        self.0.add(2 * kind as usize + 1, u64::from(result.is_ok()));
        result
    }

    /// Calls of the device and files of control groups.
    pub fn interface(&self) -> u64 {
        ALL.iter().filter(|(kind, _)| kind.is_interface()).map(|(kind, _)| self.0.get(2 * *kind as usize)).sum()
    }

    /// Calls of all kinds.
    pub fn total(&self) -> u64 {
        ALL.iter().map(|(kind, _)| self.0.get(2 * *kind as usize)).sum()
    }

    /// Each kind with its calls, and how many were taken.
    pub fn describe(&self) -> String {
        let kinds = ALL.iter().map(|(kind, name)| {
            let word = 2 * *kind as usize;
            format!("{name} {} ({} taken)", self.0.get(word), self.0.get(word + 1))
        });
        kinds.collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_stand_in_order() {
        assert!(ALL.iter().enumerate().all(|(place, (kind, _))| *kind as usize == place));
    }

    #[test]
    fn calls_are_counted_by_kind() {
        let tally = Tally::new();
        let _ = tally.count(Kind::Table, || Err::<(), i32>(22));
        let _ = tally.count(Kind::Table, || Ok::<(), i32>(()));
        let _ = tally.count(Kind::Signal, || Ok::<(), i32>(()));
        assert_eq!((tally.interface(), tally.total()), (2, 3));
        assert!(tally.describe().starts_with("table 2 (1 taken), member 0 (0 taken), "), "{}", tally.describe());
    }
}
