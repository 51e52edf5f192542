//! The times from the sender's start to the receiver's end, for each datagram.

use macrotick_model::{Job, Observation};
use macrotick_report::Statistics;

/// All datagrams of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Times from the nominal instant of the sender's job to the end of the receiver's job, in nanoseconds, ascending.
    pub from_nominal: Vec<i64>,
    /// Times from the first instruction of the sender's job, as in the paper, in nanoseconds, ascending.
    pub from_start: Vec<i64>,
    /// The number of datagrams that were sent.
    pub sent: usize,
    /// The number of datagrams that the receiver handled.
    pub received: usize,
    /// The number of handled datagrams that took longer than a period of the sender.
    pub outliers: usize,
}

impl Flow {
    /// Returns the flow between two tasks of an observation; `None` if it has no such task.
    ///
    /// Every complete job of the sender has sent one datagram, and every complete job of the receiver has taken one.
    /// The socket keeps their order: the n-th jobs of both belong together. If a datagram is lost, all later ones
    /// appear a period late.
    pub fn of(observation: &Observation, sender: &str, receiver: &str) -> Option<Flow> {
        let period = observation.plan.system.task(sender)?.period.as_nanos();
        let (sends, receptions) = (completed(observation, sender)?, completed(observation, receiver)?);
        let pairs = || sends.iter().zip(&receptions).filter_map(|(send, reception)| Some((send, reception.end?)));
        let sorted = |mut times: Vec<i64>| {
            times.sort_unstable();
            times
        };
        let from_nominal = sorted(pairs().map(|(send, end)| (end - send.nominal).as_nanos()).collect());
        let from_start = sorted(pairs().filter_map(|(send, end)| Some((end - send.start?).as_nanos())).collect());
        let outliers = from_nominal.len() - from_nominal.partition_point(|time| *time <= period);
        Some(Flow { from_nominal, from_start, sent: sends.len(), received: receptions.len(), outliers })
    }

    /// Returns the number of datagrams that the receiver had not handled at the end.
    pub fn missing(&self) -> usize {
        self.sent.saturating_sub(self.received)
    }

    /// Returns the statistics of the times from the nominal instant; `None` without any.
    pub fn statistics(&self) -> Option<Statistics> {
        Statistics::of_sorted(&self.from_nominal)
    }

    /// Returns the statistics of the times from the sender's first instruction; `None` without any.
    pub fn statistics_from_start(&self) -> Option<Statistics> {
        Statistics::of_sorted(&self.from_start)
    }

    /// Returns the largest distance of a time from the planned time, in nanoseconds.
    pub fn deviation(&self, planned: i64) -> Option<i64> {
        let ends = [self.from_nominal.first()?, self.from_nominal.last()?];
        ends.iter().map(|time| (*time - planned).abs()).max()
    }
}

fn completed<'a>(observation: &'a Observation, task: &str) -> Option<Vec<&'a Job>> {
    let task = observation.tasks.iter().find(|other| other.name == task)?;
    Some(task.jobs.iter().filter(|job| job.end.is_some()).collect())
}

#[cfg(test)]
pub mod tests {
    use macrotick_fixtures::{self as fixtures, by_hand, described, ms, records, us};

    use super::*;

    fn job(number: u64, nominal: i64, times: Option<(i64, i64)>) -> Job {
        fixtures::job(number, us(nominal), times.map(|(start, _)| us(start)), times.map(|(_, end)| us(end)))
    }

    /// Returns a run in which the sender and the receiver did these jobs.
    pub fn observation(sender: Vec<Job>, receiver: Vec<Job>) -> Observation {
        let text =
            "system: s\ntasks:\n  - {name: sender, period: 10ms, wcet: 1ms}\n  - {name: receiver, period: 10ms, \
                    wcet: 1ms}\n";
        Observation {
            tasks: vec![records("sender", sender), records("receiver", receiver)],
            ..fixtures::observation(by_hand(described(text), ms(10), Vec::new()))
        }
    }

    #[test]
    fn datagrams_keep_their_order() {
        let sender = vec![
            job(0, 1100, Some((1103, 2100))),
            job(1, 11_100, None),
            job(2, 21_100, Some((21_101, 22_100))),
            job(3, 31_100, Some((31_100, 32_100))),
        ];
        // The first datagram arrives a period late, and the last one does not arrive.
        let receiver = vec![
            job(0, 3500, Some((3500, 14_200))),
            job(1, 13_500, None),
            job(2, 23_500, Some((23_500, 24_203))),
            job(3, 33_500, None),
        ];
        let flow = Flow::of(&observation(sender, receiver), "sender", "receiver").unwrap();
        assert_eq!((flow.from_nominal.as_slice(), flow.outliers), ([3_103_000, 13_100_000].as_slice(), 1));
        assert_eq!(flow.from_start, [3_102_000, 13_097_000]);
        assert_eq!((flow.sent, flow.received, flow.missing()), (3, 2, 1));
        assert_eq!(flow.deviation(3_100_000), Some(10_000_000));
        assert_eq!(flow.statistics().unwrap().count, 2);
    }

    #[test]
    fn without_a_datagram_nothing_is_said() {
        let flow = Flow::of(&observation(Vec::new(), Vec::new()), "sender", "receiver").unwrap();
        assert_eq!((flow.statistics(), flow.deviation(0), flow.missing()), (None, None, 0));
        assert_eq!(Flow::of(&observation(Vec::new(), Vec::new()), "sender", "nobody"), None);
    }
}
