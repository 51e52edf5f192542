//! The publication of all experiments.
//!
//! It takes hours, so it runs as many experiments at a time as this machine has processors, and goes on where it was
//! interrupted. The lab counts instructions: its figures do not depend on what runs beside it. An experiment that takes
//! times of this machine runs alone, at the end.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::Instant;

use macrotick_lab::Layout;
use macrotick_report::output;

use crate::error::BenchError;
use crate::experiment::Experiment;
use crate::{published, wall};

/// Runs and publishes the experiments without a page of the present commit, each in a process of its own with the log
/// `build/bench/NAME/log`. An experiment that fails does not end the others.
///
/// # Errors
///
/// [`BenchError::DirtyPublished`] before anything runs; [`BenchError::NotPublished`] names the experiments that failed.
pub fn publish_all() -> Result<(), BenchError> {
    let root = Layout::find()?.root().to_owned();
    published::check_commit(&root)?;
    let mut missing = Vec::new();
    for experiment in Experiment::all() {
        if !experiment.is_published()? {
            missing.push(*experiment);
        }
    }
    let (alone, mut beside): (Vec<_>, Vec<_>) = missing.into_iter().partition(Experiment::is_timed_here);
    // The longest first: then no long one is left for the end, with the other processors idle.
    beside.sort_by_key(|experiment| std::cmp::Reverse(experiment.minutes()));
    let lanes = thread::available_parallelism().map_or(1, usize::from);
    let publish = |experiment: &Experiment| is_published_by_a_process(&root, experiment);
    let mut failed = failed_in_lanes(beside, lanes, publish)?;
    failed.extend(failed_in_lanes(alone, 1, publish)?);
    if failed.is_empty() {
        return Ok(());
    }
    Err(BenchError::NotPublished(failed.iter().map(|experiment| experiment.name().to_owned()).collect()))
}

/// Does all jobs, in their order and at most `lanes` at a time. Returns those that failed.
fn failed_in_lanes<Job: Send, Error: Send>(
    jobs: Vec<Job>,
    lanes: usize,
    is_done: impl Fn(&Job) -> Result<bool, Error> + Sync,
) -> Result<Vec<Job>, Error> {
    let waiting = Mutex::new(VecDeque::from(jobs));
    let next = || waiting.lock().expect("no lane panics").pop_front();
    let lane = || {
        let mut failed = Vec::new();
        while let Some(job) = next() {
            if !is_done(&job)? {
                failed.push(job);
            }
        }
        Ok(failed)
    };
    let ends: Vec<Result<Vec<Job>, Error>> = thread::scope(|scope| {
        let running: Vec<_> = (0..lanes).map(|_| scope.spawn(lane)).collect();
        running.into_iter().map(|lane| lane.join().expect("no lane panics")).collect()
    });
    Ok(ends.into_iter().collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
}

/// Publishes one experiment in a process of its own, and returns whether it did.
fn is_published_by_a_process(root: &Path, experiment: &Experiment) -> Result<bool, BenchError> {
    let name = experiment.name();
    let folder = root.join("build/bench").join(name);
    let path = folder.join("log");
    fs::create_dir_all(&folder).map_err(|source| BenchError::Copy { path: folder, source })?;
    let logs = File::create(&path).and_then(|log| Ok((log.try_clone()?, log)));
    let (stdout, stderr) = logs.map_err(|source| BenchError::Copy { path: path.clone(), source })?;

    output::tell(format_args!("{name}: begins; log in {}", path.display()));
    let begin = Instant::now();
    let program =
        std::env::current_exe().map_err(|source| BenchError::Read { path: "/proc/self/exe".into(), source })?;
    let mut command = Command::new(&program);
    command.args([name, "--publish"]).stdin(Stdio::null()).stdout(stdout).stderr(stderr);
    let status = command.status().map_err(|source| BenchError::Process { program, source })?;
    let (end, time) = (if status.success() { "published" } else { "failed" }, wall::told(begin.elapsed()));
    output::tell(format_args!("{name}: {end} after {time}"));
    Ok(status.success())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_failed_job_ends_no_other() {
        let (running, most, done) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
        let is_done = |job: &u32| -> Result<bool, ()> {
            most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            thread::sleep(Duration::from_millis(5));
            running.fetch_sub(1, Ordering::SeqCst);
            done.fetch_add(1, Ordering::SeqCst);
            Ok(job % 3 != 0)
        };
        let mut failed = failed_in_lanes((1..=9).collect(), 2, is_done).unwrap();
        failed.sort_unstable();
        assert_eq!(failed, [3, 6, 9]);
        assert_eq!((most.into_inner(), done.into_inner()), (2, 9));
    }

    #[test]
    fn a_lane_of_its_own_keeps_the_order() {
        let order = Mutex::new(Vec::new());
        let is_done = |job: &u32| -> Result<bool, ()> {
            order.lock().unwrap().push(*job);
            Ok(true)
        };
        assert_eq!(failed_in_lanes(vec![2, 1, 3], 1, is_done), Ok(vec![]));
        assert_eq!(order.into_inner().unwrap(), [2, 1, 3]);
    }
}
