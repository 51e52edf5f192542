//! Counters of the fuzzers' calls, by kind and success.

use crate::board::Board;

/// Kinds of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Install, swap, start, stop, remove.
    Table,
    /// Bind, unbind, wait.
    Member,
    /// Get, statistics, event descriptors.
    Read,
    /// Any call of the device with an argument that makes little sense.
    Garbage,
    /// Files of control groups.
    Group,
    /// `sched_setattr(2)`, `sched_yield(2)`.
    Policy,
    /// `sched_setaffinity(2)`.
    Affinity,
    /// `fork(2)`, `clone3(2)` into a group, threads.
    Birth,
    /// Fatal signals, signals with a handler, stop and continue.
    Signal,
    /// CPUs are taken offline and brought online.
    Hotplug,
    /// Calls for a lock with priority inheritance.
    Lock,
    /// Steps of the clock.
    Clock,
    /// Files of control groups' budgets.
    Budget,
    /// `sched_setattr(2)` with SCHED_DS.
    Served,
    /// Requests about gates and their interface, frames, and their thread.
    Gates,
}

const ALL: [(Kind, &str); 15] = [
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
    (Kind::Gates, "gates"),
];

impl Kind {
    /// Whether the kind belongs to the class's own interface: a call of the device, or a file of a control group.
    fn is_interface(self) -> bool {
        matches!(self, Kind::Table | Kind::Member | Kind::Read | Kind::Garbage | Kind::Group | Kind::Budget)
    }
}

/// Counters that all processes of a fuzzer share.
#[derive(Clone, Copy)]
pub struct Tally(Board);

impl Tally {
    /// Makes counters for no calls.
    pub fn new() -> Tally {
        Tally(Board::new(2 * ALL.len()))
    }

    /// Makes a call. The counter includes calls that do not return.
    pub fn count<T, E>(&self, kind: Kind, call: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        self.0.add(2 * kind as usize, 1);
        let result = call();
        self.0.add(2 * kind as usize + 1, u64::from(result.is_ok()));
        result
    }

    /// Returns the number of calls of the device and of control groups' files.
    pub fn interface(&self) -> u64 {
        ALL.iter().filter(|(kind, _)| kind.is_interface()).map(|(kind, _)| self.0.get(2 * *kind as usize)).sum()
    }

    /// Returns the number of calls of all kinds.
    pub fn total(&self) -> u64 {
        ALL.iter().map(|(kind, _)| self.0.get(2 * *kind as usize)).sum()
    }

    /// Lists each kind with its calls and its successful calls.
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
