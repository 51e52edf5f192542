//! The releases of a task: the period and the offset of its stimulus.

use super::bounds::least_time;
use super::element::{Element, Refusal};
use super::units::{time, Picoseconds};
use crate::findings::{cut, Findings};

/// When jobs are released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Release {
    /// The period in nanoseconds, above zero.
    pub period: i64,
    /// The offset in nanoseconds, less than the period.
    pub offset: Option<i64>,
}

/// Returns the release of a task by its stimulus. A stimulus that other tasks trigger has none of its own.
///
/// # Errors
///
/// If the stimulus has no guaranteed distance between two releases, or a time is out of range.
pub fn release(task: Element, stimulus: Element, findings: &mut Findings) -> Result<Option<Release>, Refusal> {
    conditions(stimulus, findings);
    match stimulus.kind() {
        "PeriodicStimulus" | "Periodic" => periodic(stimulus, findings).map(Some),
        "RelativePeriodicStimulus" | "SporadicStimulus" | "Sporadic" => shortest(task, stimulus, findings).map(Some),
        "ArrivalCurveStimulus" | "ArrivalCurve" => shortest(task, stimulus, findings).map(Some),
        "InterProcessStimulus" | "InterProcess" => Ok(None),
        _ => Err(unbounded(task, stimulus)),
    }
}

/// The refusal of a task without a period. It names the task, which the user can leave out.
fn unbounded(task: Element, stimulus: Element) -> Refusal {
    let (name, kind) = (cut(stimulus.name()), cut(stimulus.kind()));
    let text = format!("`{name}` ({kind}) states no least distance of two releases: name the task with `--leave-out`");
    task.refusal(text)
}

fn periodic(stimulus: Element, findings: &mut Findings) -> Result<Release, Refusal> {
    let Some(recurrence) = stimulus.child("recurrence") else {
        return Err(stimulus.refusal("the stimulus has no `recurrence`"));
    };
    let release = Release { period: period(recurrence)?, offset: None };
    for tag in ["jitter", "stimulusDeviation"] {
        if let Some(jitter) = stimulus.child(tag) {
            findings.remark(jitter.path(), "a table releases jobs without jitter");
        }
    }
    if stimulus.attribute("clock").is_some() {
        findings.remark(stimulus.path(), "the clock of the stimulus is left out: its period is that of the table");
    }
    with_offset(release, stimulus, findings)
}

/// The offset of a job is less than the period. An offset of zero is that of each task, so it is left out.
fn with_offset(release: Release, stimulus: Element, findings: &mut Findings) -> Result<Release, Refusal> {
    let Some(offset) = stimulus.child("offset") else { return Ok(release) };
    let Some(length) = time(offset)?.exact() else {
        return Err(offset.refusal("the offset is no whole number of nanoseconds, or is too long"));
    };
    let rest = length.rem_euclid(release.period);
    if rest != length {
        let text = format!("the offset of a task is less than its period: {rest}ns remain");
        findings.remark(offset.path(), text);
    }
    Ok(Release { offset: Some(rest).filter(|rest| *rest > 0), ..release })
}

/// Takes the least distance of two releases as the period.
fn shortest(task: Element, stimulus: Element, findings: &mut Findings) -> Result<Release, Refusal> {
    let least = match stimulus.kind() {
        kind if kind.starts_with("Arrival") => arrivals(stimulus)?,
        _ => occurrence(stimulus)?,
    };
    let Some(period) = least.and_then(Picoseconds::down).filter(|period| *period > 0) else {
        return Err(unbounded(task, stimulus));
    };
    findings.remark(stimulus.path(), "the least distance of two releases becomes the period");
    Ok(Release { period, offset: None })
}

fn occurrence(stimulus: Element) -> Result<Option<Picoseconds>, Refusal> {
    let tags = ["nextOccurrence", "occurrence", "stimulusDeviation"].into_iter();
    let deviation = tags.filter_map(|tag| stimulus.child(tag)).next();
    Ok(deviation.map(least_time).transpose()?.flatten())
}

/// Returns the least time that two releases need. The entry for two of them has it.
fn arrivals(stimulus: Element) -> Result<Option<Picoseconds>, Refusal> {
    let is_two = |entry: &Element| {
        let count = entry.attribute("numberOfOccurrences").or(entry.attribute("numberOfEvents"));
        count == Some("2")
    };
    let entries = stimulus.elements().filter(|entry| ["entries", "arrivalCurveEntries"].contains(&entry.tag()));
    entries.filter(is_two).find_map(|entry| entry.child("lowerTimeBorder")).map(time).transpose()
}

/// Returns a period in nanoseconds.
fn period(recurrence: Element) -> Result<i64, Refusal> {
    match time(recurrence)? {
        Picoseconds(length) if length <= 0 => Err(recurrence.refusal("a period must be longer than zero")),
        length => length
            .exact()
            .ok_or_else(|| recurrence.refusal("the period is no whole number of nanoseconds, or is too long")),
    }
}

/// Notes that a mode or a counter can suppress releases. The jobs are in the table all the same.
fn conditions(stimulus: Element, findings: &mut Findings) {
    if let Some(counter) = stimulus.child("counter") {
        findings.remark(counter.path(), "the table has a job for each occurrence, without the counter");
    }
    let tags = ["executionCondition", "enablingModeValueList", "disablingModeValueList"];
    for condition in stimulus.elements().filter(|element| tags.contains(&element.tag())) {
        findings.remark(condition.path(), "the table has the jobs of all modes");
    }
}
