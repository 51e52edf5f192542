//! Bursts: what a thread does from a wake-up until it blocks again.

use crate::event::Change;

/// A wake-up, and the work until the thread blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
    /// The instant of the wake-up, in nanoseconds.
    pub woken: i64,
    /// The instant at which the thread blocks.
    pub ended: i64,
    /// The CPU time in between. `None`: the kernel did not tell when the thread began to run. Linux 6.18 leaves out some
    /// switches from the idle thread.
    pub ran: Option<i64>,
}

/// The most bursts that are kept of a thread. Later ones are counted.
const MOST: usize = 1 << 20;

/// The present state of a thread.
#[derive(Clone, Copy, Debug)]
enum State {
    /// Unknown, until it blocks: at the begin, and after lost events.
    Unknown,
    Blocked,
    Ready {
        woken: i64,
        ran: i64,
    },
    Running {
        woken: i64,
        ran: i64,
        since: i64,
    },
}

/// Makes bursts of the events of one thread, which must come in order.
#[derive(Clone, Debug)]
pub struct Bursts {
    state: State,
    done: Vec<Burst>,
    /// The bursts beyond the most that are kept.
    more: u64,
}

impl Bursts {
    /// Starts with a thread in an unknown state. The first burst begins after it has blocked.
    pub fn of_running() -> Bursts {
        Bursts { state: State::Unknown, done: Vec::new(), more: 0 }
    }

    /// Starts with a new thread. Its first burst begins when it first runs.
    pub fn of_new() -> Bursts {
        Bursts { state: State::Blocked, ..Bursts::of_running() }
    }

    /// Takes the next event.
    pub fn take(&mut self, at: i64, change: Change) {
        self.state = match (self.state, change) {
            (_, Change::Blocks) => {
                self.end(at);
                State::Blocked
            }
            (State::Blocked, Change::Wakes) => State::Ready { woken: at, ran: 0 },
            // The wake-up was not seen, as with a new thread.
            (State::Blocked, Change::Runs) => State::Running { woken: at, ran: 0, since: at },
            (State::Ready { woken, ran }, Change::Runs) => State::Running { woken, ran, since: at },
            (State::Running { woken, ran, since }, Change::Preempted) => State::Ready { woken, ran: ran + at - since },
            // A wake-up of a thread that is about to block cancels the block.
            (state, _) => state,
        };
    }

    /// Forgets the state, because events were lost.
    pub fn lose(&mut self) {
        self.state = State::Unknown;
    }

    fn end(&mut self, at: i64) {
        let (woken, ran) = match self.state {
            State::Running { woken, ran, since } => (woken, Some(ran + at - since)),
            State::Ready { woken, .. } => (woken, None),
            State::Unknown | State::Blocked => return,
        };
        if self.done.len() == MOST {
            self.more += 1;
            return;
        }
        self.done.push(Burst { woken, ended: at, ran });
    }

    /// Returns the burst that has not ended yet, up to an instant.
    pub fn present(&self, now: i64) -> Option<Burst> {
        let (woken, ran) = match self.state {
            State::Ready { woken, ran } => (woken, ran),
            State::Running { woken, ran, since } => (woken, ran + (now - since).max(0)),
            State::Unknown | State::Blocked => return None,
        };
        Some(Burst { woken, ended: now, ran: Some(ran) })
    }

    /// Returns the completed bursts, in order.
    pub fn done(&self) -> &[Burst] {
        &self.done
    }

    /// Returns the number of bursts that were not kept.
    pub fn not_kept(&self) -> u64 {
        self.more
    }
}

#[cfg(test)]
mod tests {
    use super::Change::{Blocks, Preempted, Runs, Wakes};
    use super::*;

    fn bursts(mut bursts: Bursts, events: &[(i64, Change)]) -> Vec<(i64, i64, Option<i64>)> {
        events.iter().for_each(|&(at, change)| bursts.take(at, change));
        bursts.done().iter().map(|burst| (burst.woken, burst.ended, burst.ran)).collect()
    }

    #[test]
    fn time_of_other_threads_does_not_count() {
        let events = [(0, Runs), (5, Blocks), (10, Wakes), (12, Runs), (15, Preempted), (40, Runs), (41, Blocks)];
        assert_eq!(bursts(Bursts::of_running(), &events), [(10, 41, Some(4))]);
        assert_eq!(bursts(Bursts::of_new(), &events), [(0, 5, Some(5)), (10, 41, Some(4))]);
        // The switch to the thread is missing.
        assert_eq!(bursts(Bursts::of_running(), &[(0, Blocks), (10, Wakes), (20, Blocks)]), [(10, 20, None)]);
    }

    #[test]
    fn a_burst_that_goes_on_has_its_time_so_far() {
        let mut thread = Bursts::of_new();
        assert_eq!(thread.present(5), None);
        [(10, Wakes), (12, Runs)].iter().for_each(|&(at, change)| thread.take(at, change));
        assert_eq!(thread.present(20), Some(Burst { woken: 10, ended: 20, ran: Some(8) }));
        thread.take(15, Preempted);
        assert_eq!(thread.present(20), Some(Burst { woken: 10, ended: 20, ran: Some(3) }));
    }

    #[test]
    fn a_wake_up_before_the_block_does_not_begin_a_burst() {
        let events = [(0, Blocks), (10, Wakes), (11, Runs), (12, Wakes), (20, Blocks)];
        assert_eq!(bursts(Bursts::of_running(), &events), [(10, 20, Some(9))]);
    }

    #[test]
    fn lost_events_cost_one_burst() {
        let mut thread = Bursts::of_new();
        thread.take(1, Runs);
        thread.lose();
        [(2, Blocks), (3, Wakes), (4, Runs), (6, Blocks)].iter().for_each(|&(at, change)| thread.take(at, change));
        assert_eq!(thread.done(), [Burst { woken: 3, ended: 6, ran: Some(2) }]);
    }
}
