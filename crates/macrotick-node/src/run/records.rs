//! Conversion of the tasks' records to the jobs of the observation.

use macrotick_model::plan::PlannedJob;
use macrotick_model::{Duration, Instant, Job, TaskObservation};

use crate::block::abi::Record;

/// The parameters for reading records.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// The start of cycle 0.
    pub epoch: Instant,
    /// The cycle.
    pub cycle: Duration,
    /// The observed time.
    pub duration: Duration,
    /// Whether the table moves with its clock. Then instants are instants of the table, as in the plan.
    pub follows: bool,
}

/// The jobs of a task, and the faults in its records.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Merged {
    /// The jobs with a deadline within the duration, up to the first job without room for its record.
    pub jobs: Vec<Job>,
    /// The nominal instant of the first job without room for its record.
    pub until: Option<Duration>,
    /// The number of records that do not fit the plan: it has no such job, or has it at another nominal instant.
    pub strange: usize,
}

/// Merges the records with the jobs that the plan expects. `planned` are the jobs of one cycle. Events after the
/// duration do not count. Therefore the result does not depend on the instant at which the runner ended the run. If
/// there was no room for more records (`is_full`), the fate of the jobs after the last record is unknown.
pub fn merge(frame: Frame, planned: &[PlannedJob], records: &[Record], is_full: bool) -> Merged {
    let mut merged = Merged::default();
    let mut records = records.iter().peekable();
    for (number, nominal, deadline) in expected(frame, planned, 0) {
        let room = !(is_full && records.peek().is_none()) && merged.jobs.len() < TaskObservation::MOST_JOBS;
        if !room && deadline <= frame.duration {
            merged.until = Some(nominal);
            break;
        }
        while records.next_if(|record| record.job < number).is_some() {
            merged.strange += 1;
        }
        let record = records.next_if(|record| record.job == number);
        let moved = moved(frame, nominal, record);
        if moved != 0 && !frame.follows {
            merged.strange += 1;
        }
        if deadline <= frame.duration {
            merged.jobs.push(job(frame, number, nominal, record, moved));
        }
    }
    merged
}

/// Returns a job from its record, with a nominal instant that is `moved` nanoseconds after the planned one.
fn job(frame: Frame, number: u64, nominal: Duration, record: Option<&Record>, moved: i64) -> Job {
    let frame = Frame { epoch: moved_by(frame.epoch, if frame.follows { moved } else { 0 }), ..frame };
    let start = record.and_then(|record| within(frame, record.start_ns));
    let end = record.filter(|_| start.is_some()).and_then(|record| within(frame, record.end_ns));
    Job { job: number, nominal, start, end }
}

/// Returns the time by which a record has a job later than the plan.
fn moved(frame: Frame, nominal: Duration, record: Option<&Record>) -> i64 {
    record.map_or(0, |record| (record.nominal_ns as i64).wrapping_sub((frame.epoch + nominal).as_nanos()))
}

/// Returns number, nominal instant and deadline of every job from number `from` on that has its nominal instant within
/// the duration, in order.
fn expected(frame: Frame, planned: &[PlannedJob], from: u64) -> impl Iterator<Item = (u64, Duration, Duration)> + '_ {
    (from..)
        .map(move |number| {
            let (cycle, index) = (number / planned.len() as u64, number as usize % planned.len());
            let base = frame.cycle * cycle as i64;
            (number, base + planned[index].nominal, base + planned[index].deadline)
        })
        .take_while(move |(_, nominal, _)| *nominal < frame.duration)
}

/// The maximum number of records that wait. A program may write records of jobs that never come.
const MOST_WAITING: usize = 1 << 16;

/// The jobs of a task, settled one reading after the other. The memory and the time of a reading do not depend on the
/// time before it.
#[derive(Debug, Default)]
pub struct Settling {
    /// The number of the first job that is not settled.
    next: u64,
    /// The records of jobs that are not settled.
    waiting: Vec<Record>,
    /// The number of jobs that left no record, among those that are not settled.
    unrecorded: u64,
}

/// The jobs that a reading settled.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Settled {
    /// The jobs with their deadlines, in order.
    pub jobs: Vec<(Job, Duration)>,
    /// The number of further jobs, of which no record exists because there was no room.
    pub unrecorded: u64,
    /// The number of records that do not fit the plan.
    pub strange: u64,
}

