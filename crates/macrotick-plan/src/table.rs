//! From the pieces of a solver to the windows of a table.

use macrotick_model::validate::MAX_WINDOWS;
use macrotick_model::{CpuTable, Duration, Window};

use crate::demand::Demand;
use crate::error::{Kind, PlanError};

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
    // The time of a reserve stays free.
    let is_window = |piece: &&Piece| demands[piece.task].kind != Kind::Reserve;
    let windows: usize = pieces.iter().flatten().filter(is_window).count();
    let limit = MAX_WINDOWS as usize;
    if windows > limit {
        return Err(PlanError::TooManyWindows { windows, limit });
    }
    let window = |piece: &Piece| Window {
        activate: piece.activate,
        deadline: piece.deadline,
        ..Window::new(&demands[piece.task].name, piece.start, piece.length)
    };
    let of = |pieces: &Vec<Piece>| pieces.iter().filter(is_window).map(window).collect::<Vec<Window>>();
    let tables = cpus.iter().zip(pieces).map(|(&cpu, pieces)| CpuTable::new(cpu, of(pieces)));
    Ok(tables.filter(|table| !table.windows.is_empty()).collect())
}
