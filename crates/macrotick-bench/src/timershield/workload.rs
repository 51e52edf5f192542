//! The tasks of each experiment in the guest. They are the same on every kernel.

use macrotick_model::SplitMix64;

use crate::kit::scale::Scale;

/// The experiments. Host and guest use the same names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// A high task beside lower tasks with random phases.
    Unsynchronised,
    /// A high task beside lower tasks with all first releases at one instant.
    Synchronised,
    /// A high task beside an unprivileged process with timers.
    Hostile,
    /// A low task below a high one and others in between.
    Lowest,
    /// A task that works for long times beside the unprivileged process.
    Throughput,
}

/// A periodic task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// The priority of SCHED_FIFO.
    pub priority: u8,
    /// The time between two releases.
    pub period_ns: u64,
    /// The time from time zero to the first release, less than a period.
    pub phase_ns: u64,
    /// Rounds of a job ([`work`](crate::kit::round::work)).
    pub rounds: u64,
}

const US: u64 = 1_000;
const MS: u64 = 1_000_000;
/// The periods of the automotive benchmark that the paper draws from.
const PERIODS_MS: [u64; 9] = [1, 2, 5, 10, 20, 50, 100, 200, 1000];
/// Harmonic periods: each divides the next one.
const HARMONIC_MS: [u64; 7] = [1, 2, 10, 20, 100, 200, 1000];
/// A job takes about 170 us.
const HIGH: Task = Task { priority: 99, period_ns: MS, phase_ns: 0, rounds: 700 };
/// A job is a small loop. Its releases move relative to those of the high task.
const LOW: Task = Task { priority: 70, period_ns: 900 * US, phase_ns: 137 * US, rounds: 100 };
/// Works for half of its period, without a fixed number of rounds. In the other half, the unprivileged process reads
/// and thereby restarts its timers. An expired timer does nothing until it is read.
const BUSY: Task = Task { priority: 99, period_ns: 2 * MS, phase_ns: 0, rounds: 0 };
/// The seed of the random choices.
const SEED: u64 = 1;

impl Workload {
    /// All workloads.
    pub const ALL: [Workload; 5] =
        [Workload::Unsynchronised, Workload::Synchronised, Workload::Hostile, Workload::Lowest, Workload::Throughput];

    /// Returns the name on the guest's command line, in figures and in files.
    pub fn name(self) -> &'static str {
        match self {
            Workload::Unsynchronised => "unsynchronised",
            Workload::Synchronised => "synchronised",
            Workload::Hostile => "hostile",
            Workload::Lowest => "lowest",
            Workload::Throughput => "throughput",
        }
    }

    /// Parses a name of [`Workload::name`].
    pub fn from_name(name: &str) -> Option<Workload> {
        Workload::ALL.into_iter().find(|workload| workload.name() == name)
    }

    /// Returns the unit of its size, in singular and plural.
    fn sized(self) -> [&'static str; 2] {
        match self {
            Workload::Unsynchronised | Workload::Synchronised => ["lower task", "lower tasks"],
            Workload::Hostile | Workload::Throughput => ["timer", "timers"],
            Workload::Lowest => ["task in between", "tasks in between"],
        }
    }

    /// Returns the head of a column of sizes.
    pub fn head(self) -> &'static str {
        self.sized()[1]
    }

    /// Returns a size with its unit.
    pub fn counted(self, size: u32) -> String {
        let [one, several] = self.sized();
        format!("{size} {}", if size == 1 { one } else { several })
    }

    /// Returns the subject of a plot of responses; `None` if the workload has none.
    pub fn plotted(self) -> Option<&'static str> {
        match self {
            Workload::Unsynchronised => Some("the high task beside unsynchronised lower tasks"),
            Workload::Synchronised => Some("the high task beside lower tasks released at one time zero"),
            Workload::Hostile => Some("the high task beside an unprivileged process with timers"),
            Workload::Lowest => Some("the lowest task below a high one and others in between"),
            Workload::Throughput => None,
        }
    }

    /// Returns the sizes; each one has a run of its own.
    pub fn sizes(self, scale: Scale) -> &'static [u32] {
        match self {
            Workload::Unsynchronised => scale.of(&[0, 1, 50, 100], &[1, 100]),
            Workload::Synchronised => scale.of(&[1, 50, 100], &[1, 100]),
            Workload::Hostile => scale.of(&[100, 1000], &[1000]),
            Workload::Lowest => scale.of(&[1, 30, 50], &[30]),
            Workload::Throughput => &[0, 1000],
        }
    }

    /// Returns the number of samples of a run.
    pub fn samples(self, scale: Scale) -> u32 {
        match self {
            Workload::Throughput => scale.of(1000, 20),
            _ => scale.of(5000, 100),
        }
    }

    /// Returns the measured task.
    pub fn measured(self) -> Task {
        match self {
            Workload::Lowest => LOW,
            Workload::Throughput => BUSY,
            _ => HIGH,
        }
    }

    /// Returns the other tasks.
    pub fn others(self, size: u32) -> Vec<Task> {
        let mut random = SplitMix64::new(SEED);
        let mut drawn = |priority: u8, periods: &[u64], phased: bool| -> Vec<Task> {
            (0..size).map(|_| draw(&mut random, priority, periods, phased)).collect()
        };
        match self {
            Workload::Unsynchronised => drawn(70, &PERIODS_MS, true),
            Workload::Synchronised => drawn(70, &HARMONIC_MS, false),
            Workload::Lowest => [drawn(75, &PERIODS_MS, true), vec![HIGH]].concat(),
            Workload::Hostile | Workload::Throughput => Vec::new(),
        }
    }

    /// Returns the periods of the unprivileged process's timers: 1 us and so on in steps of 1 us, as in the paper.
    pub fn timers(self, size: u32) -> Vec<u64> {
        match self {
            Workload::Hostile | Workload::Throughput => (1..=u64::from(size)).map(|n| n * US).collect(),
            _ => Vec::new(),
        }
    }
}

