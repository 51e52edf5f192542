//! The way of values along the chains: from the end of a job to the start of the first job that reads its value.

use macrotick_model::{Duration, Plan};

use super::rows::{Job, Rows};

/// A timetable shows at most this many arrows of one chain.
const MOST_ARROWS: usize = 2000;

/// An arrow of a chain, each end with row and instant.
pub(super) struct Arrow {
    /// The position of the chain in the description.
    pub chain: usize,
    pub from: (usize, Duration),
    pub to: (usize, Duration),
}

/// Returns the arrows of all chains.
pub(super) fn of(plan: &Plan, rows: &Rows) -> Vec<Arrow> {
    let jobs = |name: &String| rows.jobs.get(name).map_or(&[][..], Vec::as_slice);
    let chains = plan.system.chains.iter().enumerate();
    let chain = |(chain, path): (usize, &[String])| {
        let hops = path.windows(2).flat_map(|pair| hops(jobs(&pair[0]), jobs(&pair[1])));
        hops.take(MOST_ARROWS).map(|(from, to)| Arrow { chain, from, to }).collect::<Vec<_>>()
    };
    chains.flat_map(|(index, found)| chain((index, &found.path))).collect()
}

type End = (usize, Duration);

/// Returns the hops from the jobs of one task to those of the next. A value that is overwritten before a job reads it has
/// none, and neither has one that is read in the next cycle.
fn hops(writers: &[Job], readers: &[Job]) -> Vec<(End, End)> {
    let mut ends: Vec<End> = writers.iter().map(|job| job.end).collect();
    ends.sort_by_key(|&(_, at)| at);
    let mut starts: Vec<End> = readers.iter().map(|job| job.start).collect();
    starts.sort_by_key(|&(_, at)| at);
    let mut hops: Vec<(End, End)> = Vec::new();
    for end in ends {
        let Some(&start) = starts.get(starts.partition_point(|&(_, at)| at < end.1)) else { break };
        if hops.last().is_some_and(|(_, to)| *to == start) {
            hops.pop();
        }
        hops.push((end, start));
    }
    hops
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jobs(spans: &[(i64, i64)]) -> Vec<Job> {
        let at = |us| (0, Duration::from_micros(us));
        spans.iter().map(|&(start, end)| Job { start: at(start), end: at(end) }).collect()
    }

    fn times(writers: &[(i64, i64)], readers: &[(i64, i64)]) -> Vec<(i64, i64)> {
        let us = |(_, at): End| at.as_nanos() / 1000;
        hops(&jobs(writers), &jobs(readers)).into_iter().map(|(from, to)| (us(from), us(to))).collect()
    }

    #[test]
    fn an_arrow_leads_to_the_first_reader_of_a_value_that_is_read() {
        // A slow writer: only the first of its readers gets a new value.
        assert_eq!(times(&[(0, 10)], &[(5, 8), (10, 12), (20, 22)]), [(10, 10)]);
        // A fast writer: the value of its first job is overwritten.
        assert_eq!(times(&[(0, 10), (20, 30), (40, 50)], &[(35, 36)]), [(30, 35)]);
        assert_eq!(times(&[(0, 10)], &[(5, 8)]), []);
    }
}
