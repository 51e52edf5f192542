//! Resources that only one job at a time has (`exclusive`).
//!
//! A resource is like one more CPU. Each job of its tasks takes it from the start of its first window to the end of its
//! last one. Tasks with a phase are placed on both ([`crate::phases`]). The simulation
//! starts a job only where it can end before others need the resource ([`crate::edf`]).

use std::collections::BTreeMap;

use macrotick_model::{Duration, System};

use crate::demand::Demand;
use crate::error::PlanError;
use crate::folded::Problem;
use crate::table::Piece;

/// The resources of a problem, and their tasks, by index.
pub(crate) struct Resources {
    pub names: Vec<String>,
    /// The resources of each task.
    of: Vec<Vec<usize>>,
    /// The tasks of each resource.
    tasks: Vec<Vec<usize>>,
}

/// The time from the start of a job to its end. The start is within the cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Span {
    pub start: Duration,
    pub end: Duration,
    pub task: usize,
}

/// For each resource, the spans that are laid out before a simulation, in the order of their starts.
pub(crate) type Held = Vec<Vec<Span>>;

impl Resources {
    pub fn new(system: &System, demands: &[Demand]) -> Resources {
        let index: BTreeMap<&str, usize> =
            demands.iter().zip(0..).filter(|(demand, _)| !demand.is_pool()).map(|(one, at)| (&*one.name, at)).collect();
        let mut resources = Resources { names: Vec::new(), of: vec![Vec::new(); demands.len()], tasks: Vec::new() };
        for (name, tasks) in system.resources() {
            let tasks: Vec<usize> = tasks.iter().filter_map(|task| index.get(&*task.name).copied()).collect();
            tasks.iter().for_each(|&task| resources.of[task].push(resources.tasks.len()));
            resources.names.push(name.into());
            resources.tasks.push(tasks);
        }
        resources
    }

    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Returns the resources of a task. Indices behind those of tasks are fine, and have none.
    pub fn of(&self, task: usize) -> &[usize] {
        self.of.get(task).map_or(&[], Vec::as_slice)
    }

    pub fn has(&self, task: usize) -> bool {
        !self.of(task).is_empty()
    }

    /// Returns the tasks of a resource.
    pub fn tasks(&self, resource: usize) -> &[usize] {
        &self.tasks[resource]
    }

    /// Whether two different tasks share a resource.
    pub fn share(&self, task: usize, other: usize) -> bool {
        task != other && self.of(task).iter().any(|resource| self.of(other).contains(resource))
    }

    /// Returns the spans of each resource in these pieces of all CPUs. A job that is not complete has its span up to its
    /// last piece.
    pub fn held(&self, pieces: &[Vec<Piece>], cycle: Duration) -> Held {
        let mut own: BTreeMap<usize, Vec<Piece>> = BTreeMap::new();
        for piece in pieces.iter().flatten().filter(|piece| self.has(piece.task)) {
            own.entry(piece.task).or_default().push(*piece);
        }
        let mut held = vec![Vec::new(); self.names.len()];
        for (task, mut pieces) in own {
            pieces.sort_by_key(|piece| piece.start);
            for span in spans(task, &pieces, cycle) {
                self.of(task).iter().for_each(|&resource| held[resource].push(span));
            }
        }
        held.iter_mut().for_each(|spans| spans.sort_unstable());
        held
    }

    /// Returns a resource that two jobs have at the same time, and their tasks: first the one that starts later.
    pub fn clash(&self, pieces: &[Vec<Piece>], cycle: Duration) -> Option<(usize, usize, usize)> {
        self.held(pieces, cycle).iter().enumerate().find_map(|(resource, spans)| {
            let last = spans.iter().max_by_key(|span| span.end)?;
            let mut before = Span { start: last.start - cycle, end: last.end - cycle, ..*last };
            for &span in spans {
                if span.start < before.end && span.task != before.task {
                    return Some((resource, span.task, before.task));
                }
                before = if span.end > before.end { span } else { before };
            }
            None
        })
    }
}

/// Returns the spans of the jobs of a task, of which the pieces are sorted.
fn spans(task: usize, pieces: &[Piece], cycle: Duration) -> Vec<Span> {
    let Some(first) = pieces.iter().position(|piece| piece.activate) else { return Vec::new() };
    let later = pieces[..first].iter().map(|piece| (piece, cycle));
    let mut spans: Vec<Span> = Vec::new();
    for (piece, turn) in pieces[first..].iter().map(|piece| (piece, Duration::ZERO)).chain(later) {
        let end = piece.end() + turn;
        match spans.last_mut().filter(|_| !piece.activate) {
            Some(span) => span.end = end,
            None => spans.push(Span { start: piece.start, end, task }),
        }
    }
    spans
}

