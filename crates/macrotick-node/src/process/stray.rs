//! Tasks that are there at the end of a run, but whose threads do not what a task does: no jobs, and nothing else tells why.

use std::path::PathBuf;

use macrotick_host::proc;
use macrotick_host::sys;
use macrotick_model::{Backend, Duration, Instant};

use crate::block::abi;
use crate::deployment::TaskDeployment;
use crate::process::child::{describe_state, Child};

/// A job that began so many periods before the end and has not ended is told.
const PERIODS: i64 = 2;

/// A remark on a task whose process lives at the end of what was observed; `before` is what its process executed at the start.
pub fn describe(
    child: &Child,
    deployed: &TaskDeployment,
    backend: Backend,
    before: Option<&PathBuf>,
    end: Instant,
) -> Option<String> {
    // Nothing that it says of itself is true, its thread included.
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
        format!(
            "its process executed another program, {}, with which the task's thread and its jobs were over",
            now.display()
        )
    })
}

fn state_of(child: &Child) -> Option<String> {
    match child.thread().and_then(proc::state) {
        None => Some("its thread has ended, and its process goes on".into()),
        state @ Some('T') => Some(format!("its process {}", describe_state(state))),
        state @ Some('t') => Some(format!("its thread {}", describe_state(state))),
        Some(_) => None,
    }
}

/// By its own word, whatever serves it.
fn leaves(child: &Child) -> Option<String> {
    let left = child.block.phase() == abi::PHASE_LEFT;
    left.then(|| {
        "its thread has left by macrotick_leave(), with which its jobs were over, and its process goes on".into()
    })
}

fn has_left(child: &Child, deployed: &TaskDeployment, backend: Backend) -> Option<String> {
    let policy = sys::sched_attr(child.thread()?).ok()?.policy;
    let has_left = backend == Backend::Kernel && deployed.is_windowed() && policy != macrotick_uapi::SCHED_TT;
    let name = sys::policy_name(policy);
    has_left.then(|| format!("its thread has left SCHED_TT: it, or somebody else, put it under {name}"))
}

fn endless(child: &Child, deployed: &TaskDeployment, end: Instant) -> Option<String> {
    let last =
        child.block.records().into_iter().next_back().filter(|record| record.end_ns == 0 && record.start_ns > 0)?;
    let since = Duration::from_nanos(end.as_nanos().wrapping_sub(last.start_ns as i64));
    let what = describe_state(child.thread().and_then(proc::state));
    let us = Duration::from_micros(since.as_nanos() / 1000);
    (since > deployed.task.period * PERIODS)
        .then(|| format!("its job {} has not ended, {us} after it began: its thread {what}", last.job))
}
