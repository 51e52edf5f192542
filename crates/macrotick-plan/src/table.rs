//! From the pieces of a solver to the windows of a table.

use macrotick_model::validate::MAX_WINDOWS;
use macrotick_model::{CpuTable, Duration, Window};

use crate::demand::Demand;
use crate::error::PlanError;

/// An interval of one CPU that one job gets, within `[0, cycle)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub start: Duration,
    pub length: Duration,
    /// The index of the task.
    pub task: usize,
    /// Whether it is the first piece of its job.
    pub activate: bool,
    /// Whether it is the last piece of its job.
    pub deadline: bool,
}

impl Piece {
    pub fn end(&self) -> Duration {
        self.start + self.length
    }
}

/// Sorts the pieces of one CPU and joins adjacent ones of the same job.
pub(crate) fn joined(mut pieces: Vec<Piece>) -> Vec<Piece> {
    pieces.sort_by_key(|piece| piece.start);
    let mut joined: Vec<Piece> = Vec::with_capacity(pieces.len());
    for piece in pieces {
        match joined.last_mut() {
            Some(last) if last.task == piece.task && last.end() == piece.start && !piece.activate && !last.deadline => {
                last.length += piece.length;
                last.deadline = piece.deadline;
            }
            _ => joined.push(piece),
        }
    }
    joined
}

/// Makes the tables of all CPUs that have pieces. `cpus` has their numbers in the order of `pieces`.
pub(crate) fn tables(cpus: &[u32], pieces: &[Vec<Piece>], demands: &[Demand]) -> Result<Vec<CpuTable>, PlanError> {
    let windows: usize = pieces.iter().map(Vec::len).sum();
    let limit = MAX_WINDOWS as usize;
    if windows > limit {
        return Err(PlanError::TooManyWindows { windows, limit });
    }
    let window = |piece: &Piece| Window {
        activate: piece.activate,
        deadline: piece.deadline,
        ..Window::new(&demands[piece.task].name, piece.start, piece.length)
    };
    let table = |(&cpu, pieces): (&u32, &Vec<Piece>)| CpuTable::new(cpu, pieces.iter().map(window).collect());
    Ok(cpus.iter().zip(pieces).filter(|(_, pieces)| !pieces.is_empty()).map(table).collect())
}
