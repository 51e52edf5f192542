//! The kernel's account of SCHED_DEADLINE in a root domain (`__dl_overflow()`).

use macrotick_analysis::kernel::{PARTS, WHOLE};
use macrotick_host::deadline::DeadlineLimits;
use macrotick_host::present::DeadlineThread;
use macrotick_model::Duration;

/// The account of a domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Room {
    /// The number of its CPUs.
    pub cpus: usize,
    /// The limits of the host.
    pub limits: DeadlineLimits,
    /// The parts of these CPUs that windows and budgets take.
    pub taken: i128,
    /// The threads with a reservation.
    pub threads: Vec<DeadlineThread>,
}

impl Room {
    /// Returns the bandwidth for all reservations together. `None`: there is no limit.
    pub fn most(&self) -> Option<i128> {
        let cpus = self.cpus as i128;
        self.limits.each.map(|each| (each * (cpus * PARTS - self.taken) / PARTS - cpus * self.limits.servers).max(0))
    }

    /// Returns the bandwidth of the present reservations.
    pub fn promised(&self) -> i128 {
        self.threads.iter().map(|thread| i128::from(thread.bandwidth)).sum()
    }

    /// Returns the bandwidth that is free. `None`: there is no limit.
    pub fn free(&self) -> Option<i128> {
        self.most().map(|most| (most - self.promised()).max(0))
    }

    /// Returns the longest runtime that fits into a period.
    pub fn longest(&self, period: Duration) -> Option<Duration> {
        let free = self.free()?.min(WHOLE);
        let runtime = free * i128::from(period.as_nanos()) / WHOLE;
        Some(Duration::from_nanos(runtime as i64))
    }
}

#[cfg(test)]
mod tests {
    use macrotick_analysis::deadline::Task;
    use macrotick_fixtures::us;

    use super::*;

    #[test]
    fn the_account_has_servers_windows_and_reservations() {
        let limits =
            DeadlineLimits { each: Some(WHOLE * 95 / 100), servers: WHOLE / 20, least: us(100), most: us(4000) };
        let thread = |bandwidth| DeadlineThread {
            thread: 7,
            task: Task::implicit(us(1), us(2)),
            bandwidth,
            cpus: [0].into_iter().collect(),
        };
        let room = Room { cpus: 2, limits, taken: 0, threads: Vec::new() };
        let percent = |room: &Room| room.free().map(|free| (free * 1000 + WHOLE / 2) / WHOLE);
        assert_eq!(percent(&room), Some(1800));
        assert_eq!(room.longest(us(1000)), Some(us(1000)), "one thread has one CPU at most");
        let half = Room { threads: vec![thread(1 << 19), thread(1 << 19)], ..room.clone() };
        assert_eq!(percent(&half), Some(800));
        assert_eq!(half.longest(us(1000)).map(|runtime| runtime.as_nanos() / 1000), Some(800));
        assert_eq!(percent(&Room { taken: 1024, ..half.clone() }), Some(0));
        assert_eq!(percent(&Room { limits: DeadlineLimits { each: None, ..limits }, ..half }), None);
    }
}
