//! The counts of a soak. They are also the document on disk (`counts.json`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::histogram::Histogram;

/// The pauses that are kept with their instants.
const LATEST: usize = 16;

/// The counts of a soak since its first start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Counts {
    /// The version of this format.
    #[schemars(extend("const" = Counts::VERSION))]
    pub version: u32,
    /// The system's name.
    pub soak: String,
    /// The SHA-256 of the plan beside the counts.
    pub plan_sha256: String,
    /// The first start, on `CLOCK_REALTIME`.
    pub began_unix_ns: i64,
    /// The instant at which these counts were saved, on `CLOCK_REALTIME`. The counts after it are in memory only.
    pub saved_unix_ns: i64,
    /// The time with counted jobs, without the pauses.
    pub soaked_ns: u64,
    /// The reason of the latest clean end. `None`: the soak runs, or was cut off.
    pub ended: Option<String>,
    /// The times in which the soak did not run.
    pub pauses: Pauses,
    /// The memory of the supervisor.
    pub memory: Memory,
    /// The tasks, in the order of the system.
    pub tasks: Vec<TaskCounts>,
    /// The groups with a budget, in the order of the system.
    pub groups: Vec<GroupCounts>,
}

/// The times in which a soak did not run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pauses {
    /// The number of pauses.
    pub count: u64,
    /// The number of those that began without a clean end: a power cut, or a killed supervisor.
    pub cuts: u64,
    /// The sum of their lengths, as far as known.
    pub down_ns: u64,
    /// The number of pauses of unknown length: the clock was behind the last save.
    pub unknown: u64,
    /// The latest pauses, at most 16.
    pub latest: Vec<Pause>,
}

/// A time in which a soak did not run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pause {
    /// The last save before the pause, on `CLOCK_REALTIME`. A cut came after it.
    pub from_unix_ns: i64,
    /// The start after the pause, on `CLOCK_REALTIME`.
    pub until_unix_ns: i64,
    /// The reason of the end before. `None`: a cut.
    pub ended: Option<String>,
}

impl Pause {
    /// Returns its length. `None`: the clock went back.
    pub fn length_ns(&self) -> Option<u64> {
        u64::try_from(self.until_unix_ns - self.from_unix_ns).ok()
    }
}

/// The memory of the supervisor that is present, in KiB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// At the first reading since the latest start.
    pub first_kib: u64,
    /// At the latest reading.
    pub latest_kib: u64,
    /// The largest of all readings.
    pub largest_kib: u64,
}

/// The counts of a task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskCounts {
    /// Its name.
    pub name: String,
    /// The jobs of the plan in the soaked time, with a deadline in it.
    pub activations: u64,
    /// The jobs of these that completed, in time or later.
    pub completed: u64,
    /// The jobs that were not complete at their deadlines.
    pub missed: u64,
    /// The jobs of these that never started.
    pub never_ran: u64,
    /// The jobs that left no record, because the supervisor was kept from reading. The kernel's counters have them.
    pub unrecorded: u64,
    /// The records that do not fit the plan.
    pub strange: u64,
    /// The latest instant of a miss, on `CLOCK_REALTIME`.
    pub missed_unix_ns: Option<i64>,
    /// The jobs that the kernel released.
    pub kernel_released: u64,
    /// The misses that the kernel counted.
    pub kernel_missed: u64,
    /// The jobs that the kernel never released, because the job before had not started.
    pub kernel_lost: u64,
    /// The jobs for which the lead was too short.
    pub kernel_late: u64,
    /// The number of times that the task was restarted.
    pub restarted: u64,
    /// The lateness of the jobs.
    pub lateness: Histogram,
    /// The largest lateness.
    pub worst_lateness: Option<Worst>,
    /// The response times of the jobs: from the nominal instant to the end.
    pub response: Histogram,
    /// The longest response time.
    pub worst_response: Option<Worst>,
}

/// The largest value, and its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Worst {
    /// The value.
    pub ns: i64,
    /// The nominal instant of its job, on `CLOCK_REALTIME`.
    pub at_unix_ns: i64,
}