impl Settling {
    /// Settles the jobs with a deadline up to `until`. The duration of the frame is the time of this reading: an event
    /// after the deadline and before the reading counts. `records` are new, except that a record without an end may come
    /// again. `unrecorded` new jobs left no record.
    pub fn settle(
        &mut self,
        frame: Frame,
        planned: &[PlannedJob],
        records: Vec<Record>,
        unrecorded: u64,
        until: Duration,
    ) -> Settled {
        self.unrecorded += unrecorded;
        self.keep(records);
        let mut settled = Settled::default();
        let mut waiting = std::mem::take(&mut self.waiting).into_iter().peekable();
        for (number, nominal, deadline) in expected(frame, planned, self.next) {
            if deadline > until {
                break;
            }
            while waiting.next_if(|record| record.job < number).is_some() {
                settled.strange += 1;
            }
            let record = waiting.next_if(|record| record.job == number);
            self.next = number + 1;
            if record.is_none() && self.unrecorded > 0 {
                self.unrecorded -= 1;
                settled.unrecorded += 1;
                continue;
            }
            let moved = moved(frame, nominal, record.as_ref());
            settled.strange += u64::from(moved != 0 && !frame.follows);
            settled.jobs.push((job(frame, number, nominal, record.as_ref(), moved), deadline));
        }
        self.waiting = waiting.collect();
        if self.waiting.len() > MOST_WAITING {
            settled.strange += self.waiting.len() as u64;
            self.waiting = Vec::new();
        }
        settled
    }

    /// Keeps the records of jobs that are not settled. The end of a job that was settled without one comes too late.
    fn keep(&mut self, records: Vec<Record>) {
        let again = |last: &Record| records.first().is_some_and(|first| first.job == last.job);
        if self.waiting.last().is_some_and(again) {
            self.waiting.pop();
        }
        let is_open = |record: &Record| record.job < self.next;
        let late = records.first().is_some_and(is_open);
        self.waiting.extend(records.into_iter().skip(usize::from(late)));
    }
}

/// Moves the epoch. The number comes from a program and may have any value.
fn moved_by(epoch: Instant, ns: i64) -> Instant {
    Instant::from_nanos(epoch.as_nanos().wrapping_add(ns))
}