/// Draws a task that sleeps, wakes up and sleeps again, as cyclictest does. It always draws a phase, so both kinds of
/// workload use the same number of random values.
fn draw(random: &mut SplitMix64, priority: u8, periods_ms: &[u64], phased: bool) -> Task {
    let period_ns = periods_ms[(random.bits() % periods_ms.len() as u64) as usize] * MS;
    let phase_ns = random.bits() % period_ns;
    Task { priority, period_ns, phase_ns: if phased { phase_ns } else { 0 }, rounds: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workloads_have_names_of_their_own() {
        for workload in Workload::ALL {
            assert_eq!(Workload::from_name(workload.name()), Some(workload));
        }
        assert_eq!(Workload::from_name("none"), None);
    }

    #[test]
    fn more_tasks_are_the_fewer_ones_and_others() {
        let few = Workload::Unsynchronised.others(50);
        let many = Workload::Unsynchronised.others(100);
        assert_eq!(few, many[..50]);
        assert!(many.iter().all(|task| task.phase_ns < task.period_ns && task.priority < HIGH.priority));
    }

    #[test]
    fn synchronised_tasks_are_harmonic_and_begin_together() {
        let tasks = Workload::Synchronised.others(100);
        let mut periods: Vec<u64> = tasks.iter().chain([&HIGH]).map(|task| task.period_ns).collect();
        periods.sort_unstable();
        assert!(periods.windows(2).all(|pair| pair[1] % pair[0] == 0));
        assert!(tasks.iter().all(|task| task.phase_ns == 0));
    }

    #[test]
    fn the_lowest_is_below_all_others() {
        let workload = Workload::Lowest;
        let others = workload.others(30);
        assert_eq!(others.len(), 31);
        assert!(others.iter().all(|task| task.priority > workload.measured().priority));
    }

    #[test]
    fn one_is_no_plural() {
        assert_eq!([0, 1].map(|size| Workload::Lowest.counted(size)), ["0 tasks in between", "1 task in between"]);
    }

    #[test]
    fn only_the_hostile_has_timers() {
        assert_eq!(Workload::Hostile.timers(3), [US, 2 * US, 3 * US]);
        assert!(Workload::Throughput.timers(0).is_empty() && Workload::Lowest.timers(9).is_empty());
    }
}
