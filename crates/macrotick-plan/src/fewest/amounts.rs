//! The time of each job in each slot, and the pieces.
//!
//! The search for the fewest pieces only says in which slots a job has time. The amounts are a flow from jobs to slots.

use std::collections::BTreeMap;

use macrotick_model::Duration;

use super::search::Content;
use super::slots::Slots;
use crate::cut::{RESUMING, SHORTEST_OF_ALL};
use crate::table::{self, Piece};

/// Returns the pieces of a CPU with this content. `None` if a piece would be too short.
pub(super) fn pieces(slots: &Slots, contents: &[Content]) -> Option<Vec<Piece>> {
    let mut flow = Flow::new(slots, contents);
    for (slot, content) in contents.iter().enumerate() {
        for part in content.parts.iter().filter(|part| part.whole) {
            flow.reserve(part.job, slot, slots.jobs[part.job].needed);
        }
        // A job that runs over both bounds of a slot has all of it.
        if let Some(over) = content.over.filter(|&over| slot > 0 && contents[slot - 1].over == Some(over)) {
            flow.reserve(over, slot, slots.length(slot));
        }
    }
    let cut: Vec<usize> = (0..slots.jobs.len()).filter(|&job| flow.needed[job] > slots.jobs[job].needed).collect();
    for &job in &cut {
        for slot in flow.ways[job].clone() {
            if slot == 0 || contents[slot - 1].over != Some(job) {
                flow.reserve(job, slot, SHORTEST_OF_ALL);
            }
        }
    }
    flow.is_full().then(|| flow.pieces(contents))
}

/// A flow of time.
struct Flow<'a> {
    slots: &'a Slots,
    /// The time of each job, with the cost of its pieces.
    needed: Vec<Duration>,
    /// The slots of each job.
    ways: Vec<Vec<usize>>,
    amounts: BTreeMap<(usize, usize), Duration>,
    /// The missing time of each job.
    missing: Vec<Duration>,
    /// The free time of each slot. It is negative if too much is reserved.
    free: Vec<Duration>,
}

impl<'a> Flow<'a> {
    fn new(slots: &'a Slots, contents: &[Content]) -> Flow<'a> {
        let mut ways = vec![Vec::new(); slots.jobs.len()];
        let mut needed: Vec<Duration> = slots.jobs.iter().map(|job| job.needed - RESUMING).collect();
        for (slot, content) in contents.iter().enumerate() {
            for part in &content.parts {
                ways[part.job].push(slot);
                needed[part.job] += RESUMING;
            }
            content.over.into_iter().for_each(|job| needed[job] -= RESUMING);
        }
        let free = (0..slots.count()).map(|slot| slots.length(slot)).collect();
        Flow { slots, missing: needed.clone(), needed, ways, amounts: BTreeMap::new(), free }
    }

    /// Gives a job at least this time in a slot, or all that it still needs.
    fn reserve(&mut self, job: usize, slot: usize, time: Duration) {
        let time = time.min(self.missing[job]);
        *self.amounts.entry((job, slot)).or_default() += time;
        self.missing[job] -= time;
        self.free[slot] -= time;
    }

    /// Gives all jobs the rest of their time. Returns false if there is no way.
    fn is_full(&mut self) -> bool {
        if self.free.iter().any(|&free| free < Duration::ZERO) {
            return false;
        }
        let reserved = self.amounts.clone();
        (0..self.missing.len()).all(|job| {
            while self.missing[job] > Duration::ZERO {
                let mut seen = vec![false; self.free.len()];
                let moved = self.push(job, self.missing[job], &reserved, &mut seen);
                if moved == Duration::ZERO {
                    return false;
                }
                self.missing[job] -= moved;
            }
            true
        })
    }

    /// Gives a job up to this time, and moves other jobs to later or earlier slots where necessary.
    fn push(
        &mut self,
        job: usize,
        time: Duration,
        reserved: &BTreeMap<(usize, usize), Duration>,
        seen: &mut [bool],
    ) -> Duration {
        for slot in self.ways[job].clone() {
            if std::mem::replace(&mut seen[slot], true) {
                continue;
            }
            let mut moved = time.min(self.free[slot]);
            self.free[slot] -= moved;
            let others: Vec<usize> = (0..self.ways.len()).filter(|&other| self.ways[other].contains(&slot)).collect();
            for other in others.into_iter().filter(|&other| other != job) {
                if moved > Duration::ZERO {
                    break;
                }
                let at = |amounts: &BTreeMap<_, _>| amounts.get(&(other, slot)).copied().unwrap_or(Duration::ZERO);
                let movable = (at(&self.amounts) - at(reserved)).min(time);
                if movable > Duration::ZERO {
                    moved = self.push(other, movable, reserved, seen);
                    *self.amounts.entry((other, slot)).or_default() -= moved;
                }
            }
            if moved > Duration::ZERO {
                *self.amounts.entry((job, slot)).or_default() += moved;
                return moved;
            }
        }
        Duration::ZERO
    }

    /// Lays out each slot: the job that runs into it, then the others, and the job that runs out of it at its end.
    fn pieces(&self, contents: &[Content]) -> Vec<Piece> {
        let mut pieces = Vec::new();
        for (slot, content) in contents.iter().enumerate() {
            let from = slot.checked_sub(1).and_then(|before| contents[before].over);
            let mut order: Vec<usize> = content.parts.iter().map(|part| part.job).collect();
            order.sort_by_key(|&job| {
                let of = &self.slots.jobs[job];
                (content.over == Some(job), from != Some(job), of.last, of.first, of.task)
            });
            let mut at = self.slots.bounds[slot];
            for job in order {
                let length = self.amounts.get(&(job, slot)).copied().unwrap_or(Duration::ZERO);
                let start = if content.over == Some(job) { self.slots.bounds[slot + 1] - length } else { at };
                at = start + length;
                let is = |slot: Option<&usize>, other: usize| slot.is_some_and(|&slot| slot == other);
                if length > Duration::ZERO {
                    let used: Vec<usize> = self.ways[job]
                        .iter()
                        .copied()
                        .filter(|&slot| self.amounts.get(&(job, slot)).is_some_and(|&time| time > Duration::ZERO))
                        .collect();
                    let (activate, deadline) = (is(used.first(), slot), is(used.last(), slot));
                    pieces.push(Piece { start, length, task: self.slots.jobs[job].task, activate, deadline });
                }
            }
        }
        table::joined(pieces)
    }
}