/// Returns the end of the span of another task at an instant, if there is one, and the start of the next one. Instants can
/// be in any cycle.
pub(crate) fn around(
    spans: &[Span],
    task: usize,
    at: Duration,
    cycle: Duration,
) -> (Option<Duration>, Option<Duration>) {
    let turn = cycle * at.as_nanos().div_euclid(cycle.as_nanos());
    let within = at - turn;
    let next = spans.partition_point(|span| span.start <= within);
    let is_other = |span: &&Span| span.task != task;
    let until = |span: &Span, turn: Duration| Some(span.end + turn).filter(|&end| end > at);
    let here = spans[..next].iter().rev().find(is_other).and_then(|span| until(span, turn));
    // The last one of the cycle before can extend into this one.
    let here = here.or_else(|| spans.iter().rev().find(is_other).and_then(|span| until(span, turn - cycle)));
    let then = spans[next..].iter().find(is_other).map(|span| span.start + turn);
    (here, then.or_else(|| spans.iter().find(is_other).map(|span| span.start + turn + cycle)))
}

/// Returns an instant, or the end of the spans of other tasks in which it lies, also of those that abut. If they take all
/// time, the result is at least a cycle later.
pub(crate) fn behind<'a>(
    held: impl Iterator<Item = &'a [Span]> + Clone,
    task: usize,
    at: Duration,
    cycle: Duration,
) -> Duration {
    let mut free = at;
    while free < at + cycle {
        match held.clone().filter_map(|spans| around(spans, task, free, cycle).0).max() {
            Some(end) => free = end,
            None => break,
        }
    }
    free
}

impl Problem<'_> {
    /// Returns the pieces if no two jobs have a resource at the same time.
    pub(crate) fn exclusive(&self, pieces: Vec<Vec<Piece>>) -> Result<Vec<Vec<Piece>>, PlanError> {
        let name = |task: usize| self.demands[task].name.clone();
        match self.resources.clash(&pieces, self.cycle) {
            Some((resource, task, other)) => Err(PlanError::Exclusive {
                resource: self.resources.names[resource].clone(),
                task: name(task),
                other: name(other),
            }),
            None => Ok(pieces),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(n: i64) -> Duration {
        Duration::from_micros(n)
    }

    fn span(task: usize, start: i64, end: i64) -> Span {
        Span { start: us(start), end: us(end), task }
    }

    #[test]
    fn a_span_reaches_from_the_first_piece_to_the_last_also_over_the_end() {
        let piece = |start, length, activate, deadline| Piece {
            start: us(start),
            length: us(length),
            task: 3,
            activate,
            deadline,
        };
        let pieces =
            [piece(0, 1, false, false), piece(2, 1, false, true), piece(4, 1, true, true), piece(9, 1, true, false)];
        assert_eq!(spans(3, &pieces, us(10)), [span(3, 4, 5), span(3, 9, 13)]);
        assert_eq!(spans(3, &pieces[..2], us(10)), []);
    }

    #[test]
    fn spans_of_other_tasks_are_found_around_an_instant() {
        let spans = [span(0, 2, 4), span(1, 5, 6), span(0, 8, 11)];
        let around = |task, at| around(&spans, task, us(at), us(10));
        assert_eq!(around(2, 0), (Some(us(1)), Some(us(2))));
        assert_eq!(around(2, 1), (None, Some(us(2))));
        assert_eq!(around(2, 2), (Some(us(4)), Some(us(5))));
        assert_eq!(around(0, 2), (None, Some(us(5))));
        assert_eq!(around(2, 18), (Some(us(21)), Some(us(22))));
        assert_eq!(around(0, 8), (None, Some(us(15))));
    }

    #[test]
    fn spans_that_take_all_time_end_the_search_for_a_free_instant() {
        let (one, other) = ([span(0, 0, 6)], [span(1, 6, 10)]);
        let behind = |task, at| behind([&one[..], &other[..]].into_iter(), task, us(at), us(10));
        assert_eq!([behind(0, 3), behind(0, 7), behind(1, 3)], [us(3), us(10), us(6)]);
        assert_eq!(behind(2, 1), us(16));
    }
}