/// The counts of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GroupCounts {
    /// Its name.
    pub name: String,
    /// The number of times that a budget was exhausted.
    pub exhaustions: u64,
    /// Processor time that the kernel charged to the group.
    pub usage_ns: u64,
    /// The time without a budget while threads of the group were ready.
    pub throttled_ns: u64,
}

impl Counts {
    /// The version that this code reads and writes.
    pub const VERSION: u32 = 1;

    /// Returns the counts of a soak that starts for the first time.
    pub fn new(soak: String, plan_sha256: String, now_unix_ns: i64) -> Counts {
        Counts {
            version: Counts::VERSION,
            soak,
            plan_sha256,
            began_unix_ns: now_unix_ns,
            saved_unix_ns: now_unix_ns,
            soaked_ns: 0,
            ended: None,
            pauses: Pauses::default(),
            memory: Memory::default(),
            tasks: Vec::new(),
            groups: Vec::new(),
        }
    }

    /// Notes the pause before a start that is not the first.
    pub fn resume(&mut self, now_unix_ns: i64) {
        let ended = self.ended.take();
        let pause = Pause { from_unix_ns: self.saved_unix_ns, until_unix_ns: now_unix_ns, ended };
        let pauses = &mut self.pauses;
        pauses.count += 1;
        pauses.cuts += u64::from(pause.ended.is_none());
        match pause.length_ns() {
            Some(ns) => pauses.down_ns += ns,
            None => pauses.unknown += 1,
        }
        if pauses.latest.len() == LATEST {
            pauses.latest.remove(0);
        }
        pauses.latest.push(pause);
        // The memory of another process.
        self.memory.first_kib = 0;
    }

    /// Notes the present memory of the supervisor.
    pub fn note_memory(&mut self, kib: u64) {
        let memory = &mut self.memory;
        if memory.first_kib == 0 {
            memory.first_kib = kib;
        }
        memory.latest_kib = kib;
        memory.largest_kib = memory.largest_kib.max(kib);
    }

    /// Whether no job missed its deadline.
    pub fn holds(&self) -> bool {
        self.tasks.iter().all(|task| task.missed == 0 && task.kernel_missed == 0 && task.kernel_lost == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_are_summed_and_the_latest_kept() {
        let mut counts = Counts::new("s".into(), String::new(), 1000);
        counts.resume(1500);
        assert_eq!((counts.pauses.count, counts.pauses.cuts, counts.pauses.down_ns), (1, 1, 500));
        counts.ended = Some("SIGINT".into());
        counts.saved_unix_ns = 2000;
        counts.resume(2100);
        assert_eq!((counts.pauses.count, counts.pauses.cuts, counts.pauses.down_ns), (2, 1, 600));
        assert_eq!(counts.pauses.latest[1].ended.as_deref(), Some("SIGINT"));
        // The clock of a machine without a battery restarts.
        counts.resume(5);
        assert_eq!((counts.pauses.unknown, counts.pauses.down_ns), (1, 600));
        (0..100).for_each(|_| counts.resume(2100));
        assert_eq!((counts.pauses.count, counts.pauses.latest.len()), (103, LATEST));
    }

    #[test]
    fn the_schema_is_that_of_the_types() {
        use macrotick_fixtures::{hold_schema, Side};

        hold_schema::<Counts>("soak", "The counts of a soak of Macrotick", Side::Written);
    }

    #[test]
    fn each_kind_of_miss_breaks_the_verdict() {
        let task = |change: fn(&mut TaskCounts)| {
            let mut task = TaskCounts { activations: 9, completed: 9, ..TaskCounts::default() };
            change(&mut task);
            Counts { tasks: vec![task], ..Counts::new("s".into(), String::new(), 0) }.holds()
        };
        assert!(task(|_| ()) && task(|task| task.unrecorded = 1));
        assert!(!task(|task| task.missed = 1) && !task(|task| task.kernel_missed = 1));
        assert!(!task(|task| task.kernel_lost = 1));
    }
}