/// Returns an instant since the epoch. Zero means never.
fn within(frame: Frame, ns: u64) -> Option<Duration> {
    if ns == 0 {
        return None;
    }
    // A program may write any number there.
    let since = Duration::from_nanos((ns as i64).wrapping_sub(frame.epoch.as_nanos()));
    Some(since).filter(|since| *since <= frame.duration)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EPOCH: i64 = 1_000_000;

    fn frame(duration: i64) -> Frame {
        Frame {
            epoch: Instant::from_nanos(EPOCH),
            cycle: Duration::from_nanos(1000),
            duration: Duration::from_nanos(duration),
            follows: false,
        }
    }

    fn planned(jobs: &[(i64, i64)]) -> Vec<PlannedJob> {
        let ns = Duration::from_nanos;
        jobs.iter().map(|&(nominal, deadline)| PlannedJob { nominal: ns(nominal), deadline: ns(deadline) }).collect()
    }

    fn record(job: u64, nominal: i64, start: i64, end: Option<i64>) -> Record {
        let at = |ns: i64| (EPOCH + ns) as u64;
        Record { job, nominal_ns: at(nominal), start_ns: at(start), end_ns: end.map_or(0, at) }
    }

    fn numbers(merged: &Merged) -> Vec<(u64, i64, Option<i64>, Option<i64>)> {
        let ns = |time: Option<Duration>| time.map(Duration::as_nanos);
        merged.jobs.iter().map(|job| (job.job, job.nominal.as_nanos(), ns(job.start), ns(job.end))).collect()
    }

    #[test]
    fn jobs_that_never_ran_are_listed() {
        let records = [record(0, 100, 103, Some(150)), record(2, 1100, 1105, None)];
        let merged = merge(frame(2000), &planned(&[(100, 300), (600, 800)]), &records, false);
        assert_eq!(
            numbers(&merged),
            [(0, 100, Some(103), Some(150)), (1, 600, None, None), (2, 1100, Some(1105), None), (3, 1600, None, None)]
        );
        assert_eq!(merged.strange, 0);
    }

    #[test]
    fn whatever_is_written_into_records_is_read() {
        let odd = Record { job: 1, nominal_ns: 1 << 63, start_ns: 1 << 63, end_ns: u64::MAX };
        for (follows, strange) in [(false, 1), (true, 0)] {
            let merged = merge(Frame { follows, ..frame(2000) }, &planned(&[(100, 300)]), &[odd], false);
            assert_eq!((merged.jobs.len(), merged.strange), (2, strange));
        }
    }

    #[test]
    fn a_table_that_moves_takes_its_jobs_along() {
        let records = [record(0, 107, 110, Some(157)), record(1, 1090, 1094, None)];
        let follows = Frame { follows: true, ..frame(2000) };
        let merged = merge(follows, &planned(&[(100, 300)]), &records, false);
        assert_eq!(numbers(&merged), [(0, 100, Some(103), Some(150)), (1, 1100, Some(1104), None)]);
        assert_eq!(merged.strange, 0);
    }

    #[test]
    fn only_deadlines_within_the_duration_count() {
        // The second job of a cycle has its deadline in the next cycle. A deadline exactly at the end of the run
        // counts.
        let jobs = planned(&[(100, 300), (600, 1200)]);
        assert_eq!(merge(frame(1200), &jobs, &[], false).jobs.len(), 2);
        assert_eq!(merge(frame(1199), &jobs, &[], false).jobs.len(), 1);
    }

    #[test]
    fn what_happened_after_the_end_did_not_happen() {
        let records = [record(0, 100, 103, Some(1001))];
        let merged = merge(frame(1000), &planned(&[(100, 300)]), &records, false);
        assert_eq!(numbers(&merged), [(0, 100, Some(103), None)]);
    }

    #[test]
    fn nobody_knows_what_there_was_no_room_for() {
        let records = [record(0, 100, 103, Some(150)), record(2, 1100, 1105, Some(1190))];
        let merged = merge(frame(2000), &planned(&[(100, 300), (600, 800)]), &records, true);
        assert_eq!(
            numbers(&merged),
            [(0, 100, Some(103), Some(150)), (1, 600, None, None), (2, 1100, Some(1105), Some(1190))]
        );
        assert_eq!(merged.until, Some(Duration::from_nanos(1600)));
    }

    #[test]
    fn a_task_that_never_runs_fills_no_memory() {
        let merged = merge(frame(1 << 40), &planned(&[(100, 300)]), &[], false);
        assert_eq!(merged.jobs.len(), TaskObservation::MOST_JOBS);
        assert_eq!(merged.until, Some(Duration::from_nanos(100 + (TaskObservation::MOST_JOBS as i64) * 1000)));
    }

    #[test]
    fn readings_settle_what_one_merge_does() {
        let planned = planned(&[(100, 300), (600, 1200)]);
        let all: Vec<Record> = (0..20)
            .filter(|number| *number != 7)
            .map(|number| {
                let nominal = number / 2 * 1000 + [100, 600][number as usize % 2];
                // Job 4 ends after its deadline.
                record(number as u64, nominal, nominal + 3, Some(nominal + if number == 4 { 250 } else { 50 }))
            })
            .collect();
        let whole = merge(frame(10_000), &planned, &all, false);
        let (mut settling, mut jobs) = (Settling::default(), Vec::new());
        for now in (0..=10_000).step_by(700).chain([10_000]) {
            let at = (EPOCH + now) as u64;
            // The records that a process has written by now. A running job comes again in the next reading.
            let since = now - 700;
            let told = all.iter().filter(|record| record.start_ns <= at && record.end_ns as i64 > EPOCH + since);
            let told =
                told.map(|record| Record { end_ns: if record.end_ns <= at { record.end_ns } else { 0 }, ..*record });
            // Each reading settles up to the reading before, except the last.
            let until = if now == 10_000 { now } else { since };
            let settled = settling.settle(frame(now), &planned, told.collect(), 0, Duration::from_nanos(until));
            assert_eq!((settled.unrecorded, settled.strange), (0, 0), "{now}");
            jobs.extend(settled.jobs.into_iter().map(|(job, _)| job));
        }
        assert_eq!(jobs, whole.jobs);
        assert!(settling.waiting.len() < 3, "{settling:?}");
    }

    #[test]
    fn jobs_without_room_are_not_taken_for_misses() {
        let planned = planned(&[(100, 300)]);
        let records = vec![record(0, 100, 103, Some(150)), record(3, 3100, 3103, Some(3150))];
        let settled = Settling::default().settle(frame(4000), &planned, records, 1, Duration::from_nanos(4000));
        let numbers: Vec<_> = settled.jobs.iter().map(|(job, _)| (job.job, job.end.is_some())).collect();
        assert_eq!((settled.unrecorded, numbers), (1, vec![(0, true), (2, false), (3, true)]));
    }

    #[test]
    fn an_end_that_comes_too_late_is_no_strange_record() {
        let (planned, mut settling) = (planned(&[(100, 300)]), Settling::default());
        let until = Duration::from_nanos;
        let first = settling.settle(frame(400), &planned, vec![record(0, 100, 103, None)], 0, until(400));
        assert_eq!(first.jobs.iter().map(|(job, _)| job.end).collect::<Vec<_>>(), [None]);
        let records = vec![record(0, 100, 103, Some(900)), record(1, 1100, 1103, Some(1150))];
        let second = settling.settle(frame(1400), &planned, records, 0, until(1400));
        assert_eq!((second.jobs.len(), second.strange), (1, 0));
    }

    #[test]
    fn strange_records_are_counted() {
        let wrong_instant = [record(0, 101, 103, Some(150))];
        assert_eq!(merge(frame(1000), &planned(&[(100, 300)]), &wrong_instant, false).strange, 1);
        let twice = [record(0, 100, 103, Some(150)), record(0, 100, 160, Some(170)), record(1, 1100, 1103, None)];
        assert_eq!(merge(frame(2000), &planned(&[(100, 300)]), &twice, false).strange, 1);
    }
}
