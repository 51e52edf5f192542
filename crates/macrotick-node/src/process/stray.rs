//! Tasks that are alive at the end of a run but do no jobs, for reasons that nothing else reports.

use std::path::PathBuf;

use macrotick_host::proc;
use macrotick_host::sys;
use macrotick_model::{Backend, Duration, Instant};

use crate::block::abi;
use crate::deployment::TaskDeployment;
use crate::process::child::{describe_state, Child};

/// A job that started more than this number of periods before the end, and has not ended, is reported.
const PERIODS: i64 = 2;

/// Returns a remark on a task with a process that is alive at the end of the observed time. `before` is the program
/// that its process executed at the start.
pub fn describe(
    child: &Child,
    deployed: &TaskDeployment,
    backend: Backend,
    before: Option<&PathBuf>,
    end: Instant,
) -> Option<String> {
    // Nothing in the block is valid, not even the thread.
    if !child.block.is_intact() {
        return None;
    }
    let why = executes_another(child, before)
        .or_else(|| state_of(child))
        .or_else(|| leaves(child))
        .or_else(|| has_left(child, deployed, backend))
        .or_else(|| endless(child, deployed, end))?;
    Some(format!("task `{}`: {why}", child.name))
}

fn executes_another(child: &Child, before: Option<&PathBuf>) -> Option<String> {
    let (before, now) = (before?, proc::program(child.pid())?);
    (now != *before).then(|| {
        format!("its process executed another program, {}, which ended the task's thread and its jobs", now.display())
    })
}

fn state_of(child: &Child) -> Option<String> {
    match child.thread().and_then(proc::state) {
        None => Some("its thread has ended, but its process continues".into()),
        state @ Some('T') => Some(format!("its process {}", describe_state(state))),
        state @ Some('t') => Some(format!("its thread {}", describe_state(state))),
        Some(_) => None,
    }
}

/// The thread left the protocol by itself, under any backend.
fn leaves(child: &Child) -> Option<String> {
    let left = child.block.phase() == abi::PHASE_LEFT;
    left.then(|| "its thread has left by macrotick_leave(), which ended its jobs, but its process continues".into())
}

fn has_left(child: &Child, deployed: &TaskDeployment, backend: Backend) -> Option<String> {
    let policy = sys::sched_attr(child.thread()?).ok()?.policy;
    let has_left = backend == Backend::Kernel && deployed.is_windowed() && policy != macrotick_uapi::SCHED_TT;
    let name = sys::policy_name(policy);
    has_left.then(|| format!("its thread has left SCHED_TT: the thread or another program changed it to {name}"))
}

fn endless(child: &Child, deployed: &TaskDeployment, end: Instant) -> Option<String> {
    let last =
        child.block.records().into_iter().next_back().filter(|record| record.end_ns == 0 && record.start_ns > 0)?;
    let since = Duration::from_nanos(end.as_nanos().wrapping_sub(last.start_ns as i64));
    let what = describe_state(child.thread().and_then(proc::state));
    let us = Duration::from_micros(since.as_nanos() / 1000);
    (since > deployed.task.period * PERIODS)
        .then(|| format!("its job {} has not ended, {us} after its start: its thread {what}", last.job))
}
